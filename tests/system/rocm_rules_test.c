/* The fake HIP runtime itself: it has to refuse what the real one refuses, or tests over it mean nothing. */
#include "rocm_fake.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define assert_code(call, code) assert_int_equal(call, code)

/* The calls of the test until here broke so many rules. */
static void expect_violations(unsigned count)
{
    assert_int_equal(fake_report_get()->violations, count);
}

static runtime begin(const char *machine)
{
    use_machine(machine);
    return load_runtime();
}

static void *look_at_current(void *user)
{
    const runtime *api = user;
    int *device = malloc(sizeof *device);
    assert_code(api->hipGetDevice(device), hipSuccess);
    return device;
}

TEST(every_thread_has_its_own_current_device_which_is_the_first_one_at_the_beginning)
{
    runtime api = begin("devices 2");
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
    const runtime api = begin("devices 1; memory 0 16M");
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
    const runtime api = load_runtime();
    void *memory = NULL;
    assert_code(api.hipMalloc(&memory, 64 * MIB), hipErrorOutOfMemory);
    assert_code(api.hipPeekAtLastError(), hipErrorOutOfMemory);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipGetLastError(), hipSuccess);
    remove_reports();
}

TEST(an_event_whose_stream_is_destroyed_may_not_be_asked_for)
{
    const runtime api = begin("devices 1");
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
    const runtime api = begin("devices 1");
    hipEvent_t alone = NULL, other = NULL;
    assert_code(api.hipEventCreateWithFlags(&alone, hipEventBlockingSync), hipSuccess);
    assert_code(api.hipEventCreateWithFlags(&other, hipEventBlockingSync | hipEventDisableTiming), hipSuccess);
    assert_code(api.hipEventSynchronize(alone), hipSuccess);
    expect_violations(0);
    (void)api.hipEventSynchronize(other);
    expect_violations(1);
    remove_reports();
}

/* The runtime, and an event behind slow work. */
typedef struct waiting {
    runtime api;
    hipEvent_t event;
} waiting;

static void *wait_for_it(void *user)
{
    waiting *own = user;
    assert_code(own->api.hipEventSynchronize(own->event), hipSuccess);
    return NULL;
}

TEST(whoever_asks_for_an_event_that_a_thread_waits_for_waits_too)
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

TEST(a_reset_takes_streams_and_memory_and_with_several_devices_leaves_what_is_registered)
{
    const runtime api = begin("devices 2");
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
    const runtime api = begin("devices 1");
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
    const runtime api = begin("devices 1");
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

TEST(a_new_stream_lies_where_the_last_destroyed_one_lay)
{
    const runtime api = begin("devices 1");
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
    const runtime api = load_runtime();
    const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                             .location = {.type = hipMemLocationTypeDevice}};
    const hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice}, .flags = hipMemAccessFlagsProtReadWrite};
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

static void *allocate_elsewhere(void *user)
{
    const runtime *api = user;
    void *memory = NULL;
    return api->hipMalloc(&memory, 64) == hipErrorStreamCaptureUnsupported ? user : NULL;
}

TEST(a_global_capture_is_spoiled_by_an_allocation_on_any_thread_unless_the_thread_is_relaxed)
{
    runtime api = begin("devices 1");
    hipStream_t stream = NULL;
    hipGraph_t graph = NULL;
    hipStreamCaptureStatus status = 0;
    void *memory = NULL, *refused = NULL;
    pthread_t thread;
    assert_code(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_code(api.hipStreamBeginCapture(stream, 0), hipSuccess);
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    assert_code(api.hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, 1);
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, &api), 0);
    pthread_join(thread, &refused);
    assert_ptr_equal(refused, &api);
    assert_code(api.hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, 2);
    assert_code(api.hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
    expect_violations(0);
    remove_reports();
}

