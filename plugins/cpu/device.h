/* cpu/device.h: what the files of this plugin share.
 *
 * The machine's processors and memory are one device, `cpu:0`. For tests, the setting CPU_DEVICES makes several of it, each with
 * a limit of its own. The table of devices is filled by the first start() of the process and never changes afterwards; only the
 * counters in it move. There is no lock that a fork could leave taken while memory is used, so everything works in a child.
 */
#ifndef GPUHAL_CPU_DEVICE_H
#define GPUHAL_CPU_DEVICE_H

#include <gpuhal/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_CPU_DEVICES_MAX       16u
#define GPUHAL_CPU_BINDING_ALIGNMENT 64u

/* A device, shared by all its openings. */
typedef struct gpuhal_cpu_entry {
    uint64_t total;             /* Most that one allocation, and all together, may have. */
    bool limited;               /* The total is a limit from CPU_DEVICES, not what the machine has. */
    _Atomic uint64_t allocated; /* By all openings of this process. */
} gpuhal_cpu_entry;

/* One opening. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_cpu_entry *entry;
};

/* discovery.c */
gpuhal_status gpuhal_cpu_start(const gpuhal_host *host);
gpuhal_status gpuhal_cpu_enumerate(const gpuhal_host *host, gpuhal_sink *sink);
gpuhal_status gpuhal_cpu_sample(const gpuhal_host *host, uint32_t index, const gpuhal_key *keys, uint32_t count, uint32_t flags,
                                gpuhal_sink *sink);
/* The device with this index, or NULL. */
gpuhal_cpu_entry *gpuhal_cpu_find(uint32_t index);

/* memory.c and transfer.c: fill their slots. */
void gpuhal_cpu_describe_memory(gpuhal_ops *ops);
void gpuhal_cpu_describe_transfer(gpuhal_ops *ops);

#endif
