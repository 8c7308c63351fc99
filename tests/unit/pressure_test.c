/* The sources that release a device's memory when it is short: their order, their turns, and their removal. */
#include "unit/pool_support.h"
#include "unit/pressure_support.h"

#include "base/error.h"
#include "base/job.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOURCES = 6, ASKED = 64 };

typedef struct source {
    char name;
    uint64_t gives;
    gpuhal_pressure_entry *entry;
    gpuhal_device *device; /* arguments of the last call */
    struct gpuhal_pool *pool;
    uint64_t bytes, deadline_ns;
    uint32_t times, most_times; /* number of calls; number of calls that release memory (0 means all) */
    bool removes_itself, relieves, forks;
    gpuhal_device *relieves_other;
    uint64_t relieved;
    _Atomic bool *holds; /* the source waits until the value is false */
    _Atomic int *inside; /* number of concurrent calls */
    _Atomic bool entered;
} source;

static char asked[ASKED];
static size_t asked_count;

static uint64_t give(void *user, gpuhal_device *device, struct gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    source *own = user;
    own->device = device;
    own->pool = pool;
    own->bytes = bytes;
    own->deadline_ns = deadline_ns;
    if (own->inside) {
        assert_int_equal(atomic_fetch_add(own->inside, 1), 0);
        usleep(100);
        atomic_fetch_sub(own->inside, 1);
    } else if (asked_count < ASKED - 1) {
        asked[asked_count++] = own->name;
    }
    atomic_store(&own->entered, true);
    while (own->holds && atomic_load(own->holds)) {
        usleep(1000);
    }
    if (own->removes_itself) {
        gpuhal_pressure_remove(own->entry);
    }
    if (own->relieves) {
        gpuhal_device *other = own->relieves_other ? own->relieves_other : device;
        own->relieved = relieve_device(other, GPUHAL_PRESSURE_CALL, NULL, 1, gpuhal_deadline(PATIENCE_NS));
    }
    if (own->forks && own->times == 0) {
        const pid_t child = fork();
        if (child == 0) {
            return 0; /* the test continues in the child */
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    (void)gpuhal_error_set(GPUHAL_ERROR_FILE, "of the source");
    own->times++;
    return own->most_times && own->times > own->most_times ? 0 : own->gives;
}

static void add(gpuhal_device *device, source *own, gpuhal_pressure_rung rung, int32_t priority)
{
    const gpuhal_pressure_source added = {.rung = rung, .priority = priority, .give = give, .user = own};
    assert_ok(gpuhal_pressure_add(device, &added, &own->entry));
}

/* Returns the names of the sources that were called since the previous call. */
static const char *asked_now(void)
{
    asked[asked_count] = 0;
    asked_count = 0;
    return asked;
}

static uint64_t relieve(gpuhal_device *device, gpuhal_pressure_rung rung, uint64_t bytes)
{
    return relieve_device(device, rung, NULL, bytes, 0);
}

TEST(sources_of_a_rung_are_asked_by_priority_and_then_by_age)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    source a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'}, e = {.name = 'e'};
    add(device, &a, GPUHAL_PRESSURE_SPILL, INT32_MAX);
    add(device, &b, GPUHAL_PRESSURE_SPILL, 0);
    add(device, &c, GPUHAL_PRESSURE_SPILL, INT32_MIN);
    add(device, &d, GPUHAL_PRESSURE_SPILL, 0);
    add(device, &e, GPUHAL_PRESSURE_EVICT, 9);
    assert_int_equal(relieve(device, GPUHAL_PRESSURE_SPILL, 1), 0);
    assert_string_equal(asked_now(), "cbda");
    assert_int_equal(relieve(device, GPUHAL_PRESSURE_EVICT, 1), 0);
    assert_string_equal(asked_now(), "e");
    assert_int_equal(relieve(device, GPUHAL_PRESSURE_CALL, 1), 0);
    assert_string_equal(asked_now(), "");
    gpuhal_close(gpu);
}

TEST(a_source_is_asked_for_twice_as_much_as_long_as_it_gives_and_no_other_once_that_suffices)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    source a = {.name = 'a', .gives = 3}, b = {.name = 'b', .gives = 10}, c = {.name = 'c', .gives = UINT64_MAX};
    add(device, &a, GPUHAL_PRESSURE_CALL, 1);
    add(device, &b, GPUHAL_PRESSURE_CALL, 2);
    add(device, &c, GPUHAL_PRESSURE_CALL, 3);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    const uint64_t deadline_ns = gpuhal_deadline(PATIENCE_NS);
    a.most_times = 2;
    assert_int_equal(relieve_device(device, GPUHAL_PRESSURE_CALL, pool, 8, deadline_ns), 16);
    assert_string_equal(asked_now(), "aaab");
    assert_ptr_equal(b.device, device);
    assert_ptr_equal(b.pool, pool);
    assert_int_equal(a.bytes, 32);
    assert_int_equal(b.bytes, 8);
    assert_int_equal(b.deadline_ns, deadline_ns);
    b.most_times = b.times;
    assert_int_equal(relieve(device, GPUHAL_PRESSURE_CALL, UINT64_MAX), UINT64_MAX);
    assert_string_equal(asked_now(), "abc");
    assert_null(c.pool);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(a_source_is_asked_for_its_own_device_alone)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    source a = {.name = 'a'}, b = {.name = 'b'};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_EVICT, 0);
    add(gpuhal_device_at(gpu, 1), &b, GPUHAL_PRESSURE_EVICT, 0);
    (void)relieve(gpuhal_device_at(gpu, 1), GPUHAL_PRESSURE_EVICT, 1);
    assert_string_equal(asked_now(), "b");
    gpuhal_close(gpu);
}

