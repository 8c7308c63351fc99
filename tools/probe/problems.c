/* problems.c: see problems.h. */
#include "problems.h"

#include "../common/text.h"

#include "hardware_record.h"
#include "health.h"
#include "links.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct finder {
    const gpuhal_probe_machine *machine;
    gpuhal_probe_problems *to;
    uint32_t room;
} finder;

/* Appends a problem and returns it for filling in; NULL if out of memory. */
static gpuhal_probe_problem *add(finder *own, gpuhal_hardware_grade grade, const char *code)
{
    if (own->to->count == own->room) {
        const uint32_t room = own->room ? own->room * 2 : 8;
        gpuhal_probe_problem *list = realloc(own->to->list, room * sizeof *list);
        if (!list) {
            return NULL;
        }
        own->to->list = list;
        own->room = room;
    }
    gpuhal_probe_problem *problem = &own->to->list[own->to->count++];
    *problem = (gpuhal_probe_problem){.grade = grade};
    snprintf(problem->code, sizeof problem->code, "%s", code);
    return problem;
}

static bool add_hardware(finder *own, const gpuhal_hardware_info *hardware)
{
    gpuhal_probe_problem *problem = add(own, hardware->grade, gpuhal_hardware_state_name(hardware->state));
    if (!problem) {
        return false;
    }
    const char *place = *hardware->address ? hardware->address : hardware->place;
    snprintf(problem->hardware, sizeof problem->hardware, "%s", place);
    const char *leaf = strrchr(place, '/'); /* hardware that is not on PCI has a path instead */
    snprintf(problem->subject, sizeof problem->subject, "%.255s at %.127s", hardware->name, leaf ? leaf + 1 : place);
    snprintf(problem->why, sizeof problem->why, "%s", hardware->why);
    snprintf(problem->fix, sizeof problem->fix, "%s", *hardware->fix ? hardware->fix : "gpuhal-probe --explain");
    return true;
}

static bool is_selected(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware)
{
    bool found = false;
    for (uint32_t i = 0; i < machine->count && !found; i++) {
        found = machine->devices[i].shown && gpuhal_probe_hardware_of(machine, &machine->devices[i]) == hardware;
    }
    return found;
}

/* If devices were selected, considers only their hardware, and ignores ready hardware: its only finding, of any grade,
 * is that its vendor's API cannot use it, although other APIs can. */
static bool find_in_hardware(finder *own, const gpuhal_probe_options *options)
{
    bool good = true;
    for (uint32_t i = 0; good && i < own->machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &own->machine->hardware[i];
        const bool is_meant =
            !options->device || (hardware->state != GPUHAL_HARDWARE_READY && is_selected(own->machine, hardware));
        good = !is_meant || hardware->grade == GPUHAL_HARDWARE_FINE || add_hardware(own, hardware);
    }
    return good;
}

bool gpuhal_probe_problems_of(const gpuhal_probe_machine *machine, const char *selector,
                              gpuhal_probe_problems *out_problems)
{
    *out_problems = (gpuhal_probe_problems){0};
    finder own = {.machine = machine, .to = out_problems};
    bool good = true;
    for (uint32_t i = 0; good && i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        const bool has_reason = *hardware->why && gpuhal_probe_hardware_is_meant(machine, hardware, selector);
        good = !has_reason || add_hardware(&own, hardware);
    }
    return good;
}

/* Returns whether a sentence about hardware and the text name the same device node. */
static bool share_node(const char *why, const char *text)
{
    char node[64];
    const char *begin = strstr(why, "/dev/");
    snprintf(node, sizeof node, "%.*s", begin ? (int)strcspn(begin, " ,:") : 0, begin ? begin : "");
    return *node && strstr(text, node);
}

/* Returns whether an earlier problem, of hardware or of another plugin, already explains the plugin's state: one
 * problem's sentence contains the other problem's reason, both sentences name the same missing device node, or the
 * plugin lacks permission and this user may not open the hardware's nodes. A sentence about hardware has the plugin's
 * reason after the API's name and ": ", and without the step and the status before the reason. */
static bool is_said(const finder *own, const gpuhal_plugin_report *report)
{
    for (uint32_t i = 0; i < own->to->count; i++) {
        const gpuhal_probe_problem *problem = &own->to->list[i];
        const char *reason = strstr(problem->why, ": ");
        if (*report->reason &&
            (strstr(problem->why, report->reason) || (reason && strstr(report->reason, reason + 2)) ||
             (strcmp(problem->code, gpuhal_hardware_state_name(GPUHAL_HARDWARE_NODE_MISSING)) == 0 &&
              share_node(problem->why, report->reason)) ||
             (report->state == GPUHAL_PLUGIN_NO_PERMISSION &&
              strcmp(problem->code, gpuhal_hardware_state_name(GPUHAL_HARDWARE_NO_PERMISSION)) == 0))) {
            return true;
        }
    }
    return false;
}

