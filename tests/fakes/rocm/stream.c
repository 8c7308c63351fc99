/* tests/fakes/rocm/stream.c: streams and events of HIP. Each belongs to the device that was current when it was made. */
#include "fake.h"

#include <string.h>

enum { LOST_AT_MOST = 64, WAITED_AT_MOST = 64 };

static const fake_stream *lost[LOST_AT_MOST]; /* taken by a reset; under the lock, like the next */
static const fake_event *waited[WAITED_AT_MOST];

void fake_streams_lost(const fake_context *context)
{
    for (const fake_stream *stream = fake.streams; stream; stream = stream->next) {
        for (unsigned i = 0; stream->context == context && i < LOST_AT_MOST; i++) {
            if (!lost[i]) {
                lost[i] = stream;
                break;
            }
        }
    }
}

static bool is_lost(const fake_stream *stream)
{
    bool found = false;
    for (unsigned i = 0; i < LOST_AT_MOST; i++) {
        found = found || lost[i] == stream;
    }
    return found;
}

fake_stream *fake_stream_living(const char *function, hipStream_t stream)
{
    if (is_lost(stream)) {
        if (fake_hip_major() >= 7 && strcmp(function, "hipStreamGetDevice") != 0) {
            fake_report_violation("%s: a stream that a reset took, which the runtime would follow", function);
        }
        return NULL;
    }
    fake_stream *known = fake_stream_known(function, stream);
    if (fake_capture_has(known)) {
        fake_report_violation("%s: a stream that is captured, and there are no graphs here", function);
        return NULL;
    }
    return known;
}

fake_stream *fake_stream_of(const char *function, fake_context *context, hipStream_t stream, bool own)
{
    if (!stream || stream == FAKE_PER_THREAD_STREAM) {
        return &context->legacy;
    }
    fake_stream *known = fake_stream_living(function, stream);
    if (known && own && known->context != context) {
        fake_report_violation("%s: a stream of device %u while %u is current", function, known->context->device, context->device);
        return NULL;
    }
    return known;
}

static hipError_t stream_create(const char *function, hipStream_t *out_stream, unsigned flags, int priority)
{
    fake_context *context;
    hipError_t code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    *out_stream = flags <= hipStreamNonBlocking ? fake_stream_new(context, flags, priority) : NULL;
    for (unsigned i = 0; i < LOST_AT_MOST; i++) {
        lost[i] = lost[i] == *out_stream ? NULL : lost[i]; /* the place is taken again */
    }
    return fake_end(*out_stream ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *out_stream, unsigned int flags)
{
    return stream_create(__func__, out_stream, flags, 0);
}

hipError_t hipStreamCreateWithPriority(hipStream_t *out_stream, unsigned int flags, int priority)
{
    return stream_create(__func__, out_stream, flags, priority);
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *least = 1;
    *greatest = -1;
    return fake_end(hipSuccess);
}

/* Waits for the work, as the real one does. */
hipError_t hipStreamDestroy(hipStream_t stream)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_living(__func__, stream);
    if (!known) {
        return fake_end(hipErrorContextIsDestroyed);
    }
    fake_stream_free(known);
    return fake_end(hipSuccess);
}

/* Begins a call about a stream of any device. */
static hipError_t enter_stream(const char *function, hipStream_t stream, fake_stream **out_stream)
{
    fake_context *context = NULL;
    hipError_t code = stream ? fake_enter(function) : fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    *out_stream = stream ? fake_stream_living(function, stream) : &context->legacy;
    return *out_stream ? hipSuccess : fake_end(hipErrorContextIsDestroyed);
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    fake_stream *known;
    hipError_t code = enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    fake_context *context = known->context;
    fake_stream_drain(known);
    return fake_end(context->error);
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    fake_stream *known;
    hipError_t code = enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    return fake_end(fake_stream_is_idle(known) ? known->context->error : hipErrorNotReady);
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
    fake_stream *known;
    hipError_t code = enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    *device = (hipDevice_t)known->context->device;
    return fake_end(hipSuccess);
}

