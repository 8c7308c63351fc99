/* explain_values.c: the values of one device, with their sources; see explain.h. */
#include "explain.h"
#include "fields.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

/* The words of values that are not numbers. */
static const char *const switched[] = {"off", "on", NULL}, *const answers[] = {"no", "yes", NULL},
                         *const repairs[] = {"none pending", "pending until a reset", "failed", NULL},
                         *const fabrics[] = {"?", "ready", "not set up yet", "failed", NULL};

/* The most requested values, in the table's units. */
static const struct {
    const char *name;
    gpuhal_key key;
    double divisor;
    int decimals;
    const char *unit;
    bool is_rare; /* not printed if missing */
    const char *const *words;
} values[] = {
    {"memory used", GPUHAL_VALUE_MEMORY_USED_BYTES, 1073741824.0, 1, " GiB", false, NULL},
    {"memory free", GPUHAL_VALUE_MEMORY_FREE_BYTES, 1073741824.0, 1, " GiB", false, NULL},
    {"memory limit of this control group", GPUHAL_VALUE_MEMORY_LIMIT_BYTES, 1073741824.0, 1, " GiB", true, NULL},
    {"utilisation", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 10, 0, "%", false, NULL},
    {"temperature", GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 1e3, 0, "C", false, NULL},
    {"memory temperature", GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, 1e3, 0, "C", true, NULL},
    {"hot spot temperature", GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS, 1e3, 0, "C", true, NULL},
    {"fan", GPUHAL_VALUE_FAN_PERMILLE, 10, 0, "%", true, NULL},
    {"power", GPUHAL_VALUE_POWER_MICROWATTS, 1e6, 0, " W", false, NULL},
    {"power limit", GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 1e6, 0, " W", false, NULL},
    {"clock", GPUHAL_VALUE_CLOCK_CORE_HERTZ, 1e6, 0, " MHz", false, NULL},
    {"memory clock", GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, 1e6, 0, " MHz", false, NULL},
    {"reasons to limit the clock", GPUHAL_VALUE_THROTTLE_REASONS, 1, 0, "", true, NULL},
    {"performance state", GPUHAL_VALUE_PERFORMANCE_STATE, 1, 0, "", true, NULL},
    {"uncorrected memory errors", GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 1, 0, "", false, NULL},
    {"corrected memory errors", GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 1, 0, "", true, NULL},
    {"memory repair", GPUHAL_VALUE_MEMORY_REPAIR, 1, 0, "", true, repairs},
    {"PCI Express generation", GPUHAL_VALUE_PCIE_GENERATION, 1, 0, "", true, NULL},
    {"PCI Express lanes", GPUHAL_VALUE_PCIE_WIDTH, 1, 0, "", true, NULL},
    {"NVLinks up", GPUHAL_VALUE_LINKS_UP, 1, 0, "", true, NULL},
    {"NVLink errors", GPUHAL_VALUE_LINK_ERRORS_TOTAL, 1, 0, "", true, NULL},
    {"NVSwitch fabric", GPUHAL_VALUE_FABRIC, 1, 0, "", true, fabrics},
    {"persistence mode", GPUHAL_VALUE_PERSISTENCE, 1, 0, "", true, switched},
    {"display active", GPUHAL_VALUE_DISPLAY_ACTIVE, 1, 0, "", true, answers},
};
enum { VALUES = sizeof values / sizeof *values };

/* Writes "67°C", "ready". */
static void write_value(size_t place, uint64_t value, const gpuhal_probe_screen *screen, char to[PROBE_FIELD_BYTES])
{
    const char *const *words = values[place].words;
    const double number = (double)(int64_t)value / values[place].divisor; /* cold hardware may be below 0 degrees */
    const bool is_temperature = strcmp(values[place].unit, "C") == 0;
    uint64_t word = 0;
    while (words && words[word] && word < value) {
        word++;
    }
    if (words && words[word]) {
        snprintf(to, PROBE_FIELD_BYTES, "%s", words[word]);
    } else if (values[place].key == GPUHAL_VALUE_THROTTLE_REASONS) {
        gpuhal_probe_throttle_text(value, to);
    } else {
        snprintf(to, PROBE_FIELD_BYTES, "%.*f%s%s", values[place].decimals, number,
                 is_temperature && screen->utf8 ? "°" : "", values[place].unit);
    }
}

static bool is_missing_alike(const gpuhal_value *one, const gpuhal_value *other)
{
    return one->missing == other->missing && strcmp(one->why, other->why) == 0;
}

/* Prints in one line all values that are missing for the same reason as the value at `place`, if it is the first. */
static void print_missing_values(const gpuhal_value read[VALUES], size_t place, const gpuhal_probe_screen *screen)
{
    char names[PROBE_FIELD_BYTES] = "", text[2 * PROBE_FIELD_BYTES];
    bool is_first = read[place].missing && !values[place].is_rare;
    for (size_t i = 0; is_first && i < VALUES; i++) {
        if (!values[i].is_rare && is_missing_alike(&read[i], &read[place])) {
            is_first = i >= place;
            gpuhal_tool_append(names, sizeof names, ", ", "%s", values[i].name);
        }
    }
    if (is_first) {
        snprintf(text, sizeof text, "%s: %s%s%.300s", names, gpuhal_missing_name(read[place].missing),
                 *read[place].why ? ": " : "", read[place].why);
        gpuhal_probe_screen_field(screen, "missing", text);
    }
}

void gpuhal_probe_explain_values(gpuhal_device *device, const gpuhal_probe_screen *screen)
{
    gpuhal_value read[VALUES];
    const char *label = "values";
    char text[PROBE_FIELD_BYTES + 100], value[PROBE_FIELD_BYTES];
    for (size_t i = 0; i < VALUES; i++) {
        read[i] = (gpuhal_value){.key = values[i].key};
    }
    (void)gpuhal_device_sample(device, 0, read, VALUES, NULL); /* each missing value contains the reason */
    for (size_t i = 0; i < VALUES; i++) {
        if (!read[i].missing) {
            write_value(i, read[i].u64, screen, value);
            const char *source = read[i].source, *board = strstr(source, "-board");
            snprintf(text, sizeof text, "%s: %s (%.*s%s)", values[i].name, value,
                     (int)(board ? (size_t)(board - source) : strlen(source)), source,
                     board ? ", of the whole GPU" : "");
            gpuhal_probe_screen_field(screen, label, text);
            label = "";
        }
    }
    for (size_t i = 0; i < VALUES; i++) {
        print_missing_values(read, i, screen);
    }
}
