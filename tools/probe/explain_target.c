/* explain_target.c: explains one object in full: a plugin by name, a device by selector, hardware by PCI address, with
 * or without a device, or hardware without a device by selector. */
#include "advice.h"
#include "explain.h"
#include "hardware_record.h"
#include "links.h"
#include "print.h"
#include "processes.h"
#include "rows.h"

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

/* Explains the hardware. @p entry is its device, or NULL. */
static void explain_hardware(const gpuhal_hardware_info *hardware, const gpuhal_probe_device *entry,
                             const gpuhal_probe_screen *screen)
{
    char text[512];
    const gpuhal_probe_row row = {.entry = entry, .hardware = hardware};
    const bool fine = gpuhal_probe_row_grade(&row) <= GPUHAL_HARDWARE_NOTE;
    gpuhal_probe_screen_put(screen, PROBE_BOLD, *hardware->address ? hardware->address : hardware->place);
    fputs(": ", screen->out);
    snprintf(text, sizeof text, "%.200s [%04x:%04x], %.64s", hardware->name, hardware->vendor_id, hardware->device_id,
             gpuhal_probe_row_state(&row));
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
                                              const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        const bool fits = gpuhal_probe_hardware_is_at(hardware, options->target) ||
                          (entry ? entry->physical && hardware->physical == entry->physical
                                 : gpuhal_probe_hardware_is_meant(machine, hardware, options->target));
        if (fits) {
            const bool wrong = hardware->grade == GPUHAL_HARDWARE_PROBLEM ||
                               (options->strict && hardware->grade != GPUHAL_HARDWARE_FINE);
            const bool is_own = entry && hardware->physical == entry->physical && !*hardware->partition;
            explain_hardware(hardware, is_own ? entry : NULL, screen);
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

/* Prints the problems of the device's interfaces; the hardware's problems are printed with the hardware. Returns the
 * exit status for them, or INTERNAL if out of memory. */
static gpuhal_probe_exit print_problems(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                        const gpuhal_probe_device *own, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_problems problems;
    gpuhal_probe_exit code = gpuhal_probe_problems_find(machine, options, &problems) ? PROBE_COMPLETE : PROBE_INTERNAL;
    for (uint32_t i = 0; code != PROBE_INTERNAL && i < problems.count; i++) {
        const gpuhal_probe_problem *problem = &problems.list[i];
        bool is_own = false;
        for (uint32_t d = 0; !is_own && d < machine->count; d++) {
            const gpuhal_probe_device *entry = &machine->devices[d];
            is_own = (entry == own || (own->physical && entry->physical == own->physical)) &&
                     strcmp(gpuhal_device_id(entry->device), problem->hardware) == 0;
        }
        if (is_own) {
            char text[GPUHAL_PROBE_SENTENCE_BYTES];
            gpuhal_probe_problem_sentence(problem, text);
            gpuhal_probe_screen_field(screen,
                                      problem->grade == GPUHAL_HARDWARE_PROBLEM   ? "problem"
                                      : problem->grade == GPUHAL_HARDWARE_WARNING ? "warning"
                                                                                  : "note",
                                      text);
            gpuhal_probe_advice_print(screen, "next", EXPLAIN_INDENT, EXPLAIN_LABEL, problem->fix);
            code = problem->grade == GPUHAL_HARDWARE_PROBLEM || options->strict ? PROBE_PARTIAL : code;
        }
    }
    gpuhal_probe_problems_finish(&problems);
    return code;
}

/* Prints the device's interfaces, problems, links, values and missing facts. With --cached, prints neither links nor
 * values. Returns the exit status for the problems, or INTERNAL if out of memory. */
static gpuhal_probe_exit explain_device(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                        const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen)
{
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        bool own = false;
        for (uint32_t n = 0; !own && n < physical.device_count; n++) {
            own = gpuhal_probe_interface(machine->view, physical.first_interface + n) == entry->device;
        }
        if (own) {
            gpuhal_probe_explain_physical(machine->view, &physical, screen);
        }
    }
    gpuhal_probe_exit code = print_problems(machine, options, entry, screen);
    if (!gpuhal_probe_explain_links(machine, entry, screen)) {
        code = PROBE_INTERNAL;
    }
    if (!options->cached) {
        gpuhal_probe_explain_values(entry->device, screen);
    }
    print_missing(entry->device, screen);
    return code;
}

/* Prints the processes that use the device, in the table of processes, which lists those of the rows. */
static bool print_processes(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            const gpuhal_probe_device *entry, const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        machine->devices[i].row = &machine->devices[i] == entry;
    }
    return gpuhal_probe_processes_read(options, machine) && gpuhal_probe_print_processes(machine, options, screen);
}

/* Returns the device that the target selects, or NULL. */
static const gpuhal_probe_device *find_device(const gpuhal_probe_machine *machine, const char *target)
{
    gpuhal_device *device = NULL;
    if (gpuhal_select(machine->gpu, target, 0, &device, NULL) != GPUHAL_OK ||
        gpuhal_probe_rows_are_missing(machine, target)) {
        return NULL;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        if (machine->devices[i].device == device) {
            return &machine->devices[i];
        }
    }
    return NULL;
}

/* Reads the links, unless the device is the processor, and the values. With --cached, reads nothing. The links come
 * first, because they need the drivers that were not started in this process. Returns PROBE_GO_ON, or INTERNAL after a
 * message. */
static gpuhal_probe_exit read_device(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                     const gpuhal_probe_device *entry)
{
    if (options->cached) {
        return PROBE_GO_ON;
    }
    if (!entry->processor && !gpuhal_probe_links_find(options, machine)) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    return gpuhal_probe_read_values(options, PROBE_READ_TABLE, machine);
}

gpuhal_probe_exit gpuhal_probe_print_target(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_screen *screen)
{
    if (explain_plugins(machine, options->target, screen)) {
        return PROBE_COMPLETE;
    }
    const gpuhal_probe_device *entry = find_device(machine, options->target);
    if (entry && read_device(machine, options, entry) != PROBE_GO_ON) {
        return PROBE_INTERNAL;
    }
    const gpuhal_probe_exit code = explain_all_hardware(machine, options, entry, screen);
    if (!entry) {
        return code;
    }
    gpuhal_probe_exit found = explain_device(machine, options, entry, screen);
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (strcmp(gpuhal_probe_report_name(&report), gpuhal_device_backend(entry->device)) == 0) {
            gpuhal_probe_explain_plugin(machine, &report, screen);
        }
    }
    if (!print_processes(machine, options, entry, screen)) {
        found = PROBE_INTERNAL;
    }
    if (found == PROBE_INTERNAL) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    const bool is_lost = gpuhal_device_status(entry->device) != GPUHAL_OK;
    return is_lost ? PROBE_PARTIAL : code == PROBE_NOT_FOUND || found == PROBE_PARTIAL ? found : code;
}
