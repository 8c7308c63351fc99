/* tests/system/system.h: what the tests with real plugins share. */
#ifndef GPUHAL_TEST_SYSTEM_H
#define GPUHAL_TEST_SYSTEM_H

#include "test.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/native.h>

static inline gpuhal *open_or_fail(const gpuhal_config *config)
{
    gpuhal *gpu = NULL;
    if (gpuhal_open(config, &gpu)) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

static inline gpuhal_device *select_or_fail(gpuhal *gpu, const char *selector)
{
    gpuhal_device *device = NULL;
    if (gpuhal_select(gpu, selector, 0, &device, NULL)) {
        fail_msg("%s: %s", selector, gpuhal_last_error()->sentence);
    }
    return device;
}

static inline gpuhal_buffer *buffer_or_fail(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = bytes};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(device, &desc, &buffer)) {
        fail_msg("%llu bytes on %s: %s", (unsigned long long)bytes, gpuhal_device_id(device), gpuhal_last_error()->sentence);
    }
    return buffer;
}

#define assert_ok(status)                                                                                                              \
    do {                                                                                                                               \
        if ((status) != GPUHAL_OK) {                                                                                                   \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, gpuhal_last_error()->sentence);                                                  \
        }                                                                                                                              \
    } while (0)

/* A value in a line of /proc/self/status, in KiB. */
static inline long memory_status_kib(const char *key)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtol(line + strlen(key), NULL, 10);
        }
    }
    if (file) {
        fclose(file);
    }
    return value;
}

#endif
