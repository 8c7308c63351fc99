/* base/facts.c: see facts.h. One table contains the name and kind of every key. Sets are searched by bisection. */
#include "base/facts.h"

#include "base/records.h"

#include <gpuhal/device.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    gpuhal_key key;
    bool is_text;
    char name[40];
} keys[] = {
    {GPUHAL_FACT_NAME, true, "name"},
    {GPUHAL_FACT_VENDOR, true, "vendor"},
    {GPUHAL_FACT_VENDOR_ID, false, "vendor_id"},
    {GPUHAL_FACT_TYPE, false, "type"},
    {GPUHAL_FACT_DRIVER_VERSION, true, "driver_version"},
    {GPUHAL_FACT_API_VERSION, true, "api_version"},
    {GPUHAL_FACT_PCI_ADDRESS, true, "pci_address"},
    {GPUHAL_FACT_UUID, true, "uuid"},
    {GPUHAL_FACT_LUID, true, "luid"},
    {GPUHAL_FACT_DRM_RENDER_NODE, true, "drm_render_node"},
    {GPUHAL_FACT_PARTITION, true, "partition"},
    {GPUHAL_FACT_NUMA_NODE, false, "numa_node"},
    {GPUHAL_FACT_NATIVE_INDEX, false, "native_index"},
    {GPUHAL_FACT_MEMORY_TOTAL_BYTES, false, "memory_total_bytes"},
    {GPUHAL_FACT_ALLOCATION_MAX_BYTES, false, "allocation_max_bytes"},
    {GPUHAL_FACT_ALLOCATION_MAX_COUNT, false, "allocation_max_count"},
    {GPUHAL_FACT_BINDING_MAX_BYTES, false, "binding_max_bytes"},
    {GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, false, "binding_alignment_bytes"},
    {GPUHAL_FACT_COPY_ALIGNMENT_BYTES, false, "copy_alignment_bytes"},
    {GPUHAL_FACT_FILL_ALIGNMENT_BYTES, false, "fill_alignment_bytes"},
    {GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, false, "import_alignment_bytes"},
    {GPUHAL_FACT_PAGEABLE_ACCESS, false, "pageable_access"},
    {GPUHAL_FACT_UNIFIED_MEMORY, false, "unified_memory"},
    {GPUHAL_FACT_COMPUTE_UNITS, false, "compute_units"},
    {GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, false, "clock_core_max_hertz"},
    {GPUHAL_FACT_SOFTWARE, false, "software"},
    {GPUHAL_FACT_PHYSICAL_QUEUES, false, "physical_queues"},
    {GPUHAL_FACT_MEMORY_KINDS, false, "memory_kinds"},
    {GPUHAL_FACT_EXPORT_KINDS, false, "export_kinds"},
    {GPUHAL_FACT_IMPORT_KINDS, false, "import_kinds"},
    {GPUHAL_FACT_ADOPT_KINDS, false, "adopt_kinds"},
    {GPUHAL_FACT_DRIVER_UUID, true, "driver_uuid"},
    {GPUHAL_FACT_TARGET_ARCHITECTURE, true, "target_architecture"},
    {GPUHAL_FACT_SUBGROUP_SIZE_MIN, false, "subgroup_size_min"},
    {GPUHAL_FACT_SUBGROUP_SIZE_MAX, false, "subgroup_size_max"},
    {GPUHAL_FACT_GROUP_SIZE_MAX, false, "group_size_max"},
    {GPUHAL_FACT_GROUP_SIZE_MAX_X, false, "group_size_max_x"},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Y, false, "group_size_max_y"},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Z, false, "group_size_max_z"},
    {GPUHAL_FACT_GROUP_MEMORY_BYTES, false, "group_memory_bytes"},
    {GPUHAL_FACT_DATA_TYPES, false, "data_types"},
    {GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, false, "memory_bandwidth_bytes_per_second"},
    {GPUHAL_FACT_HOST_VISIBLE_KINDS, false, "host_visible_kinds"},
    {GPUHAL_FACT_HOST_COHERENT_KINDS, false, "host_coherent_kinds"},
    {GPUHAL_FACT_PROGRAM_FORMATS, true, "program_formats"},
    {GPUHAL_FACT_UNLISTED, true, "unlisted"},
    {GPUHAL_FACT_PARTITION_NUMBERS, true, "partition_numbers"},
    {GPUHAL_FACT_COMPUTE_MODE, false, "compute_mode"},
    {GPUHAL_FACT_KERNEL_KINDS, false, "kernel_kinds"},
    {GPUHAL_FACT_LAUNCH_FORMS, false, "launch_forms"},
    {GPUHAL_FACT_EXPORTABLE_KINDS, false, "exportable_kinds"},
    {GPUHAL_VALUE_MEMORY_FREE_BYTES, false, "memory_free_bytes"},
    {GPUHAL_VALUE_MEMORY_USED_BYTES, false, "memory_used_bytes"},
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, false, "temperature_millicelsius"},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, false, "temperature_memory_millicelsius"},
    {GPUHAL_VALUE_POWER_MICROWATTS, false, "power_microwatts"},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, false, "power_limit_microwatts"},
    {GPUHAL_VALUE_ENERGY_MICROJOULES, false, "energy_microjoules"},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, false, "clock_core_hertz"},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, false, "clock_memory_hertz"},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, false, "utilization_core_permille"},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, false, "utilization_memory_permille"},
    {GPUHAL_VALUE_FAN_PERMILLE, false, "fan_permille"},
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, false, "pcie_receive_bytes_per_second"},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, false, "pcie_send_bytes_per_second"},
    {GPUHAL_VALUE_THROTTLE_REASONS, false, "throttle_reasons"},
    {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, false, "ecc_corrected_total"},
    {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, false, "ecc_uncorrected_total"},
    {GPUHAL_VALUE_MEMORY_HELD_BYTES, false, "memory_held_bytes"},
    {GPUHAL_VALUE_MEMORY_RESERVED_BYTES, false, "memory_reserved_bytes"},
    {GPUHAL_VALUE_MEMORY_PROCESS_BYTES, false, "memory_process_bytes"},
    {GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS, false, "temperature_hot_spot_millicelsius"},
    {GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE, false, "utilization_encoder_permille"},
    {GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE, false, "utilization_decoder_permille"},
    {GPUHAL_VALUE_PCIE_GENERATION, false, "pcie_generation"},
    {GPUHAL_VALUE_PCIE_WIDTH, false, "pcie_width"},
    {GPUHAL_VALUE_PCIE_GENERATION_MAX, false, "pcie_generation_max"},
    {GPUHAL_VALUE_PCIE_WIDTH_MAX, false, "pcie_width_max"},
    {GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, false, "pcie_replays_total"},
    {GPUHAL_VALUE_PERFORMANCE_STATE, false, "performance_state"},
    {GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE, false, "fan_revolutions_per_minute"},
    {GPUHAL_VALUE_QUEUES_BUSY_NS, false, "queues_busy_ns"},
    {GPUHAL_VALUE_TRANSFERRED_BYTES, false, "transferred_bytes"},
    {GPUHAL_VALUE_VENDOR_EVENT_CODE, false, "vendor_event_code"},
    {GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, false, "vendor_events_total"},
    {GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES, false, "memory_available_bytes"},
    {GPUHAL_VALUE_MEMORY_REPAIR, false, "memory_repair"},
    {GPUHAL_VALUE_MEMORY_LIMIT_BYTES, false, "memory_limit_bytes"},
    {GPUHAL_VALUE_PERSISTENCE, false, "persistence"},
    {GPUHAL_VALUE_DISPLAY_ACTIVE, false, "display_active"},
    {GPUHAL_VALUE_LINKS_UP, false, "links_up"},
    {GPUHAL_VALUE_LINK_ERRORS_TOTAL, false, "link_errors_total"},
    {GPUHAL_VALUE_FABRIC, false, "fabric"},
    {GPUHAL_LINK_KIND, false, "link_kind"},
    {GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, false, "link_bandwidth_bytes_per_second"},
    {GPUHAL_LINK_PEER_ADVERTISED, false, "link_peer_advertised"},
    {GPUHAL_LINK_GENERATION, false, "link_generation"},
    {GPUHAL_LINK_COUNT, false, "link_count"},
    {GPUHAL_LINK_VERIFIED, false, "link_verified"},
    {GPUHAL_LINK_PATH, false, "link_path"},
    {GPUHAL_LINK_MEASURED_BYTES_PER_SECOND, false, "link_measured_bytes_per_second"},
    {GPUHAL_LINK_MEASURED_LATENCY_NS, false, "link_measured_latency_ns"},
    {GPUHAL_LINK_TRIED_SECONDS, false, "link_tried_seconds"},
    {GPUHAL_LINK_NAME, true, "link_name"},
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

