/* stream/internal_stream.c: runs blocking calls. Each call takes one of the opened device's internal streams, waits for
 * its own work there, and gives the stream back. */
#include "device.h"

/* For at least this many bytes the waiting thread sleeps instead of spinning. Waking up costs some tens of
 * microseconds; spinning occupies a CPU. */
#define LONG_BYTES (UINT64_C(256) << 20)

vendor_code GPUHAL_OWN(make_first_stream)(gpuhal_plugin_device *device, const char **out_call)
{
    gpuhal_internal_streams *internal = &device->internal;
    const vendor_code code = GPUHAL_OWN(create_stream)(&internal->streams[0], &internal->events[0], out_call);
    const uint32_t first = code == GPUHAL_VENDOR_OK ? 1u : 0;
    atomic_store(&internal->claimed, first);
    atomic_store(&internal->made, first);
    atomic_store(&internal->idle, first);
    return code;
}

void GPUHAL_OWN(destroy_streams)(gpuhal_plugin_device *device)
{
    gpuhal_internal_streams *internal = &device->internal;
    /* All slots except `close` have returned by now, so every stream that a thread has claimed and created has its bit
     * in `made`. */
    const uint32_t made = atomic_load(&internal->made);
    for (uint32_t i = 0; i < GPUHAL_INTERNAL_STREAMS; i++) {
        if (made >> i & 1) {
            GPUHAL_OWN(destroy_stream)(internal->streams[i], internal->events[i]);
        }
    }
}

static void use(gpuhal_stream_call *call, uint32_t number)
{
    call->stream = call->device->internal.streams[number];
    call->event = call->device->internal.events[number];
}

/* Claims a stream that does not exist yet for the caller. Returns its index, or GPUHAL_INTERNAL_STREAMS if all streams
 * are claimed.
 *
 * Relaxed order is enough: the bit only keeps other threads from creating the same stream, and publishes nothing. The
 * creating thread's stores into streams[] and events[] are published to other threads by `idle` (give_back, take), and
 * to the closing thread by `made`. ~claimed is never 0, because bits from GPUHAL_INTERNAL_STREAMS on are never set;
 * __builtin_ctz(0) would be undefined. */
static uint32_t claim(gpuhal_internal_streams *internal)
{
    uint32_t number, claimed = atomic_load_explicit(&internal->claimed, memory_order_relaxed);
    do {
        number = (uint32_t)__builtin_ctz(~claimed);
    } while (number < GPUHAL_INTERNAL_STREAMS &&
             !atomic_compare_exchange_weak_explicit(&internal->claimed, &claimed, claimed | 1u << number,
                                                    memory_order_relaxed, memory_order_relaxed));
    return number;
}

/* Creates another stream, or shares the first stream if all are in use. Sharing is correct but slower, because the call
 * also waits for other calls' work. No lock is held, so that only this thread is stuck if the driver hangs while it
 * creates a stream. */
static void grow(gpuhal_stream_call *call)
{
    gpuhal_internal_streams *internal = &call->device->internal;
    const uint32_t number = claim(internal);
    if (number < GPUHAL_INTERNAL_STREAMS) {
        const char *name; /* errors are not reported, because another stream can be used */
        const vendor_code code =
            GPUHAL_OWN(create_stream)(&internal->streams[number], &internal->events[number], &name);
        if (code == GPUHAL_VENDOR_OK) {
            /* The bit in `idle` stays clear, because this call owns the stream until it gives the stream back. */
            atomic_fetch_or_explicit(&internal->made, 1u << number, memory_order_release);
            call->bit = 1u << number;
            use(call, number);
            return;
        }
        GPUHAL_OWN(ignore)(code);
        /* Undo the claim so that a later call tries again, when the driver may have the resources. */
        atomic_fetch_and_explicit(&internal->claimed, ~(1u << number), memory_order_relaxed);
    }
    use(call, 0);
}

/* Acquire and release on `idle` make the creating thread's stores visible to the thread that takes the stream. Taking
 * the lowest bit keeps the number of streams small. It is harmless if a bit is cleared and set again between the load
 * and the exchange: the stream still exists and no call uses it. */
