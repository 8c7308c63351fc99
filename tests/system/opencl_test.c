/* Tests the OpenCL plugin with PoCL's devices `basic` (opencl:0) and `pthread` (opencl:1), or with another driver. */
#include "system.h"
#include "support/random.h"

#include "support/idle.h"
#include "support/process.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 5 * 1024 * 1024 + 3 };

TEST(both_devices_are_listed_without_loading_the_driver_into_this_process)
{
    gpuhal *gpu = open_or_fail(NULL);
    uint64_t software = 0;
    for (const char *const *id = (const char *const[]){"opencl:0", "opencl:1", NULL}; *id; id++) {
        const gpuhal_device *device = select_or_fail(gpu, *id);
        assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software));
        assert_int_equal(software, 1);
    }
    assert_false(is_mapped("libOpenCL"));
    assert_false(is_mapped("libpocl"));
    gpuhal_close(gpu);
}

/* Two identical devices without a UUID or address. The first device is hidden. */
TEST(a_device_stays_itself_after_a_rescan_beside_a_hidden_equal_one)
{
    setenv("POCL_DEVICES", "basic basic", 1);
    gpuhal *gpu = open_or_fail(NULL);
    skip_without_two_opencl_devices(gpu);
    gpuhal_close(gpu);
    gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                        .backends = "opencl",
                                        .devices = "opencl:1",
                                        .isolation = GPUHAL_ISOLATION_ALWAYS});
    const gpuhal_device *device = gpuhal_device_at(gpu, 0);
    uint64_t native = 0, generation = 0;
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_NATIVE_INDEX, &native));
    assert_int_equal(native, 1);
    assert_ok(gpuhal_rescan(gpu, &generation));
    assert_int_equal(generation, 1);
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_NATIVE_INDEX, &native));
    assert_int_equal(native, 1);
    gpuhal_close(gpu);
}

static void count_warning(void *user, int32_t level, __attribute__((unused)) const char *line)
{
    *(unsigned *)user += level <= 2;
}

/* PoCL reads the free memory when it starts. This test simulates less free memory with a limit. */
TEST(a_software_device_that_finds_less_memory_than_when_it_was_listed_is_no_warning)
{
    unsigned warnings = 0;
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .backends = "opencl",
                                                .isolation = GPUHAL_ISOLATION_ALWAYS,
                                                .log = count_warning,
                                                .log_user = &warnings});
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    uint64_t listed = 0, now = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &listed));
    setenv("POCL_MEMORY_LIMIT", "1", 1);
    assert_ok(gpuhal_device_open(device));
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &now));
    gpuhal_close(gpu);
    if (now == listed) {
        SKIP_TEST("the driver takes no limit");
    }
    assert_int_equal(warnings, 0);
}

TEST(verify_passes_on_both_devices)
{
    gpuhal *gpu = open_or_fail(NULL);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "opencl:0")));
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "opencl:1")));
    gpuhal_close(gpu);
}

TEST(copies_between_the_two_devices_and_the_cpu_are_byte_exact_in_every_direction)
{
    static const char *const ids[] = {"opencl:0", "opencl:1", "cpu:0"};
    gpuhal *gpu = open_or_fail(NULL);
    unsigned char *sent = bytes_of_seed(7, BYTES), *got = bytes_of_seed(8, BYTES);
    /* Two drivers may be unable to access each other's memory. If both devices use host memory, the host can access the
     * memory of both. */
    uint64_t visible = 0;
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "opencl:0"), GPUHAL_FACT_HOST_VISIBLE_KINDS, &visible));
    const gpuhal_path between = visible >> GPUHAL_MEMORY_DEVICE & 1 ? GPUHAL_PATH_SHARED : GPUHAL_PATH_STAGED;
    for (int pair = 0; pair < 9; pair++) {
        gpuhal_device *devices[2] = {select_or_fail(gpu, ids[pair / 3]), select_or_fail(gpu, ids[pair % 3])};
        gpuhal_buffer *from = buffer_or_fail(devices[0], GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_buffer *to = buffer_or_fail(devices[1], GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_path path = 0;
        assert_ok(gpuhal_copy_path(to, from, &path));
        assert_int_equal(path, devices[0] == devices[1]         ? GPUHAL_PATH_NATIVE
                               : pair / 3 == 2 || pair % 3 == 2 ? GPUHAL_PATH_SHARED
                                                                : between);
        assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
        assert_ok(gpuhal_fill(NULL, to, 0, BYTES, 0, 1));
        assert_ok(gpuhal_copy(NULL, to, 3, from, 1, BYTES - 3));
        memset(got, 0xff, BYTES);
        assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
        assert_memory_equal(got, "\0\0\0", 3);
        assert_memory_equal(got + 3, sent + 1, BYTES - 3);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
    }
    free(sent);
    free(got);
    gpuhal_close(gpu);
}

TEST(every_kind_of_memory_copies_to_every_other)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    unsigned char *sent = bytes_of_seed(3, BYTES), *got = bytes_of_seed(4, BYTES);
    uint64_t kinds = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_KINDS, &kinds));
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
}

