/* tests/fakes/common/copy.c: copies and fills. Every copy and fill is enqueued.
 *
 * Pageable host memory is staged, as in the real drivers. When the call returns, a pageable source has been read, and a
 * pageable target has been filled. A call that copies from host memory to host memory, or more than 64 KiB from
 * pageable memory, also waits until the copy has ended. Page-locked memory is accessed when the stream executes the
 * copy. If the link between two devices is `silent` and access is enabled, a copy between them moves no bytes. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

static void run_copy(fake_work *work)
{
    for (size_t row = 0; row < work->rows; row++) {
        memmove(work->to + row * work->to_pitch, work->from + row * work->from_pitch, work->bytes);
    }
}

static void run_fill(fake_work *work)
{
    size_t done = work->value_bytes;
    memcpy(work->to, &work->value, done);
    while (done < work->bytes) {
        const size_t more = done < work->bytes - done ? done : work->bytes - done;
        memcpy(work->to + done, work->to, more);
        done += more;
    }
}

static bool goes_nowhere(const fake_place *to, const fake_place *from)
{
    if (!to->device || !from->device || to->ordinal == from->ordinal) {
        return false;
    }
    unsigned enabled = 0;
    for (fake_context *one = fake.contexts; one; one = one->next) {
        enabled |= one->device == to->ordinal ? one->peers >> from->ordinal & 1 : 0;
        enabled |= one->device == from->ordinal ? one->peers >> to->ordinal & 1 : 0;
    }
    return enabled &&
           fake_script_get()->links[fake.devices[to->ordinal].physical][fake.devices[from->ordinal].physical].silent;
}

enum { TAKEN_AT_ONCE = 64 << 10 };

/* Copies pageable memory now, into memory that the work owns. */
static bool stage(fake_work *work, const fake_move *what)
{
    unsigned char *bytes = malloc(what->bytes * what->rows);
    if (!bytes) {
        return false;
    }
    for (size_t row = 0; row < what->rows; row++) {
        memcpy(bytes + row * what->bytes, work->from + row * what->from_pitch, what->bytes);
    }
    work->from = work->owned = bytes;
    work->from_pitch = what->bytes;
    return true;
}

static size_t span(size_t pitch, const fake_move *what)
{
    return pitch * (what->rows - 1) + what->bytes;
}

fake_code fake_submit_move(const char *function, fake_context *context, fake_stream *stream, const fake_move *what)
{
    fake_place to, from;
    if (!what->bytes || !what->rows) {
        return FAKE_OK;
    }
    fake_code code = fake_place_find(function, context, what->to, span(what->to_pitch, what), what->to_host, &to);
    code = code ? code
                : fake_place_find(function, context, what->from, span(what->from_pitch, what), what->from_host, &from);
    if (code) {
        return code;
    }
    fake_work work = {.run = goes_nowhere(&to, &from) ? NULL : run_copy,
                      .to = to.bytes,
                      .from = from.bytes,
                      .to_pitch = what->to_pitch,
                      .from_pitch = what->from_pitch,
                      .bytes = what->bytes,
                      .rows = what->rows};
    if (from.pageable && !stage(&work, what)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    code = fake_submit(stream, &work);
    if (code) {
        free(work.owned);
        return code;
    }
    const bool host_to_host = !to.device && !from.device;
    if (to.pageable || host_to_host || (from.pageable && what->bytes * what->rows > TAKEN_AT_ONCE)) {
        fake_stream_drain(stream);
        return context->error;
    }
    return FAKE_OK;
}

fake_code fake_submit_fill(const char *function, fake_context *context, fake_stream *stream, uintptr_t to,
                           unsigned value, unsigned value_bytes, size_t count)
{
    fake_place place;
    if (count > SIZE_MAX / value_bytes || to % value_bytes) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    if (!count) {
        return FAKE_OK;
    }
    fake_code code = fake_place_find(function, context, to, count * value_bytes, false, &place);
    return code ? code
                : fake_submit(stream, &(fake_work){.run = run_fill,
                                                   .to = place.bytes,
                                                   .bytes = count * value_bytes,
                                                   .rows = 1,
                                                   .value = value,
                                                   .value_bytes = value_bytes});
}
