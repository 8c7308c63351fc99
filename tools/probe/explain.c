/* explain.c: prints the explanation: first plugins that failed or that this user may not use, in full; then one line
 * for each other plugin, and for devices that share a physical device; then the chosen device and the notes. A physical
 * device is explained in full if is_in_doubt() returns true for it. With --all the other plugins are explained in full
 * as well, and the physical devices are part of the listing. */
#include "../common/text.h"
#include "explain.h"
#include "print.h"
#include "registry.h"
#include "times.h"

#include <stdio.h>
#include <string.h>

#define IDS_BYTES 16384u /* enough for more devices than a backend may list */

static gpuhal_probe_style style_of(const gpuhal_plugin_report *report)
{
    if (report->state == GPUHAL_PLUGIN_OK) {
        return PROBE_GOOD;
    }
    return gpuhal_probe_report_is_problem(report) ? PROBE_BAD : PROBE_WARN;
}

static void print_devices(const gpuhal_probe_machine *machine, const char *backend, const gpuhal_probe_screen *screen)
{
    char ids[IDS_BYTES] = "";
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_device *device = machine->devices[i].device;
        if (strcmp(gpuhal_device_backend(device), backend) == 0) {
            gpuhal_tool_append(ids, sizeof ids, ", ", "%s", gpuhal_device_id(device));
        }
    }
    gpuhal_probe_screen_field(screen, "devices", *ids ? ids : "all of them are hidden");
}

/* Writes the stage that the plugin reached, with the time and the kind of process. */
static void write_reached(const gpuhal_plugin_report *report, char *to, size_t bytes)
{
    const char *stage = gpuhal_plugin_stage_name(report->stage);
    char when[GPUHAL_PROBE_TIME_BYTES];
    if (report->cached) {
        gpuhal_probe_format_time(report->probed_at, when);
        snprintf(to, bytes, "%s, cached from %s; not run again now", stage, when);
    } else if (report->time_ns) {
        snprintf(to, bytes, "%s after %.1f ms, %s", stage, (double)report->time_ns / 1e6,
                 report->isolated ? "in a helper process" : "in this process");
    } else {
        snprintf(to, bytes, "%s, nothing was loaded", stage);
    }
}

/* Returns only REASON from "starting: no driver: REASON", because the state is printed before the reason. */
static const char *reason_after_state(const gpuhal_plugin_report *report)
{
    char state[128];
    const char *colon = strchr(report->reason, ':');
    const int length = snprintf(state, sizeof state, ": %s: ", gpuhal_probe_state_name(report->state));
    return colon && strncmp(colon, state, (size_t)length) == 0 ? colon + length : report->reason;
}

/* Writes the reason without repeated names: "tried libcuda.so.1: libcuda.so.1: cannot open" becomes "tried
 * libcuda.so.1: cannot open". */
static void write_reason(const gpuhal_plugin_report *report, char to[GPUHAL_PROBE_TEXT_BYTES])
{
    char words[GPUHAL_PROBE_TEXT_BYTES];
    const char *rest = gpuhal_probe_in_options(reason_after_state(report), words);
    *to = 0;
    while (*rest) {
        const char *colon = strstr(rest, ": ");
        const size_t length = colon ? (size_t)(colon - rest) : strlen(rest), before = strlen(to);
        const bool repeated = before >= length && strncmp(to + before - length, rest, length) == 0;
        if (!repeated) {
            gpuhal_tool_append(to, GPUHAL_PROBE_TEXT_BYTES, ": ", "%.*s", (int)length, rest);
        }
        rest += length + (colon ? 2 : 0);
    }
}

