/* tests/unit/slots_test.c: work slots of a process: limits, order, waits, callbacks and descriptors. */
#include "lease_support.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

/* The time that the test adds to the library's clock, and the number of CPUs that the library sees (0 means the real
 * number). */
static _Atomic uint64_t later_ns;
static uint32_t processors;

uint64_t __real_gpuhal_os_monotonic_ns(void);
uint64_t __wrap_gpuhal_os_monotonic_ns(void);
uint64_t __wrap_gpuhal_os_monotonic_ns(void)
{
    return __real_gpuhal_os_monotonic_ns() + atomic_load(&later_ns);
}

uint32_t __real_gpuhal_os_processors(void);
uint32_t __wrap_gpuhal_os_processors(void);
uint32_t __wrap_gpuhal_os_processors(void)
{
    return processors > 0 ? processors : __real_gpuhal_os_processors();
}

static gpuhal_work_slot *take(gpuhal_device *device)
{
    gpuhal_work_slot *slot = NULL;
    assert_ok(gpuhal_work_slot_acquire(device, 0, FOREVER, &slot));
    return slot;
}

static uint32_t waiting_on(gpuhal_device *device)
{
    uint32_t waiting = 0;
    assert_ok(gpuhal_work_slots_count(device, NULL, NULL, &waiting));
    return waiting;
}

static gpuhal *open_with_slots(uint32_t count)
{
    gpuhal *gpu = open_gpus(2);
    assert_ok(gpuhal_work_slots_set(gpuhal_device_at(gpu, 0), count));
    return gpu;
}

TEST(a_device_has_so_many_slots_and_another_one_its_own)
{
    gpuhal *gpu = open_with_slots(2);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *one = take(device), *two = take(device), *three = NULL;
    uint32_t total = 0, taken = 0, waiting = 0;
    assert_int_equal(gpuhal_work_slot_acquire(device, 0, 0, &three), GPUHAL_ERROR_BUSY);
    assert_null(three);
    assert_int_equal(gpuhal_work_slot_acquire(device, 0, 10 * MS, &three), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_work_slots_count(device, &total, &taken, &waiting));
    assert_true(total == 2 && taken == 2 && waiting == 0);
    assert_ok(gpuhal_work_slot_acquire(gpuhal_device_at(gpu, 1), 0, 0, &three));
    gpuhal_work_slot_release(three);
    gpuhal_work_slot_release(one);
    assert_ok(gpuhal_work_slot_acquire(device, 0, 0, &three));
    gpuhal_work_slot_release(three);
    gpuhal_work_slot_release(two);
    gpuhal_close(gpu);
}

TEST(the_default_is_processors_divided_by_devices_rounded_up)
{
    static const uint32_t slots_of_each[][2] = {{1, 1}, {2, 1}, {5, 3}, {8, 4}};
    for (size_t i = 0; i < sizeof slots_of_each / sizeof *slots_of_each; i++) {
        uint32_t total = 0;
        processors = slots_of_each[i][0];
        gpuhal *gpu = open_gpus(2);
        assert_ok(gpuhal_work_slots_count(gpuhal_device_at(gpu, 0), &total, NULL, NULL));
        assert_int_equal(total, slots_of_each[i][1]);
        gpuhal_close(gpu);
    }
}

typedef struct order {
    gpuhal_device *device;
    int32_t priority;
    _Atomic uint32_t *next;
    uint32_t place;
} order;

static void *take_in_order(void *user)
{
    order *own = user;
    gpuhal_work_slot *slot = NULL;
    if (gpuhal_work_slot_acquire(own->device, own->priority, FOREVER, &slot) == GPUHAL_OK) {
        own->place = atomic_fetch_add(own->next, 1);
        gpuhal_work_slot_release(slot);
    }
    return NULL;
}

TEST(a_higher_priority_comes_first_and_equal_ones_as_they_came)
{
    static const int32_t priorities[] = {0, 0, 2, -1, 2};
    static const uint32_t places[] = {2, 3, 0, 4, 1};
    enum { COUNT = 5 };
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *held = take(device);
    pthread_t threads[COUNT];
    order orders[COUNT];
    _Atomic uint32_t next = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        orders[i] = (order){device, priorities[i], &next, UINT32_MAX};
        assert_int_equal(pthread_create(&threads[i], NULL, take_in_order, &orders[i]), 0);
        WAIT_FOR(waiting_on(device) == i + 1);
    }
    gpuhal_work_slot_release(held);
    for (unsigned i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(orders[i].place, places[i]);
    }
    gpuhal_close(gpu);
}

/* Returns whether a request that has waited for `waited_ns` is granted before a new request of the next higher
 * priority. */
static bool comes_first_after(uint64_t waited_ns)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *held = take(device), *early = NULL, *important = NULL;
    assert_ok(gpuhal_work_slot_request(device, 0, NULL, NULL, &early));
    atomic_fetch_add(&later_ns, waited_ns);
    assert_ok(gpuhal_work_slot_request(device, 1, NULL, NULL, &important));
    gpuhal_work_slot_release(held);
    const bool first = gpuhal_work_slot_state(early) == GPUHAL_OK;
    assert_int_equal(gpuhal_work_slot_state(important), first ? GPUHAL_NOT_READY : GPUHAL_OK);
    gpuhal_work_slot_release(early);
    gpuhal_work_slot_release(important);
    gpuhal_close(gpu);
    return first;
}

