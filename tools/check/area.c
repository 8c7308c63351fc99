/* area.c: see area.h. */
#include "area.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t gpuhal_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

uint64_t gpuhal_copy_unit(const gpuhal_context *context)
{
    uint64_t unit = gpuhal_device_fact(context, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 1);
    return unit == 0 || unit > 65536 ? 1 : unit; /* checks_facts.c reports impossible values */
}

bool gpuhal_states_kind(const gpuhal_context *context, gpuhal_memory_kind kind)
{
    return gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, 0) >> kind & 1;
}

const char *gpuhal_kind_name(gpuhal_memory_kind kind)
{
    static const char *const names[] = {"device", "upload", "readback", "device-mapped", "migrating"};
    return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

gpuhal_status gpuhal_plain_allocate(const gpuhal_opened *opened, gpuhal_memory_kind kind, uint64_t bytes,
                                    uint64_t alignment, gpuhal_memory *out_memory)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind, .bytes = bytes, .alignment = alignment};
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    gpuhal_step("the slot allocate");
    return opened->slots.ops.allocate(opened->device, &alloc, out_memory);
}

uint32_t gpuhal_exportable(const gpuhal_context *context)
{
    return (uint32_t)gpuhal_device_fact(context, GPUHAL_FACT_EXPORTABLE_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
}

gpuhal_memory_kind gpuhal_exportable_first(const gpuhal_context *context)
{
    const uint32_t kinds = gpuhal_exportable(context);
    return kinds ? (gpuhal_memory_kind)__builtin_ctz(kinds) : GPUHAL_MEMORY_DEVICE;
}

void gpuhal_plain_allocate_exported(const gpuhal_context *context, gpuhal_memory_kind memory, gpuhal_handle_kind handle,
                                    uint64_t bytes, gpuhal_alloc *out_alloc, gpuhal_memory *out_memory)
{
    const gpuhal_opened *opened = &context->opened;
    *out_alloc =
        (gpuhal_alloc){.size = sizeof *out_alloc, .kind = memory, .bytes = bytes, .export_kinds = 1u << handle};
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    gpuhal_step("the slot allocate for export");
    const gpuhal_status status = opened->slots.ops.allocate(opened->device, out_alloc, out_memory);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_fail_by(16,
                       "exportable_kinds has memory of kind %s, and allocate refused to make it for an export as a "
                       "handle of kind %u",
                       gpuhal_kind_name(memory), handle);
    }
    gpuhal_expect_ok(status, "allocate for export");
}

void gpuhal_plain_release(const gpuhal_opened *opened, gpuhal_memory *memory)
{
    gpuhal_step("the slot release");
    opened->slots.ops.release(opened->device, memory);
}

void gpuhal_plain_copy(const gpuhal_opened *opened, const gpuhal_memory *to, uint64_t to_offset,
                       const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_step("the slot copy");
    gpuhal_expect_ok(opened->slots.ops.copy(opened->device, NULL, to, to_offset, from, from_offset, bytes), "copy");
}

/* Coherent memory needs no call, and the core never calls these slots for coherent memory. */
static void flush_or_invalidate(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                                uint64_t bytes, bool invalidate)
{
    if ((memory->flags & GPUHAL_MEMORY_HOST_COHERENT) != 0) {
        return;
    }
    if (opened->slots.ops.memory_flush == NULL) {
        gpuhal_fail(
            "memory with a host address is not coherent, and the slots memory_flush and memory_invalidate are missing");
    }
    const char *name = invalidate ? "memory_invalidate" : "memory_flush";
    gpuhal_step(invalidate ? "the slot memory_invalidate" : "the slot memory_flush");
    const gpuhal_slots *slots = &opened->slots;
    gpuhal_expect_ok(
        (invalidate ? slots->ops.memory_invalidate : slots->ops.memory_flush)(opened->device, memory, offset, bytes),
        name);
}

void gpuhal_host_wrote(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    flush_or_invalidate(opened, memory, offset, bytes, false);
}

void gpuhal_host_reads(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    flush_or_invalidate(opened, memory, offset, bytes, true);
}

