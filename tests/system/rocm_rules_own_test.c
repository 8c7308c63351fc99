/* Tests the fake HIP runtime itself. The fake must refuse the calls that the real runtime refuses; otherwise tests with
 * the fake prove nothing. vendor_rules_test.c tests the calls that the fakes of both vendors refuse. */
#include "rocm_fake.h"

#include <pthread.h>

#define assert_code(call, code) assert_int_equal(call, code)

static void expect_violations(unsigned count)
{
    assert_int_equal(fake_report_get()->violations, count);
}

static vendor_api begin(const char *machine)
{
    use_machine(machine);
    return load_api();
}

static void *look_at_current(void *user)
{
    const vendor_api *api = user;
    int *device = malloc(sizeof *device);
    assert_code(api->hipGetDevice(device), hipSuccess);
    return device;
}

TEST(every_thread_has_its_own_current_device_which_is_the_first_one_at_the_beginning)
{
    vendor_api api = begin("devices 2");
    int device = -1;
    void *other = NULL;
    pthread_t thread;
    assert_code(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(pthread_create(&thread, NULL, look_at_current, &api), 0);
    pthread_join(thread, &other);
    assert_code(api.hipGetDevice(&device), hipSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(*(int *)other, 0);
    free(other);
    assert_code(api.hipSetDevice(2), hipErrorInvalidDevice);
    expect_violations(1);
    assert_int_equal(fake_report_get()->contexts_created, 0);
    remove_reports();
}

TEST(since_version_7_an_error_is_kept_for_its_thread_until_it_is_taken)
{
    const vendor_api api = begin("devices 1; memory 0 16M");
    void *memory = NULL;
    assert_code(api.hipMalloc(&memory, 64 * MIB), hipErrorOutOfMemory);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipPeekAtLastError(), hipErrorOutOfMemory);
    assert_code(api.hipGetLastError(), hipErrorOutOfMemory);
    assert_code(api.hipGetLastError(), hipSuccess);
    remove_reports();
}

TEST(before_version_7_the_next_call_takes_the_place_of_an_error)
{
    use_machine("devices 1; memory 0 16M");
    use_runtime("", 6);
    const vendor_api api = load_api();
    void *memory = NULL;
    assert_code(api.hipMalloc(&memory, 64 * MIB), hipErrorOutOfMemory);
    assert_code(api.hipPeekAtLastError(), hipErrorOutOfMemory);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipGetLastError(), hipSuccess);
    remove_reports();
}

