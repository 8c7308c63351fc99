/* Tests staging with a vendor's fake. Large transfers between pageable host memory and a device use the library's
 * page-locked chunks; transfers of page-locked memory do not. If a transfer fails midway, no other data is lost. */
#include "queues.h"
#include "support/random.h"
#include "support/import_host.h"
#include "support/process.h"

#include "vendor.h"

#define TO_DEVICE     OF("cuMemcpyHtoDAsync_v2", "hipMemcpyAsync")
#define FROM_DEVICE   OF("cuMemcpyDtoHAsync_v2", "hipMemcpyAsync")
#define ALLOCATE_HOST CALLED(HostAlloc)
#define READS_PAGES   OF("attribute 0 100 1", "attribute 0 65 1") /* access through the host's page tables */
#define LOST          "700"

#include <pthread.h>

enum { LIMIT = 256 << 10, BYTES = 3 * 1024 * 1024 + 77 };

/* Opens the device with a ring of two chunks of 128 KiB in each direction. */
static gpuhal *open_small(gpuhal_device **out_device)
{
    const gpuhal_config config = {.size = sizeof config,
                                  .backends = BACKEND,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .staging_limit_bytes = LIMIT};
    gpuhal *gpu = open_or_fail(&config);
    *out_device = select_or_fail(gpu, BACKEND ":0");
    return gpu;
}

static uint32_t state = 4711;
static uint32_t next_random(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

TEST(large_writes_and_reads_of_ordinary_memory_are_exact_at_any_offset_and_go_through_chunks)
{
    use_machine("devices 1; slow_us 200");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *model = bytes_of_seed(1, BYTES), *got = malloc(BYTES);
    assert_ok(gpuhal_write(NULL, buffer, 0, model, BYTES));
    assert_true(calls_of(TO_DEVICE) >= BYTES / (128 << 10));
    for (int round = 0; round < 30; round++) {
        uint32_t offset = next_random(BYTES), bytes = 1 + next_random(BYTES - offset);
        unsigned char *news = bytes_of_seed(100 + (uint32_t)round, bytes);
        memcpy(model + offset, news, bytes);
        assert_ok(gpuhal_write(NULL, buffer, offset, news, bytes));
        free(news);
        offset = next_random(BYTES);
        bytes = 1 + next_random(BYTES - offset);
        memset(got, 0xee, BYTES);
        assert_ok(gpuhal_read(NULL, got, buffer, offset, bytes));
        assert_memory_equal(got, model + offset, bytes);
        assert_true(bytes == BYTES - offset || got[bytes] == 0xee);
    }
    assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
    assert_memory_equal(got, model, BYTES);
    assert_true(fake_report_get()->host_allocations <= 4);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
    free(got);
    expect_clean();
}

static void expect_one_call(gpuhal_buffer *buffer, unsigned char *host)
{
    unsigned char *model = bytes_of_seed(77, BYTES);
    memcpy(host, model, BYTES);
    uint64_t before = calls_of(TO_DEVICE);
    assert_ok(gpuhal_write(NULL, buffer, 0, host, BYTES));
    assert_int_equal(calls_of(TO_DEVICE), before + 1);
    memset(host, 0, BYTES);
    before = calls_of(FROM_DEVICE);
    assert_ok(gpuhal_read(NULL, host, buffer, 0, BYTES));
    assert_int_equal(calls_of(FROM_DEVICE), before + 1);
    assert_memory_equal(host, model, BYTES);
    free(model);
}

TEST(memory_that_is_page_locked_is_not_staged)
{
    use_machine("devices 1");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    static const gpuhal_memory_kind kinds[] = {GPUHAL_MEMORY_UPLOAD, GPUHAL_MEMORY_READBACK};
    for (int i = 0; i < 2; i++) {
        gpuhal_buffer *locked = buffer_or_fail(device, kinds[i], BYTES + 4096);
        expect_one_call(buffer, (unsigned char *)gpuhal_buffer_host(locked) + 1001);
        gpuhal_buffer_release(locked);
    }
    const uint64_t whole = (BYTES + 65536) & ~UINT64_C(65535);
    unsigned char *own = aligned_alloc(65536, whole);
    gpuhal_buffer *imported = NULL;
    assert_ok(import_host(device, own, whole, NULL, NULL, &imported));
    expect_one_call(buffer, own);
    gpuhal_buffer_release(imported);
    uint64_t before = calls_of(TO_DEVICE);
    assert_ok(gpuhal_write(NULL, buffer, 0, own, BYTES));
    assert_true(calls_of(TO_DEVICE) > before + 1);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(own);
    expect_clean();
}

TEST(a_copy_that_fails_in_the_middle_says_why_and_the_ring_works_afterwards)
{
    use_machine("devices 1; slow_us 100; fail " TO_DEVICE " 7 1; fail " TO_DEVICE " 9 1");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *model = bytes_of_seed(5, BYTES), *got = malloc(BYTES);
    int failures = 0;
    gpuhal_status status = GPUHAL_OK;
    for (int attempt = 0; attempt < 4; attempt++) {
        status = gpuhal_write(NULL, buffer, 0, model, BYTES);
        failures += status != GPUHAL_OK;
        if (status) {
            assert_int_equal(status, GPUHAL_ERROR_DRIVER);
            assert_int_equal(gpuhal_last_error()->vendor_code, 1);
            assert_string_equal(gpuhal_last_error()->device, BACKEND ":0");
        }
    }
    assert_true(failures >= 1);
    assert_int_equal(status, GPUHAL_OK);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
    assert_memory_equal(got, model, BYTES);
    assert_true(fake_report_get()->host_allocations <= 4);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
    free(got);
    expect_clean();
}

TEST(a_device_that_is_lost_in_the_middle_of_a_large_write_says_so_and_can_be_closed)
{
    use_machine("devices 1; slow_us 100; lose 0 " TO_DEVICE " 9 " LOST);
    int before = count_threads_first();
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *model = bytes_of_seed(5, BYTES);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, BYTES), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_read(NULL, model, buffer, 0, BYTES), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_true(threads_come_down_to(before));
    free(model);
    expect_no_violation();
    remove_reports();
}

