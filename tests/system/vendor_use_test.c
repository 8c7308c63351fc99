/* Tests a vendor's plugin with its fake, through the public API: calls that succeed, and state of the caller that the
 * plugin must not change. Tests of a single vendor's plugin are in cuda_fake_test.c and rocm_fake_test.c. */
#include "exercise.h"
#include "support/random.h"
#include "support/idle.h"
#include "vendor.h"

#include <gpuhal/telemetry.h>

#include <pthread.h>

TEST(verify_passes_on_every_device_and_leaves_nothing)
{
    use_machine("devices 2; slow_us 50");
    gpuhal *gpu = open_backend(0);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, BACKEND ":0")));
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, BACKEND ":1")));
    close_clean(gpu);
}

/* ---- bytes */

/* The devices' plugin has not been started, so the first device's query starts it. The other devices' queries must
 * also return values. */
TEST(the_first_sample_of_several_devices_has_the_values_of_each)
{
    use_machine("devices 4");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_ALWAYS);
    gpuhal_sample samples[4];
    gpuhal_value values[4] = {{0}};
    for (uint32_t i = 0; i < 4; i++) {
        char id[16];
        snprintf(id, sizeof id, BACKEND ":%u", i);
        values[i].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
        samples[i] = (gpuhal_sample){
            .size = sizeof *samples, .device = select_or_fail(gpu, id), .values = &values[i], .count = 1};
    }
    assert_ok(gpuhal_sample_all(gpu, samples, 4, 0));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(samples[i].status, GPUHAL_OK);
        assert_int_equal(values[i].missing, 0);
    }
    gpuhal_close(gpu);
    remove_reports();
}

TEST(transfers_within_a_device_are_byte_exact_for_every_kind_of_memory)
{
    use_machine("devices 1; slow_us 20");
    gpuhal *gpu = open_backend(0);
    exercise_kinds(select_or_fail(gpu, BACKEND ":0"), 200003, 40, 1);
    close_clean(gpu);
}

/* Runs in a child with this machine. */
static void exercise_pairs(const void *machine)
{
    static const char *const ids[] = {BACKEND ":0", BACKEND ":1", "cpu:0"};
    use_machine(machine);
    gpuhal *gpu = open_backend(0);
    for (int pair = 0; pair < 9; pair++) {
        gpuhal_buffer *one = buffer_or_fail(select_or_fail(gpu, ids[pair / 3]), GPUHAL_MEMORY_DEVICE, 300001);
        gpuhal_buffer *two = buffer_or_fail(select_or_fail(gpu, ids[pair % 3]), GPUHAL_MEMORY_DEVICE, 300001);
        exercise_pair(one, two, 30, (uint64_t)pair);
        gpuhal_buffer_release(one);
        gpuhal_buffer_release(two);
    }
    close_clean(gpu);
}

TEST(transfers_between_devices_and_the_cpu_are_byte_exact_with_access_to_peers_and_without)
{
    assert_true(passes_in_child(exercise_pairs, "devices 2; slow_us 20"));
    assert_true(passes_in_child(exercise_pairs, "devices 2; slow_us 20; link 0 1 system"));
}

