/* Sharing: who can, in which form and why not; that it is one memory, exact to the byte; that nothing is lost or leaked in any order. */
#include "support/lab.h"
#include "test.h"

#include <gpuhal/native.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 8 * PAGE, POINTER = 1u << GPUHAL_HANDLE_HOST_POINTER, OPAQUE = 1u << GPUHAL_HANDLE_OPAQUE_FD };

#define DRIVER "11111111-2222-3333-4444-555555555555"
#define OTHER  "99999999-2222-3333-4444-555555555555"

/* lab:0 has memory that the host sees, lab:1 imports such memory, lab:2 does so on a copy of its own, lab:3 neither. */
static gpuhal *open_four(void)
{
    gpuhal_lab = (gpuhal_lab_state){.count = 4,
                                    .devices = {{.name = "plain", .export_kinds = POINTER},
                                                {.name = "importer", .hidden = 1, .import_kinds = POINTER, .import_alignment = PAGE},
                                                {.name = "copier", .hidden = 1, .import_kinds = POINTER, .import_alignment = 64, .caches_imports = 1},
                                                {.name = "loner", .hidden = 1}}};
    return gpuhal_lab_open(NULL, 0);
}

static gpuhal_buffer *shareable(gpuhal *gpu, uint32_t index, uint32_t export_kinds, uint64_t bytes)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes, .export_kinds = export_kinds};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer)) {
        fail_msg("gpuhal_buffer_create: %s", gpuhal_last_error()->sentence);
    }
    return buffer;
}

static gpuhal_buffer *share_with(gpuhal *gpu, gpuhal_buffer *buffer, uint32_t index)
{
    gpuhal_buffer *shared = NULL;
    if (gpuhal_buffer_share(buffer, gpuhal_device_at(gpu, index), &shared)) {
        fail_msg("gpuhal_buffer_share: %s", gpuhal_last_error()->sentence);
    }
    return shared;
}

static void expect_bytes(gpuhal_buffer *buffer, uint64_t offset, const char *text)
{
    char got[64] = {0};
    assert_int_equal(gpuhal_read(NULL, got, buffer, offset, strlen(text)), GPUHAL_OK);
    assert_string_equal(got, text);
}

static void expect_no_memory(void)
{
    for (uint32_t d = 0; d < gpuhal_lab.count; d++) {
        assert_int_equal(gpuhal_lab.devices[d].allocations, 0);
        assert_int_equal(gpuhal_lab.devices[d].openings, 0);
    }
}

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

static void expect_kind(gpuhal *gpu, uint32_t owner, gpuhal_memory_kind kind, uint32_t user, gpuhal_handle_kind expected)
{
    gpuhal_handle_kind handle = 0;
    const char *why = "?";
    assert_int_equal(gpuhal_share_query(gpuhal_device_at(gpu, owner), kind, gpuhal_device_at(gpu, user), &handle, &why), GPUHAL_OK);
    assert_int_equal(handle, expected);
    assert_string_equal(why, "");
}

