/* print.h: prints a plan in the formats of --format. Each function returns false if it fails. */
#ifndef GPUHAL_TOOL_PLACE_PRINT_H
#define GPUHAL_TOOL_PLACE_PRINT_H

#include "machine.h"
#include "model.h"

#include <stdio.h>

typedef struct gpuhal_plan {
    FILE *out;
    const gpuhal_place_options *options;
    const gpuhal_model *model;
    const gpuhal_place_machine *machine;
    const gpuhal_placement_problem *problem;
    const gpuhal_placement *placement;           /* NULL if the model does not fit */
    const gpuhal_placement_shortfall *shortfall; /* set if the model does not fit */
    const char *why;                             /* explains why the model does not fit */
} gpuhal_plan;

bool gpuhal_plan_print_table(const gpuhal_plan *plan);
bool gpuhal_plan_print_json(const gpuhal_plan *plan);
/* Prints the argument for another program, on one line. */
bool gpuhal_plan_print_for(const gpuhal_plan *plan);
/* Prints an error that occurred before there was a plan. */
bool gpuhal_plan_print_error(FILE *out, const char *code, const char *message);

gpuhal_placement_stage gpuhal_plan_stage(const gpuhal_plan *plan, uint32_t index);
gpuhal_placement_info gpuhal_plan_info(const gpuhal_plan *plan);
/* Sums the bytes of all layers; tied weights count once. */
void gpuhal_plan_sums(const gpuhal_model *model, uint64_t *out_weights, uint64_t *out_states);

#endif
