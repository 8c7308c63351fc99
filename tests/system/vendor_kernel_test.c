/* Tests a vendor's plugin with its fake: programs, kernels and launches as applications use them (program.h). */
#include "vendor.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 20, N = 1000, GROUP = 256 };

static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                              {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                              {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                              {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                              {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

static gpuhal_program *program_on(gpuhal_device *device)
{
    const gpuhal_code codes[] = {{.size = sizeof codes[0], .format = "spirv", .code = "none", .bytes = 4},
                                 kernels_code()};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = codes, .code_count = 2};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(device, &desc, &program));
    assert_int_equal(gpuhal_program_choice(program), 1);
    assert_int_equal(gpuhal_program_is_cached(program), 0);
    return program;
}

static gpuhal_kernel *kernel_on(gpuhal_program *program, const char *name, uint32_t buffers, uint32_t values,
                                uint32_t x, uint32_t y)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc,
                                     .name = name,
                                     .parameters = (gpuhal_parameter[]){parameters[0], parameters[buffers > 1 ? 1 : 3],
                                                                        parameters[buffers > 2 ? 2 : 3], parameters[3]},
                                     .parameter_count = buffers + values,
                                     .group_size = {x, y}};
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
    return kernel;
}

static gpuhal_argument value_of(const void *value)
{
    return (gpuhal_argument){.value = value, .bytes = 4};
}

static void launch(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_argument *arguments, uint32_t count,
                   uint32_t x, uint32_t y)
{
    const gpuhal_launch how = {
        .size = sizeof how, .arguments = arguments, .argument_count = count, .groups = {x, y, 1}};
    assert_ok(gpuhal_kernel_launch(queue, kernel, &how));
}

/* Computes y = 2x + y, then the sum of each group's elements of y. */
TEST(kernels_follow_transfers_and_transfers_follow_kernels_in_one_queue)
{
    use_machine("devices 1; slow_us 2000");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *y = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof(float) * N),
                  *x = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof(float) * N),
                  *sums = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof(float) * 4);
    gpuhal_program *program = program_on(device);
    gpuhal_kernel *saxpy = kernel_on(program, "saxpy", 2, 2, GROUP, 1),
                  *reduce = kernel_on(program, "reduce", 2, 1, GROUP, 1);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    float ones[N], numbers[N], got[4];
    const float two = 2;
    const uint32_t n = N;
    for (int i = 0; i < N; i++) {
        ones[i] = 1;
        numbers[i] = (float)i;
    }
    const gpuhal_argument to_saxpy[] = {{.buffer = y}, {.buffer = x}, value_of(&two), value_of(&n)};
    const gpuhal_argument to_reduce[] = {{.buffer = sums}, {.buffer = y}, value_of(&n)};
    assert_ok(gpuhal_write(queue, y, 0, ones, sizeof ones));
    assert_ok(gpuhal_write(queue, x, 0, numbers, sizeof numbers));
    launch(queue, saxpy, to_saxpy, 4, 4, 1);
    launch(queue, reduce, to_reduce, 3, 4, 1);
    assert_ok(gpuhal_read(queue, got, sums, 0, sizeof got));
    assert_ok(gpuhal_fill(queue, y, 0, sizeof ones, 0, 4));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    for (int group = 0; group < 4; group++) {
        float sum = 0;
        for (int i = group * GROUP; i < (group + 1) * GROUP && i < N; i++) {
            sum += 2 * numbers[i] + 1;
        }
        assert_true(got[group] == sum);
    }
    gpuhal_kernel_release(saxpy);
    gpuhal_kernel_release(reduce);
    gpuhal_program_release(program);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(y);
    gpuhal_buffer_release(x);
    gpuhal_buffer_release(sums);
    close_clean(gpu);
}

TEST(a_kernel_with_groups_in_two_dimensions_multiplies_matrices)
{
    enum { SIDE = 20 };
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *all[3];
    float a[SIDE * SIDE], b[SIDE * SIDE], got[SIDE * SIDE];
    const uint32_t n = SIDE;
    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    for (int i = 0; i < 3; i++) {
        all[i] = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof a);
    }
    assert_ok(gpuhal_write(NULL, all[1], 0, a, sizeof a));
    assert_ok(gpuhal_write(NULL, all[2], 0, b, sizeof b));
    gpuhal_program *program = program_on(device);
    gpuhal_kernel *matmul = kernel_on(program, "matmul", 3, 1, 16, 16);
    gpuhal_program_release(program); /* the kernel holds a reference */
    const gpuhal_argument arguments[] = {{.buffer = all[0]}, {.buffer = all[1]}, {.buffer = all[2]}, value_of(&n)};
    launch(NULL, matmul, arguments, 4, 2, 2);
    assert_ok(gpuhal_read(NULL, got, all[0], 0, sizeof got));
    for (int i = 0; i < SIDE * SIDE; i++) {
        float sum = 0;
        for (int k = 0; k < SIDE; k++) {
            sum += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
        }
        assert_true(got[i] == sum);
    }
    gpuhal_kernel_release(matmul);
    for (int i = 0; i < 3; i++) {
        gpuhal_buffer_release(all[i]);
    }
    close_clean(gpu);
}