TEST(an_event_whose_stream_is_destroyed_may_not_be_asked_for)
{
    const vendor_api api = begin("devices 1");
    hipStream_t stream = NULL;
    hipEvent_t event = NULL;
    assert_code(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_code(api.hipEventCreateWithFlags(&event, 0), hipSuccess);
    assert_code(api.hipEventRecord(event, stream), hipSuccess);
    assert_code(api.hipEventSynchronize(event), hipSuccess);
    expect_violations(0);
    assert_code(api.hipStreamDestroy(stream), hipSuccess);
    (void)api.hipEventQuery(event);
    expect_violations(1);
    remove_reports();
}

TEST(hip_7_sleeps_only_for_an_event_that_was_made_for_sleeping_alone)
{
    const vendor_api api = begin("devices 1");
    hipEvent_t alone = NULL, other = NULL;
    assert_code(api.hipEventCreateWithFlags(&alone, hipEventBlockingSync), hipSuccess);
    assert_code(api.hipEventCreateWithFlags(&other, hipEventBlockingSync | hipEventDisableTiming), hipSuccess);
    assert_code(api.hipEventSynchronize(alone), hipSuccess);
    expect_violations(0);
    (void)api.hipEventSynchronize(other);
    expect_violations(1);
    remove_reports();
}

/* The runtime, and an event recorded after slow work. */
typedef struct waiting {
    vendor_api api;
    hipEvent_t event;
} waiting;

static void *wait_for_it(void *user)
{
    waiting *own = user;
    assert_code(own->api.hipEventSynchronize(own->event), hipSuccess);
    return NULL;
}

TEST(a_query_of_an_event_that_a_thread_waits_for_waits_too)
{
    waiting own = {.api = begin("devices 1; slow_us 400000")};
    hipStream_t stream = NULL;
    void *memory = NULL;
    pthread_t thread;
    assert_code(own.api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(own.api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_code(own.api.hipEventCreateWithFlags(&own.event, 0), hipSuccess);
    assert_code(own.api.hipMemsetD8Async(memory, 0, 64, stream), hipSuccess);
    assert_code(own.api.hipEventRecord(own.event, stream), hipSuccess);
    assert_code(own.api.hipEventQuery(own.event), hipErrorNotReady);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &own), 0);
    while (calls_of("hipEventSynchronize") == 0) {
        usleep(1000);
    }
    usleep(20000);
    assert_code(own.api.hipEventQuery(own.event), hipSuccess);
    pthread_join(thread, NULL);
    remove_reports();
}

TEST(a_reset_of_one_of_several_devices_takes_all_but_registered_memory)
{
    const vendor_api api = begin("devices 2");
    hipStream_t stream = NULL;
    void *memory = NULL, *own = aligned_alloc(4096, 4096);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipHostRegister(own, 4096, 0), hipSuccess);
    assert_code(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    hipDevice_t device = 0;
    assert_code(api.hipDeviceReset(), hipSuccess);
    assert_code(api.hipStreamGetDevice(stream, &device), hipErrorContextIsDestroyed);
    expect_violations(0);
    (void)api.hipMemcpyAsync(memory, own, 64, hipMemcpyHostToDevice, stream);
    expect_violations(1);
    assert_code(api.hipHostUnregister(own), hipSuccess);
    assert_code(api.hipFree(memory), hipErrorInvalidValue);
    expect_violations(2);
    free(own);
    remove_reports();
}

TEST(on_a_machine_with_one_device_a_reset_takes_registrations_too)
{
    const vendor_api api = begin("devices 1");
    void *page_locked = NULL, *own = aligned_alloc(4096, 4096);
    assert_code(api.hipHostMalloc(&page_locked, 4096, 0), hipSuccess);
    assert_code(api.hipHostRegister(own, 4096, 0), hipSuccess);
    assert_code(api.hipDeviceReset(), hipSuccess);
    assert_int_equal(fake_report_get()->host_allocations + fake_report_get()->registrations, 0);
    assert_code(api.hipHostUnregister(own), hipErrorHostMemoryNotRegistered);
    expect_violations(0);
    free(own);
    remove_reports();
}

TEST(memory_that_is_registered_twice_is_registered_once)
{
    const vendor_api api = begin("devices 1");
    char *own = aligned_alloc(4096, 8192);
    assert_code(api.hipHostRegister(own, 8192, 0), hipSuccess);
    assert_code(api.hipHostRegister(own, 8192, 0), hipSuccess);
    assert_code(api.hipHostUnregister(own + 4096), hipErrorInvalidValue);
    expect_violations(1);
    assert_code(api.hipHostUnregister(own), hipSuccess);
    assert_code(api.hipHostUnregister(own), hipErrorHostMemoryNotRegistered);
    expect_violations(1);
    free(own);
    remove_reports();
}

TEST(a_new_stream_has_the_address_of_the_last_destroyed_one)
{
    const vendor_api api = begin("devices 1");
    hipStream_t first = NULL, second = NULL;
    assert_code(api.hipStreamCreateWithFlags(&first, hipStreamNonBlocking), hipSuccess);
    assert_code(api.hipStreamDestroy(first), hipSuccess);
    assert_code(api.hipStreamCreateWithFlags(&second, hipStreamNonBlocking), hipSuccess);
    assert_ptr_equal(first, second);
    expect_violations(0);
    remove_reports();
}

TEST(before_version_7_a_mapping_that_fails_shows_when_access_is_given)
{
    use_machine("devices 1; fail hipMemMap 1 2");
    use_runtime("", 6);
    const vendor_api api = load_api();
    const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                             .location = {.type = hipMemLocationTypeDevice}};
    const hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice},
                                     .flags = hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t handle = NULL;
    void *address = NULL, *base = NULL;
    size_t bytes = 0;
    assert_code(api.hipMemAddressReserve(&address, 2 * MIB, 4 * MIB, NULL, 0), hipSuccess);
    assert_int_not_equal((uintptr_t)address % (4 * MIB), 0);
    assert_code(api.hipMemCreate(&handle, 2 * MIB, &properties, 0), hipSuccess);
    assert_code(api.hipMemMap(address, 2 * MIB, 0, handle, 0), hipSuccess);
    assert_code(api.hipMemSetAccess(address, 2 * MIB, &access, 1), hipErrorInvalidValue);
    assert_code(api.hipMemGetAddressRange(&base, &bytes, address), hipErrorNotFound);
    expect_violations(0);
    (void)api.hipMemUnmap(address, 2 * MIB);
    expect_violations(1);
    remove_reports();
}

/* Runs in a child. Each version accepts only one of the two: the descriptor or its address. */
static void expect_descriptor(const void *what)
{
    const bool by_value = strcmp(what, "driver 70125424") == 0;
    const vendor_api api = begin(what);
    hipMemGenericAllocationHandle_t handle = NULL;
    const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                             .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                             .location = {.type = hipMemLocationTypeDevice}};
    int fd = -1;
    assert_code(api.hipMemCreate(&handle, 2 * MIB, &properties, 0), hipSuccess);
    assert_code(api.hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0), hipSuccess);
    void *const places[] = {(void *)(intptr_t)fd, &fd};
    for (int place = 0; place < 2; place++) {
        const hipError_t wanted = (place == 0) == by_value ? hipSuccess : hipErrorInvalidValue;
        assert_code(api.hipMemImportFromShareableHandle(&handle, places[place], hipMemHandleTypePosixFileDescriptor),
                    wanted);
    }
    remove_reports();
}

