/* loader/slot_tables.c: see slot_tables.h. */
#include "loader/slot_tables.h"

#include <gpuhal/device.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Offsets of tables and slots are in gpuhal_slots, where every table begins with the plugin's size of it. */
static const struct group {
    const char *name;
    size_t pointer; /* offset in gpuhal_ops */
    size_t table;
    uint32_t bytes, version, minimum;
} groups[] = {
    {"queues", offsetof(gpuhal_ops, queues), offsetof(gpuhal_slots, queues), sizeof(gpuhal_queue_ops),
     GPUHAL_QUEUES_VERSION, GPUHAL_QUEUE_OPS_MINIMUM},
    {"peers", offsetof(gpuhal_ops, peers), offsetof(gpuhal_slots, peers), sizeof(gpuhal_peer_ops), GPUHAL_PEERS_VERSION,
     GPUHAL_PEER_OPS_MINIMUM},
    {"ranges", offsetof(gpuhal_ops, ranges), offsetof(gpuhal_slots, ranges), sizeof(gpuhal_range_ops),
     GPUHAL_RANGES_VERSION, GPUHAL_RANGE_OPS_MINIMUM},
    {"programs", offsetof(gpuhal_ops, programs), offsetof(gpuhal_slots, programs), sizeof(gpuhal_program_ops),
     GPUHAL_PROGRAMS_VERSION, GPUHAL_PROGRAM_OPS_MINIMUM},
    {"native", offsetof(gpuhal_ops, native), offsetof(gpuhal_slots, native), sizeof(gpuhal_native_ops),
     GPUHAL_NATIVE_VERSION, GPUHAL_NATIVE_OPS_MINIMUM},
    {"recordings", offsetof(gpuhal_ops, recordings), offsetof(gpuhal_slots, recordings), sizeof(gpuhal_recording_ops),
     GPUHAL_RECORDINGS_VERSION, GPUHAL_RECORDING_OPS_MINIMUM},
};

#define SLOT(table, name)                                                                                              \
    {                                                                                                                  \
#table, #name, offsetof(gpuhal_slots, table), offsetof(gpuhal_slots, table.name)                               \
    }
static const struct slot {
    const char *group, *name;
    size_t table, offset;
} mandatory[] = {
    SLOT(ops, allocate),
    SLOT(ops, release),
    SLOT(ops, copy),
    SLOT(queues, queue_create),
    SLOT(queues, queue_destroy),
    SLOT(queues, queue_flush),
    SLOT(queues, event_create),
    SLOT(queues, event_destroy),
    SLOT(queues, event_record),
    SLOT(queues, event_query),
    SLOT(peers, peer_enable),
    SLOT(peers, peer_disable),
    SLOT(peers, peer_copy),
    SLOT(ranges, range_granularity),
    SLOT(ranges, range_reserve),
    SLOT(ranges, range_commit),
    SLOT(ranges, range_decommit),
    SLOT(ranges, range_release),
    SLOT(programs, program_load),
    SLOT(programs, program_unload),
    SLOT(programs, kernel_create),
    SLOT(programs, kernel_destroy),
    SLOT(programs, launch),
    SLOT(recordings, recording_create),
    SLOT(recordings, recording_set),
    SLOT(recordings, recording_run),
    SLOT(recordings, recording_destroy),
};
/* Each pair is offered as a whole or not at all. */
static const struct slot pairs[][2] = {
    {SLOT(ops, memory_flush), SLOT(ops, memory_invalidate)},
    {SLOT(ops, register_host), SLOT(ops, unregister_host)},
    {SLOT(ops, map), SLOT(ops, unmap)},
    {SLOT(native, native_lock), SLOT(native, native_unlock)},
};

static bool is_set(const gpuhal_slots *slots, const struct slot *slot)
{
    void (*function)(void) = NULL;
    memcpy(&function, (const char *)slots + slot->offset, sizeof function);
    return function != NULL;
}

static bool is_offered(const gpuhal_slots *slots, size_t table)
{
    uint32_t size = 0;
    memcpy(&size, (const char *)slots + table, sizeof size);
    return size > 0;
}

