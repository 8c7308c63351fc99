/* watch_text.c: see watch_text.h. */
#include "watch_text.h"

#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>

#define HOT 100000.0 /* in millidegrees; the top of the curve */

void gpuhal_watch_bytes_text(uint64_t bytes, char text[WATCH_TEXT_BYTES])
{
    const char *unit;
    const double value = gpuhal_tool_scale_bytes(bytes, &unit);
    snprintf(text, WATCH_TEXT_BYTES, "%.1f %s", value, unit);
}

/* Writes the used and the total memory in the unit of the total. If the total is unknown, writes only the used
 * memory. */
static void memory_text(const gpuhal_watch_row *row, char text[WATCH_TEXT_BYTES])
{
    const uint64_t total = row->numbers[WATCH_MEMORY_TOTAL], used = row->numbers[WATCH_MEMORY_USED];
    const char *unit;
    const double value = gpuhal_tool_scale_bytes(total, &unit);
    if (!row->known[WATCH_MEMORY_TOTAL]) {
        gpuhal_watch_bytes_text(used, text);
    } else if (!row->known[WATCH_MEMORY_USED]) {
        snprintf(text, WATCH_TEXT_BYTES, "-/%.1f %s", value, unit);
    } else {
        snprintf(text, WATCH_TEXT_BYTES, "%.1f/%.1f %s", total ? (double)used * (value / (double)total) : 0, value,
                 unit);
    }
}

static void power_text(const gpuhal_watch_row *row, char text[WATCH_TEXT_BYTES])
{
    const double power = (double)row->numbers[WATCH_POWER] / 1e6, limit = (double)row->numbers[WATCH_POWER_LIMIT] / 1e6;
    if (row->known[WATCH_POWER_LIMIT]) {
        snprintf(text, WATCH_TEXT_BYTES, "%.0f/%.0f W", power, limit);
    } else {
        snprintf(text, WATCH_TEXT_BYTES, "%.0f W", power);
    }
}

void gpuhal_watch_number_text(const gpuhal_watch_row *row, gpuhal_watch_number number, bool utf8,
                              char text[WATCH_TEXT_BYTES])
{
    const uint64_t value = row->numbers[number];
    const bool has_total = number == WATCH_MEMORY_USED && row->known[WATCH_MEMORY_TOTAL];
    if (!row->known[number] && !has_total) {
        snprintf(text, WATCH_TEXT_BYTES, "-");
        return;
    }
    switch (number) {
    case WATCH_MEMORY_USED:
        memory_text(row, text);
        break;
    case WATCH_TEMPERATURE:
        snprintf(text, WATCH_TEXT_BYTES, "%.0f%sC", (double)value / 1e3, utf8 ? "°" : " ");
        break;
    case WATCH_POWER:
        power_text(row, text);
        break;
    case WATCH_CLOCK:
        snprintf(text, WATCH_TEXT_BYTES, "%.0f MHz", (double)value / 1e6);
        break;
    case WATCH_RECEIVE:
    case WATCH_SEND:
        gpuhal_watch_bytes_text(value, text);
        break;
    default:
        snprintf(text, WATCH_TEXT_BYTES, "%.0f%%", (double)value / 10);
        break;
    }
}

double gpuhal_watch_whole(const gpuhal_watch_row *row, gpuhal_watch_number number)
{
    switch (number) {
    case WATCH_MEMORY_USED:
        return row->known[WATCH_MEMORY_TOTAL] ? (double)row->numbers[WATCH_MEMORY_TOTAL] : 0;
    case WATCH_POWER:
        return row->known[WATCH_POWER_LIMIT] ? (double)row->numbers[WATCH_POWER_LIMIT] : 0;
    case WATCH_TEMPERATURE:
        return HOT;
    default:
        return 1000;
    }
}

gpuhal_probe_style gpuhal_watch_style(gpuhal_watch_number number, double share)
{
    static const struct {
        double warn, bad;
    } limits[WATCH_CURVES] = {
        [WATCH_UTILIZATION] = {2, 2},
        [WATCH_MEMORY_USED] = {0.85, 0.95},
        [WATCH_TEMPERATURE] = {0.75, 0.87},
        [WATCH_POWER] = {0.95, 1.01},
    };
    if (number >= WATCH_CURVES) {
        return PROBE_PLAIN;
    }
    return share >= limits[number].bad ? PROBE_BAD : share >= limits[number].warn ? PROBE_WARN : PROBE_GOOD;
}
