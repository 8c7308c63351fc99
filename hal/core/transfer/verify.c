/* transfer/verify.c: the self-test of a device. It copies patterns to the device, within it and back, and compares
 * every byte. It uses the functions behind the public calls, so it tests the paths that applications use. */
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "device/fault_log.h"
#include "device/link.h"
#include "transfer/copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEST_BYTES ((1u << 20) + 13u)

/* Generates bytes that depend on their position and `seed`, with a period far above any block size (xorshift over the
 * index). */
static void make_pattern(unsigned char *bytes, size_t count, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes[i] = (unsigned char)(state >> 11);
    }
}

typedef struct verification {
    gpuhal_device *device;
    gpuhal_buffer *one, *other;
    unsigned char *sent, *received;
} verification;

/* Returns DEVICE_LOST for a difference, because a device that returns wrong bytes is useless. */
static gpuhal_status compare(const verification *v, const char *action, uint64_t offset, const unsigned char *expected,
                             uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (v->received[i] != expected[i]) {
            gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST,
                             "%s: %s of %" PRIu64 " bytes went wrong: byte %" PRIu64 " is 0x%02x and should be 0x%02x",
                             v->device->id, action, bytes, offset + i, v->received[i], expected[i]);
            gpuhal_error_add_device(v->device->candidate->name, v->device->id);
            return GPUHAL_ERROR_DEVICE_LOST;
        }
    }
    return GPUHAL_OK;
}

/* Reads a range back into host memory that contains other bytes, and compares. */
static gpuhal_status expect(const verification *v, gpuhal_buffer *buffer, const char *action, uint64_t offset,
                            const unsigned char *expected, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        v->received[i] = (unsigned char)~expected[i];
    }
    gpuhal_status status = gpuhal_read_blocking(v->received, buffer, offset, bytes);
    return status ? status : compare(v, action, offset, expected, bytes);
}

/* Uses odd ranges next to each other: if a driver rounds offsets or sizes, it damages a neighbour, which the last
 * comparison detects. */
static gpuhal_status write_and_read(const verification *v)
{
    static const struct {
        uint64_t offset, bytes;
    } ranges[] = {{0, TEST_BYTES}, {0, 1},       {1, 1},         {3, 5},
                  {4095, 2},       {4096, 4096}, {65533, 70001}, {TEST_BYTES - 1, 1}};
    gpuhal_status status = GPUHAL_OK;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && !status; i++) {
        unsigned char *part = v->sent + ranges[i].offset;
        make_pattern(part, (size_t)ranges[i].bytes, 17u + (uint32_t)i);
        status = gpuhal_write_blocking(v->one, ranges[i].offset, part, ranges[i].bytes);
        status = status ? status : expect(v, v->one, "writing and reading", ranges[i].offset, part, ranges[i].bytes);
    }
    return status ? status : expect(v, v->one, "writing and reading", 0, v->sent, TEST_BYTES);
}

static gpuhal_status copy_within(const verification *v)
{
    gpuhal_status status = gpuhal_copy_blocking(v->other, 0, v->one, 0, TEST_BYTES);
    status = status ? status : expect(v, v->other, "copying within the device", 0, v->sent, TEST_BYTES);
    status = status ? status : gpuhal_copy_blocking(v->other, 257, v->one, 1001, 300003);
    memmove(v->sent + 257, v->sent + 1001, 300003);
    return status ? status : expect(v, v->other, "copying at odd offsets", 0, v->sent, TEST_BYTES);
}

static gpuhal_status fill(const verification *v)
{
    const uint32_t pattern = 0xc0ffee11u;
    gpuhal_status status = gpuhal_fill_blocking(v->other, 5, 4093, 0xa5, 1);
    memset(v->sent + 5, 0xa5, 4093);
    status = status ? status : gpuhal_fill_blocking(v->other, 8192, 65536, pattern, sizeof pattern);
    for (size_t i = 0; i < 65536; i += sizeof pattern) {
        memcpy(v->sent + 8192 + i, &pattern, sizeof pattern);
    }
    return status ? status : expect(v, v->other, "filling", 0, v->sent, TEST_BYTES);
}

/* Records the result as the device's link to itself; gpuhal_select() skips devices that failed. A failure other than
 * DEVICE_LOST and DRIVER is not a test result, so it is not recorded. Preserves the test's error detail if recording
 * fails. */
static void record(gpuhal_device *device, gpuhal_status status)
{
    gpuhal_link *own = gpuhal_link_between(device, device);
    gpuhal_error_detail detail;
    if (status && status != GPUHAL_ERROR_DEVICE_LOST && status != GPUHAL_ERROR_DRIVER) {
        return;
    }
    gpuhal_error_save(&detail);
    char *why = status ? gpuhal_text_copy(detail.sentence) : NULL, *none = NULL;
    if (!atomic_compare_exchange_strong(&own->why_broken, &none, why)) {
        free(why); /* the first failure is kept, because readers may be using the string */
    }
    atomic_store(&own->verified, status == GPUHAL_OK);
    atomic_store(&own->tried, 1);
    gpuhal_fault_log_link(device, device, false);
    if (gpuhal_fault_log_write(device->gpu)) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_DEBUG, "%s: %s", device->id, gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&detail);
}

gpuhal_status gpuhal_device_verify(gpuhal_device *device)
{
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_verify: device is NULL");
    }
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = TEST_BYTES, .flags = GPUHAL_ALLOCATE_NO_EVICT};
    verification v = {.device = device, .sent = malloc(TEST_BYTES), .received = malloc(TEST_BYTES)};
    gpuhal_status status = v.sent && v.received ? GPUHAL_OK : gpuhal_error_host_memory();
    status = status ? status : gpuhal_buffer_create(device, &desc, &v.one);
    status = status ? status : gpuhal_buffer_create(device, &desc, &v.other);
    status = status ? status : write_and_read(&v);
    status = status ? status : copy_within(&v);
    status = status ? status : fill(&v);
    gpuhal_buffer_release(v.one);
    gpuhal_buffer_release(v.other);
    free(v.sent);
    free(v.received);
    record(device, status);
    return status;
}
