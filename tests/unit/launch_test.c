/* Launches: their arguments, their order in queues, the objects that they keep alive, and their failures. */
#include "program_support.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>

typedef struct objects {
    gpuhal *gpu;
    gpuhal_program *program;
    gpuhal_kernel *add, *sum;
    gpuhal_buffer *one, *other; /* 64 bytes each, filled with 1 */
    gpuhal_queue *queue;
} objects;

static objects begin(void)
{
    objects o = {.gpu = open_programs(NULL)};
    o.program = load_program(o.gpu);
    o.add = make_kernel(o.program, "add");
    o.sum = make_kernel(o.program, "sum");
    o.one = gpuhal_mock_buffer(o.gpu, 0, 64);
    o.other = gpuhal_mock_buffer(o.gpu, 0, 64);
    assert_ok(gpuhal_fill(NULL, o.one, 0, 64, 1, 4));
    assert_ok(gpuhal_fill(NULL, o.other, 0, 64, 1, 4));
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o.gpu, 0), NULL, &o.queue));
    return o;
}

static void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_kernel_release(o->add);
    gpuhal_kernel_release(o->sum);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
    expect_mock_has_no_programs();
}

TEST(a_launch_without_a_queue_has_ended_when_it_returns)
{
    objects o = begin();
    assert_ok(add_to(NULL, o.add, o.one, 41));
    expect_numbers(o.one, 42);
    expect_numbers(o.other, 1);
    end(&o);
}

TEST(launches_and_transfers_of_a_queue_keep_their_order)
{
    objects o = begin();
    uint32_t got[16] = {0};
    for (uint32_t i = 0; i < 100; i++) {
        assert_ok(gpuhal_fill(o.queue, o.one, 0, 64, i, 4));
        assert_ok(add_to(o.queue, o.add, o.one, 1));
        assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, 64));
        assert_ok(add_to(o.queue, o.add, o.other, 1));
    }
    assert_ok(gpuhal_read(o.queue, got, o.other, 0, 64));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(got[0], 101);
    assert_int_equal(got[15], 101);
    assert_int_equal(gpuhal_mock.devices[0].launches, 200);
    end(&o);
}

TEST(values_are_copied_and_kernel_and_buffers_kept_until_the_launch_has_ended)
{
    objects o = begin();
    gpuhal_mock.devices[0].hold_launches = 1;
    uint32_t value = 7;
    const gpuhal_argument arguments[] = {{.buffer = o.one, .offset = 8, .bytes = 16},
                                         {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {1, 1, 1}};
    assert_ok(gpuhal_kernel_launch(o.queue, o.add, &launch));
    value = 1000;
    gpuhal_buffer *kept = gpuhal_buffer_retain(o.one);
    gpuhal_kernel_release(o.add);
    gpuhal_buffer_release(o.one);
    gpuhal_buffer_release(kept);
    o.add = NULL;
    o.one = NULL;
    assert_int_equal(gpuhal_mock.devices[0].kernels, 2);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 2);
    gpuhal_mock.devices[0].hold_launches = 0;
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(gpuhal_mock.devices[0].kernels, 1);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    end(&o);
}

/* Returns the bytes in use in the C library's heap, or 0 if a sanitizer replaces the heap. */
static size_t heap_in_use(void)
{
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* docs/programs.md promises this limit to applications that enqueue many launches without a wait. */
TEST(a_launch_that_waits_for_its_turn_keeps_little_host_memory_until_it_has_ended)
{
    enum { LAUNCHES = 2000, BYTES_EACH = 512, BYTES_MORE = 4096 };
    objects o = begin();
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(add_to(o.queue, o.add, o.one, 1));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(add_to(o.queue, o.add, o.one, 1)); /* starts the queue's thread */
    const size_t before = heap_in_use();
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        assert_ok(add_to(o.queue, o.add, o.one, 1));
    }
    assert_true(heap_in_use() <= before + (size_t)LAUNCHES * BYTES_EACH + BYTES_MORE);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_numbers(o.one, LAUNCHES + 3);
    assert_true(heap_in_use() <= before + (size_t)LAUNCHES * 16);
    gpuhal_event_destroy(go);
    end(&o);
}

