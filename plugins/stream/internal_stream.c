/* stream/internal_stream.c: runs blocking calls. Each takes a stream of the opened device, waits for its work there,
 * and gives the stream back. */
#include "device.h"

/* From this size on a waiting thread sleeps: waking up costs some tens of microseconds, spinning costs a processor. */
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
    /* All slots except `close` have returned by then, so no thread is between its claim and its bit in `made`. */
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

/* Returns the number of a stream that does not exist yet and now belongs to the caller; GPUHAL_INTERNAL_STREAMS if all
 * are claimed.
 *
 * Relaxed is enough: the bit keeps others from making the same stream, and publishes nothing. The maker's stores into
 * streams[] and events[] reach other threads by `idle` (give_back, take), and the closing thread by `made`. ~claimed is
 * never 0, because bits from GPUHAL_INTERNAL_STREAMS on are never set; __builtin_ctz(0) is undefined. */
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

/* Makes another stream, or shares the first, when all are taken. Sharing is correct, only slower: a call then waits for
 * others' work too. No lock is held: if the driver hangs while it makes a stream, only the requesting thread stops. */
static void grow(gpuhal_stream_call *call)
{
    gpuhal_internal_streams *internal = &call->device->internal;
    const uint32_t number = claim(internal);
    if (number < GPUHAL_INTERNAL_STREAMS) {
        const char *name; /* a failure is not reported: another stream serves */
        const vendor_code code =
            GPUHAL_OWN(create_stream)(&internal->streams[number], &internal->events[number], &name);
        if (code == GPUHAL_VENDOR_OK) {
            /* Not set in `idle`: the stream belongs to this call until the call gives it back. */
            atomic_fetch_or_explicit(&internal->made, 1u << number, memory_order_release);
            call->bit = 1u << number;
            use(call, number);
            return;
        }
        GPUHAL_OWN(ignore)(code);
        /* The claim is returned, so that a later call tries again: the driver may have the resources then. */
        atomic_fetch_and_explicit(&internal->claimed, ~(1u << number), memory_order_relaxed);
    }
    use(call, 0);
}

/* Acquire and release on `idle`: a thread that takes a stream sees the stores of the thread that made it. The lowest
 * bit is taken, so that few streams are in use. A bit that was cleared and set again between load and exchange is
 * harmless: it still means that the stream exists and no call uses it. */
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

/* A call that shared the first stream has no bit, and must not mark as idle a stream that another thread still uses. */
static void give_back(const gpuhal_stream_call *call)
{
    if (call->bit != 0) {
        atomic_fetch_or_explicit(&call->device->internal.idle, call->bit, memory_order_release);
    }
}

/* Orders the call after the earlier work of the caller's stream. Only the thread that has taken our stream may record
 * its event, because that thread may be between its record and its wait. A call that shares the stream therefore waits
 * on the host. A stream that is being captured is refused: recording would make our stream a part of the graph. */
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
        /* No event and no bit mark a queue's stream. end() neither waits for it nor gives anything back. */
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

/* A call that shares its stream has no event, and spins. */
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

/* Work that was enqueued before a failure is waited for all the same: it uses the caller's memory. The stream is given
 * back only then: a call that took it earlier would wait for this call's work too. Leaving comes last: waiting and
 * recording are calls inside the context. */
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
