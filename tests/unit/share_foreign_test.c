/* Memory that the caller owns: imported host memory, and wrapped native objects of other APIs. */
#include "share_support.h"
#include "support/import_host.h"

#include <gpuhal/native.h>

#include <sys/mman.h>
#include <unistd.h>

typedef struct lender {
    int calls;
    void *memory;
    int64_t allocations; /* the device's number of allocations at the notification */
} lender;

static void let_go(void *user, void *memory)
{
    lender *l = user;
    l->calls++;
    l->memory = memory;
    l->allocations = gpuhal_mock.devices[1].allocations;
}

TEST(lent_host_memory_is_given_back_once_after_the_last_who_shares_it)
{
    gpuhal *gpu = open_four();
    lender l = {0};
    char *memory = aligned_alloc(PAGE, BYTES);
    memset(memory, 'm', BYTES);
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(import_host(gpuhal_device_at(gpu, 1), memory, BYTES, let_go, &l, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, buffer, PAGE, "seen by the host", 16), GPUHAL_OK);
    assert_memory_equal(memory + PAGE, "seen by the host", 16);
    memcpy(memory, "seen by the device", 18);
    assert_int_equal(gpuhal_buffer_synchronize(buffer), GPUHAL_OK);
    expect_bytes(buffer, 0, "seen by the device");
    gpuhal_buffer *shared = share_with(gpu, buffer, 2);
    expect_bytes(shared, 0, "seen by the device");
    gpuhal_close(gpu);
    gpuhal_buffer_release(buffer);
    assert_int_equal(l.calls, 0);
    gpuhal_buffer_release(shared);
    assert_int_equal(l.calls, 1);
    assert_ptr_equal(l.memory, memory);
    assert_int_equal(l.allocations, 0);
    expect_no_memory();
    free(memory);
}

TEST(bad_host_memory_is_refused_before_the_driver_sees_it_and_no_callback_runs)
{
    gpuhal *gpu = open_four();
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    lender l = {0};
    gpuhal_buffer *buffer = NULL;
    char *pages = pages_apart(3 * PAGE);
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    assert_int_equal(import_host(device, pages + 64, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "not all mapped"));
    assert_int_equal(import_host(device, pages, 3 * PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "not all mapped"));
    assert_int_equal(import_host(device, pages, UINT64_MAX - PAGE + 1, let_go, &l, &buffer),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(import_host(device, NULL, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(import_host(device, pages, 0, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(import_host(gpuhal_device_at(gpu, 3), pages, PAGE, let_go, &l, &buffer),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_mock.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(import_host(device, pages, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[1].fail_import = 0;
    gpuhal_mock.devices[1].short_imports = 1;
    assert_int_equal(import_host(device, pages, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_DRIVER);
    assert_null(buffer);
    gpuhal_mock.devices[1].imports = 0;
    assert_int_equal(l.calls, 0);
    assert_int_equal(gpuhal_mock.devices[1].imports, 0);
    munmap(pages, PAGE);
    munmap(pages + 2 * PAGE, PAGE);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(host_memory_of_any_alignment_is_imported_with_an_inner_offset_and_ends_with_its_last_byte)
{
    gpuhal *gpu = open_four();
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lender l = {0};
    gpuhal_host_import import = {
        .size = sizeof import, .memory = pages + 100, .bytes = PAGE, .released = let_go, .user = &l};
    gpuhal_buffer *buffer = NULL;
    uint64_t offset = 0;
    memcpy(pages + 100, "weights", 8);
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), &import, &buffer, &offset), GPUHAL_OK);
    assert_int_equal(offset, 100);
    assert_int_equal(gpuhal_buffer_bytes(buffer), 100 + PAGE);
    expect_bytes(buffer, offset, "weights");
    assert_int_equal(gpuhal_write(NULL, buffer, offset + PAGE - 4, "last", 4), GPUHAL_OK);
    assert_memory_equal(pages + PAGE + 96, "last", 4);
    assert_int_equal(gpuhal_write(NULL, buffer, offset + PAGE, "!", 1), GPUHAL_ERROR_OUT_OF_RANGE);
    gpuhal_buffer_release(buffer);
    assert_ptr_equal(l.memory, pages + 100);
    import.memory = pages;
    import.bytes = 5;
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), &import, &buffer, &offset), GPUHAL_OK);
    assert_int_equal(offset, 0);
    assert_int_equal(gpuhal_buffer_bytes(buffer), 5);
    gpuhal_buffer_release(buffer);
    import.flags = 8;
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), &import, &buffer, &offset),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    import.flags = 0;
    import.size = 0;
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), &import, &buffer, &offset),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    import.size = sizeof import;
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), &import, &buffer, NULL),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(l.calls, 2);
    munmap(pages, 3 * PAGE);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* Maps two pages of a file that this process may not write. */
