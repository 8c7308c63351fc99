/* tests/fakes/cuda/stream.c: streams of the driver API. */
#include "fake.h"

CUstream fake_stream_find(const char *function, CUcontext context, CUstream stream)
{
    if (!stream || stream == FAKE_LEGACY_STREAM || stream == FAKE_PER_THREAD_STREAM) {
        return &context->legacy;
    }
    CUstream known = fake_stream_known(function, stream);
    if (fake_capture_has(known)) {
        fake_report_violation("%s: a stream that is captured, and there are no graphs here", function);
        return NULL;
    }
    if (known && known->context != context) {
        fake_report_violation("%s: a stream of another context", function);
        return NULL;
    }
    return known;
}

static CUresult stream_create(const char *function, CUstream *out_stream, unsigned flags, int priority)
{
    CUcontext context;
    CUresult code = fake_enter(function, &context);
    if (code) {
        return code;
    }
    *out_stream = flags <= CU_STREAM_NON_BLOCKING ? fake_stream_new(context, flags, priority) : NULL;
    return fake_leave(*out_stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuStreamCreate(CUstream *out_stream, unsigned flags)
{
    return stream_create(__func__, out_stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out_stream, unsigned flags, int priority)
{
    return stream_create(__func__, out_stream, flags, priority);
}

/* The real one returns at once and lets the work go on; here the work is over when it returns, or hangs with it. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!stream || fake_stream_find(__func__, context, stream) != stream) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    fake_stream_free(stream);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    fake_stream_drain(known);
    return fake_leave(context->error);
}

CUresult cuStreamQuery(CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_stream_is_idle(known) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuCtxSynchronize(void)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    fake_context_drain(context);
    return fake_leave(context->error);
}

CUresult cuCtxGetStreamPriorityRange(int *out_least, int *out_greatest)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (out_least) {
        *out_least = 0;
    }
    if (out_greatest) {
        *out_greatest = -5;
    }
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *out_context)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!stream || stream == FAKE_LEGACY_STREAM || stream == FAKE_PER_THREAD_STREAM) {
        *out_context = context;
        return fake_leave(CUDA_SUCCESS);
    }
    CUstream known = fake_stream_known(__func__, stream);
    if (!known) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    *out_context = known->context;
    return fake_leave(CUDA_SUCCESS);
}
