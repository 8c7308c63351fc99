/* Launches that use many buffers, one buffer for two purposes, or a suballocation of a pool. */
#include "pool_support.h"
#include "program_support.h"

/* The launch's record is on the heap. glibc detects writes past its end. */
TEST(a_launch_may_use_hundreds_of_buffers_beside_its_arguments)
{
    enum { MANY = 300 };
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *one = gpuhal_mock_buffer(gpu, 0, 64), *other = gpuhal_mock_buffer(gpu, 0, 64), *uses[MANY];
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    assert_ok(gpuhal_fill(NULL, one, 0, 64, 1, 4));
    assert_ok(gpuhal_fill(NULL, other, 0, 64, 1, 4));
    const uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = one}, {.value = &value, .bytes = sizeof value}};
    for (int i = 0; i < MANY; i++) {
        uses[i] = other;
    }
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .argument_count = 2,
                                  .arguments = arguments,
                                  .groups = {2, 1, 1},
                                  .uses = uses,
                                  .uses_count = MANY};
    for (int i = 0; i < 8; i++) {
        assert_ok(gpuhal_kernel_launch(i % 2 ? queue : NULL, add, &launch));
        assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    }
    expect_numbers(one, 9);
    expect_numbers(other, 1);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(other);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(a_buffer_that_a_launch_first_reads_and_then_writes_is_written)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                  {.kind = GPUHAL_PARAMETER_LOCAL}};
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock", .not_coherent = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_program *program = load_program(gpu);
    const gpuhal_kernel_desc desc = {
        .size = sizeof desc, .name = "sum", .parameters = parameters, .parameter_count = 4};
    gpuhal_kernel *sum = NULL;
    assert_ok(gpuhal_kernel_create(program, &desc, &sum));
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    assert_ok(gpuhal_fill(NULL, buffer, 0, 64, 1, 4));
    const uint32_t count = 1;
    const gpuhal_argument arguments[] = {
        {.buffer = buffer}, {.buffer = buffer}, {.value = &count, .bytes = 4}, {.bytes = 64}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 4, .arguments = arguments, .groups = {1, 1, 1}};
    const int64_t before = gpuhal_mock.devices[0].cleans;
    assert_ok(gpuhal_kernel_launch(NULL, sum, &launch));
    assert_int_equal(gpuhal_mock.devices[0].cleans, before + 1);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(sum);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

/* A launch uses all memory of a pool, in a queue other than the allocation's. */
static void expect_kept_behind_launch(bool by_address)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *part = take(pool, NULL, SEGMENT), *plain = gpuhal_mock_buffer(gpu, 0, 64);
    const uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = by_address ? plain : part}, {.value = &value, .bytes = 4}};
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .argument_count = 2,
                                  .arguments = arguments,
                                  .groups = {2, 1, 1},
                                  .uses = &part,
                                  .uses_count = by_address ? 1 : 0};
    gpuhal_mock.devices[0].hold_launches = 1;
    assert_ok(gpuhal_kernel_launch(queue, add, &launch));
    gpuhal_buffer_release(part);
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_mock.devices[0].hold_launches = 0;
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(attempt(pool, NULL, SEGMENT, 0, 0));
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(plain);
    gpuhal_pool_destroy(pool);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(memory_of_a_pool_that_a_launch_uses_is_given_to_no_other_before_the_launch_has_ended)
{
    expect_kept_behind_launch(false);
    expect_kept_behind_launch(true);
}

#include "test_main.h"
