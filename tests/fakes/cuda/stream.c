/* tests/fakes/cuda/stream.c: the stream and event functions that differ from HIP's. */
#include "fake.h"

#include <string.h>

static bool is_legacy(CUstream stream)
{
    return !stream || stream == FAKE_LEGACY_STREAM || stream == FAKE_PER_THREAD_STREAM;
}

fake_stream *fake_stream_of(const char *function, fake_context *context, CUstream stream, bool own)
{
    (void)own; /* CUDA always requires this */
    if (is_legacy(stream)) {
        return &context->legacy;
    }
    fake_stream *known = fake_stream_known(function, stream);
    if (known && fake_capture_has(function, known)) {
        return NULL;
    }
    if (known && known->context != context) {
        fake_report_violation("%s: a stream of another context", function);
        return NULL;
    }
    return known;
}

CUresult fake_stream_refused(const char *function, CUstream stream)
{
    (void)function;
    (void)stream;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_stream_check(const char *function, CUstream stream)
{
    return fake_stream_of(function, fake_current(), stream, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_enter_stream(const char *function, CUstream stream, fake_stream **out_stream)
{
    fake_context *context;
    CUresult code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    *out_stream = fake_stream_of(function, context, stream, true);
    return *out_stream ? CUDA_SUCCESS : fake_end(CUDA_ERROR_INVALID_HANDLE);
}

fake_event *fake_event_take(const char *function, const fake_context *context, CUevent event)
{
    return fake_event_find(function, context, event);
}

void fake_event_asked(const char *function, const fake_event *event)
{
    (void)function;
    (void)event;
}

CUresult fake_event_await(fake_event *event)
{
    return fake_event_wait(event);
}

bool fake_is_unsafe(const char *function, bool *out_for_all)
{
    static const char *const names[] = {
        "cuMemAllocManaged",    "cuMemAlloc_v2",       "cuMemFree_v2",        "cuMemHostAlloc",  "cuMemFreeHost",
        "cuMemHostRegister_v2", "cuMemHostUnregister", "cuModuleLoadDataEx",  "cuModuleUnload",  "cuEventQuery",
        "cuEventSynchronize",   "cuStreamQuery",       "cuStreamSynchronize", "cuCtxSynchronize"};
    *out_for_all = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

CUresult cuCtxGetStreamPriorityRange(int *out_least, int *out_greatest)
{
    CUresult code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (out_least) {
        *out_least = 0;
    }
    if (out_greatest) {
        *out_greatest = -5;
    }
    return fake_end(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *out_context)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const fake_stream *known = is_legacy(stream) ? &context->legacy : fake_stream_known(__func__, stream);
    *out_context = known ? known->context : NULL;
    return fake_end(known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