const char *gpuhal_key_name(gpuhal_key key)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].key == key) {
            return keys[i].name;
        }
    }
    return NULL;
}

void gpuhal_key_word(gpuhal_key key, char out_word[GPUHAL_KEY_WORD_BYTES])
{
    const char *name = gpuhal_key_name(key);
    if (name) {
        snprintf(out_word, GPUHAL_KEY_WORD_BYTES, "%s", name);
    } else {
        snprintf(out_word, GPUHAL_KEY_WORD_BYTES, "key 0x%" PRIx32, key);
    }
}

uint32_t gpuhal_key_is_text(gpuhal_key key)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].key == key) {
            return keys[i].is_text;
        }
    }
    return 0;
}

const char *gpuhal_missing_name(gpuhal_missing reason)
{
    static const char names[][14] = {"unknown", "not supported", "no permission", "asleep", "timed out",
                                     "failed",  "not read",      "reset needed",  "lost"};
    return names[reason < sizeof names / sizeof *names ? reason : 0];
}

static size_t place_of(const gpuhal_facts *facts, gpuhal_key key)
{
    size_t low = 0, high = facts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (facts->list[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Copies the string before freeing the old fact, since the string may belong to that fact. If out of memory, marks the
 * set as failed and leaves it unchanged. */
static void set(gpuhal_facts *facts, gpuhal_fact fact, const char *text)
{
    fact.text = text ? gpuhal_text_copy(text) : NULL;
    if (text && !fact.text) {
        facts->failed = true;
        return;
    }
    size_t place = place_of(facts, fact.key);
    if (place < facts->count && facts->list[place].key == fact.key) {
        free(facts->list[place].text);
        facts->list[place] = fact;
        return;
    }
    if (facts->count == facts->capacity) {
        size_t capacity = facts->capacity ? 2 * facts->capacity : 32;
        gpuhal_fact *list = realloc(facts->list, capacity * sizeof *list);
        if (!list) {
            free(fact.text);
            facts->failed = true;
            return;
        }
        facts->list = list;
        facts->capacity = capacity;
    }
    memmove(facts->list + place + 1, facts->list + place, (facts->count - place) * sizeof *facts->list);
    facts->list[place] = fact;
    facts->count++;
}

void gpuhal_facts_set_u64(gpuhal_facts *facts, gpuhal_key key, uint64_t value)
{
    set(facts, (gpuhal_fact){.key = key, .u64 = value}, NULL);
}

void gpuhal_facts_set_text(gpuhal_facts *facts, gpuhal_key key, const char *value)
{
    set(facts, (gpuhal_fact){.key = key}, value);
}

void gpuhal_facts_set_missing(gpuhal_facts *facts, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    set(facts, (gpuhal_fact){.key = key, .missing = reason}, why ? why : "");
}

void gpuhal_facts_set_source(gpuhal_facts *facts, gpuhal_key key, const char *source)
{
    size_t place = place_of(facts, key);
    if (place < facts->count && facts->list[place].key == key) {
        snprintf(facts->list[place].source, sizeof facts->list[place].source, "%s", source);
    }
}

const gpuhal_fact *gpuhal_facts_find(const gpuhal_facts *facts, gpuhal_key key)
{
    size_t place = place_of(facts, key);
    return place < facts->count && facts->list[place].key == key ? &facts->list[place] : NULL;
}

uint64_t gpuhal_facts_u64(const gpuhal_facts *facts, gpuhal_key key, uint64_t otherwise)
{
    const gpuhal_fact *fact = gpuhal_facts_find(facts, key);
    return fact && !fact->missing && !fact->text ? fact->u64 : otherwise;
}

const char *gpuhal_facts_text(const gpuhal_facts *facts, gpuhal_key key)
{
    const gpuhal_fact *fact = gpuhal_facts_find(facts, key);
    return fact && !fact->missing ? fact->text : NULL;
}

void gpuhal_facts_finish(gpuhal_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->list[i].text);
    }
    free(facts->list);
    *facts = (gpuhal_facts){0};
}

void gpuhal_facts_free(gpuhal_facts *facts)
{
    if (facts) {
        gpuhal_facts_finish(facts);
        free(facts);
    }
}

static void write_key(gpuhal_key key, const char *form, char *out, size_t capacity)
{
    const char *name = gpuhal_key_name(key);
    if (name) {
        snprintf(out, capacity, "%s.%s", form, name);
    } else {
        snprintf(out, capacity, "%s.0x%" PRIx32, form, key);
    }
}

void gpuhal_facts_write(const gpuhal_facts *facts, gpuhal_text *to)
{
    char key[64];
    for (size_t i = 0; i < facts->count; i++) {
        const gpuhal_fact *fact = &facts->list[i];
        if (fact->missing) {
            char reason[16];
            snprintf(reason, sizeof reason, "%" PRIu32, fact->missing);
            gpuhal_text value = {0};
            gpuhal_text_printf(&value, "%s %s", reason, fact->text ? fact->text : "");
            write_key(fact->key, "missing", key, sizeof key);
            gpuhal_records_write(to, key, gpuhal_text_get(&value));
            to->failed = to->failed || value.failed;
            gpuhal_text_finish(&value);
        } else if (fact->text) {
            write_key(fact->key, "text", key, sizeof key);
            gpuhal_records_write(to, key, fact->text);
        } else {
            write_key(fact->key, "u64", key, sizeof key);
            gpuhal_records_write_u64(to, key, fact->u64);
        }
    }
}

/* Parses a name from the table, or 0x and up to eight digits for a key that only the plugin knows. Facts are usually
 * written in table order, so the search begins at `from`, the expected position. */
static bool read_key(const char *name, size_t from, gpuhal_key *out_key)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const size_t at = (from + i) % KEY_COUNT;
        if (strcmp(keys[at].name, name) == 0) {
            *out_key = keys[at].key;
            return true;
        }
    }
    if (strncmp(name, "0x", 2) != 0 || !name[2] || strlen(name) > 10 ||
        strspn(name + 2, "0123456789abcdef") != strlen(name + 2)) {
        return false;
    }
    *out_key = (gpuhal_key)strtoul(name + 2, NULL, 16);
    return true;
}

