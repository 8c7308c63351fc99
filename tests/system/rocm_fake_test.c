/* The ROCm plugin over the fake runtime, through the public API: what works, and what it leaves alone. */
#include "exercise.h"
#include "rocm_fake.h"

#include <pthread.h>
#include <sys/wait.h>

static void expect_text(const gpuhal_device *device, gpuhal_key key, const char *wanted)
{
    const char *text = NULL;
    assert_ok(gpuhal_device_text(device, key, &text));
    assert_string_equal(text, wanted);
}

static uint64_t number_of(const gpuhal_device *device, gpuhal_key key)
{
    uint64_t value = 0;
    assert_ok(gpuhal_device_u64(device, key, &value));
    return value;
}

static gpuhal_value sample_one(gpuhal_device *device, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    return value;
}

TEST(devices_are_listed_with_their_identity_and_nobody_makes_a_context)
{
    use_machine("devices 2; memory 1 512M; name 1 Fake MI210; pci 0 0000:c1:00.0; uuid 0 0123456789abcdef");
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *two = select_or_fail(gpu, "rocm:1");
    expect_text(one, GPUHAL_FACT_NAME, "Fake MI300X");
    expect_text(two, GPUHAL_FACT_NAME, "Fake MI210");
    expect_text(one, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    expect_text(two, GPUHAL_FACT_PCI_ADDRESS, "0000:21:00.0");
    expect_text(one, GPUHAL_FACT_UUID, "30313233-3435-3637-3839-616263646566"); /* the sixteen characters */
    assert_int_equal(number_of(two, GPUHAL_FACT_NATIVE_INDEX), 1);
    assert_int_equal(number_of(two, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 512 * MIB);
    assert_int_equal(number_of(one, GPUHAL_FACT_COMPUTE_UNITS), 304);
    assert_int_equal(number_of(one, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ), 2100000000);
    assert_int_equal(number_of(one, GPUHAL_FACT_VENDOR_ID), 0x1002);
    assert_int_equal(number_of(one, GPUHAL_FACT_TYPE), GPUHAL_DEVICE_GPU);
    assert_int_equal(number_of(one, GPUHAL_FACT_SOFTWARE), 0);
    assert_string_equal(gpuhal_device_id(select_or_fail(gpu, "auto")), "rocm:0");
    assert_int_equal(contexts_ever(), 0);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(chips_without_a_unique_id_have_no_uuid_and_stay_two_devices)
{
    use_machine("devices 2; uuid * none");
    gpuhal *gpu = open_rocm(0);
    const char *text = NULL;
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:0"), GPUHAL_FACT_UUID, &text), GPUHAL_OK);
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_UUID, &text), GPUHAL_OK);
    assert_int_equal(report_of_plugin(gpu, "rocm").device_count, 2);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(the_parts_of_a_divided_gpu_have_one_address_and_numbers_and_work)
{
    use_machine("devices 2; partitions 0 3; memory 0 384M");
    gpuhal *gpu = open_rocm(0);
    static const char *const ids[] = {"rocm:0", "rocm:1", "rocm:2"}, *const parts[] = {"0", "1", "2"};
    for (int i = 0; i < 3; i++) {
        gpuhal_device *part = select_or_fail(gpu, ids[i]);
        expect_text(part, GPUHAL_FACT_PCI_ADDRESS, "0000:11:00.0");
        expect_text(part, GPUHAL_FACT_PARTITION, parts[i]);
        assert_int_equal(number_of(part, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 128 * MIB);
        assert_ok(gpuhal_device_verify(part));
    }
    const char *text = NULL;
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:3"), GPUHAL_FACT_PARTITION, &text), GPUHAL_OK);
    gpuhal_close(gpu);
    expect_clean();
}

/* As kernels give it that keep the number of a part beside the address: HIP hands on the address alone. */
TEST(devices_that_share_an_address_are_parts_and_keep_apart)
{
    use_machine("devices 3; pci 0 0000:c1:00.0; pci 1 0000:31:00.0; pci 2 0000:c1:00.0");
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *other = select_or_fail(gpu, "rocm:2");
    const char *text = NULL;
    expect_text(one, GPUHAL_FACT_PARTITION, "0");
    expect_text(other, GPUHAL_FACT_PARTITION, "1");
    expect_text(other, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_PARTITION, &text), GPUHAL_OK);
    assert_ok(gpuhal_device_verify(one));
    assert_ok(gpuhal_device_verify(other));
    gpuhal_close(gpu);
    expect_clean();
}

/* ---- bytes */

TEST(transfers_within_a_device_are_byte_exact_for_every_kind_of_memory)
{
    use_machine("devices 1; slow_us 20");
    gpuhal *gpu = open_rocm(0);
    exercise_kinds(select_or_fail(gpu, "rocm:0"), 200003, 40, 1);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(transfers_between_devices_and_the_cpu_are_byte_exact)
{
    static const char *const ids[] = {"rocm:0", "rocm:1", "cpu:0"};
    static const char *const machines[] = {"devices 2; slow_us 20", "devices 2; slow_us 20; link 0 1 system"};
    for (int machine = 0; machine < 2; machine++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(30);
            use_machine(machines[machine]);
            gpuhal *gpu = open_rocm(0);
            for (int pair = 0; pair < 9; pair++) {
                gpuhal_buffer *one = buffer_or_fail(select_or_fail(gpu, ids[pair / 3]), GPUHAL_MEMORY_DEVICE, 300001);
                gpuhal_buffer *two = buffer_or_fail(select_or_fail(gpu, ids[pair % 3]), GPUHAL_MEMORY_DEVICE, 300001);
                exercise_pair(one, two, 30, (uint64_t)pair);
                gpuhal_buffer_release(one);
                gpuhal_buffer_release(two);
            }
            gpuhal_close(gpu);
            expect_clean();
            _exit(0);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
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

TEST(rectangles_are_byte_exact_within_and_between_devices)
{
    enum { BOX = 8192 };
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_rocm(0);
    static const char *const targets[] = {"rocm:0", "rocm:1"};
    const uint64_t extent[3] = {100, 7, 3};
    unsigned char *sent = pattern_of(5, BOX), *got = pattern_of(6, BOX);
    gpuhal_buffer *from = buffer_or_fail(select_or_fail(gpu, "rocm:0"), GPUHAL_MEMORY_DEVICE, BOX);
    const gpuhal_rect here = {.buffer = from, .offset = 5, .row_pitch = 128, .slice_pitch = 128 * 7};
    assert_ok(gpuhal_write(NULL, from, 0, sent, BOX));
    for (int i = 0; i < 2; i++) {
        gpuhal_buffer *to = buffer_or_fail(select_or_fail(gpu, targets[i]), GPUHAL_MEMORY_DEVICE, BOX);
        const gpuhal_rect there = {.buffer = to, .offset = 11, .row_pitch = 160, .slice_pitch = 160 * 9};
        assert_ok(gpuhal_fill(NULL, to, 0, BOX, 0x5a, 1));
        assert_ok(gpuhal_copy_rect(NULL, &there, &here, extent));
        assert_ok(gpuhal_read(NULL, got, to, 0, BOX));
        expect_box(got, sent, BOX);
        gpuhal_buffer_release(to);
    }
    gpuhal_buffer_release(from);
    free(sent);
    free(got);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(an_alignment_above_the_runtimes_own_is_kept)
{
    use_machine("devices 1");
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    for (uint64_t alignment = 1; alignment <= 2 * MIB; alignment *= 4) {
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1000, .alignment = alignment};
        gpuhal_buffer *buffer = NULL;
        assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
        assert_int_equal(gpuhal_buffer_address(buffer) % alignment, 0);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    expect_clean();
}

TEST(out_of_memory_tells_asked_free_and_total_and_the_device_goes_on)
{
    use_machine("devices 1; memory 0 64M");
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    gpuhal_buffer *first = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB), *second = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 40 * MIB};
    assert_int_equal(gpuhal_buffer_create(device, &desc, &second), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_error *error = gpuhal_last_error();
    assert_null(second);
    assert_int_equal(error->bytes_asked, 40 * MIB);
    assert_int_equal(error->bytes_total, 64 * MIB);
    assert_true(error->bytes_free < 24 * MIB && error->bytes_free >= 16 * MIB);
    assert_int_equal(error->vendor_code, hipErrorOutOfMemory);
    assert_string_equal(error->device, "rocm:0");
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB));
    gpuhal_close(gpu);
    expect_clean();
}

static void *copy_for_a_while(void *user)
{
    gpuhal *gpu = user;
    gpuhal_buffer *one = buffer_or_fail(select_or_fail(gpu, "rocm:0"), GPUHAL_MEMORY_DEVICE, 200000);
    gpuhal_buffer *two = buffer_or_fail(select_or_fail(gpu, "rocm:1"), GPUHAL_MEMORY_DEVICE, 200000);
    exercise_pair(one, two, 20, (uint64_t)(uintptr_t)one);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    return NULL;
}

TEST(twelve_threads_copy_at_once_more_than_there_are_lanes)
{
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_rocm(0);
    pthread_t threads[12];
    for (int i = 0; i < 12; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, copy_for_a_while, gpu), 0);
    }
    for (int i = 0; i < 12; i++) {
        pthread_join(threads[i], NULL);
    }
    gpuhal_close(gpu);
    expect_clean();
}

/* ---- versions */

/* In a child: the whole of it with one runtime. */
static void expect_version_works(const char *folder, int major)
{
    char version[16];
    use_machine("devices 2; slow_us 20");
    use_runtime(folder, major);
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:1");
    const char *text = NULL;
    snprintf(version, sizeof version, "%d.", major);
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_API_VERSION, &text));
    expect_word(text, version);
    exercise_kinds(device, 100003, 20, 2);
    assert_int_equal(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_VIRTUAL_MEMORY ? 1 : 0, major > 5);
    assert_int_equal(number_of(device, GPUHAL_FACT_COMPUTE_UNITS), 304);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(every_major_version_works_with_its_own_numbers_and_one_without_optional_functions_too)
{
    static const struct {
        const char *folder;
        int major;
    } versions[] = {{"", 5}, {"", 6}, {"", 7}, {"old/", 5}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(30);
            expect_version_works(versions[i].folder, versions[i].major);
            _exit(0);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status) {
            fail_msg("%slibamdhip64.so.%d: status %#x", versions[i].folder, versions[i].major, (unsigned)status);
        }
    }
}

