/* rows_recording.c: one step of an engine, as calls in a queue and as runs of a recording: a write, many launches of
 * one kernel, a read, and one wait. The times are processor time of the calling thread, because the driver and the
 * kernels need the same time on both sides, and the thread of an engine has other work. */
#include "launcher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 256,
    BYTES = COUNT * sizeof(float),
    RESULTS = 4,  /* The launches write these buffers in turn. */
    REPLACED = 4, /* Further buffers. Runs replace the result of some launches by one of these. */
    SLOTS = REPLACED
};

/* What a row measures. A step has @runs runs of a recording of @launches launches. Runs replace a value of @values
 * launches, or the buffer of @buffers launches. The baseline are the calls, or with @beside_run runs that change
 * nothing. */
typedef struct row_plan {
    const char *test;
    uint32_t launches, runs, values, buffers;
    bool beside_run;
    double vulkan, cpu; /* The budgets; NAN if there is none. */
} row_plan;

typedef struct engine {
    const row_plan *plan;
    gpuhal_bench_launcher launcher; /* its y is one of the buffers */
    gpuhal_buffer *buffers[RESULTS + REPLACED];
    gpuhal_recording *recording;
    uint32_t turn; /* Each step with changes has other values or buffers than the step before it. */
    float x[COUNT], y[COUNT];
} engine;

/* Prepares the launcher for a launch of this turn. Returns whether the launch changes between turns; *out_nth then
 * counts these launches from 0. They are spread over the step. */
static bool choose(engine *e, uint32_t launch, uint32_t *out_nth)
{
    const uint32_t changing = e->plan->values + e->plan->buffers;
    *out_nth = launch * changing / e->plan->launches;
    const bool changes = (launch + 1) * changing / e->plan->launches > *out_nth;
    const bool replaces = changes && e->plan->buffers > 0;
    e->launcher.a = changes && e->plan->values > 0 ? (float)(1 + e->turn % 2) : 1;
    e->launcher.y = e->buffers[replaces ? RESULTS + (*out_nth + e->turn) % REPLACED : launch % RESULTS];
    return changes;
}

static bool begin_step(const engine *e)
{
    return gpuhal_write(e->launcher.queue, e->launcher.x, 0, e->x, BYTES) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_write");
}

static bool end_step(engine *e)
{
    return (gpuhal_read(e->launcher.queue, e->y, e->buffers[0], 0, BYTES) == GPUHAL_OK ||
            gpuhal_bench_failed_call("gpuhal_read")) &&
           gpuhal_bench_launcher_await(&e->launcher);
}

static bool step_of_calls(void *user, uint64_t count)
{
    engine *e = user;
    uint32_t nth;
    for (uint64_t i = 0; i < count; i++) {
        e->turn++;
        bool good = begin_step(e);
        for (uint32_t launch = 0; good && launch < e->plan->launches * e->plan->runs; launch++) {
            choose(e, launch % e->plan->launches, &nth);
            good = gpuhal_bench_launcher_enqueue(&e->launcher, e->launcher.queue);
        }
        if (!good || !end_step(e)) {
            return false;
        }
    }
    return true;
}

static bool step_of_runs(engine *e, const gpuhal_slot_value *values, uint32_t value_count)
{
    bool good = begin_step(e);
    for (uint32_t run = 0; good && run < e->plan->runs; run++) {
        good = gpuhal_recording_run(e->launcher.queue, e->recording, values, value_count) == GPUHAL_OK ||
               gpuhal_bench_failed_call("gpuhal_recording_run");
    }
    return good && end_step(e);
}

static bool step_without_changes(void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!step_of_runs(user, NULL, 0)) {
            return false;
        }
    }
    return true;
}

/* One slot has the value of all launches, as a position in a text. Each buffer has its own slot. */
static bool step_with_changes(void *user, uint64_t count)
{
    engine *e = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_slot_value values[SLOTS] = {{.slot = 0}};
        e->turn++;
        const float a = (float)(1 + e->turn % 2);
        values[0].argument = (gpuhal_argument){.value = &a, .bytes = sizeof a};
        for (uint32_t slot = 0; slot < e->plan->buffers; slot++) {
            values[slot] = (gpuhal_slot_value){
                .slot = slot, .argument = {.buffer = e->buffers[RESULTS + (slot + e->turn) % REPLACED]}};
        }
        if (!step_of_runs(e, values, e->plan->buffers > 0 ? e->plan->buffers : 1)) {
            return false;
        }
    }
    return true;
}

/* ---- creation */

