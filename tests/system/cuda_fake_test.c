/* The CUDA plugin over the fake driver, through the public API: what works, and what it costs. */
#include "cuda_fake.h"

#include <pthread.h>
#include <sys/wait.h>

enum { BYTES = 3 * 1024 * 1024 + 5 };

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
    use_machine("devices 2; memory 1 512M; name 1 Fake B200; pci 0 0000:c1:00.0");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    expect_text(one, GPUHAL_FACT_NAME, "Fake H100");
    expect_text(two, GPUHAL_FACT_NAME, "Fake B200");
    expect_text(one, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    expect_text(two, GPUHAL_FACT_UUID, "10111213-1415-1617-1819-1a1b1c1d1e1f");
    expect_text(one, GPUHAL_FACT_DRIVER_VERSION, "580.65.06");
    assert_int_equal(number_of(two, GPUHAL_FACT_NATIVE_INDEX), 1);
    assert_int_equal(number_of(two, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 512 * MIB);
    assert_int_equal(number_of(one, GPUHAL_FACT_TYPE), GPUHAL_DEVICE_GPU);
    assert_int_equal(number_of(one, GPUHAL_FACT_SOFTWARE), 0);
    gpuhal_device *chosen = select_or_fail(gpu, "auto");
    assert_string_equal(gpuhal_device_id(chosen), "cuda:0");
    assert_int_equal(contexts_ever(), 0);
    gpuhal_close(gpu);
    remove_reports();
}

/* As an engine gets its functions: from the library that GPUHAL_CUDA_LIBRARY names here, not the installed one. */
TEST(functions_of_the_vendor_come_from_the_library_that_the_plugin_works_with)
{
    use_machine("devices 1");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_vendor_fn *found = NULL;
    void *library = dlopen(getenv("GPUHAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL), *wanted = NULL;
    assert_non_null(library);
    assert_ok(gpuhal_device_symbol(device, "cuMemAlloc_v2", &found));
    memcpy(&wanted, &found, sizeof wanted);
    assert_ptr_equal(wanted, dlsym(library, "cuMemAlloc_v2"));
    assert_int_equal(gpuhal_device_symbol(device, "cuMemAlloc_v9", &found), GPUHAL_ERROR_NOT_FOUND);
    assert_null(found);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "libcuda.so.1 has no function cuMemAlloc_v9"));
    assert_int_equal(gpuhal_device_symbol(device, NULL, &found), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
    expect_clean();
}

/* What an engine chooses kernels and memory by. The numbers of attributes are those of cuda.h; the data sheet of the H100 has
 * 3.35 TB/s. */
TEST(what_a_device_computes_with_is_listed_in_the_units_of_the_facts)
{
    /* The second device is an sm_61 without a width of its memory's bus. */
    use_machine("devices 2; attribute 1 75 6; attribute 1 76 1; attribute 1 37 0");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    const uint64_t both_hosts = 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    const uint32_t all = GPUHAL_DATA_FP16 | GPUHAL_DATA_BF16 | GPUHAL_DATA_FP64 | GPUHAL_DATA_FP8 | GPUHAL_DATA_INT8 |
                         GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64 | GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4;
    expect_text(one, GPUHAL_FACT_TARGET_ARCHITECTURE, "sm_90");
    expect_text(two, GPUHAL_FACT_TARGET_ARCHITECTURE, "sm_61");
    assert_int_equal(number_of(one, GPUHAL_FACT_DATA_TYPES), all);
    assert_int_equal(number_of(two, GPUHAL_FACT_DATA_TYPES),
                     all & ~(uint32_t)(GPUHAL_DATA_BF16 | GPUHAL_DATA_FP8 | GPUHAL_DATA_INT4));
    assert_int_equal(number_of(one, GPUHAL_FACT_SUBGROUP_SIZE_MIN), 32);
    assert_int_equal(number_of(one, GPUHAL_FACT_SUBGROUP_SIZE_MAX), 32);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_X), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_Y), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_Z), 64);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_MEMORY_BYTES), 48 << 10);
    assert_int_equal(number_of(one, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND), UINT64_C(3352320000000));
    assert_int_equal(gpuhal_device_missing(two, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, NULL), GPUHAL_MISSING_FAILED);
    assert_int_equal(number_of(one, GPUHAL_FACT_HOST_VISIBLE_KINDS), both_hosts);
    assert_int_equal(number_of(one, GPUHAL_FACT_HOST_COHERENT_KINDS), both_hosts);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(free_memory_is_sampled_without_opening_and_without_a_context)
{
    use_machine("devices 2; memory * 1G; used 1 100M");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:1");
    gpuhal_value value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_int_equal(value.missing, 0);
    assert_int_equal(value.u64, 924 * MIB);
    assert_int_equal(contexts_ever(), 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64 * MIB);
    uint64_t before = value.u64;
    value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_true(value.u64 <= before - 64 * MIB);
    assert_int_equal(contexts_ever(), 1);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(other_values_are_sampled_in_the_units_of_their_names)
{
    use_machine("devices 1");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    assert_int_equal(sample_one(device, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS).u64, 41000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS).u64, 55000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_POWER_MICROWATTS).u64, 123456000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS).u64, 700000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_CLOCK_CORE_HERTZ).u64, 1755000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_CLOCK_MEMORY_HERTZ).u64, 2619000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE).u64, 370);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE).u64, 120);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND).u64, 5000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND).u64, 3000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_THROTTLE_REASONS).u64, GPUHAL_THROTTLE_POWER_CAP);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_ECC_CORRECTED_TOTAL).u64, 3);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL).u64, 2);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_FAN_PERMILLE).missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(contexts_ever(), 0);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(verify_passes_on_every_device_and_leaves_nothing)
{
    use_machine("devices 2; slow_us 50");
    gpuhal *gpu = open_cuda(0);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cuda:0")));
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cuda:1")));
    gpuhal_close(gpu);
    expect_clean();
}

