/* baseline.h: the vendor's own calls on the very objects of the library, for comparison: what a program without us
 * would write.
 *
 * Nothing of a vendor's API shows here: devices and buffers come as gpuhal_native. Functions with a @count make their
 * calls so often and wait until each is done; all return false with gpuhal_bench_failure(). One thread at a time uses a
 * baseline, and the library does no work of its own on the device meanwhile: that is what lets both submit to one
 * VkQueue without a lock. */
#ifndef GPUHAL_BENCH_BASELINE_H
#define GPUHAL_BENCH_BASELINE_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_bench_baseline gpuhal_bench_baseline;

/* So many pieces are enqueued at a time, at most: more would measure how a driver copes with a queue that is full. */
enum { GPUHAL_BENCH_PIECES = 64 };

/* What one API has. Where a member may be NULL, its comment says why. */
typedef struct gpuhal_bench_baseline_calls {
    void (*destroy)(gpuhal_bench_baseline *baseline);
    /* NULL: the API has no such call; where the host sees the memory, a program uses memcpy. Both or none. */
    bool (*write)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                  uint64_t count);
    bool (*read)(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count);
    bool (*copy)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                 uint64_t count);
    /* From memory of @from_device to memory of the baseline's own, which the API lets reach each other. NULL: the API
     * has no such call. */
    bool (*copy_peer)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from_device,
                      const gpuhal_native *from, uint64_t bytes, uint64_t count);
    /* In three steps, as a program works that has something else to do meanwhile: enqueues copies of @pieces pieces
     * that lie one after the other; submits what was enqueued; and sleeps until that has ended, also in another thread,
     * once for each
     * submit. */
    bool (*enqueue)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                    uint64_t pieces);
    bool (*submit)(gpuhal_bench_baseline *baseline);
    bool (*await)(gpuhal_bench_baseline *baseline);
    /* Creates memory for the device, commits it and releases it. */
    bool (*allocate)(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count);
} gpuhal_bench_baseline_calls;

/* The beginning of every API's own structure. */
struct gpuhal_bench_baseline {
    const gpuhal_bench_baseline_calls *calls;
};

/* A function to find in a library, and where to put its address. */
typedef struct gpuhal_bench_symbol {
    const char *name;
    void *slot;
} gpuhal_bench_symbol;

/* Finds all of them. False with gpuhal_bench_failure(), which says the @name of the API. */
bool gpuhal_bench_find_symbols(const char *name, void *library, const gpuhal_bench_symbol *symbols, size_t count);

/* The file of the vendor's library that the plugin has opened: handles mean the same there. NULL with
 * gpuhal_bench_failure(). */
const char *gpuhal_bench_vendor_library(const gpuhal *gpu, const char *backend);

/* Loads the vendor's library and lists its devices as a program does that wants to know what there is: the name,
 * memory, UUID, PCI address and versions of each. No device is opened. False with gpuhal_bench_failure(). */
bool gpuhal_bench_baseline_list(const char *backend, const char *library, uint32_t *out_count);

/* For a device of the library. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device);

/* Takes NULL. */
void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline);

#endif
