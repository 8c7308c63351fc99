/* Calls on a store must not wait beyond their deadlines. In some tests, threads use an entry in turn, so that a waiting
 * thread finds another thread at work after each wait. In another test, a thread requests memory from other owners. */
#include "pressure_support.h"
#include "store_support.h"

#include "os/os.h"

#include <pthread.h>

#define TIMEOUT_NS UINT64_C(20000000)
/* Maximum duration of the turns; the test fails after this time. */
#define TURNS_NS (100 * TIMEOUT_NS)

/* Wraps the library's function (linker --wrap). */
void __wrap_gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns);
void __real_gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns);

static _Thread_local bool waits; /* this thread waits for its turn */
static store_fixture f;
static gpuhal_item *item;
static uint64_t end_ns;

/* Runs on a new thread each time. The thread is the first to put the dropped entry again, and fills the entry
 * slowly. */
static void *take_turn(void *user)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 100};
    (void)user;
    gpuhal_item_release(item, NULL);
    item = NULL;
    if (gpuhal_os_monotonic_ns() < end_ns) {
        (void)gpuhal_store_drop(f.store, "one", 3);
        assert_ok(gpuhal_store_put(f.store, NULL, "one", 3, &desc, 0, &item));
    }
    return NULL;
}

static void next_turn(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_turn, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

void __wrap_gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns)
{
    if (!waits) {
        __real_gpuhal_condition_wait_until(condition, mutex, deadline_ns);
        return;
    }
    gpuhal_mutex_unlock(mutex);
    next_turn();
    gpuhal_mutex_lock(mutex);
}

static void begin(void)
{
    f = store_or_fail((gpuhal_store_desc){0}, 0);
    end_ns = gpuhal_os_monotonic_ns() + TURNS_NS;
    next_turn();
    waits = true;
}

static void end(void)
{
    waits = false;
    gpuhal_item_release(item, NULL);
    item = NULL;
    close_store(&f);
}

TEST(an_acquire_ends_at_its_deadline_if_threads_take_turns)
{
    gpuhal_item *own = NULL;
    begin();
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "one", 3, NULL, 0, TIMEOUT_NS, &own), GPUHAL_ERROR_TIMEOUT);
    assert_null(own);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"one\": another thread is working with the entry"));
    end();
}

TEST(reading_ends_at_its_deadline_if_threads_take_turns)
{
    char bytes[100];
    begin();
    assert_int_equal(gpuhal_store_read(f.store, "one", 3, NULL, 0, bytes, sizeof bytes, TIMEOUT_NS),
                     GPUHAL_ERROR_TIMEOUT);
    end();
}

/* ---- asking others */

static _Atomic bool entered, holds;

static uint64_t hold_turn(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    (void)user, (void)device, (void)pool, (void)bytes, (void)deadline_ns;
    atomic_store(&entered, true);
    while (atomic_load(&holds)) {
        gpuhal_os_sleep(1000000);
    }
    return 0;
}

static void *ask_others(void *user)
{
    (void)relieve_device(user, GPUHAL_PRESSURE_EVICT, NULL, 1, 0);
    return NULL;
}

TEST(a_put_whose_time_is_over_does_not_wait_for_a_thread_that_asks_others)
{
    const gpuhal_pressure_source source = {.rung = GPUHAL_PRESSURE_EVICT, .give = hold_turn};
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_pressure_entry *entry = NULL;
    gpuhal_item *none = NULL;
    pthread_t thread;
    f = store_or_fail((gpuhal_store_desc){0}, SEGMENT);
    gpuhal_device *device = gpuhal_device_at(f.gpu, 0);
    gpuhal_buffer *all = take(f.pool, f.queue, SEGMENT);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_fill(f.queue, all, 0, SEGMENT, 1, 1));
    gpuhal_buffer_release(all);
    assert_ok(gpuhal_pressure_add(device, &source, &entry));
    atomic_store(&holds, true);
    assert_int_equal(pthread_create(&thread, NULL, ask_others, device), 0);
    while (!atomic_load(&entered)) {
        gpuhal_os_sleep(1000000);
    }
    /* The whole timeout passes while the call waits for the work. */
    const uint64_t begun_ns = gpuhal_os_monotonic_ns();
    assert_int_equal(gpuhal_store_put(f.store, NULL, "one", 3, &desc, 5000000, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(gpuhal_os_monotonic_ns() - begun_ns < 1000000000);
    atomic_store(&holds, false);
    pthread_join(thread, NULL);
    open_gate(gate);
    close_store(&f);
}

#include "test_main.h"
