/* Devices: facts, opening once, sampling, and adopting. selector_test.c tests the choice of a device,
 * fork_refusals_test.c the refusals after a fork. */
#include "support/mock.h"
#include "test.h"

#include <gpuhal/native.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(keys_are_those_of_facts_in_ascending_order_and_no_value_is_among_them)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_device *device = gpuhal_device_at(gpu, 1);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_VALUE_MEMORY_FREE_BYTES, NULL), 0); /* from the device list */
    gpuhal_key key = 0, before = 0;
    uint32_t count = 0;
    for (; gpuhal_device_key_at(device, count, &key) == GPUHAL_OK; count++) {
        assert_true(key > before);
        assert_true(key < GPUHAL_VALUE_MEMORY_FREE_BYTES || key >= GPUHAL_VENDOR_FIRST);
        before = key;
    }
    assert_true(count > 3);
    assert_int_equal(gpuhal_device_key_at(device, count, &key), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(key, 0);
    gpuhal_close(gpu);
}

TEST(facts_have_a_value_or_a_reason_and_the_wrong_kind_is_refused)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    uint64_t number = 7;
    const char *text = "x", *why = NULL;
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &number), GPUHAL_OK);
    assert_int_equal(number, 1u << 30);
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_VALUE_MEMORY_FREE_BYTES, &number), GPUHAL_OK);
    assert_int_equal(number, 1u << 30);
    assert_int_equal(gpuhal_device_text(device, GPUHAL_FACT_NAME, &text), GPUHAL_OK);
    assert_string_equal(text, "Small iGPU");
    assert_int_equal(gpuhal_device_text(device, GPUHAL_FACT_UUID, &text), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(text);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_UUID, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_string_equal(why, "not set for this test");
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_NAME, &why), 0);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_NUMA_NODE, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_FACT_NUMA_NODE, &number), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(number, 0);
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_FACT_NAME, &number), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_text(device, GPUHAL_FACT_TYPE, &text), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_u64(NULL, GPUHAL_FACT_TYPE, &number), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_text(device, GPUHAL_FACT_NAME, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_capabilities(device),
                     GPUHAL_CAPABILITY_HOST_COPY | GPUHAL_CAPABILITY_FILL | GPUHAL_CAPABILITY_COPY_RECT);
    gpuhal_close(gpu);
}

TEST(a_key_that_nothing_knows_is_a_mistake_of_the_caller_and_a_text_is_named_by_its_name)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    uint64_t number = 7;
    const char *text = "x";
    assert_int_equal(gpuhal_device_u64(device, 0x777, &number), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "0x777"));
    assert_int_equal(gpuhal_device_text(device, 0x777, &text), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_VENDOR_FIRST + 1, &number), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_device_u64(device, GPUHAL_FACT_NAME, &number), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "name is a text"));
    gpuhal_value value = {.key = GPUHAL_FACT_COMPUTE_UNITS};
    assert_int_equal(gpuhal_device_sample(device, 0, &value, 1, NULL), GPUHAL_OK);
    assert_int_equal(value.missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_non_null(strstr(value.why, "a fact"));
    assert_ptr_equal(gpuhal_device_owner(device), gpu);
    assert_null(gpuhal_device_owner(NULL));
    gpuhal_close(gpu);
}

TEST(kinds_types_and_bits_have_names)
{
    assert_string_equal(gpuhal_memory_kind_name(GPUHAL_MEMORY_READBACK), "readback");
    assert_string_equal(gpuhal_memory_kind_name(GPUHAL_MEMORY_DEVICE_MAPPED), "device_mapped");
    assert_string_equal(gpuhal_memory_kind_name(GPUHAL_MEMORY_MIGRATING), "migrating");
    assert_string_equal(gpuhal_memory_kind_name(5), "unknown");
    assert_string_equal(gpuhal_memory_kind_name(GPUHAL_VENDOR_KIND_FIRST), "vendor");
    assert_string_equal(gpuhal_native_type_name(GPUHAL_VENDOR_NATIVE_FIRST), "vendor");
    assert_string_equal(gpuhal_native_type_name(GPUHAL_NATIVE_OPENCL_BUFFER), "opencl_buffer");
    assert_string_equal(gpuhal_native_type_name(GPUHAL_NATIVE_VULKAN_SEMAPHORE), "vulkan_semaphore");
    assert_string_equal(gpuhal_native_type_name(GPUHAL_NATIVE_HIP_EVENT), "hip_event");
    assert_string_equal(gpuhal_native_type_name(GPUHAL_NATIVE_OPENCL_EVENT), "opencl_event");
    assert_string_equal(gpuhal_native_type_name(99), "unknown");
    assert_string_equal(gpuhal_data_type_name(0), "fp16");
    assert_string_equal(gpuhal_data_type_name(GPUHAL_DATA_COUNT - 1), "int4");
    assert_null(gpuhal_data_type_name(GPUHAL_DATA_COUNT));
    gpuhal_mock = (gpuhal_mock_state){
        .count = 1, .devices = {{.no_staging_kinds = 1, .adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_DEVICE}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_READBACK, .bytes = 1};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "memory of kind readback"));
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE};
    assert_int_not_equal(gpuhal_device_adopt(gpuhal_device_at(gpu, 0), &native), GPUHAL_OK);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "cuda_device"));
    gpuhal_close(gpu);
}

