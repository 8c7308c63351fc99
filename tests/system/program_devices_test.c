/* Tests that three kernels produce bit-identical results on every device. Each device chooses a format from the same
 * list of codes. Also tests the order of launches in queues, with real drivers. */
#include "queues.h"
#include "support/import_host.h"

#include <gpuhal/program.h>

/* Generated from the sources in kernels/. */
#include "test_matmul.h"
#include "test_reduce.h"
#include "test_saxpy.h"

#include <pthread.h>

enum { COUNT = 10000, SIZE = 50, SUMS = (COUNT + 255) / 256 };

static const gpuhal_parameter saxpy_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                    {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
static const gpuhal_parameter reduce_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                                     {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                     {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
static const gpuhal_parameter matmul_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                                     {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                     {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                     {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

static const struct kernel_case {
    const char *name;
    const gpuhal_code *codes;
    const uint32_t *code_count;
    const gpuhal_parameter *parameters;
    uint32_t parameter_count, group_size[3];
} kernels[] = {{"saxpy", test_saxpy_codes, &test_saxpy_code_count, saxpy_parameters, 4, {64, 1, 1}},
               {"reduce", test_reduce_codes, &test_reduce_code_count, reduce_parameters, 3, {256, 1, 1}},
               {"matmul", test_matmul_codes, &test_matmul_code_count, matmul_parameters, 4, {16, 16, 1}}};
enum { SAXPY, REDUCE, MATMUL, KERNELS };

typedef struct engine {
    gpuhal_device *device;
    gpuhal_program *programs[KERNELS];
    gpuhal_kernel *kernels[KERNELS];
} engine;

static gpuhal_status load(engine *own, gpuhal_device *device)
{
    gpuhal_status status = GPUHAL_OK;
    own->device = device;
    for (int i = 0; i < KERNELS && !status; i++) {
        const gpuhal_program_desc desc = {
            .size = sizeof desc, .codes = kernels[i].codes, .code_count = *kernels[i].code_count};
        const gpuhal_kernel_desc kernel = {
            .size = sizeof kernel,
            .name = kernels[i].name,
            .parameters = kernels[i].parameters,
            .parameter_count = kernels[i].parameter_count,
            .group_size = {kernels[i].group_size[0], kernels[i].group_size[1], kernels[i].group_size[2]}};
        status = gpuhal_program_create(device, &desc, &own->programs[i]);
        status = status ? status : gpuhal_kernel_create(own->programs[i], &kernel, &own->kernels[i]);
    }
    return status;
}

static void unload(engine *own)
{
    for (int i = 0; i < KERNELS; i++) {
        gpuhal_kernel_release(own->kernels[i]);
        gpuhal_program_release(own->programs[i]);
    }
}

static gpuhal_buffer *buffer_of(gpuhal_device *device, uint64_t bytes)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    return buffer;
}

static void launch(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_argument *arguments, uint32_t count,
                   uint32_t x, uint32_t y)
{
    const gpuhal_launch desc = {
        .size = sizeof desc, .argument_count = count, .arguments = arguments, .groups = {x, y, 1}};
    assert_ok(gpuhal_kernel_launch(queue, kernel, &desc));
}

typedef struct results {
    float y[COUNT], sums[SUMS], c[SIZE * SIZE];
} results;

static void compute(const engine *own, gpuhal_queue *queue, results *out)
{
    static float x[COUNT], y[COUNT], a[SIZE * SIZE], b[SIZE * SIZE];
    const uint32_t count = COUNT, size = SIZE;
    const float factor = 3.0f; /* exact in any order and with fused operations, because all sums are small integers */
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 97);
        y[i] = (float)(i % 13) - 6.0f;
    }
    for (uint32_t i = 0; i < SIZE * SIZE; i++) {
        a[i] = (float)(i % 31);
        b[i] = (float)(i % 17) - 8.0f;
    }
    gpuhal_buffer *bx = buffer_of(own->device, sizeof x), *by = buffer_of(own->device, sizeof y);
    gpuhal_buffer *sums = buffer_of(own->device, sizeof out->sums), *ba = buffer_of(own->device, sizeof a);
    gpuhal_buffer *bb = buffer_of(own->device, sizeof b), *bc = buffer_of(own->device, sizeof out->c);
    assert_ok(gpuhal_write(queue, bx, 0, x, sizeof x));
    assert_ok(gpuhal_write(queue, by, 0, y, sizeof y));
    assert_ok(gpuhal_write(queue, ba, 0, a, sizeof a));
    assert_ok(gpuhal_write(queue, bb, 0, b, sizeof b));
    launch(queue, own->kernels[SAXPY],
           (gpuhal_argument[]){
               {.buffer = by}, {.buffer = bx}, {.value = &factor, .bytes = 4}, {.value = &count, .bytes = 4}},
           4, (COUNT + 63) / 64, 1);
    launch(queue, own->kernels[REDUCE],
           (gpuhal_argument[]){{.buffer = sums}, {.buffer = by}, {.value = &count, .bytes = 4}}, 3, SUMS, 1);
    launch(queue, own->kernels[MATMUL],
           (gpuhal_argument[]){{.buffer = bc}, {.buffer = ba}, {.buffer = bb}, {.value = &size, .bytes = 4}}, 4,
           (SIZE + 15) / 16, (SIZE + 15) / 16);
    assert_ok(gpuhal_read(queue, out->y, by, 0, sizeof out->y));
    assert_ok(gpuhal_read(queue, out->sums, sums, 0, sizeof out->sums));
    assert_ok(gpuhal_read(queue, out->c, bc, 0, sizeof out->c));
    gpuhal_buffer *const all[] = {bx, by, sums, ba, bb, bc};
    for (int i = 0; i < 6; i++) {
        gpuhal_buffer_release(all[i]); /* the queue holds references */
    }
    if (queue) {
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(out->y[i] == factor * x[i] + y[i]);
    }
}

TEST(three_kernels_of_one_set_of_alternatives_give_equal_results_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    static results first, other;
    uint32_t devices = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        gpuhal_queue *queue = queue_or_fail(own.device, 0);
        results *out = devices++ == 0 ? &first : &other;
        compute(&own, NULL, out);
        assert_true(devices == 1 || memcmp(&first, &other, sizeof first) == 0);
        memset(&other, 0, sizeof other);
        compute(&own, queue, &other);
        assert_memory_equal(&first, &other, sizeof first);
        gpuhal_queue_destroy(queue);
        unload(&own);
    }
    assert_true(devices > 0);
    gpuhal_close(gpu);
}

/* ---- queues */

/* Each round copies the buffer and adds the copy to it. The result is a power of two only if the copies and launches
 * run in order. */
static void expect_order(const engine *own, gpuhal_queue *queue)
{
    const uint32_t count = 64;
    const float one = 1.0f;
    float start[64], got[64];
    gpuhal_buffer *buffer = buffer_of(own->device, sizeof start), *copy = buffer_of(own->device, sizeof start);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = 1.0f;
    }
    assert_ok(gpuhal_write(queue, buffer, 0, start, sizeof start));
    for (uint32_t i = 0; i < 20; i++) {
        assert_ok(gpuhal_copy(queue, copy, 0, buffer, 0, sizeof start));
        launch(queue, own->kernels[SAXPY],
               (gpuhal_argument[]){
                   {.buffer = buffer}, {.buffer = copy}, {.value = &one, .bytes = 4}, {.value = &count, .bytes = 4}},
               4, 1, 1);
    }
    assert_ok(gpuhal_read(queue, got, buffer, 0, sizeof got));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(got[i] == 1048576.0f);
    }
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(copy);
}

