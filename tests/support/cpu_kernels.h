/* tests/support/cpu_kernels.h: programs of the cpu plugin, slot by slot. The plugin is linked into the test, so that
 * sanitizers check the plugin too. */
#ifndef GPUHAL_TEST_CPU_KERNELS_H
#define GPUHAL_TEST_CPU_KERNELS_H

#include "test.h"

#include <gpuhal/direct.h>
#include <gpuhal/error.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

const gpuhal_plugin *gpuhal_cpu_plugin_query(uint32_t host_abi, const gpuhal_host *host);

typedef struct cpu {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    gpuhal_plugin_device *device;
    gpuhal_ops ops;
} cpu;

static inline void expect_fine(const cpu *with, gpuhal_status status, const char *what)
{
    if (status != GPUHAL_OK) {
        gpuhal_direct_failed(with->plugin, status, what);
        fail_msg("%s: %s", what, gpuhal_last_error()->sentence);
    }
}

static inline void expect_refused(const cpu *with, gpuhal_status status, gpuhal_status expected, const char *words)
{
    assert_int_equal(status, expected);
    gpuhal_direct_failed(with->plugin, status, "the call");
    if (strstr(gpuhal_last_error()->sentence, words) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", gpuhal_last_error()->sentence, words);
    }
}

static inline cpu open_cpu(const char *options)
{
    cpu with = {.plugin = gpuhal_cpu_plugin_query(GPUHAL_ABI, gpuhal_direct_host())};
    setenv("GPUHAL_OPTIONS", options, 1);
    with.ops.size = sizeof with.ops;
    expect_fine(&with, with.plugin->start(gpuhal_direct_host(), &with.instance), "start");
    expect_fine(&with, with.plugin->describe(gpuhal_direct_host(), with.instance, 0, &with.ops), "describe");
    expect_fine(&with, with.plugin->open(gpuhal_direct_host(), with.instance, 0, NULL, &with.device, &with.ops),
                "open");
    return with;
}

static inline void close_cpu(const cpu *with)
{
    with->plugin->close(with->device);
    with->plugin->stop(gpuhal_direct_host(), with->instance);
}

static inline gpuhal_status load(const cpu *with, gpuhal_code code, gpuhal_plugin_program **out_program)
{
    gpuhal_plugin_build build = {.size = sizeof build};
    code.size = sizeof code;
    *out_program = NULL;
    return with->ops.programs->program_load(with->device, &code, &build, out_program);
}

static inline gpuhal_plugin_program *program_or_fail(const cpu *with, gpuhal_code code)
{
    gpuhal_plugin_program *program = NULL;
    expect_fine(with, load(with, code, &program), "load");
    return program;
}

static inline gpuhal_status create(const cpu *with, gpuhal_plugin_program *program, gpuhal_kernel_desc desc,
                                   gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_kernel_info info = {.size = sizeof info};
    desc.size = sizeof desc;
    *out_kernel = NULL;
    return with->ops.programs->kernel_create(program, &desc, &info, out_kernel);
}

/* Creates a kernel with groups of 4 threads. */
static inline gpuhal_plugin_kernel *kernel_or_fail(const cpu *with, gpuhal_plugin_program *program, const char *name,
                                                   const gpuhal_parameter *parameters, uint32_t count)
{
    const gpuhal_kernel_desc desc = {
        .name = name, .parameters = parameters, .parameter_count = count, .group_size = {4}};
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(with, create(with, program, desc, &kernel), name);
    return kernel;
}

static inline gpuhal_memory memory_or_fail(const cpu *with, uint64_t bytes)
{
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = bytes};
    expect_fine(with, with->ops.allocate(with->device, &alloc, &memory), "allocate");
    memset(memory.host, 0, (size_t)bytes);
    return memory;
}

static inline gpuhal_status launch(const cpu *with, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_argument *arguments, uint32_t count, uint32_t groups)
{
    const gpuhal_plugin_launch what = {.size = sizeof what,
                                       .arguments = arguments,
                                       .argument_count = count,
                                       .groups = {groups, 1, 1},
                                       .group_size = {4, 1, 1},
                                       .threads = {4 * (uint64_t)groups, 1, 1}};
    return with->ops.programs->launch(NULL, kernel, &what);
}

static const gpuhal_parameter buffer_only = {.kind = GPUHAL_PARAMETER_BUFFER};
static const gpuhal_parameter buffer_and_number[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                     {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

#endif