TEST(half_a_second_of_waiting_raises_a_request_by_one_priority)
{
    assert_true(comes_first_after(500 * MS));
    bool first = true;
    for (int i = 0; i < 20 && first; i++) { /* a busy machine may delay the call by half a second */
        first = comes_first_after(0);
    }
    assert_false(first);
}

static void count_call(void *user, gpuhal_status status)
{
    _Atomic int *calls = user;
    atomic_fetch_add(calls, status == GPUHAL_OK ? 1 : status == GPUHAL_ERROR_CANCELLED ? 1000 : 1000000);
}

static void wait_for_calls(_Atomic int *calls, int wanted)
{
    for (int i = 0; i < 20000 && atomic_load(calls) != wanted; i++) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(calls), wanted);
}

TEST(a_request_ends_with_a_callback_and_a_readable_descriptor)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *held = take(device), *slot = NULL;
    _Atomic int calls = 0;
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_work_slot_request(device, 0, count_call, &calls, &slot));
    assert_ok(gpuhal_work_slot_descriptor(slot, &descriptor));
    struct pollfd poller = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(gpuhal_work_slot_state(slot), GPUHAL_NOT_READY);
    assert_int_equal(poll(&poller, 1, 10), 0);
    gpuhal_work_slot_release(held);
    assert_int_equal(poll(&poller, 1, 20000), 1);
    assert_ok(gpuhal_work_slot_state(slot));
    wait_for_calls(&calls, 1);
    gpuhal_os_handle_close(descriptor);
    gpuhal_work_slot_release(slot);
    /* This request is granted immediately. */
    assert_ok(gpuhal_work_slot_request(device, 0, count_call, &calls, &slot));
    assert_ok(gpuhal_work_slot_state(slot));
    assert_ok(gpuhal_work_slot_descriptor(slot, &descriptor));
    poller.fd = (int)descriptor;
    assert_int_equal(poll(&poller, 1, 0), 1);
    wait_for_calls(&calls, 2);
    gpuhal_os_handle_close(descriptor);
    gpuhal_work_slot_release(slot);
    gpuhal_close(gpu);
}

TEST(a_withdrawn_request_is_not_called_back_and_lets_the_next_one_pass)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *held = take(device), *first = NULL, *second = NULL;
    _Atomic int calls = 0, later = 0;
    assert_ok(gpuhal_work_slot_request(device, 0, count_call, &calls, &first));
    assert_ok(gpuhal_work_slot_request(device, 0, count_call, &later, &second));
    gpuhal_work_slot_release(first);
    gpuhal_work_slot_release(held);
    wait_for_calls(&later, 1);
    assert_int_equal(atomic_load(&calls), 0);
    gpuhal_work_slot_release(second);
    gpuhal_close(gpu);
}

TEST(closing_cancels_requests)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *slot = NULL;
    _Atomic int calls = 0;
    (void)take(device);
    assert_ok(gpuhal_work_slot_request(device, 0, count_call, &calls, &slot));
    gpuhal_close(gpu);
    wait_for_calls(&calls, 1000);
}

TEST(more_slots_let_waiting_requests_in)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *held = take(device), *slot = NULL;
    assert_ok(gpuhal_work_slot_request(device, 0, NULL, NULL, &slot));
    assert_int_equal(gpuhal_work_slot_state(slot), GPUHAL_NOT_READY);
    assert_ok(gpuhal_work_slots_set(device, 2));
    assert_ok(gpuhal_work_slot_state(slot));
    gpuhal_work_slot_release(slot);
    gpuhal_work_slot_release(held);
    gpuhal_close(gpu);
}

TEST(bad_arguments_are_refused)
{
    gpuhal *gpu = open_with_slots(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_work_slot *slot = NULL;
    gpuhal_os_handle descriptor;
    assert_int_equal(gpuhal_work_slots_set(NULL, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slots_count(NULL, NULL, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_acquire(NULL, 0, 0, &slot), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_acquire(device, 0, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_acquire(device, 4, 0, &slot), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_request(device, -4, NULL, NULL, &slot), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_state(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_work_slot_descriptor(NULL, &descriptor), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_work_slot_release(NULL);
    gpuhal_close(gpu);
}

enum { THREADS = 200, TIMES = 20, SLOTS = 3 };
static _Atomic int inside, most;

static void *work(void *user)
{
    for (int i = 0; i < TIMES; i++) {
        gpuhal_work_slot *slot = take(user);
        const int now = atomic_fetch_add(&inside, 1) + 1;
        int seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
        }
        atomic_fetch_sub(&inside, 1);
        gpuhal_work_slot_release(slot);
    }
    return NULL;
}

TEST(never_more_work_runs_than_there_are_slots)
{
    gpuhal *gpu = open_with_slots(SLOTS);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, gpuhal_device_at(gpu, 0)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(atomic_load(&most) >= 1 && atomic_load(&most) <= SLOTS);
    gpuhal_close(gpu);
}

#include "test_main.h"
