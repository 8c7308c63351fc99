/* rows_allocate.c: allocating and releasing beside the direct calls.
 *
 * Both sides commit the memory, since an allocation that is paid for at its first use only looks quick: OpenCL by migrating the
 * buffer to its device, Vulkan and the CPU by bringing the pages of what is ordinary memory; CUDA and HIP do it by themselves. */
#include "baseline.h"
#include "bench.h"

#include <math.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* What the library adds, while it is in the caches. A call of the kernel for much memory drives it out of them, and takes longer by more
 * than that from one time to the next: there a share of it is the limit. */
static const double budget_ns = 150, budget_share_of_much = 0.05;
static const uint64_t huge_page = UINT64_C(2) << 20;

typedef struct allocation {
    gpuhal_device *device;
    uint64_t bytes;
    gpuhal_bench_baseline *baseline; /* NULL: the CPU. */
} allocation;

static bool run_ours(void *user, uint64_t count)
{
    const allocation *a = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_buffer *buffer;
        if (!gpuhal_bench_buffer(a->device, a->bytes, &buffer)) {
            return false;
        }
        gpuhal_buffer_release(buffer);
    }
    return true;
}

static bool run_vendor(void *user, uint64_t count)
{
    const allocation *a = user;
    return a->baseline->calls->allocate(a->baseline, a->bytes, count);
}

static bool run_mmap(void *user, uint64_t count)
{
    const allocation *a = user;
    for (uint64_t i = 0; i < count; i++) {
        void *memory = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return gpuhal_bench_failed("mmap failed");
        }
        /* The plugin asks for huge pages, so the comparison does; a system without them answers with an error and has ordinary
         * ones. */
        if (a->bytes >= huge_page) {
            madvise(memory, a->bytes, MADV_HUGEPAGE);
        }
        const bool good = madvise(memory, a->bytes, MADV_POPULATE_WRITE) == 0;
        munmap(memory, a->bytes);
        if (!good) {
            return gpuhal_bench_failed("MADV_POPULATE_WRITE is refused here");
        }
    }
    return true;
}

static const struct {
    const char *test;
    uint64_t bytes;
    bool brief;
} rows[] = {
    {"allocate_4kib", 4 << 10, true},
    {"allocate_256mib", 256 << 20, false},
};

static void measure(gpuhal_bench *bench, allocation *a, size_t index)
{
    const char *id = gpuhal_device_id(a->device);
    const gpuhal_bench_side sides[] = {{run_ours, a, NULL}, {a->baseline != NULL ? run_vendor : run_mmap, a, NULL}};
    const bool compared = bench->options->baseline && (a->baseline != NULL || gpuhal_bench_is_cpu(a->device));
    /* PoCL's other devices wake a thread and wait for it, which takes a hundred times what the budget allows, up or down. */
    const bool judged = compared && !gpuhal_bench_is_threaded(a->device);
    const gpuhal_bench_plan plan = rows[index].brief ? gpuhal_bench_plan_calls(bench) : gpuhal_bench_plan_copies(bench, judged);
    a->bytes = rows[index].bytes;
    gpuhal_bench_progress(bench->output, id, rows[index].test, 0);
    if (!gpuhal_bench_measure(sides, compared ? 2 : 1, &plan, &bench->times)) {
        gpuhal_bench_not_measured(bench, id, rows[index].test, true);
        return;
    }
    gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = id,
        .test = rows[index].test,
        .unit = "ns",
        .software = gpuhal_bench_is_software(a->device),
    };
    gpuhal_bench_row_take(bench, 0, compared ? 1 : 0, &row);
    row.budget = !judged ? NAN : rows[index].brief ? budget_ns : fmax(budget_ns, budget_share_of_much * row.baseline);
    gpuhal_bench_row_add(bench->output, &row);
}

void gpuhal_bench_rows_allocate(gpuhal_bench *bench)
{
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        allocation a = {.device = gpuhal_device_at(bench->gpu, i)};
        if (!gpuhal_bench_wants(bench, a.device)) {
            continue;
        }
        if (gpuhal_bench_baseline_is_known(a.device) &&
            (a.baseline = gpuhal_bench_baseline_create(bench->gpu, a.device)) == NULL) {
            gpuhal_bench_failed_row(bench->output, gpuhal_device_id(a.device), "allocate", gpuhal_bench_failure());
            continue;
        }
        const size_t count = bench->options->quick ? 1 : sizeof rows / sizeof *rows;
        for (size_t index = 0; index < count; index++) {
            measure(bench, &a, index);
        }
        gpuhal_bench_baseline_destroy(a.baseline);
    }
}
