/* tests/unit/program_support.h: the mock's programs (tests/support/mock_program.c) for tests of programs. */
#ifndef GPUHAL_TEST_PROGRAM_SUPPORT_H
#define GPUHAL_TEST_PROGRAM_SUPPORT_H

#include "support/mock.h"
#include "test.h"

#include <gpuhal/program.h>

#define SOURCE "program add sum\n"

static const gpuhal_code plain_code = {
    .size = sizeof(gpuhal_code), .format = "mock", .code = SOURCE, .bytes = sizeof SOURCE - 1};

static inline gpuhal *open_programs(const gpuhal_config *config)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2,
        .devices = {{.formats = "mock-exact mock", .keeps_compiled = 1}, {.formats = "mock", .keeps_compiled = 1}}};
    return gpuhal_mock_open(config, 0);
}

static inline gpuhal_status load_codes(gpuhal *gpu, const gpuhal_code *codes, uint32_t count, gpuhal_program **out)
{
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = codes, .code_count = count};
    return gpuhal_program_create(gpuhal_device_at(gpu, 0), &desc, out);
}

static inline gpuhal_program *load_program(gpuhal *gpu)
{
    gpuhal_program *program = NULL;
    assert_ok(load_codes(gpu, &plain_code, 1, &program));
    return program;
}

static inline gpuhal_kernel *make_kernel(gpuhal_program *program, const char *name)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = name};
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
    return kernel;
}

/* Enqueues a launch that adds a number to all elements of a buffer, in groups of up to 8. */
static inline gpuhal_status add_to(gpuhal_queue *queue, gpuhal_kernel *add, gpuhal_buffer *to, uint32_t value)
{
    const gpuhal_argument arguments[] = {{.buffer = to}, {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .argument_count = 2,
                                  .arguments = arguments,
                                  .groups = {(uint32_t)(gpuhal_buffer_bytes(to) / 32), 1, 1}};
    return gpuhal_kernel_launch(queue, add, &launch);
}

static inline void expect_numbers(gpuhal_buffer *buffer, uint32_t value)
{
    uint32_t got[64] = {0};
    const uint64_t bytes = gpuhal_buffer_bytes(buffer);
    assert_true(bytes <= sizeof got);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, bytes));
    for (uint64_t i = 0; i < bytes / 4; i++) {
        assert_int_equal(got[i], value);
    }
}

static inline void expect_mock_has_no_programs(void)
{
    for (uint32_t i = 0; i < gpuhal_mock.count; i++) {
        assert_int_equal(gpuhal_mock.devices[i].kernels, 0);
        assert_int_equal(gpuhal_mock.devices[i].programs, 0);
        assert_int_equal(gpuhal_mock.devices[i].openings, 0);
    }
}

#endif