TEST(a_kernel_gets_only_the_given_part_of_a_buffer)
{
    objects o = begin();
    const uint32_t value = 7;
    const gpuhal_argument arguments[] = {{.buffer = o.one, .offset = 8, .bytes = 16},
                                         {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {8, 1, 1}};
    assert_ok(gpuhal_kernel_launch(NULL, o.add, &launch));
    uint32_t got[16] = {0};
    assert_ok(gpuhal_read(NULL, got, o.one, 0, 64));
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(got[i], i >= 2 && i < 6 ? 8 : 1);
    }
    end(&o);
}

TEST(buffers_of_a_pool_are_launched_with_at_their_place_in_the_segment)
{
    objects o = begin();
    const gpuhal_pool_desc pool_desc = {.size = sizeof pool_desc};
    gpuhal_pool *pool = NULL;
    gpuhal_buffer *parts[3] = {0};
    assert_ok(gpuhal_pool_create(gpuhal_device_at(o.gpu, 0), &pool_desc, &pool));
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(gpuhal_pool_allocate(pool, o.queue, 64, 0, 0, &parts[i]));
        assert_ok(gpuhal_fill(o.queue, parts[i], 0, 64, i, 4));
    }
    assert_ok(add_to(o.queue, o.add, parts[1], 40));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_numbers(parts[0], 0);
    expect_numbers(parts[1], 41);
    expect_numbers(parts[2], 2);
    for (uint32_t i = 0; i < 3; i++) {
        gpuhal_buffer_release(parts[i]);
    }
    gpuhal_pool_destroy(pool);
    end(&o);
}

/* ---- refusals */

typedef struct bad_launch {
    gpuhal_argument arguments[4];
    gpuhal_launch launch;
} bad_launch;

static bad_launch good_sum(const objects *o, const uint32_t *count)
{
    return (bad_launch){.arguments = {{.buffer = o->one},
                                      {.buffer = o->other},
                                      {.value = count, .bytes = sizeof *count},
                                      {.bytes = 64}},
                        .launch = {.size = sizeof(gpuhal_launch), .argument_count = 4, .groups = {1, 1, 1}}};
}

static void expect_refused(const objects *o, bad_launch bad, gpuhal_status status, const char *argument)
{
    gpuhal_queue *const queues[] = {NULL, o->queue};
    bad.launch.arguments = bad.arguments;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpuhal_kernel_launch(queues[i], o->sum, &bad.launch), status);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "kernel sum"));
        assert_non_null(strstr(gpuhal_last_error()->sentence, argument));
    }
}

enum { LAUNCHES = 24 };

TEST(each_wrong_argument_is_named_with_its_kernel_and_nothing_is_launched)
{
    objects o = begin();
    const uint32_t count = 16;
    gpuhal_buffer *elsewhere = gpuhal_mock_buffer(o.gpu, 1, 64);
    bad_launch bad[LAUNCHES];
    gpuhal_status status[LAUNCHES];
    const char *argument[LAUNCHES] = {
        "argument 0", "argument 0", "argument 0", "argument 0", "argument 1", "argument 1", "argument 2",  "argument 2",
        "argument 2", "argument 3", "argument 3", "argument 3", "1001",       "1001",       "3 arguments", "groups[0]",
        "11",         "uses_count", "reserved",   "size",       "65536",      "size",       "uses[1]",     "uses[0]"};
    for (int i = 0; i < LAUNCHES; i++) {
        bad[i] = good_sum(&o, &count);
        status[i] = GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    bad[0].arguments[0] = (gpuhal_argument){.value = &count, .bytes = 4};
    bad[1].arguments[0].buffer = elsewhere;
    bad[2].arguments[0].offset = 4;
    bad[3].arguments[0].value = &count;
    bad[4].arguments[1].offset = 64;
    status[4] = GPUHAL_ERROR_OUT_OF_RANGE;
    bad[5].arguments[1].bytes = 65;
    status[5] = GPUHAL_ERROR_OUT_OF_RANGE;
    bad[6].arguments[2].bytes = 8;
    bad[7].arguments[2].value = NULL;
    bad[8].arguments[2].offset = 4;
    bad[9].arguments[3].bytes = 0;
    bad[10].arguments[3].bytes = UINT64_C(1) << 32;
    bad[11].arguments[3].buffer = o.one;
    bad[12].arguments[3].bytes = 1001;
    bad[13].launch.local_bytes = 937;
    bad[14].launch.argument_count = 3;
    bad[15].launch.groups[0] = 1001;
    bad[16].launch.groups[2] = 11;
    bad[17].launch.uses_count = 1;
    bad[18].launch.reserved = 1;
    bad[19].launch.size = 0;
    bad[20].launch.groups[0] = bad[20].launch.groups[1] = 65536; /* 2^32 in total */
    gpuhal_buffer *const uses[] = {o.one, NULL};
    bad[21].launch.size = offsetof(gpuhal_launch, groups); /* must not count as a launch of 0 groups */
    bad[22].launch.uses_count = 2;
    bad[22].launch.uses = uses;
    bad[23].launch.uses_count = 1;
    bad[23].launch.uses = uses + 1;
    for (int i = 0; i < LAUNCHES; i++) {
        expect_refused(&o, bad[i], status[i], argument[i]);
    }
    assert_int_equal(gpuhal_mock.devices[0].launches, 0);
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX)); /* a refusal by the library does not fail the queue */
    assert_int_equal(gpuhal_kernel_launch(NULL, NULL, &bad[0].launch), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_kernel_launch(NULL, o.sum, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(elsewhere);
    end(&o);
}

TEST(a_kernel_that_does_not_say_so_gets_no_local_memory_beside_its_arguments)
{
    objects o = begin();
    const uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = o.one}, {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {1, 1, 1}, .local_bytes = 8};
    assert_int_equal(gpuhal_kernel_launch(o.queue, o.add, &launch), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_mock.devices[0].launches, 0);
    end(&o);
}