TEST(large_copies_between_devices_and_the_cpu_are_byte_exact_at_odd_offsets)
{
    enum { BYTES = 3 * 1024 * 1024 + 5 };
    static const char *const ids[] = {BACKEND ":0", BACKEND ":1", "cpu:0"};
    use_machine("devices 2; link 0 1 system; slow_us 100");
    gpuhal *gpu = open_backend(0);
    unsigned char *sent = bytes_of_seed(7, BYTES), *got = bytes_of_seed(8, BYTES);
    for (int pair = 0; pair < 9; pair++) {
        gpuhal_buffer *from = buffer_or_fail(select_or_fail(gpu, ids[pair / 3]), GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_buffer *to = buffer_or_fail(select_or_fail(gpu, ids[pair % 3]), GPUHAL_MEMORY_DEVICE, BYTES);
        assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
        assert_ok(gpuhal_fill(NULL, to, 0, BYTES, 0x77, 1));
        assert_ok(gpuhal_copy(NULL, to, 3, from, 1, BYTES - 3));
        assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
        assert_memory_equal(got, "www", 3);
        assert_memory_equal(got + 3, sent + 1, BYTES - 3);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
    }
    free(sent);
    free(got);
    close_clean(gpu);
}

static void copy_box(gpuhal_buffer *to, void *to_host, gpuhal_buffer *from, void *from_host)
{
    const uint64_t extent[3] = {100, 7, 3};
    const gpuhal_rect there = {.buffer = to, .host = to_host, .offset = 11, .row_pitch = 160, .slice_pitch = 160 * 9};
    const gpuhal_rect here = {
        .buffer = from, .host = from_host, .offset = 5, .row_pitch = 128, .slice_pitch = 128 * 7};
    assert_ok(gpuhal_copy_rect(NULL, &there, &here, extent));
}

static void expect_box(const unsigned char *to, const unsigned char *from, size_t bytes)
{
    unsigned char *wanted = malloc(bytes);
    assert_non_null(wanted);
    memset(wanted, 0x5a, bytes);
    for (size_t slice = 0; slice < 3; slice++) {
        for (size_t row = 0; row < 7; row++) {
            memcpy(wanted + 11 + slice * 160 * 9 + row * 160, from + 5 + slice * 128 * 7 + row * 128, 100);
        }
    }
    assert_memory_equal(to, wanted, bytes);
    free(wanted);
}

TEST(rectangles_are_byte_exact_to_from_within_and_between_devices)
{
    enum { BOX = 8192 };
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, BACKEND ":0"), *two = select_or_fail(gpu, BACKEND ":1");
    unsigned char *sent = bytes_of_seed(5, BOX), *got = bytes_of_seed(6, BOX);
    gpuhal_buffer *from = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, BOX);
    assert_ok(gpuhal_write(NULL, from, 0, sent, BOX));
    gpuhal_device *const targets[] = {one, two};
    for (int i = 0; i < 2; i++) {
        gpuhal_buffer *to = buffer_or_fail(targets[i], GPUHAL_MEMORY_DEVICE, BOX);
        assert_ok(gpuhal_fill(NULL, to, 0, BOX, 0x5a, 1));
        copy_box(to, NULL, from, NULL);
        assert_ok(gpuhal_read(NULL, got, to, 0, BOX));
        expect_box(got, sent, BOX);
        assert_ok(gpuhal_fill(NULL, to, 0, BOX, 0x5a, 1));
        copy_box(to, NULL, NULL, sent);
        assert_ok(gpuhal_read(NULL, got, to, 0, BOX));
        expect_box(got, sent, BOX);
        gpuhal_buffer_release(to);
    }
    memset(got, 0x5a, BOX);
    copy_box(NULL, got, from, NULL);
    expect_box(got, sent, BOX);
    gpuhal_buffer_release(from);
    free(sent);
    free(got);
    close_clean(gpu);
}

TEST(fills_of_every_width_reach_odd_places)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, 4096);
    unsigned char got[4096];
    for (uint32_t width = 1; width <= 4; width *= 2) {
        assert_ok(gpuhal_fill(NULL, buffer, 0, sizeof got, 0xee, 1));
        assert_ok(gpuhal_fill(NULL, buffer, 3, 1000, 0x44332211, width));
        assert_ok(gpuhal_read(NULL, got, buffer, 0, sizeof got));
        for (size_t i = 0; i < sizeof got; i++) {
            bool inside = i >= 3 && i < 1003;
            assert_int_equal(got[i], inside ? 0x11 * (1 + (i - 3) % width) : 0xee);
        }
    }
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

TEST(an_alignment_above_the_drivers_own_is_kept)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    for (uint64_t alignment = 1; alignment <= 2 * MIB; alignment *= 4) {
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1000, .alignment = alignment};
        gpuhal_buffer *buffer = NULL;
        unsigned char sent[1000], got[1000] = {0};
        memset(sent, 0x3c, sizeof sent);
        assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
        assert_int_equal(gpuhal_buffer_address(buffer) % alignment, 0);
        assert_ok(gpuhal_write(NULL, buffer, 0, sent, sizeof sent));
        assert_ok(gpuhal_read(NULL, got, buffer, 0, sizeof got));
        assert_memory_equal(got, sent, sizeof sent);
        gpuhal_buffer_release(buffer);
    }
    close_clean(gpu);
}

