/* queued.h: common code of the rows about queues: small copies on a queue of the library, compared with the same copies
 * on the vendor's queue. */
#ifndef GPUHAL_BENCH_QUEUED_H
#define GPUHAL_BENCH_QUEUED_H

#include "bench.h"

typedef struct gpuhal_bench_queued {
    gpuhal_queue *queue;
    gpuhal_event *event;
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    gpuhal_bench_baseline *baseline; /* NULL without a comparison. */
    gpuhal_native native_to;
    gpuhal_native native_from;
    uint64_t bytes; /* Size of a piece. The pieces are adjacent and do not overlap. */
    uint64_t pieces;
} gpuhal_bench_queued;

/* Creates a queue, an event, and two buffers of @pieces pieces. A baseline is created only if the run compares and the
 * API's calls are known. Returns false and sets gpuhal_bench_failure() on failure. Call close in any case. */
bool gpuhal_bench_queued_open(gpuhal_bench *bench, gpuhal_device *device, uint64_t bytes, uint64_t pieces,
                              gpuhal_bench_queued *out_queued);
void gpuhal_bench_queued_close(gpuhal_bench_queued *queued);

/* The library's side. The functions enqueue pieces, record the event, and sleep until the event is done. */
bool gpuhal_bench_queued_enqueue(const gpuhal_bench_queued *queued, uint64_t first, uint64_t pieces);
bool gpuhal_bench_queued_record(const gpuhal_bench_queued *queued);
bool gpuhal_bench_queued_await(const gpuhal_bench_queued *queued);
/* Sleeps until the queue is idle, without an event. */
bool gpuhal_bench_queued_synchronize(const gpuhal_bench_queued *queued);

/* Runs a side @count times to move a pattern of all pieces, and compares every byte. */
bool gpuhal_bench_queued_prove(gpuhal_bench_queued *queued, const gpuhal_bench_side *side, uint64_t count,
                               uint64_t seed);

#endif
