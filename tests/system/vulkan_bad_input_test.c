/* Tests the Vulkan plugin with the fake driver (tests/fakes/vulkan): errors of the driver, wrong arguments, and
 * exceeded limits. Each call must return a status and a helpful message, and nothing may leak. */
#include "fake.h"
#include "support/import_host.h"
#include "support/process.h"
#include "support/tree.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 1 << 20 };

/* ---- unusable drivers */

typedef struct useless {
    const char *script;
    gpuhal_plugin_state state;
    const char *word; /* word in the reason */
} useless;

/* Returns the fake, so that the test can query it afterwards. */
static fake_vulkan try_useless(const useless *driver)
{
    fake_vulkan fake = fake_vulkan_script(driver->script);
    gpuhal *gpu = open_fake();
    gpuhal_plugin_report report = report_of(gpu, "vulkan");
    if (report.state != driver->state || !strstr(report.reason, driver->word)) {
        fail_msg("%s: \"%s\"; wanted %s with \"%s\"", gpuhal_plugin_state_name(report.state), report.reason,
                 gpuhal_plugin_state_name(driver->state), driver->word);
    }
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "vulkan", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_ok(gpuhal_select(gpu, "auto", 0, &device, NULL));
    assert_string_equal(gpuhal_device_id(device), "cpu:0");
    gpuhal_close(gpu);
    fake_vulkan_expect_clean(&fake);
    return fake;
}

static void expect_no_device(const void *what)
{
    (void)try_useless(what);
}

TEST(an_instance_that_cannot_be_used_is_destroyed)
{
    setenv("GPUHAL_VULKAN_LIBRARY", getenv("GPUHAL_FAKE_VULKAN_LIBRARY"), 1);
    fake_vulkan fake = try_useless(
        &(useless){"without=vkGetPhysicalDeviceFeatures2", GPUHAL_PLUGIN_NO_DRIVER, "vkGetPhysicalDeviceFeatures2"});
    assert_true(fake.calls("vkCreateInstance") > 0);
    assert_int_equal(fake.calls("vkDestroyInstance"), fake.calls("vkCreateInstance"));
}

TEST(a_driver_of_no_use_lists_no_device_and_the_report_says_why)
{
    static const useless drivers[] = {
        {"families=", GPUHAL_PLUGIN_NO_DEVICE, "queue"},
        {"types=", GPUHAL_PLUGIN_NO_DEVICE, "memory"},
        {"heaps=256M;types=vc@0", GPUHAL_PLUGIN_NO_DEVICE, "memory"},
        {"atom=0", GPUHAL_PLUGIN_NO_DEVICE, "memory"},
        {"api=1.1;no_timeline", GPUHAL_PLUGIN_NO_DEVICE, "imeline"},
        {"api=1.2;no_timeline", GPUHAL_PLUGIN_NO_DEVICE, "imeline"},
        {"devices=0", GPUHAL_PLUGIN_NO_DEVICE, "device"},
        {"fail=vkCreateInstance:*:-9", GPUHAL_PLUGIN_NO_DRIVER, "finds no Vulkan driver that works"},
        {"fail=vkEnumeratePhysicalDevices:*:-1", GPUHAL_PLUGIN_FAILED, "vkEnumeratePhysicalDevices"},
    };
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        if (!passes_in_child(expect_no_device, &drivers[i])) {
            fail_msg("%s", drivers[i].script);
        }
    }
}

TEST(a_loader_without_a_driver_is_no_driver)
{
    setenv("VK_DRIVER_FILES", "/tmp/gpuhal-there-is-no-such-driver.json", 1);
    setenv("VK_ICD_FILENAMES", "/tmp/gpuhal-there-is-no-such-driver.json", 1);
    (void)try_useless(&(useless){"devices=1", GPUHAL_PLUGIN_NO_DRIVER, "finds no Vulkan driver that works"});
}

TEST(a_driver_without_a_device_is_no_permission_if_no_node_may_be_opened)
{
    const char *forbidden = forbidden_or_skip();
    const useless refused = {"devices=0", GPUHAL_PLUGIN_NO_PERMISSION, "may open none of /dev/dri/renderD*"},
                  open_node = {"devices=0", GPUHAL_PLUGIN_NO_DEVICE, "none lists a device"};
    begin_tree();
    put_link("dev/dri/renderD128", forbidden);
    assert_true(passes_in_child(expect_no_device, &refused));
    put("dev/dri/renderD129", "");
    assert_true(passes_in_child(expect_no_device, &open_node));
    remove_tree();
}

TEST(a_device_that_cannot_be_made_fails_with_the_call_and_can_be_made_later)
{
    session s = begin_session("discrete;fail=vkCreateDevice:1:-3");
    gpuhal_buffer *buffer = NULL;
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, PAGE, &buffer), GPUHAL_ERROR_DRIVER, "vkCreateDevice");
    assert_null(buffer);
    assert_int_equal(gpuhal_last_error()->vendor_code, -3);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, PAGE, &buffer));
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

