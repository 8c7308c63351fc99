/* checks_recording.c: the bytes of recordings, and their changes. */
#include "recorder.h"

enum { FIRST, SECOND }; /* numbers of plans, of queues, and of memory objects */
enum { BEHIND = 40 };

typedef gpuhal_planned_launch planned;

static const gpuhal_planned_launch plain = {.memory = FIRST};

/* Creates a recording of the plan, and runs it. */
static void create_and_run(gpuhal_recorder *recorder)
{
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

/* ---- bytes */

static void one_copy(gpuhal_recorder *recorder)
{
    const uint64_t unit = recorder->unit;
    gpuhal_plan_copy(recorder, FIRST, SECOND, 3 * unit, FIRST, 5 * unit, 7 * unit);
    create_and_run(recorder);
}

static void one_fill(gpuhal_recorder *recorder, uint32_t pattern_bytes)
{
    const uint64_t step = recorder->unit > pattern_bytes ? recorder->unit : pattern_bytes;
    gpuhal_plan_fill(recorder, FIRST, FIRST, 3 * step, 5 * step, 0xd4c3b2a1, pattern_bytes);
    if (recorder->plans[FIRST].count > 0) {
        create_and_run(recorder);
    }
}

static void one_fill_of_1(gpuhal_recorder *recorder)
{
    one_fill(recorder, 1);
}

static void one_fill_of_2(gpuhal_recorder *recorder)
{
    one_fill(recorder, 2);
}

static void one_fill_of_4(gpuhal_recorder *recorder)
{
    one_fill(recorder, 4);
}

static void one_launch(gpuhal_recorder *recorder)
{
    gpuhal_plan_launch(recorder, FIRST, 0, (planned){.memory = SECOND, .place = 1});
    if (recorder->plans[FIRST].count > 0) {
        create_and_run(recorder);
    }
}

static void chain(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, 20);
    create_and_run(recorder);
}

static void chain_twice(gpuhal_recorder *recorder)
{
    chain(recorder);
    gpuhal_recorder_await(recorder);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

static void longest_chain(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, GPUHAL_PLUGIN_STEPS_MAX);
    create_and_run(recorder);
}

void gpuhal_check_recording(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    if (!gpuhal_recorder_begin(&recorder, context, false)) {
        return;
    }
    gpuhal_recorder_play(&recorder, one_copy, "a recording of one copy");
    gpuhal_recorder_play(&recorder, one_fill_of_1, "a recording of one fill with a pattern of 1 byte");
    gpuhal_recorder_play(&recorder, one_fill_of_2, "a recording of one fill with a pattern of 2 bytes");
    gpuhal_recorder_play(&recorder, one_fill_of_4, "a recording of one fill with a pattern of 4 bytes");
    gpuhal_recorder_play(&recorder, one_launch, "a recording of one launch");
    gpuhal_recorder_play(&recorder, chain, "a recording of 20 steps, each on bytes of the step before");
    gpuhal_recorder_play(&recorder, chain_twice, "the second run of a recording of 20 steps");
    gpuhal_recorder_play(&recorder, longest_chain, "a recording of 256 steps");
    gpuhal_recorder_end(&recorder);
}

/* ---- changes */

/* Steps 1, 3 and 5 may change. */
enum { CHANGED_A = 1, CHANGED_B = 3, CHANGED_C = 5 };

static void create_changing(gpuhal_recorder *recorder)
{
    const uint64_t place = recorder->place, unit = recorder->unit;
    gpuhal_plan_launch(recorder, FIRST, 0, (planned){.memory = FIRST, .minus = 1});
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, plain);
    gpuhal_plan_copy(recorder, FIRST, SECOND, 5 * unit, FIRST, 3 * unit, 7 * unit);
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, (planned){.memory = SECOND, .fewer = 1});
    gpuhal_plan_copy(recorder, FIRST, FIRST, place, SECOND, 0, place);
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, (planned){.memory = FIRST, .place = 1, .minus = 2});
    gpuhal_plan_launch(recorder, FIRST, 0, (planned){.memory = SECOND, .place = 1, .minus = 2});
    gpuhal_recorder_create(recorder, FIRST);
}

static void set_one(gpuhal_recorder *recorder, uint32_t index, planned launch)
{
    gpuhal_recorder_set(recorder, FIRST, &index, &launch, 1);
}

static void run(gpuhal_recorder *recorder)
{
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_await(recorder);
}

