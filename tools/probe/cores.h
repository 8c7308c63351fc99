/* cores.h: processor cores with the numbers that Slurm uses (and lstopo, as "L#"), in socket order, independent of the
 * kernel's numbers. */
#ifndef PROBE_CORES_H
#define PROBE_CORES_H

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_CORE_TEXT_BYTES = 1024 };

typedef struct gpuhal_probe_cores {
    uint32_t *numbers; /* core numbers, indexed by kernel CPU number; UINT32_MAX if the core is unknown */
    uint32_t cpus, count;
} gpuhal_probe_cores;

/* Reads the cores from sysfs. The list is empty if the files cannot be read. Returns false if out of memory. */
bool gpuhal_probe_cores_read(gpuhal_probe_cores *out_cores);
void gpuhal_probe_cores_finish(gpuhal_probe_cores *cores);

/* Converts a kernel CPU list ("0-31,64-95") to the list of cores that have at least one of these CPUs ("0-31"). The
 * result is "" if the list covers all cores of the machine, if it is empty or invalid, or if a CPU's core is unknown.
 * Returns false if out of memory. */
bool gpuhal_probe_cores_of(const gpuhal_probe_cores *cores, const char *cpus, char space[PROBE_CORE_TEXT_BYTES]);

#endif