static bool find_in_plugins(finder *own, const gpuhal_probe_options *options)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(own->machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        /* With --device, a plugin without permission is not a problem, because the plugin may be unrelated to the
         * selected devices. */
        const bool refused = report.state == GPUHAL_PLUGIN_NO_PERMISSION && !options->device;
        if ((!gpuhal_probe_report_is_problem(&report) && !refused) || is_said(own, &report)) {
            continue;
        }
        char code[40], words[GPUHAL_PROBE_TEXT_BYTES];
        snprintf(code, sizeof code, "plugin_%s", gpuhal_plugin_state_name(report.state));
        gpuhal_probe_problem *problem = add(own, GPUHAL_HARDWARE_PROBLEM, code);
        if (!problem) {
            return false;
        }
        const char *name = gpuhal_probe_report_name(&report);
        snprintf(problem->subject, sizeof problem->subject, "plugin %.255s", name);
        snprintf(problem->why, sizeof problem->why, "%s", gpuhal_probe_in_options(report.reason, words));
        /* If the plugin has just been run again, suggests a report instead of an explanation. */
        const bool was_retried = (options->retry || options->refresh) && !report.cached;
        snprintf(problem->fix, sizeof problem->fix,
                 report.state == GPUHAL_PLUGIN_QUARANTINED ? "gpuhal-probe --retry %.255s"
                 : was_retried                             ? "gpuhal-probe --report report.txt --backends %.220s"
                                                           : "gpuhal-probe --explain %.255s",
                 name);
    }
    return true;
}

/* Returns the beginning of the command that verifies a device or a link again. If --device has selected the devices of
 * this run, the command also creates a report for the driver's vendor. */
static const char *how_to_repeat(const gpuhal_probe_options *options)
{
    return options->device ? "gpuhal-probe --report report.txt" : "gpuhal-probe";
}

/* Finds devices that failed --verify or that --verify did not try. */
static bool find_in_results(finder *own, const gpuhal_probe_options *options)
{
    for (uint32_t i = 0; i < own->machine->count; i++) {
        const gpuhal_probe_device *entry = &own->machine->devices[i];
        if (!entry->verified || entry->result.status == GPUHAL_OK) {
            continue;
        }
        const bool not_tried = entry->result.not_tried;
        gpuhal_probe_problem *problem = add(own, GPUHAL_HARDWARE_PROBLEM, not_tried ? "not_verified" : "verify_failed");
        if (!problem) {
            return false;
        }
        const char *id = gpuhal_device_id(entry->device);
        snprintf(problem->hardware, sizeof problem->hardware, "%s", id);
        snprintf(problem->subject, sizeof problem->subject, "%.127s %s", id,
                 not_tried ? "was not verified" : "failed verification");
        snprintf(problem->why, sizeof problem->why, "%s", entry->result.sentence);
        snprintf(problem->fix, sizeof problem->fix, "%s --verify --device %.127s", how_to_repeat(options), id);
    }
    return true;
}

/* Returns why the values are missing, without the library's prefix "cuda:1: reading values: device lost: ". */
static const char *why_lost(const gpuhal_probe_device *entry)
{
    static const char before[] = "device lost: ";
    for (uint32_t i = 0; entry->values && i < entry->values->count; i++) {
        const gpuhal_value *value = &entry->values->list[i];
        if ((value->missing == GPUHAL_MISSING_LOST || value->missing == GPUHAL_MISSING_FAILED) && *value->why) {
            const char *cause = strstr(value->why, before);
            return cause ? cause + strlen(before) : value->why;
        }
    }
    return "its driver reports it as lost";
}

/* Writes the command that shows the kernel's messages about the device. For NVIDIA's kernel driver, adds `answers`,
 * which explains the messages. If the kernel driver is unknown, or another driver's device has no PCI address, writes
 * the command that creates a report. */
