/* checks_allocate.c: allocations that must work, allocations that must be refused, and the state after a refusal. */
#include "area.h"
#include "resources.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Also allocates for imports, exports and peers, which gpuhal_plain_allocate() does not support. */
static gpuhal_status allocate_as(const gpuhal_opened *opened, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    gpuhal_step("the slot allocate");
    return opened->slots.ops.allocate(opened->device, alloc, out_memory);
}

/* Engines use these facts to choose a kind of memory before they allocate any. */
static void expect_visible(const gpuhal_context *context, const gpuhal_memory *memory, gpuhal_memory_kind kind)
{
    static const gpuhal_key keys[] = {GPUHAL_FACT_HOST_VISIBLE_KINDS, GPUHAL_FACT_HOST_COHERENT_KINDS,
                                      GPUHAL_FACT_KERNEL_KINDS};
    const bool is[] = {memory->host != NULL, memory->host != NULL && (memory->flags & GPUHAL_MEMORY_HOST_COHERENT) != 0,
                       (memory->flags & GPUHAL_MEMORY_NO_KERNELS) == 0};
    for (int k = 0; k < 3; k++) {
        const gpuhal_listed_fact *fact = gpuhal_listed_find(context->listed, keys[k]);
        if (fact != NULL && fact->kind == LISTED_NUMBER && (fact->number >> kind & 1) != is[k]) {
            gpuhal_fail_by(16, "%s says %s of memory of kind %s, but the memory that allocate gave says %s",
                           gpuhal_listed_key(keys[k]), is[k] ? "no" : "yes", gpuhal_kind_name(kind),
                           is[k] ? "yes" : "no");
        }
    }
}

/* Host addresses are passed to other drivers, which rely on their alignment. */
static void expect_aligned(const gpuhal_context *context, gpuhal_memory_kind kind)
{
    for (uint64_t alignment = 64; alignment <= 65536; alignment *= 4) {
        gpuhal_memory memory;
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, kind, 65536, alignment, &memory);
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            continue;
        }
        gpuhal_expect_ok(status, "allocate");
        if ((uintptr_t)memory.host % alignment != 0) {
            gpuhal_fail("allocate ignored an alignment of %" PRIu64 ": the host address of memory of kind %s is %p",
                        alignment, gpuhal_kind_name(kind), memory.host);
        }
        gpuhal_plain_release(&context->opened, &memory);
    }
}

/* The core refuses memory of every kind except device memory if the plugin gives no host address, and memory whose host
 * address is not a multiple of 64. */
void gpuhal_check_allocate_kinds(gpuhal_context *context)
{
    const uint64_t bytes = gpuhal_area_usual(context),
                   exports = gpuhal_device_fact(context, GPUHAL_FACT_EXPORT_KINDS, 0);
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
        const bool has_address = kind != GPUHAL_MEMORY_DEVICE || (exports >> GPUHAL_HANDLE_HOST_POINTER & 1) != 0;
        if (!gpuhal_states_kind(context, kind)) {
            continue;
        }
        gpuhal_memory memory;
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, kind, bytes, 0, &memory);
        if (status != GPUHAL_OK) {
            gpuhal_fail_by(16, "memory_kinds states kind %s, and allocate returned %s", gpuhal_kind_name(kind),
                           gpuhal_status_text(status));
        }
        if (has_address && memory.host == NULL) {
            gpuhal_fail("memory of kind %s has no host address", gpuhal_kind_name(kind));
        }
        if ((uintptr_t)memory.host % 64 != 0) {
            gpuhal_fail("memory of kind %s has the host address %p, which is not a multiple of 64",
                        gpuhal_kind_name(kind), memory.host);
        }
        if (memory.host != NULL && (memory.flags & GPUHAL_MEMORY_HOST_COHERENT) == 0 &&
            context->opened.slots.ops.memory_flush == NULL) {
            gpuhal_fail("memory of kind %s has a host address that is not coherent, and the slots memory_flush and "
                        "memory_invalidate are missing",
                        gpuhal_kind_name(kind));
        }
        if (kind == GPUHAL_MEMORY_MIGRATING &&
            (memory.address != (uintptr_t)memory.host || (memory.flags & GPUHAL_MEMORY_HOST_COHERENT) == 0)) {
            gpuhal_fail_by(22, "memory of kind migrating %s",
                           memory.address == (uintptr_t)memory.host ? "is not coherent"
                                                                    : "has another address on the host");
        }
        expect_visible(context, &memory, kind);
        if (memory.size != sizeof memory) {
            gpuhal_fail("allocate changed the size member of gpuhal_memory to %u", memory.size);
        }
        if (has_address) {
            expect_aligned(context, kind);
        }
        gpuhal_plain_release(&context->opened, &memory);
    }
}

