/* tests/fakes/stream/event.c: events. */
#include "fake.h"

fake_code VENDOR(EventCreate)(vendor_event *out_event, unsigned flags)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    *out_event = flags < 8 ? fake_event_new(context, flags) : NULL;
    return fake_end(*out_event ? FAKE_OK : FAKE_ERROR_INVALID_VALUE);
}

fake_code VENDOR(EventDestroy)(vendor_event event)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!fake_event_take(__func__, NULL, event)) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_event_free(event);
    return fake_end(FAKE_OK);
}

/* Event and stream must belong to the same context. */
fake_code VENDOR(EventRecord)(vendor_event event, vendor_stream stream)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(__func__, context, stream, true);
    if (!known) {
        return fake_end(fake_stream_refused(__func__, stream));
    }
    if (!fake_event_take(__func__, known->context, event)) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    return fake_end(fake_event_record(event, known));
}

fake_code VENDOR(EventQuery)(vendor_event event)
{
    fake_code code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!fake_event_take(__func__, NULL, event)) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_event_asked(__func__, event);
    return fake_end(fake_event_query(event));
}

fake_code VENDOR(EventSynchronize)(vendor_event event)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!fake_event_take(__func__, NULL, event)) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_event_asked(__func__, event);
    return fake_end(fake_event_await(event));
}

fake_code VENDOR(EventElapsedTime)(float *out_milliseconds, vendor_event from, vendor_event to)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!fake_event_take(__func__, NULL, from) || !fake_event_find(__func__, NULL, to)) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    return fake_end(fake_event_elapsed(from, to, out_milliseconds));
}
