/* registry/fields.c: see fields.h. Reading checks the text against the table: required members exist, numbers are in
 * range, and keys are unique, except the keys of lists. Callers need no such checks. */
#include "registry/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX  4096u
#define VERSIONS_MAX 16u
#define TEXTS_MAX    1024u

typedef enum { TEXT, NUMBER32, NUMBER64, SIGNED32, TEXTS, VERSIONS, DEVICES } field_type;

typedef struct field {
    char name[24];
    size_t offset;
    field_type type;
    bool needed;
    uint64_t most;
} field;

#define PLUGIN(member)    offsetof(gpuhal_database_plugin, member)
#define PHYSICAL(member)  offsetof(gpuhal_database_physical, member)
#define INTERFACE(member) offsetof(gpuhal_database_interface, member)
#define LINK(member)      offsetof(gpuhal_database_link, member)
#define FAULT(member)     offsetof(gpuhal_database_fault, member)

static const field plugin_fields[] = {
    {"generation", PLUGIN(generation), NUMBER64, true, UINT64_MAX},
    {"identity", PLUGIN(identity), TEXT, true, 0},
    {"key", PLUGIN(key), TEXTS, false, 0},
    {"name", PLUGIN(name), TEXT, true, 0},
    {"file", PLUGIN(file), TEXT, false, 0},
    {"version", PLUGIN(version), TEXT, false, 0},
    {"driver", PLUGIN(driver), TEXT, false, 0},
    {"state", PLUGIN(state), NUMBER32, true, GPUHAL_PLUGIN_QUARANTINED},
    {"stage", PLUGIN(stage), NUMBER32, true, GPUHAL_STAGE_DONE},
    {"status", PLUGIN(status), SIGNED32, false, 0},
    {"signal", PLUGIN(signal), NUMBER32, false, 128},
    {"reason", PLUGIN(reason), TEXT, false, 0},
    {"output", PLUGIN(output), TEXTS, false, 0},
    {"probed_at", PLUGIN(probed_at), NUMBER64, false, UINT64_MAX},
    {"deadline_ns", PLUGIN(deadline_ns), NUMBER64, false, UINT64_MAX},
    {"device", PLUGIN(devices), DEVICES, false, 0},
};
static const field physical_fields[] = {
    {"generation", PHYSICAL(generation), NUMBER64, true, UINT64_MAX},
    {"number", PHYSICAL(number), NUMBER32, true, UINT32_MAX - 1},
    {"host", PHYSICAL(host), NUMBER32, false, 1},
    {"vendor_id", PHYSICAL(vendor_id), NUMBER32, false, UINT32_MAX},
    {"pci", PHYSICAL(pci), TEXT, false, 0},
    {"name", PHYSICAL(name), TEXT, false, 0},
    {"first_seen", PHYSICAL(first_seen), NUMBER64, false, UINT64_MAX},
    {"last_seen", PHYSICAL(last_seen), NUMBER64, false, UINT64_MAX},
};
static const field interface_fields[] = {
    {"generation", INTERFACE(generation), NUMBER64, true, UINT64_MAX},
    {"number", INTERFACE(number), NUMBER32, true, UINT32_MAX - 1},
    {"physical", INTERFACE(physical), NUMBER32, true, UINT32_MAX - 1},
    {"present", INTERFACE(present), NUMBER32, false, 1},
    {"backend", INTERFACE(backend), TEXT, true, 0},
    {"partition", INTERFACE(partition), TEXT, false, 0},
    {"name", INTERFACE(name), TEXT, false, 0},
    {"uuid", INTERFACE(uuid), TEXT, false, 0},
    {"first_seen", INTERFACE(first_seen), NUMBER64, false, UINT64_MAX},
    {"last_seen", INTERFACE(last_seen), NUMBER64, false, UINT64_MAX},
    {"driver", INTERFACE(drivers), VERSIONS, false, 0},
};
static const field link_fields[] = {
    {"generation", LINK(generation), NUMBER64, true, UINT64_MAX},
    {"from", LINK(from), NUMBER32, true, UINT32_MAX - 1},
    {"to", LINK(to), NUMBER32, true, UINT32_MAX - 1},
    {"from_driver", LINK(from_driver), TEXT, false, 0},
    {"to_driver", LINK(to_driver), TEXT, false, 0},
    {"verified", LINK(verified), NUMBER32, true, 1},
    {"path", LINK(path), NUMBER64, false, UINT64_MAX},
    {"bytes_per_second", LINK(bytes_per_second), NUMBER64, false, UINT64_MAX},
    {"latency_ns", LINK(latency_ns), NUMBER64, false, UINT64_MAX},
    {"reason", LINK(reason), TEXT, false, 0},
    {"tried", LINK(tried), NUMBER64, false, UINT64_MAX},
};
static const field fault_fields[] = {
    {"generation", FAULT(generation), NUMBER64, true, UINT64_MAX},
    {"kind", FAULT(kind), NUMBER32, true, GPUHAL_FAULT_OUT_OF_MEMORY},
    {"interface", FAULT(iface), NUMBER32, false, UINT32_MAX - 1},
    {"plugin", FAULT(plugin), TEXT, false, 0},
    {"driver_version", FAULT(driver_version), TEXT, false, 0},
    {"detail", FAULT(detail), TEXT, false, 0},
    {"count", FAULT(count), NUMBER64, true, UINT64_MAX},
    {"first", FAULT(first), NUMBER64, false, UINT64_MAX},
    {"last", FAULT(last), NUMBER64, false, UINT64_MAX},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
static const struct {
    const char *name;
    const field *fields;
    size_t count, size;
} kinds[GPUHAL_DATABASE_KINDS] = {
    [GPUHAL_DATABASE_PLUGIN] = {"plugin", plugin_fields, COUNT(plugin_fields), sizeof(gpuhal_database_plugin)},
    [GPUHAL_DATABASE_PHYSICAL] = {"physical", physical_fields, COUNT(physical_fields),
                                  sizeof(gpuhal_database_physical)},
    [GPUHAL_DATABASE_INTERFACE] = {"interface", interface_fields, COUNT(interface_fields),
                                   sizeof(gpuhal_database_interface)},
    [GPUHAL_DATABASE_LINK] = {"link", link_fields, COUNT(link_fields), sizeof(gpuhal_database_link)},
    [GPUHAL_DATABASE_FAULT] = {"fault", fault_fields, COUNT(fault_fields), sizeof(gpuhal_database_fault)},
};

size_t gpuhal_record_size(gpuhal_database_kind kind)
{
    return kinds[kind].size;
}

gpuhal_database_kind gpuhal_record_kind_of(const char *name)
{
    gpuhal_database_kind kind = 0;
    while (kind < GPUHAL_DATABASE_KINDS && strcmp(kinds[kind].name, name) != 0) {
        kind++;
    }
    return kind;
}

/* ---- writing */

static void write_devices(const gpuhal_listed_devices *devices, gpuhal_text *to)
{
    for (size_t i = 0; i < devices->count; i++) {
        gpuhal_records_write_u64(to, "device", devices->list[i].index);
        gpuhal_records_write_u64(to, "capabilities", devices->list[i].capabilities);
        gpuhal_facts_write(&devices->list[i].facts, to);
        to->failed = to->failed || devices->list[i].facts.failed;
    }
}

static void write_versions(const char *name, const gpuhal_database_versions *versions, gpuhal_text *to)
{
    for (size_t i = 0; i < versions->count; i++) {
        char *value = gpuhal_text_format("%" PRIu64 " %s", versions->list[i].since, versions->list[i].version);
        if (value) {
            gpuhal_records_write(to, name, value);
        }
        to->failed = to->failed || !value;
        free(value);
    }
}

static void write_field(const field *at, const void *member, gpuhal_text *to)
{
    switch (at->type) {
    case TEXT: {
        const char *text = *(char *const *)member;
        if (text) {
            gpuhal_records_write(to, at->name, text);
        }
        break;
    }
    case NUMBER32:
        gpuhal_records_write_u64(to, at->name, *(const uint32_t *)member);
        break;
    case NUMBER64:
        gpuhal_records_write_u64(to, at->name, *(const uint64_t *)member);
        break;
    case SIGNED32:
        gpuhal_text_printf(to, "%s = %" PRId32 "\n", at->name, *(const int32_t *)member);
        break;
    case TEXTS: {
        const gpuhal_texts *texts = member;
        for (size_t i = 0; i < texts->count; i++) {
            gpuhal_records_write(to, at->name, texts->list[i]);
        }
        to->failed = to->failed || texts->failed;
        break;
    }
    case VERSIONS:
        write_versions(at->name, member, to);
        break;
    case DEVICES:
        write_devices(member, to);
        break;
    }
}

void gpuhal_record_write(gpuhal_database_kind kind, const void *record, gpuhal_text *to)
{
    gpuhal_records_write_kind(to, kinds[kind].name);
    for (size_t i = 0; i < kinds[kind].count; i++) {
        write_field(&kinds[kind].fields[i], (const char *)record + kinds[kind].fields[i].offset, to);
    }
}

/* ---- reading */

static gpuhal_read_result good_if(bool good)
{
    return good ? GPUHAL_READ_OK : GPUHAL_READ_DAMAGED;
}

static gpuhal_read_result read_text(char **to, const char *value)
{
    if (*to) {
        return GPUHAL_READ_DAMAGED;
    }
    *to = gpuhal_text_copy(value);
    return *to ? GPUHAL_READ_OK : GPUHAL_READ_NO_MEMORY;
}

static gpuhal_read_result read_texts(gpuhal_texts *to, const char *value)
{
    if (to->count >= TEXTS_MAX) {
        return GPUHAL_READ_DAMAGED;
    }
    gpuhal_texts_add(to, value);
    return to->failed ? GPUHAL_READ_NO_MEMORY : GPUHAL_READ_OK;
}

static void *grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return list;
    }
    size_t more = *capacity ? 2 * *capacity : 4;
    void *grown = realloc(list, more * size);
    *capacity = grown ? more : *capacity;
    return grown;
}

