/* foot.c: what stands below the table: a sentence and a command for each problem, and the default device. */
#include "print.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

#define INDENT 2u

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
                                grade == GPUHAL_HARDWARE_NOTE ? "- " : "! ");
        gpuhal_probe_screen_wrap(screen, text, INDENT, INDENT);
        if (*problem->fix) {
            fprintf(screen->out, "%*snext:  ", (int)INDENT, "");
            gpuhal_probe_screen_put(screen, PROBE_BOLD, problem->fix);
            fputc('\n', screen->out);
        }
    }
}

/* The worst first. */
void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen)
{
    for (gpuhal_hardware_grade grade = GPUHAL_HARDWARE_PROBLEM; grade >= GPUHAL_HARDWARE_NOTE; grade--) {
        print_of_grade(problems, grade, screen);
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
        fprintf(screen->out, "%*snext:  ", (int)INDENT, "");
        gpuhal_probe_screen_put(screen, PROBE_BOLD, first->fix);
        fputc('\n', screen->out);
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

void gpuhal_probe_print_default(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen)
{
    char text[GPUHAL_PROBE_TEXT_BYTES + 400];
    const uint32_t hidden = count_hidden_software(machine);
    snprintf(text, sizeof text, "default device: %s%s%.*s",
             machine->chosen ? gpuhal_device_id(machine->chosen) : "none", machine->chosen ? ", " : ": ",
             (int)strcspn(machine->chosen_reason, ";"), machine->chosen_reason);
    if (hidden) {
        gpuhal_tool_append(text, sizeof text, "", " (--all shows %u software device%s)", hidden,
                           hidden == 1 ? "" : "s");
    }
    fputc('\n', screen->out);
    gpuhal_probe_screen_put(screen, PROBE_GOOD, machine->chosen ? "* " : "  ");
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

void gpuhal_probe_print_more(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen)
{
    char text[160];
    const bool is_plain = options->format == PROBE_FORMAT_TABLE && !options->columns && !options->all &&
                          !options->links && !options->processes && !options->verify && !options->timings;
    if (!is_plain || !screen->limited || !machine->chosen || !is_gpu(machine, machine->chosen)) {
        return;
    }
    snprintf(text, sizeof text, "more: %s--watch, --explain %s",
             gpuhal_probe_table_is_wide(options, screen) ? "" : "--format wide (clock, ECC, fan, NUMA, PCIe), ",
             gpuhal_device_id(machine->chosen));
    fprintf(screen->out, "%*s", (int)INDENT, "");
    gpuhal_probe_screen_wrap_in(screen, PROBE_DIM, text, INDENT, INDENT);
}