/* ---- limits */

TEST(above_the_largest_allocation_the_limit_is_named)
{
    session s = begin_session("discrete;allocation_size=1M");
    gpuhal_buffer *buffer = NULL;
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 2 << 20, &buffer), GPUHAL_ERROR_TOO_LARGE, "1048576");
    assert_int_equal(gpuhal_last_error()->bytes_asked, 2 << 20);
    assert_int_equal(gpuhal_last_error()->bytes_total, 1 << 20);
    assert_int_equal(s.fake.calls("vkAllocateMemory"), 0);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 1 << 20, &buffer));
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(above_the_number_of_allocations_the_limit_is_named)
{
    session s = begin_session("integrated;allocation_count=3");
    gpuhal_buffer *buffers[4] = {NULL};
    uint64_t count = 0;
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_ALLOCATION_MAX_COUNT, &count));
    assert_int_equal(count, 3);
    for (int b = 0; b < 3; b++) {
        assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, PAGE, &buffers[b]));
    }
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, PAGE, &buffers[3]), GPUHAL_ERROR_OUT_OF_MEMORY,
                 "maxMemoryAllocationCount");
    gpuhal_buffer_release(buffers[0]);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, PAGE, &buffers[0]));
    for (int b = 0; b < 3; b++) {
        gpuhal_buffer_release(buffers[b]);
    }
    end_session(&s);
}

TEST(a_full_heap_is_out_of_memory_with_the_numbers_and_works_again)
{
    session s = begin_session("discrete;heaps=d4M,64M;types=d@0,vc@1,vch@1");
    gpuhal_buffer *first = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, 3 << 20), *second = NULL;
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 2 << 20, &second), GPUHAL_ERROR_OUT_OF_MEMORY,
                 "vkAllocateMemory");
    assert_int_equal(gpuhal_last_error()->bytes_asked, 2 << 20);
    assert_int_equal(gpuhal_last_error()->bytes_free, 1 << 20);
    assert_int_equal(gpuhal_last_error()->bytes_total, 4 << 20);
    gpuhal_buffer_release(first);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 2 << 20, &second));
    gpuhal_buffer_release(second);
    end_session(&s);
}

/* A software device accesses its memory through the mapping, so no kind of buffer is possible without a mapping. */
static void expect_no_mapping(const char *script)
{
    session s = begin_session(script);
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_READBACK; kind++) {
        gpuhal_buffer *buffer = NULL;
        expect_error(try_buffer(s.device, kind, BYTES, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY, "vkMapMemory");
        assert_null(buffer);
    }
    end_session(&s);
}

TEST(a_mapping_that_succeeds_at_an_address_that_cannot_be_is_out_of_memory)
{
    expect_no_mapping("cpu;maps_nowhere");
}

TEST(a_mapping_that_fails_on_a_software_device_is_out_of_memory_for_every_kind)
{
    expect_no_mapping("cpu;fail=vkMapMemory:*:-5");
}

TEST(a_failed_mapping_of_a_software_device_is_out_of_memory)
{
    expect_no_mapping("cpu;fail=vkMapMemory:*:-1");
}

TEST(device_memory_of_a_card_does_without_a_mapping_that_cannot_be)
{
    session s = begin_session("integrated;maps_nowhere");
    gpuhal_buffer *buffer = NULL, *none = NULL;
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, BYTES, &buffer));
    assert_null(gpuhal_buffer_host(buffer));
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_UPLOAD, BYTES, &none), GPUHAL_ERROR_OUT_OF_MEMORY, "vkMapMemory");
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

/* ---- memory of the caller */

static void let_go(void *user, void *memory)
{
    (void)memory;
    ++*(int *)user;
}