void gpuhal_probe_explain_plugin(const gpuhal_probe_machine *machine, const gpuhal_plugin_report *report,
                                 const gpuhal_probe_screen *screen)
{
    bool used = report->state == GPUHAL_PLUGIN_OK;
    char text[256], reason[GPUHAL_PROBE_TEXT_BYTES];
    gpuhal_probe_screen_put(screen, PROBE_BOLD, gpuhal_probe_report_name(report));
    fputs(": ", screen->out);
    if (used) {
        snprintf(text, sizeof text, "used, %u device%s", report->device_count, report->device_count == 1 ? "" : "s");
    } else {
        snprintf(text, sizeof text, "not used, %s", gpuhal_probe_state_name(report->state));
    }
    gpuhal_probe_screen_put(screen, style_of(report), text);
    fputc('\n', screen->out);

    write_reason(report, reason);
    gpuhal_probe_screen_field(screen, "reason", reason);
    /* The reason for a quarantine already includes the last line of output. */
    bool known = used || (report->state == GPUHAL_PLUGIN_QUARANTINED && !strchr(report->output, '\n'));
    gpuhal_probe_screen_lines(screen, "printed", known ? "" : report->output);
    if (used) {
        print_devices(machine, report->name, screen);
    }
    gpuhal_probe_screen_field(screen, "file", report->file);
    gpuhal_probe_screen_field(screen, "driver", report->driver);
    snprintf(text, sizeof text, "priority %d%s%.100s", report->priority, *report->version ? ", version " : "",
             report->version);
    gpuhal_probe_screen_field(screen, "plugin", text);
    write_reached(report, text, sizeof text);
    gpuhal_probe_screen_field(screen, "reached", text);
    gpuhal_probe_screen_field(screen, "note", report->note);
}

/* Prints "cuda: used, 8 devices, cached from 2026-11-22 03:07", "rocm: not used, no driver: tried libamdhip64.so.6:
 * ...". */
static void print_line(const gpuhal_plugin_report *report, const gpuhal_probe_screen *screen)
{
    char text[GPUHAL_PROBE_TEXT_BYTES + 128], reason[GPUHAL_PROBE_TEXT_BYTES], when[GPUHAL_PROBE_TIME_BYTES];
    const char *name = gpuhal_probe_report_name(report);
    if (report->state == GPUHAL_PLUGIN_OK) {
        gpuhal_probe_format_time(report->probed_at, when);
        snprintf(text, sizeof text, "used, %u device%s%s%s%s%s", report->device_count,
                 report->device_count == 1 ? "" : "s", report->cached ? ", cached from " : "",
                 report->cached ? when : "", *report->reason ? ": " : "", report->reason);
    } else {
        write_reason(report, reason);
        snprintf(text, sizeof text, "not used, %s%s%s", gpuhal_probe_state_name(report->state), *reason ? ": " : "",
                 reason);
    }
    gpuhal_probe_screen_put(screen, PROBE_BOLD, name);
    fputs(": ", screen->out);
    gpuhal_probe_screen_wrap_in(screen, style_of(report), text, gpuhal_probe_screen_columns(screen, name) + 2, 4);
}

/* Returns whether a plugin needs more than one line because it failed or because this user may not use it. */
static bool is_wrong(const gpuhal_plugin_report *report)
{
    return gpuhal_probe_report_is_problem(report) || report->state == GPUHAL_PLUGIN_NO_PERMISSION;
}

static void print_interfaces(const gpuhal_view *view, const gpuhal_physical_info *physical, bool preferred,
                             const gpuhal_probe_screen *screen)
{
    char ids[IDS_BYTES] = "";
    for (uint32_t n = 0; n < physical->device_count; n++) {
        const gpuhal_device *device = gpuhal_probe_interface(view, physical->first_interface + n);
        uint32_t number = 0, is_preferred = 0;
        gpuhal_device_physical(device, &number, &is_preferred);
        if (is_preferred || !preferred) {
            gpuhal_tool_append(ids, sizeof ids, ", ", "%s", gpuhal_device_id(device));
        }
    }
    gpuhal_probe_screen_field(screen, preferred ? "to use" : "devices", ids);
}

void gpuhal_probe_explain_physical(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                   const gpuhal_probe_screen *screen)
{
    gpuhal_probe_print_heading(view, physical, screen);
    print_interfaces(view, physical, false, screen);
    print_interfaces(view, physical, true, screen);
    gpuhal_probe_print_evidence(view, physical, screen);
}

/* Returns whether any evidence shows that interfaces which may seem to be one device are different devices. */
static bool is_in_doubt(const gpuhal_view *view, const gpuhal_physical_info *physical)
{
    gpuhal_evidence evidence = {.size = sizeof evidence};
    bool doubt = false;
    for (uint32_t i = 0; !doubt && i < physical->evidence_count; i++) {
        doubt = gpuhal_view_get(view, GPUHAL_RECORD_EVIDENCE, physical->first_evidence + i, &evidence) == GPUHAL_OK &&
                !evidence.same;
    }
    return doubt;
}