static char *map_weights(void)
{
    int file = memfd_create("weights", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, 2 * PAGE), 0);
    assert_int_equal(pwrite(file, "weights", 8, PAGE), 8);
    char *view = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    close(file);
    return view;
}

static void expect_refused(gpuhal_status status)
{
    assert_int_equal(status, GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "read-only"));
}

static void expect_no_destination(gpuhal_buffer *buffer, gpuhal_buffer *other, gpuhal_queue *queue)
{
    const gpuhal_rect to = {.buffer = buffer}, from = {.buffer = other};
    const uint64_t extent[3] = {8, 8, 1};
    void *pointer = NULL;
    expect_refused(gpuhal_write(queue, buffer, 0, "no", 2));
    expect_refused(gpuhal_copy(queue, buffer, 0, other, 0, 2));
    expect_refused(gpuhal_fill(queue, buffer, 0, 4, 0, 1));
    expect_refused(gpuhal_copy_rect(queue, &to, &from, extent));
    const gpuhal_file file = {.size = sizeof file, .path = "/proc/self/exe"};
    expect_refused(gpuhal_read_file(queue, buffer, 0, &file, 4));
    expect_refused(gpuhal_buffer_map(buffer, 0, 4, GPUHAL_ACCESS_WRITE, &pointer));
    expect_refused(gpuhal_buffer_map(buffer, 0, 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &pointer));
}

TEST(read_only_host_memory_is_read_by_every_path_and_refused_as_a_destination)
{
    gpuhal *gpu = open_four();
    char *view = map_weights(), got[8] = "";
    lender l = {0};
    const gpuhal_host_import import = {.size = sizeof import,
                                       .flags = GPUHAL_IMPORT_READ_ONLY,
                                       .memory = view,
                                       .bytes = 2 * PAGE,
                                       .released = let_go,
                                       .user = &l};
    for (uint32_t d = 1; d <= 2; d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        gpuhal_buffer *buffer = NULL, *other = gpuhal_mock_buffer(gpu, d, 2 * PAGE),
                      *far = gpuhal_mock_buffer(gpu, 3, 2 * PAGE);
        gpuhal_queue *queue = NULL;
        uint64_t offset = 1;
        void *pointer = NULL;
        assert_int_equal(import_host(device, view, 2 * PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(gpuhal_buffer_import_host(device, &import, &buffer, &offset), GPUHAL_OK);
        assert_int_equal(offset, 0);
        expect_bytes(buffer, PAGE, "weights");
        assert_int_equal(gpuhal_queue_create(device, NULL, &queue), GPUHAL_OK);
        expect_no_destination(buffer, other, NULL);
        expect_no_destination(buffer, other, queue);
        assert_int_equal(gpuhal_copy(queue, other, 0, buffer, PAGE, 8), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, far, 0, buffer, PAGE, 8), GPUHAL_OK);
        assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
        expect_bytes(other, 0, "weights");
        expect_bytes(far, 0, "weights");
        assert_int_equal(gpuhal_buffer_map(buffer, PAGE, 8, GPUHAL_ACCESS_READ, &pointer), GPUHAL_OK);
        assert_string_equal(pointer, "weights");
        assert_int_equal(gpuhal_buffer_unmap(buffer, pointer), GPUHAL_OK);
        assert_int_equal(gpuhal_buffer_synchronize(buffer), GPUHAL_OK);
        gpuhal_buffer *shared = share_with(gpu, buffer, 3 - d);
        expect_refused(gpuhal_write(NULL, shared, 0, "no", 2));
        assert_int_equal(gpuhal_read(NULL, got, shared, PAGE, 8), GPUHAL_OK);
        assert_string_equal(got, "weights");
        gpuhal_buffer_release(shared);
        gpuhal_queue_destroy(queue);
        gpuhal_buffer_release(far);
        gpuhal_buffer_release(other);
        gpuhal_buffer_release(buffer);
        assert_int_equal(l.calls, (int)d);
    }
    munmap(view, 2 * PAGE);
    gpuhal_close(gpu);
    expect_no_memory();
}

static int system_reports_what_is_writable(void)
{
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int known = madvise(page, PAGE, 22 /* MADV_POPULATE_READ, since Linux 5.14 */) == 0;
    munmap(page, PAGE);
    return known;
}

TEST(host_memory_that_cannot_be_written_or_lies_behind_its_file_is_refused)
{
    if (!system_reports_what_is_writable()) {
        skip();
    }
    gpuhal *gpu = open_four();
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    gpuhal_buffer *buffer = NULL;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'w', 2 * PAGE);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(import_host(device, pages, 2 * PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "reading and writing"));
    assert_int_equal(import_host(device, pages + PAGE, PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    int file = memfd_create("short", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, PAGE), 0);
    char *view = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_int_equal(import_host(device, view, 2 * PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(import_host(device, view, PAGE, NULL, NULL, &buffer), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    assert_int_equal(import_host(device, pages, PAGE, NULL, NULL, &buffer), GPUHAL_OK);
    assert_int_equal(pages[0], 'w');
    gpuhal_buffer_release(buffer);
    munmap(view, 2 * PAGE);
    munmap(pages, 2 * PAGE);
    close(file);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(a_wrapped_object_stays_its_owners_and_the_owner_is_notified_once)
{
    static char object[BYTES];
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2,
        .devices = {{.hidden = 1},
                    {.hidden = 1, .adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_BUFFER, .copy_alignment = 4}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)object, BYTES}};
    gpuhal_buffer *buffer = NULL;
    lender l = {.memory = object};
    assert_int_equal(gpuhal_buffer_wrap(gpuhal_device_at(gpu, 0), &native, 8, let_go, &l, &buffer),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES + 4, let_go, &l, &buffer),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = GPUHAL_NATIVE_VULKAN_BUFFER;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = 0xdeadbeef;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = GPUHAL_NATIVE_OPENCL_BUFFER;
    native.values[1] = BYTES - 2;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES - 2, let_go, &l, &buffer),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "steps of 4 bytes"));
    native.values[1] = BYTES;
    assert_null(buffer);
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES - 2, let_go, &l, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, buffer, 5, "wrapped", 7), GPUHAL_OK);
    assert_memory_equal(object + 5, "wrapped", 7);
    assert_int_equal(l.calls, 0);
    gpuhal_buffer_release(buffer);
    assert_int_equal(l.calls, 1);
    assert_null(l.memory);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* An engine's buffer may have any size. */
