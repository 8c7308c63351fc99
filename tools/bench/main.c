/* main.c: gpuhal-bench, which measures the library beside the calls beneath it. docs/measurements/README.md tells the method. */
#include "bench.h"
#include "callgrind.h"
#include "child.h"

#include <stdio.h>
#include <string.h>

static int stop(int exit_code)
{
    fprintf(stderr, "gpuhal-bench: %s\n", gpuhal_bench_failure());
    return exit_code;
}

static int open_library(gpuhal_bench *bench)
{
    const gpuhal_status status = gpuhal_open(NULL, &bench->gpu);
    if (status != GPUHAL_OK) {
        gpuhal_bench_failed_call("gpuhal_open");
        return stop(status == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_BENCH_EXIT_NOT_FOUND : GPUHAL_BENCH_EXIT_FAILED);
    }
    if (gpuhal_device_count(bench->gpu) == 0) {
        gpuhal_bench_failed("there is no device (gpuhal-probe --explain tells why)");
        return stop(GPUHAL_BENCH_EXIT_NO_DEVICE);
    }
    const char *selector = bench->options->device;
    if (selector == NULL) {
        return GPUHAL_BENCH_EXIT_OK;
    }
    const gpuhal_status found = gpuhal_select(bench->gpu, selector, 0, &bench->only, NULL);
    if (found != GPUHAL_OK) {
        gpuhal_bench_failed("--device %s: %s", selector, gpuhal_last_error()->sentence);
        return stop(found == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_BENCH_EXIT_NOT_FOUND : GPUHAL_BENCH_EXIT_USAGE);
    }
    return GPUHAL_BENCH_EXIT_OK;
}

static const char *cpu_name(const gpuhal *gpu)
{
    const char *name = NULL;
    for (uint32_t i = 0; name == NULL && i < gpuhal_device_count(gpu); i++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, i);
        if (gpuhal_bench_is_cpu(device) && gpuhal_device_text(device, GPUHAL_FACT_NAME, &name) != GPUHAL_OK) {
            name = NULL;
        }
    }
    return name;
}

/* A backend without a device has no rows, which must not look as if it had been forgotten. */
static void tell_what_is_absent(const gpuhal_bench *bench)
{
    for (uint32_t i = 0; bench->only == NULL && i < gpuhal_plugin_count(bench->gpu); i++) {
        gpuhal_plugin_report report = {.size = sizeof report};
        if (gpuhal_plugin_report_get(bench->gpu, i, &report) == GPUHAL_OK && report.device_count == 0 &&
            report.state != GPUHAL_PLUGIN_DUPLICATE) {
            const bool silent = *report.reason == '\0';
            gpuhal_bench_remark(bench->output, report.name, "all rows", silent ? "it lists no device" : report.reason);
        }
    }
}

/* Each with its share of the time of a whole run, and the steps in which it tells of its progress: for a device, and for a size.
 */
static const struct {
    uint32_t bit;
    void (*rows)(gpuhal_bench *bench);
    double share;
    size_t steps_per_device;
    size_t steps_per_size;
} groups[] = {
    {GPUHAL_BENCH_CALL, gpuhal_bench_rows_call, 0.03, 1, 0},   {GPUHAL_BENCH_QUEUE, gpuhal_bench_rows_queue, 0.06, 3, 0},
    {GPUHAL_BENCH_BATCH, gpuhal_bench_rows_batch, 0.02, 1, 0}, {GPUHAL_BENCH_ALLOCATE, gpuhal_bench_rows_allocate, 0.03, 2, 0},
    {GPUHAL_BENCH_OPEN, gpuhal_bench_rows_open, 0.05, 2, 0},   {GPUHAL_BENCH_SHARE, gpuhal_bench_rows_share, 0.05, 2, 0},
    {GPUHAL_BENCH_FILE, gpuhal_bench_rows_file, 0.05, 1, 0},   {GPUHAL_BENCH_COPY, gpuhal_bench_rows_copy, 0.5, 0, 5},
    {GPUHAL_BENCH_PAIRS, gpuhal_bench_rows_pairs, 0.25, 1, 1},
};

enum { GROUPS = sizeof groups / sizeof *groups };

static int run_groups(gpuhal_bench *bench)
{
    const size_t devices = bench->only != NULL ? 1 : gpuhal_device_count(bench->gpu);
    double whole = 0;
    bench->output = gpuhal_bench_output_create(bench->options, cpu_name(bench->gpu));
    if (bench->output == NULL) {
        return stop(GPUHAL_BENCH_EXIT_FAILED);
    }
    tell_what_is_absent(bench);
    for (size_t i = 0; i < GROUPS; i++) {
        whole += (bench->options->groups & groups[i].bit) != 0 ? groups[i].share : 0;
    }
    for (size_t i = 0; i < GROUPS; i++) {
        const size_t steps = groups[i].steps_per_device + groups[i].steps_per_size * bench->options->size_count;
        if ((bench->options->groups & groups[i].bit) != 0) {
            gpuhal_bench_output_group(bench->output, groups[i].share / whole, devices * steps);
            groups[i].rows(bench);
        }
    }
    const bool good = gpuhal_bench_output_finish(bench->output);
    gpuhal_bench_output_destroy(bench->output);
    return good ? GPUHAL_BENCH_EXIT_OK : GPUHAL_BENCH_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    static gpuhal_bench bench;
    gpuhal_bench_options options;
    int exit_code = GPUHAL_BENCH_EXIT_OK;
    if (!gpuhal_bench_options_read(argc, argv, &options, &exit_code)) {
        return exit_code;
    }
    if (options.child != NULL) {
        return gpuhal_bench_child_main(options.child);
    }
    if (options.callgrind_count > 0) {
        const char *selector = options.device != NULL ? options.device : "cpu:0";
        const bool good = gpuhal_bench_callgrind_loop(selector, options.callgrind_count, options.callgrind_kind);
        return good ? GPUHAL_BENCH_EXIT_OK : stop(GPUHAL_BENCH_EXIT_FAILED);
    }
    bench.options = &options;
    exit_code = open_library(&bench);
    if (exit_code == GPUHAL_BENCH_EXIT_OK) {
        exit_code = run_groups(&bench);
    }
    gpuhal_close(bench.gpu);
    return exit_code;
}
