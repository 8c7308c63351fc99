/* explain_target.c: explains one object in full: a plugin by name, a device by selector, or hardware by PCI address,
 * with or without a device. */
#include "advice.h"
#include "explain.h"
#include "hardware_record.h"
#include "print.h"

#include <stdio.h>
#include <string.h>

static bool explain_plugins(const gpuhal_probe_machine *machine, const char *target, const gpuhal_probe_screen *screen)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    bool found = false;
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (strcmp(gpuhal_probe_report_name(&report), target) == 0) {
            gpuhal_probe_explain_plugin(machine, &report, screen);
            found = true;
        }
    }
    return found;
}

/* ---- hardware */

static void print_node(const char *node, char *to, size_t bytes)
{
    if (*node) {
        const size_t length = strlen(to);
        snprintf(to + length, bytes - length, "%s%s", length ? ", " : "", node);
    }
}

enum { EXPLAIN_INDENT = 4, EXPLAIN_LABEL = 9 }; /* equal to the indent and width of a field */

static void explain_hardware(const gpuhal_hardware_info *hardware, const gpuhal_probe_screen *screen)
{
    char text[512];
    const bool fine = hardware->grade <= GPUHAL_HARDWARE_NOTE;
    gpuhal_probe_screen_put(screen, PROBE_BOLD, *hardware->address ? hardware->address : hardware->place);
    fputs(": ", screen->out);
    snprintf(text, sizeof text, "%.200s [%04x:%04x], %.64s", hardware->name, hardware->vendor_id, hardware->device_id,
             gpuhal_hardware_state_name(hardware->state));
    for (char *at = strrchr(text, ','); at && *at; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    gpuhal_probe_screen_put(screen, fine ? PROBE_GOOD : PROBE_BAD, text);
    fputc('\n', screen->out);
    gpuhal_probe_screen_field(screen, "reason", hardware->why);
    gpuhal_probe_advice_print(screen, "next", EXPLAIN_INDENT, EXPLAIN_LABEL, hardware->fix);
    if (hardware->state == GPUHAL_HARDWARE_GONE) {
        snprintf(text, sizeof text, "# if it was taken out on purpose:\ngpuhal-probe --forget %.64s",
                 hardware->address);
        gpuhal_probe_advice_print(screen, "or", EXPLAIN_INDENT, EXPLAIN_LABEL, text);
    }
    snprintf(text, sizeof text, "%.100s%s%.100s", *hardware->kernel_driver ? hardware->kernel_driver : "none is bound",
             *hardware->kernel_driver_version ? " " : "", hardware->kernel_driver_version);
    gpuhal_probe_screen_field(screen, "kernel", hardware->pci_class ? text : "");
    *text = 0;
    print_node(hardware->drm_card, text, sizeof text);
    print_node(hardware->drm_render_node, text, sizeof text);
    print_node(hardware->vendor_node, text, sizeof text);
    gpuhal_probe_screen_field(screen, "nodes", text);
    *text = 0;
    if (hardware->numa_node != UINT32_MAX) {
        snprintf(text, sizeof text, "NUMA node %u", hardware->numa_node);
    }
    print_node(hardware->local_cpus, text, sizeof text);
    gpuhal_probe_screen_field(screen, "near", text);
    if (hardware->is_asleep) {
        gpuhal_probe_screen_field(screen, "power", "asleep");
    }
}

/* Explains all hardware that matches the address, and the device's hardware. If there is no device, explains the
 * hardware that the selector refers to. Returns NOT_FOUND if there is no such hardware, else the exit code for its
 * grade. */
static gpuhal_probe_exit explain_all_hardware(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                              const gpuhal_device *device, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    uint32_t physical = 0, preferred = 0;
    if (device) {
        gpuhal_device_physical(device, &physical, &preferred);
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        const bool fits = gpuhal_probe_hardware_is_at(hardware, options->target) ||
                          (device ? physical && hardware->physical == physical
                                  : gpuhal_probe_hardware_is_meant(machine, hardware, options->target));
        if (fits) {
            const bool wrong = hardware->grade == GPUHAL_HARDWARE_PROBLEM ||
                               (options->strict && hardware->grade != GPUHAL_HARDWARE_FINE);
            explain_hardware(hardware, screen);
            code = wrong || code == PROBE_PARTIAL ? PROBE_PARTIAL : PROBE_COMPLETE;
        }
    }
    return code;
}

/* ---- devices */

#define FIRST_VALUE 0x1000u /* first key of a value */

/* Prints each missing fact that has a reason other than "not supported". Missing values have separate lines. */
static void print_missing(const gpuhal_device *device, const gpuhal_probe_screen *screen)
{
    gpuhal_key key = 0;
    for (uint32_t i = 0; gpuhal_device_key_at(device, i, &key) == GPUHAL_OK; i++) {
        const char *why = "", *name = key < FIRST_VALUE ? gpuhal_key_name(key) : NULL;
        char text[256];
        const gpuhal_missing missing = name ? gpuhal_device_missing(device, key, &why) : 0;
        if (missing && missing != GPUHAL_MISSING_NOT_SUPPORTED && *why) {
            snprintf(text, sizeof text, "%.64s: %.180s", name, why);
            gpuhal_probe_screen_field(screen, "missing", text);
        }
    }
}

/* The most requested values, in the table's units. */
static const struct {
    const char *name;
    gpuhal_key key;
    double divisor;
    int decimals;
    const char *unit;
    bool is_rare; /* not printed if missing */
} values[] = {
    {"memory used", GPUHAL_VALUE_MEMORY_USED_BYTES, 1073741824.0, 1, " GiB", false},
    {"memory free", GPUHAL_VALUE_MEMORY_FREE_BYTES, 1073741824.0, 1, " GiB", false},
    {"utilisation", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 10, 0, "%", false},
    {"temperature", GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 1e3, 0, "C", false},
    {"power", GPUHAL_VALUE_POWER_MICROWATTS, 1e6, 0, " W", false},
    {"power limit", GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 1e6, 0, " W", false},
    {"clock", GPUHAL_VALUE_CLOCK_CORE_HERTZ, 1e6, 0, " MHz", false},
    {"memory clock", GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, 1e6, 0, " MHz", false},
    {"memory limit of this control group", GPUHAL_VALUE_MEMORY_LIMIT_BYTES, 1073741824.0, 1, " GiB", true},
    {"performance state", GPUHAL_VALUE_PERFORMANCE_STATE, 1, 0, "", true},
    {"persistence mode", GPUHAL_VALUE_PERSISTENCE, 1, 0, "", true},
    {"display active", GPUHAL_VALUE_DISPLAY_ACTIVE, 1, 0, "", true},
};
enum { VALUES = sizeof values / sizeof *values };

/* Prints each value with its source, then each missing value that is not rare, with the reason. */
static void print_values(gpuhal_device *device, const gpuhal_probe_screen *screen)
{
    gpuhal_value read[VALUES];
    const char *label = "values";
    char text[400];
    for (size_t i = 0; i < VALUES; i++) {
        read[i] = (gpuhal_value){.key = values[i].key};
    }
    (void)gpuhal_device_sample(device, 0, read, VALUES, NULL); /* each missing value contains the reason */
    for (size_t i = 0; i < VALUES; i++) {
        if (!read[i].missing) {
            const double number = (double)(int64_t)read[i].u64 / values[i].divisor; /* cold hardware may be below 0
                                                                                     * degrees */
            const bool has_sign = screen->utf8 && values[i].key == GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS;
            snprintf(text, sizeof text, "%s: %.*f%s%s (%s)", values[i].name, values[i].decimals, number,
                     has_sign ? "°" : "", values[i].unit, read[i].source);
            gpuhal_probe_screen_field(screen, label, text);
            label = "";
        }
    }
    for (size_t i = 0; i < VALUES; i++) {
        if (read[i].missing && !values[i].is_rare) {
            snprintf(text, sizeof text, "%s: %s%s%.300s", values[i].name, gpuhal_missing_name(read[i].missing),
                     *read[i].why ? ": " : "", read[i].why);
            gpuhal_probe_screen_field(screen, "missing", text);
        }
    }
}

static void explain_device(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                           gpuhal_device *device, const gpuhal_probe_screen *screen)
{
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        bool own = false;
        for (uint32_t n = 0; !own && n < physical.device_count; n++) {
            own = gpuhal_probe_interface(machine->view, physical.first_interface + n) == device;
        }
        if (own) {
            gpuhal_probe_explain_physical(machine->view, &physical, screen);
        }
    }
    if (!options->cached) {
        print_values(device, screen);
    }
    print_missing(device, screen);
}

gpuhal_probe_exit gpuhal_probe_print_target(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_screen *screen)
{
    gpuhal_device *device = NULL;
    if (explain_plugins(machine, options->target, screen)) {
        return PROBE_COMPLETE;
    }
    if (gpuhal_select(machine->gpu, options->target, 0, &device, NULL) != GPUHAL_OK ||
        gpuhal_probe_rows_are_missing(machine, options->target)) {
        device = NULL;
    }
    const gpuhal_probe_exit code = explain_all_hardware(machine, options, device, screen);
    if (device) {
        explain_device(machine, options, device, screen);
        gpuhal_plugin_report report = {.size = sizeof report};
        for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
            if (strcmp(gpuhal_probe_report_name(&report), gpuhal_device_backend(device)) == 0) {
                gpuhal_probe_explain_plugin(machine, &report, screen);
            }
        }
    }
    const bool is_lost = device && gpuhal_device_status(device) != GPUHAL_OK;
    return is_lost ? PROBE_PARTIAL : code == PROBE_NOT_FOUND && device ? PROBE_COMPLETE : code;
}