/* With any other error the core would fail the call instead of using its fallback. */
static void expect_not_supported(const gpuhal_context *context, const gpuhal_alloc *alloc, const char *what,
                                 uint32_t which)
{
    gpuhal_memory memory;
    gpuhal_status status = allocate_as(&context->opened, alloc, &memory);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_fail("allocate returned %s for %s %u, which is not offered, instead of not supported",
                    gpuhal_status_text(status), what, which);
    }
}

/* Current plugins must refuse kinds that later versions define, and not confuse them with other kinds. */
void gpuhal_check_allocate_unknown(gpuhal_context *context)
{
    const uint64_t bytes = gpuhal_round_up(4096, gpuhal_copy_unit(context));
    const gpuhal_alloc usual = {.size = sizeof usual, .bytes = bytes};
    static const uint32_t kinds[] = {1, 2, 3, 4, 5, 7, 31, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i] > 31 || !gpuhal_states_kind(context, kinds[i])) {
            gpuhal_alloc alloc = usual;
            alloc.kind = kinds[i];
            expect_not_supported(context, &alloc, "memory kind", kinds[i]);
        }
    }
    static const uint32_t handles[] = {1, 2, 3, 4, 5, 6, 31};
    const uint64_t imports = gpuhal_device_fact(context, GPUHAL_FACT_IMPORT_KINDS, 0);
    const uint64_t exports = gpuhal_device_fact(context, GPUHAL_FACT_EXPORT_KINDS, 0);
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        gpuhal_alloc alloc = usual;
        if ((imports >> handles[i] & 1) == 0) {
            alloc.handle = (gpuhal_handle){.size = sizeof(gpuhal_handle), .kind = handles[i]};
            alloc.handle.as.os = -1;
            expect_not_supported(context, &alloc, "an import of kind", handles[i]);
        }
        alloc = usual;
        if ((exports >> handles[i] & 1) == 0) {
            alloc.export_kinds = 1u << handles[i];
            expect_not_supported(context, &alloc, "an export of kind", handles[i]);
        }
    }
    const uint32_t handle_kinds = (uint32_t)exports & ~(1u << GPUHAL_HANDLE_HOST_POINTER);
    uint32_t refused =
        handle_kinds ? (uint32_t)gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, 0) & ~gpuhal_exportable(context)
                     : 0;
    for (; refused != 0; refused &= refused - 1) {
        gpuhal_alloc alloc = usual;
        alloc.kind = (gpuhal_memory_kind)__builtin_ctz(refused);
        alloc.export_kinds = handle_kinds & -handle_kinds;
        expect_not_supported(context, &alloc, "an export of memory of kind", alloc.kind);
    }
    if (context->opened.slots.peers.peer_enable == NULL) {
        gpuhal_alloc alloc = usual;
        alloc.peer_count = 1;
        alloc.peers = &context->opened.device;
        expect_not_supported(context, &alloc, "a number of peers of", 1);
    }
}

/* Compares addresses if the API has addresses. An allocator that rounds incorrectly returns the same bytes twice. */
static void expect_separate(const gpuhal_memory *one, const gpuhal_memory *other)
{
    const char *a = one->host, *b = other->host;
    if (a != NULL && b != NULL && a < b + other->bytes && b < a + one->bytes) {
        gpuhal_fail("the host addresses of two allocations overlap");
    }
    if (one->address != 0 && other->address != 0 && one->address < other->address + other->bytes &&
        other->address < one->address + one->bytes) {
        gpuhal_fail("the device addresses of two allocations overlap");
    }
}

