/* traces.h: sequences of requests for memory, made from a seed, as in three kinds of programs. */
#ifndef GPUHAL_BENCH_TRACES_H
#define GPUHAL_BENCH_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes are multiples of this, and so is every offset. */
enum { GPUHAL_BENCH_TRACE_UNIT = 512 };

typedef enum gpuhal_bench_trace_kind {
    /* Random sizes from 512 B to 16 MiB, each power of two as often as any other, in an arena that is nearly always
     * full; the released memory is chosen at random. No program is like this: it fragments memory most. */
    GPUHAL_BENCH_TRACE_FULL,
    /* A language model serves requests: weights once; for each request a cache that grows as its tokens come; the
     * results of a step, by the number of tokens in it; adapters of various ranks, swapped. */
    GPUHAL_BENCH_TRACE_SERVING,
    /* A model is trained: weights and the optimizer's state once; each layer keeps activations on the way forward and
     * gives them back on the way backward; lengths differ from batch to batch. */
    GPUHAL_BENCH_TRACE_TRAINING,
    GPUHAL_BENCH_TRACES
} gpuhal_bench_trace_kind;

/* One request: memory of `units` units for a slot without memory; 0: the slot's memory is released. */
typedef struct gpuhal_bench_step {
    uint32_t slot;
    uint32_t units;
} gpuhal_bench_step;

typedef struct gpuhal_bench_trace {
    gpuhal_bench_step *steps;
    uint64_t count;
    uint32_t slots;      /* their numbers are below */
    uint64_t peak_bytes; /* the most that is in use at any time */
} gpuhal_bench_trace;

/* Makes the same sequence for the same kind and count on every machine. False if memory is exhausted, with
 * gpuhal_bench_failure(). */
bool gpuhal_bench_trace_make(gpuhal_bench_trace_kind kind, uint64_t count, gpuhal_bench_trace *out_trace);
void gpuhal_bench_trace_free(gpuhal_bench_trace *trace);

#endif