TEST(copies_between_two_devices_and_the_cpu_are_byte_exact_in_every_direction)
{
    static const char *const ids[] = {"cuda:0", "cuda:1", "cpu:0"};
    use_machine("devices 2; link 0 1 system; slow_us 100");
    gpuhal *gpu = open_cuda(0);
    unsigned char *sent = pattern_of(7, BYTES), *got = pattern_of(8, BYTES);
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
    gpuhal_close(gpu);
    expect_clean();
}

TEST(every_kind_of_memory_copies_to_every_other)
{
    use_machine("devices 1; slow_us 100");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    unsigned char *sent = pattern_of(3, BYTES), *got = pattern_of(4, BYTES);
    const uint64_t kinds = number_of(device, GPUHAL_FACT_MEMORY_KINDS);
    for (uint32_t pair = 0; pair < 16; pair++) {
        if (!(kinds >> pair / 4 & 1) || !(kinds >> pair % 4 & 1)) {
            continue;
        }
        gpuhal_buffer *from = buffer_or_fail(device, pair / 4, BYTES), *to = buffer_or_fail(device, pair % 4, BYTES);
        assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
        assert_ok(gpuhal_fill(NULL, to, 0, BYTES, 0x77, 1));
        assert_ok(gpuhal_copy(NULL, to, 5, from, 2, BYTES - 5));
        assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
        assert_memory_equal(got, "wwwww", 5);
        assert_memory_equal(got + 5, sent + 2, BYTES - 5);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
    }
    free(sent);
    free(got);
    gpuhal_close(gpu);
    expect_clean();
}

/* A box of 100 bytes, 7 rows and 3 slices in the middle of memory that has other pitches on both sides. */
static void copy_box(gpuhal_buffer *to, void *to_host, gpuhal_buffer *from, void *from_host)
{
    const uint64_t extent[3] = {100, 7, 3};
    const gpuhal_rect there = {.buffer = to, .host = to_host, .offset = 11, .row_pitch = 160, .slice_pitch = 160 * 9};
    const gpuhal_rect here = {.buffer = from, .host = from_host, .offset = 5, .row_pitch = 128, .slice_pitch = 128 * 7};
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
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    unsigned char *sent = pattern_of(5, BOX), *got = pattern_of(6, BOX);
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
    gpuhal_close(gpu);
    expect_clean();
}

TEST(fills_of_every_width_reach_odd_places)
{
    use_machine("devices 1");
    gpuhal *gpu = open_cuda(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "cuda:0"), GPUHAL_MEMORY_DEVICE, 4096);
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
    gpuhal_close(gpu);
    expect_clean();
}

TEST(out_of_memory_tells_asked_free_and_total_and_the_device_goes_on)
{
    use_machine("devices 1; memory 0 64M");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *first = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB), *second = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 40 * MIB};
    assert_int_equal(gpuhal_buffer_create(device, &desc, &second), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_error *error = gpuhal_last_error();
    assert_null(second);
    assert_int_equal(error->bytes_asked, 40 * MIB);
    assert_int_equal(error->bytes_total, 64 * MIB);
    assert_true(error->bytes_free < 24 * MIB && error->bytes_free >= 16 * MIB);
    assert_int_equal(error->vendor_code, CUDA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(error->device, "cuda:0");
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 40 * MIB));
    gpuhal_close(gpu);
    expect_clean();
}

