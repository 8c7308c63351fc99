/* The devices that can share memory, the handle formats and reasons for refusals, and the export and import of
 * handles. */
#include "share_support.h"
#include "support/process.h"

#include "os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define DRIVER "11111111-2222-3333-4444-555555555555"
#define OTHER  "99999999-2222-3333-4444-555555555555"

static void expect_reason(gpuhal *gpu, uint32_t owner, gpuhal_memory_kind kind, uint32_t user, const char *reason)
{
    gpuhal_handle_kind handle = 7;
    const char *why = NULL;
    assert_int_equal(gpuhal_share_query(gpuhal_device_at(gpu, owner), kind, gpuhal_device_at(gpu, user), &handle, &why),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(handle, 0);
    if (!strstr(why, reason)) {
        fail_msg("\"%s\" does not say \"%s\"", why, reason);
    }
    assert_non_null(strstr(gpuhal_last_error()->sentence, reason));
}

static void expect_kind(gpuhal *gpu, uint32_t owner, gpuhal_memory_kind kind, uint32_t user,
                        gpuhal_handle_kind expected)
{
    gpuhal_handle_kind handle = 0;
    const char *why = "?";
    assert_int_equal(gpuhal_share_query(gpuhal_device_at(gpu, owner), kind, gpuhal_device_at(gpu, user), &handle, &why),
                     GPUHAL_OK);
    assert_int_equal(handle, expected);
    assert_string_equal(why, "");
}

TEST(the_question_gives_the_kind_or_names_the_lack_and_its_device)
{
    gpuhal *gpu = open_four();
    expect_kind(gpu, 0, GPUHAL_MEMORY_DEVICE, 1, GPUHAL_HANDLE_HOST_POINTER);
    expect_kind(gpu, 3, GPUHAL_MEMORY_UPLOAD, 1, GPUHAL_HANDLE_HOST_POINTER);
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 3, "mock:3 cannot import host memory");
    expect_reason(gpu, 1, GPUHAL_MEMORY_DEVICE, 2, "the memory of mock:1 has no host address");
    expect_reason(gpu, 1, GPUHAL_MEMORY_DEVICE, 2, "cannot be exported as opaque_fd");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE_MAPPED, 1, "mock:0 has no memory of that kind");
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_handle_kind kind = 0;
    assert_int_equal(gpuhal_share_query(device, 0, device, &kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_share_query(device, 0, NULL, &kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_share_query(device, 9, gpuhal_device_at(gpu, 1), &kind, NULL),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    for (uint32_t d = 0; d < 4; d++) {
        assert_int_equal(gpuhal_mock.devices[d].openings, 0);
    }
    gpuhal_close(gpu);
}

TEST(opaque_descriptors_pass_between_equal_drivers_on_equal_hardware_alone)
{
    gpuhal_mock =
        (gpuhal_mock_state){.count = 7,
                            .devices = {{.hidden = 1, .export_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                                        {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                                        {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = OTHER, .uuid = OTHER},
                                        {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = DRIVER},
                                        {.hidden = 1, .import_kinds = OPAQUE, .uuid = OTHER},
                                        {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .software = 1},
                                        {.hidden = 1,
                                         .import_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD,
                                         .export_kinds = OPAQUE,
                                         .driver_uuid = DRIVER,
                                         .software = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    expect_kind(gpu, 0, GPUHAL_MEMORY_DEVICE, 1, GPUHAL_HANDLE_OPAQUE_FD);
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 2, "mock:0 has another driver than mock:2");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 3, "mock:0 is another physical device than mock:3");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 4, "mock:4 does not state its driver_uuid");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 5, "mock:0 is another physical device than mock:5");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 6, "mock:6 cannot import opaque_fd");
    expect_kind(gpu, 6, GPUHAL_MEMORY_DEVICE, 5, GPUHAL_HANDLE_OPAQUE_FD);
    gpuhal_close(gpu);
}

TEST(memory_of_a_kind_outside_the_exportable_kinds_is_not_exported)
{
    const uint32_t host_kinds = 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    gpuhal_mock = (gpuhal_mock_state){
        .count = 3,
        .devices = {{.hidden = 1, .export_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                    {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                    {.export_kinds = OPAQUE, .exportable_kinds = host_kinds, .driver_uuid = DRIVER, .uuid = OTHER}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    expect_kind(gpu, 0, GPUHAL_MEMORY_DEVICE, 1, GPUHAL_HANDLE_OPAQUE_FD);
    expect_reason(gpu, 0, GPUHAL_MEMORY_UPLOAD, 1, "the exportable_kinds of mock:0 are device");
    expect_kind(gpu, 2, GPUHAL_MEMORY_UPLOAD, 1, GPUHAL_HANDLE_OPAQUE_FD);
    expect_reason(gpu, 2, GPUHAL_MEMORY_DEVICE, 1, "the exportable_kinds of mock:2 are upload, readback");
    const struct {
        uint32_t device;
        gpuhal_memory_kind kind;
        const char *kinds; /* NULL if the memory is exported */
    } cases[] = {{0, GPUHAL_MEMORY_DEVICE, NULL},
                 {0, GPUHAL_MEMORY_UPLOAD,
                  "memory of kind upload cannot be shared as opaque_fd: the exportable_kinds "
                  "are device"},
                 {2, GPUHAL_MEMORY_DEVICE,
                  "memory of kind device cannot be shared as opaque_fd: the exportable_kinds "
                  "are upload, readback"},
                 {2, GPUHAL_MEMORY_READBACK, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gpuhal_buffer_desc desc = {
            .size = sizeof desc, .kind = cases[i].kind, .bytes = 4096, .export_kinds = OPAQUE};
        gpuhal_buffer *buffer = NULL;
        const gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, cases[i].device), &desc, &buffer);
        assert_int_equal(status, cases[i].kinds ? GPUHAL_ERROR_NOT_SUPPORTED : GPUHAL_OK);
        if (cases[i].kinds) {
            assert_non_null(strstr(gpuhal_last_error()->sentence, cases[i].kinds));
        }
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(kinds_of_sharing_that_a_device_cannot_give_are_refused_at_creation)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *buffer = NULL;
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 8, .export_kinds = POINTER};
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 3), &desc, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "cannot be shared as host_pointer: it has no host address"));
    desc.export_kinds = POINTER | OPAQUE;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "opaque_fd"));
    desc.export_kinds = 1u << 30;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(buffer);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(memory_made_without_sharing_in_mind_is_refused_with_the_way_out)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *plain = gpuhal_mock_buffer(gpu, 0, 1000), *shared = plain;
    assert_int_equal(gpuhal_buffer_share(plain, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(shared);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "only at multiples of 4096 bytes"));
    assert_non_null(strstr(gpuhal_last_error()->sentence, "host_pointer in its export_kinds"));
    assert_int_equal(gpuhal_buffer_share(plain, gpuhal_device_at(gpu, 3), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_share(plain, NULL, &shared), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(plain);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* Opens three devices. mock:0 and mock:1 are interfaces of one driver to the same physical device. mock:2 can neither
 * export nor import memory. */
static gpuhal *open_opaque(void)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 3};
    for (int d = 0; d < 2; d++) {
        gpuhal_mock.devices[d] = (gpuhal_mock_device){.hidden = 1,
                                                    .export_kinds = OPAQUE,
                                                    .import_kinds = OPAQUE,
                                                    .driver_uuid = DRIVER,
                                                    .uuid = OTHER,
                                                    .copy_alignment = 4};
    }
    gpuhal_mock.devices[2].hidden = 1;
    return gpuhal_mock_open(NULL, 0);
}

TEST(memory_behind_a_descriptor_is_shared_and_leaves_no_descriptor)
{
    gpuhal *gpu = open_opaque();
    size_t descriptors = count_descriptors();
    gpuhal_buffer *original = shareable(gpu, 0, OPAQUE, BYTES - 3), *shared = share_with(gpu, original, 1);
    assert_int_equal(gpuhal_write(NULL, original, 1, "across", 6), GPUHAL_OK);
    expect_bytes(shared, 1, "across");
    gpuhal_buffer_release(original);
    expect_bytes(shared, 1, "across");
    gpuhal_buffer_release(shared);
    original = shareable(gpu, 0, OPAQUE, BYTES);
    gpuhal_mock.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_buffer_share(original, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_DRIVER);
    gpuhal_buffer_release(original);
    original = gpuhal_mock_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_buffer_share(original, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_buffer_release(original);
    assert_int_equal(count_descriptors(), descriptors);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(an_exported_descriptor_is_imported_and_a_bad_one_stays_the_callers)
{
    gpuhal *gpu = open_opaque();
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = OPAQUE};
    gpuhal_buffer *original = shareable(gpu, 0, OPAQUE, BYTES), *imported = NULL;
    gpuhal_handle handle, bad;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(gpuhal_buffer_export(original, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_OK);
    assert_int_equal(fcntl((int)handle.as.os, F_GETFD), FD_CLOEXEC);
    bad = handle;
    bad.as.os = ends[0];
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "another kind"));
    assert_true(fcntl(ends[0], F_GETFD) >= 0);
    bad.as.os = 900;
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "not an open descriptor"));
    bad.as.os = -1;
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    bad = (gpuhal_handle){.size = sizeof bad, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = &bad};
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import(gpuhal_device_at(gpu, 2), &desc, &handle, &imported),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    const gpuhal_buffer_desc no_kind = {.size = sizeof no_kind, .bytes = BYTES};
    assert_int_equal(gpuhal_buffer_import(device, &no_kind, &handle, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    /* The import is refused after the plugin has used the descriptor. The caller must still own the descriptor. */
    gpuhal_mock.devices[1].short_imports = 1;
    assert_int_equal(gpuhal_buffer_import(device, &desc, &handle, &imported), GPUHAL_ERROR_DRIVER);
    assert_true(fcntl((int)handle.as.os, F_GETFD) >= 0);
    gpuhal_mock.devices[1].short_imports = 0;
    assert_null(imported);
    assert_int_equal(gpuhal_buffer_import(device, &desc, &handle, &imported), GPUHAL_OK);
    assert_int_equal(fcntl((int)handle.as.os, F_GETFD), -1);
    assert_int_equal(gpuhal_write(NULL, original, 0, "by descriptor", 13), GPUHAL_OK);
    gpuhal_buffer_release(original);
    expect_bytes(imported, 0, "by descriptor");
    gpuhal_buffer_release(imported);
    close(ends[0]);
    close(ends[1]);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* System calls take an int. A larger number must not be truncated to a valid descriptor. */
TEST(a_number_is_a_descriptor_only_while_it_is_open_and_fits_an_int)
{
    const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_true(gpuhal_os_is_descriptor(descriptor));
    assert_false(gpuhal_os_is_descriptor((intptr_t)descriptor + INT_MAX + INT_MAX + 2));
    assert_false(gpuhal_os_is_descriptor((intptr_t)descriptor - INT_MAX - INT_MAX - 2));
    assert_int_equal(close(descriptor), 0);
    assert_false(gpuhal_os_is_descriptor(descriptor));
    assert_false(gpuhal_os_is_descriptor(-1));
}

TEST(handles_of_a_vendors_own_kind_go_to_the_plugin_and_come_from_it_as_they_are)
{
    enum { OWN = 1u << GPUHAL_MOCK_HANDLE };
    gpuhal_mock = (gpuhal_mock_state){.count = 3,
                                    .devices = {{.hidden = 1, .export_kinds = OWN},
                                                {.hidden = 1, .export_kinds = OWN, .import_kinds = OWN},
                                                {.hidden = 1, .export_kinds = OWN}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = OWN};
    gpuhal_buffer *buffer = shareable(gpu, 0, OWN, BYTES), *taken = NULL;
    gpuhal_handle handle = {0};
    assert_int_equal(gpuhal_write(NULL, buffer, 8, "the vendor's own", 16), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_MOCK_HANDLE, &handle), GPUHAL_OK);
    assert_int_equal(handle.kind, GPUHAL_MOCK_HANDLE);
    assert_memory_equal(handle.as.ipc, "mock!", 4);
    size_t before = count_descriptors();
    assert_int_equal(gpuhal_buffer_import(gpuhal_device_at(gpu, 1), &desc, &handle, &taken), GPUHAL_OK);
    expect_bytes(taken, 8, "the vendor's own");
    gpuhal_buffer_release(taken);
    assert_int_equal(count_descriptors(), before);
    /* The plugin may refuse the handle. */
    handle.as.ipc[0] = '?';
    assert_int_equal(gpuhal_buffer_import(gpuhal_device_at(gpu, 1), &desc, &handle, &taken),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mockImport"));
    assert_int_equal(gpuhal_buffer_import(gpuhal_device_at(gpu, 2), &desc, &handle, &taken),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_MOCK_HANDLE + 1, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_VENDOR_KIND_FIRST - 1, &handle),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(only_kinds_named_at_creation_are_given_out)
{
    gpuhal *gpu = open_opaque();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, BYTES);
    gpuhal_handle handle;
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(handle.kind, 0);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_HOST_POINTER, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(buffer, 0, &handle), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_export(NULL, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(host_pointers_are_given_out_for_any_buffer_that_has_one)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, BYTES);
    gpuhal_handle handle;
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_HOST_POINTER, &handle), GPUHAL_OK);
    assert_ptr_equal(handle.as.pointer, gpuhal_buffer_host(buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_string_equal(gpuhal_handle_kind_name(GPUHAL_HANDLE_HOST_POINTER), "host_pointer");
    assert_string_equal(gpuhal_handle_kind_name(GPUHAL_HANDLE_IPC), "ipc");
    assert_string_equal(gpuhal_handle_kind_name(GPUHAL_VENDOR_KIND_FIRST), "vendor");
    assert_string_equal(gpuhal_handle_kind_name(77), "unknown");
}

#include "test_main.h"