TEST(a_wrapped_object_of_any_size_is_filled_and_copied_to_its_last_byte_and_not_beyond)
{
    enum { ODD = 1001 };
    static unsigned char object[ODD + 7];
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2,
        .devices = {{.hidden = 1},
                    {.hidden = 1, .adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_BUFFER, .fill_alignment = 8}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)object, ODD}};
    gpuhal_buffer *buffer = NULL, *plain = gpuhal_mock_buffer(gpu, 1, ODD), *far = gpuhal_mock_buffer(gpu, 0, ODD);
    unsigned char got[ODD], expected[ODD];
    memset(object, '|', sizeof object);
    assert_int_equal(gpuhal_buffer_wrap(gpuhal_device_at(gpu, 1), &native, ODD, NULL, NULL, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, ODD, 'f', 1), GPUHAL_OK);
    memset(expected, 'f', ODD);
    assert_memory_equal(object, expected, ODD);
    assert_true(gpuhal_mock.devices[1].fills > 0);
    assert_int_equal(gpuhal_fill(NULL, buffer, ODD - 3, 3, 't', 1), GPUHAL_OK);
    memset(expected + ODD - 3, 't', 3);
    assert_int_equal(gpuhal_copy(NULL, plain, 0, buffer, 0, ODD), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, far, 0, plain, 0, ODD), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, buffer, ODD - 1, "!", 1), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, buffer, ODD - 5, far, ODD - 5, 5), GPUHAL_OK);
    assert_int_equal(gpuhal_read(NULL, got, buffer, 0, ODD), GPUHAL_OK);
    assert_memory_equal(got, expected, ODD);
    assert_memory_equal(object + ODD, "|||||||", 7);
    gpuhal_buffer_release(far);
    gpuhal_buffer_release(plain);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_no_memory();
}

#include "test_main.h"
