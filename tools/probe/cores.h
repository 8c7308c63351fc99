/* cores.h: the processor's cores by the numbers that Slurm (and lstopo, as "L#") gives them: in the order of their
 * sockets, whatever the kernel calls them. */
#ifndef PROBE_CORES_H
#define PROBE_CORES_H

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_CORE_TEXT_BYTES = 1024 };

typedef struct gpuhal_probe_cores {
    uint32_t *numbers; /* of the core that CPU `i` of the kernel is a thread of; UINT32_MAX: there is no such CPU */
    uint32_t cpus, count;
} gpuhal_probe_cores;

/* Reads the kernel's files. No cores where they cannot be read. false without memory. */
bool gpuhal_probe_cores_read(gpuhal_probe_cores *out_cores);
void gpuhal_probe_cores_finish(gpuhal_probe_cores *cores);

/* The cores that have a thread in a list of the kernel, "0-31,64-95", as such a list: "0-31". "" where they are all of
 * the machine's, or one of them is not known. false without memory. */
bool gpuhal_probe_cores_of(const gpuhal_probe_cores *cores, const char *cpus, char space[PROBE_CORE_TEXT_BYTES]);

#endif
