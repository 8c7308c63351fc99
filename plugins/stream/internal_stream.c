/* stream/internal_stream.c: blocking calls: each takes a stream of the opened device, waits for its own work there,
 * and gives it back. */
#include "device.h"

/* From here on a waiting thread sleeps: waking up costs some tens of microseconds, spinning costs a processor. */
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
    /* Every slot but `close` is over by then, so no thread is between its claim and its bit in `made`. */
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

/* The number of a stream that does not exist yet, which is the caller's from then on; GPUHAL_INTERNAL_STREAMS when all
 * are claimed.
 *
 * Relaxed is enough: the bit keeps others from making the same stream, and publishes nothing. What the maker stores in
 * streams[] and events[] reaches other threads by `idle` (give_back, take), and the closing thread by `made`. ~claimed
 * is never 0, for which __builtin_ctz is undefined: bits from GPUHAL_INTERNAL_STREAMS on are never set. */
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

/* All streams are taken: makes another one, or shares the first. Sharing is right, only slower: a call then waits for
 * others' work too. No lock is held: where the driver hangs while it makes a stream, only the thread that asked for it
 * stands still. */
static void grow(gpuhal_stream_call *call)
{
    gpuhal_internal_streams *internal = &call->device->internal;
    const uint32_t number = claim(internal);
    if (number < GPUHAL_INTERNAL_STREAMS) {
        const char *name; /* a failure is not reported: another stream serves */
        const vendor_code code =
            GPUHAL_OWN(create_stream)(&internal->streams[number], &internal->events[number], &name);
        if (code == GPUHAL_VENDOR_OK) {
            /* Not into `idle`: the stream is this call's until it gives it back. */
            atomic_fetch_or_explicit(&internal->made, 1u << number, memory_order_release);
            call->bit = 1u << number;
            use(call, number);
            return;
        }
        GPUHAL_OWN(ignore)(code);
        /* Returned, so that a later call tries again: what the driver lacked now may be there then. */
        atomic_fetch_and_explicit(&internal->claimed, ~(1u << number), memory_order_relaxed);
    }
    use(call, 0);
}

/* Acquire and release on `idle`: a thread that takes a stream sees what the thread that made it has stored. The lowest
 * bit is taken, so that few streams are in use. A bit that went and came back between load and exchange is no danger:
 * it means the same again, that the stream exists and no call uses it. */
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

/* A call that shared the first stream has no bit, and must not make idle what another thread still uses. */
static void give_back(const gpuhal_stream_call *call)
{
    if (call->bit != 0) {
        atomic_fetch_or_explicit(&call->device->internal.idle, call->bit, memory_order_release);
    }
}

/* Orders the call after what the caller's stream has been given. The event belongs to the thread that has taken the
 * stream alone, which may be between its own record of it and its wait: a call that shares the stream must not record
 * it, and waits on the host. A stream that is being captured is refused: recording would make ours a part of the
 * graph. */
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
        /* No event and no bit: by that end() knows a queue's stream, for which it neither waits nor gives anything
         * back. */
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

/* A call that shares its stream has no event of its own, and spins. */
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

/* What was enqueued before a failure is waited for all the same: it uses the caller's memory. The stream is given back
 * only then: a call that took it earlier would wait for this one's work too. Leaving comes last: waiting and recording
 * are calls inside the context. */
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
