/* fields.c: see fields.h. */
#include "fields.h"
#include "advice.h"
#include "processes.h"
#include "uuid.h"

#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Macros for columns that contain a string of the row, a fact, or a fact or value that is also a metric. */
#define TEXT(NAME, FIELD, HELP)                                                                                        \
    {                                                                                                                  \
        NAME, PROBE_ORIGIN_##FIELD, 0, PROBE_UNIT_TEXT, false, NULL, "", "", HELP                                      \
    }
#define FACT(NAME, KEY, UNIT, HELP)                                                                                    \
    {                                                                                                                  \
        NAME, PROBE_ORIGIN_KEY, GPUHAL_FACT_##KEY, PROBE_UNIT_##UNIT, false, NULL, "", "", HELP                        \
    }
#define GAUGE(NAME, KEY, UNIT, FAMILY, LABEL, OF, HELP)                                                                \
    {                                                                                                                  \
        NAME, PROBE_ORIGIN_KEY, GPUHAL_##KEY, PROBE_UNIT_##UNIT, false, FAMILY, LABEL, OF, HELP                        \
    }
#define COUNTER(NAME, KEY, UNIT, FAMILY, LABEL, OF, HELP)                                                              \
    {                                                                                                                  \
        NAME, PROBE_ORIGIN_KEY, GPUHAL_##KEY, PROBE_UNIT_##UNIT, true, FAMILY, LABEL, OF, HELP                         \
    }

static const char temperature[] = "Temperature, by sensor.", clock_rate[] = "Clock rate now.",
                  used[] = "Share of the time that this part was busy.",
                  ecc[] = "Memory errors in the lifetime of the device.";

