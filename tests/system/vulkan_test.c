/* Tests the Vulkan plugin with lavapipe (Mesa's Vulkan driver for CPUs), together with the CPU plugin and PoCL's two
 * devices. Skipped if lavapipe is not installed. */
#include "exercise.h"
#include "support/random.h"
#include "fake.h"
#include "vulkan_message.h"
#include "support/idle.h"
#include "support/import_host.h"
#include "support/process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * 1024 * 1024 + 7, SMALL = 70001, STEPS = 80 };

static gpuhal *open_lavapipe(void)
{
    gpuhal_device *device = NULL;
    gpuhal *gpu = open_or_fail(NULL);
    if (gpuhal_select(gpu, "vulkan:0", 0, &device, NULL)) {
        gpuhal_plugin_report report = report_of(gpu, "vulkan");
        printf("vulkan: %s\n", report.reason);
        gpuhal_close(gpu);
        if (report.state != GPUHAL_PLUGIN_NO_DRIVER && report.state != GPUHAL_PLUGIN_NO_DEVICE) {
            fail_msg("the plugin is %s", gpuhal_plugin_state_name(report.state));
        }
        SKIP_TEST("lavapipe, the Vulkan driver for the processor, is not installed (Debian: mesa-vulkan-drivers)");
    }
    return gpu;
}

TEST(facts_of_lavapipe_are_those_of_a_program_on_the_processor)
{
    gpuhal *gpu = open_lavapipe();
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    const char *text = "";
    uint64_t value = 0;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_NAME, &text));
    if (!strstr(text, "llvmpipe")) {
        SKIP_TEST("the Vulkan driver is not lavapipe");
    }
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &value));
    assert_int_equal(value, 1);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &value));
    assert_int_equal(value, GPUHAL_DEVICE_CPU);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_UNIFIED_MEMORY, &value));
    assert_int_equal(value, 1);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &value));
    assert_true(value >= 256 << 20);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, &value));
    assert_int_equal(value, 4096);
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_DRIVER_UUID, &text));
    assert_int_equal(strlen(text), 36);
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_API_VERSION, &text));
    assert_int_equal(strncmp(text, "1.", 2), 0);
    gpuhal_close(gpu);
}

TEST(choosing_a_device_passes_over_lavapipe_and_says_why)
{
    gpuhal *gpu = open_lavapipe();
    gpuhal_device *device = NULL;
    const char *reason = "";
    assert_ok(gpuhal_select(gpu, "auto", 0, &device, &reason));
    assert_string_equal(gpuhal_device_id(device), "cpu:0");
    assert_non_null(strstr(reason, "software"));
    gpuhal_close(gpu);
}

TEST(listing_does_not_load_vulkan_into_this_process)
{
    gpuhal *gpu = open_lavapipe();
    assert_false(is_mapped("libvulkan"));
    gpuhal_close(gpu);
}

TEST(verify_passes_and_every_memory_kind_is_byte_exact)
{
    gpuhal *gpu = open_lavapipe();
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    assert_ok(gpuhal_device_verify(device));
    exercise_kinds(device, SMALL, STEPS, 31);
    gpuhal_close(gpu);
}

