/* direct.c: opens one device of a plugin and calls its copy slot. This file fulfils the core's obligations: describe
 * before open, sizes set, release before close. */
#include "direct.h"
#include "baseline.h"
#include "bench.h"

#include <string.h>

static bool allocate(const gpuhal_bench_direct *direct, gpuhal_memory_kind kind, uint64_t bytes,
                     gpuhal_memory *out_memory)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind, .bytes = bytes};
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    const gpuhal_status status = direct->ops.allocate(direct->device, &alloc, out_memory);
    return status == GPUHAL_OK || gpuhal_bench_failed("the plugin's allocate: %s", gpuhal_status_name(status));
}

bool gpuhal_bench_direct_open(const gpuhal *gpu, gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes,
                              gpuhal_bench_direct *out_direct)
{
    gpuhal_plugin_report report;
    gpuhal_bench_direct *direct = out_direct;
    memset(direct, 0, sizeof *direct);
    direct->ops.size = sizeof direct->ops;
    if (!gpuhal_bench_find_report(gpu, gpuhal_device_backend(device), &report)) {
        return false;
    }
    if (*report.file != '/') {
        return gpuhal_bench_failed("%s is %s: there is no file", report.name, report.file);
    }
    if (gpuhal_direct_load(report.file, &direct->plugin, NULL) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_direct_load");
    }
    const uint32_t index = gpuhal_device_index(device);
    const gpuhal_direct_listener ignore = {0};
    gpuhal_status status = direct->plugin->start(gpuhal_direct_host(), &direct->instance);
    if (status == GPUHAL_OK) {
        status = gpuhal_direct_enumerate(direct->plugin, direct->instance, &ignore);
    }
    if (status == GPUHAL_OK) {
        status = direct->plugin->describe(gpuhal_direct_host(), direct->instance, index, &direct->ops);
    }
    if (status == GPUHAL_OK) {
        status =
            direct->plugin->open(gpuhal_direct_host(), direct->instance, index, NULL, &direct->device, &direct->ops);
    }
    if (status != GPUHAL_OK) {
        return gpuhal_bench_failed("the plugin's open: %s", gpuhal_status_name(status));
    }
    if (!allocate(direct, kind, bytes, &direct->to)) {
        goto close;
    }
    if (!allocate(direct, kind, bytes, &direct->from)) {
        goto release;
    }
    return true;

release:
    direct->ops.release(direct->device, &direct->to);
close:
    direct->plugin->close(direct->device);
    return false;
}

/* An older plugin may not have all members. Missing members are beyond the end of its table. */
static void stop(gpuhal_bench_direct *direct)
{
    const gpuhal_plugin *plugin = direct->plugin;
    if (plugin->size >= offsetof(gpuhal_plugin, stop) + sizeof plugin->stop && plugin->stop) {
        plugin->stop(gpuhal_direct_host(), direct->instance);
    }
}

void gpuhal_bench_direct_close(gpuhal_bench_direct *direct)
{
    direct->ops.release(direct->device, &direct->from);
    direct->ops.release(direct->device, &direct->to);
    direct->plugin->close(direct->device);
    stop(direct);
}

bool gpuhal_bench_direct_copy(gpuhal_bench_direct *direct, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const gpuhal_status status = direct->ops.copy(direct->device, NULL, &direct->to, 0, &direct->from, 0, bytes);
        if (status != GPUHAL_OK) {
            return gpuhal_bench_failed("the plugin's copy: %s", gpuhal_status_name(status));
        }
    }
    return true;
}

bool gpuhal_bench_direct_calls(const gpuhal *gpu, gpuhal_device *device, bool directly, uint64_t count)
{
    enum { CALL_BYTES = 64, BUFFER_BYTES = 4096 };
    const gpuhal_memory_kind kind = gpuhal_bench_call_kind(device);
    gpuhal_bench_direct direct;
    gpuhal_buffer *to = NULL;
    gpuhal_buffer *from = NULL;
    bool good;
    if (directly) {
        good = gpuhal_bench_direct_open(gpu, device, kind, BUFFER_BYTES, &direct);
        if (good) {
            good = gpuhal_bench_direct_copy(&direct, CALL_BYTES, count);
            gpuhal_bench_direct_close(&direct);
        }
        return good;
    }
    good = gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &to) &&
           gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &from) &&
           gpuhal_bench_copies(to, from, CALL_BYTES, count);
    gpuhal_buffer_release(to);
    gpuhal_buffer_release(from);
    return good;
}
