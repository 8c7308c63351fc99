/* cpu/system.h: facts about the processor and the memory from Linux.
 *
 * Every function takes the directory that stands for `/`: "" on a real machine, a recorded tree in tests. Each returns
 * false, or leaves a text empty, when the system does not report it.
 */
#ifndef GPUHAL_CPU_SYSTEM_H
#define GPUHAL_CPU_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpuhal_cpu_memory {
    uint64_t total; /* The limit of this process: memory of the machine, or of its tightest control group. */
    uint64_t free;  /* Bytes that it could get now without swapping. */
    bool of_group;  /* A control group limits one of the two. */
} gpuhal_cpu_memory;

typedef struct gpuhal_cpu_processor {
    char name[128];
    char vendor[64];
} gpuhal_cpu_processor;

/* Reads the number at the beginning of a file; false with errno: 0 when it holds none. */
bool gpuhal_cpu_system_number(const char *root, const char *path, uint64_t *out_number);
/* Returns the text of a file, at most 8 KiB of it, which the caller frees; NULL when there is none. */
char *gpuhal_cpu_system_text(const char *root, const char *path);
bool gpuhal_cpu_system_memory(const char *root, gpuhal_cpu_memory *out_memory);
void gpuhal_cpu_system_processor(const char *root, gpuhal_cpu_processor *out_processor);
/* Gives the highest clock of the first and the last of @p cpus processors: small and large cores stand at opposite
 * ends. */
bool gpuhal_cpu_system_clock(const char *root, uint32_t cpus, uint64_t *out_hertz);
/* Gives the only memory node; false when there are several or the kernel knows none. */
bool gpuhal_cpu_system_node(const char *root, uint64_t *out_node);
/* Returns GPUHAL_DATA_ bits: the types of every processor, and the types that its instructions add. */
uint32_t gpuhal_cpu_system_data_types(const char *root);
/* Returns the number of processors that this process may run on; of a recorded machine, the number that are online. */
uint32_t gpuhal_cpu_system_affinity(const char *root);
/* Returns the number of them that the control groups of this process give it time for: 1 and more. */
uint32_t gpuhal_cpu_system_processors(const char *root);
/* Gives the release of the kernel: "6.1.0-18-amd64". */
bool gpuhal_cpu_system_release(const char *root, char *out_text, size_t size);

#endif