/* Simulates HIP-CPU, which allocates page-locked memory with malloc(). */
TEST(page_locked_memory_is_aligned_even_if_the_driver_does_not_align_it)
{
    use_machine("devices 1; host_offset 16");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    for (uint64_t alignment = 1; alignment <= 16384; alignment *= 4) {
        const gpuhal_buffer_desc desc = {
            .size = sizeof desc, .bytes = 5000, .kind = GPUHAL_MEMORY_UPLOAD, .alignment = alignment};
        gpuhal_buffer *buffer = NULL;
        assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
        const uintptr_t host = (uintptr_t)gpuhal_buffer_host(buffer);
        assert_int_equal(host % (alignment > 64 ? alignment : 64), 0);
        memset((void *)host, 0x3c, 5000);
        gpuhal_buffer_release(buffer);
    }
    close_clean(gpu);
}

TEST(out_of_memory_reports_requested_free_and_total_and_the_device_goes_on)
{
    use_machine("devices 1; memory 0 64M");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *first = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB), *second = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 40 * MIB};
    assert_int_equal(gpuhal_buffer_create(device, &desc, &second), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_error *error = gpuhal_last_error();
    assert_null(second);
    assert_int_equal(error->bytes_asked, 40 * MIB);
    assert_int_equal(error->bytes_total, 64 * MIB);
    assert_true(error->bytes_free < 24 * MIB && error->bytes_free >= 16 * MIB);
    assert_int_equal(error->vendor_code, FAKE_ERROR_OUT_OF_MEMORY);
    assert_string_equal(error->device, BACKEND ":0");
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB));
    close_clean(gpu);
}

/* ---- several callers */

static void *copy_for_a_while(void *user)
{
    gpuhal *gpu = user;
    gpuhal_buffer *one = buffer_or_fail(select_or_fail(gpu, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, 200000);
    gpuhal_buffer *two = buffer_or_fail(select_or_fail(gpu, BACKEND ":1"), GPUHAL_MEMORY_DEVICE, 200000);
    exercise_pair(one, two, 20, (uint64_t)(uintptr_t)one);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    return NULL;
}

TEST(twelve_threads_copy_at_once_more_than_there_are_internal_streams)
{
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_backend(0);
    pthread_t threads[12];
    for (int i = 0; i < 12; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, copy_for_a_while, gpu), 0);
    }
    for (int i = 0; i < 12; i++) {
        pthread_join(threads[i], NULL);
    }
    close_clean(gpu);
}