static void take(gpuhal_stream_call *call)
{
    _Atomic uint32_t *idle = &call->device->internal.idle;
    uint32_t bits = atomic_load_explicit(idle, memory_order_acquire);
    while (bits != 0) {
        const uint32_t rest = bits & (bits - 1);
        if (atomic_compare_exchange_weak_explicit(idle, &bits, rest, memory_order_acquire, memory_order_acquire)) {
            call->bit = bits & ~rest;
            use(call, (uint32_t)__builtin_ctz(call->bit));
            return;
        }
    }
    grow(call);
}

/* A call that shares the first stream has no bit. Such a call must not mark the stream as idle, because another thread
 * still uses the stream. */
static void give_back(const gpuhal_stream_call *call)
{
    if (call->bit != 0) {
        atomic_fetch_or_explicit(&call->device->internal.idle, call->bit, memory_order_release);
    }
}

/* Orders the call after the earlier work in the caller's stream. Only the thread that owns the internal stream may
 * record its event, because this thread may be about to wait for the event. A call that shares the internal stream
 * therefore waits on the host. A caller's stream that is being captured is refused, because recording would make the
 * internal stream part of the graph. */
static vendor_code come_after(const gpuhal_stream_call *call, vendor_stream foreign, const char **out_name)
{
    vendor_code code = GPUHAL_OWN(may_record)(foreign, out_name);
    if (code != GPUHAL_VENDOR_OK) {
        return code;
    }
    if (call->bit == 0) {
        *out_name = GPUHAL_VENDOR_CALL(StreamSynchronize);
        return GPUHAL_VENDOR(StreamSynchronize)(foreign);
    }
    *out_name = GPUHAL_VENDOR_CALL(EventRecord);
    code = GPUHAL_VENDOR(EventRecord)(call->event, foreign);
    if (code == GPUHAL_VENDOR_OK) {
        *out_name = GPUHAL_VENDOR_CALL(StreamWaitEvent);
        code = GPUHAL_VENDOR(StreamWaitEvent)(call->stream, call->event, 0);
    }
    return code;
}

gpuhal_status GPUHAL_OWN(begin)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_stream_call *out_call)
{
    *out_call = (gpuhal_stream_call){.device = device};
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &out_call->scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (queue) {
        /* With a queue, the call has no event and no bit, so end() neither waits nor gives a stream back. */
        out_call->stream = queue->stream;
        return GPUHAL_OK;
    }
    take(out_call);
    const char *name = NULL;
    const vendor_code code = device->foreign ? come_after(out_call, device->foreign, &name) : GPUHAL_VENDOR_OK;
    if (code != GPUHAL_VENDOR_OK) {
        give_back(out_call);
        GPUHAL_OWN(leave)(&out_call->scope);
    }
    return GPUHAL_OWN(result)(device, name, code);
}

/* A call that shares its stream must not record the stream's event, so the call spins. */
static vendor_code wait(const gpuhal_stream_call *call, uint64_t bytes, const char **out_name)
{
    if (bytes >= LONG_BYTES && call->bit != 0) {
        const vendor_code code = GPUHAL_VENDOR(EventRecord)(call->event, call->stream);
        if (code == GPUHAL_VENDOR_OK) {
            *out_name = GPUHAL_VENDOR_CALL(EventSynchronize);
            return GPUHAL_VENDOR(EventSynchronize)(call->event);
        }
        GPUHAL_OWN(ignore)(code);
    }
    *out_name = GPUHAL_VENDOR_CALL(StreamSynchronize);
    return GPUHAL_VENDOR(StreamSynchronize)(call->stream);
}

/* Wait even after a failure, because work that was enqueued before the failure uses the caller's memory. Give the
 * stream back only after the wait; otherwise the next call on this stream would also wait for this call's work. Leave
 * the context last, because waiting and recording must happen inside the context. */
vendor_code GPUHAL_OWN(end)(gpuhal_stream_call *call, vendor_code code, uint64_t bytes, const char **in_out_name)
{
    if (call->event) {
        const char *name;
        const vendor_code waited = wait(call, bytes, &name);
        *in_out_name = code != GPUHAL_VENDOR_OK ? *in_out_name : name;
        code = code != GPUHAL_VENDOR_OK ? code : waited;
        give_back(call);
    }
    GPUHAL_OWN(leave)(&call->scope);
    return code;
}
