/* baseline.h: the vendor's own calls on the very objects of the library, for comparison: the code of a program without
 * us.
 *
 * No part of a vendor's API shows here: devices and buffers come as gpuhal_native. Functions with a @count repeat their
 * call @count times and wait until each is done; all return false with gpuhal_bench_failure(). One thread at a time
 * uses a baseline, and the library does not work on the device at the same time. So both can submit to one VkQueue
 * without a lock. */
#ifndef GPUHAL_BENCH_BASELINE_H
#define GPUHAL_BENCH_BASELINE_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_bench_baseline gpuhal_bench_baseline;

/* At most this number of pieces is enqueued at a time: more would measure how a driver handles a full queue. */
enum { GPUHAL_BENCH_PIECES = 64 };

/* The calls of one API. If a member may be NULL, its comment says why. */
typedef struct gpuhal_bench_baseline_calls {
    void (*destroy)(gpuhal_bench_baseline *baseline);
    /* NULL: the API has no such call; if the host sees the memory, a program uses memcpy. Both or none. */
    bool (*write)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                  uint64_t count);
    bool (*read)(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count);
    bool (*copy)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                 uint64_t count);
    /* Copies from memory of @from_device to memory of the baseline's device; the API lets them reach each other. NULL:
     * the API has no such call. */
    bool (*copy_peer)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from_device,
                      const gpuhal_native *from, uint64_t bytes, uint64_t count);
    /* Copies in three steps, as a program with other work would: enqueues copies of @pieces pieces that lie one after
     * the other; submits the enqueued copies; and sleeps until they have ended, also in another thread, once for each
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

/* A function to find in a library, and the place for its address. */
typedef struct gpuhal_bench_symbol {
    const char *name;
    void *slot;
} gpuhal_bench_symbol;

/* Finds all of them. False with gpuhal_bench_failure(), which names the API @name. */
bool gpuhal_bench_find_symbols(const char *name, void *library, const gpuhal_bench_symbol *symbols, size_t count);

/* Finds the report of the plugin that is used for the backend. Returns false with gpuhal_bench_failure(). */
bool gpuhal_bench_find_report(const gpuhal *gpu, const char *backend, gpuhal_plugin_report *out_report);

/* Returns the file of the vendor's library that the plugin has opened: handles mean the same there. NULL with
 * gpuhal_bench_failure(). */
const char *gpuhal_bench_vendor_library(const gpuhal *gpu, const char *backend);

/* Loads the vendor's library and lists its devices like a program that needs an overview: the name, memory, UUID, PCI
 * address and versions of each. No device is opened. False with gpuhal_bench_failure(). */
bool gpuhal_bench_baseline_list(const char *backend, const char *library, uint32_t *out_count);

/* Makes the baseline of a device of the library. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device);

/* Takes NULL. */
void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline);

#endif
