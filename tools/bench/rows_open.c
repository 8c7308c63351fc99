/* rows_open.c: the cost of opening the library. Measures the time until devices are listed and the resident memory with
 * only the CPU plugin. With one vendor's backend, compares the time with loading the vendor's library and listing its
 * devices directly. With CUDA or HIP, also measures device memory. rows_open_all.c has the rows about all plugins
 * together. */
#include "bench.h"

#include <string.h>

static const double enumerate_budget_ns = 2e6;
static const double resident_budget_kib = 4 * 1024;
static const double listing_budget = 1 / 1.2;
static const double helper_budget_ns = 15e6;
static const double device_memory_budget_kib = 0;

static void enumerate(gpuhal_bench *bench, const gpuhal_device *cpu)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(cpu, "enumerate", GPUHAL_BENCH_AMOUNT);
    row.budget = enumerate_budget_ns;
    gpuhal_bench_children_row(bench, row, (const char *const[]){"list", "cpu", "here", NULL}, NULL);
}

static void resident(gpuhal_bench *bench, const gpuhal_device *cpu)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(cpu, "resident_memory", GPUHAL_BENCH_AMOUNT);
    row.unit = "KiB";
    row.budget = resident_budget_kib;
    gpuhal_bench_children_row(bench, row, (const char *const[]){"opened", NULL}, (const char *const[]){"empty", NULL});
}

/* Makes two rows from the same samples: the ratio, and the cost of the subprocess in addition to the vendor's start
 * time. */
static void listing(gpuhal_bench *bench, const gpuhal_device *device)
{
    const char *backend = gpuhal_device_backend(device);
    const bool compared = bench->options->baseline && gpuhal_bench_vendor_of(backend) != NULL;
    const char *library = compared ? gpuhal_bench_vendor_library(bench->gpu, backend) : NULL;
    const char *const direct[] = {"list_direct", backend, library, NULL};
    const char *const words[] = {"list", backend, "apart", NULL};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "open_backend", GPUHAL_BENCH_TIMES);
    row.budget = listing_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (compared && library == NULL) {
        gpuhal_bench_not_measured(bench);
    } else if (gpuhal_bench_children_row(bench, row, words, compared ? direct : NULL) && compared) {
        row.kind = GPUHAL_BENCH_AMOUNT;
        row.test = "helper_start";
        row.budget = helper_budget_ns;
        gpuhal_bench_report(bench, row, 0, 1);
    }
}

static void device_memory(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_vendor *vendor)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "device_memory", GPUHAL_BENCH_AMOUNT);
    const char *pci;
    double now;
    row.unit = "KiB";
    row.budget = device_memory_budget_kib;
    if (gpuhal_device_text(device, GPUHAL_FACT_PCI_ADDRESS, &pci) != GPUHAL_OK) {
        gpuhal_bench_note(bench->output, row.device, row.test, "its PCI address is not known");
    } else if (!vendor->device_memory(pci, &now)) {
        gpuhal_bench_note(bench->output, row.device, row.test, gpuhal_bench_failure());
    } else {
        gpuhal_bench_children_row(bench, row, (const char *const[]){"device_memory", vendor->backend, pci, NULL}, NULL);
    }
}

static bool stands_for_backend(const gpuhal_bench *bench, const gpuhal_device *device)
{
    for (uint32_t i = 0; bench->only == NULL && gpuhal_device_at(bench->gpu, i) != device; i++) {
        if (strcmp(gpuhal_device_backend(gpuhal_device_at(bench->gpu, i)), gpuhal_device_backend(device)) == 0) {
            return false;
        }
    }
    return true;
}

void gpuhal_bench_rows_open(gpuhal_bench *bench, gpuhal_device *device)
{
    const bool first = stands_for_backend(bench, device);
    const gpuhal_bench_vendor *vendor = gpuhal_bench_vendor_of(gpuhal_device_backend(device));
    if (first && gpuhal_bench_is_cpu(device)) {
        enumerate(bench, device);
        resident(bench, device);
    }
    if (first && !gpuhal_bench_is_cpu(device)) {
        listing(bench, device);
    }
    if (vendor != NULL && vendor->device_memory != NULL) {
        device_memory(bench, device, vendor);
    }
}
