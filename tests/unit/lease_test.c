/* tests/unit/lease_test.c: leases of one process: grants, refusals and releases. */
#include "lease_processes.h"
#include "support/process.h"
#include "schedule/leases.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *out_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time);
/* Each reading of the wall clock sets it back by an hour. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time)
{
    static _Atomic time_t hours;
    const int result = __real_clock_gettime(clock, out_time);
    if (clock == CLOCK_REALTIME) {
        out_time->tv_sec -= 3600 * atomic_fetch_add(&hours, 1);
    }
    return result;
}

TEST(a_lease_names_its_device_and_a_release_gives_everything_back)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_ptr_equal(gpuhal_lease_device_at(lease, 0), gpuhal_device_at(gpu, 0));
    assert_null(gpuhal_lease_device_at(lease, 1));
    assert_true(gpuhal_lease_number(lease) > 0);
    assert_ok(gpuhal_lease_state(lease));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    assert_ok(try_bytes(gpu, 400 * MIB));
    gpuhal_lease_release(lease);
    assert_ok(try_bytes(gpu, 1024 * MIB));
    gpuhal_close(gpu);
}

TEST(an_object_that_leased_leaves_no_descriptor_open)
{
    size_t before = 0;
    for (int i = 0; i < 3; i++) {
        gpuhal *gpu = open_gpus(1);
        gpuhal_lease_release(lease_bytes(gpu, MOST));
        gpuhal_close(gpu);
        before = i == 0 ? count_descriptors() : before;
        assert_int_equal(count_descriptors(), before);
    }
}

TEST(several_devices_are_leased_at_once_or_not_at_all)
{
    gpuhal *gpu = open_gpus(3);
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *one = lease_bytes(gpu, MOST), *three = NULL, *two = NULL;
    desc.count = 3;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &three), GPUHAL_ERROR_BUSY);
    assert_null(three);
    desc.count = 2;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &two));
    for (uint32_t i = 0; i < 2; i++) {
        assert_ptr_not_equal(gpuhal_lease_device_at(two, i), gpuhal_lease_device_at(one, 0));
    }
    assert_ptr_not_equal(gpuhal_lease_device_at(two, 0), gpuhal_lease_device_at(two, 1));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(two);
    gpuhal_lease_release(one);
    gpuhal_close(gpu);
}

TEST(certain_devices_are_leased_with_bytes_and_slots_for_each)
{
    gpuhal *gpu = open_gpus(2);
    const gpuhal_lease_part parts[] = {{.device = gpuhal_device_at(gpu, 1), .bytes = 100 * MIB},
                                       {.device = gpuhal_device_at(gpu, 0), .bytes = 900 * MIB}};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    desc.part_count = 2;
    desc.parts = parts;
    gpuhal_lease *lease = NULL, *again = NULL;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
    assert_ptr_equal(gpuhal_lease_device_at(lease, 0), gpuhal_device_at(gpu, 1));
    assert_ptr_equal(gpuhal_lease_device_at(lease, 1), gpuhal_device_at(gpu, 0));
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &again), GPUHAL_ERROR_BUSY);
    const gpuhal_lease_part twice[] = {parts[0], parts[0]};
    desc.parts = twice;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &again), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

TEST(of_a_list_of_devices_only_those_are_leased)
{
    gpuhal *gpu = open_gpus(3);
    gpuhal_device *wanted[] = {gpuhal_device_at(gpu, 2), gpuhal_device_at(gpu, 1)};
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *leases[3] = {NULL};
    desc.devices = wanted;
    desc.device_count = 2;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &leases[0]));
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &leases[1]));
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &leases[2]), GPUHAL_ERROR_BUSY);
    gpuhal_device *first = gpuhal_lease_device_at(leases[0], 0), *second = gpuhal_lease_device_at(leases[1], 0);
    assert_true((first == wanted[0] && second == wanted[1]) || (first == wanted[1] && second == wanted[0]));
    gpuhal_lease_release(leases[0]);
    gpuhal_lease_release(leases[1]);
    gpuhal_close(gpu);
}

TEST(all_slots_of_a_device_are_leased_to_one_alone)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc all = GPUHAL_INIT(gpuhal_lease_desc), one = GPUHAL_INIT(gpuhal_lease_desc);
    all.slots = GPUHAL_LEASE_ALL_SLOTS;
    gpuhal_lease *first = NULL, *second = NULL;
    assert_ok(gpuhal_lease_acquire(gpu, &all, 0, &first));
    assert_int_equal(gpuhal_lease_acquire(gpu, &one, 0, &second), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(first);
    assert_ok(gpuhal_lease_acquire(gpu, &one, 0, &first));
    assert_int_equal(gpuhal_lease_acquire(gpu, &all, 0, &second), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(first);
    gpuhal_close(gpu);
}

TEST(a_buffer_beyond_the_lease_is_refused_and_the_lease_named)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_buffer_desc desc = GPUHAL_INIT(gpuhal_buffer_desc);
    gpuhal_buffer *buffer = NULL, *second = NULL;
    gpuhal_lease *lease = lease_bytes(gpu, 8 * MIB);
    char name[32];
    desc.bytes = 6 * MIB;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_int_equal(gpuhal_buffer_create(device, &desc, &second), GPUHAL_ERROR_OUT_OF_MEMORY);
    snprintf(name, sizeof name, "lease %llu", (unsigned long long)gpuhal_lease_number(lease));
    assert_non_null(strstr(gpuhal_last_error()->sentence, name));
    assert_int_equal(gpuhal_last_error()->bytes_total, 8 * MIB);
    /* The application's own limit stays in effect. */
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_device_limit_memory(device, MIB));
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(strstr(gpuhal_last_error()->sentence, name));
    assert_ok(gpuhal_device_limit_memory(device, 0));
    gpuhal_lease_release(lease);
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_buffer_create(device, &desc, &second));
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(second);
    gpuhal_close(gpu);
}

