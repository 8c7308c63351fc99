/* kernel.c: see kernel.h. */
#include "kernel.h"

#include "program.h"
#include "work.h"

#include <gpuhal/error.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gpuhal_given *given_of(const gpuhal_context *context)
{
    return &context->options->given;
}

/* ---- the program */

typedef struct search {
    const char *format;
    bool found;
} search;

static void compare_format(void *user, const char *format)
{
    search *own = user;
    own->found = own->found || strcmp(own->format, format) == 0;
}

bool gpuhal_given_fits(const gpuhal_context *context)
{
    search own = {.format = given_of(context)->format};
    if (context->opened.slots.programs.program_load != NULL && given_of(context)->file != NULL) {
        gpuhal_formats_visit(context, compare_format, &own);
    }
    return own.found;
}

bool gpuhal_given_offered(const gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.programs.program_load != NULL, "program_load")) {
        return false;
    }
    if (given_of(context)->file == NULL) {
        gpuhal_skip("no kernel was given (--program and --kernel)");
        return false;
    }
    const bool fits = gpuhal_given_fits(context);
    if (!fits) {
        gpuhal_skip("the device does not take the format %s of the program", given_of(context)->format);
    }
    return fits;
}

gpuhal_code gpuhal_given_code(const gpuhal_context *context)
{
    const gpuhal_given *given = given_of(context);
    return (gpuhal_code){.size = sizeof(gpuhal_code),
                         .format = given->format,
                         .code = given->code,
                         .bytes = given->bytes,
                         .options = given->options};
}

/* ---- the kernel */

gpuhal_kernel_desc gpuhal_given_desc(const gpuhal_context *context, gpuhal_parameter room[GIVEN_MAX])
{
    const gpuhal_given *given = given_of(context);
    gpuhal_kernel_desc desc = {.size = sizeof desc, .name = given->kernel};
    memcpy(desc.group_size, given->group_size, sizeof desc.group_size);
    for (uint32_t p = 0; p < given->parameter_count; p++) {
        room[p] = given->parameters[p].parameter;
    }
    desc.parameters = given->has_parameters ? room : NULL;
    desc.parameter_count = given->parameter_count;
    return desc;
}

gpuhal_status gpuhal_given_create(const gpuhal_given_kernel *own, const gpuhal_kernel_desc *desc,
                                  gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    *out_info = (gpuhal_kernel_info){.size = sizeof *out_info};
    *out_kernel = NULL;
    gpuhal_step("the slot kernel_create");
    const gpuhal_status status = own->slots->programs.kernel_create(own->program, desc, out_info, out_kernel);
    if ((status == GPUHAL_OK) != (*out_kernel != NULL)) {
        gpuhal_fail_by(46, "kernel_create returned %s and %s kernel", gpuhal_status_text(status),
                       *out_kernel != NULL ? "a" : "no");
    }
    return status;
}

/* The command line may be wrong. This is not the plugin's fault. */
static void expect_taken(const gpuhal_context *context, gpuhal_status status, const char *call)
{
    if (status != GPUHAL_OK) {
        gpuhal_direct_failed(context->plugin, status, call);
        gpuhal_fail_with("Compare --program, --format, --kernel, --parameters and --group-size with the code: the "
                         "checks of kernels need one that the device takes.",
                         "%s", gpuhal_last_error()->sentence);
    }
}

static void take_parameters(gpuhal_given_kernel *own)
{
    const gpuhal_given *given = given_of(own->context);
    if (own->info.parameter_count > GIVEN_MAX) {
        gpuhal_fail_with("Give a kernel with fewer parameters.",
                         "the kernel has %" PRIu32 " parameters; %d can be given", own->info.parameter_count,
                         GIVEN_MAX);
    }
    own->parameter_count = own->info.parameter_count;
    if (own->parameter_count > 0 && own->info.parameters == NULL) {
        gpuhal_fail_by(46, "kernel_create stated %" PRIu32 " parameters, and described none", own->parameter_count);
    }
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        own->parameters[p] = given->parameters[p];
        if (given->has_parameters) {
            continue;
        }
        gpuhal_parameter reflected = own->info.parameters[p];
        reflected.flags = 0; /* only the caller knows which buffers are optional */
        if (!gpuhal_given_default(&reflected, &own->parameters[p])) {
            gpuhal_fail_with("Give a kernel with smaller values.",
                             "parameter %" PRIu32 " is a value of %" PRIu32 " bytes", p, own->info.parameters[p].bytes);
        }
    }
}

