/* checks_recording_forms.c: recordings of launches with another form than the given one. Each form is tested if the
 * kernel has the flag for it. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST, SECOND }; /* numbers of the only plan and queue, and of memory objects */

typedef gpuhal_planned_launch planned;

/* Creates a recording of the plan, whose step @p index may change, and runs it twice. Then replaces this launch by one
 * with other values and one group fewer, and runs the recording again. */
static void create_and_run(gpuhal_recorder *recorder, uint32_t index, planned launch)
{
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_await(recorder);
    launch.minus = launch.fewer = 1;
    gpuhal_recorder_set(recorder, FIRST, &index, &launch, 1);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

/* Launches of the form before and after a plain launch. */
static void launches(gpuhal_recorder *recorder, planned launch)
{
    launch.memory = SECOND;
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, launch);
    gpuhal_plan_launch(recorder, FIRST, 0, (planned){.memory = FIRST});
    gpuhal_plan_launch(recorder, FIRST, 0, (planned){.memory = FIRST, .place = 1, .form = launch.form});
    create_and_run(recorder, 0, launch);
}

static void other_size(gpuhal_recorder *recorder)
{
    planned launch = {.memory = FIRST};
    (void)gpuhal_given_smaller(&recorder->own, launch.form.group_size);
    launches(recorder, launch);
}

static void lacking_threads(gpuhal_recorder *recorder)
{
    launches(recorder, (planned){.form.fewer[0] = recorder->own.info.group_size[0] - 1});
}

static void offset(gpuhal_recorder *recorder)
{
    planned launch = {.form.offset[0] = 1};
    memcpy(launch.form.groups, recorder->context->options->given.groups, sizeof launch.form.groups);
    launch.form.groups[0] -= 1;
    launches(recorder, launch);
}

static void no_buffer(gpuhal_recorder *recorder)
{
    launches(recorder, (planned){.form.without_optional = true});
}

/* The places of three numbers of groups in the tail of the second memory: where the launches read them, and where the
 * copies come from. */
static uint64_t number_place(const gpuhal_recorder *recorder, unsigned place)
{
    return recorder->place - (RECORDER_TAIL - 16 * place) * recorder->unit;
}

static void put_numbers(const gpuhal_recorder *recorder, unsigned place, const uint32_t groups[3])
{
    const gpuhal_area *area = recorder->is_model ? &recorder->model[SECOND] : &recorder->areas[SECOND];
    const uint64_t bytes = gpuhal_round_up(3 * sizeof *groups, recorder->unit);
    unsigned char *room = gpuhal_own(calloc(1, (size_t)bytes));
    memcpy(room, groups, 3 * sizeof *groups);
    gpuhal_plain_put(area->opened, &area->memory, number_place(recorder, place), room, bytes, ROUTE_ANY);
    free(room);
}

/* Copies write the numbers before each launch, and overwrite them afterwards. */
static void groups_in_memory(gpuhal_recorder *recorder)
{
    static const uint32_t one[3] = {1, 1, 1};
    const uint64_t unit = recorder->unit, bytes = gpuhal_round_up(sizeof one, unit);
    planned launch = {.memory = FIRST, .indirect = true, .numbers = SECOND};
    launch.form.indirect_offset = number_place(recorder, 0);
    put_numbers(recorder, 0, one);
    put_numbers(recorder, 1, recorder->context->options->given.groups);
    put_numbers(recorder, 2, one);
    for (unsigned place = 0; place < 2; place++) {
        launch.place = place;
        gpuhal_plan_copy(recorder, FIRST, SECOND, number_place(recorder, 0), SECOND, number_place(recorder, 1), bytes);
        gpuhal_plan_launch(recorder, FIRST, place == 1 ? GPUHAL_STEP_CHANGES : 0, launch);
        gpuhal_plan_copy(recorder, FIRST, SECOND, number_place(recorder, 0), SECOND, number_place(recorder, 2), bytes);
    }
    create_and_run(recorder, 4, launch);
}

void gpuhal_check_recording_forms(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    uint32_t size[3];
    if (!gpuhal_given_offered(context) || !gpuhal_recorder_begin(&recorder, context, false)) {
        return;
    }
    const gpuhal_given_kernel *own = &recorder.own;
    if (gpuhal_given_has(own, GPUHAL_KERNEL_GROUP_SIZE) && gpuhal_given_smaller(own, size)) {
        gpuhal_given_prepare(own, size);
        gpuhal_recorder_play(&recorder, other_size, "a recording of launches with another group size");
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_THREADS)) {
        gpuhal_recorder_play(&recorder, lacking_threads,
                             "a recording of launches whose last group does not have all threads");
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_OFFSET) && context->options->given.groups[0] > 1) {
        gpuhal_recorder_play(&recorder, offset, "a recording of launches with an offset");
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_NULL_BUFFERS) && gpuhal_given_has_optional(own)) {
        gpuhal_recorder_play(&recorder, no_buffer, "a recording of launches without an optional buffer");
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_INDIRECT) &&
        (recorder.areas[SECOND].memory.flags & GPUHAL_MEMORY_NO_INDIRECT) == 0) {
        gpuhal_recorder_play(&recorder, groups_in_memory, "a recording of launches with their groups in memory");
    }
    if (recorder.played == 0) {
        gpuhal_skip("the kernel has no other form of launch (flags of gpuhal_kernel_info)");
        gpuhal_recorder_finish(&recorder);
        return;
    }
    gpuhal_recorder_end(&recorder);
}
