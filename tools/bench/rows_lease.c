/* rows_lease.c: the cost of leasing and releasing a slot on a device while nothing else is leased. No bytes are leased,
 * so no driver is queried for free memory. The run has its own ledger in /tmp. The baseline is the cost of changing any
 * file that processes share, once for the lease and once for its release. Each of the two changes locks the file, reads
 * a record, writes a record and unlocks the file. */
#include "bench.h"

#include <gpuhal/schedule/lease.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHANGES = 2, RECORD_BYTES = 176 };

static const double lease_budget = 1 / 4.5;

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

static bool lock(int file, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(file, F_OFD_SETLKW, &range) == 0;
}

static bool change_file(void *user, uint64_t count)
{
    const int file = *(const int *)user;
    char record[RECORD_BYTES] = "";
    for (uint64_t i = 0; i < CHANGES * count; i++) {
        if (!lock(file, F_WRLCK) || pread(file, record, sizeof record, 0) < 0 ||
            pwrite(file, record, sizeof record, 0) != RECORD_BYTES || !lock(file, F_UNLCK)) {
            return gpuhal_bench_failed("a file in /tmp cannot be locked or written");
        }
    }
    return true;
}

void gpuhal_bench_rows_lease(gpuhal_bench *bench, gpuhal_device *device)
{
    char name[] = "/tmp/gpuhal-bench-file-XXXXXX";
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "lease", GPUHAL_BENCH_TIMES);
    int file = mkostemp(name, O_CLOEXEC);
    const gpuhal_bench_side sides[] = {{run_lease, device, NULL}, {change_file, &file, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    row.budget = lease_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (file < 0 || unlink(name) != 0) {
        gpuhal_bench_failed("no file can be made in /tmp");
        gpuhal_bench_not_measured(bench);
    } else if (!gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    if (file >= 0) {
        close(file);
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