/* Rounding errors appear with one byte more or less than a page. */
static void check_sizes(const gpuhal_context *context)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t sizes[] = {1, 2, 3, 7, 64, 255, page - 1, page, page + 1, 65535, 65537, (1u << 20) + 1};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    gpuhal_memory memories[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, sizes[i], 0, &memories[i]);
        if (status != GPUHAL_OK) {
            gpuhal_fail("allocate returned %s for %" PRIu64 " bytes", gpuhal_status_text(status), sizes[i]);
        }
        if (memories[i].bytes < sizes[i]) {
            gpuhal_fail("allocate gave fewer bytes than asked for: %" PRIu64 " instead of %" PRIu64, memories[i].bytes,
                        sizes[i]);
        }
        for (size_t other = 0; other < i; other++) {
            expect_separate(&memories[other], &memories[i]);
        }
    }
    for (size_t i = 0; i < SIZES; i++) {
        gpuhal_plain_release(&context->opened, &memories[i]);
    }
}

/* A plugin may refuse an alignment above the alignment that the device's bindings need, but must not ignore it. */
static void check_alignments(const gpuhal_context *context)
{
    const uint64_t own = gpuhal_device_fact(context, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 16);
    for (uint64_t alignment = 1; alignment <= 65536; alignment *= 4) {
        /* Several allocations, because a single one may be aligned by chance. */
        gpuhal_memory memories[8];
        unsigned count = 0;
        for (gpuhal_status status = GPUHAL_OK; count < 8 && status == GPUHAL_OK;) {
            status =
                gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, 24 + count, alignment, &memories[count]);
            if (status != GPUHAL_OK && (status != GPUHAL_ERROR_NOT_SUPPORTED || alignment <= own)) {
                gpuhal_fail("allocate returned %s for an alignment of %" PRIu64, gpuhal_status_text(status), alignment);
            }
            count += status == GPUHAL_OK;
        }
        for (unsigned i = 0; i < count; i++) {
            if (memories[i].address % alignment != 0) {
                gpuhal_fail("allocate ignored an alignment of %" PRIu64 ": the device address is %#" PRIx64, alignment,
                            memories[i].address);
            }
            gpuhal_plain_release(&context->opened, &memories[i]);
        }
    }
}

void gpuhal_check_allocate_sizes(gpuhal_context *context)
{
    check_sizes(context);
    check_alignments(context);
}

static void expect_usable(const gpuhal_context *context, const char *after)
{
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context);
    gpuhal_memory memory;
    gpuhal_status status = gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory);
    if (status != GPUHAL_OK) {
        gpuhal_fail("after %s, allocate returned %s for %" PRIu64 " bytes", after, gpuhal_status_text(status), bytes);
    }
    gpuhal_plain_release(&context->opened, &memory);
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&area, 77, ROUTE_ANY);
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY, "memory allocated after %s", after);
    gpuhal_area_finish(&area);
}

/* Rounding up near 2^64 gives 0, and an allocation of 0 bytes succeeds: a classic allocator bug. */
void gpuhal_check_allocate_too_large(gpuhal_context *context)
{
    const uint64_t most = gpuhal_device_fact(context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, 0);
    gpuhal_memory memory;
    if (most != 0 && most < UINT64_C(1) << 62) {
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, most + 1, 0, &memory);
        if (status != GPUHAL_ERROR_TOO_LARGE) {
            gpuhal_fail("allocate returned %s for allocation_max_bytes + 1 = %" PRIu64 " bytes, instead of too large",
                        gpuhal_status_text(status), most + 1);
        }
    }
    static const uint64_t absurd[] = {
        UINT64_MAX,        UINT64_MAX - 1,          UINT64_MAX - 63,         UINT64_MAX - 4095, UINT64_MAX - 65535,
        UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, (UINT64_C(1) << 63) + 1, UINT64_C(1) << 62};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        for (uint64_t alignment = 0; alignment <= 4096; alignment += 4096) {
            gpuhal_status status =
                gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, absurd[i], alignment, &memory);
            if (status != GPUHAL_ERROR_TOO_LARGE && status != GPUHAL_ERROR_OUT_OF_MEMORY) {
                gpuhal_fail("allocate returned %s for the absurd size of %" PRIu64 " bytes", gpuhal_status_text(status),
                            absurd[i]);
            }
        }
    }
    expect_usable(context, "sizes that were too large");
}

