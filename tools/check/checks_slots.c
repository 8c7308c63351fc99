/* checks_slots.c: describe, and whether slots, facts and opened devices agree about the device's features. */
#include "check.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The slots by name and position. A plugin must fill either all slots of a group or none. Group 0 means no group. */
enum {
    GROUP_NONE,
    GROUP_COHERENCE,
    GROUP_REGISTER,
    GROUP_MAP,
    GROUP_QUEUES,
    GROUP_PEERS,
    GROUP_RANGES,
    GROUP_PROGRAMS,
    GROUP_NATIVE_LOCK,
    GROUP_COUNT
};
static const char *const group_names[] = {"",
                                          "memory_flush and memory_invalidate",
                                          "register_host and unregister_host",
                                          "map and unmap",
                                          "queues and events",
                                          "peers",
                                          "virtual memory",
                                          "programs",
                                          "native_lock and native_unlock"};

static const struct {
    const char *name;
    size_t offset;
    int group;
} slots[] = {
#define SLOT(name, group, check) {#name, offsetof(gpuhal_ops, name), group},
#include "slots.inc"
#undef SLOT
};

enum {
#define SLOT(name, group, check) SLOT_##name,
#include "slots.inc"
#undef SLOT
    SLOT_COUNT
};

#define SLOT_OFFSET(number) (offsetof(gpuhal_ops, allocate) + (number) * sizeof(void (*)(void)))
_Static_assert(sizeof(gpuhal_ops) == SLOT_OFFSET(SLOT_COUNT), "a slot of gpuhal_ops has no line in slots.inc");
#define SLOT(name, group, check)                                                                                       \
    _Static_assert(offsetof(gpuhal_ops, name) == SLOT_OFFSET(SLOT_##name),                                             \
                   "slots.inc is not in the order of gpuhal_ops: " #name);                                             \
    _Static_assert(sizeof(&gpuhal_check_##check) != 0, "slots.inc names a check that does not exist: " #check);
#include "slots.inc"
#undef SLOT

/* Function pointers have different types, so all are compared as integers. */
static uintptr_t slot_value(const gpuhal_slots *filled, size_t slot)
{
    uintptr_t value = 0;
    memcpy(&value, filled->space + slots[slot].offset, sizeof value);
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

/* The core refuses a device with an incomplete group, because it uses a group only as a whole: with queue_create it
 * needs all seven slots of the queues. */
static void expect_slots(const gpuhal_slots *filled, const char *who)
{
    unsigned in_group[GROUP_COUNT] = {0}, of_group[GROUP_COUNT] = {0};
    const char *first_missing[GROUP_COUNT] = {0};
    for (size_t s = 0; s < SLOT_COUNT; s++) {
        const uintptr_t value = slot_value(filled, s);
        const int group = slots[s].group;
        if (value == 0 && s < 3) {
            gpuhal_fail("%s left the mandatory slot %s empty", who, slots[s].name);
        }
        if (value != 0 && !is_code(value)) {
            gpuhal_fail("%s filled the slot %s with %#" PRIxPTR ", which is not a function", who, slots[s].name, value);
        }
        of_group[group]++;
        in_group[group] += value != 0;
        first_missing[group] = value == 0 && first_missing[group] == NULL ? slots[s].name : first_missing[group];
    }
    for (int g = 1; g < GROUP_COUNT; g++) {
        if (in_group[g] != 0 && in_group[g] != of_group[g]) {
            gpuhal_fail("%s filled %u of the %u slots for %s, and not %s; a group is offered whole or not at all", who,
                        in_group[g], of_group[g], group_names[g], first_missing[g]);
        }
    }
}

/* Reads the slots like the core, before any device is opened. */
void gpuhal_check_describe(gpuhal_context *context)
{
    gpuhal_slots filled;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &filled), "describe");
    /* While the ABI is 0.x both sides have the same slots. */
    for (size_t i = sizeof(gpuhal_ops); i < GPUHAL_OPS_SPACE; i++) {
        if (filled.space[i] != 0) {
            gpuhal_fail("describe wrote behind the last slot of ABI %u.%u, at byte %zu", GPUHAL_ABI_MAJOR,
                        GPUHAL_ABI_MINOR, i);
        }
    }
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
    if (filled.ops.wrap_memory != NULL && gpuhal_device_fact(context, GPUHAL_FACT_ADOPT_KINDS, 0) == 0) {
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
    if (has_formats != (filled.ops.program_load != NULL)) {
        gpuhal_fail("the fact program_formats is %s, and the slot program_load is %s",
                    has_formats ? "there" : "missing", has_formats ? "missing" : "there");
    }
    const gpuhal_listed_fact *kinds = gpuhal_listed_find(context->listed, GPUHAL_FACT_KERNEL_KINDS);
    if (has_formats && (kinds == NULL || kinds->kind != LISTED_NUMBER)) {
        gpuhal_fail("the device runs programs, and the fact kernel_kinds is missing");
    }
    if (filled.ops.program_compiled != NULL && filled.ops.program_load == NULL) {
        gpuhal_fail("the slot program_compiled is there, and no programs");
    }
    if (filled.ops.native_queue != NULL && filled.ops.queue_create == NULL) {
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