TEST(a_source_that_was_removed_is_not_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    source a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    add(device, &a, GPUHAL_PRESSURE_EVICT, 0);
    add(device, &b, GPUHAL_PRESSURE_EVICT, 0);
    add(device, &c, GPUHAL_PRESSURE_EVICT, 0);
    gpuhal_pressure_remove(b.entry);
    gpuhal_pressure_remove(NULL);
    (void)relieve(device, GPUHAL_PRESSURE_EVICT, 1);
    assert_string_equal(asked_now(), "ac");
    gpuhal_close(gpu);
}

TEST(a_source_may_remove_itself_while_it_is_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    source a = {.name = 'a', .removes_itself = true}, b = {.name = 'b'};
    add(device, &a, GPUHAL_PRESSURE_EVICT, 0);
    add(device, &b, GPUHAL_PRESSURE_EVICT, 0);
    (void)relieve(device, GPUHAL_PRESSURE_EVICT, 1);
    (void)relieve(device, GPUHAL_PRESSURE_EVICT, 1);
    assert_string_equal(asked_now(), "abb");
    gpuhal_close(gpu);
}

TEST(inside_a_source_no_source_of_any_device_is_asked)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    source a = {.name = 'a', .relieves = true, .relieved = 1}, b = {.name = 'b', .gives = 1};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    add(gpuhal_device_at(gpu, 1), &b, GPUHAL_PRESSURE_CALL, 0);
    (void)relieve(gpuhal_device_at(gpu, 0), GPUHAL_PRESSURE_CALL, 1);
    assert_int_equal(a.relieved, 0);
    a = (source){.name = 'a', .relieves = true, .relieves_other = gpuhal_device_at(gpu, 1), .relieved = 1};
    (void)relieve(gpuhal_device_at(gpu, 0), GPUHAL_PRESSURE_CALL, 1);
    assert_int_equal(a.relieved, 0);
    assert_string_equal(asked_now(), "aa");
    gpuhal_close(gpu);
}

TEST(the_last_error_is_the_same_after_sources_were_asked)
{
    gpuhal *gpu = open_one();
    source a = {.name = 'a'};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_EVICT, 0);
    (void)gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY, "of the caller");
    (void)relieve(gpuhal_device_at(gpu, 0), GPUHAL_PRESSURE_EVICT, 1);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_string_equal(gpuhal_last_error()->sentence, "of the caller");
    gpuhal_close(gpu);
}

/* ---- threads */

typedef struct asking {
    gpuhal_device *device;
    gpuhal_pressure_rung rung;
    uint64_t deadline_ns;
    uint32_t times;
    uint64_t given;
} asking;

static void *ask(void *user)
{
    asking *own = user;
    for (uint32_t i = 0; i < own->times; i++) {
        own->given += relieve_device(own->device, own->rung, NULL, 1, own->deadline_ns);
    }
    return NULL;
}

static pthread_t start(void *(*run)(void *), void *user)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    return thread;
}

