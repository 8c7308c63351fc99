/* checks_transfer.c: copy, write, read and fill, at every kind of offset and size that the device's alignments allow.
 * All bytes of the memory are compared after each call, so bytes outside the range serve as guards. */
#include "area.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t offsets[] = {0, 1, 3, 8, 63, 255, 4095, 4096, 8191};
static const uint64_t sizes[] = {1, 2, 3, 7, 16, 65, 255, 4096, 4097};
enum { OFFSETS = sizeof offsets / sizeof *offsets, SIZES = sizeof sizes / sizeof *sizes };

static uint64_t aligned(const gpuhal_context *context, uint64_t value)
{
    return gpuhal_round_up(value, gpuhal_copy_unit(context));
}

/* Compares only through copies, so that equal errors in write and read do not cancel each other. A plugin may refuse
 * memory that it cannot write directly, but must then not change the memory. */
static bool write_checked(gpuhal_area *area, uint64_t offset, const unsigned char *source, uint64_t bytes)
{
    const gpuhal_opened *opened = area->opened;
    gpuhal_step("the slot write");
    gpuhal_status status = opened->slots.ops.write(opened->device, NULL, &area->memory, offset, source, bytes);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_area_verify(area, (gpuhal_claim){.bytes = area->bytes}, ROUTE_NO_WRITE_READ,
                           "memory after a write of %" PRIu64 " bytes to offset %" PRIu64 " was refused", bytes,
                           offset);
        return false;
    }
    gpuhal_expect_ok(status, "write");
    gpuhal_area_changed(area, offset, source, bytes);
    const gpuhal_claim claim = {.offset = offset, .bytes = bytes, .source = source, .source_total = bytes};
    gpuhal_area_verify(area, claim, ROUTE_NO_WRITE_READ, "write of %" PRIu64 " bytes to offset %" PRIu64, bytes,
                       offset);
    return true;
}

/* Combines every offset with every size: drivers split transfers at unaligned ends, and each kind of end has its own
 * code path. */
void gpuhal_check_write(gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.ops.write != NULL, "write")) {
        return;
    }
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context);
    unsigned char *source = gpuhal_own(malloc((size_t)bytes + 1));
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&area, 1, ROUTE_NO_WRITE_READ);
    unsigned written = 0;
    for (unsigned o = 0; o < OFFSETS; o++) {
        for (unsigned s = 0; s < SIZES; s++) {
            /* Host memory may have any address. */
            unsigned char *from = source + (o + s) % 2;
            const uint64_t count = aligned(context, sizes[s]);
            gpuhal_pattern(from, count, 100 + o * SIZES + s);
            written += write_checked(&area, aligned(context, offsets[o]), from, count);
        }
    }
    gpuhal_pattern(source, bytes, 2);
    written += write_checked(&area, 0, source, bytes);
    if (written == 0) {
        gpuhal_skip("write refuses this kind of memory");
    }
    gpuhal_area_finish(&area);
    free(source);
}

/* Host memory may have any address; here the address is odd if the sum of offset and size is odd. Returns false if the
 * slot refused the memory. A refused call must not change the memory. */
static bool read_checked(const gpuhal_area *area, uint64_t offset, uint64_t bytes)
{
    enum { GUARD = 64 };
    const gpuhal_opened *opened = area->opened;
    const uint64_t total = bytes + 2 * GUARD;
    unsigned char *room = gpuhal_own(malloc((size_t)(2 * total + 1)));
    unsigned char *expected = room, *actual = room + total + offset % 2;
    memset(actual, 0xd7, (size_t)total);
    memset(expected, 0xd7, (size_t)total);
    memcpy(expected + GUARD, area->expected + offset, (size_t)bytes);
    gpuhal_step("the slot read");
    gpuhal_status status = opened->slots.ops.read(opened->device, NULL, actual + GUARD, &area->memory, offset, bytes);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        memset(expected, 0xd7, (size_t)total); /* the memory must be unchanged */
    } else {
        gpuhal_expect_ok(status, "read");
    }
    const gpuhal_claim claim = {.expected = expected,
                                .actual = actual,
                                .total = total,
                                .offset = GUARD,
                                .bytes = bytes,
                                .source = area->expected,
                                .source_total = area->bytes,
                                .source_offset = offset};
    char fault[400];
    if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        const bool stale = memcmp(actual + GUARD, area->before + offset, (size_t)bytes) == 0 &&
                           memcmp(area->before + offset, area->expected + offset, (size_t)bytes) != 0;
        gpuhal_fail("read of %" PRIu64 " bytes from offset %" PRIu64 ": %s%s", bytes, offset, fault,
                    stale ? "; these are the bytes from before the last write" : "");
    }
    free(room);
    return status == GPUHAL_OK;
}