static void state_free(uint64_t bytes)
{
    gpuhal_mock.devices[0].values[0].u64 = bytes;
    gpuhal_mock.devices[0].values[0].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    usleep(120000); /* earlier samples are used for 100 ms */
}

TEST(memory_that_strangers_use_is_not_leased)
{
    gpuhal *gpu = open_gpus(1);
    state_free(500 * MIB);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease *lease = lease_bytes(gpu, 400 * MIB);
    /* 400 of the 500 MiB are leased, but not allocated yet. */
    assert_int_equal(try_bytes(gpu, 200 * MIB), GPUHAL_ERROR_BUSY);
    assert_ok(try_bytes(gpu, 100 * MIB));
    /* Memory that this process allocates under its lease does not count as used by others. */
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 300 * MIB);
    state_free(200 * MIB);
    assert_ok(try_bytes(gpu, 100 * MIB));
    state_free(900 * MIB);
    assert_ok(try_bytes(gpu, 600 * MIB));
    gpuhal_buffer_release(buffer);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

/* The driver reports the memory that it reserves. The driver's limit for this process leaves 300 of 400 MiB. */
TEST(memory_that_a_limit_of_this_process_hides_is_not_used_by_others)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_mock_value *values = gpuhal_mock.devices[0].values;
    const gpuhal_mock_value read[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .u64 = 300 * MIB},
                                      {.key = GPUHAL_VALUE_MEMORY_USED_BYTES, .u64 = 100 * MIB},
                                      {.key = GPUHAL_VALUE_MEMORY_RESERVED_BYTES, .u64 = 50 * MIB},
                                      {.key = GPUHAL_VALUE_MEMORY_LIMIT_BYTES, .u64 = 400 * MIB}};
    for (uint32_t i = 0; i < 4; i++) {
        values[i].u64 = read[i].u64;
        values[i].key = read[i].key;
    }
    assert_ok(try_bytes(gpu, 400 * MIB));
    assert_non_null(strstr(ledger_json(gpu), "\"bytes_foreign\": 104857600"));
    values[2].key = 0; /* without the reserved bytes, the free bytes decide */
    usleep(120000);
    assert_non_null(strstr(ledger_json(gpu), "\"bytes_foreign\": 759169024"));
    gpuhal_close(gpu);
}