static const gpuhal_probe_field columns[] = {
    TEXT("id", ID, "Id of the device: backend and number."),
    TEXT("name", NAME, "Model."),
    TEXT("state", STATE, "Whether the hardware is ready, or why not."),
    TEXT("type", TYPE, "Type of the device."),
    TEXT("backend", BACKEND, "Backend of the preferred interface."),
    TEXT("physical", PHYSICAL, "Number of the physical device in the registry."),
    TEXT("pci", PCI, "PCI address."),
    FACT("uuid", UUID, TEXT, "UUID, as the vendor's tools write it."),
    FACT("partition", PARTITION, TEXT, "Partition of a physical device."),
    TEXT("vendor", VENDOR, "Manufacturer."),
    FACT("architecture", TARGET_ARCHITECTURE, TEXT, "Instruction set, as compilers name it."),
    FACT("driver", DRIVER_VERSION, TEXT, "Version of the driver."),
    FACT("api", API_VERSION, TEXT, "Version of the API on the device."),
    TEXT("kernel_driver", KERNEL_DRIVER, "Kernel driver that is bound to the hardware."),
    TEXT("drm_card", DRM_CARD, "DRM device node."),
    TEXT("render_node", RENDER_NODE, "DRM render node."),
    TEXT("vendor_node", VENDOR_NODE, "Device node of the vendor's driver."),
    FACT("numa_node", NUMA_NODE, NONE, "NUMA node."),
    TEXT("local_cpus", LOCAL_CPUS, "Processors that are closest."),
    FACT("compute_units", COMPUTE_UNITS, NONE, "Compute units, by the API's own count."),
    GAUGE("memory_total", FACT_MEMORY_TOTAL_BYTES, BYTES, "memory_total", "", "", "Device memory in all."),
    GAUGE("memory_used", VALUE_MEMORY_USED_BYTES, BYTES, "memory_used", "", "", "Device memory in use."),
    GAUGE("memory_free", VALUE_MEMORY_FREE_BYTES, BYTES, "memory_free", "", "", "Device memory that is free."),
    GAUGE("memory_reserved", VALUE_MEMORY_RESERVED_BYTES, BYTES, "memory_reserved", "", "",
          "Device memory that the driver keeps for itself."),
    GAUGE("utilization", VALUE_UTILIZATION_CORE_PERMILLE, RATIO, "utilization", "engine", "core", used),
    GAUGE("utilization_memory", VALUE_UTILIZATION_MEMORY_PERMILLE, RATIO, "utilization", "engine", "memory", used),
    GAUGE("utilization_encoder", VALUE_UTILIZATION_ENCODER_PERMILLE, RATIO, "utilization", "engine", "encoder", used),
    GAUGE("utilization_decoder", VALUE_UTILIZATION_DECODER_PERMILLE, RATIO, "utilization", "engine", "decoder", used),
    GAUGE("temperature", VALUE_TEMPERATURE_MILLICELSIUS, CELSIUS, "temperature", "sensor", "core", temperature),
    GAUGE("temperature_memory", VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, CELSIUS, "temperature", "sensor", "memory",
          temperature),
    GAUGE("temperature_hot_spot", VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS, CELSIUS, "temperature", "sensor", "hot_spot",
          temperature),
    GAUGE("power", VALUE_POWER_MICROWATTS, WATTS, "power", "", "", "Power that is drawn now."),
    GAUGE("power_limit", VALUE_POWER_LIMIT_MICROWATTS, WATTS, "power_limit", "", "", "Power limit in force."),
    COUNTER("energy", VALUE_ENERGY_MICROJOULES, JOULES, "energy", "", "", "Energy used."),
    GAUGE("clock", VALUE_CLOCK_CORE_HERTZ, HERTZ, "clock", "clock", "core", clock_rate),
    GAUGE("clock_memory", VALUE_CLOCK_MEMORY_HERTZ, HERTZ, "clock", "clock", "memory", clock_rate),
    GAUGE("fan", VALUE_FAN_PERMILLE, RATIO, "fan", "", "", "Fan, of its full speed."),
    GAUGE("fan_speed", VALUE_FAN_REVOLUTIONS_PER_MINUTE, RPM, "fan_speed", "", "",
          "Revolutions of the fan per minute."),
    GAUGE("pcie_generation", VALUE_PCIE_GENERATION, NONE, "pcie_generation", "", "",
          "Generation of the PCI Express link as it runs now."),
    GAUGE("pcie_generation_max", VALUE_PCIE_GENERATION_MAX, NONE, "pcie_generation_max", "", "",
          "Fastest generation of PCI Express that the device supports."),
    GAUGE("pcie_width", VALUE_PCIE_WIDTH, NONE, "pcie_width", "", "", "Lanes of the PCI Express link now."),
    GAUGE("pcie_width_max", VALUE_PCIE_WIDTH_MAX, NONE, "pcie_width_max", "", "",
          "Most lanes that the device supports."),
    GAUGE("pcie_receive", VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, BYTES_PER_SECOND, "pcie_receive", "", "",
          "Traffic on PCI Express towards the device."),
    GAUGE("pcie_send", VALUE_PCIE_SEND_BYTES_PER_SECOND, BYTES_PER_SECOND, "pcie_send", "", "",
          "Traffic on PCI Express from the device."),
    COUNTER("pcie_replays", VALUE_PCIE_REPLAYS_TOTAL, NONE, "pcie_replays", "", "",
            "Packets that the PCI Express link had to send again."),
    COUNTER("ecc_corrected", VALUE_ECC_CORRECTED_TOTAL, NONE, "ecc_errors", "kind", "corrected", ecc),
    COUNTER("ecc_uncorrected", VALUE_ECC_UNCORRECTED_TOTAL, NONE, "ecc_errors", "kind", "uncorrected", ecc),
    GAUGE("memory_repair", VALUE_MEMORY_REPAIR, NONE, "memory_repair", "", "",
          "Repair of the memory: 0 nothing waits for it, 1 pending until a reset, 2 failed."),
    GAUGE("links_up", VALUE_LINKS_UP, NONE, "links_up", "", "", "NVLinks that are up."),
    COUNTER("link_errors", VALUE_LINK_ERRORS_TOTAL, NONE, "link_errors", "", "",
            "Errors of NVLinks that made the link send again or set itself up anew."),
    GAUGE("fabric", VALUE_FABRIC, NONE, "fabric", "", "",
          "Switches between GPUs, as the fabric manager sets them up: 1 ready, 2 not yet, 3 failed."),
    GAUGE("performance_state", VALUE_PERFORMANCE_STATE, NONE, "performance_state", "", "",
          "Performance state of the vendor; 0 is the fastest."),
    GAUGE("throttle", VALUE_THROTTLE_REASONS, BITS, "throttle", "", "", "Why the clocks are limited."),
    {"processes", PROBE_ORIGIN_PROCESSES, 0, PROBE_UNIT_NONE, false, "processes", "", "",
     "Processes that use the device, as far as this user sees them."},
    TEXT("why", WHY, "Why the hardware is not ready."),
    TEXT("fix", FIX, "Commands that mend or examine it, in one line."),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Unit names. The library's numbers are multiples of 10^-decimals units. */
static const struct {
    const char *name;
    unsigned decimals;
} units[] = {
    [PROBE_UNIT_TEXT] = {"", 0},           [PROBE_UNIT_NONE] = {"", 0},
    [PROBE_UNIT_BITS] = {"", 0},           [PROBE_UNIT_BYTES] = {"bytes", 0},
    [PROBE_UNIT_CELSIUS] = {"celsius", 3}, [PROBE_UNIT_WATTS] = {"watts", 6},
    [PROBE_UNIT_JOULES] = {"joules", 6},   [PROBE_UNIT_HERTZ] = {"hertz", 0},
    [PROBE_UNIT_RATIO] = {"ratio", 3},     [PROBE_UNIT_BYTES_PER_SECOND] = {"bytes_per_second", 0},
    [PROBE_UNIT_SECONDS] = {"seconds", 9}, [PROBE_UNIT_RPM] = {"rpm", 0},
};

const gpuhal_probe_field *gpuhal_probe_field_at(size_t index)
{
    return index < COLUMNS ? &columns[index] : NULL;
}

const char *gpuhal_probe_unit_name(gpuhal_probe_unit unit)
{
    return units[unit].name;
}

const gpuhal_probe_field *gpuhal_probe_field_named(const char *name, size_t length)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        const char *unit = units[columns[i].unit].name;
        size_t own = strlen(columns[i].name), rest = strlen(unit);
        if (length < own || strncmp(name, columns[i].name, own) != 0) {
            continue;
        }
        const bool with_unit =
            *unit && length == own + 1 + rest && name[own] == '_' && strncmp(name + own + 1, unit, rest) == 0;
        if (length == own || with_unit) {
            return &columns[i];
        }
    }
    return NULL;
}