static gpuhal_read_result read_version(gpuhal_database_versions *to, const char *value)
{
    const char *blank = strchr(value, ' ');
    char since[24] = "";
    gpuhal_database_version version = {0};
    if (!blank || (size_t)(blank - value) >= sizeof since || to->count >= VERSIONS_MAX) {
        return GPUHAL_READ_DAMAGED;
    }
    memcpy(since, value, (size_t)(blank - value));
    if (!gpuhal_records_u64(since, &version.since)) {
        return GPUHAL_READ_DAMAGED;
    }
    gpuhal_database_version *list = grow(to->list, to->count, &to->capacity, sizeof *list);
    version.version = list ? gpuhal_text_copy(blank + 1) : NULL;
    to->list = list ? list : to->list;
    if (!version.version) {
        return GPUHAL_READ_NO_MEMORY;
    }
    to->list[to->count++] = version;
    return GPUHAL_READ_OK;
}

static gpuhal_read_result read_device(gpuhal_listed_devices *to, const char *value)
{
    uint64_t index = 0;
    if (!gpuhal_records_u64(value, &index) || index > UINT32_MAX || to->count >= DEVICES_MAX) {
        return GPUHAL_READ_DAMAGED;
    }
    return gpuhal_listed_devices_add(to, (uint32_t)index) ? GPUHAL_READ_OK : GPUHAL_READ_NO_MEMORY;
}

