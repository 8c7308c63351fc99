/* Pools on every device of this machine, and over CUDA's fake, which has virtual memory: seeded random work of several
 * queues against a model of what each buffer has, so that memory which two buffers were given at once shows in what is
 * read back. */
#ifdef GPUHAL_CUDA_PLUGIN
#include "cuda_fake.h"
#endif
#include "queues.h"

#include <gpuhal/pool.h>
#include <gpuhal/share.h>

#include <pthread.h>

#ifdef GPUHAL_CUDA_PLUGIN /* memory comes in pages of 2 MiB */
enum { SMALL_WORDS = 100000, MOST_BYTES = 900000, LIMIT = 12 << 20, SEGMENT = 4 << 20 };
static const char *const selectors[] = {BACKEND ":0"};

static gpuhal *open_all(void)
{
    use_machine("devices 1; memory 0 256M; slow_us 20");
    return open_backend(0);
}
#else
enum { SMALL_WORDS = 600, MOST_BYTES = 20000, LIMIT = 96 * 1024, SEGMENT = 32 * 1024 };
static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

static gpuhal *open_all(void)
{
    return open_or_fail(NULL);
}
#endif
enum { QUEUES = 4, HELD = 24, CHECKS = 512, THREADS = 8, RUN_MS = 1200 };

/* Of each thread; 0: as many as there are in RUN_MS. */
static uint64_t steps_wanted(void)
{
    const char *text = getenv("GPUHAL_TEST_POOL_STEPS");
    return text ? strtoull(text, NULL, 10) : 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* A buffer, the queue in whose order it is used, and the pattern that it is full of. */
typedef struct held {
    gpuhal_buffer *buffer;
    uint32_t queue, pattern;
} held;

/* What a read, which its queue does later, must bring. */
typedef struct check {
    uint32_t queue, pattern, words;
    uint32_t *got;
} check;

/* One thread's work. */
typedef struct model {
    const char *selector;
    gpuhal_device *device;
    gpuhal_pool *pool;
    gpuhal_queue *queues[QUEUES];
    held held[HELD];
    check checks[CHECKS];
    uint32_t check_count;
    uint64_t random, patterns, allocated, refused, verified;
} model;

static uint32_t below(model *m, uint32_t end)
{
    m->random ^= m->random << 13, m->random ^= m->random >> 7, m->random ^= m->random << 17;
    return (uint32_t)((m->random * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % end;
}

/* On any thread, where a failed assertion of cmocka's must not jump. */
static void expect(const model *m, bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s, after %llu buffers: %s: %s\n", m->selector, (unsigned long long)m->allocated, what,
                gpuhal_last_error()->sentence);
        abort();
    }
}

/* Compares what the reads of a queue have brought, once they are done. */
static void verify(model *m, uint32_t queue)
{
    expect(m, gpuhal_queue_synchronize(m->queues[queue], PATIENCE_NS) == GPUHAL_OK, "synchronizing");
    uint32_t left = 0;
    for (uint32_t i = 0; i < m->check_count; i++) {
        const check c = m->checks[i];
        if (c.queue != queue) {
            m->checks[left++] = c;
            continue;
        }
        for (uint32_t k = 0; k < c.words; k++) {
            if (c.got[k] != c.pattern) {
                fprintf(stderr, "word %u of %u is %08x, should be %08x\n", k, c.words, c.got[k], c.pattern);
                expect(m, false, "a buffer was changed by another");
            }
        }
        m->verified++;
        free(c.got);
    }
    m->check_count = left;
}

/* In the order of `queue`, which comes after the buffer's own. */
static void read_back(model *m, const held *h, uint32_t queue)
{
    for (uint32_t i = 0; i < QUEUES && m->check_count == CHECKS; i++) {
        verify(m, i);
    }
    const uint32_t words = (uint32_t)(gpuhal_buffer_bytes(h->buffer) / 4);
    uint32_t *got = calloc(words, 4);
    expect(m, got != NULL, "memory");
    m->checks[m->check_count++] = (check){queue, h->pattern, words, got};
    expect(m, gpuhal_read(m->queues[queue], got, h->buffer, 0, UINT64_C(4) * words) == GPUHAL_OK, "reading");
}

static void release(held *h)
{
    gpuhal_buffer_release(h->buffer);
    h->buffer = NULL;
}

static void allocate(model *m, held *h)
{
    const uint32_t kind = below(m, 8);
    const uint64_t bytes = 4 + 4 * (uint64_t)below(m, below(m, 8) ? SMALL_WORDS : MOST_BYTES / 4);
    h->queue = below(m, QUEUES);
    gpuhal_queue *queue = kind == 0 ? NULL : m->queues[h->queue];
    const uint32_t flags = kind == 1 ? GPUHAL_ALLOCATE_NO_WAIT : kind == 2 ? GPUHAL_ALLOCATE_WITHIN_POOL : 0;
    const uint64_t timeout_ns = kind < 5 ? 0 : MILLISECOND_NS;
    gpuhal_status status = gpuhal_pool_allocate(m->pool, queue, bytes, flags, timeout_ns, &h->buffer);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        m->refused++;
        return;
    }
    expect(m, status == GPUHAL_OK, "allocating");
    m->allocated++;
    h->pattern = (uint32_t)(++m->patterns * 2654435761u) ^ (uint32_t)(m->random >> 32);
    status = gpuhal_fill(m->queues[h->queue], h->buffer, 0, bytes, h->pattern, 4);
    expect(m, status == GPUHAL_OK, "filling");
}