TEST(launches_and_copies_of_a_queue_are_in_order_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        gpuhal_queue *queue = queue_or_fail(own.device, 0);
        expect_order(&own, queue);
        gpuhal_queue_destroy(queue);
        unload(&own);
    }
    gpuhal_close(gpu);
}

/* ---- consecutive launches */

enum { LAUNCHES = 500, LAUNCHERS = 4, RESULTS = 3, TURN = 2 };

typedef struct row {
    const engine *own;
    gpuhal_queue *queue;
    gpuhal_buffer *to[RESULTS], *ones;
} row;

static row row_on(const engine *own)
{
    float start[64];
    row made = {own, queue_or_fail(own->device, 0), {NULL}, buffer_of(own->device, sizeof start)};
    for (uint32_t i = 0; i < 64; i++) {
        start[i] = 1.0f;
    }
    assert_ok(gpuhal_write(NULL, made.ones, 0, start, sizeof start));
    for (uint32_t i = 0; i < RESULTS; i++) {
        made.to[i] = buffer_of(own->device, sizeof start);
        assert_ok(gpuhal_write(NULL, made.to[i], 0, start, sizeof start));
    }
    return made;
}

static void release_buffers(const row *own)
{
    gpuhal_buffer_release(own->ones);
    for (uint32_t i = 0; i < RESULTS; i++) {
        gpuhal_buffer_release(own->to[i]);
    }
}

