/* baselines.h: a run's comparisons other than the C library, the system and the plugins' own functions. gpuhal-bench
 * has no such comparisons (baselines_none.c), so it needs no vendor headers. gpuhal-bench-baseline, which is never
 * installed, has all comparisons in tests/bench. */
#ifndef GPUHAL_BENCH_BASELINES_H
#define GPUHAL_BENCH_BASELINES_H

#include "baseline.h"
#include "traces.h"

struct gpuhal_bench;

/* One API whose calls are known. */
typedef struct gpuhal_bench_vendor {
    const char *backend;
    gpuhal_native_type device_type;
    /* Both functions receive the vendor's library (see baseline.h). */
    gpuhal_bench_baseline *(*create)(void *library, const gpuhal_native *device);
    bool (*list)(void *library, uint32_t *out_count);
    /* Determines how many KiB all processes together use on the device at a PCI address. NULL if the API cannot report
     * this. */
    bool (*device_memory)(const char *pci, double *out_kib);
    /* Rows of the groups launch and batch whose baseline exists only for this API. NULL if there are no such rows. */
    void (*rows_launch)(struct gpuhal_bench *bench, gpuhal_device *device);
    void (*rows_batch)(struct gpuhal_bench *bench, gpuhal_device *device);
} gpuhal_bench_vendor;

typedef struct gpuhal_bench_key {
    char text[32];
    size_t length;
} gpuhal_bench_key;

typedef struct gpuhal_bench_map gpuhal_bench_map;

typedef struct gpuhal_bench_baselines {
    const gpuhal_bench_vendor *vendors;
    size_t vendor_count;
    /* Another library's hash table. Either all three members are set or all are NULL. map_create returns NULL if memory
     * is exhausted. */
    gpuhal_bench_map *(*map_create)(const gpuhal_bench_key *keys, size_t count);
    void (*map_destroy)(gpuhal_bench_map *map);
    bool (*map_has)(const gpuhal_bench_map *map, const gpuhal_bench_key *key);
    /* Makes all requests of a trace in a new block of @arena_bytes with another library's allocator. @handles has one
     * element for each slot. Returns false if a request was refused. NULL if there is no such library. */
    bool (*blocks_replay)(const gpuhal_bench_trace *trace, uint64_t arena_bytes, uint64_t *handles);
} gpuhal_bench_baselines;

extern const gpuhal_bench_baselines gpuhal_bench_baselines_here;

/* Returns NULL if the calls of the backend's API are unknown. */
const gpuhal_bench_vendor *gpuhal_bench_vendor_of(const char *backend);

#endif