TEST(the_question_gives_the_kind_or_names_what_is_missing_on_which_side)
{
    gpuhal *gpu = open_four();
    expect_kind(gpu, 0, GPUHAL_MEMORY_DEVICE, 1, GPUHAL_HANDLE_HOST_POINTER);
    expect_kind(gpu, 3, GPUHAL_MEMORY_UPLOAD, 1, GPUHAL_HANDLE_HOST_POINTER);
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 3, "lab:3 imports no host memory");
    expect_reason(gpu, 1, GPUHAL_MEMORY_DEVICE, 2, "the memory of lab:1 has no host address");
    expect_reason(gpu, 1, GPUHAL_MEMORY_DEVICE, 2, "cannot be given out as opaque_fd");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE_MAPPED, 1, "lab:0 has no memory of that kind");
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_handle_kind kind = 0;
    assert_int_equal(gpuhal_share_query(device, 0, device, &kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_share_query(device, 0, NULL, &kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_share_query(device, 9, gpuhal_device_at(gpu, 1), &kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    for (uint32_t d = 0; d < 4; d++) {
        assert_int_equal(gpuhal_lab.devices[d].openings, 0);
    }
    gpuhal_close(gpu);
}

TEST(opaque_descriptors_pass_between_equal_drivers_on_equal_hardware_alone)
{
    gpuhal_lab = (gpuhal_lab_state){
        .count = 7,
        .devices = {{.hidden = 1, .export_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                    {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER},
                    {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = OTHER, .uuid = OTHER},
                    {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = DRIVER},
                    {.hidden = 1, .import_kinds = OPAQUE, .uuid = OTHER},
                    {.hidden = 1, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .software = 1},
                    {.hidden = 1, .import_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD, .export_kinds = OPAQUE, .driver_uuid = DRIVER, .software = 1}}};
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    expect_kind(gpu, 0, GPUHAL_MEMORY_DEVICE, 1, GPUHAL_HANDLE_OPAQUE_FD);
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 2, "lab:0 has another driver than lab:2");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 3, "lab:0 is other hardware than lab:3");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 4, "lab:4 does not state its driver_uuid");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 5, "lab:0 is other hardware than lab:5");
    expect_reason(gpu, 0, GPUHAL_MEMORY_DEVICE, 6, "lab:6 imports no opaque_fd");
    expect_kind(gpu, 6, GPUHAL_MEMORY_DEVICE, 5, GPUHAL_HANDLE_OPAQUE_FD);
    gpuhal_close(gpu);
}

TEST(a_shared_buffer_is_the_same_memory_and_survives_the_release_of_the_one_it_was_made_from)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES - 5), *shared = share_with(gpu, original, 1);
    assert_int_equal(gpuhal_buffer_bytes(shared), BYTES - 5);
    assert_ptr_equal(gpuhal_buffer_device(shared), gpuhal_device_at(gpu, 1));
    assert_ptr_equal(gpuhal_buffer_host(shared), gpuhal_buffer_host(original));
    assert_int_equal(gpuhal_write(NULL, original, 3, "from the first", 14), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(shared), GPUHAL_OK);
    expect_bytes(shared, 3, "from the first");
    assert_int_equal(gpuhal_write(NULL, shared, BYTES - 5 - 6, "second", 6), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(original), GPUHAL_OK);
    expect_bytes(original, BYTES - 5 - 6, "second");
    gpuhal_buffer_release(original);
    expect_bytes(shared, 3, "from the first");
    assert_int_equal(gpuhal_lab.devices[0].allocations, 1);
    gpuhal_close(gpu);
    expect_bytes(shared, BYTES - 5 - 6, "second");
    gpuhal_buffer_release(shared);
    expect_no_memory();
}

TEST(the_shared_buffer_may_go_first_and_others_share_again)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 1), *third = share_with(gpu, shared, 2);
    gpuhal_buffer_release(shared);
    assert_int_equal(gpuhal_write(NULL, original, 0, "still here", 10), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(third), GPUHAL_OK);
    expect_bytes(third, 0, "still here");
    assert_int_equal(gpuhal_buffer_share(third, gpuhal_device_at(gpu, 0), &shared), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(shared);
    gpuhal_buffer_release(third);
    expect_bytes(original, 0, "still here");
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* Each half is written by another side; a whole-buffer exchange in either direction would lose one. */
TEST(on_a_device_that_works_on_a_copy_nobodys_bytes_are_lost)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 2);
    assert_int_equal(gpuhal_fill(NULL, original, 0, BYTES, '.', 1), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, shared, 0, "device", 6), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, original, 6, "host", 4), GPUHAL_OK);
    expect_bytes(original, 0, "devicehost..");
    assert_int_equal(gpuhal_buffer_synchronize(original), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(shared), GPUHAL_OK);
    expect_bytes(shared, 0, "devicehost..");
    assert_int_equal(gpuhal_fill(NULL, shared, 8, 4, '#', 1), GPUHAL_OK);
    expect_bytes(original, 0, "deviceho####");
    /* Rows of two bytes, eight apart: what the host writes between them stays. */
    const gpuhal_rect to = {.buffer = shared, .offset = 16, .row_pitch = 8}, from = {.host = (void *)(uintptr_t) "aabbcc"};
    assert_int_equal(gpuhal_write(NULL, original, 16, "------------------", 18), GPUHAL_OK);
    assert_int_equal(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){2, 3, 1}), GPUHAL_OK);
    expect_bytes(original, 16, "aa------bb------cc");
    gpuhal_buffer *elsewhere = gpuhal_lab_buffer(gpu, 2, 64);
    assert_int_equal(gpuhal_write(NULL, elsewhere, 0, "copied", 6), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, shared, 40, elsewhere, 0, 6), GPUHAL_OK);
    expect_bytes(original, 40, "copied");
    gpuhal_buffer_release(elsewhere);
    gpuhal_buffer_release(shared);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    expect_no_memory();
}

