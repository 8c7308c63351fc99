/* tests/fakes/stream/stream.c: streams. */
#include "fake.h"

static fake_code stream_create(const char *function, vendor_stream *out_stream, unsigned flags, int priority)
{
    fake_context *context;
    fake_code code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    *out_stream = flags <= FAKE_NON_BLOCKING ? fake_stream_new(context, flags, priority) : NULL;
    return fake_end(*out_stream ? FAKE_OK : FAKE_ERROR_INVALID_VALUE);
}

fake_code VENDOR(StreamCreate)(vendor_stream *out_stream, unsigned flags)
{
    return stream_create(__func__, out_stream, flags, 0);
}

fake_code VENDOR(StreamCreateWithPriority)(vendor_stream *out_stream, unsigned flags, int priority)
{
    return stream_create(__func__, out_stream, flags, priority);
}

/* CUDA's function returns immediately while the work continues. The fake waits for the work, as HIP's function does, so
 * the call hangs if the work hangs. */
fake_code VENDOR(StreamDestroy)(vendor_stream stream)
{
    fake_stream *known;
    fake_code code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    if (known == &known->context->legacy) {
        fake_report_violation("%s: the NULL stream", __func__);
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_stream_free(known);
    return fake_end(FAKE_OK);
}

fake_code VENDOR(StreamSynchronize)(vendor_stream stream)
{
    fake_stream *known;
    fake_code code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    const fake_context *context = known->context;
    fake_stream_drain(known);
    return fake_end(context->error);
}

fake_code VENDOR(StreamQuery)(vendor_stream stream)
{
    fake_stream *known;
    fake_code code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    return fake_end(fake_stream_is_idle(known) ? known->context->error : FAKE_ERROR_NOT_READY);
}

/* A stream may wait for an event of any context. An event that was never recorded counts as completed. */
fake_code VENDOR(StreamWaitEvent)(vendor_stream stream, vendor_event event, unsigned flags)
{
    fake_stream *known;
    fake_code code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    if (flags || !fake_event_take(__func__, NULL, event)) {
        return fake_end(flags ? FAKE_ERROR_INVALID_VALUE : FAKE_ERROR_INVALID_HANDLE);
    }
    return fake_end(fake_submit(known, &(fake_work){.after = event->point}));
}

fake_code VENDOR(DeviceSynchronize)(void)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_context_drain(context);
    return fake_end(context->error);
}