/* A slot that is only partly inside the plugin's size is not copied. */
static bool copy_table(const struct group *group, const gpuhal_ops *ops, gpuhal_slots *out_slots,
                       gpuhal_slots_text *out_text)
{
    const void *table = NULL;
    uint32_t header[2]; /* size and version */
    memcpy(&table, (const char *)ops + group->pointer, sizeof table);
    if (!table) {
        return true;
    }
    memcpy(header, table, sizeof header);
    if (header[1] != group->version) {
        const size_t length = strlen(out_text->unknown);
        snprintf(out_text->unknown + length, sizeof out_text->unknown - length,
                 "%sthe group %s is not offered: its table has version %" PRIu32
                 ", this library supports version %" PRIu32,
                 length ? "; " : "", group->name, header[1], group->version);
        return true;
    }
    if (header[0] < group->minimum) {
        snprintf(out_text->problem, sizeof out_text->problem,
                 "the table of the group %s has %" PRIu32 " bytes; at least %" PRIu32 " are needed", group->name,
                 header[0], group->minimum);
        return false;
    }
    const size_t bytes = header[0] < group->bytes ? header[0] : group->bytes;
    memcpy((char *)out_slots + group->table, table, bytes - bytes % sizeof(void (*)(void)));
    return true;
}

/* An incomplete group is an error, because it cannot be used, and because ignoring it would hide the vendor's
 * mistake. */
static bool check_slots(const gpuhal_slots *slots, char *problem, size_t bytes)
{
    for (size_t i = 0; i < sizeof mandatory / sizeof *mandatory; i++) {
        const struct slot *slot = &mandatory[i];
        if (is_offered(slots, slot->table) && !is_set(slots, slot)) {
            const bool in_group = slot->table != offsetof(gpuhal_slots, ops);
            snprintf(problem, bytes, "%s%s lacks the mandatory slot %s", in_group ? "the group " : "",
                     in_group ? slot->group : "it", slot->name);
            return false;
        }
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const bool first = is_set(slots, &pairs[i][0]);
        if (first != is_set(slots, &pairs[i][1])) {
            snprintf(problem, bytes, "it offers %s without %s", pairs[i][!first].name, pairs[i][first].name);
            return false;
        }
    }
    return true;
}

bool gpuhal_slots_read(const gpuhal_ops *ops, gpuhal_slots *out_slots, gpuhal_slots_text *out_text)
{
    *out_slots = (gpuhal_slots){.ops = *ops};
    out_slots->ops.size = sizeof out_slots->ops; /* the plugin may have changed it */
    *out_text = (gpuhal_slots_text){0};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (!copy_table(&groups[i], ops, out_slots, out_text)) {
            return false;
        }
    }
    return check_slots(out_slots, out_text->problem, sizeof out_text->problem);
}

/* Exporting requires a slot and a kind. Importing and adopting have no slot, so only their facts count. The fact for
 * adopting also lists the types for wrap_memory. */
uint32_t gpuhal_slots_capabilities(const gpuhal_slots *slots, const gpuhal_facts *facts)
{
    const gpuhal_ops *ops = &slots->ops;
    const gpuhal_native_ops *native = &slots->native;
    const struct {
        bool offered;
        uint32_t bit;
    } all[] = {
        {ops->write && ops->read, GPUHAL_CAPABILITY_HOST_COPY},
        {ops->fill, GPUHAL_CAPABILITY_FILL},
        {ops->copy_rect, GPUHAL_CAPABILITY_COPY_RECT},
        {ops->register_host, GPUHAL_CAPABILITY_REGISTER},
        {ops->map, GPUHAL_CAPABILITY_MAP},
        {slots->queues.queue_create, GPUHAL_CAPABILITY_QUEUES},
        {slots->peers.peer_copy, GPUHAL_CAPABILITY_PEER},
        {ops->export_memory && gpuhal_facts_u64(facts, GPUHAL_FACT_EXPORT_KINDS, 0), GPUHAL_CAPABILITY_EXPORT},
        {gpuhal_facts_u64(facts, GPUHAL_FACT_IMPORT_KINDS, 0), GPUHAL_CAPABILITY_IMPORT},
        {slots->ranges.range_reserve, GPUHAL_CAPABILITY_VIRTUAL_MEMORY},
        {slots->programs.program_load, GPUHAL_CAPABILITY_PROGRAMS},
        {native->native_device || native->native_memory || native->native_queue || native->native_event,
         GPUHAL_CAPABILITY_NATIVE},
        {gpuhal_facts_u64(facts, GPUHAL_FACT_ADOPT_KINDS, 0), GPUHAL_CAPABILITY_ADOPT},
    };
    uint32_t bits = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bits |= all[i].offered ? all[i].bit : 0;
    }
    return bits;
}