enum { ROUNDS = 50, MINE = 64 };

static _Atomic bool synchronizing;

static void *synchronize_all_the_time(void *user)
{
    while (atomic_load(&synchronizing)) {
        assert_int_equal(gpuhal_buffer_synchronize(user), GPUHAL_OK);
    }
    return NULL;
}

/* Between a write to the device's copy and its way to the host, the host's old bytes must not come over it. */
TEST(what_is_written_while_another_thread_synchronizes_is_there_for_all)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 2);
    const unsigned char *host = gpuhal_buffer_host(original);
    unsigned char sent[MINE], got[MINE];
    pthread_t other;
    gpuhal_lab.devices[2].slow_write_us = 200;
    atomic_store(&synchronizing, true);
    assert_int_equal(pthread_create(&other, NULL, synchronize_all_the_time, shared), 0);
    int lost = 0;
    for (int round = 0; round < ROUNDS && !lost; round++) {
        memset(sent, round % 251, sizeof sent);
        gpuhal_status status = round % 2 ? gpuhal_write(NULL, shared, BYTES - MINE, sent, MINE)
                                         : gpuhal_fill(NULL, shared, BYTES - MINE, MINE, (uint32_t)(round % 251), 1);
        lost = status || memcmp(host + BYTES - MINE, sent, MINE) != 0;
    }
    atomic_store(&synchronizing, false);
    pthread_join(other, NULL);
    assert_false(lost);
    assert_int_equal(gpuhal_read(NULL, got, shared, BYTES - MINE, MINE), GPUHAL_OK);
    assert_memory_equal(got, sent, MINE);
    gpuhal_buffer_release(shared);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(memory_that_is_not_coherent_shows_what_was_written_before_it_was_shared)
{
    gpuhal *gpu = open_four();
    gpuhal_lab.devices[3].not_coherent = 1;
    gpuhal_close(gpu);
    gpu = gpuhal_lab_open(NULL, 0);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_READBACK, .bytes = BYTES, .export_kinds = POINTER};
    gpuhal_buffer *original = NULL;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 3), &desc, &original), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, original, 0, "x", 1), GPUHAL_OK);
    assert_int_equal(gpuhal_lab.devices[3].cleans, 1);
    /* What the host writes in a mapping is the host's until it ends: sharing meanwhile does not bring the device's bytes over it. */
    void *view = NULL;
    assert_int_equal(gpuhal_buffer_map(original, 0, BYTES, GPUHAL_ACCESS_WRITE, &view), GPUHAL_OK);
    gpuhal_buffer *shared = share_with(gpu, original, 1);
    assert_int_equal(gpuhal_lab.devices[3].cleans, 1);
    assert_int_equal(gpuhal_buffer_unmap(original, view), GPUHAL_OK);
    assert_int_equal(gpuhal_lab.devices[3].cleans, 2);
    assert_int_equal(gpuhal_fill(NULL, original, 0, 4, 'y', 1), GPUHAL_OK);
    assert_int_equal(gpuhal_lab.devices[3].cleans, 3);
    assert_int_equal(gpuhal_buffer_synchronize(original), GPUHAL_OK);
    assert_int_equal(gpuhal_lab.devices[3].cleans, 4);
    gpuhal_buffer_release(original);
    gpuhal_buffer_release(shared);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(coherent_memory_costs_nothing_to_synchronize_and_a_mapped_buffer_is_busy)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 1);
    void *view = NULL;
    assert_int_equal(gpuhal_buffer_synchronize(original), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(shared), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_map(shared, 0, 4, GPUHAL_ACCESS_READ, &view), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(shared), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_buffer_unmap(shared, view), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_synchronize(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    for (uint32_t d = 0; d < 4; d++) {
        assert_int_equal(gpuhal_lab.devices[d].cleans, 0);
    }
    gpuhal_buffer_release(shared);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
}

TEST(memory_made_without_sharing_in_mind_is_refused_with_the_way_out)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *plain = gpuhal_lab_buffer(gpu, 0, 1000), *shared = plain;
    assert_int_equal(gpuhal_buffer_share(plain, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(shared);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "multiples of 4096 bytes alone"));
    assert_non_null(strstr(gpuhal_last_error()->sentence, "host_pointer in its export_kinds"));
    assert_int_equal(gpuhal_buffer_share(plain, gpuhal_device_at(gpu, 3), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_share(plain, NULL, &shared), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(plain);
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

TEST(shared_memory_counts_where_it_was_allocated_and_a_failed_import_leaves_nothing)
{
    gpuhal *gpu = open_four();
    gpuhal_device *importer = gpuhal_device_at(gpu, 1);
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = NULL;
    assert_int_equal(gpuhal_device_limit_memory(importer, 100), GPUHAL_OK);
    shared = share_with(gpu, original, 1);
    gpuhal_buffer_release(shared);
    gpuhal_lab.devices[1].fail_import = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(gpuhal_buffer_share(original, importer, &shared), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(shared);
    assert_string_equal(gpuhal_last_error()->vendor_call, "labImport");
    gpuhal_lab.devices[1].fail_import = 0;
    gpuhal_buffer_release(share_with(gpu, original, 1));
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(copies_between_equal_offsets_of_one_memory_are_refused)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 1), *third = share_with(gpu, original, 2);
    const uint64_t extent[3] = {4, 1, 1};
    const gpuhal_rect one = {.buffer = shared}, other = {.buffer = third, .offset = 2};
    assert_int_equal(gpuhal_copy(NULL, shared, 0, original, 0, 8), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy(NULL, original, 0, shared, 4, 8), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy(NULL, third, 4, shared, 0, 8), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy_rect(NULL, &one, &other, extent), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_write(NULL, original, 0, "sideways", 8), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, shared, 100, original, 0, 8), GPUHAL_OK);
    expect_bytes(original, 100, "sideways");
    gpuhal_buffer_release(third);
    gpuhal_buffer_release(shared);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
}

typedef struct lender {
    int calls;
    void *memory;
    int64_t allocations; /* of the device, when it was told */
} lender;

static void let_go(void *user, void *memory)
{
    lender *l = user;
    l->calls++;
    l->memory = memory;
    l->allocations = gpuhal_lab.devices[1].allocations;
}

TEST(lent_host_memory_is_given_back_once_after_the_last_who_shares_it)
{
    gpuhal *gpu = open_four();
    lender l = {0};
    char *memory = aligned_alloc(PAGE, BYTES);
    memset(memory, 'm', BYTES);
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 1), memory, BYTES, let_go, &l, &buffer), GPUHAL_OK);
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

