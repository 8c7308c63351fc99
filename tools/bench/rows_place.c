/* rows_place.c: the time of gpuhal_place() for models on different devices in any order, and the time of
 * gpuhal_memory_plan() for items, most of them needed only in some steps. Both are pure functions, so no device is
 * involved. */
#include "bench.h"

#include <gpuhal/schedule/memory_plan.h>
#include <gpuhal/schedule/placement.h>

enum { LAYERS_MAX = 80, DEVICES_MAX = 12, ITEMS = 2000, MORE_ITEMS = 100000 };

static const struct {
    const char *test;
    uint32_t layers, devices;
    gpuhal_placement_objective objective;
    double budget_ns;
} rows[] = {
    {"place_64_on_6_latency", 64, 6, GPUHAL_PLACEMENT_LATENCY, 5e6},
    {"place_64_on_6_throughput", 64, 6, GPUHAL_PLACEMENT_THROUGHPUT, 5e6},
    {"place_80_on_12_latency", 80, 12, GPUHAL_PLACEMENT_LATENCY, 5e8},
    {"place_80_on_12_throughput", 80, 12, GPUHAL_PLACEMENT_THROUGHPUT, 5e8},
};

typedef struct model {
    gpuhal_placement_layer layers[LAYERS_MAX];
    gpuhal_placement_device devices[DEVICES_MAX];
    gpuhal_placement_link links[DEVICES_MAX * DEVICES_MAX];
    gpuhal_placement_problem problem;
} model;

/* Makes cards of five kinds, in pairs with faster links. All capacities differ, and their sum is 1.3 times the model's
 * memory. */
static void make_model(size_t row, model *out)
{
    static const double gigabytes[] = {8, 12, 24, 48, 16}, bandwidths[] = {272e9, 448e9, 936e9, 960e9, 100e9};
    const uint32_t layers = rows[row].layers, devices = rows[row].devices;
    double bytes = 0, room = 0;
    uint32_t state = 3;
    for (uint32_t i = 0; i < layers; i++) {
        state = state * 1664525 + 1013904223;
        const uint64_t weights = 200000000 + state % 50000000 + (i == 0 || i == layers - 1 ? 500000000 : 0);
        out->layers[i] = (gpuhal_placement_layer){.weight_bytes = weights, .output_bytes = 16384};
        bytes += (double)weights;
    }
    for (uint32_t d = 0; d < devices; d++) {
        room += gigabytes[d % 5];
    }
    for (uint32_t d = 0; d < devices; d++) {
        out->devices[d] =
            (gpuhal_placement_device){.capacity_bytes = (uint64_t)(1.3 * bytes / room * gigabytes[d % 5]) + d,
                                      .bytes_per_second = bandwidths[d % 5]};
        for (uint32_t to = 0; to < devices; to++) {
            out->links[d * devices + to] = d / 2 == to / 2 ? (gpuhal_placement_link){1e-5, 12e9}
                                                           : (gpuhal_placement_link){3e-4, 1.1e9};
        }
    }
    out->problem = (gpuhal_placement_problem){.size = sizeof out->problem,
                                              .objective = rows[row].objective,
                                              .layers = out->layers,
                                              .devices = out->devices,
                                              .links = out->links,
                                              .layer_count = layers,
                                              .device_count = devices,
                                              .flags = GPUHAL_PLACEMENT_FREE_ORDER};
}

static bool run_place(void *user, uint64_t count)
{
    const model *m = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_placement *placement = NULL;
        if (gpuhal_place(&m->problem, NULL, &placement) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_place");
        }
        gpuhal_placement_destroy(placement);
    }
    return true;
}

typedef struct graph {
    gpuhal_memory_plan_item items[MORE_ITEMS];
    uint64_t offsets[MORE_ITEMS];
    gpuhal_memory_plan_problem problem;
} graph;

/* Makes about seventy different items at each step, so that the search for a better plan uses its whole limit of
 * work. */
static void make_graph(uint32_t count, graph *out)
{
    uint32_t state = 3;
    for (uint32_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        const uint32_t first = (uint32_t)((uint64_t)state * count >> 32);
        state = state * 1664525 + 1013904223;
        const uint32_t life = (state >> 25) * (i % 8 + 1) / 4;
        out->items[i] = (gpuhal_memory_plan_item){1 + (state >> 4 & 0xfffff), first, first + life};
    }
    out->problem = (gpuhal_memory_plan_problem){
        .size = sizeof out->problem, .item_count = count, .items = out->items, .alignment = 256};
}

static bool run_plan(void *user, uint64_t count)
{
    graph *g = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_memory_plan(&g->problem, g->offsets, NULL) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_memory_plan");
        }
    }
    return true;
}

static void measure(gpuhal_bench *bench, const char *test, double budget_ns, gpuhal_bench_side side)
{
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, false);
    plan.rounds = bench->options->quick ? 1 : plan.rounds; /* planning 100000 items takes a good part of a second */
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT, .device = "host", .test = test, .unit = "ns", .budget = budget_ns};
    if (!gpuhal_bench_measure_row(bench, row, &side, 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
}

void gpuhal_bench_rows_place(gpuhal_bench *bench)
{
    static model m;
    static graph g;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_model(i, &m);
        measure(bench, rows[i].test, rows[i].budget_ns, (gpuhal_bench_side){run_place, &m, NULL});
    }
    make_graph(ITEMS, &g);
    measure(bench, "plan_2000_items", 5e7, (gpuhal_bench_side){run_plan, &g, NULL});
    make_graph(MORE_ITEMS, &g);
    measure(bench, "plan_100000_items", 2e9, (gpuhal_bench_side){run_plan, &g, NULL});
}
