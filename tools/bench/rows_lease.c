/* rows_lease.c: what it costs to lease a slot of a device and give it back, while nothing else is leased. No bytes are
 * leased, so no driver is asked what memory is free. The ledger is one of the run's own, in /tmp. */
#include "bench.h"

#include <gpuhal/lease.h>

#include <stdio.h>
#include <unistd.h>

static const double lease_budget_ns = 20e3;

static bool run_lease(void *user, uint64_t count)
{
    const gpuhal_lease_part part = {.device = user};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    desc.part_count = 1;
    desc.parts = &part;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_lease *lease = NULL;
        if (gpuhal_lease_acquire(gpuhal_device_owner(user), &desc, 0, &lease) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_lease_acquire");
        }
        gpuhal_lease_release(lease);
    }
    return true;
}

void gpuhal_bench_rows_lease(gpuhal_bench *bench, gpuhal_device *device)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "lease", GPUHAL_BENCH_AMOUNT);
    const gpuhal_bench_side side = {run_lease, device, NULL};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    row.budget = lease_budget_ns;
    if (!gpuhal_bench_measure_row(bench, row, &side, 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
}

const char *gpuhal_bench_lease_folder(void)
{
    static char folder[64];
    snprintf(folder, sizeof folder, "/tmp/gpuhal-bench-%ld", (long)getpid());
    return folder;
}

void gpuhal_bench_lease_remove(void)
{
    static const char *const names[] = {"/ledger", "/liveness", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s%s", gpuhal_bench_lease_folder(), names[i]);
        (void)(names[i][0] ? unlink(path) : rmdir(path));
    }
}