/* Allocates memory of a kind with a host address; returns false if there is none of that kind. */
static bool stage(const gpuhal_opened *opened, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_memory *out_memory)
{
    gpuhal_status status = gpuhal_plain_allocate(opened, kind, bytes, 0, out_memory);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        return false;
    }
    gpuhal_expect_ok(status, "allocating memory to stage bytes in");
    if (out_memory->host == NULL) {
        gpuhal_fail("memory of kind %s has no host address", gpuhal_kind_name(kind));
    }
    return true;
}

static bool put_staged(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                       const unsigned char *from, uint64_t bytes)
{
    gpuhal_memory staging;
    if (!stage(opened, GPUHAL_MEMORY_UPLOAD, bytes, &staging)) {
        return false;
    }
    memcpy(staging.host, from, (size_t)bytes);
    gpuhal_host_wrote(opened, &staging, 0, bytes);
    gpuhal_plain_copy(opened, memory, offset, &staging, 0, bytes);
    gpuhal_plain_release(opened, &staging);
    return true;
}

static bool get_staged(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to,
                       uint64_t bytes)
{
    gpuhal_memory staging;
    if (!stage(opened, GPUHAL_MEMORY_READBACK, bytes, &staging)) {
        return false;
    }
    gpuhal_plain_copy(opened, &staging, 0, memory, offset, bytes);
    gpuhal_host_reads(opened, &staging, 0, bytes);
    memcpy(to, staging.host, (size_t)bytes);
    gpuhal_plain_release(opened, &staging);
    return true;
}

bool gpuhal_plain_write(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                        const unsigned char *from, uint64_t bytes)
{
    if (opened->slots.ops.write == NULL) {
        return false;
    }
    gpuhal_step("the slot write");
    gpuhal_status status = opened->slots.ops.write(opened->device, NULL, memory, offset, from, bytes);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, "write");
    }
    return status == GPUHAL_OK;
}

bool gpuhal_plain_read(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to,
                       uint64_t bytes)
{
    if (opened->slots.ops.read == NULL) {
        return false;
    }
    gpuhal_step("the slot read");
    gpuhal_status status = opened->slots.ops.read(opened->device, NULL, to, memory, offset, bytes);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, "read");
    }
    return status == GPUHAL_OK;
}

/* Tries the host address first, because only this path does not depend on the slots write and copy. */
void gpuhal_plain_put(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                      const unsigned char *from, uint64_t bytes, gpuhal_route route)
{
    if (memory->host != NULL) {
        memcpy((char *)memory->host + offset, from, (size_t)bytes);
        gpuhal_host_wrote(opened, memory, offset, bytes);
        return;
    }
    const bool staged_first = route == ROUTE_NO_WRITE_READ;
    bool done = staged_first && put_staged(opened, memory, offset, from, bytes);
    done = done || gpuhal_plain_write(opened, memory, offset, from, bytes);
    done = done || (!staged_first && put_staged(opened, memory, offset, from, bytes));
    if (!done) {
        gpuhal_fail("no byte can reach the device: the slot write refuses it, and there is no memory of kind upload");
    }
}

void gpuhal_plain_get(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to,
                      uint64_t bytes, gpuhal_route route)
{
    if (memory->host != NULL) {
        gpuhal_host_reads(opened, memory, offset, bytes);
        memcpy(to, (const char *)memory->host + offset, (size_t)bytes);
        return;
    }
    const bool staged_first = route == ROUTE_NO_WRITE_READ;
    bool done = staged_first && get_staged(opened, memory, offset, to, bytes);
    done = done || gpuhal_plain_read(opened, memory, offset, to, bytes);
    done = done || (!staged_first && get_staged(opened, memory, offset, to, bytes));
    if (!done) {
        gpuhal_fail("no byte can leave the device: the slot read refuses it, and there is no memory of kind readback");
    }
}

/* Four pages, so that ranges can cross pages, plus space after the last offset if the alignment is large. */
uint64_t gpuhal_area_usual(const gpuhal_context *context)
{
    const uint64_t unit = gpuhal_copy_unit(context);
    return gpuhal_round_up(16384, unit) + 32 * unit;
}