TEST(without_page_locked_memory_the_driver_stages_by_itself)
{
    use_machine("devices 1; fail " ALLOCATE_HOST " 1+ 2");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *model = bytes_of_seed(6, BYTES), *got = malloc(BYTES);
    uint64_t before = calls_of(TO_DEVICE);
    assert_ok(gpuhal_write(NULL, buffer, 0, model, BYTES));
    assert_int_equal(calls_of(TO_DEVICE), before + 1);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
    assert_memory_equal(got, model, BYTES);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
    free(got);
    expect_clean();
}

typedef struct mover {
    gpuhal_buffer *buffer;
    uint32_t seed;
    _Atomic int wrong;
} mover;

static void *move(void *user)
{
    mover *m = user;
    unsigned char *got = malloc(BYTES);
    for (uint32_t round = 0; round < 4; round++) {
        unsigned char *model = bytes_of_seed(m->seed + round, BYTES);
        m->wrong += gpuhal_write(NULL, m->buffer, 0, model, BYTES) != GPUHAL_OK;
        m->wrong += gpuhal_read(NULL, got, m->buffer, 0, BYTES) != GPUHAL_OK;
        m->wrong += memcmp(got, model, BYTES) != 0;
        free(model);
    }
    free(got);
    return NULL;
}

TEST(eight_threads_share_a_ring_of_two_chunks)
{
    enum { THREADS = 8 };
    use_machine("devices 1; slow_us 50");
    int before = count_threads_first();
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    mover movers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        movers[i] = (mover){.buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES), .seed = 1000 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, move, &movers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(movers[i].wrong, 0);
        gpuhal_buffer_release(movers[i].buffer);
    }
    assert_true(fake_report_get()->host_allocations <= 4);
    gpuhal_close(gpu);
    assert_true(threads_come_down_to(before));
    expect_clean();
}