static void await(const _Atomic bool *flag)
{
    for (int i = 0; i < 60000 && !atomic_load(flag); i++) {
        usleep(1000);
    }
    assert_true(atomic_load(flag));
}

TEST(one_thread_at_a_time_asks_the_sources_of_a_device)
{
    enum { THREADS = 4, TIMES = 50 };
    gpuhal *gpu = open_one();
    _Atomic int inside = 0;
    source a = {.gives = 1, .inside = &inside}, b = {.gives = 1, .inside = &inside};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    add(gpuhal_device_at(gpu, 0), &b, GPUHAL_PRESSURE_CALL, 0);
    asking all[THREADS];
    pthread_t threads[THREADS];
    uint64_t given = 0;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (asking){.device = gpuhal_device_at(gpu, 0), .rung = GPUHAL_PRESSURE_CALL, .times = TIMES};
        threads[i] = start(ask, &all[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        given += all[i].given;
    }
    assert_int_equal(given, THREADS * TIMES); /* although their timeout was 0, the threads waited for each other */
    gpuhal_close(gpu);
}

TEST(a_thread_without_time_does_not_wait_for_a_source_that_may)
{
    gpuhal *gpu = open_one();
    _Atomic bool holds = true;
    source a = {.name = 'a', .gives = 1, .holds = &holds};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    asking first = {.device = gpuhal_device_at(gpu, 0),
                    .rung = GPUHAL_PRESSURE_CALL,
                    .deadline_ns = gpuhal_deadline(PATIENCE_NS),
                    .times = 1};
    pthread_t thread = start(ask, &first);
    await(&a.entered);
    assert_int_equal(relieve(gpuhal_device_at(gpu, 0), GPUHAL_PRESSURE_CALL, 1), 0);
    const uint64_t deadline_ns = gpuhal_deadline(30000000);
    assert_int_equal(relieve_device(first.device, GPUHAL_PRESSURE_CALL, NULL, 1, deadline_ns), 0);
    assert_true(gpuhal_os_monotonic_ns() >= deadline_ns);
    atomic_store(&holds, false);
    pthread_join(thread, NULL);
    assert_int_equal(first.given, 1);
    assert_string_equal(asked_now(), "a");
    gpuhal_close(gpu);
}

static void *let_go(void *user)
{
    usleep(50000);
    atomic_store((_Atomic bool *)user, false);
    return NULL;
}

TEST(a_thread_without_time_waits_for_one_that_evicts)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    _Atomic bool holds = true;
    source a = {.name = 'a', .gives = 1, .holds = &holds}, b = {.name = 'b', .gives = 1};
    add(device, &a, GPUHAL_PRESSURE_EVICT, 0);
    add(device, &b, GPUHAL_PRESSURE_CALL, 0);
    asking first = {
        .device = device, .rung = GPUHAL_PRESSURE_EVICT, .deadline_ns = gpuhal_deadline(PATIENCE_NS), .times = 1};
    pthread_t thread = start(ask, &first);
    await(&a.entered);
    pthread_t other = start(let_go, &holds);
    assert_int_equal(relieve(device, GPUHAL_PRESSURE_CALL, 1), 1);
    assert_string_equal(asked_now(), "ab");
    pthread_join(other, NULL);
    pthread_join(thread, NULL);
    gpuhal_close(gpu);
}

TEST(a_thread_without_time_waits_for_its_turn_no_longer_than_a_source_may_take)
{
    gpuhal *gpu = open_one();
    _Atomic bool holds = true;
    source a = {.name = 'a', .gives = 1, .most_times = 1, .holds = &holds};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    asking first = {.device = gpuhal_device_at(gpu, 0), .rung = GPUHAL_PRESSURE_CALL, .times = 1};
    pthread_t thread = start(ask, &first);
    await(&a.entered);
    const uint64_t begun_ns = gpuhal_os_monotonic_ns();
    assert_int_equal(relieve(first.device, GPUHAL_PRESSURE_CALL, 1), 0); /* the source waits for this call to return */
    assert_true(gpuhal_os_monotonic_ns() - begun_ns >= 1000000000);
    atomic_store(&holds, false);
    pthread_join(thread, NULL);
    gpuhal_close(gpu);
}

