/* foot.c: the lines below the table: for each problem a sentence and a command, and the default device. */
#include "advice.h"
#include "hardware_record.h"
#include "print.h"
#include "rows.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

#define INDENT     2u
#define NEXT_WIDTH 7u /* "next:  " */

static void print_next(const char *fix, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_advice_print(screen, "next:", INDENT, NEXT_WIDTH, fix);
}

static void print_of_grade(const gpuhal_probe_problems *problems, gpuhal_hardware_grade grade,
                           const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        const gpuhal_probe_problem *problem = &problems->list[i];
        char text[GPUHAL_PROBE_JOINED_BYTES];
        if (problem->grade != grade || !gpuhal_probe_problem_joined(problems, i, text)) {
            continue;
        }
        fputc('\n', screen->out);
        gpuhal_probe_screen_put(screen, grade == GPUHAL_HARDWARE_PROBLEM ? PROBE_BAD : PROBE_WARN,
                                grade == GPUHAL_HARDWARE_NOTE ? "  " : "! ");
        gpuhal_probe_screen_wrap(screen, text, INDENT, INDENT);
        print_next(problem->fix, screen);
    }
}

void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen,
                                 gpuhal_probe_marks *marks)
{
    for (gpuhal_hardware_grade grade = GPUHAL_HARDWARE_PROBLEM; grade >= GPUHAL_HARDWARE_NOTE; grade--) {
        print_of_grade(problems, grade, screen);
    }
    for (uint32_t i = 0; i < problems->count; i++) {
        marks->has_problem = marks->has_problem || problems->list[i].grade > GPUHAL_HARDWARE_NOTE;
    }
}

void gpuhal_probe_print_not_given(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen)
{
    const gpuhal_probe_counts counts = gpuhal_probe_count(machine, options);
    const gpuhal_hardware_info *first = NULL;
    for (uint32_t i = machine->hardware_count; i-- > 0;) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        first = hardware->state == GPUHAL_HARDWARE_NOT_GIVEN ? hardware : first;
    }
    if (counts.all == 0 && counts.not_given && *first->fix) {
        char text[GPUHAL_PROBE_JOINED_BYTES];
        snprintf(text, sizeof text, "%s at %s: %s", first->name, *first->address ? first->address : first->place,
                 first->why);
        fprintf(screen->out, "\n%*s", (int)INDENT, "");
        gpuhal_probe_screen_wrap(screen, text, INDENT, INDENT);
        print_next(first->fix, screen);
    }
}

static uint32_t count_hidden_software(const gpuhal_probe_machine *machine)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        count += entry->processor && !entry->row && strcmp(gpuhal_device_backend(entry->device), "cpu") != 0;
    }
    return count;
}

void gpuhal_probe_print_default(const gpuhal_probe_machine *machine, const gpuhal_probe_marks *marks,
                                const gpuhal_probe_screen *screen)
{
    char text[GPUHAL_PROBE_TEXT_BYTES + 400];
    const uint32_t hidden = count_hidden_software(machine);
    snprintf(text, sizeof text, "%sdefault device: %s%s%.*s", marks->has_chosen ? "= " : "",
             machine->chosen ? gpuhal_device_id(machine->chosen) : "none", machine->chosen ? ", " : ": ",
             (int)strcspn(machine->chosen_reason, ";"), machine->chosen_reason);
    if (hidden) {
        gpuhal_tool_append(text, sizeof text, "", " (--all shows %u software device%s)", hidden,
                           hidden == 1 ? "" : "s");
    }
    fputc('\n', screen->out);
    if (marks->has_problem) {
        gpuhal_probe_screen_put(screen, PROBE_BAD, "! ");
        gpuhal_probe_screen_wrap(screen, "= broken, or may soon be", INDENT, INDENT);
    }
    if (marks->has_preferred) {
        gpuhal_probe_screen_put(screen, PROBE_GOOD, "+ ");
        gpuhal_probe_screen_wrap(screen, "= the interface to use of its device", INDENT, INDENT);
    }
    gpuhal_probe_screen_put(screen, PROBE_GOOD, marks->has_chosen ? "* " : "  ");
    gpuhal_probe_screen_wrap(screen, text, INDENT, INDENT);
}

static bool is_gpu(const gpuhal_probe_machine *machine, const gpuhal_device *device)
{
    bool found = false;
    for (uint32_t i = 0; i < machine->count && !found; i++) {
        found = machine->devices[i].device == device && !machine->devices[i].processor;
    }
    return found;
}

/* Returns whether `one` needs an explanation more than `other`. Hardware is ordered by grade, with the highest first.
 * Hardware that is not given to this process comes last, whatever its grade. */
static bool is_worse(const gpuhal_hardware_info *one, const gpuhal_hardware_info *other)
{
    const bool is_listed = one->state != GPUHAL_HARDWARE_NOT_GIVEN;
    const bool was_listed = other && other->state != GPUHAL_HARDWARE_NOT_GIVEN;
    return !other || (is_listed && !was_listed) || (is_listed == was_listed && one->grade > other->grade);
}

/* Returns the default device if it is a GPU, otherwise another GPU with a device; NULL if there is none. */
static const gpuhal_device *find_gpu(const gpuhal_probe_machine *machine)
{
    const gpuhal_device *device = machine->chosen && is_gpu(machine, machine->chosen) ? machine->chosen : NULL;
    for (uint32_t i = 0; i < machine->count && !device; i++) {
        device = machine->devices[i].row && !machine->devices[i].processor ? machine->devices[i].device : NULL;
    }
    return device;
}

static const gpuhal_hardware_info *find_worst(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options)
{
    const gpuhal_hardware_info *worst = NULL;
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *one = &machine->hardware[i];
        const bool is_own = gpuhal_probe_is_listed(options, one) || one->state == GPUHAL_HARDWARE_NOT_GIVEN;
        worst = is_own && is_worse(one, worst) ? one : worst;
    }
    return worst;
}

void gpuhal_probe_print_more(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen)
{
    char text[256];
    const bool is_plain = options->format == PROBE_FORMAT_TABLE && !options->columns && !options->all &&
                          !options->links && !options->processes && !options->verify && !options->timings;
    const gpuhal_device *device = find_gpu(machine);
    const gpuhal_hardware_info *hardware = find_worst(machine, options);
    if (!is_plain || !screen->limited || (!device && !hardware)) {
        return;
    }
    if (device && device == machine->chosen) {
        snprintf(text, sizeof text, "more: %s--watch, --explain %s",
                 gpuhal_probe_table_is_wide(options, screen) ? "" : "--format wide (clock, ECC, fan, NUMA, PCIe), ",
                 gpuhal_device_id(device));
    } else {
        const char *target = device ? gpuhal_device_id(device) : gpuhal_probe_short_address(hardware->address);
        snprintf(text, sizeof text, "more: %s%.127s%s--all, --report FILE (for a report of a bug)",
                 *target ? "--explain " : "", target, *target ? ", " : "");
    }
    fprintf(screen->out, "%*s", (int)INDENT, "");
    gpuhal_probe_screen_wrap_in(screen, PROBE_DIM, text, INDENT, INDENT);
}