/* Consecutive launches add different numbers. The test overwrites the number as soon as the call has returned. After
 * TURN launches the result goes to another buffer. */
static void *launch_row(void *user)
{
    const row *own = user;
    const uint32_t count = 64;
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        float number = (float)(i % 3);
        launch(own->queue, own->own->kernels[SAXPY],
               (gpuhal_argument[]){{.buffer = own->to[i / TURN % RESULTS]},
                                   {.buffer = own->ones},
                                   {.value = &number, .bytes = 4},
                                   {.value = &count, .bytes = 4}},
               4, 1, 1);
        number = 1000.0f;
        if (i % 100 == 99) {
            assert_ok(gpuhal_queue_flush(own->queue));
        }
    }
    return NULL;
}

/* Enqueues reads of the results, releases all objects, and only then waits. The enqueued work holds references to the
 * buffers, the kernel and the program. */
static void expect_results(const row *own, engine *used, uint32_t rows)
{
    float got[RESULTS][64], sums[RESULTS] = {0};
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        sums[i / TURN % RESULTS] += (float)(i % 3);
    }
    for (uint32_t i = 0; i < RESULTS; i++) {
        assert_ok(gpuhal_read(own->queue, got[i], own->to[i], 0, sizeof got[i]));
    }
    release_buffers(own);
    unload(used);
    assert_ok(gpuhal_queue_synchronize(own->queue, PATIENCE_NS));
    for (uint32_t i = 0; i < RESULTS * 64; i++) {
        assert_true(got[i / 64][i % 64] == 1.0f + (float)rows * sums[i / 64]);
    }
    gpuhal_queue_destroy(own->queue);
}

static void expect_rows(gpuhal_device *device)
{
    engine own = {0};
    pthread_t threads[LAUNCHERS];
    assert_ok(load(&own, device));
    row shared = row_on(&own);
    for (uint32_t i = 0; i < LAUNCHERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_row, &shared), 0);
    }
    for (uint32_t i = 0; i < LAUNCHERS; i++) {
        pthread_join(threads[i], NULL);
    }
    expect_results(&shared, &own, LAUNCHERS);
}

TEST(several_threads_lose_no_launch_and_launches_keep_their_buffers)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        expect_rows(gpuhal_device_at(gpu, d));
    }
    gpuhal_close(gpu);
}

/* The launches after a wait for an unsignalled host event are deferred work. */
TEST(a_row_of_launches_goes_on_behind_a_wait)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        row one = row_on(&own);
        gpuhal_event *signal = event_or_fail(gpu, GPUHAL_EVENT_HOST);
        launch_row(&one);
        assert_ok(gpuhal_queue_wait(one.queue, signal));
        launch_row(&one);
        assert_int_equal(gpuhal_queue_synchronize(one.queue, MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
        assert_ok(gpuhal_event_signal(signal, GPUHAL_OK));
        launch_row(&one);
        expect_results(&one, &own, 3);
        gpuhal_event_destroy(signal);
    }
    gpuhal_close(gpu);
}

/* ---- launches that do not match the kernel */

static gpuhal_status launch_with(const row *own, gpuhal_buffer *used, uint32_t local_bytes)
{
    const uint32_t count = 64;
    const float number = 1.0f;
    const gpuhal_argument arguments[] = {
        {.buffer = own->to[0]}, {.buffer = own->ones}, {.value = &number, .bytes = 4}, {.value = &count, .bytes = 4}};
    const gpuhal_launch desc = {.size = sizeof desc,
                                .argument_count = 4,
                                .arguments = arguments,
                                .groups = {1, 1, 1},
                                .local_bytes = local_bytes,
                                .uses = &used,
                                .uses_count = used ? 1 : 0};
    return gpuhal_kernel_launch(own->queue, own->own->kernels[SAXPY], &desc);
}