TEST(host_memory_is_rounded_to_the_alignment_and_refused_beyond_the_mapping)
{
    session s = begin_session("discrete;import_alignment=64K");
    gpuhal_buffer *buffer = NULL;
    int released = 0;
    char *memory = aligned_alloc(65536, 2 * 65536);
    assert_non_null(memory);
    char *pages = pages_apart(2 * 65536);
    assert_ptr_not_equal(pages, MAP_FAILED);
    char *start = pages + (0 - (uintptr_t)pages) % 65536;
    assert_int_equal(munmap(start + PAGE, 65536 - PAGE), 0);
    expect_error(import_host(s.device, start, PAGE, let_go, &released, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT,
                 "65536");
    assert_int_equal(released, 0);
    munmap(pages, (size_t)(start - pages) + PAGE);
    munmap(start + 65536, (size_t)(pages + 65536 - start));
    const gpuhal_host_import inner = {.size = sizeof inner, .memory = memory + PAGE, .bytes = 65536};
    uint64_t offset = 0;
    assert_ok(gpuhal_buffer_import_host(s.device, &inner, &buffer, &offset));
    assert_int_equal(offset, PAGE);
    gpuhal_buffer_release(buffer);
    assert_ok(import_host(s.device, memory, 65536, let_go, &released, &buffer));
    memcpy(memory, "seen", 5);
    char got[5] = {0};
    assert_ok(gpuhal_read(NULL, got, buffer, 0, 5));
    assert_string_equal(got, "seen");
    gpuhal_buffer_release(buffer);
    assert_int_equal(released, 1);
    end_session(&s);
    free(memory);
}

TEST(host_memory_that_is_not_mapped_is_refused)
{
    session s = begin_session("discrete");
    gpuhal_buffer *buffer = NULL;
    int released = 0;
    char *memory = pages_apart(4 * PAGE);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(munmap(memory + 2 * PAGE, 2 * PAGE), 0);
    expect_error(import_host(s.device, memory + 2 * PAGE, PAGE, let_go, &released, &buffer),
                 GPUHAL_ERROR_INVALID_ARGUMENT, "mapped");
    expect_error(import_host(s.device, memory, 4 * PAGE, let_go, &released, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT,
                 "mapped");
    assert_int_equal(released, 0);
    munmap(memory, 2 * PAGE);
    end_session(&s);
}

static void expect_refused(gpuhal_device *device, const gpuhal_buffer_desc *desc, gpuhal_handle_kind kind, int fd)
{
    const gpuhal_handle handle = {.size = sizeof handle, .kind = kind, .as.os = fd};
    gpuhal_buffer *buffer = NULL;
    struct stat before, after;
    assert_int_equal(fstat(fd, &before), 0);
    gpuhal_status status = gpuhal_buffer_import(device, desc, &handle, &buffer);
    assert_null(buffer);
    assert_int_equal(status, GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_true(strlen(gpuhal_last_error()->sentence) > 20);
    assert_int_equal(fstat(fd, &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_dev == after.st_dev);
}

TEST(a_descriptor_of_another_kind_is_refused_and_stays_open)
{
    session s = begin_session("discrete");
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    const gpuhal_buffer_desc other = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    int pipes[2], file = memfd_create("not ours", MFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_true(pipe(pipes) == 0 && file >= 0 && null >= 0 && ftruncate(file, BYTES) == 0);
    expect_refused(s.device, &desc, GPUHAL_HANDLE_OPAQUE_FD, pipes[0]);
    expect_refused(s.device, &desc, GPUHAL_HANDLE_OPAQUE_FD, file);
    expect_refused(s.device, &desc, GPUHAL_HANDLE_OPAQUE_FD, null);
    expect_refused(s.device, &other, GPUHAL_HANDLE_DMABUF_FD, file);
    /* Passes a descriptor that the driver exported, but as another kind. */
    gpuhal_buffer *buffer = NULL;
    gpuhal_handle handle = {.size = sizeof handle};
    assert_ok(gpuhal_buffer_create(s.device, &other, &buffer));
    assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_DMABUF_FD, &handle));
    expect_refused(s.device, &desc, GPUHAL_HANDLE_OPAQUE_FD, (int)handle.as.os);
    gpuhal_buffer_release(buffer);
    close((int)handle.as.os);
    close(pipes[0]);
    close(pipes[1]);
    close(file);
    close(null);
    end_session(&s);
}

TEST(a_number_that_is_no_descriptor_is_refused)
{
    session s = begin_session("discrete");
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    for (const int *fd = (const int[]){-1, 987654, -2}; *fd != -2; fd++) {
        const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = *fd};
        gpuhal_buffer *buffer = NULL;
        expect_error(gpuhal_buffer_import(s.device, &desc, &handle, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT,
                     "descriptor");
    }
    end_session(&s);
}

static void export_and_import(const char *script)
{
    session s = begin_session(script);
    for (gpuhal_handle_kind kind = GPUHAL_HANDLE_OPAQUE_FD; kind <= GPUHAL_HANDLE_DMABUF_FD; kind++) {
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << kind};
        gpuhal_buffer *buffer = NULL, *again = NULL;
        gpuhal_handle handle = {.size = sizeof handle};
        char got[6] = {0};
        assert_ok(gpuhal_buffer_create(s.device, &desc, &buffer));
        assert_ok(gpuhal_buffer_export(buffer, kind, &handle));
        assert_int_equal(fcntl((int)handle.as.os, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_ok(gpuhal_buffer_import(s.device, &desc, &handle, &again));
        assert_ok(gpuhal_write(NULL, buffer, BYTES - 6, "there", 6));
        assert_ok(gpuhal_read(NULL, got, again, BYTES - 6, 6));
        assert_string_equal(got, "there");
        gpuhal_buffer_release(buffer);
        assert_ok(gpuhal_read(NULL, got, again, BYTES - 6, 6));
        assert_string_equal(got, "there");
        gpuhal_buffer_release(again);
    }
    end_session(&s);
}

/* The import succeeds only if the mapping happens to have the alignment. Then the buffer begins at the mapping's first
 * byte. */
TEST(imported_memory_is_never_moved_to_an_alignment)
{
    session s = begin_session("integrated");
    const gpuhal_buffer_desc all = {.size = sizeof all, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    const gpuhal_buffer_desc part = {
        .size = sizeof part, .bytes = PAGE, .alignment = BYTES / 4, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(s.device, &all, &buffer));
    assert_ok(gpuhal_fill(NULL, buffer, 0, BYTES, 2, 1));
    assert_ok(gpuhal_fill(NULL, buffer, 0, PAGE, 1, 1));
    for (int round = 0; round < 8; round++) {
        gpuhal_buffer *again = NULL;
        gpuhal_handle handle = {.size = sizeof handle};
        char first = 1;
        assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_DMABUF_FD, &handle));
        gpuhal_status status = gpuhal_buffer_import(s.device, &part, &handle, &again);
        if (status) {
            expect_error(status, GPUHAL_ERROR_NOT_SUPPORTED, "alignment");
            close((int)handle.as.os);
            continue;
        }
        assert_ok(gpuhal_read(NULL, &first, again, 0, 1));
        assert_int_equal(first, 1);
        gpuhal_buffer_release(again);
    }
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(a_descriptor_of_less_memory_than_asked_for_is_refused)
{
    session s = begin_session("discrete");
    const gpuhal_buffer_desc small = {
        .size = sizeof small, .bytes = PAGE, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    const gpuhal_buffer_desc large = {
        .size = sizeof large, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    gpuhal_buffer *buffer = NULL, *again = NULL;
    gpuhal_handle handle = {.size = sizeof handle};
    assert_ok(gpuhal_buffer_create(s.device, &small, &buffer));
    assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_DMABUF_FD, &handle));
    expect_error(gpuhal_buffer_import(s.device, &large, &handle, &again), GPUHAL_ERROR_INVALID_ARGUMENT, "smaller");
    close((int)handle.as.os);
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(an_exported_buffer_is_imported_and_is_the_same_memory)
{
    export_and_import("discrete");
}

TEST(descriptors_that_want_memory_of_their_own_get_it)
{
    export_and_import("discrete;dedicated_fds");
}

TEST(the_first_part_of_a_dma_buf_is_imported_as_dedicated_memory)
{
    session s = begin_session("discrete;dedicated");
    const gpuhal_buffer_desc all = {.size = sizeof all, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    const gpuhal_buffer_desc part = {
        .size = sizeof part, .bytes = PAGE + 1, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    gpuhal_buffer *buffer = NULL, *again = NULL;
    gpuhal_handle handle = {.size = sizeof handle};
    char got[6] = {0};
    assert_ok(gpuhal_buffer_create(s.device, &all, &buffer));
    assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_DMABUF_FD, &handle));
    assert_ok(gpuhal_buffer_import(s.device, &part, &handle, &again));
    assert_ok(gpuhal_write(NULL, buffer, 8, "there", 6));
    assert_ok(gpuhal_read(NULL, got, again, 8, 6));
    assert_string_equal(got, "there");
    gpuhal_buffer_release(again);
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(a_buffer_that_was_not_made_for_export_says_so)
{
    session s = begin_session("discrete");
    gpuhal_buffer *buffer = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_handle handle = {.size = sizeof handle};
    expect_error(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_ERROR_NOT_SUPPORTED, "export");
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(a_buffer_that_another_shares_lives_until_both_are_released)
{
    session s = begin_session("discrete");
    gpuhal_device *cpu = select_or_fail(s.gpu, "cpu:0");
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    gpuhal_buffer *original = NULL, *shared = NULL;
    char got[8] = {0};
    assert_ok(gpuhal_buffer_create(cpu, &desc, &original));
    assert_ok(gpuhal_buffer_share(original, s.device, &shared));
    assert_ok(gpuhal_write(NULL, original, 5, "earlier", 8));
    gpuhal_buffer_release(original);
    assert_ok(gpuhal_buffer_synchronize(shared));
    assert_ok(gpuhal_read(NULL, got, shared, 5, 8));
    assert_string_equal(got, "earlier");
    assert_ok(gpuhal_fill(NULL, shared, 0, BYTES, 0x5a, 1));
    gpuhal_buffer_release(shared);
    end_session(&s);
}

#include "test_main.h"