TEST(the_bytes_held_on_a_device_are_known_without_asking_its_plugin)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_value values[2] = {{.key = GPUHAL_VALUE_MEMORY_HELD_BYTES}, {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}};
    assert_int_equal(gpuhal_device_sample(device, 0, values, 1, NULL), GPUHAL_OK);
    assert_int_equal(values[0].missing, 0);
    assert_int_equal(values[0].u64, 0);
    gpuhal_buffer *first = gpuhal_mock_buffer(gpu, 0, 1000), *second = gpuhal_mock_buffer(gpu, 0, 24);
    assert_int_equal(gpuhal_device_sample(device, 0, values, 2, NULL), GPUHAL_OK);
    assert_int_equal(values[0].u64, 1024);
    assert_string_equal(values[0].source, "library");
    assert_int_equal(values[1].missing, 0);
    assert_string_equal(values[1].source, "mock");
    gpuhal_buffer_release(first);
    assert_int_equal(gpuhal_device_sample(device, 0, values, 1, NULL), GPUHAL_OK);
    assert_int_equal(values[0].u64, 24);
    assert_int_equal(gpuhal_device_sample(gpuhal_device_at(gpu, 1), 0, values, 1, NULL), GPUHAL_OK);
    assert_int_equal(values[0].u64, 0);
    gpuhal_buffer_release(second);
    gpuhal_close(gpu);
}

TEST(the_vendors_ordinal_finds_the_device)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_device_by_native(gpu, "mock", 103, &device), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "mock:3");
    assert_int_equal(gpuhal_device_by_native(gpu, "mock", 3, &device), GPUHAL_ERROR_NOT_FOUND);
    assert_null(device);
    assert_int_equal(gpuhal_device_by_native(gpu, "cuda", 103, &device), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_device_by_native(gpu, NULL, 103, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(sampling_reads_an_unopened_device_and_says_why_a_value_is_missing)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 1000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_value values[2] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_MEMORY_USED_BYTES}};
    uint64_t time = 0;
    assert_int_equal(gpuhal_device_sample(gpuhal_device_at(gpu, 0), 0, values, 2, &time), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
    assert_int_equal(values[0].missing, 0);
    assert_int_equal(values[0].u64, 1000);
    assert_int_equal(values[1].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_string_equal(values[1].why, "the mock has no such value");
    assert_true(time > 0);
    assert_int_equal(gpuhal_device_sample(gpuhal_device_at(gpu, 1), 0, values, 1, NULL), GPUHAL_OK);
    assert_int_equal(values[0].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(gpuhal_device_sample(gpuhal_device_at(gpu, 0), 0, NULL, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

static void *open_device(void *device)
{
    return (void *)(intptr_t)gpuhal_device_open(device);
}

TEST(threads_that_open_a_device_at_once_open_it_once)
{
    enum { THREADS = 8 };
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .slow_open_ms = 30};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_device, gpuhal_device_at(gpu, 0)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        assert_null(status);
    }
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
}

TEST(a_failed_opening_reports_the_vendors_text_and_may_be_retried)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.fail_open = GPUHAL_ERROR_BUSY}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_BUSY);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockOpen");
    assert_string_equal(gpuhal_last_error()->vendor_text, "made to fail");
    assert_string_equal(gpuhal_last_error()->device, "mock:0");
    gpuhal_mock.devices[0].fail_open = GPUHAL_OK;
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 0)), GPUHAL_OK);
    assert_int_equal(gpuhal_device_open(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(two_gpuhal_objects_share_a_backend_and_nothing_else)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *one = gpuhal_mock_open(NULL, 0), *two = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *a = gpuhal_mock_buffer(one, 0, 16), *b = gpuhal_mock_buffer(two, 0, 16);
    assert_int_equal(gpuhal_mock.devices[0].openings, 2);
    assert_int_equal(gpuhal_copy(NULL, a, 0, b, 0, 16), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(a);
    gpuhal_close(one);
    assert_int_equal(gpuhal_write(NULL, b, 0, "still here", 10), GPUHAL_OK);
    gpuhal_buffer_release(b);
    gpuhal_close(two);
    gpuhal_close(NULL);
}

typedef struct nosy {
    gpuhal_device *device;
    gpuhal_status opened;
    int lines;
} nosy;

/* A listener that calls the library. */
static void use_the_device(void *user, int32_t level, const char *line)
{
    nosy *n = user;
    (void)level;
    n->lines++;
    assert_null(strchr(line, '\n'));
    if (n->device) {
        n->opened = gpuhal_device_open(n->device);
        gpuhal_device *none = NULL;
        gpuhal_select(NULL, "auto", 0, &none, NULL);
    }
}

TEST(a_listener_may_use_the_device_that_is_opening_and_leaves_the_error_alone)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .chatty_open = 1};
    nosy n = {0};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = use_the_device, .log_user = &n, .log_level = 4}, 0);
    n.device = gpuhal_device_at(gpu, 0);
    n.lines = 0;
    assert_int_equal(gpuhal_device_open(n.device), GPUHAL_OK);
    assert_int_equal(n.lines, 2);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 8);
    gpuhal_mock.devices[0].fail_write = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "x", 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_DEVICE_LOST);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockWrite");
    n.device = NULL;
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_device_that_was_lost_while_opening_is_whole_again_when_it_opens)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.fail_open = GPUHAL_ERROR_DEVICE_LOST}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_mock.devices[0].fail_open = GPUHAL_OK;
    assert_int_equal(gpuhal_device_open(device), GPUHAL_OK);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_OK);
    gpuhal_close(gpu);
}