/* Pairs after a `device` pair belong to that device, up to the next `device` pair or the end of the record. */
static gpuhal_read_result read_of_device(gpuhal_listed_devices *devices, const char *key, const char *value)
{
    gpuhal_listed_device *device = &devices->list[devices->count - 1];
    uint64_t number = 0;
    if (strcmp(key, "device") == 0) {
        return read_device(devices, value);
    }
    if (strcmp(key, "capabilities") == 0) {
        bool good = gpuhal_records_u64(value, &number) && number <= UINT32_MAX;
        device->capabilities = (uint32_t)number;
        return good_if(good);
    }
    bool good = gpuhal_facts_read_pair(&device->facts, key, value);
    return device->facts.failed ? GPUHAL_READ_NO_MEMORY : good_if(good);
}

static gpuhal_read_result read_field(const field *at, void *member, const char *value)
{
    uint64_t number = 0;
    switch (at->type) {
    case TEXT:
        return read_text(member, value);
    case NUMBER32:
        if (!gpuhal_records_u64(value, &number) || number > at->most) {
            return GPUHAL_READ_DAMAGED;
        }
        *(uint32_t *)member = (uint32_t)number;
        return GPUHAL_READ_OK;
    case NUMBER64:
        return good_if(gpuhal_records_u64(value, member));
    case SIGNED32:
        return good_if(gpuhal_records_i32(value, member));
    case TEXTS:
        return read_texts(member, value);
    case VERSIONS:
        return read_version(member, value);
    case DEVICES:
        return read_device(member, value);
    }
    return GPUHAL_READ_DAMAGED;
}

