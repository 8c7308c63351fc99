/* Tests the CPU plugin, loaded from the build tree, through the public API. */
#include "system.h"

#include "support/idle.h"
#include "support/stack.h"

#include <sys/wait.h>
#include <unistd.h>

TEST(the_processor_is_found_with_its_facts_and_verifies)
{
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    gpuhal_device *cpu = select_or_fail(gpu, "cpu:0");
    uint64_t total = 0, free_bytes = 0, type = 0;
    const char *name = NULL;
    assert_ok(gpuhal_device_u64(cpu, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total));
    assert_ok(gpuhal_device_u64(cpu, GPUHAL_VALUE_MEMORY_FREE_BYTES, &free_bytes));
    assert_ok(gpuhal_device_u64(cpu, GPUHAL_FACT_TYPE, &type));
    assert_ok(gpuhal_device_text(cpu, GPUHAL_FACT_NAME, &name));
    assert_true(free_bytes > 0 && free_bytes <= total);
    assert_int_equal(type, GPUHAL_DEVICE_CPU);
    assert_true(strlen(name) > 0);
    assert_ok(gpuhal_device_verify(cpu));
    gpuhal_close(gpu);
}

/* The plugin is loaded and started, and its device is listed and opened, on the caller's thread. */
static void *open_cpu(__attribute__((unused)) void *unused)
{
    const gpuhal_config config = {
        .size = sizeof config, .backends = "cpu", .isolation = GPUHAL_ISOLATION_NEVER, .registry = "none"};
    static int failed;
    gpuhal *gpu = NULL;
    gpuhal_device *cpu = NULL;
    bool opens = gpuhal_open(&config, &gpu) == GPUHAL_OK && gpuhal_select(gpu, "cpu:0", 0, &cpu, NULL) == GPUHAL_OK &&
                 gpuhal_device_open(cpu) == GPUHAL_OK;
    gpuhal_close(gpu);
    return opens ? NULL : &failed;
}

TEST(opening_the_processor_needs_less_than_16_kib_of_the_callers_stack)
{
    if (!STACK_IS_REPORTED) {
        SKIP_TEST("sanitizers make frames larger");
    }
    assert_true(stack_taken_by(open_cpu) < 16384);
}

TEST(memory_is_there_when_the_allocation_returns)
{
    enum { BYTES = 64 << 20 };
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    assert_ok(gpuhal_device_open(select_or_fail(gpu, "cpu")));
    long before = memory_status_kib("VmRSS:");
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "cpu"), GPUHAL_MEMORY_DEVICE, BYTES);
    assert_true(memory_status_kib("VmRSS:") - before >= BYTES / 1024);
    gpuhal_buffer_release(buffer);
    assert_true(memory_status_kib("VmRSS:") - before < BYTES / 1024 / 2);
    gpuhal_close(gpu);
}

TEST(test_devices_of_different_sizes_run_out_of_memory_each_for_itself)
{
    setenv("GPUHAL_OPTIONS", "cpu.devices=8M,16M", 1);
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    gpuhal_device *small = select_or_fail(gpu, "cpu:0"), *large = select_or_fail(gpu, "cpu:1");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 5 << 20};
    gpuhal_buffer *one = buffer_or_fail(small, GPUHAL_MEMORY_DEVICE, 5 << 20), *two = NULL;
    assert_int_equal(gpuhal_buffer_create(small, &desc, &two), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_asked, 5 << 20);
    assert_int_equal(gpuhal_last_error()->bytes_total, 8 << 20);
    assert_int_equal(gpuhal_last_error()->bytes_free, 3 << 20);
    gpuhal_buffer *smaller = buffer_or_fail(small, GPUHAL_MEMORY_DEVICE, 2 << 20);
    gpuhal_buffer *other = buffer_or_fail(large, GPUHAL_MEMORY_DEVICE, 12 << 20);
    assert_ok(gpuhal_fill(NULL, one, 0, 5 << 20, 0x01020304, 4));
    assert_ok(gpuhal_copy(NULL, other, 7, one, 0, 5 << 20));
    unsigned char got[4] = {0};
    assert_ok(gpuhal_read(NULL, got, other, 7, 4));
    assert_memory_equal(got, "\x04\x03\x02\x01", 4);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(smaller);
    gpuhal_buffer_release(other);
    gpuhal_close(gpu);
}

TEST(the_cpu_works_in_the_child_of_a_fork)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    gpuhal_device *cpu = select_or_fail(gpu, "cpu");
    assert_ok(gpuhal_device_verify(cpu));
    wait_until_other_threads_sleep();
    pid_t child = fork();
    if (child == 0) {
        gpuhal *own = NULL;
        bool refused = gpuhal_device_verify(cpu) == GPUHAL_ERROR_FORKED;
        gpuhal_close(gpu);
        gpuhal_status status = gpuhal_open(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"}, &own);
        status = status ? status : gpuhal_select(own, "cpu", 0, &cpu, NULL);
        status = status ? status : gpuhal_device_verify(cpu);
        gpuhal_close(own);
        _exit(refused && status == GPUHAL_OK ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
