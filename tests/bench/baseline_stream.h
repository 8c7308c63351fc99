/* baseline_stream.h: the direct calls that CUDA and HIP share. Copies are enqueued in a stream. The baseline waits for
 * the stream or for an event.
 *
 * baseline_cuda.c and baseline_hip.c implement the functions with baseline_calls.inc. The files use the vendors'
 * declarations in the plugins' folders. No vendor library is linked. The functions are looked up in the library that
 * the plugin has opened, so that both sides can use the same handles. */
#ifndef GPUHAL_BENCH_BASELINE_STREAM_H
#define GPUHAL_BENCH_BASELINE_STREAM_H

#include "baseline.h"

typedef enum gpuhal_bench_direction {
    GPUHAL_BENCH_TO_DEVICE,
    GPUHAL_BENCH_TO_HOST,
    GPUHAL_BENCH_ON_DEVICE
} gpuhal_bench_direction;

/* The functions of one API, with the same interface for each API. The functions return the API's code, which is 0 for
 * success. Streams and events are the API's handles. */
typedef struct gpuhal_bench_stream_driver {
    const char *name;                   /* "CUDA" */
    const gpuhal_bench_symbol *symbols; /* Symbols that are looked up before any other call. */
    size_t symbol_count;
    /* Makes the device current on the calling thread. @c leave makes the previous device current again. */
    unsigned (*enter)(const gpuhal_native *device, int *out_before);
    void (*leave)(int before);
    /* Creates a stream that does not synchronize with the default stream, and an event with a sleeping wait, as the
     * plugin uses them. */
    unsigned (*create)(void **out_stream, void **out_event);
    void (*destroy)(void *stream, void *event);
    unsigned (*move)(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream);
    /* Copies between two devices, given as the library's native handles. */
    unsigned (*move_peer)(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                          uint64_t bytes, void *stream);
    unsigned (*wait)(void *stream);
    unsigned (*record)(void *event, void *stream);
    unsigned (*wait_asleep)(void *event);
    unsigned (*allocate_and_free)(uint64_t bytes);
    /* Initializes the API and queries its version, and each device's name, memory, UUID and PCI address. */
    unsigned (*list)(int *out_count);
    unsigned no_device; /* The API's code for "no device". */
} gpuhal_bench_stream_driver;

gpuhal_bench_baseline *gpuhal_bench_stream_create(const gpuhal_bench_stream_driver *driver, void *library,
                                                  const gpuhal_native *device);

bool gpuhal_bench_stream_list(const gpuhal_bench_stream_driver *driver, void *library, uint32_t *out_count);

#endif