TEST(a_queue_of_another_device_is_refused)
{
    objects o = begin();
    gpuhal_queue *elsewhere = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o.gpu, 1), NULL, &elsewhere));
    assert_int_equal(add_to(elsewhere, o.add, o.one, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_queue_destroy(elsewhere);
    end(&o);
}

TEST(a_buffer_and_a_queue_of_another_object_are_refused_with_the_name_of_the_kernel)
{
    objects o = begin();
    const uint32_t count = 16;
    gpuhal *other = gpuhal_mock_open(NULL, 0);
    gpuhal_queue *queue = NULL;
    gpuhal_buffer *buffer = gpuhal_mock_buffer(other, 0, 64);
    bad_launch bad = good_sum(&o, &count);
    assert_ok(gpuhal_queue_create(gpuhal_device_at(other, 0), NULL, &queue));
    bad.arguments[1].buffer = buffer;
    expect_refused(&o, bad, GPUHAL_ERROR_INVALID_ARGUMENT, "argument 1");
    assert_int_equal(add_to(queue, o.add, o.one, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "kernel add"));
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(other);
    end(&o);
}

TEST(no_groups_launch_nothing)
{
    objects o = begin();
    const uint32_t count = 16;
    bad_launch none = good_sum(&o, &count);
    none.launch.arguments = none.arguments;
    none.launch.groups[1] = 0;
    assert_ok(gpuhal_kernel_launch(NULL, o.sum, &none.launch));
    assert_ok(gpuhal_kernel_launch(o.queue, o.sum, &none.launch));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(gpuhal_mock.devices[0].launches, 0);
    end(&o);
}

TEST(a_mapped_buffer_is_busy)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock", .hidden = 1, .mappable = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    void *mapped = NULL;
    assert_ok(gpuhal_fill(NULL, buffer, 0, 64, 1, 4));
    assert_ok(gpuhal_buffer_map(buffer, 0, 64, GPUHAL_ACCESS_READ, &mapped));
    assert_int_equal(add_to(NULL, add, buffer, 1), GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_buffer_unmap(buffer, mapped));
    assert_ok(add_to(NULL, add, buffer, 1));
    expect_numbers(buffer, 2);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(the_host_sees_the_writes_of_a_kernel_to_memory_that_is_not_coherent)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock", .not_coherent = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    assert_ok(gpuhal_fill(NULL, buffer, 0, 64, 1, 4));
    const int64_t before = gpuhal_mock.devices[0].cleans;
    assert_ok(add_to(NULL, add, buffer, 1));
    assert_int_equal(gpuhal_mock.devices[0].cleans, before + 1);
    assert_ok(add_to(queue, add, buffer, 1));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_int_equal(gpuhal_mock.devices[0].cleans, before + 2);
    expect_numbers(buffer, 3);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

/* Only one thread at a time may make a buffer coherent. A launch that names a buffer twice must not wait for itself.
 * Two launches that name two buffers in different orders must both finish. */
typedef struct buffer_pair {
    gpuhal_kernel *sum;
    gpuhal_buffer *one, *other;
} buffer_pair;

static void *launch_pairs(void *user)
{
    const buffer_pair *own = user;
    const uint32_t count = 1;
    for (int i = 0; i < 2000; i++) {
        const gpuhal_argument arguments[] = {
            {.buffer = own->one}, {.buffer = own->other}, {.value = &count, .bytes = 4}, {.bytes = 64}};
        const gpuhal_launch launch = {.size = sizeof launch,
                                      .argument_count = 4,
                                      .arguments = arguments,
                                      .groups = {1, 1, 1},
                                      .uses = (gpuhal_buffer *[]){own->other, own->one},
                                      .uses_count = 2};
        assert_ok(gpuhal_kernel_launch(NULL, own->sum, &launch));
    }
    return NULL;
}

TEST(launches_that_write_the_same_incoherent_memory_in_any_order_end)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock", .not_coherent = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *sum = make_kernel(program, "sum");
    gpuhal_buffer *one = gpuhal_mock_buffer(gpu, 0, 64), *other = gpuhal_mock_buffer(gpu, 0, 64);
    buffer_pair ways[2] = {{sum, one, other}, {sum, other, one}};
    pthread_t threads[2];
    assert_ok(gpuhal_fill(NULL, one, 0, 64, 1, 4));
    assert_ok(gpuhal_fill(NULL, other, 0, 64, 1, 4));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_pairs, &ways[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(other);
    gpuhal_kernel_release(sum);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

/* ---- failures, and kernels that do not end */

TEST(a_launch_that_fails_fails_the_queue_with_its_cause_until_reset)
{
    objects o = begin();
    gpuhal_mock.devices[0].fail_launch = GPUHAL_ERROR_DRIVER;
    assert_ok(add_to(o.queue, o.add, o.one, 1));
    assert_int_equal(gpuhal_queue_synchronize(o.queue, UINT64_MAX), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockLaunch");
    assert_int_equal(add_to(o.queue, o.add, o.one, 1), GPUHAL_ERROR_DRIVER);
    assert_int_equal(add_to(NULL, o.add, o.one, 1), GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[0].fail_launch = GPUHAL_OK;
    assert_ok(gpuhal_queue_reset(o.queue, UINT64_MAX));
    assert_ok(add_to(o.queue, o.add, o.one, 1));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_numbers(o.one, 2);
    end(&o);
}

TEST(a_kernel_that_does_not_end_is_a_timeout_for_waits_and_no_hang)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock"}}};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.hang_ns = 400000000}, 0);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64), *other = gpuhal_mock_buffer(gpu, 0, 64);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_fill(NULL, buffer, 0, 64, 1, 4));
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    gpuhal_mock.devices[0].hold_launches = 1;
    assert_ok(add_to(queue, add, buffer, 1));
    assert_int_equal(gpuhal_queue_synchronize(queue, 1000000000), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_fill(NULL, other, 0, 64, 9, 4)); /* the device stays usable */
    expect_numbers(other, 9);
    gpuhal_mock.devices[0].hold_launches = 0;
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    expect_numbers(buffer, 2);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(other);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

/* ---- threads */

enum { THREADS = 8, ROUNDS = 50 };

static void *load_and_launch(void *user)
{
    const objects *o = user;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        gpuhal_program *program = load_program(o->gpu);
        gpuhal_kernel *add = make_kernel(program, "add");
        gpuhal_buffer *buffer = gpuhal_mock_buffer(o->gpu, 0, 64);
        assert_ok(gpuhal_fill(NULL, buffer, 0, 64, i, 4));
        assert_ok(add_to(NULL, add, buffer, 1));
        assert_ok(add_to(o->queue, add, buffer, 1));
        gpuhal_kernel_release(add);
        gpuhal_program_release(program);
        assert_ok(gpuhal_queue_synchronize(o->queue, UINT64_MAX));
        expect_numbers(buffer, i + 2);
        gpuhal_buffer_release(buffer);
    }
    return NULL;
}

TEST(eight_threads_load_and_launch_at_once)
{
    objects o = begin();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_launch, &o), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    end(&o);
}

#include "test_main.h"
