/* Application callbacks that release memory on request: their addition and removal, and the calls that they may
 * make. */
#include "unit/ladder_support.h"

#include <sys/wait.h>

TEST(a_callback_is_there_once_with_each_user_until_it_is_ended)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_pool *pool = limited_pool(gpu);
    cache a = {.name = 'a'}, b = {.name = 'b'};
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT);
    assert_int_equal(gpuhal_device_off_pressure(device, call_cached, &a), GPUHAL_ERROR_NOT_FOUND);
    add_callback(gpu, &a, 0);
    add_callback(gpu, &b, 0);
    assert_int_equal(gpuhal_device_on_pressure(device, 1, call_cached, &a), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("ab");
    assert_ok(gpuhal_device_off_pressure(device, call_cached, &a));
    assert_int_equal(gpuhal_device_off_pressure(device, call_cached, &a), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("b");
    add_callback(gpu, &a, -1);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("ab");
    assert_int_equal(gpuhal_device_on_pressure(NULL, 0, call_cached, &a), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_on_pressure(device, 0, NULL, &a), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_off_pressure(NULL, call_cached, &a), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_off_pressure(device, NULL, &a), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool); /* closing the object removes the remaining callbacks */
}

TEST(a_callback_gets_the_time_that_is_left)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache c = {.name = 'c'};
    add_callback(gpu, &c, 0);
    fill_cache(&c, pool, NULL, 1, LADDER_LIMIT);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, PATIENCE_NS), GPUHAL_OK);
    assert_true(c.deadline_ns > 0 && c.deadline_ns <= PATIENCE_NS); /* a callback receives the remaining time */
    fill_cache(&c, pool, NULL, 1, LADDER_LIMIT);
    assert_int_equal(attempt(pool, NULL, UNIT, GPUHAL_ALLOCATE_NO_WAIT, PATIENCE_NS), GPUHAL_OK);
    assert_int_equal(c.deadline_ns, 0);
    asked[0] = 0;
    end_ladder(gpu, pool);
}

typedef struct deeds {
    gpuhal_pool *pool, *destroys;
    cache *gives;
    bool ends_itself;
    gpuhal_status allocated, created;
    uint32_t calls;
} deeds;

static uint64_t act(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    deeds *own = user;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = UINT64_C(1) << 40};
    gpuhal_buffer *buffer = NULL;
    (void)timeout_ns;
    own->calls++;
    own->allocated = attempt(own->pool, NULL, UNIT, 0, PATIENCE_NS);
    own->created = gpuhal_buffer_create(device, &desc, &buffer);
    if (own->destroys) {
        gpuhal_pool_destroy(own->destroys);
        own->destroys = NULL;
    }
    if (own->ends_itself) {
        assert_ok(gpuhal_device_off_pressure(device, act, own));
    }
    return own->gives ? release_cached(own->gives, bytes) : 0;
}

TEST(an_allocation_within_a_callback_asks_no_callback)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache c = {.name = 'c'}, other = {.name = 'o'};
    deeds own = {.pool = pool, .gives = &c};
    fill_cache(&c, pool, NULL, 1, LADDER_LIMIT);
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, act, &own));
    add_callback(gpu, &other, -1);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_OK);
    expect_asked("o");
    assert_int_equal(own.calls, 1);
    assert_int_equal(own.allocated, GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(own.created, GPUHAL_ERROR_OUT_OF_MEMORY);
    end_ladder(gpu, pool);
}

TEST(a_callback_may_destroy_a_pool_and_end_itself)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 2 * SEGMENT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *gone = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    cache c = {.name = 'c'};
    deeds own = {.pool = pool, .destroys = gone, .gives = &c, .ends_itself = true};
    fill_cache(&c, gone, NULL, 2, SEGMENT);
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, act, &own));
    assert_int_equal(attempt(pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_OK);
    assert_int_equal(own.calls, 1);
    assert_int_equal(gpuhal_device_off_pressure(gpuhal_device_at(gpu, 0), act, &own), GPUHAL_ERROR_NOT_FOUND);
    end_ladder(gpu, pool);
}

/* ---- threads that fill one cache; any thread may have to release buffers */

typedef struct shared {
    pthread_mutex_t mutex;
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_buffer *buffers[64];
    uint32_t count;
    _Atomic uint32_t made, refused, inside;
} shared;

