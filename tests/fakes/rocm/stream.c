/* tests/fakes/rocm/stream.c: the stream and event functions that differ from CUDA's. A stream or event belongs to
 * the device that was current at its creation. */
#include "fake.h"

#include <string.h>

enum { LOST_AT_MOST = 64, WAITED_AT_MOST = 64 };

static const fake_stream *lost[LOST_AT_MOST]; /* destroyed by a reset; requires the lock, like `waited` */
static const fake_event *waited[WAITED_AT_MOST];

void fake_streams_lost(const fake_context *context)
{
    unsigned place = 0;
    for (const fake_stream *stream = fake.streams; stream; stream = stream->next) {
        while (place < LOST_AT_MOST && lost[place]) {
            place++;
        }
        if (stream->context == context && place < LOST_AT_MOST) {
            lost[place] = stream;
        }
    }
}

/* A newer stream at the same address is not lost. */
static bool is_lost(const fake_stream *stream)
{
    bool found = false;
    for (unsigned i = 0; i < LOST_AT_MOST; i++) {
        found = found || lost[i] == stream;
    }
    for (const fake_stream *living = fake.streams; living && found; living = living->next) {
        found = living != stream;
    }
    return found;
}

/* A stream that a reset destroyed is not found. Before HIP 7 the program may still pass it. Since HIP 7 the runtime
 * dereferences it, so this is a violation, except in hipStreamGetDevice(). */
static fake_stream *living(const char *function, hipStream_t stream)
{
    if (is_lost(stream)) {
        if (fake_hip_major() >= 7 && strcmp(function, "hipStreamGetDevice") != 0) {
            fake_report_violation("%s: a stream that a reset took, which the runtime would follow", function);
        }
        return NULL;
    }
    fake_stream *known = fake_stream_known(function, stream);
    return known && !fake_capture_has(function, known) ? known : NULL;
}

fake_stream *fake_stream_of(const char *function, fake_context *context, hipStream_t stream, bool own)
{
    if (!stream || stream == FAKE_PER_THREAD_STREAM) {
        return &context->legacy;
    }
    fake_stream *known = living(function, stream);
    if (known && own && known->context != context) {
        fake_report_violation("%s: a stream of device %u while %u is current", function, known->context->device,
                              context->device);
        return NULL;
    }
    return known;
}

/* A call that requires a stream of the current device returns the code for an invalid stream if the stream belongs to
 * another device. hipEventRecord() and kernel launches return another code; a launch does not call this function. */
hipError_t fake_stream_refused(const char *function, hipStream_t stream)
{
    return strcmp(function, "hipEventRecord") == 0 && !is_lost(stream) ? hipErrorInvalidHandle
                                                                       : hipErrorContextIsDestroyed;
}

hipError_t fake_stream_check(const char *function, hipStream_t stream)
{
    return !stream || living(function, stream) ? hipSuccess : hipErrorContextIsDestroyed;
}

hipError_t fake_enter_stream(const char *function, hipStream_t stream, fake_stream **out_stream)
{
    fake_context *context = NULL;
    hipError_t code = stream ? fake_enter(function) : fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    *out_stream = stream ? living(function, stream) : &context->legacy;
    return *out_stream ? hipSuccess : fake_end(hipErrorContextIsDestroyed);
}

bool fake_is_unsafe(const char *function, bool *out_for_all)
{
    static const char *const names[] = {"hipMallocManaged",  "hipMalloc",           "hipFree",
                                        "hipHostMalloc",     "hipHostFree",         "hipHostRegister",
                                        "hipHostUnregister", "hipEventQuery",       "hipEventSynchronize",
                                        "hipStreamQuery",    "hipStreamSynchronize"};
    *out_for_all = strcmp(function, "hipDeviceSynchronize") == 0; /* waits for a whole device */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return *out_for_all;
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

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
    fake_stream *known;
    hipError_t code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    *device = (hipDevice_t)known->context->device;
    return fake_end(hipSuccess);
}

int hipGetStreamDeviceId(hipStream_t stream)
{
    fake_stream *known;
    if (fake_enter_stream(__func__, stream, &known)) {
        return -1;
    }
    int device = (int)known->context->device;
    (void)fake_end(hipSuccess);
    return device;
}

/* A thread that waits for an event holds the event's lock. Every other call with the event waits for the lock. */
fake_event *fake_event_take(const char *function, const fake_context *context, hipEvent_t event)
{
    fake_event *known = fake_event_find(function, context, event);
    for (unsigned i = 0; known && i < WAITED_AT_MOST; i++) {
        while (waited[i] == event) {
            pthread_cond_wait(&fake.finished, &fake.lock);
        }
    }
    return known;
}

hipError_t fake_event_await(fake_event *event)
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

/* A query of an event accesses the stream that recorded the event. In HIP 7 a wait sleeps only if the event's flags are
 * exactly hipEventBlockingSync. */
void fake_event_asked(const char *function, const fake_event *event)
{
    const bool blocking = (event->flags & hipEventBlockingSync) && event->flags != hipEventBlockingSync;
    if (fake_hip_major() >= 7 && blocking && strcmp(function, "hipEventSynchronize") == 0) {
        fake_report_violation("%s: an event that was made to sleep for, and spins for its other flags", function);
    }
    bool found = !event->stream || event->stream == &event->context->legacy;
    for (const fake_stream *stream = fake.streams; stream && !found; stream = stream->next) {
        found = stream == event->stream;
    }
    if (!found) {
        fake_report_violation("%s: the stream in which the event was recorded is destroyed", function);
    }
}
