/* main.c: gpuhal-bench, which measures the library, and gpuhal-bench-baseline, which also measures the vendors' calls.
 * docs/measurements/README.md describes the method. */
#include "bench.h"
#include "child.h"
#include "json.h"
#include "watch.h"
#include "../common/errors.h"

#include <stdio.h>
#include <unistd.h>

static int stop(const gpuhal_bench_options *options, int exit_code)
{
    fprintf(stderr, "gpuhal-bench: %s\n", gpuhal_bench_failure());
    if (options->json) {
        gpuhal_bench_json_error(exit_code, gpuhal_bench_failure());
    }
    return exit_code;
}

static int open_library(gpuhal_bench *bench)
{
    const gpuhal_config config = {
        .size = sizeof config, .hang_ns = bench->options->hang_ns, .ledger = gpuhal_bench_lease_folder()};
    const gpuhal_status status = gpuhal_open(&config, &bench->gpu);
    if (status != GPUHAL_OK) {
        gpuhal_bench_failed_call("gpuhal_open");
        return stop(bench->options,
                    status == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_BENCH_EXIT_NOT_FOUND : GPUHAL_BENCH_EXIT_FAILED);
    }
    if (gpuhal_device_count(bench->gpu) == 0) {
        gpuhal_bench_failed("there is no device (gpuhal-probe --explain says why)");
        return stop(bench->options, GPUHAL_BENCH_EXIT_NO_DEVICE);
    }
    const char *selector = bench->options->device;
    if (selector == NULL && bench->options->replay != NULL) {
        bench->only = gpuhal_bench_cpu(bench->gpu);
        if (bench->only == NULL) {
            gpuhal_bench_failed("there is no cpu:0; --device names another device");
            return stop(bench->options, GPUHAL_BENCH_EXIT_NO_DEVICE);
        }
    }
    if (selector == NULL) {
        return GPUHAL_BENCH_EXIT_OK;
    }
    const gpuhal_status found = gpuhal_select(bench->gpu, selector, 0, &bench->only, NULL);
    if (found != GPUHAL_OK) {
        gpuhal_bench_failed("--device %s: %s", selector, gpuhal_last_error()->sentence);
        return stop(bench->options,
                    found == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_BENCH_EXIT_NOT_FOUND : GPUHAL_BENCH_EXIT_USAGE);
    }
    return GPUHAL_BENCH_EXIT_OK;
}

static const char *cpu_name(const gpuhal *gpu)
{
    const gpuhal_device *cpu = gpuhal_bench_cpu(gpu);
    const char *name = NULL;
    return cpu != NULL && gpuhal_device_text(cpu, GPUHAL_FACT_NAME, &name) == GPUHAL_OK ? name : NULL;
}

/* Prints a note for each backend without a device, so that the user knows why its rows are missing. */
static void note_backends_without_devices(const gpuhal_bench *bench)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_view *view = NULL;
    if (bench->only != NULL || gpuhal_view_of(bench->gpu, 0, &view) != GPUHAL_OK) {
        return;
    }
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (report.device_count == 0 && report.state != GPUHAL_PLUGIN_DUPLICATE) {
            const bool silent = *report.reason == '\0';
            gpuhal_bench_note(bench->output, report.name, NULL, silent ? "it lists no device" : report.reason);
        }
    }
    gpuhal_view_release(view);
}

/* Runs on the watch's thread, because the main thread is stuck in the driver and cannot be interrupted. */
static void end_stuck(void *user)
{
    const gpuhal_bench *bench = user;
    char why[128];
    snprintf(why, sizeof why, "a call did not return within %.3g s: the driver hangs; the run ends here",
             (double)bench->options->hang_ns / 1e9);
    gpuhal_bench_row_failed(bench->output, why);
    gpuhal_bench_output_finish(bench->output);
    _exit(GPUHAL_BENCH_EXIT_FAILED);
}

static bool wants(const gpuhal_bench *bench, gpuhal_bench_group group)
{
    return (bench->options->groups >> group & 1) != 0;
}

