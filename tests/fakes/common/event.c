/* tests/fakes/common/event.c: events. */
#include "engine.h"

#include <stdlib.h>

fake_event *fake_event_new(fake_context *context, unsigned flags)
{
    fake_event *event = calloc(1, sizeof *event);
    if (event) {
        *event = (fake_event){.next = fake.events, .context = context, .flags = flags};
        fake.events = event;
        fake_report_get()->events++;
    }
    return event;
}

void fake_event_free(fake_event *event)
{
    fake_event **at = &fake.events;
    while (*at != event) {
        at = &(*at)->next;
    }
    *at = event->next;
    fake_point_release(event->point);
    free(event);
    fake_report_get()->events--;
}

fake_event *fake_event_find(const char *function, const fake_context *context, const fake_event *event)
{
    fake_event *known = fake.events;
    while (known && known != event) {
        known = known->next;
    }
    if (!known || (context && known->context != context)) {
        fake_report_violation("%s: %s", function,
                              known ? "an event of another context" : "no event, or a destroyed one");
        return NULL;
    }
    return known;
}

fake_code fake_event_record(fake_event *event, fake_stream *stream)
{
    static const fake_work nothing;
    fake_code code = fake_submit(stream, &nothing);
    if (code) {
        return code;
    }
    fake_point_release(event->point);
    event->point = stream->last;
    event->point->references++;
    event->stream = stream;
    return FAKE_OK;
}

fake_code fake_event_query(const fake_event *event)
{
    if (event->context->error) {
        return event->context->error;
    }
    return event->point && !event->point->done ? FAKE_ERROR_NOT_READY : FAKE_OK;
}

fake_code fake_event_wait(fake_event *event)
{
    fake_context *context = event->context;
    fake_point_wait(event->point);
    return context->error;
}

fake_code fake_event_elapsed(const fake_event *from, const fake_event *to, float *out_milliseconds)
{
    if (!from->point || !to->point || ((from->flags | to->flags) & FAKE_DISABLE_TIMING) ||
        from->context != to->context) {
        return FAKE_ERROR_INVALID_HANDLE;
    }
    if (!from->point->done || !to->point->done) {
        return FAKE_ERROR_NOT_READY;
    }
    *out_milliseconds = (float)((double)(int64_t)(to->point->time_ns - from->point->time_ns) / 1e6);
    return FAKE_OK;
}