TEST(a_thread_that_waits_for_its_turn_returns_when_the_device_is_lost)
{
    gpuhal *gpu = open_one();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    _Atomic bool holds = true;
    source a = {.name = 'a', .gives = 1, .holds = &holds};
    add(device, &a, GPUHAL_PRESSURE_CALL, 0);
    asking first = {.device = device, .rung = GPUHAL_PRESSURE_CALL, .deadline_ns = UINT64_MAX, .times = 1};
    asking second = first;
    pthread_t holder = start(ask, &first);
    await(&a.entered);
    pthread_t waits = start(ask, &second);
    usleep(10000);
    atomic_store(&device->lost, GPUHAL_LOST);
    pthread_join(waits, NULL);
    assert_int_equal(second.given, 0);
    atomic_store(&holds, false);
    pthread_join(holder, NULL);
    gpuhal_close(gpu);
}

typedef struct removal {
    gpuhal_pressure_entry *entry;
    _Atomic bool begun, done;
} removal;

static void *remove_entry(void *user)
{
    removal *own = user;
    atomic_store(&own->begun, true);
    gpuhal_pressure_remove(own->entry);
    atomic_store(&own->done, true);
    return NULL;
}

TEST(removing_a_source_waits_until_it_has_returned)
{
    gpuhal *gpu = open_one();
    _Atomic bool holds = true;
    source a = {.name = 'a', .gives = 1, .holds = &holds};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    asking first = {.device = gpuhal_device_at(gpu, 0),
                    .rung = GPUHAL_PRESSURE_CALL,
                    .deadline_ns = gpuhal_deadline(PATIENCE_NS),
                    .times = 1};
    pthread_t asker = start(ask, &first);
    await(&a.entered);
    removal own = {.entry = a.entry};
    pthread_t remover = start(remove_entry, &own);
    await(&own.begun);
    usleep(20000);
    assert_false(atomic_load(&own.done));
    atomic_store(&holds, false);
    pthread_join(remover, NULL);
    pthread_join(asker, NULL);
    assert_true(atomic_load(&own.done));
    gpuhal_close(gpu);
}

static void *add_and_remove(void *user)
{
    gpuhal_device *device = user;
    for (int i = 0; i < 300; i++) {
        _Atomic int inside = 0; /* on the stack, so that a sanitizer detects a read after the removal */
        source own = {.gives = 1, .inside = &inside};
        add(device, &own, GPUHAL_PRESSURE_CALL, i % 3);
        if (i % 4 == 0) {
            usleep(200);
        }
        gpuhal_pressure_remove(own.entry);
        own.gives = UINT64_MAX;
    }
    return NULL;
}

TEST(threads_add_and_remove_sources_while_others_are_asked)
{
    enum { THREADS = 3 };
    gpuhal *gpu = open_one();
    pthread_t threads[THREADS];
    asking asker = {.device = gpuhal_device_at(gpu, 0), .rung = GPUHAL_PRESSURE_CALL, .times = 2000};
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(add_and_remove, asker.device);
    }
    ask(&asker);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(asker.given <= asker.times);
    gpuhal_close(gpu);
}

/* ---- forks */

TEST(a_child_adds_no_source_and_leaves_those_of_its_parent)
{
    gpuhal *gpu = open_one();
    source a = {.name = 'a'}, b = {.name = 'b'};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    const pid_t child = fork();
    if (child == 0) {
        const gpuhal_pressure_source more = {.give = give, .user = &b};
        gpuhal_pressure_remove(a.entry);
        const gpuhal_status status = gpuhal_pressure_add(gpuhal_device_at(gpu, 0), &more, &b.entry);
        _exit(status == GPUHAL_ERROR_FORKED && !b.entry ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_close(gpu);
}

TEST(a_child_that_was_forked_inside_a_source_returns_from_it)
{
    gpuhal *gpu = open_one();
    const pid_t parent = getpid();
    source a = {.name = 'a', .gives = 1, .most_times = 1, .forks = true}, b = {.name = 'b', .gives = 1};
    add(gpuhal_device_at(gpu, 0), &a, GPUHAL_PRESSURE_CALL, 0);
    add(gpuhal_device_at(gpu, 0), &b, GPUHAL_PRESSURE_CALL, 0);
    const uint64_t given = relieve(gpuhal_device_at(gpu, 0), GPUHAL_PRESSURE_CALL, 2);
    if (getpid() != parent) {
        _exit(given == 0 && strcmp(asked_now(), "a") == 0 ? 0 : 1);
    }
    assert_int_equal(given, 2);
    assert_string_equal(asked_now(), "aab");
    gpuhal_close(gpu);
}

#include "test_main.h"
