/* foot.c: what stands below the table: a sentence and a command for each problem, and the default device. */
#include "print.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

#define INDENT 2u

void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        const gpuhal_probe_problem *problem = &problems->list[i];
        char text[GPUHAL_PROBE_JOINED_BYTES];
        if (!gpuhal_probe_problem_joined(problems, i, text)) {
            continue;
        }
        fputc('\n', screen->out);
        gpuhal_probe_screen_put(screen, problem->grade == GPUHAL_HARDWARE_PROBLEM ? PROBE_BAD : PROBE_WARN, "! ");
        gpuhal_probe_screen_wrap(screen, text, INDENT, INDENT);
        if (*problem->fix) {
            fprintf(screen->out, "%*snext:  ", (int)INDENT, "");
            gpuhal_probe_screen_put(screen, PROBE_BOLD, problem->fix);
            fputc('\n', screen->out);
        }
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
