/* Tests pools on every device of this machine, and with CUDA's fake, which has virtual memory. Several queues do seeded
 * random work. The buffers' contents are compared with a model. If two buffers used the same memory at the same time,
 * the test would read wrong bytes. */
#include "pools.h"

#include <pthread.h>

#ifdef GPUHAL_CUDA_PLUGIN
enum { SMALL_WORDS = 100000, MOST_BYTES = 900000, LIMIT = 12 << 20 };
#else
enum { SMALL_WORDS = 600, MOST_BYTES = 20000, LIMIT = 96 * 1024 };
#endif
enum { QUEUES = 4, HELD = 24, CHECKS = 512, THREADS = 8, RUN_MS = 300 };

/* Returns the number of steps of each thread; 0 means as many as fit into RUN_MS. */
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

typedef struct held {
    gpuhal_buffer *buffer;
    uint32_t queue, pattern;
} held;

/* The expected result of a read that its queue may not have executed yet. */
typedef struct check {
    uint32_t queue, pattern, words;
    uint32_t *got;
} check;

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

/* May be called on any thread. cmocka's assertions must not fail on a thread other than the test's, because they use
 * longjmp(). */
static void expect(const model *m, bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s, after %llu buffers: %s: %s\n", m->selector, (unsigned long long)m->allocated, what,
                gpuhal_last_error()->sentence);
        abort();
    }
}

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

/* Enqueues the read in `queue`, which the caller has ordered after the buffer's own queue. */
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

/* Enqueues a read of the buffer in another queue or the same one, behind the work of the buffer's own queue, and
 * releases the buffer without a wait. The pool may reuse the memory only after the work of both queues. */
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

/* Replaces the queue while its work is in progress, and releases buffers before and after. The new queue waits for the
 * old queue's work. */
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

#include "test_main.h"