/* If the driver has to map the buffer, earlier launches that may still use it prevent the mapping. */
static void expect_busy_while_mapped(const row *own)
{
    void *mapped = NULL;
    assert_ok(launch_with(own, NULL, 0));
    assert_ok(launch_with(own, NULL, 0));
    assert_ok(gpuhal_queue_synchronize(own->queue, PATIENCE_NS));
    const gpuhal_status status = gpuhal_buffer_map(own->to[0], 0, 4, GPUHAL_ACCESS_READ, &mapped);
    if (status == GPUHAL_OK) {
        assert_int_equal(launch_with(own, NULL, 0), GPUHAL_ERROR_BUSY);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "kernel saxpy, argument 0: the buffer is mapped"));
        assert_ok(gpuhal_buffer_unmap(own->to[0], mapped));
    } else {
        assert_int_equal(status, GPUHAL_ERROR_BUSY);
    }
    assert_ok(launch_with(own, NULL, 0));
    assert_ok(gpuhal_queue_synchronize(own->queue, PATIENCE_NS));
}

TEST(a_buffer_that_was_mapped_after_launches_with_it_is_busy_until_it_is_unmapped)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        row one = row_on(&own);
        expect_busy_while_mapped(&one);
        gpuhal_queue_destroy(one.queue);
        release_buffers(&one);
        unload(&own);
    }
    gpuhal_close(gpu);
}

static void expect_used_by_address(const row *own, gpuhal_buffer *buffer)
{
    assert_int_equal(launch_with(own, buffer, 0),
                     gpuhal_buffer_address(buffer) ? GPUHAL_OK : GPUHAL_ERROR_NOT_SUPPORTED);
}

/* OpenCL does not report the address of imported host memory. Only CPU functions accept more local memory. */
TEST(a_launch_that_a_driver_cannot_do_is_refused_before_it_is_enqueued)
{
    static _Alignas(65536) char memory[65536];
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        gpuhal_buffer *imported = NULL;
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        const char *backend = gpuhal_device_backend(own.device);
        const bool is_cpu = strcmp(backend, "cpu") == 0, is_opencl = strcmp(backend, "opencl") == 0;
        const row one = row_on(&own);
        if (import_host(own.device, memory, sizeof memory, NULL, NULL, &imported) == GPUHAL_OK) {
            expect_used_by_address(&one, imported); /* on Vulkan only if the driver supports buffer addresses */
            assert_true(!is_cpu || gpuhal_buffer_address(imported) != 0);
            assert_true(!is_opencl || gpuhal_buffer_address(imported) == 0);
        }
        expect_used_by_address(&one, one.ones);
        assert_true(!is_opencl || !gpuhal_buffer_host(one.ones) || gpuhal_buffer_address(one.ones) != 0);
        assert_true(imported || !is_opencl);
        assert_int_equal(launch_with(&one, NULL, 16), is_cpu ? GPUHAL_OK : GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_ok(gpuhal_queue_synchronize(one.queue, PATIENCE_NS));
        assert_ok(launch_with(&one, NULL, 0));
        assert_ok(gpuhal_queue_synchronize(one.queue, PATIENCE_NS));
        gpuhal_queue_destroy(one.queue);
        gpuhal_buffer_release(imported);
        release_buffers(&one);
        unload(&own);
    }
    gpuhal_close(gpu);
}

TEST(timed_events_around_a_launch_have_its_time)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        engine own = {0};
        static results out;
        assert_ok(load(&own, gpuhal_device_at(gpu, d)));
        gpuhal_queue *queue = queue_or_fail(own.device, GPUHAL_QUEUE_TIMED);
        gpuhal_event *begin = event_or_fail(gpu, GPUHAL_EVENT_TIMED), *end = event_or_fail(gpu, GPUHAL_EVENT_TIMED);
        uint64_t ns = 0;
        assert_ok(gpuhal_event_record(begin, queue));
        compute(&own, queue, &out);
        assert_ok(gpuhal_event_record(end, queue));
        assert_ok(gpuhal_event_wait(end, PATIENCE_NS));
        assert_ok(gpuhal_event_elapsed(begin, end, &ns));
        assert_true(ns > 0 && ns < PATIENCE_NS);
        gpuhal_event_destroy(begin);
        gpuhal_event_destroy(end);
        gpuhal_queue_destroy(queue);
        unload(&own);
    }
    gpuhal_close(gpu);
}

enum { THREADS = 8 };

static void *use(void *user)
{
    engine own = {0};
    assert_ok(load(&own, user));
    gpuhal_queue *queue = queue_or_fail(user, 0);
    expect_order(&own, queue);
    gpuhal_queue_destroy(queue);
    unload(&own);
    return NULL;
}

TEST(eight_threads_load_and_launch_at_once_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, use, gpuhal_device_at(gpu, d)), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
