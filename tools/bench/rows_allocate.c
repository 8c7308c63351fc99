/* rows_allocate.c: allocating and releasing, compared with the direct calls; and allocating from a pool, compared with
 * the C library's memory.
 *
 * Both sides commit the memory, since an allocation only looks fast if the memory is committed on first use. With
 * OpenCL, migrating the buffer to its device commits the memory. With Vulkan and on the CPU, touching the pages of host
 * memory commits it. CUDA and HIP always commit. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The library adds about the same time for 4 KiB on all devices. The direct calls take 200 to 400 ns on Vulkan software
 * devices, 700 ns on PoCL's device `basic`, and microseconds if an operating-system kernel or a GPU is involved. */
static const double usual_budget = 1 / 1.05, inline_budget = 1 / 1.22, software_budget = 1 / 2.1;
static const double pool_budget = 1 / 2.0;
static const uint64_t huge_page = UINT64_C(2) << 20;

typedef struct allocation {
    gpuhal_device *device;
    uint64_t bytes;
    gpuhal_bench_baseline *baseline; /* NULL for the CPU, or if the API's calls are unknown. */
} allocation;

static bool run_gpuhal(void *user, uint64_t count)
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
    const size_t bytes = (size_t)a->bytes;
    for (uint64_t i = 0; i < count; i++) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return gpuhal_bench_failed("mmap failed");
        }
        /* The baseline requests huge pages, too, as the plugin does. A system without huge pages returns an error and
         * uses small pages. */
        if (bytes >= huge_page) {
            madvise(memory, bytes, MADV_HUGEPAGE);
        }
        const bool good = madvise(memory, bytes, MADV_POPULATE_WRITE) == 0;
        munmap(memory, bytes);
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

/* PoCL's other devices wake a thread and wait for it. The variation of this wait is a hundred times the time that the
 * library adds. */
static double budget_of(const gpuhal_device *device, bool brief)
{
    if (gpuhal_bench_is_threaded(device)) {
        return NAN;
    }
    if (!brief || !gpuhal_bench_is_software(device)) {
        return usual_budget;
    }
    return gpuhal_bench_is_inline(device) ? inline_budget : software_budget;
}

static void measure(gpuhal_bench *bench, allocation *a, size_t index)
{
    const gpuhal_bench_side sides[] = {{run_gpuhal, a, NULL}, {a->baseline != NULL ? run_vendor : run_mmap, a, NULL}};
    const bool compared = bench->options->baseline && (a->baseline != NULL || gpuhal_bench_is_cpu(a->device));
    gpuhal_bench_row row = gpuhal_bench_row_of(a->device, rows[index].test, GPUHAL_BENCH_TIMES);
    row.budget = budget_of(a->device, rows[index].brief);
    const gpuhal_bench_plan plan = rows[index].brief ? gpuhal_bench_plan_calls(bench)
                                                     : gpuhal_bench_plan_copies(bench, compared && !isnan(row.budget));
    a->bytes = rows[index].bytes;
    if (!gpuhal_bench_measure_row(bench, row, sides, compared ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
}

/* ---- a pool that already has the memory */

enum { POOLED_BYTES = 4 << 10 };

typedef struct pooled {
    gpuhal_pool *pool;
    gpuhal_queue *queue;
} pooled;

static bool run_pool(void *user, uint64_t count)
{
    const pooled *p = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_buffer *buffer = NULL;
        if (gpuhal_pool_allocate(p->pool, p->queue, POOLED_BYTES, 0, 0, &buffer) != GPUHAL_OK) {
            return gpuhal_bench_failed("gpuhal_pool_allocate: %s", gpuhal_last_error()->sentence);
        }
        gpuhal_buffer_release(buffer);
    }
    return true;
}

static bool run_malloc(__attribute__((unused)) void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *memory = malloc(POOLED_BYTES);
        if (memory == NULL) {
            return gpuhal_bench_failed("malloc failed");
        }
        /* Prevents the compiler from removing both calls. */
        __asm__ volatile("" : : "r"(memory) : "memory");
        free(memory);
    }
    return true;
}

static void measure_pool(gpuhal_bench *bench, gpuhal_device *device)
{
    pooled p = {0};
    const gpuhal_bench_side sides[] = {{run_pool, &p, NULL}, {run_malloc, NULL, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "allocate_pool", GPUHAL_BENCH_TIMES);
    row.budget = pool_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (gpuhal_pool_create(device, NULL, &p.pool) != GPUHAL_OK ||
        gpuhal_queue_create(device, NULL, &p.queue) != GPUHAL_OK ||
        !gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_queue_destroy(p.queue);
    gpuhal_pool_destroy(p.pool);
}

void gpuhal_bench_rows_allocate(gpuhal_bench *bench, gpuhal_device *device)
{
    allocation a = {.device = device};
    const size_t count = bench->options->quick ? 1 : sizeof rows / sizeof *rows;
    const gpuhal_bench_row first = gpuhal_bench_row_of(device, rows[0].test, GPUHAL_BENCH_TIMES);
    gpuhal_bench_begin(bench->output, &first);
    if (gpuhal_bench_vendor_of(gpuhal_device_backend(device)) != NULL &&
        (a.baseline = gpuhal_bench_baseline_create(bench->gpu, device)) == NULL) {
        gpuhal_bench_not_measured(bench);
        return;
    }
    for (size_t index = 0; index < count; index++) {
        measure(bench, &a, index);
    }
    gpuhal_bench_baseline_destroy(a.baseline);
    measure_pool(bench, device);
}
