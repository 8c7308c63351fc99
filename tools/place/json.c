/* json.c: the document gpuhal.place/1, described by docs/gpuhal.place-1.schema.json. All keys are always present, in
 * this order; a value that is unknown or does not apply is null. */
#include "print.h"

#include "../common/json.h"

#include <stdio.h>
#include <time.h>

#define SCHEMA "gpuhal.place/1"

/* Consumes the reference to @document, which may be NULL. */
static bool print(FILE *out, json_t *document)
{
    const bool printed = json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    json_decref(document);
    return fputc('\n', out) != EOF && printed;
}

static json_t *make_seconds(double seconds)
{
    return seconds > 0 ? json_real(seconds) : json_null();
}

static json_t *make_model(const gpuhal_plan *plan)
{
    const gpuhal_model *model = plan->model;
    uint64_t weights, states;
    gpuhal_plan_sums(model, &weights, &states);
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "file", gpuhal_json_text(plan->options->model), "name",
                     gpuhal_json_text(model->name), "architecture", gpuhal_json_text(model->architecture),
                     "layer_count", (json_int_t)model->layer_count, "context_tokens", (json_int_t)model->context,
                     "weight_bytes", (json_int_t)weights, "state_bytes", (json_int_t)states);
}

static json_t *make_devices(const gpuhal_place_machine *machine)
{
    json_t *array = json_array();
    for (uint32_t d = 0; d < machine->count; d++) {
        const gpuhal_placement_device *device = &machine->devices[d];
        json_array_append_new(
            array,
            json_pack("{s:o, s:I, s:I, s:o}", "id", gpuhal_json_text(device->name), "capacity_bytes",
                      (json_int_t)device->capacity_bytes, "margin_bytes", (json_int_t)device->margin_bytes,
                      "bytes_per_second",
                      device->bytes_per_second > 0 ? json_integer((json_int_t)device->bytes_per_second) : json_null()));
    }
    return array;
}

static json_t *make_stages(const gpuhal_plan *plan)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < gpuhal_plan_info(plan).stage_count; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        json_t *layers = json_array();
        for (uint32_t layer = stage.first_layer; layer < stage.first_layer + stage.layer_count; layer++) {
            json_array_append_new(layers, gpuhal_json_any_text(plan->model->names[layer]));
        }
        json_array_append_new(array,
                              json_pack("{s:o, s:I, s:I, s:o, s:I, s:I, s:o, s:o}", "device",
                                        gpuhal_json_text(plan->machine->devices[stage.device].name), "first_layer",
                                        (json_int_t)stage.first_layer, "layer_count", (json_int_t)stage.layer_count,
                                        "layers", layers, "used_bytes", (json_int_t)stage.used_bytes, "left_bytes",
                                        (json_int_t)stage.left_bytes, "seconds", make_seconds(stage.seconds),
                                        "link_seconds", make_seconds(stage.link_seconds)));
    }
    return array;
}

static json_t *make_plan(const gpuhal_plan *plan)
{
    const gpuhal_placement_info info = gpuhal_plan_info(plan);
    return json_pack("{s:o, s:o, s:f, s:o, s:f, s:o}", "step_seconds", make_seconds(info.step_seconds),
                     "slowest_seconds", make_seconds(info.slowest_seconds), "largest_share", info.largest_share,
                     "moved_bytes",
                     plan->problem->previous != NULL ? json_integer((json_int_t)info.moved_bytes) : json_null(), "gap",
                     info.gap, "stages", make_stages(plan));
}

static json_t *make_shortfall(const gpuhal_plan *plan)
{
    static const char *const constraints[] = {NULL, "layer", "memory", "devices", "layer_limit", "links"};
    const gpuhal_placement_shortfall *shortfall = plan->shortfall;
    return json_pack("{s:s, s:o, s:o, s:I, s:o}", "constraint", constraints[shortfall->constraint], "layer",
                     shortfall->layer == UINT32_MAX ? json_null()
                                                    : gpuhal_json_any_text(plan->model->names[shortfall->layer]),
                     "device",
                     shortfall->device == UINT32_MAX ? json_null()
                                                     : gpuhal_json_text(plan->machine->devices[shortfall->device].name),
                     "missing_bytes", (json_int_t)shortfall->missing_bytes, "message", gpuhal_json_text(plan->why));
}

bool gpuhal_plan_print_json(const gpuhal_plan *plan)
{
    const bool fits = plan->placement != NULL;
    return print(plan->out,
                 json_pack("{s:s, s:o, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "schema", SCHEMA, "generated_at",
                           gpuhal_json_time((uint64_t)time(NULL)), "library_version", gpuhal_version(), "status",
                           fits ? "placed" : "infeasible", "objective",
                           plan->options->lost != NULL ? "moved" : gpuhal_place_objectives[plan->options->objective],
                           "free_order", (int)plan->options->free_order, "model", make_model(plan), "devices",
                           make_devices(plan->machine), "plan", fits ? make_plan(plan) : json_null(), "shortfall",
                           fits ? json_null() : make_shortfall(plan)));
}

bool gpuhal_plan_print_error(FILE *out, const char *code, const char *message)
{
    return print(out, gpuhal_json_error(SCHEMA, "gpuhal-place", code, message));
}
