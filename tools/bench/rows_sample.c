/* rows_sample.c: the cost of reading values. One row measures a call that reads all values of a device that are fast to
 * read. Another row measures the CPU time of all threads while a sampler reads all devices of a backend once a second.
 *
 * The budgets are for values from system files; a vendor's library takes additional time. A sample is compared with
 * reading three of the system files, because the duration of these reads grows with the number of CPUs.
 */
#include "bench.h"

#include <gpuhal/node/sampler.h>
#include <gpuhal/telemetry.h>

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUES_MAX = 64, DEVICES_MAX = 64, SAMPLES = 5 };

static const uint64_t second_ns = 1000000000, quick_period_ns = 10000000;
static const double sample_budget = 1 / 4.4;
static const double sampler_budget = 0.2; /* percent of one core, for up to SAMPLER_DEVICES devices */
enum { SAMPLER_DEVICES = 8 };

typedef struct sampled {
    gpuhal_device *device;
    gpuhal_value values[VALUES_MAX];
    uint32_t count;
} sampled;

static void take_keys(sampled *own)
{
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; own->count < VALUES_MAX && gpuhal_key_name(key); key++) {
        if (key != GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND && key != GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND) {
            own->values[own->count++] = (gpuhal_value){.key = key};
        }
    }
}

static bool run_sample(void *user, uint64_t count)
{
    sampled *own = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_device_sample(own->device, 0, own->values, own->count, NULL) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_device_sample");
        }
    }
    return true;
}

static bool read_file(const char *path)
{
    char part[4096];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    while (file >= 0 && (got = read(file, part, sizeof part)) > 0) {
    }
    if (file >= 0) {
        close(file);
    }
    return got == 0 || gpuhal_bench_failed("%s cannot be read", path);
}

static bool read_files(__attribute__((unused)) void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!read_file("/proc/stat") || !read_file("/proc/meminfo") || !read_file("/proc/cpuinfo")) {
            return false;
        }
    }
    return true;
}

static double processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pause_for(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static uint32_t count_samples(gpuhal_sampler *sampler)
{
    gpuhal_point points[4 * SAMPLES];
    uint32_t count = 0;
    (void)gpuhal_sampler_history(sampler, gpuhal_sampler_device(sampler, 0), GPUHAL_VALUE_MEMORY_HELD_BYTES, points,
                                 4 * SAMPLES, &count);
    return count;
}

/* Finds the measured devices of the device's backend. If the device itself is not the first of them, they have already
 * been measured. */
static uint32_t find_devices(const gpuhal_bench *bench, gpuhal_device *device, gpuhal_device *list[DEVICES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu) && count < DEVICES_MAX; i++) {
        gpuhal_device *other = gpuhal_device_at(bench->gpu, i);
        if (strcmp(gpuhal_device_backend(other), gpuhal_device_backend(device)) == 0 &&
            (!bench->only || bench->only == other)) {
            list[count++] = other;
        }
    }
    return count;
}

/* Does not count the first sample, which opens files and libraries. */
static bool run_sampler(const gpuhal_bench *bench, gpuhal_device **devices, uint32_t count, double *out_percent)
{
    const bool quick = bench->options->quick;
    const gpuhal_sampler_desc desc = {.size = sizeof desc,
                                      .device_count = count,
                                      .devices = devices,
                                      .period_ns = quick ? quick_period_ns : second_ns};
    gpuhal_sampler *sampler = NULL;
    if (gpuhal_sampler_create(bench->gpu, &desc, &sampler) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_sampler_create");
    }
    for (uint32_t i = 0; i < 1000 && count_samples(sampler) == 0; i++) {
        pause_for(quick_period_ns);
    }
    const uint32_t before = count_samples(sampler);
    const double begin_ns = processor_ns();
    pause_for(SAMPLES * desc.period_ns);
    for (uint32_t i = 0; i < 1000 && count_samples(sampler) == before; i++) {
        pause_for(quick_period_ns); /* on a busy machine the sampler is late */
    }
    const double taken_ns = processor_ns() - begin_ns;
    const uint32_t samples = count_samples(sampler) - before;
    gpuhal_sampler_destroy(sampler);
    *out_percent = taken_ns / samples / (double)second_ns * 100;
    return samples > 0 || gpuhal_bench_failed("the sampler took no sample");
}

static void measure_sampler(gpuhal_bench *bench, gpuhal_device *device, bool judged)
{
    gpuhal_device *devices[DEVICES_MAX];
    const uint32_t count = find_devices(bench, device, devices);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "sampler", GPUHAL_BENCH_AMOUNT);
    if (devices[0] != device) {
        return;
    }
    row.unit = "%";
    row.budget = judged && count <= SAMPLER_DEVICES ? sampler_budget : NAN;
    gpuhal_bench_begin(bench->output, &row);
    bench->times.rounds = 1;
    if (run_sampler(bench, devices, count, &bench->times.ns[0][0])) {
        gpuhal_bench_report(bench, row, 0, 0);
    } else {
        gpuhal_bench_not_measured(bench);
    }
}

void gpuhal_bench_rows_sample(gpuhal_bench *bench, gpuhal_device *device)
{
    sampled own = {.device = device};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "sample", GPUHAL_BENCH_TIMES);
    const gpuhal_bench_side sides[] = {{run_sample, &own, NULL}, {read_files, NULL, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    const bool judged =
        gpuhal_bench_is_cpu(device) || !(gpuhal_bench_is_software(device) || gpuhal_bench_is_streamed(device));
    take_keys(&own);
    row.budget = judged ? sample_budget : NAN;
    if (!gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    measure_sampler(bench, device, judged);
}
