/* judge.c: determines the exit status from the findings; see print.h. */
#include "print.h"

#include <string.h>

#define SEPARATORS ", \t" /* between the names in --backends, as in the library */

/* Returns whether a comma-separated list includes the backend; a list of exclusions includes none. */
static bool names_backend(const char *backends, const char *name)
{
    const size_t length = strlen(name);
    for (const char *item = backends; *item; item += strspn(item, SEPARATORS)) {
        const size_t word = strcspn(item, SEPARATORS);
        if (word == length && strncmp(item, name, length) == 0) {
            return true;
        }
        item += word;
    }
    return false;
}

/* Prints a note if --backends selects only interfaces that the listing omits in favour of preferred interfaces. Outside
 * a terminal no other line reports this. */
static void note_hidden(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options)
{
    const gpuhal_probe_device *hidden = NULL;
    for (uint32_t i = 0; options->backends && i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        const bool named = names_backend(options->backends, gpuhal_device_backend(entry->device));
        if (named && entry->shown) {
            return;
        }
        hidden = named && !hidden ? entry : hidden;
    }
    if (hidden) {
        gpuhal_probe_say("%s is another interface of a listed device; --all lists it",
                         gpuhal_device_id(hidden->device));
    }
}

static bool has_broken_hardware(const gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        if (machine->hardware[i].grade == GPUHAL_HARDWARE_PROBLEM) {
            return true;
        }
    }
    return false;
}

static bool is_refused(const gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->verified && entry->result.status == GPUHAL_ERROR_NO_PERMISSION) {
            return true;
        }
    }
    return false;
}

static bool has_gpu(const gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        if (!machine->devices[i].processor) {
            return true;
        }
    }
    return false;
}

static bool is_short(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options)
{
    const gpuhal_probe_counts counts = gpuhal_probe_count(machine, options);
    return options->expected && counts.ready + counts.taken < options->expected;
}

gpuhal_probe_exit gpuhal_probe_judge_findings(const gpuhal_probe_machine *machine,
                                              const gpuhal_probe_problems *problems,
                                              const gpuhal_probe_options *options)
{
    if (options->device && is_refused(machine)) {
        return PROBE_NO_PERMISSION;
    }
    if (is_short(machine, options)) {
        return PROBE_PARTIAL;
    }
    if (machine->count == 0 && !has_broken_hardware(machine)) {
        return PROBE_NO_DEVICE;
    }
    for (uint32_t i = 0; i < problems->count; i++) {
        if (problems->list[i].grade == GPUHAL_HARDWARE_PROBLEM || options->strict) {
            return PROBE_PARTIAL;
        }
    }
    /* With --device, the selected processor is the requested device. */
    return (options->strict || options->check) && !options->device && !has_gpu(machine) ? PROBE_NO_DEVICE
                                                                                        : PROBE_COMPLETE;
}

/* Prints the problems that determine the exit status to standard error, because the output has a format for programs,
 * and people must see the problems as well. */
static void say_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_options *options)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        char sentence[GPUHAL_PROBE_SENTENCE_BYTES];
        gpuhal_probe_problem_sentence(&problems->list[i], sentence);
        if (problems->list[i].grade == GPUHAL_HARDWARE_PROBLEM || options->strict) {
            gpuhal_probe_say("%s", sentence);
        }
    }
}

void gpuhal_probe_say_findings(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                               const gpuhal_probe_options *options)
{
    const bool for_people = options->format == PROBE_FORMAT_TABLE || options->format == PROBE_FORMAT_WIDE;
    if (for_people) {
        note_hidden(machine, options);
    } else {
        say_problems(problems, options);
    }
    if (is_short(machine, options)) {
        const uint32_t ready = gpuhal_probe_count(machine, options).ready;
        gpuhal_probe_say("--expect %u: %u GPU%s ready", options->expected, ready, ready == 1 ? " is" : "s are");
    }
    if (machine->count == 0 || gpuhal_probe_judge_findings(machine, problems, options) == PROBE_NO_DEVICE) {
        gpuhal_probe_say("there is no %s%s", machine->count ? "GPU" : "device",
                         options->explain ? "" : "; gpuhal-probe --explain says why");
    }
}