TEST(a_descriptor_is_read_where_the_pointer_leads_before_version_7_1_and_is_the_pointer_since)
{
    static const char *const machines[] = {"driver 70051831", "driver 70125424"};
    for (int latest = 0; latest < 2; latest++) {
        const pid_t child = fork();
        if (child == 0) {
            const runtime api = begin(machines[latest]);
            hipMemGenericAllocationHandle_t handle = NULL;
            const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                                     .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                                     .location = {.type = hipMemLocationTypeDevice}};
            int fd = -1;
            bool good = api.hipMemCreate(&handle, 2 * MIB, &properties, 0) == hipSuccess &&
                        api.hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0) == hipSuccess;
            void *const places[] = {(void *)(intptr_t)fd, &fd};
            for (int place = 0; place < 2 && good; place++) {
                const hipError_t wanted = (place == 0) == (latest != 0) ? hipSuccess : hipErrorInvalidValue;
                good = api.hipMemImportFromShareableHandle(&handle, places[place], hipMemHandleTypePosixFileDescriptor) == wanted;
            }
            remove_reports();
            _exit(good ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

TEST(memory_that_was_freed_or_is_too_short_is_refused)
{
    const runtime api = begin("devices 1");
    void *memory = NULL;
    unsigned char bytes[512] = {0};
    assert_code(api.hipMalloc(&memory, 256), hipSuccess);
    assert_code(api.hipMemcpyAsync((char *)memory + 1, bytes, 256, hipMemcpyHostToDevice, NULL), hipErrorInvalidValue);
    assert_code(api.hipMemcpyAsync(bytes, memory, 257, hipMemcpyDeviceToHost, NULL), hipErrorInvalidValue);
    assert_code(api.hipFree((char *)memory + 1), hipErrorInvalidValue);
    assert_code(api.hipFree(memory), hipSuccess);
    assert_code(api.hipFree(memory), hipErrorInvalidValue);
    assert_code(api.hipMemsetD8Async(memory, 0, 1, NULL), hipErrorInvalidValue);
    assert_code(api.hipFree(NULL), hipSuccess);
    expect_violations(5);
    remove_reports();
}

TEST(ordinary_memory_is_no_device_memory_whatever_the_direction_says)
{
    const runtime api = begin("devices 1");
    unsigned char bytes[64] = {0};
    void *memory = NULL;
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
    const runtime api = begin("devices 2");
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

TEST(copies_from_page_locked_memory_are_asynchronous_and_from_ordinary_memory_staged)
{
    const runtime api = begin("devices 1; slow_us 200000");
    void *memory[2] = {NULL};
    hipStream_t stream = NULL;
    unsigned char *locked = NULL, ordinary[64], got[64];
    assert_code(api.hipMalloc(&memory[0], 64), hipSuccess);
    assert_code(api.hipMalloc(&memory[1], 64), hipSuccess);
    assert_code(api.hipHostMalloc((void **)(void *)&locked, 64, 0), hipSuccess);
    assert_code(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    memset(locked, 1, 64);
    memset(ordinary, 1, 64);
    assert_code(api.hipMemcpyAsync(memory[0], locked, 64, hipMemcpyHostToDevice, stream), hipSuccess);
    assert_code(api.hipMemcpyAsync(memory[1], ordinary, 64, hipMemcpyHostToDevice, stream), hipSuccess);
    assert_code(api.hipStreamQuery(stream), hipErrorNotReady);
    memset(locked, 2, 64);
    memset(ordinary, 2, 64);
    assert_code(api.hipMemcpyAsync(got, memory[0], 64, hipMemcpyDeviceToHost, stream), hipSuccess);
    assert_int_equal(got[63], 2);
    assert_code(api.hipMemcpyAsync(got, memory[1], 64, hipMemcpyDeviceToHost, stream), hipSuccess);
    assert_int_equal(got[63], 1);
    expect_violations(0);
    remove_reports();
}

TEST(a_failure_sticks_to_its_device_and_the_other_one_works)
{
    const runtime api = begin("devices 2; lose 0 hipMemsetD8Async 1 700");
    void *memory = NULL, *more = NULL;
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    assert_code(api.hipMemsetD8Async(memory, 0, 64, NULL), hipSuccess);
    assert_code(api.hipStreamSynchronize(NULL), hipErrorIllegalAddress);
    assert_code(api.hipMalloc(&more, 64), hipErrorIllegalAddress);
    assert_code(api.hipSetDevice(1), hipSuccess);
    assert_code(api.hipMalloc(&more, 64), hipSuccess);
    expect_violations(0);
    remove_reports();
}

TEST(numbers_that_moved_between_versions_are_those_of_the_version)
{
    static const struct {
        int major;
        unsigned device_memory;
        hipError_t host_register;
    } wanted[] = {{5, 1, hipErrorInvalidValue}, {6, 2, hipSuccess}, {7, 2, hipSuccess}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const pid_t child = fork();
        if (child == 0) {
            use_machine("devices 1");
            use_runtime("", wanted[i].major);
            const runtime api = load_runtime();
            void *memory = NULL;
            unsigned kind = 0;
            int version = 0, value = 0;
            bool good = api.hipRuntimeGetVersion(&version) == hipSuccess && version / 10000000 == wanted[i].major &&
                        api.hipMalloc(&memory, 64) == hipSuccess &&
                        api.hipPointerGetAttribute(&kind, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory) == hipSuccess &&
                        kind == wanted[i].device_memory && api.hipDeviceGetAttribute(&value, 90, 0) == wanted[i].host_register;
            remove_reports();
            _exit(good ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

TEST(a_uuid_is_sixteen_characters_or_two)
{
    const runtime api = begin("devices 2; uuid 0 0123456789abcdef; uuid 1 none");
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
    const runtime api = load_runtime();
    int count = -1;
    assert_code(api.hipInit(0), hipErrorInvalidDevice); /* so does 5.2 */
    assert_code(api.hipGetDeviceCount(&count), hipErrorNoDevice);
    assert_int_equal(count, 0);
    assert_code(api.hipRuntimeGetVersion(&count), hipSuccess);
    remove_reports();
}

TEST(a_program_that_touches_device_memory_dies)
{
    const runtime api = begin("devices 1");
    void *memory = NULL;
    assert_code(api.hipMalloc(&memory, 64), hipSuccess);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *(volatile char *)memory = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    remove_reports();
}

TEST(the_child_of_a_fork_has_no_runtime)
{
    const runtime api = begin("devices 1");
    int device = 0;
    assert_code(api.hipGetDevice(&device), hipSuccess);
    const pid_t child = fork();
    if (child == 0) {
        _exit(api.hipGetDevice(&device) == hipErrorNotInitialized ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    remove_reports();
}

TEST(a_machine_that_breaks_the_grammar_ends_the_process)
{
    static const char *const wrong[] = {"devices",        "devices 17",   "memory 1 1G", "link 0 0 rope",
                                        "fail hipInit 1", "colour 0 red", "uuid 0 12",   "link 0 0 xgmi"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pid_t child = fork();
        if (child == 0) {
            use_machine(wrong[i]);
            unsetenv("FAKE_HIP_REPORT");
            const runtime api = load_runtime();
            (void)api.hipInit(0);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 99);
    }
}

#include "test_main.h"
