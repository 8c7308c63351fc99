/* A shared buffer behaves like a single memory. No byte may be lost and no memory may be leaked in any order of
 * calls. */
#include "share_support.h"

#include <pthread.h>

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
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    gpuhal_close(gpu);
    expect_bytes(shared, BYTES - 5 - 6, "second");
    gpuhal_buffer_release(shared);
    expect_no_memory();
}

TEST(the_shared_buffer_may_go_first_and_others_share_again)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 1),
                  *third = share_with(gpu, shared, 2);
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

/* The host writes one half, the device the other. A copy of the whole buffer in either direction would lose one
 * half. */
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
    /* Rows of two bytes, eight bytes apart. Bytes that the host writes between the rows must not change. */
    const gpuhal_rect to = {.buffer = shared, .offset = 16, .row_pitch = 8},
                      from = {.host = (void *)(uintptr_t) "aabbcc"};
    assert_int_equal(gpuhal_write(NULL, original, 16, "------------------", 18), GPUHAL_OK);
    assert_int_equal(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){2, 3, 1}), GPUHAL_OK);
    expect_bytes(original, 16, "aa------bb------cc");
    gpuhal_buffer *elsewhere = gpuhal_mock_buffer(gpu, 2, 64);
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

/* Bytes in the device's copy that have not reached the host yet must not be overwritten by the host's old bytes. */
TEST(bytes_written_while_another_thread_synchronizes_are_there_for_all)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 2);
    const unsigned char *host = gpuhal_buffer_host(original);
    unsigned char sent[MINE], got[MINE];
    pthread_t other;
    gpuhal_mock.devices[2].slow_write_us = 200;
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

TEST(memory_that_is_not_coherent_shows_bytes_written_before_it_was_shared)
{
    gpuhal *gpu = open_four();
    gpuhal_mock.devices[3].not_coherent = 1;
    gpuhal_close(gpu);
    gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .kind = GPUHAL_MEMORY_READBACK, .bytes = BYTES, .export_kinds = POINTER};
    gpuhal_buffer *original = NULL;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 3), &desc, &original), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, original, 0, "x", 1), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[3].cleans, 1);
    /* Until the mapping ends, the device's bytes must not overwrite the bytes that the host writes there. */
    void *view = NULL;
    assert_int_equal(gpuhal_buffer_map(original, 0, BYTES, GPUHAL_ACCESS_WRITE, &view), GPUHAL_OK);
    gpuhal_buffer *shared = share_with(gpu, original, 1);
    assert_int_equal(gpuhal_mock.devices[3].cleans, 1);
    assert_int_equal(gpuhal_buffer_unmap(original, view), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[3].cleans, 2);
    assert_int_equal(gpuhal_fill(NULL, original, 0, 4, 'y', 1), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[3].cleans, 3);
    assert_int_equal(gpuhal_buffer_synchronize(original), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[3].cleans, 4);
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
        assert_int_equal(gpuhal_mock.devices[d].cleans, 0);
    }
    gpuhal_buffer_release(shared);
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
}

TEST(shared_memory_counts_only_at_its_owner_and_a_failed_import_leaves_nothing)
{
    gpuhal *gpu = open_four();
    gpuhal_device *importer = gpuhal_device_at(gpu, 1);
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = NULL;
    assert_int_equal(gpuhal_device_limit_memory(importer, 100), GPUHAL_OK);
    shared = share_with(gpu, original, 1);
    gpuhal_buffer_release(shared);
    gpuhal_mock.devices[1].fail_import = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(gpuhal_buffer_share(original, importer, &shared), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(shared);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockImport");
    gpuhal_mock.devices[1].fail_import = 0;
    gpuhal_buffer_release(share_with(gpu, original, 1));
    gpuhal_buffer_release(original);
    gpuhal_close(gpu);
    expect_no_memory();
}

TEST(copies_between_equal_offsets_of_one_memory_are_refused)
{
    gpuhal *gpu = open_four();
    gpuhal_buffer *original = shareable(gpu, 0, POINTER, BYTES), *shared = share_with(gpu, original, 1),
                  *third = share_with(gpu, original, 2);
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

#include "test_main.h"