static bool may_repeat(const field *at)
{
    return at->type == TEXTS || at->type == VERSIONS || at->type == DEVICES;
}

/* Bit i of `seen` is set after field i was read. */
static gpuhal_read_result read_pair(gpuhal_database_kind kind, void *record, const char *key, const char *value,
                                    uint32_t *seen)
{
    gpuhal_database_plugin *plugin = kind == GPUHAL_DATABASE_PLUGIN ? record : NULL;
    if (plugin && plugin->devices.count > 0) {
        return read_of_device(&plugin->devices, key, value);
    }
    for (size_t i = 0; i < kinds[kind].count; i++) {
        const field *at = &kinds[kind].fields[i];
        if (strcmp(at->name, key) == 0) {
            if ((*seen & 1u << i) && !may_repeat(at)) {
                return GPUHAL_READ_DAMAGED;
            }
            *seen |= 1u << i;
            return read_field(at, (char *)record + at->offset, value);
        }
    }
    return GPUHAL_READ_DAMAGED;
}

static bool has_what_is_needed(gpuhal_database_kind kind, uint32_t seen)
{
    for (size_t i = 0; i < kinds[kind].count; i++) {
        if (kinds[kind].fields[i].needed && !(seen & 1u << i)) {
            return false;
        }
    }
    return true;
}

gpuhal_read_result gpuhal_record_read(gpuhal_database_kind kind, const char *text, size_t bytes, void *record)
{
    gpuhal_records_reader reader;
    gpuhal_read_result result = GPUHAL_READ_OK;
    uint32_t seen = 0;
    gpuhal_records_begin(&reader, text, bytes);
    gpuhal_records_item item = gpuhal_records_next(&reader);
    result = good_if(item == GPUHAL_RECORDS_KIND && strcmp(reader.name, kinds[kind].name) == 0);
    while (result == GPUHAL_READ_OK && (item = gpuhal_records_next(&reader)) == GPUHAL_RECORDS_PAIR) {
        result = read_pair(kind, record, reader.name, gpuhal_text_get(&reader.value), &seen);
    }
    if (result == GPUHAL_READ_OK && item != GPUHAL_RECORDS_END) {
        result = reader.value.failed ? GPUHAL_READ_NO_MEMORY : GPUHAL_READ_DAMAGED;
    }
    gpuhal_records_finish(&reader);
    return result == GPUHAL_READ_OK ? good_if(has_what_is_needed(kind, seen)) : result;
}

/* ---- freeing */

static void finish_versions(gpuhal_database_versions *versions)
{
    for (size_t i = 0; i < versions->count; i++) {
        free(versions->list[i].version);
    }
    free(versions->list);
}

void gpuhal_record_finish(gpuhal_database_kind kind, void *record)
{
    for (size_t i = 0; i < kinds[kind].count; i++) {
        const field *at = &kinds[kind].fields[i];
        void *member = (char *)record + at->offset;
        if (at->type == TEXT) {
            free(*(char **)member);
        } else if (at->type == TEXTS) {
            gpuhal_texts_finish(member);
        } else if (at->type == VERSIONS) {
            finish_versions(member);
        } else if (at->type == DEVICES) {
            gpuhal_listed_devices_finish(member);
        }
    }
    memset(record, 0, kinds[kind].size);
}