/* ---- the caller's thread */

static void expect_untouched(const runtime *api, int wanted, const char *after)
{
    int device = -1;
    const hipError_t last = api->hipPeekAtLastError();
    assert_int_equal(api->hipGetDevice(&device), hipSuccess);
    if (device != wanted || last) {
        fail_msg("after %s the current device is %d, and the last error %u", after, device, last);
    }
}

/* Every call once, with a look at the thread's state after each. */
static void use_everything(const runtime *api, gpuhal *gpu, int mine)
{
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *two = select_or_fail(gpu, "rocm:1");
    unsigned char bytes[256] = {1};
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_open(one));
    expect_untouched(api, mine, "open");
    gpuhal_buffer *a = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 4096), *b = buffer_or_fail(two, GPUHAL_MEMORY_DEVICE, 4096);
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
    (void)sample_one(two, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    expect_untouched(api, mine, "sample");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 4096 * MIB};
    gpuhal_buffer *none = NULL;
    assert_int_not_equal(gpuhal_buffer_create(two, &desc, &none), GPUHAL_OK);
    expect_untouched(api, mine, "a failed create");
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    expect_untouched(api, mine, "release");
}

TEST(the_programs_current_device_and_last_error_are_the_same_after_every_call)
{
    use_machine("devices 3");
    const runtime api = load_runtime();
    assert_int_equal(api.hipSetDevice(2), hipSuccess);
    gpuhal *gpu = open_rocm(GPUHAL_ISOLATION_NEVER);
    expect_untouched(&api, 2, "gpuhal_open");
    use_everything(&api, gpu, 2);
    gpuhal_close(gpu);
    expect_untouched(&api, 2, "gpuhal_close");
    expect_clean();
}

TEST(a_child_of_a_fork_is_refused_without_a_call_to_the_runtime)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    use_machine("devices 1");
    gpuhal *gpu = open_rocm(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "rocm:0"), GPUHAL_MEMORY_DEVICE, 64);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        alarm(10);
        _exit(gpuhal_read(NULL, &byte, buffer, 0, 1) == GPUHAL_ERROR_FORKED ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_clean(); /* the fake counts a call in the child as a violation */
}

#include "test_main.h"
