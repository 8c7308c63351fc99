/* checks_slots.c: describe, and whether slots, facts and opened devices agree about the device's features. */
#include "check.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The slots by name and position in gpuhal_slots. */
static const struct {
    const char *name;
    size_t offset;
} slots[] = {
#define SLOT(table, name, check) {#name, offsetof(gpuhal_slots, table.name)},
#include "slots.inc"
#undef SLOT
};

/* A slot with two lines does not compile. */
enum {
#define SLOT(table, name, check) SLOT_##name,
#include "slots.inc"
#undef SLOT
    SLOT_COUNT
};

/* The rest of gpuhal_slots is the sizes and versions of seven tables, and six pointers to tables. */
_Static_assert(sizeof(gpuhal_slots) ==
                   SLOT_COUNT * sizeof(void (*)(void)) + 7 * 2 * sizeof(uint32_t) + 6 * sizeof(void *),
               "a slot has no line in slots.inc, or is no longer in plugin.h");
#define SLOT(table, name, check)                                                                                       \
    _Static_assert(sizeof(&gpuhal_check_##check) != 0, "slots.inc names a check that does not exist: " #check);
#include "slots.inc"
#undef SLOT

/* Function pointers have different types, so all are compared as integers. */
static uintptr_t slot_value(const gpuhal_slots *filled, size_t slot)
{
    uintptr_t value = 0;
    memcpy(&value, (const char *)filled + slots[slot].offset, sizeof value);
    return value;
}

static bool is_code(uintptr_t address)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        uint64_t start = 0, end = 0;
        char rights[8] = "";
        found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, rights) == 3 && address >= start &&
                address < end && rights[2] == 'x';
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

/* gpuhal_session_read() has checked the sizes of the tables and their mandatory slots. The core does not offer a group
 * with another version. In a plugin with this version of the ABI, that is a mistake. */
static void expect_slots(const gpuhal_slots *filled, const char *who)
{
#define EXPECT_VERSION(group)                                                                                          \
    if (filled->ops.group != NULL && filled->group.size == 0) {                                                        \
        gpuhal_fail("%s set a table for the group " #group " with the unknown version %u", who,                        \
                    filled->ops.group->version);                                                                       \
    }
    EXPECT_VERSION(queues)
    EXPECT_VERSION(peers)
    EXPECT_VERSION(ranges)
    EXPECT_VERSION(programs)
    EXPECT_VERSION(native)
    EXPECT_VERSION(recordings)
#undef EXPECT_VERSION
    if (filled->recordings.size > 0 && (filled->queues.size == 0 || filled->programs.size == 0)) {
        gpuhal_fail("%s set a table for the group recordings and none for the group %s, which it needs", who,
                    filled->queues.size == 0 ? "queues" : "programs");
    }
    for (size_t s = 0; s < SLOT_COUNT; s++) {
        const uintptr_t value = slot_value(filled, s);
        if (value != 0 && !is_code(value)) {
            gpuhal_fail("%s filled the slot %s with %#" PRIxPTR ", which is not a function", who, slots[s].name, value);
        }
    }
}

/* Reads the slots like the core, before any device is opened. */
void gpuhal_check_describe(gpuhal_context *context)
{
    gpuhal_slots filled;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &filled), "describe");
    if (filled.ops.reserved != 0) {
        gpuhal_fail("describe wrote into the reserved member of gpuhal_ops");
    }
    expect_slots(&filled, "describe");
}

/* Applications pass the index. An application may have started before a device was unplugged. */
void gpuhal_check_describe_unknown(gpuhal_context *context)
{
    const uint32_t wild[] = {context->index + 1, context->index + 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        if (gpuhal_device_snapshot_find(&context->listing, wild[i]) != NULL) {
            continue;
        }
        gpuhal_slots filled;
        gpuhal_status status = gpuhal_session_describe(context, wild[i], &filled);
        if (status != GPUHAL_ERROR_NOT_FOUND) {
            gpuhal_fail("describe returned %s for device %u, which was never listed, instead of not found",
                        gpuhal_status_text(status), wild[i]);
        }
        gpuhal_plugin_device *device = NULL;
        gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &filled), "describe");
        gpuhal_step("open of an unknown device");
        status = context->plugin->open(context->host, context->instance, wild[i], NULL, &device, &filled.ops);
        if (status >= 0) {
            gpuhal_fail("open returned %s for device %u, which was never listed", gpuhal_status_text(status), wild[i]);
        }
    }
}