void gpuhal_area_lend(gpuhal_area *area, const gpuhal_context *context, const gpuhal_opened *opened,
                      const gpuhal_memory *memory, uint64_t bytes)
{
    *area = (gpuhal_area){.context = context, .opened = opened, .memory = *memory, .bytes = bytes, .lent = true};
    area->expected = gpuhal_own(calloc(1, (size_t)bytes));
    area->before = gpuhal_own(calloc(1, (size_t)bytes));
    area->actual = gpuhal_own(calloc(1, (size_t)bytes));
}

void gpuhal_area_init(gpuhal_area *area, const gpuhal_context *context, const gpuhal_opened *opened,
                      gpuhal_memory_kind kind, uint64_t bytes)
{
    const gpuhal_memory none = {.size = sizeof none};
    gpuhal_area_lend(area, context, opened, &none, bytes);
    area->lent = false;
    gpuhal_expect_ok(gpuhal_plain_allocate(opened, kind, bytes, 0, &area->memory), "allocate");
    if (area->memory.bytes < bytes) {
        gpuhal_fail("allocate gave fewer bytes than asked for: %llu instead of %llu",
                    (unsigned long long)area->memory.bytes, (unsigned long long)bytes);
    }
}

void gpuhal_area_reset(gpuhal_area *area, uint64_t seed, gpuhal_route route)
{
    gpuhal_pattern(area->expected, area->bytes, seed);
    gpuhal_plain_put(area->opened, &area->memory, 0, area->expected, area->bytes, route);
    memcpy(area->before, area->expected, (size_t)area->bytes);
}

void gpuhal_area_finish(gpuhal_area *area)
{
    if (!area->lent) {
        gpuhal_plain_release(area->opened, &area->memory);
    }
    free(area->expected);
    free(area->before);
    free(area->actual);
}

void gpuhal_area_changed(gpuhal_area *area, uint64_t offset, const unsigned char *bytes, uint64_t count)
{
    memcpy(area->before, area->expected, (size_t)area->bytes);
    memmove(area->expected + offset, bytes, (size_t)count);
}

/* Returns whether the bytes on the device are correct but the slot read returns wrong bytes, even when it is called
 * again. Bytes that arrive late are not the slot's fault. */
static bool read_to_blame(gpuhal_area *area, const gpuhal_claim *claim, gpuhal_route route)
{
    char fault[400];
    const gpuhal_opened *opened = area->opened;
    const bool read_first = area->memory.host == NULL && route == ROUTE_ANY && opened->slots.ops.read != NULL;
    if (!read_first || !gpuhal_states_kind(area->context, GPUHAL_MEMORY_READBACK)) {
        return false;
    }
    memset(area->actual, 0xee, (size_t)area->bytes);
    gpuhal_plain_get(opened, &area->memory, 0, area->actual, area->bytes, ROUTE_NO_WRITE_READ);
    const bool right = gpuhal_claim_holds(claim, fault, sizeof fault);
    memset(area->actual, 0xee, (size_t)area->bytes);
    gpuhal_plain_get(opened, &area->memory, 0, area->actual, area->bytes, ROUTE_ANY);
    return right && !gpuhal_claim_holds(claim, fault, sizeof fault);
}

/* Overwrites the buffer for the actual bytes first, so that a read that does nothing does not appear to return the
 * correct bytes of the previous call. */
void gpuhal_area_verify(gpuhal_area *area, gpuhal_claim claim, gpuhal_route route, const char *format, ...)
{
    memset(area->actual, 0xee, (size_t)area->bytes);
    gpuhal_plain_get(area->opened, &area->memory, 0, area->actual, area->bytes, route);
    claim.expected = area->expected;
    claim.before = area->before;
    claim.actual = area->actual;
    claim.total = area->bytes;
    char fault[400];
    if (gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        return;
    }
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (read_to_blame(area, &claim, route)) {
        gpuhal_fail_by(23, "read of %" PRIu64 " bytes after %s: %s. Copied to host memory instead, the bytes are right",
                       area->bytes, what, fault);
    }
    gpuhal_fail("%s: %s", what, fault);
}
