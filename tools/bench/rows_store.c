/* rows_store.c: a store whose device memory has room for one entry, so that each request moves an entry. Moving an
 * entry out to host memory, or back from host memory, is compared with the copy alone. Moving an entry back from the
 * file is compared with the slower of the two steps. */
#include "bench.h"

#include <gpuhal/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double store_budget = 0.8;
static const uint64_t usual_bytes = UINT64_C(64) << 20;
static const uint64_t quick_bytes = UINT64_C(1) << 20;

enum { ENTRIES = 3 };
static const char *const keys[ENTRIES] = {"one", "two", "three"};
enum { STORE, FIRST_SIDE, SECOND_SIDE, SIDES };

typedef struct moved {
    gpuhal_pool *pool;
    gpuhal_store *store;
    gpuhal_buffer *on_device, *on_host;
    FILE *file;
    unsigned char *host;
    uint64_t bytes, next;
} moved;

static bool put(moved *m, const char *key)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = m->bytes};
    gpuhal_item *item = NULL;
    if (gpuhal_store_put(m->store, NULL, key, 3, &desc, UINT64_MAX, &item) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_store_put");
    }
    gpuhal_item_release(item, NULL);
    return true;
}

/* Drops the oldest of the three entries and puts it again. To make room, the store must copy out the previous
 * entry. */
static bool run_spill(void *user, uint64_t count)
{
    moved *m = user;
    for (uint64_t i = 0; i < count; i++) {
        const char *key = keys[m->next++ % ENTRIES];
        (void)gpuhal_store_drop(m->store, key, 3);
        if (!put(m, key)) {
            return false;
        }
    }
    return true;
}

/* Requests two entries alternately. Both entries have a copy outside the device. */
static bool run_restore(void *user, uint64_t count)
{
    moved *m = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_item *item = NULL;
        if (gpuhal_store_acquire(m->store, NULL, keys[m->next++ % 2], 3, NULL, 0, UINT64_MAX, &item) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_store_acquire");
        }
        gpuhal_item_release(item, NULL);
    }
    return true;
}

static bool run_out(void *user, uint64_t count)
{
    const moved *m = user;
    return gpuhal_bench_copies(m->on_host, m->on_device, m->bytes, count);
}

static bool run_in(void *user, uint64_t count)
{
    const moved *m = user;
    return gpuhal_bench_copies(m->on_device, m->on_host, m->bytes, count);
}

static bool run_file(void *user, uint64_t count)
{
    const moved *m = user;
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t at = 0; at < m->bytes;) {
            const ssize_t got = pread(fileno(m->file), m->host + at, (size_t)(m->bytes - at), (off_t)at);
            if (got <= 0) {
                return gpuhal_bench_failed("reading the file by pread failed");
            }
            at += (uint64_t)got;
        }
    }
    return true;
}

/* Gives two entries their patterns, and checks that each entry comes back with its own pattern. */
static bool prove(moved *m)
{
    for (uint64_t i = 0; i < 4; i++) {
        gpuhal_item *item = NULL;
        if (i < 2 && !put(m, keys[i])) {
            return false;
        }
        if (gpuhal_store_acquire(m->store, NULL, keys[i % 2], 3, NULL, i < 2 ? GPUHAL_ACQUIRE_MODIFY : 0, UINT64_MAX,
                                 &item) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_store_acquire");
        }
        gpuhal_buffer *buffer = gpuhal_item_buffer(item, NULL);
        gpuhal_bench_pattern(m->host, m->bytes, 1 + i % 2);
        bool good = i < 2 ? gpuhal_bench_writes(buffer, m->host, m->bytes, 1)
                          : gpuhal_bench_reads(m->host, buffer, m->bytes, 1);
        good = good && gpuhal_bench_pattern_is(m->host, m->bytes, 1 + i % 2);
        gpuhal_item_release(item, NULL);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool begin(moved *m, gpuhal_device *device, bool in_file)
{
    const char *folder = getenv("TMPDIR");
    const gpuhal_pool_desc pool = {.size = sizeof pool, .limit_bytes = m->bytes, .segment_bytes = m->bytes};
    const gpuhal_store_desc store = {.size = sizeof store,
                                     .host_bytes = in_file ? 0 : UINT64_MAX,
                                     .folder = in_file ? folder && *folder ? folder : "/tmp" : NULL};
    if (gpuhal_pool_create(device, &pool, &m->pool) != GPUHAL_OK ||
        gpuhal_store_create(m->pool, &store, &m->store) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("making a store");
    }
    m->host = gpuhal_bench_host_memory(m->bytes);
    m->file = tmpfile();
    if (m->host == NULL || m->file == NULL || fwrite(m->host, 1, (size_t)m->bytes, m->file) != m->bytes ||
        fflush(m->file) != 0) {
        return gpuhal_bench_failed("no room for a temporary file");
    }
    return gpuhal_bench_buffer(device, m->bytes, &m->on_device) &&
           gpuhal_bench_buffer_of(device, gpuhal_bench_call_kind(device), m->bytes, &m->on_host) &&
           gpuhal_bench_prove(m->on_device, m->on_host, m->host, m->bytes) && prove(m);
}

static void end(moved *m)
{
    gpuhal_store_destroy(m->store);
    gpuhal_pool_destroy(m->pool);
    gpuhal_buffer_release(m->on_host);
    gpuhal_buffer_release(m->on_device);
    if (m->file != NULL) {
        fclose(m->file);
    }
    free(m->host);
}

static void measure(gpuhal_bench *bench, gpuhal_device *device, const char *test, gpuhal_bench_side move,
                    gpuhal_bench_side beside, bool in_file)
{
    moved m = {.bytes = bench->options->quick ? quick_bytes : usual_bytes};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, GPUHAL_BENCH_SLOWER_SIDE);
    const gpuhal_bench_side sides[SIDES] = {
        {.run = move.run, .user = &m}, {.run = beside.run, .user = &m}, {.run = run_file, .user = &m}};
    const bool compared = bench->options->baseline;
    const size_t side_count = compared ? in_file ? SIDES : SECOND_SIDE : FIRST_SIDE;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, compared);
    row.bytes = m.bytes;
    row.budget = store_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_fits(bench, device, device, test, 2 * m.bytes)) {
        return;
    }
    if (begin(&m, device, in_file) && gpuhal_bench_measure(sides, side_count, &plan, &bench->times)) {
        const size_t baseline = in_file ? gpuhal_bench_slower(bench, FIRST_SIDE, SECOND_SIDE) : FIRST_SIDE;
        gpuhal_bench_report(bench, row, STORE, compared ? baseline : STORE);
    } else {
        gpuhal_bench_not_measured(bench);
    }
    end(&m);
}

void gpuhal_bench_rows_store(gpuhal_bench *bench, gpuhal_device *device)
{
    measure(bench, device, "store_spill", (gpuhal_bench_side){.run = run_spill}, (gpuhal_bench_side){.run = run_out},
            false);
    measure(bench, device, "store_restore", (gpuhal_bench_side){.run = run_restore},
            (gpuhal_bench_side){.run = run_in}, false);
    measure(bench, device, "store_restore_file", (gpuhal_bench_side){.run = run_restore},
            (gpuhal_bench_side){.run = run_in}, true);
}
