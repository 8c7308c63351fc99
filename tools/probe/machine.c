/* machine.c: see machine.h. Options override environment variables: an overridden variable is removed before the
 * library reads the environment. */
#include "machine.h"

#include "absence.h"
#include "health.h"
#include "lanes.h"
#include "links.h"
#include "listing.h"
#include "nvlinks.h"
#include "processes.h"
#include "progress.h"
#include "rows.h"
#include "screen.h"
#include "taken.h"

#include <gpuhal/rescan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_NS   15000000000u /* for each plugin; the library's default */
#define RESCAN_NS 5000000000u  /* interval between bus scans, which cost more than reading values */

static bool is_plugin(const gpuhal_view *view, const char *name, size_t length)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    bool found = length == 3 && strncmp(name, "all", 3) == 0;
    for (uint32_t i = 0; !found && gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        found = strlen(report.name) == length && strncmp(report.name, name, length) == 0;
    }
    return found;
}

/* Checks the names in --retry, because a misspelled name would silently have no effect. The option's value begins with
 * a name. */
static gpuhal_probe_exit check_retry(const gpuhal_probe_options *options, const gpuhal_view *view)
{
    for (const char *item = options->retry; item && *item; item += strspn(item, GPUHAL_PROBE_SEPARATORS)) {
        size_t length = strcspn(item, GPUHAL_PROBE_SEPARATORS);
        if (!is_plugin(view, item, length)) {
            gpuhal_probe_say("--retry: there is no plugin \"%.*s\"; gpuhal-probe --explain lists them", (int)length,
                             item);
            return PROBE_NOT_FOUND;
        }
        item += length;
    }
    return PROBE_GO_ON;
}

static gpuhal_probe_exit set_reason(gpuhal_probe_machine *machine, const char *reason)
{
    free(machine->chosen_reason);
    machine->chosen_reason = strdup(reason);
    if (!machine->chosen_reason) {
        gpuhal_probe_complain("out of memory");
        return PROBE_INTERNAL;
    }
    return PROBE_GO_ON;
}

static bool is_preferred(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    (void)machine;
    return entry->preferred;
}

/* With --verify, only devices that passed verification are usable. */
static bool is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    return (machine->verifying ? entry->verified : entry->shown) && gpuhal_probe_is_usable(machine, entry);
}

/* Creates the list "cuda:0,cuda:3"; NULL if out of memory. */
static char *list_ids(const gpuhal_probe_machine *machine,
                      bool (*is_listed)(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry))
{
    char *list = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&list, &bytes);
    for (uint32_t i = 0; to && i < machine->count; i++) {
        if (is_listed(machine, &machine->devices[i])) {
            fprintf(to, "%s%s", ftell(to) > 0 ? "," : "", gpuhal_device_id(machine->devices[i].device));
        }
    }
    if (!to || fclose(to)) {
        free(list);
        gpuhal_probe_complain("out of memory");
        return NULL;
    }
    return list;
}

/* Returns whether the list has terms that only apply while the library opens. These are numbers, which count hidden
 * devices as well, exclusions with `!`, limits, and most_free or least_loaded. */
static bool is_for_opening(const char *selectors)
{
    return gpuhal_probe_has_number(selectors) || strpbrk(selectors, "!@") || strstr(selectors, "most_free") ||
           strstr(selectors, "least_loaded");
}

/* Chooses a device. The filter has already hidden the devices that the list does not name. */
static gpuhal_probe_exit choose(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    const char *reason = NULL;
    char words[GPUHAL_PROBE_TEXT_BYTES];
    const bool counted = options->device && is_for_opening(options->device);
    char *ids = counted ? list_ids(machine, is_preferred) : NULL;
    if (counted && !ids) {
        return PROBE_INTERNAL;
    }
    if (gpuhal_select(machine->gpu, counted ? ids : options->device, 0, &machine->chosen, &reason) != GPUHAL_OK) {
        machine->chosen = NULL;
        reason = gpuhal_probe_in_options(gpuhal_last_error()->sentence, words);
    }
    free(ids);
    return set_reason(machine, reason ? reason : "");
}

