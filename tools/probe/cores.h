/* cores.h: the processor's cores by the numbers of Slurm (and of lstopo, as "L#"): in the order of their sockets,
 * not of the kernel's numbers. */
#ifndef PROBE_CORES_H
#define PROBE_CORES_H

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_CORE_TEXT_BYTES = 1024 };

typedef struct gpuhal_probe_cores {
    uint32_t *numbers; /* the core of the kernel's CPU `i`; UINT32_MAX: there is no such CPU */
    uint32_t cpus, count;
} gpuhal_probe_cores;

/* Reads the kernel's files. There are no cores if they cannot be read. Returns false without memory. */
bool gpuhal_probe_cores_read(gpuhal_probe_cores *out_cores);
void gpuhal_probe_cores_finish(gpuhal_probe_cores *cores);

/* Lists the cores that have a thread in a list of the kernel, "0-31,64-95", as such a list: "0-31". "" if they are all
 * cores of the machine, or one of them is not known. Returns false without memory. */
bool gpuhal_probe_cores_of(const gpuhal_probe_cores *cores, const char *cpus, char space[PROBE_CORE_TEXT_BYTES]);

#endif