TEST(null_objects_are_answered_and_never_touched)
{
    gpuhal_device *device = NULL;
    uint32_t a = 7, b = 7;
    gpuhal_native native = {.size = sizeof native};
    assert_int_equal(gpuhal_open(NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_count(NULL), 0);
    assert_null(gpuhal_device_at(NULL, 0));
    assert_string_equal(gpuhal_device_id(NULL), "");
    assert_string_equal(gpuhal_device_backend(NULL), "");
    assert_int_equal(gpuhal_device_by_native(NULL, "cpu", 0, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_physical(NULL, &a, &b), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(a + b, 0);
    assert_int_equal(gpuhal_device_limit_memory(NULL, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_native(NULL, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_vendor_fn *function = NULL;
    assert_int_equal(gpuhal_device_symbol(NULL, "clFinish", &function), GPUHAL_ERROR_INVALID_ARGUMENT);
}

TEST(a_plugin_without_a_vendors_library_has_no_functions_of_one)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_vendor_fn *function = (gpuhal_vendor_fn *)abort;
    assert_int_equal(gpuhal_device_symbol(gpuhal_device_at(gpu, 0), "clFinish", &function), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(function);
    assert_int_equal(gpuhal_device_symbol(gpuhal_device_at(gpu, 0), "clFinish", NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(an_adopted_device_of_the_caller_has_its_own_capabilities)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2, .devices = {{.adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_DEVICE}, {.name = "stubborn"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE, .values = {GPUHAL_MOCK_NATIVE + 1}};
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_FILL);
    assert_int_equal(gpuhal_device_adopt(device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_adopt(NULL, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_adopt(gpuhal_device_at(gpu, 1), &native), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "the mock does not know that object"));
    native.type = GPUHAL_NATIVE_VULKAN_DEVICE;
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = UINT32_MAX;
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    native =
        (gpuhal_native){.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE, .values = {GPUHAL_MOCK_NATIVE}};
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    assert_false(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_FILL);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_OK);
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_BUSY);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 64, 'f', 1), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[0].fills, 0);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
}

TEST(a_device_that_is_open_already_is_not_taken_over)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_DEVICE}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE, .values = {GPUHAL_MOCK_NATIVE}};
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 0)), GPUHAL_OK);
    assert_int_equal(gpuhal_device_adopt(gpuhal_device_at(gpu, 0), &native), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    gpuhal_close(gpu);
}

#include "test_main.h"
