/* rows_hit.c: the cost of an acquire and a release of a store's entry that is on the device. There are as many keys as
 * a model has pieces. The keys are requested in random order. The baseline looks up the same keys in the C++ library's
 * hash table. */
#include "bench.h"

#include <gpuhal/store.h>

#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 4096, ENTRY_BYTES = 256 };

static const double hit_budget = 1 / 6.0;

typedef struct hits {
    gpuhal_pool *pool;
    gpuhal_store *store;
    gpuhal_bench_map *map;
    gpuhal_bench_key keys[ENTRIES]; /* in request order */
    uint32_t next;
} hits;

static bool run_hits(void *user, uint64_t count)
{
    hits *h = user;
    for (uint64_t i = 0; i < count; i++) {
        const gpuhal_bench_key *key = &h->keys[h->next++ % ENTRIES];
        gpuhal_item *item = NULL;
        if (gpuhal_store_acquire(h->store, NULL, key->text, key->length, NULL, 0, UINT64_MAX, &item) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_store_acquire");
        }
        gpuhal_item_release(item, NULL);
    }
    return true;
}

static bool run_look_ups(void *user, uint64_t count)
{
    hits *h = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_baselines_here.map_has(h->map, &h->keys[h->next++ % ENTRIES])) {
            return gpuhal_bench_failed("the hash table does not find a key");
        }
    }
    return true;
}

static void name(hits *h)
{
    uint32_t random = 1;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        h->keys[i].length = (size_t)snprintf(h->keys[i].text, sizeof h->keys[i].text, "blk.%u.weight", i);
    }
    for (uint32_t i = ENTRIES - 1; i > 0; i--) {
        random = random * 1664525 + 1013904223;
        const uint32_t other = (uint32_t)((uint64_t)random * (i + 1) >> 32);
        const gpuhal_bench_key moved = h->keys[i];
        h->keys[i] = h->keys[other];
        h->keys[other] = moved;
    }
}

/* Fills the store in a different order, like a program that loads a model. */
static bool fill(hits *h)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const gpuhal_bench_key *key = &h->keys[(i * UINT32_C(1021)) % ENTRIES];
        const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = ENTRY_BYTES};
        gpuhal_item *item = NULL;
        if (gpuhal_store_put(h->store, NULL, key->text, key->length, &desc, UINT64_MAX, &item) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_store_put");
        }
        gpuhal_item_release(item, NULL);
    }
    return true;
}

static bool begin(hits *h, gpuhal_device *device, bool compared)
{
    const gpuhal_store_desc store = {.size = sizeof store};
    name(h);
    if (gpuhal_pool_create(device, NULL, &h->pool) != GPUHAL_OK ||
        gpuhal_store_create(h->pool, &store, &h->store) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("making a store");
    }
    h->map = compared ? gpuhal_bench_baselines_here.map_create(h->keys, ENTRIES) : NULL;
    return compared && h->map == NULL ? gpuhal_bench_failed("no memory for a hash table") : fill(h);
}

void gpuhal_bench_rows_hit(gpuhal_bench *bench, gpuhal_device *device)
{
    static hits h;
    h = (hits){.next = 0};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "store_hit", GPUHAL_BENCH_TIMES);
    const gpuhal_bench_side sides[] = {{run_hits, &h, NULL}, {run_look_ups, &h, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    const bool compared = bench->options->baseline && gpuhal_bench_baselines_here.map_create != NULL;
    row.budget = hit_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (!begin(&h, device, compared) || !gpuhal_bench_measure_row(bench, row, sides, compared ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    if (h.map != NULL) {
        gpuhal_bench_baselines_here.map_destroy(h.map);
    }
    gpuhal_store_destroy(h.store);
    gpuhal_pool_destroy(h.pool);
}
