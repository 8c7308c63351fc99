/* traces.h: sequences of memory requests, generated from a seed, that imitate three kinds of programs. */
#ifndef GPUHAL_BENCH_TRACES_H
#define GPUHAL_BENCH_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes and offsets are multiples of this unit. */
enum { GPUHAL_BENCH_TRACE_UNIT = 512 };

typedef enum gpuhal_bench_trace_kind {
    /* Random sizes from 512 B to 16 MiB, with all powers of two equally likely, in an arena that is nearly always full.
     * The memory to release is chosen at random. No real program does this, but this pattern fragments memory the
     * most. */
    GPUHAL_BENCH_TRACE_FULL,
    /* A language model serves requests. The weights are allocated once, and each request has a cache that grows with
     * its tokens. The sizes of a step's results depend on its number of tokens, and adapters of various ranks are
     * swapped in and out. */
    GPUHAL_BENCH_TRACE_SERVING,
    /* A model is trained. The weights and the optimizer's state are allocated once. Each layer keeps activations in the
     * forward pass and releases them in the backward pass. Lengths differ between batches. */
    GPUHAL_BENCH_TRACE_TRAINING,
    GPUHAL_BENCH_TRACES
} gpuhal_bench_trace_kind;

/* One request: allocate `units` units for a slot without memory or, if `units` is 0, release the slot's memory. */
typedef struct gpuhal_bench_step {
    uint32_t slot;
    uint32_t units;
} gpuhal_bench_step;

typedef struct gpuhal_bench_trace {
    gpuhal_bench_step *steps;
    uint64_t count;
    uint32_t slots;      /* all slot numbers are below this number */
    uint64_t peak_bytes; /* the maximum number of bytes in use at any time */
} gpuhal_bench_trace;

/* Makes the same sequence for the same kind and count on every machine. Returns false and sets gpuhal_bench_failure()
 * if memory is exhausted. */
bool gpuhal_bench_trace_make(gpuhal_bench_trace_kind kind, uint64_t count, gpuhal_bench_trace *out_trace);
void gpuhal_bench_trace_free(gpuhal_bench_trace *trace);

#endif
