/* checks_host.c: memory that both the host and the device can access (host addresses, mappings, registered memory), and
 * the device's health. */
#include "area.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The host writes page-locked memory and the device reads it, with no calls in between except memory_flush() and
 * memory_invalidate(). */
void gpuhal_check_host_address(gpuhal_context *context)
{
    const uint64_t bytes = gpuhal_area_usual(context);
    unsigned char *pattern = gpuhal_own(malloc((size_t)bytes));
    unsigned checked = 0;
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
        if (!gpuhal_states_kind(context, kind)) {
            continue;
        }
        gpuhal_area shared, other;
        gpuhal_area_init(&shared, context, &context->opened, kind, bytes);
        gpuhal_area_init(&other, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
        if (shared.memory.host != NULL) {
            /* Host to device: the check writes through the address and reads with a copy. */
            gpuhal_area_reset(&shared, 1 + kind, ROUTE_ANY);
            gpuhal_area_reset(&other, 11 + kind, ROUTE_ANY);
            gpuhal_plain_copy(&context->opened, &other.memory, 0, &shared.memory, 0, bytes);
            gpuhal_area_changed(&other, 0, shared.expected, bytes);
            gpuhal_area_verify(&other, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                               "bytes written through the host address of %s memory", gpuhal_kind_name(kind));
            /* Device to host: the check writes with a copy and reads through the address. */
            gpuhal_pattern(pattern, bytes, 21 + kind);
            gpuhal_plain_put(&context->opened, &other.memory, 0, pattern, bytes, ROUTE_ANY);
            gpuhal_plain_copy(&context->opened, &shared.memory, 0, &other.memory, 0, bytes);
            gpuhal_area_changed(&shared, 0, pattern, bytes);
            gpuhal_area_verify(&shared, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                               "bytes seen through the host address of %s memory", gpuhal_kind_name(kind));
            checked++;
        }
        gpuhal_area_finish(&other);
        gpuhal_area_finish(&shared);
    }
    free(pattern);
    if (checked == 0) {
        gpuhal_skip("no memory of this device has a host address");
    }
}

static unsigned char *map_range(const gpuhal_area *area, uint64_t offset, uint64_t bytes, uint32_t access)
{
    const gpuhal_opened *opened = area->opened;
    void *pointer = NULL;
    gpuhal_step("the slot map");
    gpuhal_expect_ok(opened->slots.ops.map(opened->device, &area->memory, offset, bytes, access, &pointer), "map");
    if (pointer == NULL) {
        gpuhal_fail("map returned OK and no pointer");
    }
    return pointer;
}

static void unmap(const gpuhal_area *area, void *pointer)
{
    const gpuhal_opened *opened = area->opened;
    gpuhal_step("the slot unmap");
    gpuhal_expect_ok(opened->slots.ops.unmap(opened->device, &area->memory, pointer), "unmap");
}

/* Memory can be mapped for reading, for changing a part, and for overwriting everything without reading first. */
static void map_checked(gpuhal_area *area, uint64_t offset, uint64_t bytes, unsigned char *fresh)
{
    char fault[400];
    unsigned char *pointer = map_range(area, offset, bytes, GPUHAL_ACCESS_READ);
    const gpuhal_claim claim = {.expected = area->expected + offset,
                                .actual = pointer,
                                .total = bytes,
                                .bytes = bytes,
                                .source = area->expected,
                                .source_total = area->bytes,
                                .source_offset = offset};
    if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        gpuhal_fail("a mapping of %" PRIu64 " bytes at offset %" PRIu64 " to read: %s", bytes, offset, fault);
    }
    unmap(area, pointer);

    gpuhal_pattern(fresh, bytes, 300 + offset);
    pointer = map_range(area, offset, bytes, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
    memcpy(pointer, fresh, (size_t)(bytes + 1) / 2); /* the other half must stay unchanged */
    unmap(area, pointer);
    gpuhal_area_changed(area, offset, fresh, (bytes + 1) / 2);
    gpuhal_area_verify(area, (gpuhal_claim){.offset = offset, .bytes = bytes}, ROUTE_ANY,
                       "a mapping of %" PRIu64 " bytes at offset %" PRIu64 " to read and write", bytes, offset);

    gpuhal_pattern(fresh, bytes, 400 + offset);
    pointer = map_range(area, offset, bytes, GPUHAL_ACCESS_WRITE | GPUHAL_ACCESS_DISCARD);
    memcpy(pointer, fresh, (size_t)bytes);
    unmap(area, pointer);
    gpuhal_area_changed(area, offset, fresh, bytes);
    gpuhal_area_verify(area, (gpuhal_claim){.offset = offset, .bytes = bytes}, ROUTE_ANY,
                       "a mapping of %" PRIu64 " bytes at offset %" PRIu64 " to overwrite", bytes, offset);
}

