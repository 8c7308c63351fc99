/* Tests CPU kernels through the public API. The kernels are ordered with a queue's transfers, and kernels of several
 * queues run at the same time. */
#include "queues.h"

#include <gpuhal/program.h>

#include <stdatomic.h>
#include <unistd.h>

static void add(void *const *arguments, const gpuhal_host_group *group)
{
    uint32_t *out = arguments[0];
    const uint32_t value = *(const uint32_t *)arguments[1], own = group->group_size[0];
    for (uint32_t i = 0; i < own; i++) {
        out[group->group[0] * own + i] += value;
    }
}

static _Atomic uint32_t begun, together;

/* Each group waits until a group of the other launch has begun. */
static void wait_for_other(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t bit = *(const uint32_t *)arguments[1];
    (void)group;
    atomic_fetch_or(&begun, bit);
    for (int i = 0; i < 20000 && begun != 3; i++) {
        usleep(1000);
    }
    together += begun == 3;
}

static const gpuhal_host_function functions[] = {{"add", add}, {"wait_for_other", wait_for_other}, {NULL, NULL}};
static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                              {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

static gpuhal_kernel *kernel_or_fail(gpuhal_device *device, const char *name)
{
    const gpuhal_code code = {
        .size = sizeof code, .format = "host-function", .code = functions, .bytes = sizeof functions};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc wanted = {
        .size = sizeof wanted, .name = name, .parameters = parameters, .parameter_count = 2, .group_size = {64}};
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_program_create(device, &desc, &program));
    assert_ok(gpuhal_kernel_create(program, &wanted, &kernel));
    gpuhal_program_release(program);
    return kernel;
}

static void launch(gpuhal_queue *queue, gpuhal_kernel *kernel, gpuhal_buffer *buffer, uint64_t offset, uint32_t value,
                   uint32_t groups)
{
    const gpuhal_argument arguments[] = {{.buffer = buffer, .offset = offset}, {.value = &value, .bytes = 4}};
    const gpuhal_launch desc = {
        .size = sizeof desc, .argument_count = 2, .arguments = arguments, .groups = {groups, 1, 1}};
    assert_ok(gpuhal_kernel_launch(queue, kernel, &desc));
}

TEST(launches_and_transfers_of_a_queue_are_done_in_order)
{
    enum { COUNT = 1024, ROUNDS = 200 };
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    gpuhal_device *cpu = select_or_fail(gpu, "cpu:0");
    gpuhal_kernel *kernel = kernel_or_fail(cpu, "add");
    gpuhal_queue *queue = queue_or_fail(cpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(cpu, GPUHAL_MEMORY_DEVICE, 4 * COUNT);
    static uint32_t got[ROUNDS][COUNT];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        assert_ok(gpuhal_fill(queue, buffer, 0, 4 * COUNT, i, 4));
        launch(queue, kernel, buffer, 0, 1000, COUNT / 64);
        launch(queue, kernel, buffer, 4 * COUNT / 2, 5000, COUNT / 128);
        assert_ok(gpuhal_read(queue, got[i], buffer, 0, 4 * COUNT));
    }
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t k = 0; k < COUNT; k++) {
            assert_int_equal(got[i][k], i + 1000 + (k >= COUNT / 2 ? 5000 : 0));
        }
    }
    launch(NULL, kernel, buffer, 0, 1, 1);
    assert_ok(gpuhal_read(NULL, got[0], buffer, 0, 4 * COUNT));
    assert_int_equal(got[0][63], ROUNDS - 1 + 1001);
    assert_int_equal(got[0][64], ROUNDS - 1 + 1000);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(kernel);
    gpuhal_close(gpu);
}

TEST(launches_of_two_queues_go_on_at_once)
{
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    gpuhal_device *cpu = select_or_fail(gpu, "cpu:0");
    gpuhal_kernel *kernel = kernel_or_fail(cpu, "wait_for_other");
    gpuhal_queue *one = queue_or_fail(cpu, 0), *other = queue_or_fail(cpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(cpu, GPUHAL_MEMORY_DEVICE, 64);
    launch(one, kernel, buffer, 0, 1, 8);
    launch(other, kernel, buffer, 0, 2, 8);
    assert_ok(gpuhal_queue_synchronize(one, UINT64_MAX));
    assert_ok(gpuhal_queue_synchronize(other, UINT64_MAX));
    assert_int_equal(together, 16);
    gpuhal_queue_destroy(one);
    gpuhal_queue_destroy(other);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(kernel);
    gpuhal_close(gpu);
}

#include "test_main.h"