TEST(a_mapping_shows_earlier_writes_and_keeps_the_bytes_of_the_host)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "opencl:0"), GPUHAL_MEMORY_DEVICE, 4096);
    void *view = NULL;
    char got[6] = {0};
    assert_ok(gpuhal_write(NULL, buffer, 100, "hello", 6));
    assert_ok(gpuhal_buffer_map(buffer, 100, 6, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &view));
    assert_string_equal(view, "hello");
    assert_int_equal(gpuhal_read(NULL, got, buffer, 100, 6), GPUHAL_ERROR_BUSY);
    memcpy(view, "world", 6);
    assert_ok(gpuhal_buffer_unmap(buffer, view));
    assert_ok(gpuhal_read(NULL, got, buffer, 100, 6));
    assert_string_equal(got, "world");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(native_objects_of_device_and_buffer_are_handed_out)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_native(device, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_OPENCL_DEVICE);
    assert_true(native.values[0] && native.values[1] && native.values[2] && native.values[3]);
    assert_ok(gpuhal_buffer_native(buffer, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_OPENCL_BUFFER);
    assert_true(native.values[0] != 0);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(above_the_largest_allocation_opencl_is_too_large_and_goes_on)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    uint64_t most = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_ALLOCATION_MAX_BYTES, &most));
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = most + 1};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_TOO_LARGE);
    assert_int_equal(gpuhal_last_error()->bytes_asked, most + 1);
    gpuhal_buffer_release(buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 1 << 20));
    gpuhal_close(gpu);
}

/* An assertion on this thread would end the process without a message, so the thread stores its failure. */
typedef struct copier {
    gpuhal_device *from, *to;
    unsigned char *sent, *got;
    char sentence[256];
    bool arrived_wrong;
} copier;

static void *copy_for_a_while(void *user)
{
    copier *own = user;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *one = NULL, *two = NULL;
    gpuhal_status status = gpuhal_buffer_create(own->from, &desc, &one);
    status = status ? status : gpuhal_buffer_create(own->to, &desc, &two);
    for (int i = 0; i < 4 && !status && !own->arrived_wrong; i++) {
        status = gpuhal_write(NULL, one, 0, own->sent, BYTES);
        status = status ? status : gpuhal_copy(NULL, two, 0, one, 0, BYTES);
        status = status ? status : gpuhal_read(NULL, own->got, two, 0, BYTES);
        own->arrived_wrong = !status && memcmp(own->got, own->sent, BYTES) != 0;
    }
    if (status) {
        snprintf(own->sentence, sizeof own->sentence, "%s", gpuhal_last_error()->sentence);
    }
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    return NULL;
}

TEST(eight_threads_copy_at_once)
{
    enum { THREADS = 8 };
    gpuhal *gpu = open_or_fail(NULL);
    copier copiers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        copiers[i] = (copier){
            .from = select_or_fail(gpu, "opencl:0"),
            .to = select_or_fail(gpu, "opencl:1"),
            .sent = bytes_of_seed(100 + i, BYTES),
            .got = bytes_of_seed(2, BYTES),
        };
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, copy_for_a_while, &copiers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_string_equal(copiers[i].sentence, "");
        assert_false(copiers[i].arrived_wrong);
        free(copiers[i].sent);
        free(copiers[i].got);
    }
    gpuhal_close(gpu);
}

TEST(a_child_of_a_fork_is_refused_if_the_driver_would_hang)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "opencl:1"), GPUHAL_MEMORY_DEVICE, 64);
    wait_until_other_threads_sleep();
    pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        alarm(50);
        bool refused = gpuhal_read(NULL, &byte, buffer, 0, 1) == GPUHAL_ERROR_FORKED;
        gpu = open_or_fail(NULL);
        bool cpu_works = gpuhal_device_verify(select_or_fail(gpu, "cpu")) == GPUHAL_OK;
        _exit(refused && cpu_works ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