/* A buffer that the queue has, with room in it, gets the bytes of the other one. */
static void copy(model *m, const held *from, held *to)
{
    const uint64_t bytes = gpuhal_buffer_bytes(to->buffer);
    if (from != to && from->queue == to->queue && gpuhal_buffer_bytes(from->buffer) >= bytes) {
        expect(m, gpuhal_copy(m->queues[to->queue], to->buffer, 0, from->buffer, 0, bytes) == GPUHAL_OK, "copying");
        to->pattern = from->pattern;
    }
}

static void order(model *m, gpuhal_queue *before, gpuhal_queue *after)
{
    gpuhal_event *event = NULL;
    gpuhal_status status = gpuhal_event_create(gpuhal_device_owner(m->device), 0, &event);
    status = status ? status : gpuhal_event_record(event, before);
    status = status ? status : gpuhal_queue_wait(after, event);
    expect(m, status == GPUHAL_OK, "ordering two queues");
    gpuhal_event_destroy(event);
}

/* Read by another queue as well, and released behind both. */
static void read_elsewhere(model *m, held *h)
{
    const uint32_t other = below(m, QUEUES);
    order(m, m->queues[h->queue], m->queues[other]);
    read_back(m, h, other);
    release(h);
}

static gpuhal_queue *make_queue(model *m)
{
    gpuhal_queue *queue = NULL;
    expect(m, gpuhal_queue_create(m->device, NULL, &queue) == GPUHAL_OK, "making a queue");
    return queue;
}

/* With its work under way; buffers are released before and after. The new queue's end is then that of the old one. */
static void replace_queue(model *m, uint32_t which)
{
    gpuhal_queue *fresh = make_queue(m);
    order(m, m->queues[which], fresh);
    for (uint32_t i = 0; i < HELD; i++) {
        if (m->held[i].buffer && m->held[i].queue == which && i % 2) {
            release(&m->held[i]);
        }
    }
    gpuhal_queue_destroy(m->queues[which]);
    m->queues[which] = fresh;
    for (uint32_t i = 0; i < HELD; i++) {
        if (m->held[i].buffer && m->held[i].queue == which && i % 4) {
            release(&m->held[i]);
        }
    }
}

static gpuhal_status dawdle(void *user)
{
    (void)user;
    const struct timespec time = {.tv_nsec = 300000};
    nanosleep(&time, NULL);
    return GPUHAL_OK;
}

static void step(model *m)
{
    held *h = &m->held[below(m, HELD)];
    const uint32_t what = below(m, 100);
    if (what == 0) {
        replace_queue(m, below(m, QUEUES));
    } else if (what == 1) {
        expect(m, gpuhal_pool_trim(m->pool, below(m, 2) * (uint64_t)SEGMENT, NULL) == GPUHAL_OK, "trimming");
    } else if (what == 2) {
        verify(m, below(m, QUEUES));
    } else if (what < 6) {
        expect(m, gpuhal_queue_call(m->queues[below(m, QUEUES)], dawdle, NULL) == GPUHAL_OK, "calling");
    } else if (!h->buffer) {
        allocate(m, h);
    } else if (what < 30) {
        const held *from = &m->held[below(m, HELD)];
        if (from->buffer) {
            copy(m, from, h);
        }
    } else if (what < 45) {
        read_elsewhere(m, h);
    } else if (what < 60) {
        read_back(m, h, h->queue);
    } else {
        read_back(m, h, h->queue);
        release(h);
    }
}

