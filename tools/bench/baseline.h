/* baseline.h: the vendor's own calls on the library's objects, for comparison with a program that does not use the
 * library.
 *
 * This header contains no vendor API: devices and buffers are passed as gpuhal_native. Functions with a @count repeat
 * their call @count times and wait for each call to finish. On failure the functions return false or NULL, and set
 * gpuhal_bench_failure(). A baseline is used by one thread at a time, and never while the library uses the device, so
 * that the baseline and the library can share one VkQueue without a lock. */
#ifndef GPUHAL_BENCH_BASELINE_H
#define GPUHAL_BENCH_BASELINE_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_bench_baseline gpuhal_bench_baseline;

/* The maximum number of pieces enqueued at a time. With more pieces, the rows would measure how a driver handles a full
 * queue. */
enum { GPUHAL_BENCH_PIECES = 64 };

/* The calls of one API. If a member may be NULL, its comment gives the reason. */
typedef struct gpuhal_bench_baseline_calls {
    void (*destroy)(gpuhal_bench_baseline *baseline);
    /* Either both are set or both are NULL. They are NULL if the API has no such call. Programs then use memcpy if the
     * host can access the memory. */
    bool (*write)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                  uint64_t count);
    bool (*read)(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count);
    bool (*copy)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                 uint64_t count);
    /* Copies from memory of @from_device to memory of the baseline's device; the API allows access between the two.
     * NULL if the API has no such call. */
    bool (*copy_peer)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from_device,
                      const gpuhal_native *from, uint64_t bytes, uint64_t count);
    /* Copies in three steps, like a program that has other work to do. enqueue() enqueues copies of @pieces adjacent
     * pieces, submit() submits the copies, and await() sleeps until they have finished. The last step is called once
     * for each submission, possibly on another thread. */
    bool (*enqueue)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                    uint64_t pieces);
    bool (*submit)(gpuhal_bench_baseline *baseline);
    bool (*await)(gpuhal_bench_baseline *baseline);
    /* Allocates, commits and releases device memory. */
    bool (*allocate)(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count);
} gpuhal_bench_baseline_calls;

struct gpuhal_bench_baseline {
    const gpuhal_bench_baseline_calls *calls;
};

/* A function to look up in a library, and the variable that receives its address. */
typedef struct gpuhal_bench_symbol {
    const char *name;
    void *slot;
} gpuhal_bench_symbol;

/* Looks up all symbols. The failure names the API @name. */
bool gpuhal_bench_find_symbols(const char *name, void *library, const gpuhal_bench_symbol *symbols, size_t count);

/* Finds the report of the plugin @backend. Fails if the library does not use this plugin. */
bool gpuhal_bench_find_report(const gpuhal *gpu, const char *backend, gpuhal_plugin_report *out_report);

/* Returns the file of the vendor's library that the plugin has opened, because handles are valid only in that
 * library. */
const char *gpuhal_bench_vendor_library(const gpuhal *gpu, const char *backend);

/* Loads the vendor's library and lists its devices like a program that needs an overview: each device's name, memory,
 * UUID, PCI address and versions. No device is opened. */
bool gpuhal_bench_baseline_list(const char *backend, const char *library, uint32_t *out_count);

gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device);

/* @p baseline may be NULL. */
void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline);

#endif
