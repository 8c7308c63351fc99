/* checks_range_memory.c: virtual memory: memory that is decommitted, cannot be committed, or is still committed when
 * the range is released. */
#include "pieces.h"
#include "resources.h"

#include <inttypes.h>
#include <string.h>

/* ---- memory that is decommitted */

/* Compares one piece of an area. Some pieces of the area have no memory. */
static void expect_piece(const gpuhal_area *area, const gpuhal_pieces *own, uint64_t number, const char *after)
{
    char fault[400];
    const uint64_t offset = number * own->piece;
    memset(area->actual, 0xee, (size_t)own->piece);
    gpuhal_plain_get(area->opened, &area->memory, offset, area->actual, own->piece, ROUTE_ANY);
    const gpuhal_claim claim = {
        .expected = area->expected + offset, .actual = area->actual, .total = own->piece, .bytes = own->piece};
    if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        gpuhal_fail("another piece of the range, after %s: %s", after, fault);
    }
}

static void expect_neighbours(const gpuhal_area *area, const gpuhal_pieces *own, const char *after)
{
    expect_piece(area, own, 0, after);
    expect_piece(area, own, 3, after);
}

static void expect_commit_again(const gpuhal_pieces *own, uint64_t first, uint64_t count)
{
    const gpuhal_status status = gpuhal_pieces_commit(own, first, count);
    if (status != GPUHAL_OK) {
        gpuhal_fail("range_commit returned %s for addresses whose memory range_decommit had taken",
                    gpuhal_status_text(status));
    }
}

/* Decommits memory in the middle, and commits memory again with different boundaries between pieces. */
static void change_middle(gpuhal_pieces *own)
{
    gpuhal_area area;
    gpuhal_pieces_cover(&area, own, 4);
    for (unsigned round = 0; round < 2; round++) {
        gpuhal_area_reset(&area, 1 + round, ROUTE_ANY);
        gpuhal_pieces_expect_decommit(own, 1, 2);
        expect_neighbours(&area, own, "range_decommit");
        expect_commit_again(own, 2, 1);
        expect_commit_again(own, 1, 1);
        expect_neighbours(&area, own, "range_commit");
        gpuhal_area_reset(&area, 11 + round, ROUTE_ANY);
        gpuhal_pieces_expect_decommit(own, 1, 1);
        expect_piece(&area, own, 2, "range_decommit");
        gpuhal_pieces_expect_decommit(own, 2, 1);
        expect_neighbours(&area, own, "range_decommit");
        expect_commit_again(own, 1, 2);
        gpuhal_area_reset(&area, 21 + round, ROUTE_ANY);
        gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY,
                           "a range after memory had come and gone in it");
    }
    gpuhal_area_finish(&area);
}

enum { AGAIN = 12 };

/* Commits and releases memory so often that a small device would run out of memory if the plugin kept it. Returns how
 * much memory the device lost after the first round. The first round may fill a driver's cache. */
static uint64_t lost_by(gpuhal_pieces *own, uint64_t pieces, const char *what,
                        gpuhal_status (*once)(gpuhal_pieces *own, uint64_t pieces))
{
    uint64_t before = 0, after = 0;
    bool known = false;
    for (int i = 1; i <= AGAIN; i++) {
        const gpuhal_status status = once(own, pieces);
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY && i == 1) {
            gpuhal_note("%" PRIu64 " KiB cannot be allocated: other programs hold them", pieces * own->piece >> 10);
            return 0;
        }
        if (status != GPUHAL_OK) {
            gpuhal_fail("range_commit number %d of %" PRIu64 " bytes, each one given back by %s, returned %s", i,
                        pieces * own->piece, what, gpuhal_status_text(status));
        }
        known = i > 1 ? known : gpuhal_free_memory(own->context, own->context->index, &before);
    }
    known = known && gpuhal_free_memory(own->context, own->context->index, &after);
    return known && after < before ? before - after : 0;
}