static void *work(void *user)
{
    model *m = user;
    const uint64_t end_ms = now_ms() + RUN_MS, wanted = steps_wanted();
    for (int i = 0; i < QUEUES; i++) {
        m->queues[i] = make_queue(m);
    }
    for (uint64_t steps = 0; wanted ? steps < wanted : now_ms() < end_ms; steps++) {
        step(m);
    }
    for (uint32_t i = 0; i < HELD; i++) {
        if (m->held[i].buffer) {
            read_back(m, &m->held[i], m->held[i].queue);
            release(&m->held[i]);
        }
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        verify(m, i);
        gpuhal_queue_destroy(m->queues[i]);
    }
    return NULL;
}

static gpuhal_pool *pool_or_fail(gpuhal_device *device, gpuhal_pool_desc desc)
{
    gpuhal_pool *pool = NULL;
    desc.size = sizeof desc;
    assert_ok(gpuhal_pool_create(device, &desc, &pool));
    return pool;
}

/* What is left once all work has ended, and that it adds up. */
static void expect_all_free(gpuhal_pool *pool, uint64_t allocated)
{
    gpuhal_pool_statistics state = {.size = sizeof state};
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_ok(gpuhal_pool_get_statistics(pool, &state));
    assert_int_equal(state.reserved.current, 0);
    assert_int_equal(state.segments, 0);
    assert_int_equal(state.used.current, 0);
    assert_int_equal(state.ordered_bytes, 0);
    assert_int_equal(state.buffers.total_in, allocated);
    assert_int_equal(state.buffers.total_out, allocated);
}

static void run_model(const char *selector, uint32_t threads, gpuhal_pool_desc desc)
{
    gpuhal *gpu = open_all();
    gpuhal_device *device = find(gpu, selector);
    if (device) {
        static model models[THREADS];
        pthread_t started[THREADS];
        uint64_t allocated = 0, verified = 0, refused = 0;
        desc.segment_bytes = SEGMENT;
        gpuhal_pool *pool = pool_or_fail(device, desc);
        for (uint32_t i = 0; i < threads; i++) {
            models[i] = (model){.selector = selector, .device = device, .pool = pool, .random = 88172645463325252u + i};
            assert_int_equal(pthread_create(&started[i], NULL, work, &models[i]), 0);
        }
        for (uint32_t i = 0; i < threads; i++) {
            pthread_join(started[i], NULL);
            allocated += models[i].allocated;
            verified += models[i].verified;
            refused += models[i].refused;
        }
        printf("%s, %u threads: %llu buffers, %llu reads verified, %llu refused\n", selector, threads,
               (unsigned long long)allocated, (unsigned long long)verified, (unsigned long long)refused);
        assert_true(allocated > 0 && verified > 0);
        expect_all_free(pool, allocated);
        gpuhal_pool_destroy(pool);
    }
    gpuhal_close(gpu);
}

TEST(random_work_of_several_queues_never_sees_another_buffers_bytes)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        run_model(selectors[i], 1, (gpuhal_pool_desc){.limit_bytes = LIMIT});
        run_model(
            selectors[i], 1,
            (gpuhal_pool_desc){.limit_bytes = LIMIT, .keep_bytes = 1, .flags = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC});
    }
}

TEST(eight_threads_on_one_pool_never_see_another_buffers_bytes)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        run_model(selectors[i], THREADS, (gpuhal_pool_desc){.limit_bytes = THREADS * LIMIT / 2, .keep_bytes = SEGMENT});
    }
}