/* Allocates pieces until allocation fails, or until there is one piece more than fits into the device's memory. */
static unsigned take_all(const gpuhal_context *context, uint64_t total, uint64_t piece, gpuhal_memory *pieces,
                         unsigned most)
{
    uint64_t taken = 0;
    for (unsigned count = 0; count < most; count++) {
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, piece, 0, &pieces[count]);
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
            return count;
        }
        if (status != GPUHAL_OK) {
            gpuhal_fail("with %" PRIu64 " of %" PRIu64 " bytes taken, allocate returned %s instead of out of memory",
                        taken, total, gpuhal_status_text(status));
        }
        taken += piece;
        if (taken > total) {
            return count + 1;
        }
    }
    return most;
}

static void expect_distinct(const gpuhal_context *context, const gpuhal_memory *pieces, unsigned count, uint64_t piece)
{
    const uint64_t unit = gpuhal_round_up(64, gpuhal_copy_unit(context));
    unsigned char *bytes = gpuhal_own(malloc((size_t)unit)), *got = gpuhal_own(malloc((size_t)unit));
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < 2 * count; i++) {
            const uint64_t offset = i % 2 == 0 ? 0 : (piece - unit) / unit * unit;
            memset(bytes, (int)i + 1, (size_t)unit);
            if (pass == 0) {
                gpuhal_plain_put(&context->opened, &pieces[i / 2], offset, bytes, unit, ROUTE_ANY);
                continue;
            }
            gpuhal_plain_get(&context->opened, &pieces[i / 2], offset, got, unit, ROUTE_ANY);
            if (memcmp(got, bytes, (size_t)unit) != 0) {
                gpuhal_fail_by(19,
                               "a device with fewer bytes of memory gave %u times %" PRIu64
                               " bytes, and allocation %u does not keep its own",
                               count, piece, i / 2 + 1);
            }
        }
    }
    free(bytes);
    free(got);
}

/* Acts like an engine that runs out of memory: releases some memory and tries a smaller allocation. Runs twice, since
 * some drivers recover only once. */
void gpuhal_check_allocate_exhaust(gpuhal_context *context)
{
    enum { PIECES = 16, MOST_MIB = 256 };
    gpuhal_memory pieces[2 * PIECES];
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    if (total > (uint64_t)MOST_MIB << 20) {
        gpuhal_skip("the device has more memory than %d MiB", MOST_MIB);
        return;
    }
    const uint64_t most = gpuhal_device_fact(context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, total);
    uint64_t piece = total / PIECES < most ? total / PIECES : most;
    if (piece < total / (2 * PIECES - 1)) {
        gpuhal_skip("single allocations are too small to take all memory with %d of them", 2 * PIECES);
        return;
    }
    for (int round = 0; round < 2; round++) {
        unsigned count = take_all(context, total, piece, pieces, 2 * PIECES);
        if (count * piece > total) {
            expect_distinct(context, pieces, count, piece);
            while (count > 0) {
                gpuhal_plain_release(&context->opened, &pieces[--count]);
            }
            expect_usable(context, "more memory than the device has");
            gpuhal_skip("the driver gives more than the %" PRIu64 " bytes that it states, and keeps all of it separate",
                        total);
            return;
        }
        if (count < PIECES / 2) {
            gpuhal_fail("only %u allocations of %" PRIu64 " bytes could be allocated on a device with %" PRIu64 "%s",
                        count, piece, total,
                        round == 0 ? "" : ", after it had run out of memory once and all was released");
        }
        gpuhal_plain_release(&context->opened, &pieces[--count]);
        gpuhal_memory again;
        gpuhal_status status = gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, piece / 2, 0, &again);
        if (status != GPUHAL_OK) {
            gpuhal_fail("after out of memory and a release of %" PRIu64 " bytes, allocate returned %s for half of them",
                        piece, gpuhal_status_text(status));
        }
        gpuhal_plain_release(&context->opened, &again);
        while (count > 0) {
            gpuhal_plain_release(&context->opened, &pieces[--count]);
        }
    }
    expect_usable(context, "out of memory and the release of everything");
}

/* Transfers no bytes, so that only memory kept by the slot allocate is counted. */
static void allocate_release(void *user)
{
    const gpuhal_context *context = user;
    const uint64_t bytes = gpuhal_round_up(4096, gpuhal_copy_unit(context));
    gpuhal_memory memory;
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory), "allocate");
    gpuhal_plain_release(&context->opened, &memory);
}

void gpuhal_check_allocate_1000(gpuhal_context *context)
{
    gpuhal_expect_no_leak("allocating and releasing", 100, 900, allocate_release, context);
}