static bool read_missing(gpuhal_facts *facts, gpuhal_key key, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    char number[8];
    uint64_t reason = 0;
    if (digits == 0 || digits >= sizeof number || (value[digits] && value[digits] != ' ')) {
        return false;
    }
    memcpy(number, value, digits);
    number[digits] = 0;
    if (!gpuhal_records_u64(number, &reason) || reason < GPUHAL_MISSING_NOT_SUPPORTED || reason > GPUHAL_MISSING_LOST) {
        return false;
    }
    gpuhal_facts_set_missing(facts, key, (gpuhal_missing)reason, value[digits] ? value + digits + 1 : "");
    return true;
}

bool gpuhal_facts_read_pair(gpuhal_facts *facts, const char *name, const char *value)
{
    gpuhal_key key = 0;
    const char *dot = strchr(name, '.');
    if (!dot || !read_key(dot + 1, facts->count, &key)) {
        return false;
    }
    size_t form = (size_t)(dot - name);
    if (form == 3 && memcmp(name, "u64", form) == 0) {
        uint64_t number = 0;
        if (!gpuhal_records_u64(value, &number)) {
            return false;
        }
        gpuhal_facts_set_u64(facts, key, number);
        return true;
    }
    if (form == 4 && memcmp(name, "text", form) == 0) {
        gpuhal_facts_set_text(facts, key, value);
        return true;
    }
    return form == 7 && memcmp(name, "missing", form) == 0 && read_missing(facts, key, value);
}