TEST(bad_host_memory_is_refused_before_the_driver_sees_it_and_nobody_is_told)
{
    gpuhal *gpu = open_four();
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    lender l = {0};
    gpuhal_buffer *buffer = NULL;
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    assert_int_equal(gpuhal_buffer_import_host(device, pages + 64, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "multiples of 4096"));
    assert_int_equal(gpuhal_buffer_import_host(device, pages, PAGE - 64, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import_host(device, pages, 3 * PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "not all mapped"));
    assert_int_equal(gpuhal_buffer_import_host(device, pages, UINT64_MAX - PAGE + 1, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import_host(device, NULL, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import_host(device, pages, 0, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import_host(gpuhal_device_at(gpu, 3), pages, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_lab.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_buffer_import_host(device, pages, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_DRIVER);
    gpuhal_lab.devices[1].fail_import = 0;
    gpuhal_lab.devices[1].short_imports = 1;
    assert_int_equal(gpuhal_buffer_import_host(device, pages, PAGE, let_go, &l, &buffer), GPUHAL_ERROR_DRIVER);
    assert_null(buffer);
    gpuhal_lab.devices[1].imports = 0;
    assert_int_equal(l.calls, 0);
    assert_int_equal(gpuhal_lab.devices[1].imports, 0);
    munmap(pages, PAGE);
    munmap(pages + 2 * PAGE, PAGE);
    gpuhal_close(gpu);
    expect_no_memory();
}

static int system_tells_what_is_writable(void)
{
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int known = madvise(page, PAGE, 22 /* MADV_POPULATE_READ, Linux 5.14 */) == 0;
    munmap(page, PAGE);
    return known;
}

TEST(host_memory_that_cannot_be_written_or_lies_behind_its_file_is_refused)
{
    if (!system_tells_what_is_writable()) {
        skip();
    }
    gpuhal *gpu = open_four();
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    gpuhal_buffer *buffer = NULL;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'w', 2 * PAGE);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(gpuhal_buffer_import_host(device, pages, 2 * PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "reading and writing"));
    assert_int_equal(gpuhal_buffer_import_host(device, pages + PAGE, PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    int file = memfd_create("short", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, PAGE), 0);
    char *view = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_int_equal(gpuhal_buffer_import_host(device, view, 2 * PAGE, NULL, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import_host(device, view, PAGE, NULL, NULL, &buffer), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_buffer_import_host(device, pages, PAGE, NULL, NULL, &buffer), GPUHAL_OK);
    assert_int_equal(pages[0], 'w');
    gpuhal_buffer_release(buffer);
    munmap(view, 2 * PAGE);
    munmap(pages, 2 * PAGE);
    close(file);
    gpuhal_close(gpu);
    expect_no_memory();
}

/* lab:0 and lab:1 are two openings of one driver for one piece of hardware; lab:2 imports nothing. */
static gpuhal *open_opaque(void)
{
    gpuhal_lab = (gpuhal_lab_state){.count = 3};
    for (int d = 0; d < 2; d++) {
        gpuhal_lab.devices[d] = (gpuhal_lab_device){
            .hidden = 1, .export_kinds = OPAQUE, .import_kinds = OPAQUE, .driver_uuid = DRIVER, .uuid = OTHER, .copy_alignment = 4};
    }
    gpuhal_lab.devices[2].hidden = 1;
    return gpuhal_lab_open(NULL, 0);
}

TEST(memory_behind_a_descriptor_is_shared_and_leaves_no_descriptor)
{
    gpuhal *gpu = open_opaque();
    int next = dup(0);
    close(next);
    gpuhal_buffer *original = shareable(gpu, 0, OPAQUE, BYTES - 3), *shared = share_with(gpu, original, 1);
    assert_int_equal(gpuhal_write(NULL, original, 1, "across", 6), GPUHAL_OK);
    expect_bytes(shared, 1, "across");
    gpuhal_buffer_release(original);
    expect_bytes(shared, 1, "across");
    gpuhal_buffer_release(shared);
    original = shareable(gpu, 0, OPAQUE, BYTES);
    gpuhal_lab.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_buffer_share(original, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_DRIVER);
    gpuhal_buffer_release(original);
    original = gpuhal_lab_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_buffer_share(original, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    int after = dup(0);
    assert_int_equal(after, next);
    close(after);
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
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no open descriptor"));
    bad.as.os = -1;
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    bad = (gpuhal_handle){.size = sizeof bad, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = &bad};
    assert_int_equal(gpuhal_buffer_import(device, &desc, &bad, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_import(gpuhal_device_at(gpu, 2), &desc, &handle, &imported), GPUHAL_ERROR_NOT_SUPPORTED);
    const gpuhal_buffer_desc no_kind = {.size = sizeof no_kind, .bytes = BYTES};
    assert_int_equal(gpuhal_buffer_import(device, &no_kind, &handle, &imported), GPUHAL_ERROR_INVALID_ARGUMENT);
    /* Refused after the plugin has taken it: it is the caller's all the same. */
    gpuhal_lab.devices[1].short_imports = 1;
    assert_int_equal(gpuhal_buffer_import(device, &desc, &handle, &imported), GPUHAL_ERROR_DRIVER);
    assert_true(fcntl((int)handle.as.os, F_GETFD) >= 0);
    gpuhal_lab.devices[1].short_imports = 0;
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

TEST(only_kinds_named_at_creation_are_given_out)
{
    gpuhal *gpu = open_opaque();
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, BYTES);
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
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, BYTES);
    gpuhal_handle handle;
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_HOST_POINTER, &handle), GPUHAL_OK);
    assert_ptr_equal(handle.as.pointer, gpuhal_buffer_host(buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_string_equal(gpuhal_handle_kind_name(GPUHAL_HANDLE_HOST_POINTER), "host_pointer");
    assert_string_equal(gpuhal_handle_kind_name(GPUHAL_HANDLE_IPC), "ipc");
    assert_string_equal(gpuhal_handle_kind_name(77), "unknown");
}

TEST(a_wrapped_object_stays_its_owners_who_is_told_once)
{
    static char object[BYTES];
    gpuhal_lab = (gpuhal_lab_state){.count = 2,
                                    .devices = {{.hidden = 1}, {.hidden = 1, .adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_BUFFER, .copy_alignment = 4}}};
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 1);
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)object, BYTES}};
    gpuhal_buffer *buffer = NULL;
    lender l = {.memory = object};
    assert_int_equal(gpuhal_buffer_wrap(gpuhal_device_at(gpu, 0), &native, 8, let_go, &l, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES + 4, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = GPUHAL_NATIVE_VULKAN_BUFFER;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = 0xdeadbeef;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.type = GPUHAL_NATIVE_OPENCL_BUFFER;
    native.values[1] = BYTES - 2;
    assert_int_equal(gpuhal_buffer_wrap(device, &native, BYTES - 2, let_go, &l, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
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

/* An engine's buffer has the size that the engine needs. */
TEST(a_wrapped_object_of_any_size_is_filled_and_copied_to_its_last_byte_and_not_beyond)
{
    enum { ODD = 1001 };
    static unsigned char object[ODD + 7];
    gpuhal_lab = (gpuhal_lab_state){.count = 2,
                                    .devices = {{.hidden = 1},
                                                {.hidden = 1, .adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_BUFFER, .fill_alignment = 8}}};
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)object, ODD}};
    gpuhal_buffer *buffer = NULL, *plain = gpuhal_lab_buffer(gpu, 1, ODD), *far = gpuhal_lab_buffer(gpu, 0, ODD);
    unsigned char got[ODD], expected[ODD];
    memset(object, '|', sizeof object);
    assert_int_equal(gpuhal_buffer_wrap(gpuhal_device_at(gpu, 1), &native, ODD, NULL, NULL, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, ODD, 'f', 1), GPUHAL_OK);
    memset(expected, 'f', ODD);
    assert_memory_equal(object, expected, ODD);
    assert_true(gpuhal_lab.devices[1].fills > 0);
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