static void write_log_command(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                              const char *answers, gpuhal_probe_problem *problem)
{
    const gpuhal_hardware_info *hardware = gpuhal_probe_hardware_of(machine, entry);
    if (hardware && strcmp(hardware->kernel_driver, "nvidia") == 0) {
        snprintf(problem->fix, sizeof problem->fix, "sudo dmesg | grep -E 'NVRM|Xid'\n%s", answers);
    } else if (hardware && *hardware->address && *hardware->kernel_driver) {
        snprintf(problem->fix, sizeof problem->fix, "sudo dmesg | grep -E '%.64s|%.64s'", hardware->address,
                 hardware->kernel_driver);
    } else {
        snprintf(problem->fix, sizeof problem->fix, "gpuhal-probe --report report.txt --device %.127s",
                 gpuhal_device_id(entry->device));
    }
}

/* Finds listed devices that their drivers now report as lost. */
static bool find_in_devices(finder *own)
{
    for (uint32_t i = 0; i < own->machine->count; i++) {
        const gpuhal_probe_device *entry = &own->machine->devices[i];
        if (!entry->shown || !gpuhal_probe_is_lost(entry)) {
            continue;
        }
        gpuhal_probe_problem *problem = add(own, GPUHAL_HARDWARE_PROBLEM, GPUHAL_PROBE_LOST);
        if (!problem) {
            return false;
        }
        const char *id = gpuhal_device_id(entry->device);
        snprintf(problem->hardware, sizeof problem->hardware, "%s", id);
        snprintf(problem->subject, sizeof problem->subject, "%s", id);
        snprintf(problem->why, sizeof problem->why, "the device is lost: %s", why_lost(entry));
        write_log_command(own->machine, entry, GPUHAL_PROBE_LOST_ANSWERS, problem);
    }
    return true;
}

/* Finds health problems in the values. Skips lost devices, because they already have a problem. */
static bool find_ailments(finder *own)
{
    for (uint32_t i = 0; i < own->machine->count; i++) {
        const gpuhal_probe_device *entry = &own->machine->devices[i];
        for (gpuhal_probe_ailment a = 0; a < PROBE_AILMENTS && entry->shown && !gpuhal_probe_is_lost(entry); a++) {
            const gpuhal_hardware_info *hardware = gpuhal_probe_hardware_of(own->machine, entry);
            const bool is_broken = hardware && hardware->grade == GPUHAL_HARDWARE_PROBLEM; /* the hardware already has a
                                                                                            * problem */
            if (is_broken || !gpuhal_probe_has(entry, a)) {
                continue;
            }
            const char *id = gpuhal_device_id(entry->device);
            char why[256], fix[256];
            gpuhal_probe_problem *problem = add(own, gpuhal_probe_ailment_grade(a), gpuhal_probe_ailment_name(a));
            if (!problem) {
                return false;
            }
            gpuhal_probe_ailment_words(entry, a, hardware && *hardware->address ? hardware->address : id, why, fix);
            snprintf(problem->hardware, sizeof problem->hardware, "%s", id);
            snprintf(problem->subject, sizeof problem->subject, "%s", id);
            snprintf(problem->why, sizeof problem->why, "%s", why);
            snprintf(problem->fix, sizeof problem->fix, "%s", fix);
        }
    }
    return true;
}

static bool add_link(finder *own, const gpuhal_probe_options *options, const gpuhal_probe_link *link)
{
    gpuhal_probe_problem *problem = add(own, GPUHAL_HARDWARE_PROBLEM, "link_failed");
    if (!problem) {
        return false;
    }
    const char *from = gpuhal_device_id(own->machine->devices[link->from].device),
               *to = gpuhal_device_id(own->machine->devices[link->to].device);
    snprintf(problem->hardware, sizeof problem->hardware, "%s", from);
    snprintf(problem->subject, sizeof problem->subject, "the link from %.127s to %.127s %s", from, to,
             link->tried ? "failed verification" : "cannot be read");
    snprintf(problem->why, sizeof problem->why, "%s", link->result.sentence);
    snprintf(problem->fix, sizeof problem->fix, "%s --links --verify --device %.127s,%.127s", how_to_repeat(options),
             from, to);
    return true;
}

/* Links that were skipped, after repeated driver failures or because time ran out, are reported as one problem. */
static bool find_in_links(finder *own, const gpuhal_probe_options *options)
{
    uint32_t left_out = 0;
    const gpuhal_probe_link *first = NULL;
    for (uint32_t i = 0; i < own->machine->link_count; i++) {
        const gpuhal_probe_link *link = &own->machine->links[i];
        if (link->result.status == GPUHAL_ERROR_CANCELLED) {
            left_out++;
            first = first ? first : link;
        } else if (link->result.status && !add_link(own, options, link)) {
            return false;
        }
    }
    gpuhal_probe_problem *problem = left_out ? add(own, GPUHAL_HARDWARE_PROBLEM, "links_left_out") : NULL;
    if (problem) {
        snprintf(problem->subject, sizeof problem->subject, "%u more link%s", left_out, left_out == 1 ? "" : "s");
        snprintf(problem->why, sizeof problem->why, "%s", first->result.sentence);
        snprintf(problem->fix, sizeof problem->fix, "gpuhal-probe --links --verify --device %.127s,%.127s",
                 gpuhal_device_id(own->machine->devices[first->from].device),
                 gpuhal_device_id(own->machine->devices[first->to].device));
    }
    return problem || !left_out;
}

