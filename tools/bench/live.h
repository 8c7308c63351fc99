/* live.h: maps a recorded program's names for memory to slots. */
#ifndef GPUHAL_BENCH_LIVE_H
#define GPUHAL_BENCH_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A recorded name: the number of a pool and the number of a buffer in that pool, or 0 and an address. */
typedef struct gpuhal_bench_name {
    uint64_t space, number;
} gpuhal_bench_name;

typedef struct gpuhal_bench_live_entry {
    gpuhal_bench_name name;
    uint32_t slot; /* slot number plus 1; 0 if the entry is free */
} gpuhal_bench_live_entry;

/* A hash table with linear probing, at most half full. A zero-initialised table is empty. */
typedef struct gpuhal_bench_live {
    gpuhal_bench_live_entry *entries;
    size_t space, count; /* `space` is a power of two, or 0 */
    uint32_t *unused;    /* slots that were released */
    uint32_t unused_count, unused_space;
    uint32_t slots;
} gpuhal_bench_live;

/* Adds a new name and returns its slot; UINT32_MAX if memory is exhausted. */
uint32_t gpuhal_bench_live_add(gpuhal_bench_live *live, gpuhal_bench_name name);
/* Finds a name's slot. Returns false if the name has no slot. */
bool gpuhal_bench_live_find(const gpuhal_bench_live *live, gpuhal_bench_name name, uint32_t *out_slot);
/* Removes a name that has a slot. */
void gpuhal_bench_live_remove(gpuhal_bench_live *live, gpuhal_bench_name name);
void gpuhal_bench_live_free(gpuhal_bench_live *live);

#endif
