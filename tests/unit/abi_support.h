/* tests/unit/abi_support.h: loads plugins of several versions of the ABI, through the helper, and copies bytes. */
#ifndef GPUHAL_TEST_ABI_SUPPORT_H
#define GPUHAL_TEST_ABI_SUPPORT_H

#include "loader/abi.h"
#include "loader_support.h"

#include <gpuhal/direct.h>
#include <gpuhal/gpuhal.h>

/* Checks that the device of the plugin in this folder moves bytes. */
UNUSED_HELPER void copies_bytes(const char *plugin_path, const char *helper, const char *selector)
{
    const gpuhal_config config = {.size = sizeof config,
                                  .ignore_environment = 1,
                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                  .plugin_path = plugin_path,
                                  .helper_path = helper,
                                  .registry = "none"};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 6};
    char back[6] = "";
    assert_ok(gpuhal_open(&config, &gpu));
    assert_ok(gpuhal_select(gpu, selector, 0, &device, NULL));
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_write(NULL, buffer, 0, "bytes", 6));
    assert_ok(gpuhal_read(NULL, back, buffer, 0, 6));
    assert_string_equal(back, "bytes");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* Returns the version in the table that the plugin returns to this core. */
UNUSED_HELPER uint32_t version_of(const char *name)
{
    const gpuhal_plugin *plugin = NULL;
    assert_ok(gpuhal_direct_load(test_plugin(name), &plugin, NULL));
    return plugin->abi;
}

#endif
