/* cpu/system.h: facts about the processor and the memory from Linux.
 *
 * @p root replaces `/`: it is "" on a real machine, and a recorded directory tree in tests. If the system does not
 * report a fact, a function returns false or leaves a string empty.
 */
#ifndef GPUHAL_CPU_SYSTEM_H
#define GPUHAL_CPU_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpuhal_cpu_memory {
    uint64_t total; /* limit of this process: the machine's memory, or the lowest limit of its control groups */
    uint64_t free;  /* bytes that this process could allocate now without swapping */
    bool of_group;  /* a control group determines `total` or `free` */
} gpuhal_cpu_memory;

typedef struct gpuhal_cpu_processor {
    char name[128];
    char vendor[64];
} gpuhal_cpu_processor;

/* Reads the number at the beginning of a file. Returns false with errno set on failure; errno is 0 if the file does not
 * begin with a number. */
bool gpuhal_cpu_system_number(const char *root, const char *path, uint64_t *out_number);
/* Returns the first 8 KiB of a file, or NULL. Owner: caller, free(). */
char *gpuhal_cpu_system_text(const char *root, const char *path);
bool gpuhal_cpu_system_memory(const char *root, gpuhal_cpu_memory *out_memory);
void gpuhal_cpu_system_processor(const char *root, gpuhal_cpu_processor *out_processor);
/* Reads the highest clock frequency of the first and the last of @p cpus processors. Small and large cores are at
 * opposite ends of the list. */
bool gpuhal_cpu_system_clock(const char *root, uint32_t cpus, uint64_t *out_hertz);
/* Finds the number of the only memory node. Returns false if there are several nodes or the kernel reports none. */
bool gpuhal_cpu_system_node(const char *root, uint64_t *out_node);
/* Returns GPUHAL_DATA_ bits for the types that every processor supports, and for the types that this processor's
 * instruction set adds. */
uint32_t gpuhal_cpu_system_data_types(const char *root);
/* Returns the number of processors that this process may run on. For a recorded machine, returns the number online. */
uint32_t gpuhal_cpu_system_affinity(const char *root);
/* Returns the same number, limited by the process's control groups; at least 1. */
uint32_t gpuhal_cpu_system_processors(const char *root);
bool gpuhal_cpu_system_release(const char *root, char *out_text, size_t size);

#endif
