/* child_main.c: measuring in a fresh process: the child's side. */
#include "bench.h"
#include "child.h"
#include "direct.h"
#include "memory_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This program links the library, so the library's pages are also in the empty program. Excludes the library's
 * pages. */
static bool empty(const char *const *words, double *out_kib)
{
    (void)words;
    double library;
    if (!gpuhal_bench_mapped_kib("/libgpuhal.so", &library) || !gpuhal_bench_mapped_kib("", out_kib)) {
        return gpuhal_bench_failed("/proc/self cannot be read");
    }
    *out_kib -= library;
    return true;
}

static bool opened(const char *const *words, double *out_kib)
{
    (void)words;
    gpuhal *gpu;
    if (!gpuhal_bench_open_alone("cpu", GPUHAL_ISOLATION_NEVER, &gpu)) {
        return false;
    }
    gpuhal_device *device;
    if (gpuhal_select(gpu, "cpu:0", 0, &device, NULL) != GPUHAL_OK || gpuhal_device_open(device) != GPUHAL_OK) {
        gpuhal_bench_failed_call("opening cpu:0");
        gpuhal_close(gpu);
        return false;
    }
    const bool good = gpuhal_bench_mapped_kib("", out_kib) || gpuhal_bench_failed("/proc/self cannot be read");
    gpuhal_close(gpu);
    return good;
}

static bool growth_of_copy(gpuhal_buffer *to, gpuhal_buffer *from, uint64_t bytes, double *out_kib)
{
    double before;
    double peak;
    if (!gpuhal_bench_reset_peak() || !gpuhal_bench_status_kib("VmRSS", &before)) {
        return gpuhal_bench_failed("the peak of the resident memory cannot be read here");
    }
    if (gpuhal_copy(NULL, to, 0, from, 0, bytes) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_copy");
    }
    if (!gpuhal_bench_status_kib("VmHWM", &peak)) {
        return gpuhal_bench_failed("the peak of the resident memory cannot be read here");
    }
    *out_kib = peak > before ? peak - before : 0;
    return true;
}

/* Fills the whole buffer in small pieces, so that all its pages exist before the copy. Then reads a few bytes, so that
 * the driver's one-time work for transfers is done. */