static bool record(gpuhal_device *device, engine *e)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "step", .slot_count = SLOTS};
    bool good = gpuhal_recording_create(device, &desc, &e->recording) == GPUHAL_OK ||
                gpuhal_bench_failed_call("gpuhal_recording_create");
    for (uint32_t launch = 0; good && launch < e->plan->launches; launch++) {
        uint32_t nth;
        const bool changes = choose(e, launch, &nth), replaces = e->plan->buffers > 0;
        good = gpuhal_bench_launcher_record(&e->launcher, e->recording) &&
               (!changes ||
                gpuhal_recording_slot(e->recording, replaces ? nth : 0, launch, replaces ? 0 : 2) == GPUHAL_OK ||
                gpuhal_bench_failed_call("gpuhal_recording_slot"));
    }
    return good &&
           (gpuhal_recording_finish(e->recording) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_recording_finish"));
}

static bool open_engine(gpuhal_device *device, engine *e)
{
    bool good = gpuhal_bench_launcher_open(device, COUNT, 0, &e->launcher);
    e->buffers[0] = e->launcher.y;
    for (int i = 1; good && i < RESULTS + REPLACED; i++) {
        good = gpuhal_bench_buffer(device, BYTES, &e->buffers[i]);
    }
    return good && gpuhal_bench_reads(e->x, e->launcher.x, BYTES, 1) && record(device, e);
}

static void close_engine(engine *e)
{
    gpuhal_recording_release(e->recording);
    e->launcher.y = e->buffers[0];
    for (int i = 1; i < RESULTS + REPLACED; i++) {
        gpuhal_buffer_release(e->buffers[i]);
    }
    gpuhal_bench_launcher_close(&e->launcher);
}

/* Runs a step, and compares each buffer with the sum of the launches that write it. */
static bool prove(engine *e, const gpuhal_bench_side *side)
{
    uint64_t sums[RESULTS + REPLACED] = {0};
    bool good = true;
    uint32_t nth;
    for (int i = 0; good && i < RESULTS + REPLACED; i++) {
        e->launcher.y = e->buffers[i];
        good = gpuhal_bench_launcher_clear(&e->launcher);
    }
    good = good && side->run(e, 1);
    for (uint32_t launch = 0; launch < e->plan->launches; launch++) {
        choose(e, launch, &nth);
        for (int i = 0; i < RESULTS + REPLACED; i++) {
            sums[i] += e->launcher.y == e->buffers[i] ? (uint64_t)e->launcher.a * e->plan->runs : 0;
        }
    }
    for (int i = 0; good && i < RESULTS + REPLACED; i++) {
        e->launcher.y = e->buffers[i];
        good = gpuhal_bench_launcher_prove(&e->launcher, sums[i]);
    }
    return good;
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_row row, engine *e)
{
    const bool changes = e->plan->values + e->plan->buffers > 0;
    const gpuhal_bench_side calls = {step_of_calls, e, NULL}, runs = {step_without_changes, e, NULL};
    const gpuhal_bench_side sides[] = {changes ? (gpuhal_bench_side){step_with_changes, e, NULL} : runs,
                                       e->plan->beside_run ? runs : calls};
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    plan.thread_time = true;
    return open_engine(device, e) && prove(e, &sides[0]) && prove(e, &sides[1]) &&
           gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan);
}

/* The launcher has no code for CUDA and HIP. */
void gpuhal_bench_rows_recording(gpuhal_bench *bench, gpuhal_device *device)
{
    static const row_plan plans[] = {
        {"recording_76", 76, 1, 0, 0, false, 1 / 0.3, 1 / 0.5},
        {"recording_152", 152, 1, 0, 0, false, 1 / 0.3, NAN},
        /* 1/0.1 is missed on lavapipe: a thread submits every 256 launches, and looks for ended work each time. */
        {"recording_513", 513, 1, 0, 0, false, 1 / 0.2, 1 / 0.5},
        {"recording_8x76", 76, 8, 0, 0, false, 1 / 0.2, NAN},
        /* 1/0.5 is missed on lavapipe: a launch with a new value is recorded again, which costs as much as a call. */
        {"recording_28_values", 76, 1, 28, 0, false, NAN, NAN},
        {"recording_4_values", 76, 1, 4, 0, true, 1 / 3.0, NAN},
        {"recording_4_buffers", 76, 1, 0, 4, true, 1 / 1.5, NAN},
    };
    if (*gpuhal_device_formats(device) == '\0' || gpuhal_bench_is_streamed(device)) {
        return;
    }
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        engine e = {.plan = &plans[i]};
        gpuhal_bench_row row = gpuhal_bench_row_of(device, plans[i].test, GPUHAL_BENCH_TIMES);
        row.budget = gpuhal_bench_is_cpu(device)                            ? plans[i].cpu
                     : strcmp(gpuhal_device_backend(device), "vulkan") == 0 ? plans[i].vulkan
                                                                            : NAN;
        gpuhal_bench_begin(bench->output, &row);
        if (!measure(bench, device, row, &e)) {
            gpuhal_bench_not_measured(bench);
        }
        close_engine(&e);
    }
}