/* The contents are changed without the plugin's write and read slots, because a cache in the plugin would return old
 * bytes. */
void gpuhal_check_read(gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.ops.read != NULL, "read")) {
        return;
    }
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context);
    unsigned char *fresh = gpuhal_own(malloc((size_t)bytes));
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&area, 1, ROUTE_NO_WRITE_READ);
    unsigned done = 0;
    for (unsigned o = 0; o < OFFSETS; o++) {
        /* Each round uses new contents at the same offsets, so that bytes of an earlier read are detected. */
        gpuhal_pattern(fresh, bytes, 200 + o);
        gpuhal_plain_put(&context->opened, &area.memory, 0, fresh, bytes, ROUTE_NO_WRITE_READ);
        gpuhal_area_changed(&area, 0, fresh, bytes);
        for (unsigned s = 0; s < SIZES; s++) {
            done += read_checked(&area, aligned(context, offsets[o]), aligned(context, sizes[s]));
        }
        done += read_checked(&area, 0, bytes);
    }
    if (done == 0) {
        gpuhal_skip("read refuses this kind of memory");
    }
    gpuhal_area_finish(&area);
    free(fresh);
}

static void copy_checked(gpuhal_area *to, uint64_t to_offset, gpuhal_area *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_plain_copy(to->opened, &to->memory, to_offset, &from->memory, from_offset, bytes);
    gpuhal_area_changed(to, to_offset, from->expected + from_offset, bytes);
    const gpuhal_claim claim = {.offset = to_offset,
                                .bytes = bytes,
                                .source = to == from ? to->before : from->expected,
                                .source_total = from->bytes,
                                .source_offset = from_offset};
    gpuhal_area_verify(to, claim, ROUTE_ANY,
                       "copy of %" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64 "%s", bytes, from_offset,
                       to_offset, to == from ? " of the same memory" : "");
}

/* Tries a third of all combinations for each pair of offsets, and all sizes in turn. This covers every path and is fast
 * enough on devices with slow calls. */
void gpuhal_check_copy(gpuhal_context *context)
{
    gpuhal_area to, from;
    const uint64_t bytes = gpuhal_area_usual(context);
    gpuhal_area_init(&from, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&to, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&from, 1, ROUTE_ANY);
    gpuhal_area_reset(&to, 2, ROUTE_ANY);
    for (unsigned t = 0; t < OFFSETS; t++) {
        for (unsigned f = 0; f < OFFSETS; f++) {
            for (unsigned s = (t + f) % 3; s < SIZES; s += 3) {
                copy_checked(&to, aligned(context, offsets[t]), &from, aligned(context, offsets[f]),
                             aligned(context, sizes[s]));
            }
        }
        gpuhal_area_reset(&from, 10 + t, ROUTE_ANY);
    }
    copy_checked(&to, 0, &from, 0, bytes);
    gpuhal_area_verify(&from, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY, "the source of copies");
    gpuhal_area_finish(&to);
    gpuhal_area_finish(&from);
}

/* Copies between adjacent ranges that do not overlap. An API whose overlap test is off by one byte refuses such a
 * copy. */
void gpuhal_check_copy_within(gpuhal_context *context)
{
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context), unit = gpuhal_copy_unit(context);
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    for (unsigned s = 0; s < SIZES; s++) {
        const uint64_t count = aligned(context, sizes[s]);
        copy_checked(&area, count + unit, &area, unit, count);      /* target directly after the source */
        copy_checked(&area, unit, &area, count + unit, count);      /* target directly before the source */
        copy_checked(&area, bytes - count, &area, 3 * unit, count); /* target at the end of the memory */
        copy_checked(&area, 0, &area, bytes - count - unit, count);
    }
    gpuhal_area_finish(&area);
}

/* Staging uses upload and readback memory in both directions, and some APIs have a different call for each pair. */
void gpuhal_check_copy_kinds(gpuhal_context *context)
{
    const uint64_t bytes = gpuhal_area_usual(context), unit = gpuhal_copy_unit(context);
    for (gpuhal_memory_kind a = GPUHAL_MEMORY_DEVICE; a <= GPUHAL_MEMORY_MIGRATING; a++) {
        for (gpuhal_memory_kind b = GPUHAL_MEMORY_DEVICE; b <= GPUHAL_MEMORY_MIGRATING; b++) {
            if (!gpuhal_states_kind(context, a) || !gpuhal_states_kind(context, b)) {
                continue;
            }
            gpuhal_area from, to;
            gpuhal_area_init(&from, context, &context->opened, a, bytes);
            gpuhal_area_init(&to, context, &context->opened, b, bytes);
            gpuhal_area_reset(&from, 1 + a, ROUTE_ANY);
            gpuhal_area_reset(&to, 11 + b, ROUTE_ANY);
            copy_checked(&to, 3 * unit, &from, 5 * unit, aligned(context, 4097));
            copy_checked(&to, 0, &from, 0, bytes);
            gpuhal_area_finish(&to);
            gpuhal_area_finish(&from);
        }
    }
}