static void lay_out(gpuhal_given_kernel *own)
{
    uint64_t unit = gpuhal_device_fact(own->context, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 1);
    unit = unit < 256 || unit > 65536 ? 256 : unit;
    unit = gpuhal_round_up(unit, gpuhal_copy_unit(own->context));
    own->bytes = unit;
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        own->offsets[p] = own->bytes;
        if (own->parameters[p].parameter.kind == GPUHAL_PARAMETER_BUFFER) {
            own->bytes = gpuhal_round_up(own->bytes + own->parameters[p].bytes, unit) + unit;
        }
    }
}

void gpuhal_given_init(gpuhal_given_kernel *own, const gpuhal_context *context)
{
    const gpuhal_code code = gpuhal_given_code(context);
    gpuhal_parameter room[GIVEN_MAX];
    const gpuhal_kernel_desc desc = gpuhal_given_desc(context, room);
    *own = (gpuhal_given_kernel){.context = context, .slots = &context->opened.slots, .device = context->opened.device};
    expect_taken(context, gpuhal_program_try(&context->opened, &code, NULL, &own->program), "program_load");
    expect_taken(context, gpuhal_given_create(own, &desc, &own->info, &own->kernel), "kernel_create");
    take_parameters(own);
    lay_out(own);
}

void gpuhal_given_destroy(const gpuhal_given_kernel *own)
{
    gpuhal_step("the slot kernel_destroy");
    own->slots->programs.kernel_destroy(own->kernel);
}

void gpuhal_given_finish(gpuhal_given_kernel *own)
{
    gpuhal_given_destroy(own);
    gpuhal_step("the slot program_unload");
    own->slots->programs.program_unload(own->program);
}

/* ---- launches */

void gpuhal_given_arguments(const gpuhal_given_kernel *own, const gpuhal_memory *memory,
                            gpuhal_plugin_argument out_arguments[GIVEN_MAX])
{
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        const gpuhal_given_parameter *parameter = &own->parameters[p];
        const bool is_buffer = parameter->parameter.kind == GPUHAL_PARAMETER_BUFFER;
        out_arguments[p] = (gpuhal_plugin_argument){.kind = parameter->parameter.kind,
                                                    .access = is_buffer && parameter->parameter.access == 0
                                                                  ? GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE
                                                                  : parameter->parameter.access,
                                                    .memory = is_buffer ? memory : NULL,
                                                    .offset = is_buffer ? own->offsets[p] : 0,
                                                    .bytes = parameter->bytes};
    }
}

/* Returns an amount of additional local memory that does not affect the kernel; 0 if a launch must not request more. */
static uint32_t more_local(const gpuhal_kernel_info *info)
{
    enum { MORE = 16 };
    const bool fits = info->local_max_bytes == 0 ||
                      (info->local_max_bytes >= MORE && info->local_bytes <= info->local_max_bytes - MORE);
    return (info->flags & GPUHAL_KERNEL_ADDS_LOCAL) && fits ? MORE : 0;
}

void gpuhal_given_pack(const gpuhal_given_kernel *own, const gpuhal_plugin_argument arguments[GIVEN_MAX],
                       gpuhal_packed_launch *out_packed)
{
    out_packed->launch = (gpuhal_plugin_launch){.size = sizeof out_packed->launch,
                                                .argument_count = own->parameter_count,
                                                .arguments = out_packed->arguments,
                                                .local_bytes = more_local(&own->info)};
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        out_packed->arguments[p] = arguments[p];
        memcpy(out_packed->values[p], own->parameters[p].value, sizeof out_packed->values[p]);
        out_packed->arguments[p].value = arguments[p].kind == GPUHAL_PARAMETER_VALUE ? out_packed->values[p] : NULL;
    }
    gpuhal_given_apply(out_packed, own, NULL);
}