/* If the chosen device turns out to be unusable, lets the library choose another device. */
static gpuhal_probe_exit choose_again(gpuhal_probe_machine *machine)
{
    char reason[512];
    const gpuhal_probe_device *failed = NULL;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->device == machine->chosen && !gpuhal_probe_is_usable(machine, entry)) {
            failed = entry;
        }
    }
    if (!failed) {
        return PROBE_GO_ON;
    }
    char *list = list_ids(machine, is_usable);
    if (!list) {
        return PROBE_INTERNAL;
    }
    const bool found = *list && gpuhal_select(machine->gpu, list, 0, &machine->chosen, NULL) == GPUHAL_OK;
    machine->chosen = found ? machine->chosen : NULL;
    free(list);
    const bool at_work = failed->verified && failed->result.status;
    const bool answers = !gpuhal_probe_is_lost(failed);
    const char *const what = answers && gpuhal_probe_has(failed, PROBE_RESET_NEEDED) ? "needs a reset"
                             : answers && gpuhal_probe_has(failed, PROBE_TAKEN)      ? "is taken by another process"
                                                                                     : "is lost";
    const bool is_gpu = found && !gpuhal_probe_is_processor(machine->chosen);
    snprintf(reason, sizeof reason, "%s%.128s %s",
             is_gpu  ? "since "
             : found ? "no usable GPU: "
                     : "",
             gpuhal_device_id(failed->device),
             !at_work                   ? what
             : failed->result.not_tried ? "was not verified in time"
                                        : "failed --verify");
    return set_reason(machine, reason);
}

/* Verifies only shown devices; their other interfaces use the same physical device. */
static void verify_devices(gpuhal_probe_machine *machine)
{
    uint32_t shown = 0, done = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        shown += machine->devices[i].shown;
    }
    machine->verifying = true;
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        if (!entry->shown) {
            continue;
        }
        char text[96];
        const uint64_t limit_ns = gpuhal_probe_time_left(machine, GPUHAL_PROBE_VERIFY_NS, shown - done);
        snprintf(text, sizeof text, "%.40s (%u of %u)", gpuhal_device_id(entry->device), ++done, shown);
        entry->verified = true;
        if (limit_ns == 0) {
            entry->result = (gpuhal_probe_result){.status = GPUHAL_ERROR_TIMEOUT, .not_tried = true};
            snprintf(entry->result.sentence, sizeof entry->result.sentence, GPUHAL_PROBE_TIME_IS_OVER);
            continue;
        }
        gpuhal_probe_wait_begin(text, limit_ns);
        gpuhal_probe_verify(entry->device, entry->in_child, limit_ns, &entry->result);
        gpuhal_probe_wait_end();
    }
}

/* A single scrape must not wait for values that need a measuring interval. Repeated output may wait. */
static gpuhal_probe_extent extent_of(const gpuhal_probe_options *options)
{
    if (options->check) { /* the result is the same in every format */
        return PROBE_READ_TABLE;
    }
    switch (options->format) {
    case PROBE_FORMAT_TABLE:
    case PROBE_FORMAT_WIDE:
        return PROBE_READ_TABLE;
    case PROBE_FORMAT_OPENMETRICS:
    case PROBE_FORMAT_PROMETHEUS:
    case PROBE_FORMAT_GRES:
        return options->every_ns ? PROBE_READ_ALL : PROBE_READ_AT_ONCE;
    default:
        return PROBE_READ_ALL;
    }
}

gpuhal_probe_exit gpuhal_probe_read_values(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                           gpuhal_probe_machine *machine)
{
    bool read = gpuhal_probe_values_read(machine, extent);
    if (read) {
        gpuhal_probe_taken_read(machine);
        gpuhal_probe_choose_rows(options, machine);
        read = gpuhal_probe_values_read(machine, extent) && gpuhal_probe_kernel_log_read(machine);
    }
    if (!read) {
        gpuhal_probe_complain("out of memory");
        return PROBE_INTERNAL;
    }
    gpuhal_probe_lanes_read(machine);
    gpuhal_probe_nvlinks_read(machine);
    return choose_again(machine);
}

/* Returns whether the chosen device's plugin failed to return values, so that there is no evidence that the device
 * works. A plugin that supports no values, a slow driver and a lost device do not count as failures. */
static bool is_doubtful(const gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->device == machine->chosen && entry->values && entry->values->is_read) {
            const gpuhal_status status = entry->values->status;
            return status < 0 && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_ERROR_TIMEOUT &&
                   !gpuhal_probe_is_lost(entry);
        }
    }
    return false;
}

/* Replaces the links, because a list of devices that has changed has other links. */
static gpuhal_probe_exit find_links(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    free(machine->links);
    machine->links = NULL;
    machine->link_count = 0;
    if (options->links && !gpuhal_probe_links_find(options, machine)) {
        gpuhal_probe_complain("out of memory");
        return PROBE_INTERNAL;
    }
    return PROBE_GO_ON;
}