TEST(the_host_and_kernels_use_migrating_memory_at_one_address)
{
    use_machine("devices 1; slow_us 2000");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *y = buffer_or_fail(device, GPUHAL_MEMORY_MIGRATING, sizeof(float) * N),
                  *x = buffer_or_fail(device, GPUHAL_MEMORY_MIGRATING, sizeof(float) * N);
    float *const in = gpuhal_buffer_host(x), *const out = gpuhal_buffer_host(y), two = 2;
    const uint32_t n = N;
    assert_int_equal(gpuhal_buffer_address(x), (uintptr_t)in);
    gpuhal_program *program = program_on(device);
    gpuhal_kernel *saxpy = kernel_on(program, "saxpy", 2, 2, GROUP, 1);
    const gpuhal_argument arguments[] = {{.buffer = y}, {.buffer = x}, value_of(&two), value_of(&n)};
    for (int i = 0; i < N; i++) {
        in[i] = (float)i;
        out[i] = 1;
    }
    launch(NULL, saxpy, arguments, 4, 4, 1);
    for (int i = 0; i < N; i++) {
        assert_true(out[i] == 2 * (float)i + 1);
    }
    gpuhal_kernel_release(saxpy);
    gpuhal_program_release(program);
    gpuhal_buffer_release(y);
    gpuhal_buffer_release(x);
    close_clean(gpu);
}

TEST(a_launch_keeps_kernel_and_buffers_until_it_has_ended)
{
    use_machine("devices 1; slow_us 100000");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 256);
    gpuhal_program *program = program_on(device);
    gpuhal_kernel *fill = kernel_on(program, "fill", 1, 2, 64, 1);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    const uint32_t value = 7, count = 64;
    const gpuhal_argument arguments[] = {{.buffer = buffer}, value_of(&value), value_of(&count)};
    launch(queue, fill, arguments, 3, 1, 1);
    gpuhal_kernel_release(fill);
    gpuhal_program_release(program);
    gpuhal_buffer_release(buffer);
    assert_int_equal(fake_report_get()->modules, 1);
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

/* The launches are enqueued without a pause, so that one submission may contain all of them. */
TEST(launches_of_other_kernels_with_other_buffers_keep_them_all_until_they_have_ended)
{
    enum { LAUNCHES = 4 };
    use_machine("devices 1; slow_us 50000");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_program *program = program_on(device);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    const uint32_t before = fake_report_get()->allocations;
    const uint32_t value = 7, count = 64;
    gpuhal_buffer *buffers[LAUNCHES];
    gpuhal_kernel *kernels[LAUNCHES];
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        buffers[i] = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 256);
        kernels[i] = kernel_on(program, "fill", 1, 2, 64, 1);
    }
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        launch(queue, kernels[i], (gpuhal_argument[]){{.buffer = buffers[i]}, value_of(&value), value_of(&count)}, 3, 1,
               1);
        gpuhal_kernel_release(kernels[i]);
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_program_release(program);
    assert_int_equal(fake_report_get()->modules, 1);
    assert_int_equal(fake_report_get()->allocations, before + LAUNCHES);
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_int_equal(fake_report_get()->modules, 0);
    assert_int_equal(fake_report_get()->allocations, before);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

static void *load_and_launch(void *argument)
{
    gpuhal_device *device = argument;
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 256);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        const uint32_t count = 64;
        uint32_t got[64] = {0};
        gpuhal_program *program = program_on(device);
        gpuhal_kernel *fill = kernel_on(program, "fill", 1, 2, 64, 1), *again = kernel_on(program, "fill", 1, 2, 32, 1);
        const gpuhal_argument arguments[] = {{.buffer = buffer}, value_of(&round), value_of(&count)};
        launch(queue, fill, arguments, 3, 1, 1);
        launch(queue, again, arguments, 3, 2, 1);
        assert_ok(gpuhal_read(queue, got, buffer, 0, sizeof got));
        assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
        assert_int_equal(got[0] + got[63], 2 * round);
        gpuhal_kernel_release(fill);
        gpuhal_kernel_release(again);
        gpuhal_program_release(program);
    }
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    return NULL;
}

TEST(eight_threads_load_and_launch_at_once)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    pthread_t threads[THREADS];
    assert_ok(gpuhal_device_open(device));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_launch, device), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(fake_report_get()->launches, 2 * THREADS * ROUNDS);
    close_clean(gpu);
}

TEST(a_kernel_that_fails_fails_its_queue_with_the_drivers_code)
{
    use_machine("devices 1; lose 0 " OF("cuLaunchKernel", "hipModuleLaunchKernel") " 1 719");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 256);
    gpuhal_program *program = program_on(device);
    gpuhal_kernel *fill = kernel_on(program, "fill", 1, 2, 64, 1);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    const uint32_t value = 7, count = 64;
    const gpuhal_argument arguments[] = {{.buffer = buffer}, value_of(&value), value_of(&count)};
    launch(queue, fill, arguments, 3, 1, 1);
    assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_last_error()->vendor_code, 719);
    /* later calls repeat the error that lost the device */
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 256, 0, 4), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_last_error()->vendor_code, 719);
    gpuhal_kernel_release(fill);
    gpuhal_program_release(program);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_no_violation();
    remove_reports();
}

#include "test_main.h"
