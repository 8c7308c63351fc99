/* tests/unit/abi_support.h: loads plugins of several versions of the ABI, through the helper, and copies bytes. */
#ifndef GPUHAL_TEST_ABI_SUPPORT_H
#define GPUHAL_TEST_ABI_SUPPORT_H

#include "loader/abi.h"
#include "loader_support.h"

#include <gpuhal/direct.h>
#include <gpuhal/gpuhal.h>

static gpuhal *open_plugin(const char *plugin_path, const char *helper)
{
    const gpuhal_config config = {.size = sizeof config,
                                  .ignore_environment = 1,
                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                  .plugin_path = plugin_path,
                                  .helper_path = helper,
                                  .registry = "none"};
    gpuhal *gpu = NULL;
    assert_ok(gpuhal_open(&config, &gpu));
    return gpu;
}

/* Checks that the device of the plugin in this folder moves bytes. */
UNUSED_HELPER void copies_bytes(const char *plugin_path, const char *helper, const char *selector)
{
    gpuhal *gpu = open_plugin(plugin_path, helper);
    gpuhal_device *device = NULL;
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 6};
    char back[6] = "";
    assert_ok(gpuhal_select(gpu, selector, 0, &device, NULL));
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_write(NULL, buffer, 0, "bytes", 6));
    assert_ok(gpuhal_read(NULL, back, buffer, 0, 6));
    assert_string_equal(back, "bytes");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

static void GPUHAL_CALL write_group(void *const *arguments, const gpuhal_host_group *group)
{
    ((uint32_t *)arguments[0])[group->group[0]] = group->group[0] + 1;
}

/* Checks that the processor's plugin in this folder launches a kernel. */
UNUSED_HELPER void launches(const char *plugin_path, const char *helper, const char *selector)
{
    enum { GROUPS = 4 };
    static const gpuhal_host_function functions[] = {{"write", write_group}, {NULL, NULL}};
    const gpuhal_code code = {
        .size = sizeof code, .format = "host-function", .code = functions, .bytes = sizeof functions};
    const gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
    const gpuhal_parameter parameter = {.kind = GPUHAL_PARAMETER_BUFFER};
    const gpuhal_kernel_desc kernel_desc = {
        .size = sizeof kernel_desc, .name = "write", .parameters = &parameter, .parameter_count = 1, .group_size = {1}};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = GROUPS * sizeof(uint32_t)};
    gpuhal *gpu = open_plugin(plugin_path, helper);
    gpuhal_device *device = NULL;
    gpuhal_buffer *buffer = NULL;
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    uint32_t back[GROUPS] = {0};
    assert_ok(gpuhal_select(gpu, selector, 0, &device, NULL));
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_program_create(device, &program_desc, &program));
    assert_ok(gpuhal_kernel_create(program, &kernel_desc, &kernel));
    const gpuhal_argument argument = {.buffer = buffer};
    const gpuhal_launch launch = {
        .size = sizeof launch, .arguments = &argument, .argument_count = 1, .groups = {GROUPS, 1, 1}};
    assert_ok(gpuhal_kernel_launch(NULL, kernel, &launch));
    assert_ok(gpuhal_read(NULL, back, buffer, 0, sizeof back));
    for (uint32_t i = 0; i < GROUPS; i++) {
        assert_int_equal(back[i], i + 1);
    }
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* Checks that the plugin in this folder runs a recording in a queue. Returns false if it has no device. */
UNUSED_HELPER bool runs_recordings(const char *plugin_path, const char *helper, const char *selector)
{
    gpuhal *gpu = open_plugin(plugin_path, helper);
    gpuhal_device *device = NULL;
    gpuhal_buffer *from = NULL, *to = NULL;
    gpuhal_queue *queue = NULL;
    gpuhal_recording *recording = NULL;
    uint32_t back[64] = {0};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = sizeof back};
    if (gpuhal_select(gpu, selector, 0, &device, NULL) != GPUHAL_OK) {
        gpuhal_close(gpu);
        return false;
    }
    assert_ok(gpuhal_buffer_create(device, &desc, &from));
    assert_ok(gpuhal_buffer_create(device, &desc, &to));
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    assert_ok(gpuhal_recording_create(device, NULL, &recording));
    assert_ok(gpuhal_recording_fill(recording, from, 0, sizeof back, 0x12345678, 4));
    assert_ok(gpuhal_recording_copy(recording, to, 0, from, 0, sizeof back));
    assert_ok(gpuhal_recording_finish(recording));
    assert_string_equal(gpuhal_recording_form(recording), "driver");
    assert_ok(gpuhal_recording_run(queue, recording, NULL, 0));
    assert_ok(gpuhal_read(queue, back, to, 0, sizeof back));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_int_equal(back[0], 0x12345678);
    assert_int_equal(back[63], 0x12345678);
    gpuhal_recording_release(recording);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
    return true;
}

/* Returns the version in the table that the plugin returns to this core. */
UNUSED_HELPER uint32_t version_of(const char *name)
{
    const gpuhal_plugin *plugin = NULL;
    assert_ok(gpuhal_direct_load(test_plugin(name), &plugin, NULL));
    return plugin->abi;
}

#endif