void gpuhal_check_map(gpuhal_context *context)
{
    if (context->opened.slots.ops.map == NULL) {
        gpuhal_skip("the slots map and unmap are not offered");
        return;
    }
    static const uint64_t ranges[][2] = {{0, 1}, {1, 1}, {3, 17}, {4095, 4097}, {4096, 4096}, {64, 1000}};
    gpuhal_area area;
    const uint64_t bytes = gpuhal_area_usual(context), unit = gpuhal_copy_unit(context);
    unsigned char *fresh = gpuhal_own(malloc((size_t)bytes));
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    for (unsigned r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        map_checked(&area, gpuhal_round_up(ranges[r][0], unit), gpuhal_round_up(ranges[r][1], unit), fresh);
    }
    map_checked(&area, 0, bytes, fresh);
    gpuhal_area_finish(&area);
    free(fresh);
}

/* Registering may change the driver's code path, but must not change the result. */
static void use_registered(gpuhal_area *area, unsigned char *memory, uint64_t seed)
{
    const gpuhal_opened *opened = area->opened;
    const gpuhal_slots *slots = &opened->slots;
    if (slots->ops.write != NULL) {
        gpuhal_pattern(memory, area->bytes, seed);
        gpuhal_step("the slot write from registered memory");
        gpuhal_expect_ok(slots->ops.write(opened->device, NULL, &area->memory, 0, memory, area->bytes),
                         "write from registered memory");
        gpuhal_area_changed(area, 0, memory, area->bytes);
        gpuhal_area_verify(area, (gpuhal_claim){.bytes = area->bytes}, ROUTE_NO_WRITE_READ,
                           "write from registered memory");
    }
    if (slots->ops.read != NULL) {
        memset(memory, 0, (size_t)area->bytes);
        gpuhal_step("the slot read to registered memory");
        gpuhal_expect_ok(slots->ops.read(opened->device, NULL, memory, &area->memory, 0, area->bytes),
                         "read to registered memory");
        if (memcmp(memory, area->expected, (size_t)area->bytes) != 0) {
            gpuhal_fail("read to registered memory brought wrong bytes");
        }
    }
}

/* Runs several rounds with the same address, because a driver that does not unregister the memory refuses the second
 * registration. */
void gpuhal_check_register_host(gpuhal_context *context)
{
    const gpuhal_slots *slots = &context->opened.slots;
    if (slots->ops.register_host == NULL) {
        gpuhal_skip("the slots register_host and unregister_host are not offered");
        return;
    }
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    gpuhal_area area;
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE,
                     gpuhal_round_up(gpuhal_area_usual(context), page));
    unsigned char *memory = gpuhal_own(aligned_alloc((size_t)page, (size_t)area.bytes));
    gpuhal_area_reset(&area, 1, ROUTE_NO_WRITE_READ);
    for (unsigned round = 0; round < 3; round++) {
        gpuhal_step("the slot register_host");
        gpuhal_expect_ok(slots->ops.register_host(context->opened.device, memory, area.bytes), "register_host");
        use_registered(&area, memory, 10 + round);
        gpuhal_step("the slot unregister_host");
        gpuhal_expect_ok(slots->ops.unregister_host(context->opened.device, memory), "unregister_host");
    }
    gpuhal_area_finish(&area);
    free(memory);
}

/* Watchdogs call this slot often, so it must be fast. It must return OK if the device works. */
void gpuhal_check_health(gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.ops.query_health != NULL, "query_health")) {
        return;
    }
    gpuhal_step("the slot query_health");
    gpuhal_status status = context->opened.slots.ops.query_health(context->opened.device);
    if (status != GPUHAL_OK) {
        gpuhal_fail("query_health returned %s for a healthy device", gpuhal_status_text(status));
    }
}