/* The gate holds the first queue's work back until all others have asked for its memory. */
static void expect_kept_behind_work(gpuhal *gpu, gpuhal_device *device)
{
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .segment_bytes = SEGMENT});
    gpuhal_queue *first = queue_or_fail(device, 0), *second = queue_or_fail(device, 0);
    gpuhal_event *blocked = event_or_fail(gpu, GPUHAL_EVENT_HOST);
    static unsigned char of_first[SEGMENT], of_second[SEGMENT];
    gpuhal_buffer *buffer = NULL, *other = NULL;
    assert_ok(gpuhal_pool_allocate(pool, first, SEGMENT, 0, 0, &buffer));
    assert_ok(gpuhal_queue_wait(first, blocked));
    assert_ok(gpuhal_fill(first, buffer, 0, SEGMENT, 0x11, 1));
    assert_ok(gpuhal_read(first, of_first, buffer, 0, SEGMENT));
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_pool_allocate(pool, NULL, 1, 0, 5 * MILLISECOND_NS, &other), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_pool_allocate(pool, second, SEGMENT, 0, 0, &other));
    assert_ok(gpuhal_fill(second, other, 0, SEGMENT, 0x22, 1));
    assert_ok(gpuhal_read(second, of_second, other, 0, SEGMENT));
    assert_int_equal(gpuhal_queue_synchronize(second, 5 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_event_signal(blocked, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(first, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
    for (int i = 0; i < SEGMENT; i++) {
        assert_int_equal(of_first[i], 0x11);
        assert_int_equal(of_second[i], 0x22);
    }
    gpuhal_buffer_release(other);
    expect_all_free(pool, 2);
    gpuhal_event_destroy(blocked);
    gpuhal_queue_destroy(first);
    gpuhal_queue_destroy(second);
    gpuhal_pool_destroy(pool);
}

TEST(memory_with_unfinished_work_behind_it_goes_to_another_queue_only_after_that)
{
    gpuhal *gpu = open_all();
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            expect_kept_behind_work(gpu, device);
        }
    }
    gpuhal_close(gpu);
}

/* The vendor's object is the segment's: wrapped, it has the part's bytes where the part is said to begin. */
static void expect_native_offset(gpuhal_device *device)
{
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.segment_bytes = SEGMENT});
    gpuhal_buffer *parts[3] = {NULL}, *whole = NULL;
    gpuhal_native native = {.size = sizeof native}, first = {.size = sizeof first};
    for (int i = 0; i < 3; i++) {
        assert_ok(gpuhal_pool_allocate(pool, NULL, 1000, 0, 0, &parts[i]));
        assert_ok(gpuhal_fill(NULL, parts[i], 0, 1000, 0x30 + (uint32_t)i, 1));
    }
    gpuhal_status status = gpuhal_buffer_native(parts[0], &first);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 3 && !status; i++) {
        assert_ok(gpuhal_buffer_native(parts[i], &native));
        const bool opencl = native.type == GPUHAL_NATIVE_OPENCL_BUFFER;
        const uint64_t offset = opencl ? native.values[1] : gpuhal_buffer_offset(parts[i]);
        unsigned char got[1000];
        assert_true(native.values[0] == first.values[0]);
        assert_int_equal(offset, i * 1024);
        native.values[1] = opencl ? 0 : native.values[1];
        if (!whole && gpuhal_buffer_wrap(device, &native, 3 * 1024, NULL, NULL, &whole) == GPUHAL_ERROR_NOT_SUPPORTED) {
            continue;
        }
        assert_non_null(whole);
        assert_ok(gpuhal_read(NULL, got, whole, offset, sizeof got));
        assert_true(got[0] == 0x30 + i && got[999] == 0x30 + i);
    }
    gpuhal_buffer_release(whole);
    for (int i = 0; i < 3; i++) {
        gpuhal_buffer_release(parts[i]);
    }
    gpuhal_pool_destroy(pool);
}

TEST(the_vendors_object_of_a_part_has_its_bytes_at_the_offset)
{
    gpuhal *gpu = open_all();
    for (size_t i = 1; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            expect_native_offset(device);
        }
    }
    gpuhal_close(gpu);
}

/* A cache of the application: of a pool's parts, or of buffers. */
typedef struct spare {
    gpuhal_buffer *buffers[8];
    uint32_t count, calls;
} spare;

static uint64_t give_spare(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    spare *own = user;
    uint64_t given = 0;
    (void)device, (void)timeout_ns;
    own->calls++;
    while (own->count > 0 && given < bytes) {
        given += gpuhal_buffer_bytes(own->buffers[--own->count]);
        gpuhal_buffer_release(own->buffers[own->count]);
    }
    return given;
}