int hipGetStreamDeviceId(hipStream_t stream)
{
    fake_stream *known;
    if (enter_stream(__func__, stream, &known)) {
        return -1;
    }
    int device = (int)known->context->device;
    (void)fake_end(hipSuccess);
    return device;
}

hipError_t hipEventCreateWithFlags(hipEvent_t *out_event, unsigned flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    *out_event = flags < 8 ? fake_event_new(context, flags) : NULL;
    return fake_end(*out_event ? hipSuccess : hipErrorInvalidValue);
}

/* Whoever waits for an event keeps a lock of it, for which everybody else waits who is about to use it. */
static void lock_event(const fake_event *event)
{
    for (unsigned i = 0; i < WAITED_AT_MOST; i++) {
        while (waited[i] == event) {
            pthread_cond_wait(&fake.finished, &fake.lock);
        }
    }
}

static hipError_t wait_for_event(fake_event *event)
{
    unsigned place = 0;
    while (waited[place]) {
        place++;
    }
    waited[place] = event;
    const hipError_t code = fake_event_wait(event);
    waited[place] = NULL;
    pthread_cond_broadcast(&fake.finished);
    return code;
}

/* Begins a call about an event of any device. */
static hipError_t enter_event(const char *function, hipEvent_t event)
{
    hipError_t code = fake_enter(function);
    if (code) {
        return code;
    }
    if (!fake_event_find(function, NULL, event)) {
        return fake_end(hipErrorInvalidHandle);
    }
    lock_event(event);
    return hipSuccess;
}

/* Asking for an event looks at the stream in which it was recorded. */
static void look_at_stream(const char *function, const fake_event *event)
{
    bool found = !event->stream || event->stream == &event->context->legacy;
    for (const fake_stream *stream = fake.streams; stream && !found; stream = stream->next) {
        found = stream == event->stream;
    }
    if (!found) {
        fake_report_violation("%s: the stream in which the event was recorded is destroyed", function);
    }
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    hipError_t code = enter_event(__func__, event);
    if (code) {
        return code;
    }
    fake_event_free(event);
    return fake_end(hipSuccess);
}

/* Event and stream have to be of one device. */
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(__func__, context, stream, true);
    if (!known || !fake_event_find(__func__, known->context, event)) {
        return fake_end(known || !is_lost(stream) ? hipErrorInvalidHandle : hipErrorContextIsDestroyed);
    }
    lock_event(event);
    return fake_end(fake_event_record(event, known));
}

hipError_t hipEventQuery(hipEvent_t event)
{
    hipError_t code = enter_event(__func__, event);
    if (code) {
        return code;
    }
    look_at_stream(__func__, event);
    return fake_end(fake_event_query(event));
}

/* HIP 7 sleeps only for events that were made with hipEventBlockingSync and nothing else. */
hipError_t hipEventSynchronize(hipEvent_t event)
{
    hipError_t code = enter_event(__func__, event);
    if (code) {
        return code;
    }
    if (fake_hip_major() >= 7 && (event->flags & hipEventBlockingSync) && event->flags != hipEventBlockingSync) {
        fake_report_violation("%s: an event that was made to sleep for, and spins for its other flags", __func__);
    }
    look_at_stream(__func__, event);
    return fake_end(wait_for_event(event));
}

/* A stream may wait for an event of any device. One that was never recorded is done. */
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    fake_stream *known;
    hipError_t code = enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    if (flags || !fake_event_find(__func__, NULL, event)) {
        return fake_end(flags ? hipErrorInvalidValue : hipErrorInvalidHandle);
    }
    lock_event(event);
    return fake_end(fake_submit(known, &(fake_work){.after = event->point}));
}

hipError_t hipEventElapsedTime(float *out_milliseconds, hipEvent_t from, hipEvent_t to)
{
    hipError_t code = enter_event(__func__, from);
    if (code) {
        return code;
    }
    if (!fake_event_find(__func__, NULL, to)) {
        return fake_end(hipErrorInvalidHandle);
    }
    return fake_end(fake_event_elapsed(from, to, out_milliseconds));
}