/* Finds devices whose driver did not return the values in time, to explain the empty columns. */
static bool find_in_values(finder *own)
{
    for (uint32_t i = 0; i < own->machine->count; i++) {
        const gpuhal_probe_device *entry = &own->machine->devices[i];
        const gpuhal_value *late = NULL;
        for (uint32_t v = 0; entry->row && entry->values && v < entry->values->count && !late; v++) {
            const gpuhal_value *value = &entry->values->list[v];
            late = value->missing == GPUHAL_MISSING_TIMED_OUT ? value : NULL;
        }
        gpuhal_probe_problem *problem = late ? add(own, GPUHAL_HARDWARE_WARNING, "values_timed_out") : NULL;
        if (late && !problem) {
            return false;
        }
        if (problem) {
            const char *id = gpuhal_device_id(entry->device);
            snprintf(problem->hardware, sizeof problem->hardware, "%s", id);
            snprintf(problem->subject, sizeof problem->subject, "%.127s: values are missing", id);
            snprintf(problem->why, sizeof problem->why, "%s", late->why);
            write_log_command(own->machine, entry,
                              "# Xid lines name the cause; without any: again, with more --timeout", problem);
        }
    }
    return true;
}

bool gpuhal_probe_problems_find(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                gpuhal_probe_problems *out_problems)
{
    *out_problems = (gpuhal_probe_problems){0};
    finder own = {.machine = machine, .to = out_problems};
    return find_in_hardware(&own, options) && find_in_plugins(&own, options) && find_in_results(&own, options) &&
           find_in_devices(&own) && find_ailments(&own) && find_in_links(&own, options) && find_in_values(&own);
}

void gpuhal_probe_problems_finish(gpuhal_probe_problems *problems)
{
    free(problems->list);
    *problems = (gpuhal_probe_problems){0};
}

void gpuhal_probe_problem_sentence(const gpuhal_probe_problem *problem, char to[GPUHAL_PROBE_SENTENCE_BYTES])
{
    snprintf(to, GPUHAL_PROBE_SENTENCE_BYTES, "%s: %s", problem->subject, problem->why);
}

static bool share_cause(const gpuhal_probe_problem *one, const gpuhal_probe_problem *other)
{
    return strcmp(one->code, other->code) == 0 && strcmp(one->why, other->why) == 0;
}

/* Returns the part of the subject after the device's id (" failed verification"); NULL if the subject does not begin
 * with an id. */
static const char *behind_id(const gpuhal_probe_problem *problem)
{
    const size_t length = strlen(problem->hardware);
    return length && strncmp(problem->subject, problem->hardware, length) == 0 ? problem->subject + length : NULL;
}

/* Returns whether the subject names hardware by address: "NVIDIA GPU at 0000:01:00.0". */
static bool is_at_place(const gpuhal_probe_problem *problem)
{
    const char *place = strstr(problem->subject, " at ");
    return *problem->hardware && place && strcmp(place + strlen(" at "), problem->hardware) == 0;
}

bool gpuhal_probe_problem_joined(const gpuhal_probe_problems *problems, uint32_t index,
                                 char to[GPUHAL_PROBE_JOINED_BYTES])
{
    const gpuhal_probe_problem *own = &problems->list[index];
    const char *rest = behind_id(own);
    char list[1024] = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < problems->count; i++) {
        const gpuhal_probe_problem *other = &problems->list[i];
        if (!share_cause(other, own)) {
            continue;
        }
        if (i < index) {
            return false;
        }
        count++;
        gpuhal_tool_append(list, sizeof list, ", ", "%s",
                           rest || is_at_place(own) ? gpuhal_probe_short_address(other->hardware) : other->subject);
    }
    if (count == 1) {
        gpuhal_probe_problem_sentence(own, to);
    } else if (is_at_place(own)) {
        snprintf(to, GPUHAL_PROBE_JOINED_BYTES, "%u GPUs (%s): %s", count, list, own->why);
    } else {
        snprintf(to, GPUHAL_PROBE_JOINED_BYTES, "%s%s: %s", list, rest ? rest : "", own->why);
    }
    return true;
}