TEST(the_first_request_of_a_process_counts_unallocated_memory_of_a_holder)
{
    skip_under_thread_sanitizer();
    fresh_ledger();
    mock_gpus(1);
    const pid_t holder = start_process(hold, NULL);
    listed[0] = (gpuhal_process){.pid = (uint32_t)holder, .flags = GPUHAL_PROCESS_MEMORY_KNOWN, .memory_bytes = 0};
    listed[1] = (gpuhal_process){.pid = 1, .flags = GPUHAL_PROCESS_MEMORY_KNOWN, .memory_bytes = 300 * MIB};
    listed_count = 2;
    state_free(724 * MIB);
    gpuhal *gpu = open_leasing();
    assert_int_equal(try_bytes(gpu, 200 * MIB), GPUHAL_ERROR_BUSY);
    assert_ok(try_bytes(gpu, 100 * MIB));
    gpuhal_close(gpu);
    kill_process(holder);
}

/* In a container the driver lists this process with the process id on the host. */
TEST(an_exclusive_device_that_this_process_has_open_is_not_a_strangers)
{
    fresh_ledger();
    mock_gpus(1);
    gpuhal_mock.devices[0].compute_mode = GPUHAL_COMPUTE_EXCLUSIVE;
    listed[0] = (gpuhal_process){.pid = 4242, .flags = GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_FOREIGN_NAMESPACE};
    listed_count = 1;
    gpuhal *gpu = open_leasing();
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_device_open(gpuhal_device_at(gpu, 0)));
    usleep(120000);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

TEST(memory_that_another_object_here_allocates_on_its_lease_is_not_foreign)
{
    gpuhal *gpu = open_gpus(1), *other = open_leasing();
    gpuhal_lease *lease = lease_bytes(other, 400 * MIB);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(other, 0, 300 * MIB);
    state_free(724 * MIB);
    assert_ok(try_bytes(gpu, 600 * MIB));
    gpuhal_buffer_release(buffer);
    gpuhal_lease_release(lease);
    gpuhal_close(other);
    gpuhal_close(gpu);
}

TEST(a_request_that_no_idle_machine_could_grant_is_infeasible)
{
    gpuhal *gpu = open_gpus(2);
    gpuhal_lease_desc desc = bytes_of(1025 * MIB);
    gpuhal_lease *lease = NULL;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, FOREVER, &lease), GPUHAL_ERROR_INFEASIBLE);
    desc = bytes_of(MIB);
    desc.slots = 100000;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, FOREVER, &lease), GPUHAL_ERROR_INFEASIBLE);
    desc.slots = 1;
    desc.count = 3;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, FOREVER, &lease), GPUHAL_ERROR_NO_DEVICE);
    assert_null(lease);
    gpuhal_close(gpu);
}