/* The path of a copy depends on both devices. Copies within one device must use the device's own path. */
TEST(every_ordered_pair_of_devices_copies_byte_exact_and_reports_its_path)
{
    static const char *const ids[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};
    gpuhal *gpu = open_lavapipe();
    unsigned char *sent = malloc(BYTES), *got = malloc(BYTES);
    uint64_t seed = (uint64_t)getpid();
    print_message("seed %llu\n", (unsigned long long)seed);
    assert_true(sent && got);
    for (int pair = 0; pair < 16; pair++) {
        gpuhal_device *const devices[2] = {select_or_fail(gpu, ids[pair / 4]), select_or_fail(gpu, ids[pair % 4])};
        gpuhal_buffer *from = buffer_or_fail(devices[0], GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_buffer *to = buffer_or_fail(devices[1], GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_path path = 0;
        const uint64_t count = 1 + exercise_random(&seed, BYTES), begin = exercise_random(&seed, BYTES - count + 1);
        const uint64_t at = exercise_random(&seed, BYTES - count + 1);
        fill_randomly(sent, BYTES, seed);
        assert_ok(gpuhal_copy_path(to, from, &path));
        assert_true(devices[0] == devices[1] ? path == GPUHAL_PATH_NATIVE
                                             : path == GPUHAL_PATH_SHARED || path == GPUHAL_PATH_STAGED);
        /* Both buffers of this pair have a host address, so the host can copy directly from one to the other. */
        if (pair == 3 || pair == 12) {
            assert_int_equal(path, GPUHAL_PATH_SHARED);
        }
        assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
        assert_ok(gpuhal_fill(NULL, to, 0, BYTES, 0x99, 1));
        assert_ok(gpuhal_copy(NULL, to, at, from, begin, count));
        assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
        memmove(sent + at, sent + begin, count);
        memset(sent, 0x99, at);
        memset(sent + at + count, 0x99, BYTES - at - count);
        assert_memory_equal(got, sent, BYTES);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
        from = buffer_or_fail(devices[0], GPUHAL_MEMORY_DEVICE, SMALL);
        to = buffer_or_fail(devices[1], GPUHAL_MEMORY_DEVICE, SMALL + 3);
        exercise_pair(from, to, STEPS / 2, seed);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
    }
    free(sent);
    free(got);
    gpuhal_close(gpu);
}

/* Bytes that are written through one of the two buffers can be read through the other one after a synchronization. */
static void expect_same_bytes(gpuhal_buffer *one, gpuhal_buffer *two)
{
    gpuhal_buffer *const both[2] = {one, two};
    unsigned char sent[256], got[256];
    uint64_t seed = 77;
    for (int round = 0; round < 6; round++) {
        gpuhal_buffer *writer = both[round % 2], *reader = both[1 - round % 2];
        const uint64_t at = exercise_random(&seed, gpuhal_buffer_bytes(reader) - sizeof sent);
        fill_randomly(sent, sizeof sent, seed);
        assert_ok(gpuhal_write(NULL, writer, at, sent, sizeof sent));
        assert_ok(gpuhal_buffer_synchronize(writer));
        assert_ok(gpuhal_buffer_synchronize(reader));
        assert_ok(gpuhal_read(NULL, got, reader, at, sizeof got));
        assert_memory_equal(got, sent, sizeof got);
        assert_ok(gpuhal_fill(NULL, writer, at, sizeof sent, 0x01020304u << round, 4));
        assert_ok(gpuhal_read(NULL, sent, writer, at, sizeof sent));
        assert_ok(gpuhal_buffer_synchronize(writer));
        assert_ok(gpuhal_buffer_synchronize(reader));
        assert_ok(gpuhal_read(NULL, got, reader, at, sizeof got));
        assert_memory_equal(got, sent, sizeof got);
    }
}

TEST(shared_buffers_show_each_others_writes)
{
    static const char *const pairs[][2] = {{"cpu:0", "vulkan:0"}, {"vulkan:0", "cpu:0"}, {"opencl:0", "vulkan:0"},
                                           {"vulkan:0", "opencl:0"}, {"vulkan:0", "opencl:1"}, {"cpu:0", "opencl:1"}};
    gpuhal *gpu = open_lavapipe();
    int shared_pairs = 0;
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        gpuhal_device *owner = select_or_fail(gpu, pairs[p][0]), *user = select_or_fail(gpu, pairs[p][1]);
        gpuhal_handle_kind kind = 0;
        const char *why = NULL;
        gpuhal_buffer *original = NULL, *shared = NULL;
        gpuhal_status status = gpuhal_share_query(owner, GPUHAL_MEMORY_DEVICE, user, &kind, &why);
        if (status) {
            assert_int_equal(status, GPUHAL_ERROR_NOT_SUPPORTED);
            assert_true(strlen(why) > 20);
            print_message("%s with %s: %s\n", pairs[p][0], pairs[p][1], why);
            continue;
        }
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1 << 20, .export_kinds = 1u << kind};
        assert_ok(gpuhal_buffer_create(owner, &desc, &original));
        assert_ok(gpuhal_buffer_share(original, user, &shared));
        assert_ptr_equal(gpuhal_buffer_device(shared), user);
        expect_same_bytes(original, shared);
        gpuhal_buffer_release(original);
        assert_ok(gpuhal_fill(NULL, shared, 0, 1 << 20, 1, 1));
        gpuhal_buffer_release(shared);
        shared_pairs++;
    }
    /* lavapipe can always access the CPU's memory. */
    assert_true(shared_pairs >= 2);
    gpuhal_close(gpu);
}

