/* baseline.h: the vendor's own calls on the very objects of the library, for comparison: what a program without us would write.
 *
 * Nothing of a vendor's API shows here: devices and buffers come as gpuhal_native. Each function makes its calls @count times,
 * waits until each is done, and answers false with gpuhal_bench_failure(). One thread uses a baseline, and the library does no
 * work of its own on the device meanwhile: that is what lets both submit to one VkQueue without a lock. */
#ifndef GPUHAL_BENCH_BASELINE_H
#define GPUHAL_BENCH_BASELINE_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

typedef struct gpuhal_bench_baseline gpuhal_bench_baseline;

/* What one API has. A NULL that is allowed tells why it may be. */
typedef struct gpuhal_bench_baseline_calls {
    void (*destroy)(gpuhal_bench_baseline *baseline);
    /* NULL: the API has no such call; where the host sees the memory, a program uses memcpy. Both or none. */
    bool (*write)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes, uint64_t count);
    bool (*read)(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count);
    bool (*copy)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                 uint64_t count);
    /* Copies @pieces pieces of @bytes that lie one after the other, in one submission. NULL: no plugin of that API has queues. */
    bool (*batch)(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                  uint64_t pieces, uint64_t count);
    /* Creates memory for the device, commits it and lets it go. */
    bool (*allocate)(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count);
    /* Lets the device see host memory at a page, and ends that. */
    bool (*import_host)(gpuhal_bench_baseline *baseline, void *memory, uint64_t bytes, uint64_t count);
} gpuhal_bench_baseline_calls;

/* The beginning of every API's own structure. */
struct gpuhal_bench_baseline {
    const gpuhal_bench_baseline_calls *calls;
};

/* Whether the direct calls of the device's API are known here. */
bool gpuhal_bench_baseline_is_known(gpuhal_device *device);

/* For a device of the library. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device);

/* For a device that came from somewhere else, such as a plugin's own native_device(). */
gpuhal_bench_baseline *gpuhal_bench_baseline_create_native(const gpuhal *gpu, const gpuhal_native *device);

/* Takes NULL. */
void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline);

#endif