static void set_values(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    set_one(recorder, CHANGED_B, (planned){.memory = SECOND, .minus = 3, .fewer = 1});
    run(recorder);
    run(recorder);
    run(recorder);
    set_one(recorder, CHANGED_A, (planned){.memory = FIRST, .minus = 4});
    run(recorder);
}

static void set_offsets(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    set_one(recorder, CHANGED_B, (planned){.memory = SECOND, .place = 2, .fewer = 1});
    run(recorder);
}

static void set_memory(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    set_one(recorder, CHANGED_B, (planned){.memory = FIRST, .fewer = 1});
    run(recorder);
}

static void set_groups(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    set_one(recorder, CHANGED_A, (planned){.memory = FIRST, .fewer = 2});
    run(recorder);
    set_one(recorder, CHANGED_A, plain);
    run(recorder);
}

static void set_several(gpuhal_recorder *recorder)
{
    const uint32_t indexes[] = {CHANGED_A, CHANGED_B, CHANGED_C};
    const planned launches[] = {{.memory = SECOND, .place = 2, .minus = 5},
                                {.memory = FIRST, .place = 2, .minus = 6},
                                {.memory = SECOND, .place = 1, .minus = 7, .fewer = 1}};
    create_changing(recorder);
    gpuhal_recorder_set(recorder, FIRST, indexes, launches, 3);
    run(recorder);
}

static void set_often(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    run(recorder);
    set_one(recorder, CHANGED_A, (planned){.memory = FIRST, .minus = 1});
    set_one(recorder, CHANGED_C, (planned){.memory = FIRST, .place = 1, .minus = 6});
    set_one(recorder, CHANGED_A, (planned){.memory = FIRST, .minus = 8, .fewer = 1});
    run(recorder);
}

static void set_released(gpuhal_recorder *recorder)
{
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, (planned){.memory = SECOND});
    gpuhal_plan_launch(recorder, FIRST, 0, plain);
    gpuhal_recorder_create(recorder, FIRST);
    run(recorder);
    gpuhal_recorder_release(recorder, SECOND);
    set_one(recorder, 0, (planned){.memory = SECOND});
    run(recorder);
}

static void set_all(gpuhal_recorder *recorder)
{
    uint32_t indexes[GPUHAL_PLUGIN_STEPS_MAX];
    planned launches[GPUHAL_PLUGIN_STEPS_MAX];
    for (uint32_t s = 0; s < GPUHAL_PLUGIN_STEPS_MAX; s++) {
        indexes[s] = s;
        launches[s] = (planned){.memory = s % 2, .place = s % 3, .minus = s % 5, .fewer = s % 2};
        gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, plain);
    }
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_set(recorder, FIRST, indexes, launches, GPUHAL_PLUGIN_STEPS_MAX);
    run(recorder);
}

/* The runs are enqueued while earlier work of the queue keeps them from beginning. */
static void set_behind_runs(gpuhal_recorder *recorder)
{
    create_changing(recorder);
    gpuhal_recorder_load(recorder);
    for (unsigned r = 0; r < BEHIND; r++) {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
        set_one(recorder, CHANGED_A, (planned){.memory = FIRST, .place = r % 3, .minus = r % 7, .fewer = r % 2});
    }
    gpuhal_recorder_follow(recorder, SECOND, FIRST);
    gpuhal_recorder_run(recorder, SECOND, FIRST);
}

void gpuhal_check_recording_set(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    if (!gpuhal_given_offered(context) || !gpuhal_recorder_begin(&recorder, context, true)) {
        return;
    }
    if (context->options->given.groups[0] == 1) {
        gpuhal_note("the kernel was given with one group, so changed groups were not tested (--groups)");
    }
    gpuhal_recorder_play(&recorder, set_values, "runs after recording_set changed values");
    gpuhal_recorder_play(&recorder, set_offsets, "a run after recording_set changed offsets of buffers");
    gpuhal_recorder_play(&recorder, set_memory, "a run after recording_set changed the memory of buffers");
    gpuhal_recorder_play(&recorder, set_groups, "runs after recording_set changed groups");
    gpuhal_recorder_play(&recorder, set_several, "a run after recording_set changed three steps");
    gpuhal_recorder_play(&recorder, set_often, "a run after three calls of recording_set");
    gpuhal_recorder_play(&recorder, set_released,
                         "a run after the memory of a launch was released and recording_set replaced it");
    gpuhal_recorder_play(&recorder, set_all, "a run after recording_set changed 256 steps");
    gpuhal_recorder_play(&recorder, set_behind_runs,
                         "runs that were enqueued behind slow work, with recording_set between them");
    gpuhal_recorder_end(&recorder);
}
