/* absence.c: see absence.h. */
#include "absence.h"

#include "advice.h"
#include "hardware_record.h"
#include "listing.h"
#include "problems.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Explains why hardware that the selectors refer to cannot be used, and how to fix it. Returns NOT_FOUND if the
 * selectors refer to no such hardware. */
static gpuhal_probe_exit say_unusable(const gpuhal_probe_machine *machine, const char *source, const char *selectors)
{
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    for (const char *item = selectors; *item; item += strspn(item, GPUHAL_PROBE_SEPARATORS)) {
        const size_t length = strcspn(item, GPUHAL_PROBE_SEPARATORS);
        char selector[256] = "", text[GPUHAL_PROBE_JOINED_BYTES];
        gpuhal_device *device = NULL;
        gpuhal_probe_problems problems = {0};
        if (*item != '!') {
            snprintf(selector, sizeof selector, "%.*s", (int)strcspn(item, GPUHAL_PROBE_SEPARATORS "@"), item);
        }
        const bool missing = *selector && (gpuhal_select(machine->gpu, selector, 0, &device, NULL) != GPUHAL_OK ||
                                           gpuhal_probe_rows_are_missing(machine, selector));
        if (missing && !gpuhal_probe_problems_of(machine, selector, &problems)) {
            gpuhal_probe_complain("out of memory");
            code = PROBE_INTERNAL;
        }
        for (uint32_t i = 0; code != PROBE_INTERNAL && i < problems.count; i++) {
            const bool refused =
                strcmp(problems.list[i].code, gpuhal_hardware_state_name(GPUHAL_HARDWARE_NO_PERMISSION)) == 0;
            code = !refused ? PROBE_PARTIAL : code == PROBE_NOT_FOUND ? PROBE_NO_PERMISSION : code;
            if (gpuhal_probe_problem_joined(&problems, i, text)) {
                char advice[sizeof problems.list[i].fix + 64];
                gpuhal_probe_say("%s: %s; next: %s", source, text,
                                 gpuhal_probe_advice_join(problems.list[i].fix, advice, sizeof advice));
            }
        }
        gpuhal_probe_problems_finish(&problems);
        item += length;
    }
    return code;
}

/* Like say_unusable(), but first lists all devices of the machine into *out_all. */
static gpuhal_probe_exit say_unusable_of_all(const gpuhal_probe_options *options, gpuhal_probe_machine *out_all)
{
    const char *variable = getenv("GPUHAL_DEVICES");
    char *selectors = strdup(options->device ? options->device : variable ? variable : "");
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    *out_all = (gpuhal_probe_machine){0};
    unsetenv("GPUHAL_DEVICES");
    /* If the library cannot be opened, the reason is an unknown backend name, not the selector. */
    const bool open =
        selectors && gpuhal_probe_open_gpu(options, NULL, options->timeout_ns, &out_all->gpu) == GPUHAL_OK;
    if (open && gpuhal_probe_list_devices(options, out_all) == PROBE_GO_ON) {
        code = say_unusable(out_all, options->device ? "--device" : "GPUHAL_DEVICES", selectors);
    }
    if (variable && selectors && !options->device) {
        setenv("GPUHAL_DEVICES", selectors, 1);
    }
    free(selectors);
    return code;
}

gpuhal_probe_exit gpuhal_probe_judge_numbers(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine)
{
    const char *variable = getenv("GPUHAL_DEVICES"), *selectors = options->device ? options->device : variable;
    bool has_processor = false;
    for (uint32_t i = 0; i < machine->count; i++) {
        has_processor = has_processor || machine->devices[i].processor;
    }
    if (!selectors || !gpuhal_probe_has_number(selectors) || !has_processor) {
        return PROBE_GO_ON;
    }
    gpuhal_probe_machine all;
    const gpuhal_probe_exit code = say_unusable_of_all(options, &all);
    gpuhal_probe_machine_finish(&all);
    return code == PROBE_NOT_FOUND ? PROBE_GO_ON : code;
}

/* Handles a selector without a match. If no unusable hardware explains the missing match, prints the library's sentence
 * `said`, which may name a plugin that lacks permission. */
static gpuhal_probe_exit judge_absence(const gpuhal_probe_options *options, const char *said)
{
    gpuhal_probe_machine all;
    gpuhal_probe_exit code = say_unusable_of_all(options, &all);
    if (code == PROBE_NOT_FOUND) {
        gpuhal_probe_complain(said);
    }
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0;
         code == PROBE_NOT_FOUND && gpuhal_view_get(all.view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        const bool refused = report.state == GPUHAL_PLUGIN_NO_PERMISSION;
        code = refused && strstr(said, report.reason) ? PROBE_NO_PERMISSION : code;
    }
    gpuhal_probe_machine_finish(&all);
    return code;
}

gpuhal_probe_exit gpuhal_probe_judge_failure(const gpuhal_probe_options *options, gpuhal_status status)
{
    char said[1024];
    snprintf(said, sizeof said, "%s", gpuhal_last_error()->sentence);
    if (status == GPUHAL_ERROR_NOT_FOUND && (options->device || getenv("GPUHAL_DEVICES"))) {
        return judge_absence(options, said);
    }
    gpuhal_probe_complain(said);
    return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE
           : status == GPUHAL_ERROR_NOT_FOUND      ? PROBE_NOT_FOUND
                                                   : PROBE_INTERNAL;
}