/* Returns @p three, or @p otherwise if all members of @p three are 0. */
static const uint32_t *pick(const uint32_t three[3], const uint32_t otherwise[3])
{
    return (three[0] | three[1] | three[2]) != 0 ? three : otherwise;
}

void gpuhal_given_apply(gpuhal_packed_launch *packed, const gpuhal_given_kernel *own, const gpuhal_launch_form *form)
{
    static const gpuhal_launch_form plain;
    static const uint32_t one[3] = {1, 1, 1};
    const gpuhal_launch_form *as = form != NULL ? form : &plain;
    gpuhal_plugin_launch *launch = &packed->launch;
    const uint32_t *groups = as->indirect != NULL ? one : pick(as->groups, given_of(own->context)->groups);
    const uint32_t *size = pick(as->group_size, own->info.group_size);
    for (unsigned d = 0; d < 3; d++) {
        launch->groups[d] = groups[d];
        launch->group_size[d] = size[d];
        launch->offset[d] = as->offset[d];
        launch->threads[d] = (uint64_t)groups[d] * size[d] - as->fewer[d];
    }
    launch->indirect = as->indirect;
    launch->indirect_offset = as->indirect_offset;
    for (uint32_t p = 0; p < own->parameter_count && as->without_optional; p++) {
        if ((own->parameters[p].parameter.flags & GPUHAL_PARAMETER_OPTIONAL) != 0) {
            packed->arguments[p].memory = NULL;
            packed->arguments[p].offset = packed->arguments[p].bytes = 0;
        }
    }
}

gpuhal_status gpuhal_given_launch(const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                                  const gpuhal_plugin_argument arguments[GIVEN_MAX])
{
    return gpuhal_given_launch_as(own, queue, arguments, NULL);
}

gpuhal_status gpuhal_given_launch_as(const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                                     const gpuhal_plugin_argument arguments[GIVEN_MAX], const gpuhal_launch_form *form)
{
    gpuhal_packed_launch packed;
    gpuhal_given_pack(own, arguments, &packed);
    gpuhal_given_apply(&packed, own, form);
    gpuhal_step(queue != NULL ? "the slot launch with a queue" : "the slot launch");
    const gpuhal_status status = own->slots->programs.launch(queue, own->kernel, &packed.launch);
    memset(packed.values, 0xa5, sizeof packed.values);
    memset(packed.arguments, 0, sizeof packed.arguments);
    __asm__ volatile("" : : "r"(&packed) : "memory");
    return status;
}

static void run_as(const gpuhal_given_kernel *own, const gpuhal_memory *memory, const gpuhal_launch_form *form)
{
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_arguments(own, memory, arguments);
    gpuhal_expect_ok(gpuhal_given_launch_as(own, NULL, arguments, form), "launch");
}

void gpuhal_given_run(const gpuhal_given_kernel *own, const gpuhal_memory *memory)
{
    run_as(own, memory, NULL);
}

void gpuhal_given_area(const gpuhal_given_kernel *own, gpuhal_area *area, uint64_t seed)
{
    gpuhal_area_init(area, own->context, &own->context->opened, GPUHAL_MEMORY_DEVICE, own->bytes);
    gpuhal_area_reset(area, seed, ROUTE_ANY);
}

unsigned char *gpuhal_given_result(const gpuhal_given_kernel *own, uint64_t seed)
{
    return gpuhal_given_result_as(own, seed, NULL);
}

unsigned char *gpuhal_given_result_as(const gpuhal_given_kernel *own, uint64_t seed, const gpuhal_launch_form *form)
{
    gpuhal_area area;
    unsigned char *result = gpuhal_own(malloc((size_t)own->bytes));
    gpuhal_given_area(own, &area, seed);
    run_as(own, &area.memory, form);
    gpuhal_plain_get(&own->context->opened, &area.memory, 0, result, own->bytes, ROUTE_ANY);
    gpuhal_area_finish(&area);
    return result;
}