const gpuhal_probe_field **gpuhal_probe_fields_read(const char *list, char sentence[256])
{
    size_t count = 1;
    for (const char *at = list; at && *at; at++) {
        count += *at == ',';
    }
    const gpuhal_probe_field **chosen = calloc((list ? count : COLUMNS) + 1, sizeof(void *));
    if (!chosen) {
        snprintf(sentence, 256, "out of memory");
        return NULL;
    }
    for (size_t i = 0; !list && i < COLUMNS; i++) {
        chosen[i] = &columns[i];
    }
    for (size_t i = 0; list && i < count; i++) {
        list += strspn(list, " ");
        size_t length = strcspn(list, ", ");
        chosen[i] = gpuhal_probe_field_named(list, length);
        const char *next = list + length + strspn(list + length, " ");
        if (!chosen[i] || (*next && *next != ',')) {
            snprintf(sentence, 256, "\"%.*s\" is not a column", (int)strcspn(list, ","), list);
            free(chosen);
            return NULL;
        }
        list = next + (*next == ',');
    }
    return chosen;
}

/* ---- one column of one row */

static const char *fact_text(const gpuhal_probe_row *row, gpuhal_key key)
{
    const char *text = "";
    if (!row->entry) {
        return key == GPUHAL_FACT_UUID ? row->uuid : "";
    }
    return gpuhal_device_text(row->entry->device, key, &text) == GPUHAL_OK ? text : "";
}

static const char *hardware_text(const gpuhal_probe_row *row, gpuhal_probe_origin field)
{
    const gpuhal_hardware_info *hardware = row->hardware;
    if (!hardware) {
        return "";
    }
    switch (field) {
    case PROBE_ORIGIN_NAME:
        return hardware->name;
    case PROBE_ORIGIN_VENDOR:
        return hardware->vendor;
    case PROBE_ORIGIN_PCI:
        return hardware->address;
    case PROBE_ORIGIN_KERNEL_DRIVER:
        return hardware->kernel_driver;
    case PROBE_ORIGIN_VENDOR_NODE:
        return hardware->vendor_node;
    case PROBE_ORIGIN_LOCAL_CPUS:
        return hardware->local_cpus;
    case PROBE_ORIGIN_WHY:
        return hardware->why;
    case PROBE_ORIGIN_FIX:
        return hardware->fix;
    default:
        return "";
    }
}

static const char *device_text(const gpuhal_probe_row *row, gpuhal_probe_origin field, char space[PROBE_FIELD_BYTES])
{
    uint64_t type = 0;
    const uint32_t physical = row->entry ? row->entry->physical : row->hardware->physical;
    switch (field) {
    case PROBE_ORIGIN_ID:
        return row->entry ? gpuhal_device_id(row->entry->device) : "";
    case PROBE_ORIGIN_BACKEND:
        return row->entry ? gpuhal_device_backend(row->entry->device) : "";
    case PROBE_ORIGIN_TYPE:
        if (!row->entry) {
            return row->type;
        }
        return gpuhal_device_u64(row->entry->device, GPUHAL_FACT_TYPE, &type) == GPUHAL_OK
                   ? gpuhal_device_type_name((gpuhal_device_type)type)
                   : "";
    case PROBE_ORIGIN_PHYSICAL:
        snprintf(space, PROBE_FIELD_BYTES, "%" PRIu32, physical);
        return physical ? space : "";
    case PROBE_ORIGIN_STATE:
        return gpuhal_probe_row_state(row);
    case PROBE_ORIGIN_NAME:
        return fact_text(row, GPUHAL_FACT_NAME);
    case PROBE_ORIGIN_VENDOR:
        return fact_text(row, GPUHAL_FACT_VENDOR);
    case PROBE_ORIGIN_PCI:
        return fact_text(row, GPUHAL_FACT_PCI_ADDRESS);
    case PROBE_ORIGIN_DRM_CARD:
        return gpuhal_probe_card_node(row->entry, row->hardware);
    case PROBE_ORIGIN_RENDER_NODE:
        return gpuhal_probe_render_node(row->entry, row->hardware, space);
    default:
        return "";
    }
}