TEST(bad_arguments_are_named_and_change_nothing)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = NULL;
    gpuhal_lease_desc desc = bytes_of(MIB);
    assert_int_equal(gpuhal_lease_acquire(NULL, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_acquire(gpu, NULL, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.size = 0;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc = bytes_of(MIB);
    desc.priority = GPUHAL_LEASE_PRIORITY_MAX + 1;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc = bytes_of(MIB);
    desc.flags = 1u << 31;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc = bytes_of(MIB);
    desc.device_count = 1;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc = bytes_of(MIB);
    desc.reserved = 1;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "desc.reserved is not 0"));
    desc = bytes_of(0);
    const gpuhal_lease_part part = {.device = gpuhal_device_at(gpu, 0), .reserved = 1};
    desc.parts = &part;
    desc.part_count = 1;
    assert_int_equal(gpuhal_lease_request(gpu, &desc, 0, NULL, NULL, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_state(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_renew(NULL, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_os_handle descriptor;
    assert_int_equal(gpuhal_lease_descriptor(NULL, &descriptor), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_json(NULL, NULL, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_number(NULL), 0);
    assert_null(gpuhal_lease_device_at(NULL, 0));
    gpuhal_lease_release(NULL);
    gpuhal_close(gpu);
}

TEST(more_bytes_than_any_machine_has_are_a_bad_argument)
{
    gpuhal *gpu = open_gpus(1);
    const gpuhal_lease_part part = {.device = gpuhal_device_at(gpu, 0), .bytes = UINT64_MAX};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    assert_int_equal(try_bytes(gpu, UINT64_MAX), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(try_bytes(gpu, (UINT64_C(1) << 62) + 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(try_bytes(gpu, UINT64_C(1) << 62), GPUHAL_ERROR_INFEASIBLE);
    desc.parts = &part;
    desc.part_count = 1;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

TEST(without_a_ledger_no_lease_is_given)
{
    mock_gpus(1);
    const gpuhal_config config = {.size = sizeof config, .ledger = "none"};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    assert_int_equal(try_bytes(gpu, MIB), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_lease_json(gpu, NULL, 0, NULL), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_close(gpu);
}

TEST(a_wait_ends_in_time)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *held = lease_bytes(gpu, MOST), *lease = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    const uint64_t begin = now_ns();
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 60 * MS, &lease), GPUHAL_ERROR_TIMEOUT);
    assert_true(now_ns() - begin >= 60 * MS);
    assert_int_equal(count_of(ledger_json(gpu), "\"waiting\""), 0);
    gpuhal_lease_release(held);
    gpuhal_close(gpu);
}

typedef struct order {
    gpuhal *gpu;
    int32_t priority;
    _Atomic uint32_t *next;
    uint32_t place;
} order;

static void *lease_in_order(void *user)
{
    order *own = user;
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    desc.priority = own->priority;
    if (gpuhal_lease_acquire(own->gpu, &desc, FOREVER, &lease) == GPUHAL_OK) {
        own->place = atomic_fetch_add(own->next, 1);
        gpuhal_lease_release(lease);
    }
    return NULL;
}

/* All eight devices have one driver. */
TEST(a_driver_that_hangs_costs_a_request_its_own_time_and_not_that_of_each_device)
{
    gpuhal *gpu = open_gpus(8);
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    const uint64_t begin = now_ns();
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 100 * MS, &lease), GPUHAL_ERROR_TIMEOUT);
    assert_true(now_ns() - begin < 4 * SECOND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "did not report its free memory in time"));
    gpuhal_mock.stops = 0;
    gpuhal_close(gpu);
}

TEST(a_driver_that_hangs_while_it_lists_processes_costs_all_devices_a_second)
{
    fresh_ledger();
    mock_gpus(8);
    for (uint32_t i = 0; i < 8; i++) {
        gpuhal_mock.devices[i].compute_mode = GPUHAL_COMPUTE_EXCLUSIVE;
    }
    lists_late = true;
    gpuhal *gpu = open_leasing();
    const uint64_t begin = now_ns();
    assert_ok(try_bytes(gpu, MOST));
    assert_true(now_ns() - begin < 3 * SECOND);
    gpuhal_close(gpu);
}

TEST(a_request_returns_at_once_even_if_a_driver_hangs)
{
    gpuhal *gpu = open_gpus(1);
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    const uint64_t begin = now_ns();
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, NULL, NULL, &lease));
    assert_true(now_ns() - begin < SECOND);
    gpuhal_mock.stops = 0;
    WAIT_FOR(gpuhal_lease_state(lease) != GPUHAL_NOT_READY);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

TEST(a_higher_priority_comes_first_and_equal_ones_as_they_came)
{
    static const int32_t priorities[] = {0, 0, 2, -1, 2};
    static const uint32_t places[] = {2, 3, 0, 4, 1};
    enum { COUNT = 5 };
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *held = lease_bytes(gpu, MOST);
    pthread_t threads[COUNT];
    order orders[COUNT];
    _Atomic uint32_t next = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        orders[i] = (order){gpu, priorities[i], &next, UINT32_MAX};
        assert_int_equal(pthread_create(&threads[i], NULL, lease_in_order, &orders[i]), 0);
        WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == i + 1);
    }
    gpuhal_lease_release(held);
    for (unsigned i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(orders[i].place, places[i]);
    }
    gpuhal_close(gpu);
}

TEST(an_expired_lease_is_free_and_says_so)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL, *next = NULL;
    desc.duration_ns = SECOND; /* long enough that the next call begins before the lease expires */
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    next = lease_bytes(gpu, MOST);
    assert_int_equal(gpuhal_lease_state(lease), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_lease_renew(lease, SECOND), GPUHAL_ERROR_TIMEOUT);
    gpuhal_lease_release(lease);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(next);
    gpuhal_close(gpu);
}

