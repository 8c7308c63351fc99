/* rocm/device.h: declarations that the files of this plugin share.
 *
 * An entry is one device in HIP's list for this process. HIP fixes this list at initialization, so a device's index is
 * its ordinal. HIP uses the current device of the calling thread. Each call makes the opened device current if
 * necessary, and restores the thread's previous device.
 *
 * A blocking call acquires an unused internal stream of the opened device, enqueues its work, waits for this work and
 * releases the stream. Internal streams do not wait for the default stream, so the application's work does not delay
 * them. If a stream was adopted with the device, an internal stream first waits for the earlier work in the adopted
 * stream.
 *
 * After some errors a device is unusable in the process. The first such error code is stored in the entry, because all
 * opened devices share the entry. Every later call returns this code. If the application resets the device
 * (hipDeviceReset), HIP destroys all its streams, including the plugin's, and frees all its memory. Opened devices
 * become unusable, but the device can be opened again. The plugin frees no objects of such an opened device, because
 * the addresses may already belong to another owner.
 */
#ifndef GPUHAL_ROCM_DEVICE_H
#define GPUHAL_ROCM_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_ROCM_LEGACY                                                                                            \
    1u /* hipStreamLegacy of the current device; hipStreamGetDevice dereferences it as a pointer */
#define GPUHAL_ROCM_PER_THREAD                                                                                        \
    2u /* hipStreamPerThread: a different stream on each thread, so threads cannot share it */

/* The kernel compute driver's information about a device; 0 if the device is not listed. */
typedef struct gpuhal_rocm_kernel {
    uint32_t gpu_id;
    uint32_t target;       /* the instruction set, in AMD's encoding */
    uint32_t parts;        /* number of partitions of the GPU at the device's address */
    uint32_t render_minor; /* render node of the device or partition */
} gpuhal_rocm_kernel;

/* Immutable once find() returns it, except for atomic members. */
typedef struct gpuhal_rocm_entry {
    hipDevice_t device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool maps_host;      /* the device can access page-locked memory */
    bool registers_host; /* the device can also access page-locked memory of the caller */
    bool has_managed;    /* managed memory, which the host may access while the device works */
    bool has_ranges;     /* virtual memory management */
    bool exports_fd;
    bool has_address;
    uint32_t domain, bus, slot; /* valid if has_address */
    int32_t partition;          /* -1 if the device is a whole GPU */
    /* The plugin assigned the partition number, in HIP's order. Other software, or HIP in another environment, may
     * number partitions differently. */
    bool is_counted;
    gpuhal_rocm_kernel kernel;
    char pci[24];  /* canonical, without the partition; "" if unknown */
    char uuid[40]; /* canonical; "" if unknown */
    char driver_version[80];
    _Atomic hipError_t lost; /* error code of the device loss; 0 while the device works */
} gpuhal_rocm_entry;

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_rocm_entry *entry;
    _Atomic hipError_t gone; /* hipErrorContextIsDestroyed after a detected device reset, otherwise 0 */
    hipStream_t foreign;     /* blocking calls first wait for this stream of the caller; NULL if none */
    void *marker;            /* memory that shows whether the device was reset */
    uint32_t marker_id;      /* 0 if HIP has no ids */
    gpuhal_internal_streams internal;
};

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    hipStream_t stream;
    bool adopted; /* the caller owns the stream */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    hipEvent_t event;
    hipEvent_t twin; /* threads sleep until `twin` completes; never exported */
};

/* The thread's state before it entered. Leaving restores this state. */
typedef struct gpuhal_rocm_scope {
    bool moved; /* `device` was current before */
    int device;
    bool relaxed;
    hipStreamCaptureMode mode; /* valid if relaxed */
    const char *failed;        /* the call that failed while entering; NULL if the device was already lost */
} gpuhal_rocm_scope;

/* Converts an address from a number (gpuhal) to a pointer (HIP). */
static inline void *gpuhal_rocm_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t gpuhal_rocm_align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* identity.c: numbers partitions that have the address of the whole GPU. Other devices with this address reveal
 * them. */
void gpuhal_rocm_find_partitions(gpuhal_rocm_entry *entries, uint32_t count);

/* system.c */
#define GPUHAL_ROCM_NODES "/sys/class/kfd/kfd/topology/nodes" /* CPUs are also nodes */
bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size);
/* Counts the GPUs of the kernel's compute driver, including GPUs that this process may not use. Returns 0 without the
 * driver. */
uint32_t gpuhal_rocm_count_system(void);
/* Fills in `kernel` of each entry. Requires addresses and partitions. */
void gpuhal_rocm_read_nodes(gpuhal_rocm_entry *entries, uint32_t count);

/* context.c: returns the error code of the device loss; 0 while the device works. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device);
/* Like gpuhal_rocm_lost_code(), but first checks whether the device was reset. Must be called before an object of the
 * device is passed to HIP, because HIP would dereference an invalid pointer after a reset. */
hipError_t gpuhal_rocm_check_reset(gpuhal_plugin_device *device);
/* Returns the ordinal of a stream's device, -1 if this HIP version cannot report the ordinal, or -2 if the stream is
 * invalid. */
int gpuhal_rocm_stream_device(hipStream_t stream);

/* address.c: returns whether HIP knows memory at the address, and the number of bytes from the address to the end of
 * this memory. Uses the only query that is safe for unknown memory in every version: a query for the type of unknown
 * memory makes HIP before 6.2 dereference the address as a pointer. */
bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes);

#include "../stream/stream.h"

#endif