void gpuhal_given_expect(gpuhal_area *area, const unsigned char *result, const char *what)
{
    gpuhal_area_changed(area, 0, result, area->bytes);
    gpuhal_area_verify(area, (gpuhal_claim){.bytes = area->bytes}, ROUTE_ANY, "%s", what);
}

bool gpuhal_given_has(const gpuhal_given_kernel *own, uint32_t flags)
{
    return (own->info.flags & flags) != 0;
}

bool gpuhal_given_has_optional(const gpuhal_given_kernel *own)
{
    bool any = false;
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        any = any || (own->parameters[p].parameter.flags & GPUHAL_PARAMETER_OPTIONAL) != 0;
    }
    return any;
}

/* Launches with the form in a queue, if queues accept launches, and compares. */
static void expect_in_queue(const gpuhal_given_kernel *own, const gpuhal_launch_form *form, gpuhal_area *area,
                            const unsigned char *result, const char *what)
{
    char in_queue[128];
    gpuhal_status status;
    const gpuhal_work work = {.opened = &own->context->opened, .slots = own->slots};
    gpuhal_plugin_queue *queue = gpuhal_work_queue(work.opened, 0);
    gpuhal_plugin_event *event = gpuhal_work_event(work.opened, 0);
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    snprintf(in_queue, sizeof in_queue, "%s, in a queue", what);
    gpuhal_given_arguments(own, &area->memory, arguments);
    gpuhal_area_reset(area, 1, ROUTE_ANY);
    while (gpuhal_work_full(&work, queue, status = gpuhal_given_launch_as(own, queue, arguments, form))) {
    }
    gpuhal_work_record(&work, queue, event);
    gpuhal_work_await(&work, event);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, in_queue);
        gpuhal_given_expect(area, result, in_queue);
    }
    work.slots->queues.event_destroy(event);
    work.slots->queues.queue_destroy(queue);
}

void gpuhal_given_expect_form(const gpuhal_given_kernel *own, const gpuhal_launch_form *form,
                              const unsigned char *result, const char *what)
{
    gpuhal_area area;
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_area(own, &area, 1);
    gpuhal_given_arguments(own, &area.memory, arguments);
    gpuhal_expect_ok(gpuhal_given_launch_as(own, NULL, arguments, form), what);
    gpuhal_given_expect(&area, result, what);
    if (own->slots->queues.queue_create != NULL) {
        expect_in_queue(own, form, &area, result, what);
    }
    gpuhal_area_finish(&area);
}

/* ---- other group sizes */

bool gpuhal_given_smaller(const gpuhal_given_kernel *own, uint32_t out_size[3])
{
    unsigned d = 0;
    memcpy(out_size, own->info.group_size, sizeof own->info.group_size);
    while (d < 3 && out_size[d] <= 1) {
        d++;
    }
    if (d < 3) {
        out_size[d] /= 2;
    }
    return d < 3;
}

void gpuhal_given_prepare(const gpuhal_given_kernel *own, const uint32_t size[3])
{
    if (gpuhal_given_has(own, GPUHAL_KERNEL_PREPARED_SIZES)) {
        gpuhal_step("the slot kernel_prepare");
        gpuhal_expect_ok(own->slots->programs.kernel_prepare(own->kernel, size), "kernel_prepare");
    }
}

gpuhal_status gpuhal_given_resize(const gpuhal_given_kernel *own, const uint32_t size[3],
                                  gpuhal_given_kernel *out_kernel)
{
    gpuhal_parameter room[GIVEN_MAX];
    gpuhal_kernel_desc desc = gpuhal_given_desc(own->context, room);
    memcpy(desc.group_size, size, sizeof desc.group_size);
    *out_kernel = *own;
    return gpuhal_given_create(own, &desc, &out_kernel->info, &out_kernel->kernel);
}
