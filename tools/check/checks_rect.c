/* checks_rect.c: copies of two- and three-dimensional rectangles, between device memory and with host memory on either
 * side. */
#include "area.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A test case in units of the alignment: the extent, and for both sides the offset, the row pitch, and the gap between
 * the rows of a slice and the next slice. */
typedef struct shape {
    uint64_t width, rows, slices;
    uint64_t to_offset, to_pitch, to_extra;
    uint64_t from_offset, from_pitch, from_extra;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 0, 1, 0, 0, 1, 0},           /* a single byte */
    {64, 8, 1, 0, 64, 0, 0, 64, 0},        /* without gaps */
    {5, 7, 1, 0, 16, 0, 0, 32, 0},         /* different pitches */
    {5, 7, 1, 3, 5, 0, 1, 9, 0},           /* odd offsets, one side without gaps */
    {31, 1, 1, 7, 100, 0, 9, 31, 0},       /* one row */
    {1, 40, 1, 2, 3, 0, 5, 2, 0},          /* one column */
    {7, 5, 4, 0, 8, 0, 0, 16, 0},          /* three dimensions */
    {7, 5, 4, 3, 9, 13, 11, 7, 5},         /* slices with a gap that is not a multiple of the row */
    {16, 4, 3, 1, 16, 16, 2, 16, 64},      /* rows without gaps, slices with gaps */
    {100, 6, 2, 50, 128, 7, 25, 101, 300}, /* larger than a cache line */
    {3, 1, 9, 4, 5, 6, 7, 3, 0},           /* slices of one row */
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct side {
    uint64_t offset, row_pitch, slice_pitch;
} side;

static uint64_t span(const side *place, const uint64_t extent[3])
{
    return (extent[2] - 1) * place->slice_pitch + (extent[1] - 1) * place->row_pitch + extent[0];
}

static void place_both(const shape *one, uint64_t unit, side *out_to, side *out_from, uint64_t extent[3])
{
    extent[0] = one->width * unit;
    extent[1] = one->rows;
    extent[2] = one->slices;
    *out_to = (side){one->to_offset * unit, one->to_pitch * unit, (one->to_pitch * one->rows + one->to_extra) * unit};
    *out_from =
        (side){one->from_offset * unit, one->from_pitch * unit, (one->from_pitch * one->rows + one->from_extra) * unit};
}

static void copy_rows(unsigned char *to, const side *to_place, const unsigned char *from, const side *from_place,
                      const uint64_t extent[3])
{
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            memcpy(to + to_place->offset + z * to_place->slice_pitch + y * to_place->row_pitch,
                   from + from_place->offset + z * from_place->slice_pitch + y * from_place->row_pitch,
                   (size_t)extent[0]);
        }
    }
}

static uint64_t area_bytes(const gpuhal_context *context)
{
    const uint64_t usual = gpuhal_area_usual(context), needed = 2048 * gpuhal_copy_unit(context);
    return usual > needed ? usual : needed;
}

/* Exactly one of memory and host is given. */
static gpuhal_plugin_rect rect_of(const gpuhal_memory *memory, unsigned char *host, const side *place)
{
    return (gpuhal_plugin_rect){.memory = memory,
                                .host = host,
                                .offset = place->offset,
                                .row_pitch = place->row_pitch,
                                .slice_pitch = place->slice_pitch};
}

static gpuhal_claim claim_of(const side *to, const side *from, const uint64_t extent[3], const unsigned char *source,
                             uint64_t total)
{
    return (gpuhal_claim){.offset = to->offset,
                          .bytes = span(to, extent),
                          .source = source,
                          .source_total = total,
                          .source_offset = from->offset,
                          .width = extent[0],
                          .rows = extent[1],
                          .row_pitch = to->row_pitch,
                          .slice_pitch = to->slice_pitch};
}

/* Slice pitches are multiples of only the alignment. OpenCL requires multiples of the row pitch, so a plugin has to
 * split the copy. Returns false if one side is host memory and the plugin refuses the copy; the core has a fallback
 * for such plugins. */
static bool call_rect(const gpuhal_context *context, const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                      const uint64_t extent[3])
{
    gpuhal_step("the slot copy_rect");
    gpuhal_status status = context->opened.slots.ops.copy_rect(context->opened.device, NULL, to, from, extent);
    const bool refused = status == GPUHAL_ERROR_NOT_SUPPORTED && (to->memory == NULL || from->memory == NULL);
    gpuhal_expect_ok(refused ? GPUHAL_OK : status, "copy_rect");
    return !refused;
}

