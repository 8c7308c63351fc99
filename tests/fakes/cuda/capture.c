/* tests/fakes/cuda/capture.c: what capturing a graph forbids. One stream at a time can be captured, and no graph comes of it:
 * work of a captured stream is refused.
 *
 * Calls that may depend on what all streams do are forbidden to the capturing thread, and to every other one when the capture
 * is a global one, unless the thread's own mode is milder. A forbidden call spoils the capture.
 */
#include "fake.h"

#include <string.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NONE, ACTIVE, INVALIDATED };

static CUstream captured; /* NULL: none. Under the lock, like the three below */
static CUstreamCaptureMode captured_mode;
static pthread_t captured_by;
static bool spoiled;

static _Thread_local CUstreamCaptureMode mode;

static bool is_unsafe(const char *function)
{
    static const char *const names[] = {"cuMemAlloc_v2",        "cuMemFree_v2",        "cuMemHostAlloc",      "cuMemFreeHost",
                                        "cuMemHostRegister_v2", "cuMemHostUnregister", "cuModuleLoadDataEx",  "cuModuleUnload",
                                        "cuEventQuery",         "cuEventSynchronize",  "cuStreamSynchronize", "cuStreamQuery",
                                        "cuCtxSynchronize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

CUresult fake_capture_check(const char *function)
{
    if (!captured || mode == RELAXED || captured_mode == RELAXED || !is_unsafe(function)) {
        return CUDA_SUCCESS;
    }
    if (!pthread_equal(captured_by, pthread_self()) && (mode == THREAD_LOCAL || captured_mode == THREAD_LOCAL)) {
        return CUDA_SUCCESS;
    }
    spoiled = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool fake_capture_has(const fake_stream *stream)
{
    return captured && captured == stream;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *io_mode)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    if (*io_mode > RELAXED) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    const CUstreamCaptureMode before = mode;
    mode = *io_mode;
    *io_mode = before;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out_status)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (fake_capture_has(stream)) {
        *out_status = spoiled ? INVALIDATED : ACTIVE;
        return fake_leave(CUDA_SUCCESS);
    }
    *out_status = NONE;
    return fake_leave(fake_stream_find(__func__, context, stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* The NULL stream cannot be captured. */
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode how)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (captured || how > RELAXED) {
        return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known || known == &context->legacy) {
        return fake_leave(known ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_HANDLE);
    }
    captured = known;
    captured_mode = how;
    captured_by = pthread_self();
    spoiled = false;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out_graph)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    *out_graph = NULL;
    if (!fake_capture_has(stream)) {
        return fake_leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    captured = NULL;
    return fake_leave(spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
}