TEST(two_gpuhal_objects_share_a_device_and_each_lets_go_for_itself)
{
    use_machine("devices 1");
    gpuhal *one = open_backend(0), *two = open_backend(0);
    gpuhal_buffer *first = buffer_or_fail(select_or_fail(one, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_buffer *second = buffer_or_fail(select_or_fail(two, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, 64);
    char got[6] = "";
    assert_ok(gpuhal_write(NULL, second, 0, "hello", 6));
    gpuhal_buffer_release(first);
    gpuhal_close(one);
    assert_ok(gpuhal_read(NULL, got, second, 0, 6));
    assert_string_equal(got, "hello");
    assert_int_equal(fake_report_get()->contexts_created, 1);
    gpuhal_buffer_release(second);
    gpuhal_close(two);
    expect_clean();
}

/* Runs in a child of a fork. */
static void expect_forked(const void *what)
{
    gpuhal_buffer *buffer = *(gpuhal_buffer *const *)what;
    gpuhal_device *device = gpuhal_buffer_device(buffer);
    gpuhal *of_parent = gpuhal_device_owner(device);
    char byte = 0;
    assert_int_equal(gpuhal_read(NULL, &byte, buffer, 0, 1), GPUHAL_ERROR_FORKED);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_FORKED);
    gpuhal_buffer_release(buffer);
    gpuhal_close(of_parent);
    gpuhal *own = open_backend(0);
    const gpuhal_plugin_report report = report_of_backend(own);
    assert_int_equal(report.state, GPUHAL_PLUGIN_FORKED);
    assert_non_null(strstr(report.reason, "fork before opening, or exec"));
    assert_int_equal(report.device_count, 0);
    assert_ok(gpuhal_device_verify(select_or_fail(own, "cpu")));
    gpuhal_close(own);
}

TEST(a_child_of_a_fork_is_refused_without_a_call_to_the_driver)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, 64);
    wait_until_other_threads_sleep();
    assert_true(passes_in_child(expect_forked, &buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    gpu = open_backend(0);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_OK); /* the child recorded no fault against it */
    gpuhal_close(gpu);
    expect_clean(); /* the fake counts a call in the child as a violation */
}

/* ---- the caller's thread */

/* Returns the thread's state: CUDA's current context, or HIP's current device. HIP also keeps the thread's last error
 * for the application, so the library's calls must not leave one. */
static uintptr_t current_of(const vendor_api *api)
{
#ifdef GPUHAL_CUDA_PLUGIN
    CUcontext context = NULL;
    assert_int_equal(api->cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return (uintptr_t)context;
#else
    int device = -1;
    assert_int_equal(api->hipPeekAtLastError(), hipSuccess);
    assert_int_equal(api->hipGetDevice(&device), hipSuccess);
    return (uintptr_t)device;
#endif
}

static void expect_untouched(const vendor_api *api, uintptr_t wanted, const char *after)
{
    if (current_of(api) != wanted) {
        fail_msg("after %s another context or device is current", after);
    }
}

static void use_everything(const vendor_api *api, gpuhal *gpu)
{
    const uintptr_t mine = current_of(api);
    gpuhal_device *one = select_or_fail(gpu, BACKEND ":0"), *two = select_or_fail(gpu, BACKEND ":1");
    unsigned char bytes[256] = {1};
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_open(one));
    expect_untouched(api, mine, "open");
    gpuhal_buffer *a = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 4096),
                  *b = buffer_or_fail(two, GPUHAL_MEMORY_DEVICE, 4096);
    gpuhal_buffer *c = buffer_or_fail(one, GPUHAL_MEMORY_UPLOAD, 4096);
    expect_untouched(api, mine, "create");
    assert_ok(gpuhal_write(NULL, a, 0, bytes, sizeof bytes));
    expect_untouched(api, mine, "write");
    assert_ok(gpuhal_copy(NULL, b, 0, a, 0, 4096));
    expect_untouched(api, mine, "copy to another device");
    assert_ok(gpuhal_copy(NULL, a, 0, c, 0, 4096));
    expect_untouched(api, mine, "copy from page-locked memory");
    assert_ok(gpuhal_fill(NULL, a, 0, 4096, 0, 4));
    expect_untouched(api, mine, "fill");
    assert_ok(gpuhal_read(NULL, bytes, a, 0, sizeof bytes));
    expect_untouched(api, mine, "read");
    assert_ok(gpuhal_device_native(one, &native));
    expect_untouched(api, mine, "native");
    (void)sample_one(one, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    (void)sample_one(two, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    expect_untouched(api, mine, "sample");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 4096 * MIB};
    gpuhal_buffer *none = NULL;
    assert_int_not_equal(gpuhal_buffer_create(one, &desc, &none), GPUHAL_OK);
    assert_int_not_equal(gpuhal_buffer_create(two, &desc, &none), GPUHAL_OK);
    expect_untouched(api, mine, "a failed create");
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    expect_untouched(api, mine, "release");
}

TEST(every_call_leaves_the_current_context_or_device_of_the_program)
{
    use_machine("devices 3");
    const vendor_api api = load_api();
#ifdef GPUHAL_CUDA_PLUGIN
    CUcontext mine = NULL;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 1), CUDA_SUCCESS);
#else
    assert_int_equal(api.hipSetDevice(2), hipSuccess);
#endif
    const uintptr_t before = current_of(&api);
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    expect_untouched(&api, before, "gpuhal_open");
    use_everything(&api, gpu);
    gpuhal_close(gpu);
    expect_untouched(&api, before, "gpuhal_close");
#ifdef GPUHAL_CUDA_PLUGIN
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
#endif
    expect_clean();
}

TEST(a_thread_that_had_made_nothing_current_has_nothing_afterwards)
{
    use_machine("devices 2");
    const vendor_api api = load_api();
    const uintptr_t before = current_of(&api);
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    use_everything(&api, gpu);
    gpuhal_close(gpu);
    expect_untouched(&api, before, "gpuhal_close");
    expect_clean();
}

#include "test_main.h"
