/* rows_open_all.c: opening with all plugins. A cold start is compared with one process that queries all vendors itself.
 * A warm start reads the registry and queries no vendor. Each sample is a separate process. */
#include "bench.h"
#include "child.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double cold_budget = 1 / 1.15;
static const double warm_listing_budget_ns = 3e6;
static const double warm_probe_budget_ns = 6e6;

static const char everything[] = "all";

static bool only_software(const gpuhal_bench *bench)
{
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        if (!gpuhal_bench_is_software(gpuhal_device_at(bench->gpu, i)) &&
            !gpuhal_bench_is_cpu(gpuhal_device_at(bench->gpu, i))) {
            return false;
        }
    }
    return true;
}

/* Collects the words for the direct calls of every vendor whose library was found. A library without devices is
 * included, because querying it is part of the work. Returns false if there is no such library, or no device at all. */
static bool direct_words(const gpuhal_bench *bench, const char *words[GPUHAL_BENCH_CHILD_WORDS + 1])
{
    size_t count = 0;
    bool any_device = false;
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_view *view = NULL;
    if (gpuhal_view_of(bench->gpu, 0, &view) != GPUHAL_OK) {
        return false;
    }
    words[count++] = "list_direct";
    for (uint32_t i = 0;
         count + 2 <= GPUHAL_BENCH_CHILD_WORDS && gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK;
         i++) {
        if (*report.driver != '\0' && gpuhal_bench_vendor_of(report.name) != NULL) {
            words[count++] = report.name;
            words[count++] = report.driver;
            any_device = any_device || report.device_count > 0;
        }
    }
    gpuhal_view_release(view);
    words[count] = NULL;
    return count > 1 && any_device;
}

static gpuhal_bench_row row_of_all(const gpuhal_bench *bench, gpuhal_bench_kind kind, const char *test, double budget)
{
    return (gpuhal_bench_row){
        .kind = kind,
        .device = everything,
        .test = test,
        .unit = "ns",
        .budget = budget,
        .software = only_software(bench),
    };
}

static void cold(gpuhal_bench *bench)
{
    const char *direct[GPUHAL_BENCH_CHILD_WORDS + 1];
    const bool compared = bench->options->baseline && direct_words(bench, direct);
    const gpuhal_bench_row row = row_of_all(bench, GPUHAL_BENCH_TIMES, "open_all", cold_budget);
    gpuhal_bench_children_row(bench, row, (const char *const[]){"list_all", "none", NULL}, compared ? direct : NULL);
}

/* Finds the gpuhal-probe that was installed with this program. */
static bool find_probe(char path[4096])
{
    static const char name[] = "gpuhal-probe";
    const ssize_t length = readlink("/proc/self/exe", path, 4096 - sizeof name);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return false;
    }
    memcpy(slash + 1, name, sizeof name);
    return access(path, X_OK) == 0;
}

/* The program inherits the environment, so GPUHAL_REGISTRY is set before the call and restored after it. */
static bool time_probe(gpuhal_bench *bench, const char *path, const char *registry)
{
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    const char *before = getenv("GPUHAL_REGISTRY");
    char *kept = before != NULL ? strdup(before) : NULL;
    double first;
    bool good = setenv("GPUHAL_REGISTRY", registry, 1) == 0 && gpuhal_bench_child_time(path, NULL, &first);
    for (bench->times.rounds = 0; good && bench->times.rounds < plan.rounds; bench->times.rounds++) {
        good = gpuhal_bench_child_time(path, "--cached", &bench->times.ns[0][bench->times.rounds]);
    }
    if (kept == NULL) {
        unsetenv("GPUHAL_REGISTRY");
    } else {
        setenv("GPUHAL_REGISTRY", kept, 1);
    }
    free(kept);
    return good;
}

static void probe(gpuhal_bench *bench, const char *registry)
{
    const gpuhal_bench_row row = row_of_all(bench, GPUHAL_BENCH_AMOUNT, "warm_probe", warm_probe_budget_ns);
    char path[4096];
    gpuhal_bench_begin(bench->output, &row);
    if (!find_probe(path)) {
        gpuhal_bench_note_row(bench->output, "gpuhal-probe is not beside this program");
    } else if (!time_probe(bench, path, registry)) {
        gpuhal_bench_not_measured(bench);
    } else {
        gpuhal_bench_report(bench, row, 0, 0);
    }
}

/* The first opening fills a separate registry, which no other program writes. */
void gpuhal_bench_rows_open_all(gpuhal_bench *bench)
{
    const char *place = getenv("TMPDIR");
    char registry[4096];
    double first;
    const gpuhal_bench_row listing = row_of_all(bench, GPUHAL_BENCH_AMOUNT, "warm_listing", warm_listing_budget_ns);
    cold(bench);
    gpuhal_bench_begin(bench->output, &listing);
    snprintf(registry, sizeof registry, "%s/gpuhal-bench-XXXXXX", place != NULL && *place == '/' ? place : "/tmp");
    if (mkdtemp(registry) == NULL) {
        gpuhal_bench_row_failed(bench->output, "a temporary registry cannot be made");
        return;
    }
    if (gpuhal_bench_child_run((const char *const[]){"list_all", registry, NULL}, &first)) {
        gpuhal_bench_children_row(bench, listing, (const char *const[]){"list_all", registry, NULL}, NULL);
        probe(bench, registry);
    } else {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_bench_remove_folder(registry);
}
