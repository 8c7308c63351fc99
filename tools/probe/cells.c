/* cells.c: formats the cells of a row; see columns.h. An unknown value is "-", never 0. */
#include "columns.h"
#include "fields.h"
#include "hardware_record.h"

#include <stdio.h>
#include <string.h>

#define GIB 1073741824.0

/* Values from these limits on are yellow or red. */
enum { WARM_MILLICELSIUS = 75000, HOT_MILLICELSIUS = 87000, FULL_PERCENT = 90, VERY_FULL_PERCENT = 97 };

/* Copies a string; truncation never splits a UTF-8 character. */
static void set_text(gpuhal_probe_cell *cell, const char *text)
{
    size_t length = strlen(text);
    if (length >= sizeof cell->text) {
        for (length = sizeof cell->text - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;) {
            length--;
        }
    }
    memcpy(cell->text, text, length);
    cell->text[length] = 0;
}

static const char *text_fact(const gpuhal_device *device, gpuhal_key key)
{
    const char *text;
    return gpuhal_device_text(device, key, &text) == GPUHAL_OK ? text : "-";
}

/* Writes "61.0 / 80.0", or "0.8 / shared" for an integrated GPU, which reports host memory. */
static void write_memory(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t total = 0, used = 0, free_now = 0, type = 0;
    gpuhal_device_u64(entry->device, GPUHAL_FACT_TYPE, &type);
    const bool has_total = gpuhal_device_u64(entry->device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total) == GPUHAL_OK;
    bool has_used = gpuhal_probe_value(entry, GPUHAL_VALUE_MEMORY_USED_BYTES, &used);
    const bool has_less = entry->own[PROBE_OWN_FREE].key != 0; /* true if the interface has less memory than is
                                                                * free on the hardware */
    if (!has_used && !has_less && has_total && gpuhal_probe_value(entry, GPUHAL_VALUE_MEMORY_FREE_BYTES, &free_now)) {
        has_used = free_now <= total;
        used = total - free_now;
    }
    char amount[32] = "-", whole[32] = "-";
    if (has_used) {
        snprintf(amount, sizeof amount, "%.1f", (double)used / GIB);
    }
    if (type == GPUHAL_DEVICE_INTEGRATED_GPU) {
        snprintf(whole, sizeof whole, "shared");
    } else if (has_total) {
        snprintf(whole, sizeof whole, "%.1f", (double)total / GIB);
    }
    snprintf(cell->text, sizeof cell->text, "%s / %s", amount, whole);
    const double percent =
        has_used && total && type != GPUHAL_DEVICE_INTEGRATED_GPU ? (double)used * 100 / (double)total : 0;
    cell->style = percent >= VERY_FULL_PERCENT ? PROBE_BAD : percent >= FULL_PERCENT ? PROBE_WARN : PROBE_PLAIN;
}

static void write_utilization(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t permille;
    if (gpuhal_probe_value(entry, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, &permille)) {
        snprintf(cell->text, sizeof cell->text, "%u%%", (unsigned)((permille + 5) / 10));
    }
}

/* Writes "88°C!" if the clocks are reduced because of heat, or by the hardware itself because of heat or power. */
static void write_temperature(const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen,
                              gpuhal_probe_cell *cell)
{
    uint64_t bits, throttled = 0;
    if (!gpuhal_probe_value(entry, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, &bits)) {
        return;
    }
    const int64_t degrees = (int64_t)bits; /* cold hardware may be below 0 degrees */
    gpuhal_probe_value(entry, GPUHAL_VALUE_THROTTLE_REASONS, &throttled);
    const bool hot = (throttled & (GPUHAL_THROTTLE_THERMAL | GPUHAL_THROTTLE_HARDWARE)) != 0;
    snprintf(cell->text, sizeof cell->text, "%.0f%s%s", (double)degrees / 1000, screen->utf8 ? "°C" : "C",
             hot ? "!" : "");
    cell->style = hot || degrees >= HOT_MILLICELSIUS ? PROBE_BAD
                  : degrees >= WARM_MILLICELSIUS     ? PROBE_WARN
                                                     : PROBE_PLAIN;
}

static void write_power(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t now, limit;
    if (!gpuhal_probe_value(entry, GPUHAL_VALUE_POWER_MICROWATTS, &now)) {
        return;
    }
    const double watts = (double)now / 1e6;
    if (gpuhal_probe_value(entry, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, &limit)) {
        snprintf(cell->text, sizeof cell->text, "%.0f/%.0f W", watts, (double)limit / 1e6);
    } else {
        snprintf(cell->text, sizeof cell->text, "%.0f W", watts);
    }
}

static void write_clock(const gpuhal_probe_device *entry, gpuhal_key key, gpuhal_probe_cell *cell)
{
    uint64_t hertz;
    if (gpuhal_probe_value(entry, key, &hertz)) {
        snprintf(cell->text, sizeof cell->text, "%.0f MHz", (double)hertz / 1e6);
    }
}

static void write_ecc(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t corrected, lost;
    if (gpuhal_probe_value(entry, GPUHAL_VALUE_ECC_CORRECTED_TOTAL, &corrected) &&
        gpuhal_probe_value(entry, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, &lost)) {
        snprintf(cell->text, sizeof cell->text, "%llu/%llu", (unsigned long long)corrected, (unsigned long long)lost);
        cell->style = lost ? PROBE_BAD : PROBE_PLAIN;
    }
}