/* Runs a second time if much memory was lost, since another program may have allocated memory in the meantime. */
static void expect_given_back(gpuhal_pieces *own, const char *what,
                              gpuhal_status (*once)(gpuhal_pieces *own, uint64_t pieces))
{
    const uint64_t total = gpuhal_device_fact(own->context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t most = gpuhal_device_fact(own->context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, total);
    uint64_t bytes = total / 4 < most ? total / 4 : most;
    bytes = bytes < GPUHAL_PIECE_MOST ? bytes : GPUHAL_PIECE_MOST;
    const uint64_t pieces = bytes / own->piece, much = pieces * own->piece * (AGAIN - 1) / 2;
    uint64_t lost = UINT64_MAX;
    for (int round = 0; round < 2 && pieces > 0 && lost >= much; round++) {
        lost = lost_by(own, pieces, what, once);
    }
    if (pieces > 0 && lost >= much) {
        gpuhal_fail("range_commit of %" PRIu64 " KiB, given back by %s, cost %" PRIu64 " KiB when done %d times",
                    pieces * own->piece >> 10, what, lost >> 10, AGAIN);
    }
}

static gpuhal_status commit_and_decommit(gpuhal_pieces *own, uint64_t pieces)
{
    const gpuhal_status status = gpuhal_pieces_commit(own, 0, pieces);
    if (status == GPUHAL_OK) {
        gpuhal_pieces_expect_decommit(own, 0, pieces);
    }
    return status;
}

void gpuhal_check_range_decommit(gpuhal_context *context)
{
    gpuhal_pieces own;
    if (!gpuhal_pieces_begin(context, &own)) {
        return;
    }
    gpuhal_pieces_reserve(&own, 4);
    gpuhal_pieces_expect_commit(&own, 0, 1);
    gpuhal_pieces_expect_commit(&own, 1, 2);
    gpuhal_pieces_expect_commit(&own, 3, 1);
    change_middle(&own);
    gpuhal_pieces_release(&own);
    gpuhal_pieces_reserve(&own, GPUHAL_PIECE_MOST / own.piece);
    expect_given_back(&own, "range_decommit", commit_and_decommit);
    gpuhal_pieces_release(&own);
}

/* ---- not enough memory */

/* Returns whether the commit was refused. TOO_LARGE is correct only above the maximum allocation size, because pools
 * release memory only after OUT_OF_MEMORY. */
static bool commit_refused(const gpuhal_pieces *own, uint64_t first, uint64_t count)
{
    const uint64_t most = gpuhal_device_fact(own->context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, UINT64_MAX);
    const gpuhal_status status = gpuhal_pieces_commit(own, first, count);
    const bool may_be_too_large = count * own->piece > most;
    if (status == GPUHAL_OK) {
        gpuhal_pieces_expect_decommit(own, first, count);
        gpuhal_note("the driver gives more than the memory that it states");
    } else if (status != GPUHAL_ERROR_OUT_OF_MEMORY && (status != GPUHAL_ERROR_TOO_LARGE || !may_be_too_large)) {
        gpuhal_fail("range_commit of %" PRIu64
                    " bytes, more than the device has left, returned %s instead of out of memory",
                    count * own->piece, gpuhal_status_text(status));
    }
    return status != GPUHAL_OK;
}

/* Returns whether a commit succeeds. If it does not, a later refusal is not the plugin's fault. */
static bool has_memory(const gpuhal_pieces *own)
{
    const gpuhal_status status = gpuhal_pieces_commit(own, 1, 1);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        gpuhal_skip("two pieces of %" PRIu64 " KiB cannot be allocated: other programs hold them", own->piece >> 10);
        return false;
    }
    gpuhal_expect_ok(status, "range_commit");
    gpuhal_pieces_expect_decommit(own, 1, 1);
    return true;
}

/* If a refused commit keeps some memory, a server eventually loses all memory. Another program may cause a loss of less
 * than one piece per refusal, or a single larger loss. */
static void expect_nothing_kept(const gpuhal_pieces *own, uint64_t all)
{
    enum { REFUSALS = 32, ROUNDS = 3 };
    const uint64_t least = REFUSALS * own->piece;
    uint64_t before = 0, after = 0, kept = UINT64_MAX;
    for (int round = 0; round < ROUNDS && kept >= least; round++) {
        if (!gpuhal_free_memory(own->context, own->context->index, &before)) {
            return;
        }
        for (int i = 0; i < REFUSALS; i++) {
            if (!commit_refused(own, 1, all)) {
                return;
            }
        }
        kept = gpuhal_free_memory(own->context, own->context->index, &after) && after < before ? before - after : 0;
    }
    if (kept >= least) {
        gpuhal_fail_late(21, "range_commit was refused %d times, and %" PRIu64 " KiB of memory are gone", REFUSALS,
                         kept >> 10);
    }
}

/* After a refusal, a pool makes memory available and tries again, with the same or a smaller range. */
void gpuhal_check_range_refused(gpuhal_context *context)
{
    gpuhal_pieces own;
    gpuhal_area area;
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    if (!gpuhal_pieces_begin(context, &own)) {
        return;
    }
    const uint64_t all = total / own.piece;
    if (all < 2) {
        gpuhal_skip("memory_total_bytes is missing, or less than two pieces");
        return;
    }
    gpuhal_pieces_reserve(&own, 1 + all);
    gpuhal_pieces_expect_commit(&own, 0, 1);
    if (!has_memory(&own)) {
        gpuhal_pieces_release(&own);
        return;
    }
    gpuhal_pieces_cover(&area, &own, 1);
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    for (int i = 0; i < 4 && commit_refused(&own, 1, all); i++) {
        gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY,
                           "the piece beside one that was refused");
    }
    gpuhal_area_finish(&area);
    expect_nothing_kept(&own, all);
    const gpuhal_status status = gpuhal_pieces_commit(&own, 1, 1);
    if (status != GPUHAL_OK) {
        gpuhal_fail("range_commit returned %s for a part of addresses whose commit had been refused",
                    gpuhal_status_text(status));
    }
    gpuhal_pieces_cover(&area, &own, 2);
    gpuhal_area_reset(&area, 2, ROUTE_ANY);
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY, "a range after a refusal");
    gpuhal_area_finish(&area);
    gpuhal_pieces_release(&own);
}

/* ---- ranges that end */

static gpuhal_status commit_and_release(gpuhal_pieces *own, uint64_t pieces)
{
    gpuhal_pieces_reserve(own, pieces);
    const gpuhal_status status = gpuhal_pieces_commit(own, 0, pieces);
    gpuhal_pieces_release(own);
    return status;
}

/* Releases the range while one of two commits still has its memory. Only the release of the range can give this
 * memory back. */
static void use_and_release(void *user)
{
    gpuhal_pieces *own = user;
    gpuhal_pieces_reserve(own, 4);
    gpuhal_pieces_expect_commit(own, 0, 1);
    gpuhal_pieces_expect_commit(own, 1, 2);
    gpuhal_pieces_expect_decommit(own, 0, 1);
    gpuhal_pieces_release(own);
}

void gpuhal_check_range_release(gpuhal_context *context)
{
    gpuhal_pieces own;
    if (!gpuhal_pieces_begin(context, &own)) {
        return;
    }
    expect_given_back(&own, "range_release", commit_and_release);
    gpuhal_expect_no_leak("using and releasing a range", 20, 80, use_and_release, &own);
}
