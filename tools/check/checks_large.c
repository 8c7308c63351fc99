/* checks_large.c: arithmetic around 4 GiB. Makes two allocations slightly larger than 4 GiB. Only some windows of these
 * allocations are filled and compared, so the check takes seconds. Runs only on request, since it needs 8 GiB. */
#include "area.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB         (UINT64_C(1) << 30)
#define WINDOW      UINT64_C(65536)
#define LARGE       (4 * GIB + WINDOW)
#define HOST_NEEDED (16 * GIB)

/* The last window begins exactly at 4 GiB. */
static const uint64_t windows[] = {0, 2 * GIB - WINDOW / 2, 4 * GIB - WINDOW, 4 * GIB};
enum { WINDOWS = sizeof windows / sizeof *windows };

static uint64_t host_available(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1) {
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib << 10;
}

/* Skips the check with a reason unless --large was given and there is enough memory. */
static bool enough(const gpuhal_context *context)
{
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t most = gpuhal_device_fact(context, GPUHAL_FACT_ALLOCATION_MAX_BYTES, total);
    const bool of_host = gpuhal_device_fact(context, GPUHAL_FACT_TYPE, 0) != GPUHAL_DEVICE_GPU;
    if (!context->options->large) {
        gpuhal_skip("takes 8 GiB, and --large was not given");
    } else if (most < LARGE) {
        gpuhal_skip("the largest single allocation is %" PRIu64 " MiB", most >> 20);
    } else if (total < 2 * LARGE) {
        gpuhal_skip("the device has %" PRIu64 " MiB of memory", total >> 20);
    } else if (of_host && host_available() < HOST_NEEDED) {
        gpuhal_skip("less than 16 GiB of the host's memory are free");
    } else {
        return true;
    }
    return false;
}

/* Uses the slot write if it exists, because writing through a host address would not test the slot. */
static void put(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, const unsigned char *from)
{
    if (!gpuhal_plain_write(opened, memory, offset, from, WINDOW)) {
        gpuhal_plain_put(opened, memory, offset, from, WINDOW, ROUTE_ANY);
    }
}

static void get(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to)
{
    if (!gpuhal_plain_read(opened, memory, offset, to, WINDOW)) {
        gpuhal_plain_get(opened, memory, offset, to, WINDOW, ROUTE_ANY);
    }
}

/* Writes the windows from the last to the first. If a plugin truncates the last offset to 32 bits, it writes to the
 * first window, and writing the first window later overwrites these bytes. */
static void put_windows(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t seed)
{
    static unsigned char bytes[WINDOW];
    for (unsigned w = WINDOWS; w > 0; w--) {
        gpuhal_pattern(bytes, WINDOW, seed + w - 1);
        put(opened, memory, windows[w - 1], bytes);
    }
}

static void expect_window(const unsigned char *actual, uint64_t seed, uint64_t offset, const char *after)
{
    static unsigned char expected[WINDOW];
    gpuhal_pattern(expected, WINDOW, seed);
    char fault[400];
    const gpuhal_claim claim = {.expected = expected, .actual = actual, .total = WINDOW, .bytes = WINDOW};
    if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
        gpuhal_fail("%s, the bytes at offset %" PRIu64 "%s: %s", after, offset,
                    offset >= 4 * GIB ? " (offsets or sizes are cut to 32 bits)" : "", fault);
    }
}

static void expect_windows(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t seed, const char *after)
{
    static unsigned char actual[WINDOW];
    for (unsigned w = 0; w < WINDOWS; w++) {
        get(opened, memory, windows[w], actual);
        expect_window(actual, seed + w, windows[w], after);
    }
}

static void check_offsets(const gpuhal_opened *opened, const gpuhal_memory *memory)
{
    static unsigned char actual[WINDOW];
    put_windows(opened, memory, 1);
    expect_windows(opened, memory, 1, "after writing on both sides of 4 GiB");
    gpuhal_plain_copy(opened, memory, GIB, memory, 4 * GIB, WINDOW);
    get(opened, memory, GIB, actual);
    expect_window(actual, 1 + WINDOWS - 1, GIB, "after a copy from offset 4294967296");
    gpuhal_plain_copy(opened, memory, 4 * GIB, memory, windows[1], WINDOW);
    get(opened, memory, 4 * GIB, actual);
    expect_window(actual, 1 + 1, 4 * GIB, "after a copy to offset 4294967296");
    put_windows(opened, memory, 1);
    expect_windows(opened, memory, 1, "after writing again on both sides of 4 GiB");
}