TEST(an_alignment_above_the_drivers_own_is_kept)
{
    use_machine("devices 1");
    gpuhal *gpu = open_cuda(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
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
    gpuhal_close(gpu);
    expect_clean();
}

static void *copy_for_a_while(void *user)
{
    gpuhal *gpu = user;
    unsigned char *sent = pattern_of((uint32_t)(uintptr_t)&gpu, 300000), *got = pattern_of(2, 300000);
    gpuhal_buffer *one = buffer_or_fail(select_or_fail(gpu, "cuda:0"), GPUHAL_MEMORY_DEVICE, 300000);
    gpuhal_buffer *two = buffer_or_fail(select_or_fail(gpu, "cuda:1"), GPUHAL_MEMORY_DEVICE, 300000);
    for (int i = 0; i < 10; i++) {
        assert_ok(gpuhal_write(NULL, one, 0, sent, 300000));
        assert_ok(gpuhal_copy(NULL, two, 0, one, 0, 300000));
        assert_ok(gpuhal_read(NULL, got, two, 0, 300000));
        assert_memory_equal(got, sent, 300000);
    }
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    free(sent);
    free(got);
    return NULL;
}

TEST(twelve_threads_copy_at_once_more_than_there_are_lanes)
{
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_cuda(0);
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

TEST(two_gpuhal_objects_share_a_device_and_each_lets_go_for_itself)
{
    use_machine("devices 1");
    gpuhal *one = open_cuda(0), *two = open_cuda(0);
    gpuhal_buffer *first = buffer_or_fail(select_or_fail(one, "cuda:0"), GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_buffer *second = buffer_or_fail(select_or_fail(two, "cuda:0"), GPUHAL_MEMORY_DEVICE, 64);
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

TEST(a_child_of_a_fork_is_refused_without_a_call_to_the_driver)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    use_machine("devices 1");
    gpuhal *gpu = open_cuda(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "cuda:0"), GPUHAL_MEMORY_DEVICE, 64);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        alarm(10);
        const bool refused = gpuhal_read(NULL, &byte, buffer, 0, 1) == GPUHAL_ERROR_FORKED;
        const bool works = gpuhal_device_verify(select_or_fail(gpu, "cpu")) == GPUHAL_OK;
        _exit(refused && works ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_clean(); /* the fake counts a call in the child as a violation */
}

/* ---- the caller's context */

static void expect_current(const driver *api, CUcontext wanted, const char *after)
{
    CUcontext current = NULL;
    assert_int_equal(api->cuCtxGetCurrent(&current), CUDA_SUCCESS);
    if (current != wanted) {
        fail_msg("after %s another context is current", after);
    }
}

/* Every call once, with a look at the current context after each. */
static void use_everything(const driver *api, gpuhal *gpu, CUcontext mine)
{
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    unsigned char bytes[256] = {1};
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_open(one));
    expect_current(api, mine, "open");
    gpuhal_buffer *a = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 4096), *b = buffer_or_fail(two, GPUHAL_MEMORY_DEVICE, 4096);
    gpuhal_buffer *c = buffer_or_fail(one, GPUHAL_MEMORY_UPLOAD, 4096);
    expect_current(api, mine, "create");
    assert_ok(gpuhal_write(NULL, a, 0, bytes, sizeof bytes));
    expect_current(api, mine, "write");
    assert_ok(gpuhal_copy(NULL, b, 0, a, 0, 4096));
    expect_current(api, mine, "copy to another device");
    assert_ok(gpuhal_copy(NULL, a, 0, c, 0, 4096));
    expect_current(api, mine, "copy from page-locked memory");
    assert_ok(gpuhal_fill(NULL, a, 0, 4096, 0, 4));
    expect_current(api, mine, "fill");
    assert_ok(gpuhal_read(NULL, bytes, a, 0, sizeof bytes));
    expect_current(api, mine, "read");
    assert_ok(gpuhal_device_native(one, &native));
    expect_current(api, mine, "native");
    (void)sample_one(one, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    expect_current(api, mine, "sample");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1024 * MIB};
    gpuhal_buffer *none = NULL;
    assert_int_not_equal(gpuhal_buffer_create(one, &desc, &none), GPUHAL_OK);
    expect_current(api, mine, "a failed create");
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    expect_current(api, mine, "release");
}

TEST(the_programs_own_context_stays_current_through_every_call)
{
    use_machine("devices 2");
    const driver api = load_driver();
    CUcontext mine = NULL;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 1), CUDA_SUCCESS);
    gpuhal *gpu = open_cuda(GPUHAL_ISOLATION_NEVER);
    expect_current(&api, mine, "gpuhal_open");
    use_everything(&api, gpu, mine);
    gpuhal_close(gpu);
    expect_current(&api, mine, "gpuhal_close");
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

TEST(a_thread_without_a_context_has_none_afterwards)
{
    use_machine("devices 2");
    const driver api = load_driver();
    gpuhal *gpu = open_cuda(GPUHAL_ISOLATION_NEVER);
    use_everything(&api, gpu, NULL);
    gpuhal_close(gpu);
    expect_current(&api, NULL, "gpuhal_close");
    expect_clean();
}

TEST(the_primary_context_is_shared_with_the_program_and_lives_as_long_as_it_wants)
{
    use_machine("devices 1");
    const driver api = load_driver();
    CUcontext primary = NULL;
    assert_int_equal(api.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    gpuhal *gpu = open_cuda(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_native(device, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_CUDA_DEVICE);
    assert_ptr_equal((void *)(uintptr_t)native.values[0], primary);
    gpuhal_close(gpu);
    assert_int_equal(fake_report_get()->contexts_alive, 1);
    assert_int_equal(fake_report_get()->contexts_created, 1);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    expect_clean();
}

#include "test_main.h"
