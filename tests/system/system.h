/* tests/system/system.h: shared by the tests with real plugins. */
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

/* The tests expect PoCL's devices `basic` (opencl:0) and `pthread` (opencl:1). Other OpenCL drivers may have only one
 * device. */
static inline bool has_one_opencl_device(gpuhal *gpu)
{
    gpuhal_device *first = NULL, *second = NULL;
    const char *name = "";
    if (gpuhal_select(gpu, "opencl:0", 0, &first, NULL) || !gpuhal_select(gpu, "opencl:1", 0, &second, NULL)) {
        return false;
    }
    (void)gpuhal_device_text(first, GPUHAL_FACT_NAME, &name);
    return strncmp(name, "basic", 5) != 0 && strncmp(name, "pthread", 7) != 0;
}

static inline void skip_without_two_opencl_devices(gpuhal *gpu)
{
    if (has_one_opencl_device(gpu)) {
        SKIP_TEST("the OpenCL driver has one device alone");
    }
}

/* If the driver has only one device, a test of opencl:1 uses this device. */
static inline gpuhal_device *select_or_fail(gpuhal *gpu, const char *selector)
{
    gpuhal_device *device = NULL;
    if (strcmp(selector, "opencl:1") == 0 && has_one_opencl_device(gpu)) {
        selector = "opencl:0";
    }
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
        fail_msg("%llu bytes on %s: %s", (unsigned long long)bytes, gpuhal_device_id(device),
                 gpuhal_last_error()->sentence);
    }
    return buffer;
}

/* Returns a value in /proc/self/status, in KiB, or -1 if it is missing. */
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