static uint64_t give_shared(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    shared *s = user;
    uint64_t given = 0;
    (void)device, (void)timeout_ns;
    assert_int_equal(atomic_fetch_add(&s->inside, 1), 0);
    pthread_mutex_lock(&s->mutex);
    while (s->count > 0 && given < bytes) {
        gpuhal_buffer *buffer = s->buffers[--s->count];
        given += gpuhal_buffer_bytes(buffer);
        gpuhal_buffer_release(buffer);
    }
    pthread_mutex_unlock(&s->mutex);
    atomic_fetch_sub(&s->inside, 1);
    return given;
}

static void *fill_shared(void *user)
{
    shared *s = user;
    for (uint32_t i = 0; i < 300; i++) {
        gpuhal_buffer *buffer = NULL;
        const uint64_t timeout_ns = i % 3 == 0 ? 0 : 1000000;
        const gpuhal_status status =
            gpuhal_pool_allocate(s->pool, NULL, UNIT * (1 + i % 5), 0, timeout_ns, &buffer);
        if (status) {
            assert_int_equal(report_or_fail().limit_bytes, 64 * UNIT);
            atomic_fetch_add(&s->refused, 1);
            continue;
        }
        atomic_fetch_add(&s->made, 1);
        pthread_mutex_lock(&s->mutex);
        assert_true(s->count < 64); /* each buffer has at least one unit */
        s->buffers[s->count++] = buffer;
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static void *come_and_go(void *user)
{
    shared *s = user;
    for (uint32_t i = 0; i < 200; i++) {
        cache c = {.name = 'c'}; /* on the stack, so that a sanitizer detects a read after the removal */
        deeds own = {.pool = s->pool};
        assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(s->gpu, 0), (int32_t)(i % 3) - 1, act, &own));
        usleep(100);
        assert_ok(gpuhal_device_off_pressure(gpuhal_device_at(s->gpu, 0), act, &own));
        own.gives = &c;
    }
    return NULL;
}

TEST(threads_allocate_memory_that_others_give_while_callbacks_come_and_go)
{
    enum { THREADS = 8 };
    shared s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .gpu = open_one()};
    s.pool = pool_or_fail(s.gpu, (gpuhal_pool_desc){.limit_bytes = 64 * UNIT, .segment_bytes = 64 * UNIT});
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(s.gpu, 0), 0, give_shared, &s));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, i == 0 ? come_and_go : fill_shared, &s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%u buffers, %u refused\n", s.made, s.refused);
    assert_true(s.made > 64 * 2); /* more buffers than fit at the same time */
    while (s.count > 0) {
        gpuhal_buffer_release(s.buffers[--s.count]);
    }
    end_ladder(s.gpu, s.pool);
}

/* ---- forks */

TEST(a_child_neither_adds_nor_ends_callbacks_of_its_parent)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    cache a = {.name = 'a'}, b = {.name = 'b'};
    add_callback(gpu, &a, 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(gpuhal_device_on_pressure(device, 0, call_cached, &b) != GPUHAL_ERROR_FORKED ||
              gpuhal_device_off_pressure(device, call_cached, &a) != GPUHAL_ERROR_FORKED);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(gpuhal_device_off_pressure(device, call_cached, &a));
    gpuhal_close(gpu);
}

static uint64_t fork_once(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    int status = 0;
    (void)device, (void)bytes, (void)timeout_ns;
    const pid_t child = *(pid_t *)user = fork();
    if (child > 0) {
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    return 0;
}

TEST(an_allocation_whose_callback_forks_goes_no_further_in_the_child)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT), *more = NULL;
    const gpuhal_buffer_desc large = {.size = sizeof large, .bytes = UINT64_C(1) << 40};
    pid_t child = 1;
    assert_ok(gpuhal_device_on_pressure(device, 0, fork_once, &child));
    for (int of_pool = 0; of_pool < 2; of_pool++) {
        const gpuhal_status status = of_pool ? gpuhal_pool_allocate(pool, NULL, UNIT, 0, 0, &more)
                                             : gpuhal_buffer_create(device, &large, &more);
        if (child == 0) {
            _exit(status != GPUHAL_ERROR_FORKED || more);
        }
        assert_int_equal(status, GPUHAL_ERROR_OUT_OF_MEMORY);
    }
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool);
}

#include "test_main.h"
