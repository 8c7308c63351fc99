/* Programs and launches on the CPU, with each call failing once. */
#include "support/cpu_kernels.h"

#include "support/torture.h"

#include <fcntl.h>

static gpuhal_status failed(const cpu *with, gpuhal_status status)
{
    return status == GPUHAL_OK ? GPUHAL_OK : gpuhal_direct_failed(with->plugin, status, "the call");
}

/* Launches 100,000 groups of 4 threads that add a number to their elements. The local memory is larger than the memory
 * that the plugin has on the stack for a launch. */
static gpuhal_status add(const cpu *with, gpuhal_plugin_program *program)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                  {.kind = GPUHAL_PARAMETER_LOCAL}};
    enum { ELEMENTS = 400000 };
    static uint32_t elements[ELEMENTS];
    const uint32_t number = 5, before = elements[ELEMENTS - 1];
    const gpuhal_memory memory = {
        .size = sizeof memory, .object = elements, .host = elements, .bytes = sizeof elements};
    const gpuhal_plugin_argument arguments[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER, .memory = &memory, .bytes = sizeof elements},
        {.kind = GPUHAL_PARAMETER_VALUE, .value = &number, .bytes = 4},
        {.kind = GPUHAL_PARAMETER_LOCAL, .bytes = 4096}};
    const gpuhal_kernel_desc desc = {
        .name = "gpuhal_test_add", .parameters = parameters, .parameter_count = 3, .group_size = {4}};
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_status status = create(with, program, desc, &kernel);
    if (status == GPUHAL_OK) {
        status = launch(with, kernel, arguments, 3, ELEMENTS / 4);
        assert_int_equal(elements[ELEMENTS - 1], status == GPUHAL_OK ? before + number : before);
        with->ops.programs->kernel_destroy(kernel);
    }
    return status;
}

static gpuhal_status load_and_add(void)
{
    static char code[1 << 20];
    cpu with = {.plugin = gpuhal_cpu_plugin_query(GPUHAL_ABI, gpuhal_direct_host())};
    const gpuhal_host *host = gpuhal_direct_host();
    FILE *file = fopen(HOST_KERNELS, "r");
    if (!file) {
        return failed(&with, host->report(host, GPUHAL_ERROR_FILE, "fopen", 0, "the test's file does not open"));
    }
    const size_t bytes = fread(code, 1, sizeof code, file);
    fclose(file);
    with.ops.size = sizeof with.ops;
    gpuhal_status status = failed(&with, with.plugin->start(host, &with.instance));
    if (status != GPUHAL_OK) {
        return status;
    }
    expect_fine(&with, with.plugin->describe(host, with.instance, 0, &with.ops), "describe");
    status = failed(&with, with.plugin->open(host, with.instance, 0, NULL, &with.device, &with.ops));
    for (int i = 0; status == GPUHAL_OK && i < 2; i++) {
        gpuhal_plugin_program *program = NULL;
        const gpuhal_code given = {
            .format = "host-library", .code = i == 0 ? code : HOST_KERNELS, .bytes = i == 0 ? bytes : 0};
        status = failed(&with, load(&with, given, &program));
        if (status == GPUHAL_OK) {
            status = failed(&with, add(&with, program));
            with.ops.programs->program_unload(program);
        }
    }
    if (with.device) {
        with.plugin->close(with.device);
    }
    with.plugin->stop(host, with.instance);
    return status;
}

static void take_four_threads(void)
{
    setenv("GPUHAL_OPTIONS", "cpu.threads=4", 1);
}

TEST(each_call_of_the_system_fails_once)
{
    torture(load_and_add, GPUHAL_FAULT_FAIL, take_four_threads);
}

TEST(each_allocation_fails_once)
{
    torture(load_and_add, GPUHAL_FAULT_ALLOCATION, take_four_threads);
}

#include "test_main.h"