TEST(a_descriptor_is_behind_the_pointer_before_7_1_and_the_pointer_since)
{
    assert_true(passes_in_child(expect_descriptor, "driver 70051831"));
    assert_true(passes_in_child(expect_descriptor, "driver 70125424"));
}

TEST(pageable_memory_is_no_device_memory_for_any_direction)
{
    const vendor_api api = begin("devices 1");
    unsigned char bytes[64] = {0};
    void *memory = NULL;
    assert_code(api.hipFree(NULL), hipSuccess);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipMemcpyAsync(bytes, memory, 64, hipMemcpyDeviceToDevice, NULL), hipErrorInvalidValue);
    assert_code(api.hipMemcpyAsync(memory, bytes, 64, hipMemcpyDeviceToDevice, NULL), hipErrorInvalidValue);
    assert_code(api.hipMemcpyAsync(memory, bytes, 64, hipMemcpyDefault, NULL), hipSuccess);
    assert_code(api.hipMemcpyAsync(memory, bytes, 64, 5, NULL), hipErrorInvalidMemcpyDirection);
    expect_violations(2);
    remove_reports();
}

TEST(fills_launches_and_events_refuse_a_stream_of_another_device_and_copies_do_not)
{
    const vendor_api api = begin("devices 2");
    hipStream_t stream = NULL;
    hipEvent_t event = NULL;
    void *memory = NULL;
    unsigned char bytes[64] = {0};
    assert_code(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipSetDevice(1), hipSuccess);
    assert_code(api.hipEventCreateWithFlags(&event, 0), hipSuccess);
    assert_code(api.hipMemsetD8Async(memory, 0, 64, stream), hipErrorContextIsDestroyed);
    assert_code(api.hipEventRecord(event, stream), hipErrorInvalidHandle);
    assert_code(api.hipMemcpyAsync(memory, bytes, 64, hipMemcpyHostToDevice, stream), hipSuccess);
    assert_code(api.hipStreamSynchronize(stream), hipSuccess);
    assert_code(api.hipSetDevice(0), hipSuccess);
    assert_code(api.hipEventRecord(event, stream), hipErrorInvalidHandle);
    assert_code(api.hipStreamDestroy(stream), hipSuccess);
    assert_code(api.hipStreamSynchronize(stream), hipErrorContextIsDestroyed);
    expect_violations(4);
    remove_reports();
}

typedef struct numbers {
    int major;
    unsigned device_memory;
    hipError_t host_register;
} numbers;

static void expect_numbers(const void *what)
{
    const numbers *wanted = what;
    use_machine("devices 1");
    use_runtime("", wanted->major);
    const vendor_api api = load_api();
    void *memory = NULL;
    unsigned kind = 0;
    int version = 0, value = 0;
    assert_code(api.hipRuntimeGetVersion(&version), hipSuccess);
    assert_int_equal(version / 10000000, wanted->major);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipPointerGetAttribute(&kind, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), hipSuccess);
    assert_int_equal(kind, wanted->device_memory);
    assert_code(api.hipDeviceGetAttribute(&value, 90, 0), wanted->host_register);
    remove_reports();
}

TEST(numbers_that_moved_between_versions_are_those_of_the_version)
{
    static const numbers all[] = {{5, 1, hipErrorInvalidValue}, {6, 2, hipSuccess}, {7, 2, hipSuccess}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(passes_in_child(expect_numbers, &all[i]));
    }
}

TEST(a_uuid_is_sixteen_characters_or_two)
{
    const vendor_api api = begin("devices 2; uuid 0 0123456789abcdef; uuid 1 none");
    hipUUID uuid;
    assert_code(api.hipDeviceGetUuid(&uuid, 0), hipSuccess);
    assert_memory_equal(uuid.bytes, "0123456789abcdef", 16);
    assert_code(api.hipDeviceGetUuid(&uuid, 1), hipSuccess);
    assert_memory_equal(uuid.bytes, "XX\0", 3);
    remove_reports();
}

TEST(a_machine_without_devices_says_so_as_the_real_runtime_does)
{
    use_machine("devices 0");
    use_runtime("", 5);
    const vendor_api api = load_api();
    int count = -1;
    assert_code(api.hipInit(0), hipErrorInvalidDevice); /* 5.2 returns the same code */
    assert_code(api.hipGetDeviceCount(&count), hipErrorNoDevice);
    assert_int_equal(count, 0);
    assert_code(api.hipRuntimeGetVersion(&count), hipSuccess);
    remove_reports();
}

#include "test_main.h"
