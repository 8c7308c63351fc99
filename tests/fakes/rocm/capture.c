/* tests/fakes/rocm/capture.c: what capturing a graph forbids. One stream at a time can be captured, and no graph comes of it:
 * work of a captured stream is refused.
 *
 * Calls that may depend on what all streams do are forbidden to the capturing thread, and to every other one when the capture is
 * a global one, unless the thread's own mode is milder; waiting for a whole device is forbidden to everybody. A forbidden call
 * spoils the capture.
 */
#include "fake.h"

#include <string.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NONE, ACTIVE, INVALIDATED };

static hipStream_t captured; /* NULL: none. Under the lock, like the three below */
static hipStreamCaptureMode captured_mode;
static pthread_t captured_by;
static bool spoiled;

static _Thread_local hipStreamCaptureMode mode;

static bool is_unsafe(const char *function)
{
    static const char *const names[] = {
        "hipMalloc",         "hipFree",       "hipHostMalloc",       "hipHostFree",    "hipHostRegister",
        "hipHostUnregister", "hipEventQuery", "hipEventSynchronize", "hipStreamQuery", "hipStreamSynchronize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the thread's mode lets it do what is unsafe. */
static bool is_allowed(void)
{
    const bool own = pthread_equal(captured_by, pthread_self());
    return mode == RELAXED || captured_mode == RELAXED || (!own && (mode == THREAD_LOCAL || captured_mode == THREAD_LOCAL));
}

hipError_t fake_capture_check(const char *function)
{
    if (!captured || (strcmp(function, "hipDeviceSynchronize") != 0 && (!is_unsafe(function) || is_allowed()))) {
        return hipSuccess;
    }
    spoiled = true;
    return hipErrorStreamCaptureUnsupported;
}

bool fake_capture_has(const fake_stream *stream)
{
    return captured && captured == stream;
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *io_mode)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const hipStreamCaptureMode before = mode;
    if (*io_mode > RELAXED) {
        return fake_end(hipErrorInvalidValue);
    }
    mode = *io_mode;
    *io_mode = before;
    return fake_end(hipSuccess);
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out_status)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *out_status = NONE;
    if (stream && fake_capture_has(stream)) {
        *out_status = spoiled ? INVALIDATED : ACTIVE;
        return fake_end(hipSuccess);
    }
    return fake_end(!stream || fake_stream_living(__func__, stream) ? hipSuccess : hipErrorContextIsDestroyed);
}

/* The NULL stream cannot be captured. */
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode how)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!stream || captured || how > RELAXED) {
        return fake_end(stream ? hipErrorIllegalState : hipErrorStreamCaptureUnsupported);
    }
    if (!fake_stream_living(__func__, stream)) {
        return fake_end(hipErrorContextIsDestroyed);
    }
    captured = stream;
    captured_mode = how;
    captured_by = pthread_self();
    spoiled = false;
    return fake_end(hipSuccess);
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out_graph)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *out_graph = NULL;
    if (!captured || captured != stream) {
        return fake_end(hipErrorIllegalState);
    }
    if (captured_mode != RELAXED && !pthread_equal(captured_by, pthread_self())) {
        return fake_end(hipErrorStreamCaptureWrongThread);
    }
    captured = NULL;
    return fake_end(spoiled ? hipErrorStreamCaptureInvalidated : hipSuccess);
}
