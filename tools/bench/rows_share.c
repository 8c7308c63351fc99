/* rows_share.c: letting another device see 1 GiB of host memory without copying: the time, beside the calls written by hand, and
 * the memory that it takes.
 *
 * One buffer of cpu:0 is what all sides show to the device: the library as a buffer that is shared, the library as memory of the
 * caller's that is imported, and the vendor's own calls. Each time the device's view is let go again. CUDA and HIP page-lock the
 * memory for it, page after page, so that there the time as such has no budget. */
#include "baseline.h"
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double time_budget_ns = 100e3;
static const double memory_budget_kib = 1024;
static const uint64_t usual_bytes = UINT64_C(1) << 30;
static const uint64_t quick_bytes = UINT64_C(16) << 20;

enum { SHARE, IMPORT, DIRECT, SIDES };

typedef struct sharing {
    gpuhal_device *device;
    gpuhal_buffer *buffer; /* Of another device. */
    gpuhal_bench_baseline *baseline;
} sharing;

static bool run_share(void *user, uint64_t count)
{
    const sharing *s = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_buffer *shared;
        if (gpuhal_buffer_share(s->buffer, s->device, &shared) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_buffer_share");
        }
        gpuhal_buffer_release(shared);
    }
    return true;
}

static bool run_import(void *user, uint64_t count)
{
    const sharing *s = user;
    for (uint64_t i = 0; i < count; i++) {
        const gpuhal_host_import import = {
            .size = sizeof import, .memory = gpuhal_buffer_host(s->buffer), .bytes = gpuhal_buffer_bytes(s->buffer)};
        gpuhal_buffer *imported;
        uint64_t offset;
        if (gpuhal_buffer_import_host(s->device, &import, &imported, &offset) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_buffer_import_host");
        }
        gpuhal_buffer_release(imported);
    }
    return true;
}

static bool run_direct(void *user, uint64_t count)
{
    const sharing *s = user;
    return s->baseline->calls->import_host(s->baseline, gpuhal_buffer_host(s->buffer), gpuhal_buffer_bytes(s->buffer), count);
}

static void add_row(gpuhal_bench *bench, const gpuhal_device *device, const gpuhal_device *peer, const char *test, double ours,
                    double baseline, gpuhal_bench_interval result, double budget)
{
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = gpuhal_device_id(device),
        .peer = gpuhal_device_id(peer),
        .test = test,
        .unit = "ns",
        .ours = ours,
        .baseline = baseline,
        .result = result,
        .budget = budget,
        .software = gpuhal_bench_is_software(device),
        .peer_software = gpuhal_bench_is_software(peer),
    };
    gpuhal_bench_row_add(bench->output, &row);
}

/* The time as such has the budget; what it is more than the vendor's calls is told beside it. */
static void add_rows(gpuhal_bench *bench, const sharing *s, size_t side, const char *test, const char *more)
{
    const gpuhal_bench_interval time = gpuhal_bench_time(&bench->times, side);
    const gpuhal_device *owner = gpuhal_buffer_device(s->buffer);
    add_row(bench, s->device, owner, test, time.median, NAN, time, gpuhal_bench_is_streamed(s->device) ? NAN : time_budget_ns);
    if (!bench->options->baseline) {
        return;
    }
    add_row(bench, s->device, owner, more, time.median, gpuhal_bench_time(&bench->times, DIRECT).median,
            gpuhal_bench_difference(&bench->times, side, DIRECT), NAN);
}

static bool exportable(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .kind = kind, .bytes = bytes, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    return gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_create");
}

static uint64_t bytes_of(const gpuhal_bench *bench)
{
    return bench->options->quick ? quick_bytes : usual_bytes;
}

static bool seen_from(gpuhal_bench *bench, gpuhal_device *owner, gpuhal_device *device)
{
    sharing s = {.device = device};
    const gpuhal_bench_side sides[SIDES] = {{run_share, &s, NULL}, {run_import, &s, NULL}, {run_direct, &s, NULL}};
    const gpuhal_bench_plan plan =
        gpuhal_bench_is_streamed(device) ? gpuhal_bench_plan_copies(bench, false) : gpuhal_bench_plan_calls(bench);
    gpuhal_bench_progress(bench->output, gpuhal_device_id(device), "share", bytes_of(bench));
    bool good = exportable(owner, GPUHAL_MEMORY_DEVICE, bytes_of(bench), &s.buffer);
    if (good && gpuhal_buffer_host(s.buffer) == NULL) {
        good = gpuhal_bench_failed("the host does not see memory of %s", gpuhal_device_id(owner));
    }
    good = good && (s.baseline = gpuhal_bench_baseline_create(bench->gpu, device)) != NULL &&
           gpuhal_bench_measure(sides, bench->options->baseline ? SIDES : DIRECT, &plan, &bench->times);
    if (good) {
        add_rows(bench, &s, SHARE, "share", "share_more");
        add_rows(bench, &s, IMPORT, "import_host", "import_more");
    }
    gpuhal_bench_baseline_destroy(s.baseline);
    gpuhal_buffer_release(s.buffer);
    return good;
}