/* The library reports capabilities from facts and from slots, so the two must not contradict each other. */
static void expect_agree(const gpuhal_context *context, gpuhal_key key, uint64_t without, bool slot, const char *name)
{
    const bool fact = (gpuhal_device_fact(context, key, 0) & ~without) != 0;
    if (fact != slot) {
        gpuhal_fail("the fact %s says %s, and the slot %s is %s", gpuhal_listed_key(key), fact ? "yes" : "none", name,
                    slot ? "there" : "missing");
    }
}

/* If there is no slot write, the core stages bytes through upload memory. A device with neither is unusable. */
void gpuhal_check_slots_facts(gpuhal_context *context)
{
    gpuhal_slots filled;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &filled), "describe");
    /* Exporting a host address needs no slot. */
    expect_agree(context, GPUHAL_FACT_EXPORT_KINDS, 1u << GPUHAL_HANDLE_HOST_POINTER, filled.ops.export_memory != NULL,
                 "export_memory");
    if (filled.native.wrap_memory != NULL && gpuhal_device_fact(context, GPUHAL_FACT_ADOPT_KINDS, 0) == 0) {
        gpuhal_fail("the slot wrap_memory is there, and the fact adopt_kinds names nothing to wrap");
    }
    if (filled.ops.write == NULL &&
        (gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, 0) >> GPUHAL_MEMORY_UPLOAD & 1) == 0) {
        gpuhal_fail("no byte can reach the device: there is neither the slot write nor memory of kind upload");
    }
    if (filled.ops.read == NULL &&
        (gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, 0) >> GPUHAL_MEMORY_READBACK & 1) == 0) {
        gpuhal_fail("no byte can leave the device: there is neither the slot read nor memory of kind readback");
    }
    const gpuhal_listed_fact *formats = gpuhal_listed_find(context->listed, GPUHAL_FACT_PROGRAM_FORMATS);
    const bool has_formats = formats != NULL && formats->kind == LISTED_TEXT;
    if (has_formats != (filled.programs.program_load != NULL)) {
        gpuhal_fail("the fact program_formats is %s, and the slot program_load is %s",
                    has_formats ? "there" : "missing", has_formats ? "missing" : "there");
    }
    const gpuhal_listed_fact *kinds = gpuhal_listed_find(context->listed, GPUHAL_FACT_KERNEL_KINDS);
    if (has_formats && (kinds == NULL || kinds->kind != LISTED_NUMBER)) {
        gpuhal_fail("the device runs programs, and the fact kernel_kinds is missing");
    }
    const uint64_t forms = gpuhal_device_fact(context, GPUHAL_FACT_LAUNCH_FORMS, 0);
    if ((forms & GPUHAL_KERNEL_PREPARED_SIZES) != 0 && filled.programs.kernel_prepare == NULL) {
        gpuhal_fail("the fact launch_forms has GPUHAL_KERNEL_PREPARED_SIZES, and the slot kernel_prepare is missing");
    }
    if (filled.native.native_queue != NULL && filled.queues.queue_create == NULL) {
        gpuhal_fail("the slot native_queue is there, and no queues");
    }
}

/* Applications choose a device by the slots that describe() filled in. An opened device may have fewer, for example if
 * it was adopted, but never more. */
void gpuhal_check_slots_open(gpuhal_context *context)
{
    gpuhal_slots described;
    gpuhal_opened opened;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &described), "describe");
    gpuhal_session_open(context, &opened);
    expect_slots(&opened.slots, "open");
    for (size_t s = 0; s < SLOT_COUNT; s++) {
        const uintptr_t before = slot_value(&described, s), after = slot_value(&opened.slots, s);
        if (after != 0 && after != before) {
            gpuhal_fail("open %s the slot %s; it may only clear slots", before == 0 ? "added" : "replaced",
                        slots[s].name);
        }
    }
    gpuhal_session_close(context, &opened);
}
