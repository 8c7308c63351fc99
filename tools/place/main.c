/* main.c: gpuhal-place, which prints a placement of a model's layers on devices.
 *
 * Read in this order: options.h, model.h with model_file.c, gguf.c and table_file.c, machine.h, this file, print.h with
 * print.c, json.c and export.c. */
#include "../common/command_line.h"
#include "../common/errors.h"
#include "../common/standard_output.h"
#include "print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_PLACED = 0, EXIT_ERROR = 1, EXIT_INFEASIBLE = 6 };

typedef struct place {
    FILE *out;
    gpuhal_place_options options;
    gpuhal_model model;
    gpuhal_place_machine machine;
    uint32_t *previous;
} place;

static int fail(const char *what, const char *sentence)
{
    fprintf(stderr, "gpuhal-place: %s%s%s\n", what, *what ? ": " : "", sentence);
    return EXIT_ERROR;
}

static bool print(const gpuhal_plan *plan)
{
    switch (plan->options->format) {
    case GPUHAL_PLACE_TABLE:
        return gpuhal_plan_print_table(plan);
    case GPUHAL_PLACE_JSON:
        return gpuhal_plan_print_json(plan);
    default:
        return plan->placement == NULL || gpuhal_plan_print_for(plan);
    }
}

static int solve(const place *p, const gpuhal_placement_problem *problem, gpuhal_placement **out_placement,
                 bool printed)
{
    gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall};
    const gpuhal_status status = gpuhal_place(problem, &shortfall, out_placement);
    char why[1024];
    snprintf(why, sizeof why, "%s", status ? gpuhal_last_error()->sentence : "");
    if (status && status != GPUHAL_ERROR_INFEASIBLE) {
        return fail(p->options.model, why);
    }
    const gpuhal_plan plan = {.out = p->out,
                              .options = &p->options,
                              .model = &p->model,
                              .machine = &p->machine,
                              .problem = problem,
                              .placement = *out_placement,
                              .shortfall = &shortfall,
                              .why = why};
    if (status) {
        (void)fail(p->options.model, why);
    }
    if ((printed || status) && !print(&plan)) {
        return fail("", "the plan cannot be printed");
    }
    return status ? EXIT_INFEASIBLE : EXIT_PLACED;
}

/* Plans again after a device is lost. If possible, layers stay on their devices from the first plan. */
static int solve_again(place *p, gpuhal_placement_problem *problem, const gpuhal_placement *before, uint32_t lost)
{
    gpuhal_placement *after = NULL;
    gpuhal_placement_info info = {.size = sizeof info};
    (void)gpuhal_placement_get_info(before, &info);
    p->previous = calloc(p->model.layer_count, sizeof *p->previous);
    if (p->previous == NULL) {
        return fail("", "no memory");
    }
    for (uint32_t i = 0; i < info.stage_count; i++) {
        gpuhal_placement_stage stage = {.size = sizeof stage};
        (void)gpuhal_placement_stage_at(before, i, &stage);
        for (uint32_t layer = stage.first_layer; layer < stage.first_layer + stage.layer_count; layer++) {
            p->previous[layer] = stage.device;
        }
    }
    p->machine.devices[lost].capacity_bytes = 0;
    problem->objective = GPUHAL_PLACEMENT_LEAST_MOVED;
    problem->previous = p->previous;
    const int exit_status = solve(p, problem, &after, true);
    gpuhal_placement_destroy(after);
    return exit_status;
}

/* Returns the index of the lost device, or the device count if there is no such device. */
static uint32_t find_lost(const place *p)
{
    uint32_t d = 0;
    while (d < p->machine.count && strcmp(p->machine.devices[d].name, p->options.lost) != 0) {
        d++;
    }
    return d;
}

static int run(place *p)
{
    char problem_text[512];
    if (!gpuhal_model_read(p->options.model, p->options.context, &p->model, problem_text, sizeof problem_text)) {
        return fail(p->options.model, problem_text);
    }
    int exit_status = gpuhal_place_machine_read(&p->options, &p->machine);
    if (exit_status != GPUHAL_TOOL_GO_ON) {
        return exit_status;
    }
    gpuhal_placement_problem problem = {.size = sizeof problem,
                                        .objective = p->options.objective,
                                        .layers = p->model.layers,
                                        .devices = p->machine.devices,
                                        .links = p->machine.links,
                                        .layer_count = p->model.layer_count,
                                        .device_count = p->machine.count,
                                        .flags = p->options.free_order ? GPUHAL_PLACEMENT_FREE_ORDER : 0};
    const uint32_t lost = p->options.lost != NULL ? find_lost(p) : UINT32_MAX;
    if (lost == p->machine.count) {
        fprintf(stderr, "gpuhal-place: --lost is \"%s\"; it takes one of the devices that the plan is for\n",
                p->options.lost);
        return GPUHAL_TOOL_USAGE;
    }
    gpuhal_placement *placement = NULL;
    exit_status = solve(p, &problem, &placement, p->options.lost == NULL);
    if (exit_status == EXIT_PLACED && p->options.lost != NULL) {
        exit_status = solve_again(p, &problem, placement, lost);
    }
    gpuhal_placement_destroy(placement);
    return exit_status;
}

/* Returns whether the command line requests JSON in any form, even if it is otherwise invalid. */
static bool wants_json(int argc, char *const *argv)
{
    bool wants = gpuhal_tool_wants_json(argc, argv);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        wants = wants || strcmp(argv[i], "--format=json") == 0 ||
                (strcmp(argv[i], "--format") == 0 && i + 1 < argc && strcmp(argv[i + 1], "json") == 0);
    }
    return wants;
}

int main(int argc, char **argv)
{
    static place p;
    char said[1024];
    p.out = gpuhal_tool_output_take();
    if (p.out == NULL) {
        return fail("standard output cannot be written", strerror(errno));
    }
    const bool json = wants_json(argc, argv);
    const int caught = json ? gpuhal_tool_errors_catch() : -1;
    int exit_status = gpuhal_place_options_read(argc, argv, p.out, &p.options);
    exit_status = exit_status == GPUHAL_TOOL_GO_ON ? run(&p) : exit_status;
    gpuhal_tool_errors_release(caught, said, sizeof said);
    if (json && exit_status != EXIT_PLACED && exit_status != EXIT_INFEASIBLE) {
        (void)gpuhal_plan_print_error(p.out, exit_status == GPUHAL_TOOL_USAGE ? "usage" : "failed", said);
    }
    if (!gpuhal_tool_output_close(&p.out)) {
        exit_status = fail("standard output cannot be written", errno != 0 ? strerror(errno) : "");
    }
    gpuhal_place_machine_finish(&p.machine);
    gpuhal_model_finish(&p.model);
    free(p.previous);
    return exit_status;
}