/* @p until_ns is the overall deadline, or 0. @p deadline_ns is the plugins' deadline; 0 for the library's default. */
static gpuhal_probe_exit open_machine(const gpuhal_probe_options *options, uint64_t until_ns, uint64_t deadline_ns,
                                      gpuhal_probe_machine *out_machine)
{
    *out_machine = (gpuhal_probe_machine){0};
    if (options->backends) {
        unsetenv("GPUHAL_BACKENDS");
    }
    if (options->device) {
        unsetenv("GPUHAL_DEVICES");
    }
    const uint64_t begin = gpuhal_tool_now_ns();
    out_machine->until_ns = until_ns;
    gpuhal_probe_wait_begin("the plugins", deadline_ns ? deadline_ns : OPEN_NS);
    gpuhal_status status = gpuhal_probe_open_gpu(options, options->device, deadline_ns, &out_machine->gpu);
    out_machine->open_ns = gpuhal_tool_now_ns() - begin;
    gpuhal_probe_wait_end();
    if (status) {
        return gpuhal_probe_judge_failure(options, status);
    }
    out_machine->generation = gpuhal_generation(out_machine->gpu);
    gpuhal_probe_exit code = gpuhal_probe_list_devices(options, out_machine);
    if (code == PROBE_GO_ON) {
        code = check_retry(options, out_machine->view);
    }
    if (code == PROBE_GO_ON) {
        code = gpuhal_probe_judge_numbers(options, out_machine);
    }
    if (code == PROBE_GO_ON) {
        code = choose(options, out_machine);
    }
    if (code == PROBE_GO_ON && options->verify) {
        verify_devices(out_machine);
    }
    if (code == PROBE_GO_ON) {
        gpuhal_probe_choose_rows(options, out_machine);
        code = choose_again(out_machine);
    }
    code = code == PROBE_GO_ON ? find_links(options, out_machine) : code;
    const bool wants_values = !options->cached && !options->target; /* with a target, they are read once it is found */
    return code == PROBE_GO_ON && wants_values ? gpuhal_probe_read_values(options, extent_of(options), out_machine)
                                               : code;
}

/* If the chosen device is doubtful, lists again, because the cached list may be older than the problem, for example if
 * a daemon has died in the meantime. A cached plugin that failed in this process is probed again, so the second list is
 * the list that the next program will see. The second attempt has only the remaining time. If no time remains, the
 * first list is kept. */
gpuhal_probe_exit gpuhal_probe_machine_open(const gpuhal_probe_options *options, gpuhal_probe_machine *out_machine)
{
    const uint64_t until_ns = options->timeout_ns ? gpuhal_tool_now_ns() + options->timeout_ns : 0;
    gpuhal_probe_exit code = open_machine(options, until_ns, options->timeout_ns, out_machine);
    const uint64_t left_ns = gpuhal_probe_time_left(out_machine, OPEN_NS, 1);
    if (code == PROBE_GO_ON && is_doubtful(out_machine) && left_ns > 0) {
        gpuhal_probe_machine_finish(out_machine);
        code = open_machine(options, until_ns, until_ns ? left_ns : 0, out_machine);
    }
    /* So far, the only evidence for the device is the plugin's list. */
    return code == PROBE_GO_ON && is_doubtful(out_machine)
               ? set_reason(out_machine, "which is listed, but has no value that could be read")
               : code;
}

/* Lists again after the devices have changed. Results for single devices are no longer valid. */
static gpuhal_probe_exit list_again(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    free(machine->devices);
    free(machine->chosen_reason);
    machine->devices = NULL;
    machine->chosen_reason = NULL;
    machine->generation = gpuhal_generation(machine->gpu);
    gpuhal_probe_exit code = gpuhal_probe_list_devices(options, machine);
    code = code == PROBE_GO_ON ? choose(options, machine) : code;
    return code == PROBE_GO_ON ? find_links(options, machine) : code;
}

bool gpuhal_probe_machine_refresh(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                  gpuhal_probe_machine *machine)
{
    gpuhal_probe_exit code = PROBE_GO_ON;
    const uint64_t now_ns = gpuhal_tool_now_ns();
    const bool changed = gpuhal_generation(machine->gpu) != machine->generation;
    gpuhal_probe_values_finish(machine);
    gpuhal_probe_processes_finish(machine);
    if (changed) {
        code = list_again(options, machine);
    } else if (now_ns - machine->view_ns >= RESCAN_NS) {
        code = gpuhal_probe_look(machine);
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        machine->devices[i].values = NULL;
    }
    if (code == PROBE_GO_ON && !options->cached) {
        code = gpuhal_probe_read_values(options, extent, machine);
    }
    return code == PROBE_GO_ON;
}
