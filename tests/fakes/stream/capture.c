/* tests/fakes/stream/capture.c: calls that are forbidden while a graph is captured. Only one stream at a time can be
 * captured. A capture makes no graph: the fake refuses all work in a captured stream.
 *
 * Calls that may depend on the work of all streams are forbidden to the capturing thread. In a global capture they are
 * also forbidden to every other thread. A thread's own mode may allow them: relaxed in any thread, thread-local in a
 * thread that does not capture. A relaxed capture forbids none of them. The exception are calls that no mode allows
 * (fake_is_unsafe()). A forbidden call invalidates the capture. */
#include "fake.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NONE, ACTIVE, INVALIDATED };

static const fake_stream *captured; /* NULL if no stream is captured; these four variables require the lock */
static unsigned captured_mode;
static pthread_t captured_by;
static bool spoiled;

static _Thread_local unsigned mode;

static bool is_allowed(void)
{
    const bool own = pthread_equal(captured_by, pthread_self());
    return mode == RELAXED || captured_mode == RELAXED ||
           (!own && (mode == THREAD_LOCAL || captured_mode == THREAD_LOCAL));
}

fake_code fake_capture_check(const char *function)
{
    bool for_all = false;
    if (!captured || !fake_is_unsafe(function, &for_all) || (!for_all && is_allowed())) {
        return FAKE_OK;
    }
    spoiled = true;
    return FAKE_ERROR_CAPTURE_UNSUPPORTED;
}

bool fake_capture_has(const char *function, const fake_stream *stream)
{
    const bool has = captured && captured == stream;
    if (has) {
        fake_report_violation("%s: a stream that is captured, and a capture makes no graph here", function);
    }
    return has;
}

fake_code VENDOR(ThreadExchangeStreamCaptureMode)(unsigned *io_mode)
{
    fake_code code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (*io_mode > RELAXED) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    const unsigned before = mode;
    mode = *io_mode;
    *io_mode = before;
    return fake_end(FAKE_OK);
}

fake_code VENDOR(StreamIsCapturing)(vendor_stream stream, unsigned *out_status)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    *out_status = NONE;
    if (captured && captured == stream) {
        *out_status = spoiled ? INVALIDATED : ACTIVE;
        return fake_end(FAKE_OK);
    }
    return fake_end(fake_stream_check(__func__, stream));
}

/* The NULL stream cannot be captured. */
fake_code VENDOR(StreamBeginCapture)(vendor_stream stream, unsigned how)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!stream || stream == FAKE_LEGACY_STREAM || stream == FAKE_PER_THREAD_STREAM) {
        return fake_end(FAKE_ERROR_CAPTURE_UNSUPPORTED);
    }
    code = captured || how > RELAXED ? FAKE_ERROR_ILLEGAL_STATE : fake_stream_check(__func__, stream);
    if (!code) {
        captured = stream;
        captured_mode = how;
        captured_by = pthread_self();
        spoiled = false;
    }
    return fake_end(code);
}

fake_code VENDOR(StreamEndCapture)(vendor_stream stream, vendor_graph *out_graph)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    *out_graph = NULL;
    if (!captured || captured != stream) {
        return fake_end(FAKE_ERROR_NOT_CAPTURED);
    }
    if (captured_mode != RELAXED && !pthread_equal(captured_by, pthread_self())) {
        return fake_end(FAKE_ERROR_CAPTURE_WRONG_THREAD);
    }
    captured = NULL;
    return fake_end(spoiled ? FAKE_ERROR_CAPTURE_INVALIDATED : FAKE_OK);
}