static void write_fan(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t permille;
    if (gpuhal_probe_value(entry, GPUHAL_VALUE_FAN_PERMILLE, &permille)) {
        snprintf(cell->text, sizeof cell->text, "%u%%", (unsigned)((permille + 5) / 10));
    }
}

/* Writes "5 x16": PCI Express generation and lanes. */
static void write_link(const gpuhal_probe_device *entry, gpuhal_probe_cell *cell)
{
    uint64_t generation, width;
    if (gpuhal_probe_value(entry, GPUHAL_VALUE_PCIE_GENERATION, &generation) &&
        gpuhal_probe_value(entry, GPUHAL_VALUE_PCIE_WIDTH, &width)) {
        snprintf(cell->text, sizeof cell->text, "%u x%u", (unsigned)generation, (unsigned)width);
    }
}

static void write_address(const gpuhal_probe_row *row, gpuhal_probe_cell *cell)
{
    const char *address = row->entry ? text_fact(row->entry->device, GPUHAL_FACT_PCI_ADDRESS) : "-";
    if (row->hardware && *row->hardware->address) {
        address = row->hardware->address;
    }
    set_text(cell, gpuhal_probe_short_address(address));
}

static void write_numa(const gpuhal_probe_row *row, gpuhal_probe_cell *cell)
{
    uint64_t node = 0;
    if (row->entry && gpuhal_device_u64(row->entry->device, GPUHAL_FACT_NUMA_NODE, &node) == GPUHAL_OK) {
        snprintf(cell->text, sizeof cell->text, "%u", (unsigned)node);
    } else if (row->hardware && row->hardware->numa_node != UINT32_MAX) {
        snprintf(cell->text, sizeof cell->text, "%u", row->hardware->numa_node);
    }
}

static void write_verified(const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen, gpuhal_probe_cell *cell)
{
    static const char *const marks[2][2] = {{"FAILED", "ok"}, {"✗", "✓"}};
    const bool good = entry->verified && entry->result.status == GPUHAL_OK;
    if (entry->verified && !entry->result.not_tried) {
        set_text(cell, marks[screen->utf8][good]);
        cell->style = good ? PROBE_GOOD : PROBE_BAD;
    }
}

static void write_value(gpuhal_probe_column column, const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen,
                        gpuhal_probe_cell *cell)
{
    switch (column) {
    case PROBE_COLUMN_UTILIZATION:
        write_utilization(entry, cell);
        break;
    case PROBE_COLUMN_TEMPERATURE:
        write_temperature(entry, screen, cell);
        break;
    case PROBE_COLUMN_POWER:
        write_power(entry, cell);
        break;
    case PROBE_COLUMN_CLOCK:
        write_clock(entry, GPUHAL_VALUE_CLOCK_CORE_HERTZ, cell);
        break;
    case PROBE_COLUMN_CLOCK_MEMORY:
        write_clock(entry, GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, cell);
        break;
    case PROBE_COLUMN_ECC:
        write_ecc(entry, cell);
        break;
    case PROBE_COLUMN_FAN:
        write_fan(entry, cell);
        break;
    case PROBE_COLUMN_LINK:
        write_link(entry, cell);
        break;
    case PROBE_COLUMN_DRIVER:
        set_text(cell, text_fact(entry->device, GPUHAL_FACT_DRIVER_VERSION));
        break;
    case PROBE_COLUMN_VERIFIED:
        write_verified(entry, screen, cell);
        break;
    default:
        write_memory(entry, cell);
        break;
    }
}

static void write_field(const char *name, const gpuhal_probe_row *row, gpuhal_probe_cell *cell)
{
    char space[PROBE_FIELD_BYTES];
    const char *text = gpuhal_probe_field_text(gpuhal_probe_field_named(name, strlen(name)), row, space);
    set_text(cell, *text ? text : "-");
}

void gpuhal_probe_column_write(gpuhal_probe_column column, const gpuhal_probe_row *row,
                               const gpuhal_probe_screen *screen, gpuhal_probe_cell *out_cell)
{
    *out_cell = (gpuhal_probe_cell){.text = "-"};
    switch (column) {
    case PROBE_COLUMN_ID:
        set_text(out_cell, row->entry ? gpuhal_device_id(row->entry->device) : "none");
        out_cell->style = PROBE_BOLD;
        break;
    case PROBE_COLUMN_NAME:
        set_text(out_cell, row->entry ? text_fact(row->entry->device, GPUHAL_FACT_NAME) : row->hardware->name);
        break;
    case PROBE_COLUMN_PCI:
        write_address(row, out_cell);
        break;
    case PROBE_COLUMN_NUMA:
        write_numa(row, out_cell);
        break;
    case PROBE_COLUMN_UUID:
        write_field("uuid", row, out_cell);
        break;
    case PROBE_COLUMN_THROTTLE:
        write_field("throttle", row, out_cell);
        break;
    case PROBE_COLUMN_PROCESSES:
        write_field("processes", row, out_cell);
        break;
    default:
        /* A state replaces the values in the columns before PCI, except for a device's memory. */
        if (*row->state && column < PROBE_COLUMN_PCI && (!row->entry || column != PROBE_COLUMN_MEMORY)) {
            *out_cell->text = 0;
        } else if (row->entry) {
            write_value(column, row->entry, screen, out_cell);
        }
        break;
    }
}
