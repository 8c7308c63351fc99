/* tests/fakes/rocm/copy.c: HIP's copies, and the limits of a single call. Every copy is enqueued; common/copy.c
 * describes the rules.
 *
 * A copy may use a stream of a device that is not current, as HIP's guide says; a fill may not. Copies before 6.2,
 * fills before 6.3, and rectangles in every version must stay within one piece of physical memory (hip_memory.cpp,
 * ihipMemcpy_validate, ihipMemset_validate and ihipMemcpyDtoDValidate). */
#include "fake.h"

#include <limits.h>

enum {
    COPIES_CROSS_PIECES_SINCE = 60200000,
    FILLS_CROSS_PIECES_SINCE = 60300000,
    RECTANGLES_CROSS_PIECES_SINCE = INT_MAX
};

static bool fits(uintptr_t address, size_t bytes, int since)
{
    const fake_region *region = fake_region_find(address, 1);
    uintptr_t start;
    size_t size;
    return fake_script_get()->driver_version >= since || !region || region->kind != FAKE_RANGE ||
           !fake_range_piece(region, address, &start, &size) || bytes <= size - (address - start);
}

bool fake_fill_fits(uintptr_t address, size_t bytes)
{
    return fits(address, bytes, FILLS_CROSS_PIECES_SINCE);
}

bool fake_copy_fits(uintptr_t address, size_t bytes)
{
    return fits(address, bytes, COPIES_CROSS_PIECES_SINCE);
}

static hipError_t copy(const char *function, hipStream_t stream, fake_move what, hipMemcpyKind kind, int since)
{
    fake_context *context;
    hipError_t code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(function, context, stream, false);
    if (!known || kind > hipMemcpyDefault) {
        return fake_end(known ? hipErrorInvalidMemcpyDirection : hipErrorContextIsDestroyed);
    }
    if (known->context->error) {
        return fake_end(known->context->error);
    }
    const size_t rows_before = what.rows ? what.rows - 1 : 0;
    if (!fits(what.to, what.to_pitch * rows_before + what.bytes, since) ||
        !fits(what.from, what.from_pitch * rows_before + what.bytes, since)) {
        return fake_end(hipErrorInvalidValue);
    }
    what.to_host = kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost || kind == hipMemcpyDefault;
    what.from_host = kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice || kind == hipMemcpyDefault;
    return fake_end(fake_submit_move(function, known->context, known, &what));
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    const fake_move what = {.to = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes, .rows = 1};
    return copy(__func__, stream, what, kind, COPIES_CROSS_PIECES_SINCE);
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream)
{
    const fake_move what = {.to = (uintptr_t)to,
                            .from = (uintptr_t)from,
                            .to_pitch = to_pitch,
                            .from_pitch = from_pitch,
                            .bytes = width,
                            .rows = height};
    if (to_pitch < width || from_pitch < width || to_pitch > FAKE_LONGEST_PITCH || from_pitch > FAKE_LONGEST_PITCH) {
        hipError_t code = fake_enter(__func__);
        fake_report_violation("%s: a pitch below the width or above the largest", __func__);
        return code ? code : fake_end(hipErrorInvalidPitchValue);
    }
    return copy(__func__, stream, what, kind, RECTANGLES_CROSS_PIECES_SINCE);
}

/* The addresses must belong to the given devices. */
hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const fake_region *target = fake_region_find((uintptr_t)to, bytes),
                      *source = fake_region_find((uintptr_t)from, bytes);
    fake_stream *known = fake_stream_of(__func__, context, stream, false);
    if (!fake_device_at(to_device, &code) || !fake_device_at(from_device, &code) || !known) {
        return fake_end(known ? code : hipErrorContextIsDestroyed);
    }
    if (!target || !source || fake_region_device(target, (uintptr_t)to) != (unsigned)to_device ||
        fake_region_device(source, (uintptr_t)from) != (unsigned)from_device) {
        fake_report_violation("%s: memory of another device than the one that is named", __func__);
        return fake_end(hipErrorInvalidValue);
    }
    if (!fits((uintptr_t)to, bytes, COPIES_CROSS_PIECES_SINCE) ||
        !fits((uintptr_t)from, bytes, COPIES_CROSS_PIECES_SINCE)) {
        return fake_end(hipErrorInvalidValue);
    }
    const fake_context *there = fake.devices[to_device].primary, *here = fake.devices[from_device].primary;
    code = there && there->error ? there->error : here ? here->error : hipSuccess;
    const fake_move what = {.to = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes, .rows = 1};
    return fake_end(code ? code : fake_submit_move(__func__, known->context, known, &what));
}