TEST(large_copies_between_two_devices_without_a_link_are_exact)
{
    use_machine("devices 2; link 0 1 system; slow_us 100");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *to = buffer_or_fail(select_or_fail(gpu, BACKEND ":1"), GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *model = bytes_of_seed(8, BYTES), *got = malloc(BYTES);
    assert_ok(gpuhal_write(NULL, from, 0, model, BYTES));
    assert_ok(gpuhal_write(NULL, to, 0, model, BYTES));
    for (int round = 0; round < 10; round++) {
        uint32_t bytes = 1 + next_random(BYTES), to_offset = next_random(BYTES - bytes + 1),
                 from_offset = next_random(BYTES - bytes + 1);
        assert_ok(gpuhal_copy(NULL, to, to_offset, from, from_offset, bytes));
        assert_ok(gpuhal_read(NULL, got, to, to_offset, bytes));
        assert_memory_equal(got, model + from_offset, bytes);
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
    free(model);
    free(got);
    expect_clean();
}

TEST(a_device_that_reads_ordinary_memory_directly_does_so)
{
    use_machine("devices 1; " READS_PAGES);
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char *own = malloc(BYTES);
    expect_one_call(buffer, own);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(own);
    expect_clean();
}

/* ---- enqueueing behind long work */

enum { FILLS = 12, PAGEABLE = 128 << 10, WIDTH = 512 };

/* A queue with several seconds of work. The work takes longer than hang_ns. */
typedef struct lane {
    gpuhal_queue *queue;
    gpuhal_event *event; /* recorded after the fills */
    gpuhal_buffer *buffer, *upload, *readback;
    unsigned char *model, *got;
} lane;

static const uint64_t extent[3] = {WIDTH, PAGEABLE / WIDTH, 1};

static void read_pageable(lane *l)
{
    memset(l->model, FILLS - 1, PAGEABLE);
    assert_ok(gpuhal_read(l->queue, l->got, l->buffer, 0, PAGEABLE));
}

static void write_pageable(lane *l)
{
    assert_ok(gpuhal_write(l->queue, l->buffer, 0, l->model, PAGEABLE));
    assert_ok(gpuhal_read(l->queue, l->got, l->buffer, 0, PAGEABLE));
}

static void write_host_memory(lane *l)
{
    assert_ok(gpuhal_write(l->queue, l->upload, 0, l->model, PAGEABLE));
    assert_ok(gpuhal_read(l->queue, l->got, l->upload, 0, PAGEABLE));
}

static void copy_host_memory(lane *l)
{
    memcpy(gpuhal_buffer_host(l->upload), l->model, PAGEABLE);
    assert_ok(gpuhal_copy(l->queue, l->readback, 0, l->upload, 0, PAGEABLE));
    assert_ok(gpuhal_read(l->queue, l->got, l->readback, 0, PAGEABLE));
}

static void read_rectangle(lane *l)
{
    memset(l->model, FILLS - 1, PAGEABLE);
    assert_ok(gpuhal_copy_rect(l->queue, &(gpuhal_rect){.host = l->got}, &(gpuhal_rect){.buffer = l->buffer}, extent));
}

static void write_rectangle(lane *l)
{
    const gpuhal_rect model = {.host = l->model}, got = {.host = l->got}, memory = {.buffer = l->upload};
    assert_ok(gpuhal_copy_rect(l->queue, &memory, &model, extent));
    assert_ok(gpuhal_copy_rect(l->queue, &got, &memory, extent));
}

static void open_lane(gpuhal_device *device, gpuhal *gpu, uint32_t seed, lane *l)
{
    *l = (lane){.queue = queue_or_fail(device, 0),
                .event = event_or_fail(gpu, 0),
                .buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PAGEABLE),
                .upload = buffer_or_fail(device, GPUHAL_MEMORY_UPLOAD, PAGEABLE),
                .readback = buffer_or_fail(device, GPUHAL_MEMORY_READBACK, PAGEABLE),
                .model = bytes_of_seed(seed, PAGEABLE),
                .got = calloc(1, PAGEABLE)};
    for (int i = 0; i < FILLS; i++) {
        assert_ok(gpuhal_fill(l->queue, l->buffer, 0, PAGEABLE, (uint32_t)i, 1));
    }
    assert_ok(gpuhal_event_record(l->event, l->queue));
}

static void close_lane(lane *l)
{
    gpuhal_event_destroy(l->event);
    gpuhal_queue_destroy(l->queue);
    gpuhal_buffer_release(l->readback);
    gpuhal_buffer_release(l->upload);
    gpuhal_buffer_release(l->buffer);
    free(l->model);
    free(l->got);
}

TEST(blocking_copies_of_the_driver_neither_hold_the_caller_nor_are_a_hang)
{
    static void (*const acts[])(lane *) = {read_pageable,    write_pageable, write_host_memory,
                                           copy_host_memory, read_rectangle, write_rectangle};
    enum { ACTS = sizeof acts / sizeof *acts };
    use_machine("devices 1; slow_us 250000");
    const gpuhal_config config = {
        .size = sizeof config, .backends = BACKEND, .isolation = GPUHAL_ISOLATION_NEVER, .hang_ns = SECOND_NS};
    gpuhal *gpu = open_or_fail(&config);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    lane lanes[ACTS];
    for (uint32_t i = 0; i < ACTS; i++) {
        open_lane(device, gpu, i, &lanes[i]);
        acts[i](&lanes[i]);
        assert_int_equal(gpuhal_event_poll(lanes[i].event), GPUHAL_NOT_READY);
    }
    for (uint32_t i = 0; i < ACTS; i++) {
        assert_ok(gpuhal_queue_synchronize(lanes[i].queue, PATIENCE_NS));
        assert_memory_equal(lanes[i].got, lanes[i].model, PAGEABLE);
    }
    assert_ok(gpuhal_device_status(device));
    for (uint32_t i = 0; i < ACTS; i++) {
        close_lane(&lanes[i]);
    }
    close_clean(gpu);
}

TEST(queued_copies_of_page_locked_memory_and_small_writes_are_left_to_the_driver)
{
    use_machine("devices 1");
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_small(&device);
    lane l;
    open_lane(device, gpu, 1, &l);
    memcpy(gpuhal_buffer_host(l.upload), l.model, PAGEABLE);
    const uint64_t to = calls_of(TO_DEVICE), from = calls_of(FROM_DEVICE);
    assert_ok(gpuhal_copy(l.queue, l.buffer, 0, l.upload, 0, PAGEABLE));
    assert_ok(gpuhal_write(l.queue, l.buffer, 0, l.model, 1024));
    assert_ok(gpuhal_read(l.queue, gpuhal_buffer_host(l.readback), l.buffer, 0, PAGEABLE));
    const uint64_t made = calls_of(TO_DEVICE) + calls_of(FROM_DEVICE) - to - from;
    assert_int_equal(made, strcmp(TO_DEVICE, FROM_DEVICE) == 0 ? 6 : 3); /* before any wait */
    assert_ok(gpuhal_queue_synchronize(l.queue, PATIENCE_NS));
    assert_memory_equal(gpuhal_buffer_host(l.readback), l.model, PAGEABLE);
    close_lane(&l);
    close_clean(gpu);
}

#include "test_main.h"
