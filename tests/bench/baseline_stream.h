/* baseline_stream.h: the common part of the direct calls of CUDA and HIP: copies are given to a stream, and the
 * baseline waits for the stream or an event.
 *
 * baseline_cuda.c and baseline_hip.c bring the functions, over baseline_calls.inc. They use the only copy of the
 * vendors' declarations, in the plugins' folders. Nothing is linked: the library is the one that the plugin opened, so
 * that handles mean the same. */
#ifndef GPUHAL_BENCH_BASELINE_STREAM_H
#define GPUHAL_BENCH_BASELINE_STREAM_H

#include "baseline.h"

typedef enum gpuhal_bench_direction {
    GPUHAL_BENCH_TO_DEVICE,
    GPUHAL_BENCH_TO_HOST,
    GPUHAL_BENCH_ON_DEVICE
} gpuhal_bench_direction;

/* One API behind functions of one shape. They return the API's code, 0 for success; streams and events are handles of
 * that API. */
typedef struct gpuhal_bench_stream_driver {
    const char *name;                   /* "CUDA" */
    const gpuhal_bench_symbol *symbols; /* Symbols that must be found before any other call. */
    size_t symbol_count;
    /* Makes the device the calling thread's current one, and restores the previous one. */
    unsigned (*enter)(const gpuhal_native *device, int *out_before);
    void (*leave)(int before);
    /* A stream that does not wait for the default one, and an event whose waiter sleeps, as the plugin uses them. */
    unsigned (*create)(void **out_stream, void **out_event);
    void (*destroy)(void *stream, void *event);
    unsigned (*move)(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream);
    /* Copies between two devices, which the library describes by these natives. */
    unsigned (*move_peer)(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                          uint64_t bytes, void *stream);
    unsigned (*wait)(void *stream);
    unsigned (*record)(void *event, void *stream);
    unsigned (*wait_asleep)(void *event);
    unsigned (*allocate_and_free)(uint64_t bytes);
    /* Initialises the API, and asks for its version and for the name, memory, UUID and PCI address of each device. */
    unsigned (*list)(int *out_count);
    unsigned no_device; /* The code for a machine without a device. */
} gpuhal_bench_stream_driver;

/* Creates a stream on the device. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_stream_create(const gpuhal_bench_stream_driver *driver, void *library,
                                                  const gpuhal_native *device);

/* Lists the devices, as baseline.h says. */
bool gpuhal_bench_stream_list(const gpuhal_bench_stream_driver *driver, void *library, uint32_t *out_count);

#endif