TEST(a_renewed_lease_lives_on)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    desc.duration_ns = 200 * MS;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
    assert_ok(gpuhal_lease_renew(lease, 0));
    usleep(220000);
    assert_ok(gpuhal_lease_state(lease));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
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
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *held = lease_bytes(gpu, MOST), *lease = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    _Atomic int calls = 0;
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, count_call, &calls, &lease));
    assert_ok(gpuhal_lease_descriptor(lease, &descriptor));
    struct pollfd poller = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(gpuhal_lease_state(lease), GPUHAL_NOT_READY);
    assert_int_equal(poll(&poller, 1, 20), 0);
    gpuhal_lease_release(held);
    assert_int_equal(poll(&poller, 1, 20000), 1);
    assert_ok(gpuhal_lease_state(lease));
    assert_non_null(gpuhal_lease_device_at(lease, 0));
    wait_for_calls(&calls, 1);
    gpuhal_os_handle_close(descriptor);
    gpuhal_lease_release(lease);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

TEST(a_withdrawn_request_is_cancelled_and_leaves_nothing)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *held = lease_bytes(gpu, MOST), *lease = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    _Atomic int calls = 0;
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, count_call, &calls, &lease));
    WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == 1);
    gpuhal_lease_release(lease);
    wait_for_calls(&calls, 1000);
    assert_int_equal(count_of(ledger_json(gpu), "\"waiting\""), 0);
    gpuhal_lease_release(held);
    gpuhal_close(gpu);
}

TEST(closing_releases_leases_and_withdraws_requests)
{
    gpuhal *gpu = open_gpus(1), *other = open_leasing();
    (void)lease_bytes(gpu, MOST);
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    _Atomic int calls = 0;
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, count_call, &calls, &lease));
    assert_int_equal(try_bytes(other, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_close(gpu);
    wait_for_calls(&calls, 1000);
    assert_ok(try_bytes(other, MOST));
    assert_int_equal(count_of(ledger_json(other), "\"number\""), 0);
    gpuhal_close(other);
}

TEST(interfaces_of_one_device_share_its_leases)
{
    fresh_ledger();
    mock_gpus(2);
    gpuhal_mock.devices[1].uuid = gpuhal_mock.devices[0].uuid;
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

static void *lease_often(void *user)
{
    gpuhal *gpu = user;
    for (int i = 0; i < 20; i++) {
        gpuhal_lease_release(lease_bytes(gpu, MOST));
    }
    return NULL;
}

static void *lease_as_cancelled(void *user)
{
    pthread_cancel(pthread_self());
    (void)try_bytes(user, MIB);
    pthread_testcancel();
    return NULL;
}

TEST(a_thread_that_is_cancelled_in_its_first_lease_leaves_the_object_usable)
{
    gpuhal *gpu = open_gpus(1);
    pthread_t thread;
    void *result = NULL;
    alarm(20);
    assert_int_equal(pthread_create(&thread, NULL, lease_as_cancelled, gpu), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(result == PTHREAD_CANCELED);
    assert_ok(try_bytes(gpu, MOST));
    alarm(0);
    gpuhal_close(gpu);
}

TEST(an_object_may_be_used_by_many_threads)
{
    enum { THREADS = 8 };
    gpuhal *gpu = open_gpus(2);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, lease_often, gpu), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(count_of(ledger_json(gpu), "\"number\""), 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