/* Makes an area on the device, or an area in host memory without a memory object. The gaps in host memory belong to the
 * caller, who may write to them at the same time. */
static void init_end(gpuhal_area *area, const gpuhal_context *context, bool host, uint64_t bytes)
{
    if (!host) {
        gpuhal_area_init(area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
        return;
    }
    *area = (gpuhal_area){.context = context, .opened = &context->opened, .bytes = bytes};
    area->expected = gpuhal_own(malloc((size_t)bytes));
    area->before = gpuhal_own(malloc((size_t)bytes));
    area->actual = gpuhal_own(malloc((size_t)bytes));
}

static void reset_end(gpuhal_area *area, bool host, uint64_t seed)
{
    if (!host) {
        gpuhal_area_reset(area, seed, ROUTE_ANY);
        return;
    }
    gpuhal_pattern(area->expected, area->bytes, seed);
    memcpy(area->before, area->expected, (size_t)area->bytes);
    memcpy(area->actual, area->expected, (size_t)area->bytes);
}

static void finish_end(gpuhal_area *area, bool host)
{
    if (!host) {
        gpuhal_area_finish(area);
        return;
    }
    free(area->expected);
    free(area->before);
    free(area->actual);
}

static void expect_rect(gpuhal_area *target, bool to_host, gpuhal_claim claim, const char *what)
{
    char fault[400];
    if (!to_host) {
        gpuhal_area_verify(target, claim, ROUTE_ANY, "%s", what);
        return;
    }
    claim.expected = target->expected;
    claim.actual = target->actual;
    claim.before = target->before;
    claim.total = target->bytes;
    if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        gpuhal_fail("%s: %s", what, fault);
    }
}

/* Fills both sides with different patterns before every shape, so that an overwritten gap is detected. */
static void check_rects(const gpuhal_context *context, bool to_host, bool from_host, const char *where)
{
    gpuhal_area target, source;
    const uint64_t bytes = area_bytes(context);
    unsigned refused = 0;
    if (!gpuhal_offered(context->opened.slots.ops.copy_rect != NULL, "copy_rect")) {
        return;
    }
    init_end(&target, context, to_host, bytes);
    init_end(&source, context, from_host, bytes);
    for (unsigned s = 0; s < SHAPES; s++) {
        side to, from;
        uint64_t extent[3];
        char what[256];
        place_both(&shapes[s], gpuhal_copy_unit(context), &to, &from, extent);
        reset_end(&target, to_host, 2 * s);
        reset_end(&source, from_host, 2 * s + 1);
        const gpuhal_plugin_rect to_rect =
            rect_of(to_host ? NULL : &target.memory, to_host ? target.actual : NULL, &to);
        const gpuhal_plugin_rect from_rect =
            rect_of(from_host ? NULL : &source.memory, from_host ? source.actual : NULL, &from);
        if (!call_rect(context, &to_rect, &from_rect, extent)) {
            refused++;
            continue;
        }
        copy_rows(target.expected, &to, source.expected, &from, extent);
        snprintf(what, sizeof what,
                 "copy_rect of %" PRIu64 " bytes by %" PRIu64 " rows by %" PRIu64 " slices %s, row pitch %" PRIu64
                 " to %" PRIu64 ", slice pitch %" PRIu64 " to %" PRIu64,
                 extent[0], extent[1], extent[2], where, from.row_pitch, to.row_pitch, from.slice_pitch,
                 to.slice_pitch);
        expect_rect(&target, to_host, claim_of(&to, &from, extent, source.expected, bytes), what);
    }
    if (refused == SHAPES) {
        gpuhal_skip("copy_rect refuses host memory for this kind of memory");
    }
    finish_end(&target, to_host);
    finish_end(&source, from_host);
}

void gpuhal_check_rect_device(gpuhal_context *context)
{
    check_rects(context, false, false, "within the device");
}

void gpuhal_check_rect_upload(gpuhal_context *context)
{
    check_rects(context, false, true, "from host memory");
}

void gpuhal_check_rect_readback(gpuhal_context *context)
{
    check_rects(context, true, false, "to host memory");
}