static bool touch(gpuhal_buffer *buffer)
{
    static unsigned char piece[64 << 10];
    gpuhal_bench_pattern(piece, sizeof piece, 7);
    for (uint64_t at = 0; at < gpuhal_buffer_bytes(buffer); at += sizeof piece) {
        const uint64_t left = gpuhal_buffer_bytes(buffer) - at;
        if (gpuhal_write(NULL, buffer, at, piece, left < sizeof piece ? left : sizeof piece) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
    }
    return gpuhal_read(NULL, piece, buffer, 0, 1) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_read");
}

/* Opens the library, and the two devices that the first two words select. Call close in any case. */
static bool open_two(const char *const *words, gpuhal **out_gpu, gpuhal_device *out_devices[2])
{
    *out_gpu = NULL;
    if (gpuhal_open(NULL, out_gpu) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_open");
    }
    return (gpuhal_select(*out_gpu, words[0], 0, &out_devices[0], NULL) == GPUHAL_OK &&
            gpuhal_select(*out_gpu, words[1], 0, &out_devices[1], NULL) == GPUHAL_OK) ||
           gpuhal_bench_failed_call("gpuhal_select");
}

static bool staging(const char *const *words, double *out_kib)
{
    const uint64_t bytes = strtoull(words[2], NULL, 10);
    gpuhal *gpu;
    gpuhal_device *devices[2];
    gpuhal_buffer *from = NULL;
    gpuhal_buffer *to = NULL;
    const bool good = open_two(words, &gpu, devices) && gpuhal_bench_buffer(devices[0], bytes, &from) &&
                      gpuhal_bench_buffer(devices[1], bytes, &to) && touch(from) && touch(to) &&
                      growth_of_copy(to, from, bytes, out_kib);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
    return good;
}

/* Shares @buffer with the device and uses the result, so that work which a driver delays until the first use is
 * counted. */
static bool share_and_use(gpuhal_buffer *buffer, gpuhal_device *device, gpuhal_buffer **out_shared)
{
    static unsigned char piece[64 << 10];
    if (gpuhal_buffer_share(buffer, device, out_shared) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_buffer_share");
    }
    return (gpuhal_write(NULL, *out_shared, 0, piece, sizeof piece) == GPUHAL_OK &&
            gpuhal_buffer_synchronize(*out_shared) == GPUHAL_OK && gpuhal_buffer_synchronize(buffer) == GPUHAL_OK &&
            gpuhal_read(NULL, piece, *out_shared, 0, sizeof piece) == GPUHAL_OK) ||
           gpuhal_bench_failed_call("using a shared buffer");
}

static bool shareable(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = bytes, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    return (gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK ||
            gpuhal_bench_failed_call("gpuhal_buffer_create")) &&
           touch(*out_buffer);
}

/* Shares a small buffer first, so that drivers' one-time costs are not counted for the large buffer. */
static bool growth_of_sharing(gpuhal_device *owner, gpuhal_device *user, uint64_t bytes, double *out_kib)
{
    gpuhal_buffer *small = NULL;
    gpuhal_buffer *small_shared = NULL;
    gpuhal_buffer *large = NULL;
    gpuhal_buffer *large_shared = NULL;
    double before;
    double after;
    bool good = shareable(owner, 1 << 20, &small) && share_and_use(small, user, &small_shared) &&
                shareable(owner, bytes, &large);
    good = good && (gpuhal_bench_mapped_kib("", &before) || gpuhal_bench_failed("/proc/self cannot be read"));
    good = good && share_and_use(large, user, &large_shared);
    good = good && (gpuhal_bench_mapped_kib("", &after) || gpuhal_bench_failed("/proc/self cannot be read"));
    if (good) {
        *out_kib = after > before ? after - before : 0;
    }
    gpuhal_buffer_release(large_shared);
    gpuhal_buffer_release(large);
    gpuhal_buffer_release(small_shared);
    gpuhal_buffer_release(small);
    return good;
}

static bool sharing(const char *const *words, double *out_kib)
{
    gpuhal *gpu;
    gpuhal_device *devices[2];
    const bool good = open_two(words, &gpu, devices) &&
                      growth_of_sharing(devices[0], devices[1], strtoull(words[2], NULL, 10), out_kib);
    gpuhal_close(gpu);
    return good;
}

/* Two runs with different counts differ only in the number of calls. The difference of their instruction counts,
 * divided by the difference of the call counts, is the cost of one call (instructions.sh). */
static bool calls(const char *const *words, double *out_count)
{
    const char *selector = words[1];
    const uint64_t count = strtoull(words[2], NULL, 10);
    char backend[64];
    gpuhal *gpu;
    gpuhal_device *device;
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(selector, ":"), selector);
    if (!gpuhal_bench_open_alone(backend, GPUHAL_ISOLATION_NEVER, &gpu)) {
        return false;
    }
    bool good =
        (gpuhal_select(gpu, selector, 0, &device, NULL) == GPUHAL_OK && gpuhal_device_open(device) == GPUHAL_OK) ||
        gpuhal_bench_failed_call("opening the device");
    good = good && gpuhal_bench_direct_calls(gpu, device, strcmp(words[0], "direct") == 0, count);
    gpuhal_close(gpu);
    *out_count = (double)count;
    return good;
}

static const struct {
    const char *word;
    size_t fewest, most;
    bool (*measure)(const char *const *words, double *out_number);
} kinds[] = {
    {"empty", 0, 0, empty},
    {"opened", 0, 0, opened},
    {"staging", 3, 3, staging},
    {"sharing", 3, 3, sharing},
    {"list", 2, 2, gpuhal_bench_child_list},
    {"list_direct", 2, GPUHAL_BENCH_CHILD_WORDS, gpuhal_bench_child_list_direct},
    {"list_all", 1, 1, gpuhal_bench_child_list_all},
    {"device_memory", 2, 2, gpuhal_bench_child_device_memory},
    {"calls", 3, 3, calls},
    {"program", 2, 2, gpuhal_bench_child_program},
};

static bool measure(const char *const *words, double *out_number)
{
    size_t count = 0;
    while (words[count + 1] != NULL) {
        count++;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(words[0], kinds[i].word) == 0 && count >= kinds[i].fewest && count <= kinds[i].most) {
            return kinds[i].measure(words + 1, out_number);
        }
    }
    return gpuhal_bench_failed("--child does not know %s", words[0]);
}

int gpuhal_bench_child_main(const char *const *words)
{
    double number = 0;
    if (!measure(words, &number)) {
        fprintf(stderr, "gpuhal-bench: %s\n", gpuhal_bench_failure());
        return GPUHAL_BENCH_EXIT_FAILED;
    }
    printf("%.0f\n", number);
    return GPUHAL_BENCH_EXIT_OK;
}
