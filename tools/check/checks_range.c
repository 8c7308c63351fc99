/* checks_range.c: virtual memory: the addresses of a range, and the memory mapped to them. */
#include "pieces.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses */

/* Reserves a larger range than the device's memory, as pools do before they need memory. */
static uint64_t taken_by_reserving(gpuhal_pieces *own, uint64_t pieces)
{
    uint64_t before = 0, during = 0;
    const bool known = gpuhal_free_memory(own->context, own->context->index, &before);
    gpuhal_pieces_reserve(own, pieces);
    const bool taken = gpuhal_free_memory(own->context, own->context->index, &during) && known && during < before;
    gpuhal_pieces_release(own);
    return taken ? before - during : 0;
}

/* Uses the minimum of several rounds, because other programs do not allocate memory in every round. */
static void expect_no_memory(gpuhal_pieces *own)
{
    enum { ROUNDS = 3 };
    const uint64_t total = gpuhal_device_fact(own->context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t pieces = total / own->piece + 1;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ROUNDS && total > 0; i++) {
        const uint64_t taken = taken_by_reserving(own, pieces);
        least = taken < least ? taken : least;
    }
    if (total > 0 && least >= total / 4) {
        gpuhal_fail("range_reserve of %" PRIu64 " KiB took %" PRIu64
                    " KiB of device memory; only range_commit may take it",
                    pieces * own->piece >> 10, least >> 10);
    }
}

/* Address 0 means that the API has no addresses. */
static void expect_apart(const gpuhal_memory *one, const gpuhal_memory *other, const char *what)
{
    if (one->address != 0 && other->address != 0 && one->address < other->address + other->bytes &&
        other->address < one->address + one->bytes) {
        gpuhal_fail("the device addresses of %s overlap", what);
    }
}

void gpuhal_check_range_reserve(gpuhal_context *context)
{
    gpuhal_pieces one, other;
    gpuhal_memory memory;
    if (!gpuhal_pieces_begin(context, &one)) {
        return;
    }
    expect_no_memory(&one);
    other = one;
    gpuhal_pieces_reserve(&one, 1);
    gpuhal_pieces_reserve(&other, 3);
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, one.piece, 0, &memory), "allocate");
    expect_apart(&one.memory, &other.memory, "two ranges");
    expect_apart(&one.memory, &memory, "a range and an allocation");
    expect_apart(&other.memory, &memory, "a range and an allocation");
    gpuhal_plain_release(&context->opened, &memory);
    gpuhal_pieces_release(&one);
    gpuhal_pieces_release(&other);
}

/* ---- mapped memory */

static void expect_native(const gpuhal_pieces *own)
{
    gpuhal_native native = {.size = sizeof native};
    if (own->slots->native.native_memory != NULL) {
        gpuhal_step("the slot native_memory of a range");
        gpuhal_expect_ok(own->slots->native.native_memory(own->context->opened.device, &own->memory, &native),
                         "native_memory of a range");
    }
}

/* The state of a transfer from `at` to `at + bytes`, which crosses the boundary between two pieces. */
typedef struct border {
    gpuhal_area *area; /* the area of the range */
    gpuhal_area *other;
    uint64_t at, bytes;
} border;

static void write_and_read_border(const border *own, unsigned char *host)
{
    gpuhal_pattern(host, own->bytes, 11);
    if (gpuhal_plain_write(own->area->opened, &own->area->memory, own->at, host, own->bytes)) {
        gpuhal_area_changed(own->area, own->at, host, own->bytes);
        gpuhal_area_verify(own->area, (gpuhal_claim){.offset = own->at, .bytes = own->bytes}, ROUTE_NO_WRITE_READ,
                           "write over the border of two pieces");
    }
    memset(host, 0xee, (size_t)own->bytes);
    if (gpuhal_plain_read(own->area->opened, &own->area->memory, own->at, host, own->bytes) &&
        memcmp(host, own->area->expected + own->at, (size_t)own->bytes) != 0) {
        gpuhal_fail("read over the border of two pieces brought wrong bytes");
    }
}