static void let_go(void *user, void *memory)
{
    *(void **)user = memory;
}

TEST(host_memory_of_the_caller_is_used_in_place_and_given_back)
{
    gpuhal *gpu = open_lavapipe();
    uint64_t kinds = 0;
    if (gpuhal_device_u64(select_or_fail(gpu, "vulkan:0"), GPUHAL_FACT_IMPORT_KINDS, &kinds) ||
        !(kinds >> GPUHAL_HANDLE_HOST_POINTER & 1)) {
        SKIP_TEST("the Vulkan driver cannot import host memory");
    }
    void *released = NULL;
    unsigned char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpuhal_buffer *buffer = NULL;
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_ok(import_host(select_or_fail(gpu, "vulkan:0"), memory, 1 << 20, let_go, &released, &buffer));
    assert_ok(gpuhal_fill(NULL, buffer, 4096, 4096, 0x42, 1));
    assert_ok(gpuhal_buffer_synchronize(buffer));
    assert_int_equal(memory[4095], 0);
    assert_int_equal(memory[4096], 0x42);
    assert_null(released);
    gpuhal_buffer_release(buffer);
    assert_ptr_equal(released, memory);
    munmap(memory, 1 << 20);
    gpuhal_close(gpu);
}

/* ---- another process */

static void run_importer(int fd)
{
    char number[16];
    const char *path = getenv("GPUHAL_TEST_IMPORTER");
    assert_non_null(path);
    snprintf(number, sizeof number, "%d", fd);
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, number, (char *)NULL);
        _exit(127);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_buffer_exported_to_another_process_is_the_same_memory_there)
{
    gpuhal *gpu = open_lavapipe();
    gpuhal_buffer *buffer = NULL;
    gpuhal_handle handle = {.size = sizeof handle};
    unsigned char sent[MESSAGE_BYTES], got[MESSAGE_BYTES];
    assert_ok(gpuhal_buffer_create(select_or_fail(gpu, "vulkan:0"), &message_desc, &buffer));
    fill_randomly(sent, sizeof sent, EXPORTER_SEED);
    assert_ok(gpuhal_write(NULL, buffer, EXPORTER_OFFSET, sent, sizeof sent));
    assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_OPAQUE_FD, &handle));
    int inherited = dup((int)handle.as.os); /* the exported descriptor is close-on-exec */
    assert_true(inherited >= 0);
    close((int)handle.as.os);
    run_importer(inherited);
    close(inherited);
    fill_randomly(sent, sizeof sent, IMPORTER_SEED);
    assert_ok(gpuhal_buffer_synchronize(buffer));
    assert_ok(gpuhal_read(NULL, got, buffer, IMPORTER_OFFSET, sizeof got));
    assert_memory_equal(got, sent, sizeof got);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_child_of_a_fork_is_refused)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    gpuhal *gpu = open_lavapipe();
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "vulkan:0"), GPUHAL_MEMORY_DEVICE, 64);
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
