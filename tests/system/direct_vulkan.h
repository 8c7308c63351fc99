/* tests/system/direct_vulkan.h: calls the Vulkan plugin's slots directly (gpuhal/direct.h). */
#ifndef GPUHAL_TEST_DIRECT_VULKAN_H
#define GPUHAL_TEST_DIRECT_VULKAN_H

#include "system.h"

#include <gpuhal/direct.h>
#include <gpuhal/plugin.h>

#include <string.h>

typedef struct opening {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    gpuhal_plugin_device *device;
    gpuhal_ops ops;
} opening;

/* @p adopt is a device to adopt, or NULL. */
static inline gpuhal_status open_direct_on(opening *o, const gpuhal_native *adopt)
{
    const gpuhal_direct_listener no_listener = {0};
    memset(o, 0, sizeof *o);
    assert_non_null(getenv("GPUHAL_VULKAN_PLUGIN_FILE"));
    assert_ok(gpuhal_direct_load(getenv("GPUHAL_VULKAN_PLUGIN_FILE"), &o->plugin, NULL));
    gpuhal_status status = o->plugin->start(gpuhal_direct_host(), &o->instance);
    if (!status) {
        status = gpuhal_direct_enumerate(o->plugin, o->instance, &no_listener);
    }
    o->ops.size = sizeof o->ops;
    if (!status) {
        status = o->plugin->describe(gpuhal_direct_host(), o->instance, 0, &o->ops);
    }
    if (!status) {
        status = o->plugin->open(gpuhal_direct_host(), o->instance, 0, adopt, &o->device, &o->ops);
    }
    return status ? gpuhal_direct_failed(o->plugin, status, "open") : GPUHAL_OK;
}

static inline gpuhal_status open_direct(opening *o)
{
    return open_direct_on(o, NULL);
}

static inline gpuhal_status allocate_direct(const opening *o, gpuhal_memory_kind kind, uint64_t bytes,
                                            gpuhal_memory *out_memory)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind, .bytes = bytes};
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    gpuhal_status status = o->ops.allocate(o->device, &alloc, out_memory);
    if (status) {
        *out_memory = (gpuhal_memory){0};
    }
    return status;
}

static inline void release_direct(const opening *o, gpuhal_memory *memory)
{
    if (memory->size) {
        o->ops.release(o->device, memory);
    }
}

#endif