static void measure_device(gpuhal_bench *bench, gpuhal_device *device)
{
    static const struct {
        gpuhal_bench_group group;
        void (*rows)(gpuhal_bench *bench, gpuhal_device *device);
    } groups[] = {
        {GPUHAL_BENCH_CALL, gpuhal_bench_rows_call},         {GPUHAL_BENCH_CALL, gpuhal_bench_rows_lease},
        {GPUHAL_BENCH_QUEUE, gpuhal_bench_rows_queue},       {GPUHAL_BENCH_BATCH, gpuhal_bench_rows_batch},
        {GPUHAL_BENCH_LAUNCH, gpuhal_bench_rows_launch},     {GPUHAL_BENCH_RECORDING, gpuhal_bench_rows_recording},
        {GPUHAL_BENCH_ALLOCATE, gpuhal_bench_rows_allocate}, {GPUHAL_BENCH_ALLOCATE, gpuhal_bench_rows_threads},
        {GPUHAL_BENCH_OPEN, gpuhal_bench_rows_open},         {GPUHAL_BENCH_SAMPLE, gpuhal_bench_rows_sample},
        {GPUHAL_BENCH_FILE, gpuhal_bench_rows_file},         {GPUHAL_BENCH_FILE, gpuhal_bench_rows_store},
        {GPUHAL_BENCH_FILE, gpuhal_bench_rows_hit},          {GPUHAL_BENCH_COPY, gpuhal_bench_rows_copy},
        {GPUHAL_BENCH_SHARE, gpuhal_bench_rows_share}, /* prints separate blocks in the table, so it is last */
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (wants(bench, groups[i].group)) {
            groups[i].rows(bench, device);
        }
    }
}

static int run_replay(gpuhal_bench *bench, const gpuhal_bench_replay *replay)
{
    gpuhal_bench_rows_replay(bench, bench->only, replay);
    return gpuhal_bench_output_finish(bench->output) ? GPUHAL_BENCH_EXIT_OK : GPUHAL_BENCH_EXIT_FAILED;
}

/* The library abandons a device after hang_ns. This ends the calls that wait in the library, and the run continues, so
 * the watch waits longer. */
static bool begin_output(gpuhal_bench *bench)
{
    bench->output = gpuhal_bench_output_create(bench->options, cpu_name(bench->gpu));
    return bench->output != NULL && gpuhal_bench_watch_start(bench->options->hang_ns / 3 * 4, end_stuck, bench);
}

static int run_groups(gpuhal_bench *bench)
{
    note_backends_without_devices(bench);
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        if (bench->only == NULL || bench->only == device) {
            measure_device(bench, device);
        }
    }
    if (wants(bench, GPUHAL_BENCH_OPEN) && bench->only == NULL) {
        gpuhal_bench_rows_open_all(bench);
    }
    if (wants(bench, GPUHAL_BENCH_PAIRS)) {
        gpuhal_bench_rows_pairs(bench);
    }
    if (wants(bench, GPUHAL_BENCH_BLOCKS) && bench->only == NULL) {
        gpuhal_bench_rows_blocks(bench);
    }
    if (wants(bench, GPUHAL_BENCH_PLACE) && bench->only == NULL) {
        gpuhal_bench_rows_place(bench);
    }
    const bool good = gpuhal_bench_output_finish(bench->output);
    return good ? GPUHAL_BENCH_EXIT_OK : GPUHAL_BENCH_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    static gpuhal_bench bench;
    gpuhal_bench_replay replay = {0};
    gpuhal_bench_options options;
    int exit_code = GPUHAL_BENCH_EXIT_OK;
    char said[1024];
    const int caught = gpuhal_tool_wants_json(argc, argv) ? gpuhal_tool_errors_catch() : -1;
    const bool read = gpuhal_bench_options_read(argc, argv, &options, &exit_code);
    gpuhal_tool_errors_release(caught, said, sizeof said);
    if (!read) {
        if (exit_code == GPUHAL_BENCH_EXIT_USAGE && caught >= 0) {
            gpuhal_bench_json_error(exit_code, said);
        }
        return exit_code;
    }
    if (options.child != NULL) {
        return gpuhal_bench_child_main(options.child);
    }
    bench.options = &options;
    if (options.replay != NULL && !gpuhal_bench_replay_read(options.replay, &replay)) {
        return stop(&options, GPUHAL_BENCH_EXIT_USAGE);
    }
    exit_code = open_library(&bench);
    if (exit_code == GPUHAL_BENCH_EXIT_OK && !begin_output(&bench)) {
        exit_code = stop(&options, GPUHAL_BENCH_EXIT_FAILED);
    } else if (exit_code == GPUHAL_BENCH_EXIT_OK) {
        exit_code = options.replay != NULL ? run_replay(&bench, &replay) : run_groups(&bench);
    }
    gpuhal_bench_watch_alive();
    gpuhal_close(bench.gpu);
    gpuhal_bench_lease_remove();
    gpuhal_bench_output_destroy(bench.output);
    gpuhal_bench_replay_free(&replay);
    return exit_code;
}