/* A device at its limit: half of a pool, half of buffers. What is given back is still used by work when it is. */
static void expect_given_under_pressure(gpuhal_device *device)
{
    enum { PART = SEGMENT / 4 };
    spare parts = {.count = 0}, plain = {.count = 0};
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .segment_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = PART};
    gpuhal_buffer *part = NULL, *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(pool, queue, SEGMENT, 0, 0, &part)); /* so there is one segment */
    gpuhal_buffer_release(part);
    while (parts.count < 4) {
        assert_ok(gpuhal_pool_allocate(pool, queue, PART, 0, 0, &parts.buffers[parts.count]));
        assert_ok(gpuhal_fill(queue, parts.buffers[parts.count++], 0, PART, 0x11, 1));
        assert_ok(gpuhal_buffer_create(device, &desc, &plain.buffers[plain.count]));
        assert_ok(gpuhal_fill(queue, plain.buffers[plain.count++], 0, PART, 0x22, 1));
    }
    assert_ok(gpuhal_device_limit_memory(device, 2 * SEGMENT));
    assert_ok(gpuhal_device_on_pressure(device, 0, give_spare, &parts));
    assert_ok(gpuhal_device_on_pressure(device, 1, give_spare, &plain));
    assert_ok(gpuhal_pool_allocate(pool, NULL, 2 * PART, 0, PATIENCE_NS, &part));
    assert_int_equal(parts.count, 2);
    assert_int_equal(plain.calls, 0);
    desc.bytes = 2 * PART;
    desc.flags = GPUHAL_ALLOCATE_NO_EVICT;
    desc.timeout_ns = MILLISECOND_NS;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_memory_report()->used_bytes, 2 * SEGMENT);
    desc.flags = 0;
    desc.timeout_ns = PATIENCE_NS;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_int_equal(parts.count, 0); /* came first, and gave no whole segment */
    assert_true(plain.count <= 2);
    assert_ok(gpuhal_device_off_pressure(device, give_spare, &parts));
    assert_ok(gpuhal_device_off_pressure(device, give_spare, &plain));
    (void)give_spare(&plain, device, UINT64_MAX, 0);
    gpuhal_buffer_release(part);
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_device_limit_memory(device, 0));
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
}

TEST(under_pressure_callbacks_give_pools_and_buffers_what_they_need)
{
    gpuhal *gpu = open_all();
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            expect_given_under_pressure(device);
        }
    }
    gpuhal_close(gpu);
}

/* What the host writes in page-locked memory goes to the device and comes back, by transfers alone where there is no
 * address. */
static void expect_page_locked_pools(gpuhal_device *device)
{
    enum { BYTES = 5001 };
    gpuhal_pool *pools[2] = {pool_or_fail(device, (gpuhal_pool_desc){.kind = GPUHAL_MEMORY_UPLOAD}),
                             pool_or_fail(device, (gpuhal_pool_desc){.kind = GPUHAL_MEMORY_READBACK})};
    gpuhal_buffer *up[2] = {NULL}, *down = NULL, *on_device = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    static unsigned char bytes[BYTES], got[BYTES];
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    assert_ok(gpuhal_pool_allocate(pools[0], NULL, BYTES, 0, 0, &up[0]));
    assert_ok(gpuhal_pool_allocate(pools[0], NULL, BYTES, 0, 0, &up[1]));
    assert_ok(gpuhal_pool_allocate(pools[1], NULL, BYTES, 0, 0, &down));
    void *to = gpuhal_buffer_host(up[1]);
    assert_int_equal(to != NULL, gpuhal_buffer_is_coherent(up[1]));
    if (to) {
        memcpy(to, bytes, BYTES);
    } else {
        assert_ok(gpuhal_write(NULL, up[1], 0, bytes, BYTES));
    }
    assert_ok(gpuhal_fill(NULL, up[0], 0, BYTES, 0xee, 1));
    assert_ok(gpuhal_copy(NULL, on_device, 0, up[1], 0, BYTES));
    assert_ok(gpuhal_copy(NULL, down, 0, on_device, 0, BYTES));
    assert_ok(gpuhal_read(NULL, got, down, 0, BYTES));
    assert_memory_equal(got, bytes, BYTES);
    const void *from = gpuhal_buffer_host(down);
    assert_true(!from || memcmp(from, bytes, BYTES) == 0);
    gpuhal_pool_statistics state = {.size = sizeof state};
    assert_ok(gpuhal_pool_get_statistics(pools[0], &state));
    assert_true(state.used.current >= 2 * BYTES && state.used.current < 2 * BYTES + 2 * 4096);
    printf("%s: host addresses %s\n", gpuhal_device_id(device), to ? "yes" : "no");
    gpuhal_buffer_release(up[0]);
    gpuhal_buffer_release(up[1]);
    gpuhal_buffer_release(down);
    gpuhal_buffer_release(on_device);
    gpuhal_pool_destroy(pools[0]);
    gpuhal_pool_destroy(pools[1]);
}

TEST(page_locked_pools_have_what_the_host_wrote_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            expect_page_locked_pools(device);
        }
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