/* Prints "cuda:0 is also vulkan:0, opencl:0", or "rocm:0, rocm:1 are parts of one GPU" for a partitioned GPU. */
static void print_same(const gpuhal_view *view, const gpuhal_physical_info *physical, const gpuhal_probe_screen *screen)
{
    char text[IDS_BYTES] = "", others[IDS_BYTES] = "";
    uint32_t parts = 0;
    for (uint32_t n = 0; n < physical->device_count; n++) {
        const gpuhal_device *device = gpuhal_probe_interface(view, physical->first_interface + n);
        uint32_t number = 0, preferred = 0;
        gpuhal_device_physical(device, &number, &preferred);
        parts += preferred;
        gpuhal_tool_append(preferred ? text : others, IDS_BYTES, ", ", "%s", gpuhal_device_id(device));
    }
    if (parts > 1) {
        gpuhal_tool_append(text, sizeof text, " ", "are parts of one GPU%s", *others ? ", which" : "");
    }
    if (*others) {
        gpuhal_tool_append(text, sizeof text, " is also ", "%s", others);
    }
    gpuhal_probe_screen_wrap(screen, text, 0, 4);
}

static void print_hardware(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen)
{
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        if (is_in_doubt(machine->view, &physical)) {
            gpuhal_probe_explain_physical(machine->view, &physical, screen);
        } else if (physical.device_count > 1) {
            print_same(machine->view, &physical, screen);
        }
    }
}

static void print_choice(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_screen_put(screen, PROBE_BOLD, "chosen");
    fputs(": ", screen->out);
    gpuhal_probe_screen_put(screen, machine->chosen ? PROBE_GOOD : PROBE_WARN,
                            machine->chosen ? gpuhal_device_id(machine->chosen) : "none");
    fputc('\n', screen->out);
    gpuhal_probe_screen_field(screen, "reason", machine->chosen_reason);
}

static void print_note(const char *note, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_screen_put(screen, PROBE_BOLD, "note");
    fputs(": ", screen->out);
    gpuhal_probe_screen_wrap(screen, note, strlen("note: "), 4);
}

/* Prints a note if results cannot be cached, which is the reason why every listing is slow. */
static void print_unwritten(const gpuhal_view *view, const gpuhal_probe_screen *screen)
{
    if (gpuhal_probe_is_unwritten(view)) {
        char text[1200];
        snprintf(text, sizeof text, "the results are not cached: the record in %.1000s cannot be written",
                 gpuhal_probe_registry_info(view).place);
        print_note(text, screen);
    }
}

void gpuhal_probe_print_explanation(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    const gpuhal_probe_screen *screen)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (is_wrong(&report)) {
            gpuhal_probe_explain_plugin(machine, &report, screen);
        }
    }
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (!is_wrong(&report) && options->all) {
            gpuhal_probe_explain_plugin(machine, &report, screen);
        } else if (!is_wrong(&report)) {
            print_line(&report, screen);
        }
    }
    if (!options->all) { /* with --all the listing includes the physical devices */
        print_hardware(machine, screen);
    }
    print_choice(machine, screen);
    gpuhal_note_info note = {.size = sizeof note};
    char words[GPUHAL_PROBE_TEXT_BYTES];
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_NOTE, i, &note) == GPUHAL_OK; i++) {
        print_note(gpuhal_probe_in_options(note.text, words), screen);
    }
    const char *of_log = gpuhal_probe_kernel_log_note(machine);
    if (of_log) {
        print_note(of_log, screen);
    }
    print_unwritten(machine->view, screen);
}

/* Also true for cached results, although this run spent no time on them. */
static bool has_timing(const gpuhal_plugin_report *report)
{
    return report->time_ns || report->cached;
}

void gpuhal_probe_print_timings(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen)
{
    const char *all = "total";
    size_t width = strlen(all);
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        size_t columns = gpuhal_probe_screen_columns(screen, gpuhal_probe_report_name(&report));
        width = has_timing(&report) && columns > width ? columns : width;
    }
    width = width > screen->width / 2 ? screen->width / 2 : width;
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        char text[32];
        if (report.cached) {
            snprintf(text, sizeof text, "cached");
        } else {
            snprintf(text, sizeof text, "%.1f ms", (double)report.time_ns / 1e6);
        }
        if (has_timing(&report)) {
            gpuhal_probe_screen_fit(screen, PROBE_BOLD, gpuhal_probe_report_name(&report), width, false);
            fprintf(screen->out, "  %12s  %s\n", text, gpuhal_probe_state_name(report.state));
        }
    }
    gpuhal_probe_screen_fit(screen, PROBE_DIM, all, width, false);
    fprintf(screen->out, "  %9.1f ms\n", (double)machine->open_ns / 1e6);
}