/* Offsets are one to three units, so that large sizes do not use only the aligned path. */
static void move_large(const gpuhal_context *context, uint64_t count, uint64_t seed, bool by_copy)
{
    const gpuhal_slots *slots = &context->opened.slots;
    const uint64_t unit = gpuhal_copy_unit(context), bytes = count + 4 * unit;
    gpuhal_area from, to;
    gpuhal_area_init(&from, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&to, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&from, seed, ROUTE_ANY);
    gpuhal_area_reset(&to, seed + 50, ROUTE_ANY);
    if (by_copy) {
        copy_checked(&to, unit, &from, 3 * unit, count);
    }
    if (!by_copy && slots->ops.write != NULL) {
        (void)write_checked(&to, 2 * unit, from.expected, count);
    }
    if (!by_copy && slots->ops.read != NULL) {
        (void)read_checked(&to, 3 * unit, count);
    }
    gpuhal_area_finish(&to);
    gpuhal_area_finish(&from);
}

void gpuhal_check_copy_sizes(gpuhal_context *context)
{
    static const uint64_t large[] = {32768, 65535, 65537, 262144, 1048575, 1048577, 4194304};
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const uint64_t most = gpuhal_device_fact(context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, total);
    /* Checks copies first, because the contents for write and read are compared through copies. */
    for (unsigned s = 0; s < 2 * (sizeof large / sizeof *large); s++) {
        const uint64_t count = aligned(context, large[s % (sizeof large / sizeof *large)]);
        const uint64_t bytes = count + 4 * gpuhal_copy_unit(context);
        if (bytes <= most && bytes <= total / 4) {
            move_large(context, count, 1 + s, s < sizeof large / sizeof *large);
        }
    }
}

/* @p image receives the bytes that the host would write: integers of @p pattern_bytes in host byte order. */
static void fill_checked(gpuhal_area *area, uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes,
                         unsigned char *image)
{
    const gpuhal_opened *opened = area->opened;
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *number = pattern_bytes == 4   ? (const void *)&pattern
                         : pattern_bytes == 2 ? (const void *)&half
                                              : &quarter;
    for (uint64_t i = 0; i < bytes; i += pattern_bytes) {
        memcpy(image + i, number, pattern_bytes);
    }
    gpuhal_step("the slot fill");
    gpuhal_expect_ok(opened->slots.ops.fill(opened->device, NULL, &area->memory, offset, bytes, pattern, pattern_bytes),
                     "fill");
    gpuhal_area_changed(area, offset, image, bytes);
    gpuhal_area_verify(area, (gpuhal_claim){.offset = offset, .bytes = bytes}, ROUTE_ANY,
                       "fill of %" PRIu64 " bytes at offset %" PRIu64 " with the low %" PRIu32 " bytes of 0x%08" PRIx32,
                       bytes, offset, pattern_bytes, pattern);
}

/* OpenCL requires offsets that are multiples of the pattern size, and Vulkan supports only four-byte patterns. A plugin
 * must either report such a limit in its alignment or work around it. */
void gpuhal_check_fill(gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.ops.fill != NULL, "fill")) {
        return;
    }
    const uint64_t stated = gpuhal_device_fact(context, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    const uint64_t unit = stated == 0 || stated > 65536 ? 1 : stated;
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context) + 32 * unit;
    unsigned char *image = gpuhal_own(malloc((size_t)bytes));
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE,
                     gpuhal_round_up(bytes, gpuhal_copy_unit(context)));
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    for (uint32_t pattern_bytes = 1; pattern_bytes <= 4; pattern_bytes *= 2) {
        for (unsigned o = 0; o < OFFSETS; o++) {
            for (unsigned s = 0; s < SIZES; s++) {
                const uint64_t step = unit > pattern_bytes ? unit : pattern_bytes;
                const uint64_t count = gpuhal_round_up(sizes[s], step);
                /* Bits above the pattern's size must be ignored. */
                const uint32_t pattern = UINT32_C(0xd4c3b2a1) + (o * SIZES + s) * UINT32_C(0x01030507);
                fill_checked(&area, gpuhal_round_up(offsets[o], unit), count, pattern, pattern_bytes, image);
            }
        }
    }
    gpuhal_area_finish(&area);
    free(image);
}
