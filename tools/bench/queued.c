/* queued.c: the library's side and the baseline's side use the same two buffers. Every moved byte is checked before any
 * timing. */
#include "queued.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t timeout_ns = UINT64_C(10000000000);

static bool open_baseline(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_queued *q)
{
    if (!gpuhal_bench_native_of(q->to, &q->native_to) || !gpuhal_bench_native_of(q->from, &q->native_from)) {
        return false;
    }
    q->baseline = gpuhal_bench_baseline_create(bench->gpu, device);
    return q->baseline != NULL;
}

bool gpuhal_bench_queued_open(gpuhal_bench *bench, gpuhal_device *device, uint64_t bytes, uint64_t pieces,
                              gpuhal_bench_queued *out_queued)
{
    gpuhal_bench_queued *q = out_queued;
    *q = (gpuhal_bench_queued){.bytes = bytes, .pieces = pieces};
    if (!gpuhal_bench_buffer(device, bytes * pieces, &q->to) ||
        !gpuhal_bench_buffer(device, bytes * pieces, &q->from)) {
        return false;
    }
    if (gpuhal_queue_create(device, NULL, &q->queue) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_queue_create");
    }
    if (gpuhal_event_create(bench->gpu, 0, &q->event) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_event_create");
    }
    return !bench->options->baseline || gpuhal_bench_vendor_of(gpuhal_device_backend(device)) == NULL ||
           open_baseline(bench, device, q);
}

void gpuhal_bench_queued_close(gpuhal_bench_queued *queued)
{
    gpuhal_bench_baseline_destroy(queued->baseline);
    gpuhal_event_destroy(queued->event);
    gpuhal_queue_destroy(queued->queue);
    gpuhal_buffer_release(queued->to);
    gpuhal_buffer_release(queued->from);
}

bool gpuhal_bench_queued_enqueue(const gpuhal_bench_queued *queued, uint64_t first, uint64_t pieces)
{
    for (uint64_t piece = first; piece < first + pieces; piece++) {
        const uint64_t at = piece * queued->bytes;
        if (gpuhal_copy(queued->queue, queued->to, at, queued->from, at, queued->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

bool gpuhal_bench_queued_record(const gpuhal_bench_queued *queued)
{
    return gpuhal_event_record(queued->event, queued->queue) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_event_record");
}

bool gpuhal_bench_queued_await(const gpuhal_bench_queued *queued)
{
    return gpuhal_event_wait(queued->event, timeout_ns) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_event_wait");
}

bool gpuhal_bench_queued_synchronize(const gpuhal_bench_queued *queued)
{
    return gpuhal_queue_synchronize(queued->queue, timeout_ns) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_queue_synchronize");
}

bool gpuhal_bench_queued_prove(gpuhal_bench_queued *queued, const gpuhal_bench_side *side, uint64_t count,
                               uint64_t seed)
{
    const uint64_t bytes = queued->bytes * queued->pieces;
    void *host = gpuhal_bench_host_memory(bytes);
    if (host == NULL) {
        return false;
    }
    memset(host, 0x5a, (size_t)bytes);
    bool good = gpuhal_bench_writes(queued->to, host, bytes, 1);
    gpuhal_bench_pattern(host, bytes, seed);
    good = good && gpuhal_bench_writes(queued->from, host, bytes, 1);
    good = good && side->run(side->user, count) && (side->settle == NULL || side->settle(side->user));
    good = good && gpuhal_bench_reads(host, queued->to, bytes, 1) && gpuhal_bench_pattern_is(host, bytes, seed);
    free(host);
    return good;
}