/* The product of row and pitch exceeds 32 bits here, but the pitch itself does not. */
static void check_rows(const gpuhal_opened *opened, const gpuhal_memory *memory)
{
    enum { WIDTH = 256 };
    unsigned char rows[3 * WIDTH], expected[WINDOW];
    const uint64_t extent[3] = {WIDTH, 3, 1};
    const gpuhal_plugin_rect from = {.memory = memory, .row_pitch = 2 * GIB, .slice_pitch = 6 * GIB};
    const gpuhal_plugin_rect to = {.host = rows, .row_pitch = WIDTH, .slice_pitch = sizeof rows};
    gpuhal_step("the slot copy_rect");
    gpuhal_expect_ok(opened->slots.ops.copy_rect(opened->device, NULL, &to, &from, extent), "copy_rect");
    gpuhal_pattern(expected, WINDOW, 1 + 3);
    if (memcmp(rows + 2 * WIDTH, expected, WIDTH) != 0) {
        gpuhal_fail("copy_rect with a row pitch of 2 GiB: the third row, at offset 4294967296, is wrong");
    }
    gpuhal_pattern(expected, WINDOW, 1 + 1);
    if (memcmp(rows + WIDTH, expected + WINDOW / 2, WIDTH) != 0) {
        gpuhal_fail("copy_rect with a row pitch of 2 GiB: the second row is wrong");
    }
}

static void check_sizes(const gpuhal_opened *opened, const gpuhal_memory *memory)
{
    gpuhal_memory other;
    static unsigned char actual[WINDOW];
    gpuhal_expect_ok(gpuhal_plain_allocate(opened, GPUHAL_MEMORY_DEVICE, LARGE, 0, &other), "allocate");
    put_windows(opened, &other, 100);
    gpuhal_plain_copy(opened, &other, 0, memory, 0, LARGE);
    expect_windows(opened, &other, 1, "after a copy of 4295032832 bytes");
    if (opened->slots.ops.fill != NULL) {
        gpuhal_step("the slot fill");
        gpuhal_expect_ok(opened->slots.ops.fill(opened->device, NULL, &other, 0, LARGE, 0x5a5a5a5a, 4), "fill");
        for (unsigned w = 0; w < WINDOWS; w++) {
            get(opened, &other, windows[w], actual);
            if (actual[0] != 0x5a || memcmp(actual, actual + 1, WINDOW - 1) != 0) {
                gpuhal_fail("after a fill of 4295032832 bytes, the bytes at offset %" PRIu64 " are not filled",
                            windows[w]);
            }
        }
    }
    gpuhal_plain_release(opened, &other);
}

/* Half of the memory is host memory, so this part runs last and is skipped if the host does not have enough. */
static void check_host_sizes(const gpuhal_opened *opened, const gpuhal_memory *memory)
{
    if (opened->slots.ops.read == NULL || opened->slots.ops.write == NULL) {
        return;
    }
    unsigned char *host = LARGE <= SIZE_MAX ? malloc((size_t)LARGE) : NULL;
    if (host == NULL) {
        gpuhal_note("reading and writing more than 4 GiB at once was left out: the host has no memory for it");
        return;
    }
    if (!gpuhal_plain_read(opened, memory, 0, host, LARGE)) {
        free(host);
        return;
    }
    for (unsigned w = 0; w < WINDOWS; w++) {
        expect_window(host + windows[w], 1 + w, windows[w], "after a read of 4295032832 bytes");
        gpuhal_pattern(host + windows[w], WINDOW, 200 + w);
    }
    const bool written = gpuhal_plain_write(opened, memory, 0, host, LARGE);
    free(host);
    if (written) {
        expect_windows(opened, memory, 200, "after a write of 4295032832 bytes");
    }
}

void gpuhal_check_above_4gib(gpuhal_context *context)
{
    if (!enough(context)) {
        return;
    }
    const gpuhal_opened *opened = &context->opened;
    gpuhal_memory memory;
    gpuhal_expect_ok(gpuhal_plain_allocate(opened, GPUHAL_MEMORY_DEVICE, LARGE, 0, &memory),
                     "allocating 4295032832 bytes");
    if (memory.bytes < LARGE) {
        gpuhal_fail("allocate gave fewer bytes than asked for: %" PRIu64 " instead of %" PRIu64, memory.bytes, LARGE);
    }
    check_offsets(opened, &memory);
    if (opened->slots.ops.copy_rect != NULL) {
        check_rows(opened, &memory);
    }
    check_sizes(opened, &memory);
    check_host_sizes(opened, &memory);
    gpuhal_plain_release(opened, &memory);
}