/* The first kind of the owner's memory that @device can see. False with the reason of the last. */
static bool kind_seen_by(gpuhal_device *owner, gpuhal_device *device, gpuhal_memory_kind *out_kind, const char **out_why)
{
    static const gpuhal_memory_kind kinds[] = {GPUHAL_MEMORY_DEVICE, GPUHAL_MEMORY_DEVICE_MAPPED, GPUHAL_MEMORY_UPLOAD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        gpuhal_handle_kind handle;
        *out_kind = kinds[i];
        if (gpuhal_share_query(owner, kinds[i], device, &handle, out_why) == GPUHAL_OK) {
            return true;
        }
    }
    return false;
}

/* The other way round: the CPU sees memory of @owner, which is a bare address, so there is nothing to compare it with. */
static bool seen_by_cpu(gpuhal_bench *bench, gpuhal_device *owner, gpuhal_device *cpu, gpuhal_memory_kind kind)
{
    sharing s = {.device = cpu};
    const gpuhal_bench_side side = {run_share, &s, NULL};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    const bool good = exportable(owner, kind, bytes_of(bench), &s.buffer) && gpuhal_bench_measure(&side, 1, &plan, &bench->times);
    if (good) {
        const gpuhal_bench_interval time = gpuhal_bench_time(&bench->times, 0);
        add_row(bench, owner, cpu, "share_to_cpu", time.median, NAN, time, time_budget_ns);
    }
    gpuhal_buffer_release(s.buffer);
    return good;
}

/* Measured in a fresh process, where nothing that was released is still resident. */
static bool memory(gpuhal_bench *bench, const gpuhal_device *owner, const gpuhal_device *device)
{
    char bytes[24];
    double kib;
    snprintf(bytes, sizeof bytes, "%" PRIu64, bytes_of(bench));
    const char *const words[] = {"sharing", gpuhal_device_id(owner), gpuhal_device_id(device), bytes, NULL};
    gpuhal_bench_progress(bench->output, gpuhal_device_id(device), "share_memory", bytes_of(bench));
    if (!gpuhal_bench_child_run(words, &kib)) {
        return false;
    }
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = gpuhal_device_id(device),
        .peer = gpuhal_device_id(owner),
        .test = "share_memory",
        .unit = "KiB",
        .ours = kib,
        .baseline = NAN,
        .result = {kib, kib, kib},
        .budget = memory_budget_kib,
        .software = gpuhal_bench_is_software(device),
        .peer_software = gpuhal_bench_is_software(owner),
    };
    gpuhal_bench_row_add(bench->output, &row);
    return true;
}

static void one_device(gpuhal_bench *bench, gpuhal_device *cpu, gpuhal_device *device)
{
    const char *id = gpuhal_device_id(device);
    const char *why = "";
    gpuhal_handle_kind handle;
    gpuhal_memory_kind kind;
    if (gpuhal_share_query(cpu, GPUHAL_MEMORY_DEVICE, device, &handle, &why) != GPUHAL_OK) {
        gpuhal_bench_remark(bench->output, id, "share", why);
    } else if (!seen_from(bench, cpu, device)) {
        gpuhal_bench_failed_row(bench->output, id, "share", gpuhal_bench_failure());
    } else if (!memory(bench, cpu, device)) {
        gpuhal_bench_failed_row(bench->output, id, "share_memory", gpuhal_bench_failure());
    }
    if (!kind_seen_by(device, cpu, &kind, &why)) {
        gpuhal_bench_remark(bench->output, id, "share with the CPU", why);
    } else if (!seen_by_cpu(bench, device, cpu, kind)) {
        gpuhal_bench_failed_row(bench->output, id, "share with the CPU", gpuhal_bench_failure());
    }
}

void gpuhal_bench_rows_share(gpuhal_bench *bench)
{
    const uint32_t count = gpuhal_device_count(bench->gpu);
    gpuhal_device *cpu = NULL;
    for (uint32_t i = 0; i < count && cpu == NULL; i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        cpu = gpuhal_bench_is_cpu(device) ? device : NULL;
    }
    if (cpu == NULL) {
        gpuhal_bench_remark(bench->output, "cpu:0", "share", "there is no CPU device to share with");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        if (gpuhal_bench_wants(bench, device) && gpuhal_bench_baseline_is_known(device)) {
            one_device(bench, cpu, device);
        }
    }
}