bool gpuhal_probe_field_number(const gpuhal_probe_field *column, const gpuhal_probe_row *row, uint64_t *out_number,
                               const char **out_source)
{
    const char *nowhere;
    const char **source = out_source ? out_source : &nowhere;
    *source = "";
    if (!row->entry) {
        *out_number = row->hardware->numa_node;
        return column->key == GPUHAL_FACT_NUMA_NODE && row->hardware->numa_node != UINT32_MAX;
    }
    if (column->origin == PROBE_ORIGIN_PROCESSES) {
        const gpuhal_probe_processes *processes = row->entry->processes;
        *out_number = processes ? processes->count : 0;
        return processes && !processes->status;
    }
    const gpuhal_value *value = gpuhal_probe_value_find(row->entry, column->key);
    if (value) {
        *out_number = value->u64;
        *source = value->source;
        return value->missing == 0;
    }
    return column->key && column->unit != PROBE_UNIT_TEXT &&
           gpuhal_device_u64(row->entry->device, column->key, out_number) == GPUHAL_OK;
}

const char *gpuhal_probe_number_text(gpuhal_probe_unit unit, uint64_t number, char space[PROBE_FIELD_BYTES])
{
    /* Cold hardware may be below 0 degrees. No other number is negative. */
    const bool negative = unit == PROBE_UNIT_CELSIUS && (int64_t)number < 0;
    number = negative ? 0 - number : number;
    const char *sign = negative ? "-" : "";
    unsigned decimals = units[unit].decimals;
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    uint64_t fraction = number % scale;
    for (; decimals && fraction % 10 == 0; decimals--) {
        fraction /= 10;
    }
    if (decimals) {
        snprintf(space, PROBE_FIELD_BYTES, "%s%" PRIu64 ".%0*" PRIu64, sign, number / scale, (int)decimals, fraction);
    } else {
        snprintf(space, PROBE_FIELD_BYTES, "%s%" PRIu64, sign, number / scale);
    }
    return space;
}

const char *gpuhal_probe_throttle_name(uint32_t bit)
{
    static const char *const names[] = {"idle",     "setting", "power_cap", "thermal", "power_brake",
                                        "hardware", "sync",    "display",   "other"};
    return bit < sizeof names / sizeof *names ? names[bit] : NULL;
}

const char *gpuhal_probe_throttle_text(uint64_t reasons, char space[PROBE_FIELD_BYTES])
{
    const char *name;
    uint64_t known = 0;
    *space = 0;
    for (uint32_t bit = 0; (name = gpuhal_probe_throttle_name(bit)); bit++) {
        known |= UINT64_C(1) << bit;
        if (reasons >> bit & 1) {
            gpuhal_tool_append(space, PROBE_FIELD_BYTES, " ", "%s", name);
        }
    }
    if (reasons & ~known) {
        gpuhal_tool_append(space, PROBE_FIELD_BYTES, " ", "unknown");
    }
    return *space ? space : "none";
}

const char *gpuhal_probe_field_text(const gpuhal_probe_field *column, const gpuhal_probe_row *row,
                                    char space[PROBE_FIELD_BYTES])
{
    uint64_t number = 0;
    if (column->origin != PROBE_ORIGIN_KEY && column->origin != PROBE_ORIGIN_PROCESSES) {
        const char *text = device_text(row, column->origin, space);
        text = *text ? text : hardware_text(row, column->origin);
        return column->origin == PROBE_ORIGIN_FIX ? gpuhal_probe_advice_join(text, space, PROBE_FIELD_BYTES) : text;
    }
    if (row->entry && (column->key == GPUHAL_FACT_UUID || column->key == GPUHAL_FACT_PARTITION)) {
        return gpuhal_probe_device_uuid(row->entry->device, column->key, space);
    }
    if (column->unit == PROBE_UNIT_TEXT) {
        return fact_text(row, column->key);
    }
    if (!gpuhal_probe_field_number(column, row, &number, NULL)) {
        return "";
    }
    return column->unit == PROBE_UNIT_BITS ? gpuhal_probe_throttle_text(number, space)
                                           : gpuhal_probe_number_text(column->unit, number, space);
}