static void copy_border(const border *own)
{
    gpuhal_area *area = own->area, *other = own->other;
    gpuhal_plain_copy(area->opened, &area->memory, own->at, &other->memory, 0, own->bytes);
    gpuhal_area_changed(area, own->at, other->expected, own->bytes);
    gpuhal_area_verify(area, (gpuhal_claim){.offset = own->at, .bytes = own->bytes}, ROUTE_ANY,
                       "copy to the border of two pieces");
    gpuhal_plain_copy(area->opened, &area->memory, 0, &area->memory, own->at, own->bytes);
    gpuhal_area_changed(area, 0, area->expected + own->at, own->bytes);
    gpuhal_area_verify(area, (gpuhal_claim){.bytes = own->bytes}, ROUTE_ANY, "copy from one piece to another");
    gpuhal_area_reset(area, 21, ROUTE_ANY);
    gpuhal_plain_copy(area->opened, &other->memory, 0, &area->memory, own->at, own->bytes);
    gpuhal_area_changed(other, 0, area->expected + own->at, own->bytes);
    gpuhal_area_verify(other, (gpuhal_claim){.bytes = own->bytes}, ROUTE_ANY, "copy from the border of two pieces");
}

static void fill_border(const border *own, unsigned char *host)
{
    const gpuhal_opened *opened = own->area->opened;
    if (opened->slots.ops.fill == NULL) {
        return;
    }
    gpuhal_step("the slot fill");
    gpuhal_expect_ok(
        opened->slots.ops.fill(opened->device, NULL, &own->area->memory, own->at, own->bytes, 0x5b5b5b5b, 4), "fill");
    memset(host, 0x5b, (size_t)own->bytes);
    gpuhal_area_changed(own->area, own->at, host, own->bytes);
    gpuhal_area_verify(own->area, (gpuhal_claim){.offset = own->at, .bytes = own->bytes}, ROUTE_ANY,
                       "fill over the border of two pieces");
}

/* Pools place buffers across adjacent pieces. This check commits the pieces out of order. The addresses after the last
 * piece stay unmapped, so transfers must not touch them. */
void gpuhal_check_range_commit(gpuhal_context *context)
{
    gpuhal_pieces own;
    gpuhal_area area, other;
    if (!gpuhal_pieces_begin(context, &own)) {
        return;
    }
    gpuhal_pieces_reserve(&own, 4);
    gpuhal_pieces_expect_commit(&own, 1, 2);
    gpuhal_pieces_expect_commit(&own, 0, 1);
    expect_native(&own);
    gpuhal_pieces_cover(&area, &own, 3);
    gpuhal_area_init(&other, context, &context->opened, GPUHAL_MEMORY_DEVICE, area.bytes);
    gpuhal_area_reset(&other, 2, ROUTE_ANY);
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_NO_WRITE_READ,
                       "bytes written to two pieces at once");
    const border both = {.area = &area, .other = &other, .at = own.piece - 2 * own.unit, .bytes = 5 * own.unit};
    unsigned char *host = gpuhal_own(malloc((size_t)both.bytes));
    write_and_read_border(&both, host);
    copy_border(&both);
    fill_border(&both, host);
    free(host);
    gpuhal_area_finish(&other);
    gpuhal_area_finish(&area);
    gpuhal_pieces_release(&own);
}

/* ---- pieces in use */

typedef struct piece_user {
    const gpuhal_pieces *own;
    atomic_bool stop;
    atomic_uint rounds;
} piece_user;

static void *use_first_piece(void *argument)
{
    piece_user *user = argument;
    gpuhal_area area;
    gpuhal_pieces_cover(&area, user->own, 1);
    for (uint64_t seed = 1; !user->stop; seed++) {
        gpuhal_area_reset(&area, seed, ROUTE_ANY);
        gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY,
                           "a piece that was in use while memory came and went in its range");
        user->rounds++;
    }
    gpuhal_area_finish(&area);
    return NULL;
}

/* A pool grows and shrinks while its buffers are in use. */
void gpuhal_check_range_busy(gpuhal_context *context)
{
    enum { ROUNDS = 50 };
    gpuhal_pieces own;
    piece_user user = {.own = &own};
    pthread_t thread;
    if (!gpuhal_pieces_begin(context, &own)) {
        return;
    }
    gpuhal_pieces_reserve(&own, 3);
    gpuhal_pieces_expect_commit(&own, 0, 1);
    if (pthread_create(&thread, NULL, use_first_piece, &user) != 0) {
        gpuhal_fail("gpuhal-check cannot start a thread");
    }
    for (int i = 0; i < ROUNDS || user.rounds == 0; i++) {
        gpuhal_pieces_expect_commit(&own, 1, 2);
        gpuhal_pieces_expect_decommit(&own, 1, 2);
    }
    user.stop = true;
    pthread_join(thread, NULL);
    gpuhal_pieces_release(&own);
}
