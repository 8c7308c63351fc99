/* pieces.c: see pieces.h. */
#include "pieces.h"

#include <inttypes.h>

/* Large enough for the checks' transfers, and small enough to compare all bytes. */
#define PIECE_LEAST UINT64_C(65536)

/* Calls the slot twice, because the core calls it several times for each range and rounds sizes to the result: the
 * results must be equal. The checks' largest range has more than the device's memory. */
static uint64_t granularity(const gpuhal_context *context)
{
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t range = (total < UINT64_MAX / 2 ? total : 0) + 2 * GPUHAL_PIECE_MOST;
    uint64_t bytes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        gpuhal_step("the slot range_granularity");
        gpuhal_expect_ok(context->opened.slots.ranges.range_granularity(context->opened.device, range, &bytes[i]),
                         "range_granularity");
    }
    if (bytes[0] == 0 || (bytes[0] & (bytes[0] - 1)) != 0) {
        gpuhal_fail("range_granularity gave %" PRIu64 ", which is not a power of two", bytes[0]);
    }
    if (bytes[0] != bytes[1]) {
        gpuhal_fail("range_granularity gave %" PRIu64 ", and then %" PRIu64, bytes[0], bytes[1]);
    }
    return bytes[0];
}

static uint64_t transfer_unit(const gpuhal_context *context)
{
    const uint64_t fill = gpuhal_device_fact(context, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    const uint64_t unit = gpuhal_round_up(64, gpuhal_copy_unit(context));
    return fill == 0 || fill > 65536 ? unit : gpuhal_round_up(unit, fill);
}

bool gpuhal_pieces_begin(const gpuhal_context *context, gpuhal_pieces *out)
{
    const gpuhal_slots *slots = &context->opened.slots;
    if (!gpuhal_offered(slots->ranges.range_reserve != NULL, "range_reserve")) {
        return false;
    }
    const uint64_t granule = granularity(context);
    *out = (gpuhal_pieces){.context = context, .slots = slots, .granule = granule, .unit = transfer_unit(context)};
    out->piece = gpuhal_round_up(PIECE_LEAST, granule);
    while (out->piece < 8 * out->unit) {
        out->piece *= 2;
    }
    if (out->piece > GPUHAL_PIECE_MOST) {
        gpuhal_skip("memory comes in pieces of %" PRIu64 " MiB, too large to compare", granule >> 20);
        return false;
    }
    return true;
}

void gpuhal_pieces_reserve(gpuhal_pieces *own, uint64_t pieces)
{
    const uint64_t bytes = pieces * own->piece;
    own->memory = (gpuhal_memory){.size = sizeof own->memory};
    own->handle = NULL;
    gpuhal_step("the slot range_reserve");
    gpuhal_expect_ok(own->slots->ranges.range_reserve(own->context->opened.device, bytes, &own->memory, &own->handle),
                     "range_reserve");
    if (own->handle == NULL) {
        gpuhal_fail("range_reserve returned OK and no range");
    }
    if (own->memory.size != sizeof own->memory) {
        gpuhal_fail("range_reserve changed the size member of gpuhal_memory to %u", own->memory.size);
    }
    if (own->memory.bytes < bytes) {
        gpuhal_fail("range_reserve gave fewer bytes than asked for: %" PRIu64 " instead of %" PRIu64, own->memory.bytes,
                    bytes);
    }
    if (own->memory.address % own->granule != 0) {
        gpuhal_fail("range_reserve gave the address %#" PRIx64 ", which is not a multiple of the %" PRIu64
                    " bytes of range_granularity",
                    own->memory.address, own->granule);
    }
    if (own->memory.host != NULL) {
        gpuhal_fail("range_reserve gave a host address, although parts of a range may have no memory");
    }
}

gpuhal_status gpuhal_pieces_commit(const gpuhal_pieces *own, uint64_t first, uint64_t count)
{
    gpuhal_step("the slot range_commit");
    return own->slots->ranges.range_commit(own->handle, first * own->piece, count * own->piece, NULL, 0);
}

void gpuhal_pieces_expect_commit(const gpuhal_pieces *own, uint64_t first, uint64_t count)
{
    gpuhal_expect_ok(gpuhal_pieces_commit(own, first, count), "range_commit");
}

void gpuhal_pieces_expect_decommit(const gpuhal_pieces *own, uint64_t first, uint64_t count)
{
    gpuhal_step("the slot range_decommit");
    gpuhal_expect_ok(own->slots->ranges.range_decommit(own->handle, first * own->piece, count * own->piece),
                     "range_decommit");
}

void gpuhal_pieces_release(gpuhal_pieces *own)
{
    gpuhal_step("the slot range_release");
    own->slots->ranges.range_release(own->handle);
    own->handle = NULL;
}

void gpuhal_pieces_cover(gpuhal_area *area, const gpuhal_pieces *own, uint64_t pieces)
{
    gpuhal_area_lend(area, own->context, &own->context->opened, &own->memory, pieces * own->piece);
}
