/* Suballocations of a pool. Each suballocation is found by its address, has ranges of its own, and is separate from its
 * neighbours. */
#include "pool_support.h"

#include <gpuhal/file.h>
#include <gpuhal/native.h>
#include <gpuhal/share.h>

#include <unistd.h>

TEST(an_address_in_a_part_finds_it_and_one_between_parts_finds_nothing)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.own_addresses = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *parts[16], *found = NULL;
    uint64_t offset = 9;
    for (uint64_t i = 0; i < 16; i++) {
        parts[i] = take(pool, NULL, 100 + i * 700);
    }
    for (uint64_t i = 0; i < 16; i++) {
        const uint64_t places[] = {0, 50, 99 + i * 700};
        const uint64_t begins[] = {gpuhal_buffer_address(parts[i]), (uintptr_t)gpuhal_buffer_host(parts[i])};
        for (int k = 0; k < 6; k++) {
            assert_ok(gpuhal_buffer_find(gpu, begins[k / 3] + places[k % 3], &found, &offset));
            assert_ptr_equal(found, parts[i]);
            assert_int_equal(offset, places[k % 3]);
            gpuhal_buffer_release(found);
        }
        assert_int_equal(gpuhal_buffer_find(gpu, begins[0] + 100 + i * 700, &found, &offset),
                         (100 + i * 700) % UNIT ? GPUHAL_ERROR_NOT_FOUND : GPUHAL_OK);
        assert_true(found == NULL || found != parts[i]);
        gpuhal_buffer_release(found);
    }
    const uint64_t gone = gpuhal_buffer_address(parts[3]);
    gpuhal_buffer_release(parts[3]);
    assert_int_equal(gpuhal_buffer_find(gpu, gone, &found, &offset), GPUHAL_ERROR_NOT_FOUND);
    assert_null(found);
    gpuhal_pool_destroy(pool);
    assert_ok(gpuhal_buffer_find(gpu, gpuhal_buffer_address(parts[4]) + 1, &found, &offset));
    assert_ptr_equal(found, parts[4]);
    assert_int_equal(offset, 1);
    gpuhal_buffer_release(found);
    for (int i = 0; i < 16; i++) {
        gpuhal_buffer_release(i == 3 ? NULL : parts[i]);
    }
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_part_is_not_mapped_exported_or_shared)
{
    const uint32_t kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD | 1u << GPUHAL_HANDLE_HOST_POINTER;
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_mock.devices[i] = (gpuhal_mock_device){.mappable = 1, .export_kinds = kinds, .import_kinds = kinds};
    }
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *part = take(pool, NULL, 4096), *shared = part;
    gpuhal_handle handle = {.size = sizeof handle};
    void *pointer = pool;
    assert_int_equal(gpuhal_buffer_map(part, 0, 1, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(pointer);
    assert_int_equal(gpuhal_buffer_export(part, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(part, GPUHAL_HANDLE_HOST_POINTER, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_share(part, gpuhal_device_at(gpu, 1), &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(shared);
    assert_true(gpuhal_last_error()->sentence[0] != 0);
    assert_int_equal(gpuhal_buffer_unmap(part, gpuhal_buffer_host(part)), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(part);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* Three adjacent suballocations. The first and the last are filled with a byte that must not change. */
typedef struct neighbours {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_buffer *before, *part, *behind;
    gpuhal_queue *queue;
} neighbours;

enum { BYTES = 1000 };

static neighbours make_neighbours(uint32_t hidden)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = hidden}}};
    neighbours n = {.gpu = gpuhal_mock_open(NULL, 0)};
    n.pool = pool_or_fail(n.gpu, (gpuhal_pool_desc){0});
    n.before = take(n.pool, NULL, 1024);
    n.part = take(n.pool, NULL, BYTES);
    n.behind = take(n.pool, NULL, 1024);
    n.queue = queue_or_fail(n.gpu);
    assert_ok(gpuhal_fill(NULL, n.before, 0, 1024, 0xbb, 1));
    assert_ok(gpuhal_fill(NULL, n.part, 0, BYTES, 0, 1));
    assert_ok(gpuhal_fill(NULL, n.behind, 0, 1024, 0xcc, 1));
    return n;
}

static void expect_all(gpuhal_buffer *buffer, uint64_t bytes, unsigned char value)
{
    unsigned char got[2048];
    assert_ok(gpuhal_read(NULL, got, buffer, 0, bytes));
    for (uint64_t i = 0; i < bytes; i++) {
        assert_int_equal(got[i], value);
    }
}

static void give_neighbours(neighbours *n)
{
    expect_all(n->before, 1024, 0xbb);
    expect_all(n->behind, 1024, 0xcc);
    gpuhal_queue_destroy(n->queue);
    gpuhal_buffer_release(n->before);
    gpuhal_buffer_release(n->part);
    gpuhal_buffer_release(n->behind);
    gpuhal_pool_destroy(n->pool);
    gpuhal_close(n->gpu);
}

static void expect_range(gpuhal_status got, bool fits)
{
    assert_int_equal(got, fits ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_RANGE);
}

static void move_all_ways(const neighbours *n, gpuhal_queue *queue, const char *path, uint64_t offset, uint64_t bytes)
{
    static unsigned char host[4096];
    const bool fits = offset <= BYTES && bytes <= BYTES - offset;
    const uint64_t extent[3] = {bytes, 1, 1};
    const gpuhal_rect outside = {.host = host}, inside = {.buffer = n->part, .offset = offset};
    const gpuhal_file file = {.size = sizeof file, .path = path};
    expect_range(gpuhal_write(queue, n->part, offset, host, bytes), fits);
    expect_range(gpuhal_read(queue, host, n->part, offset, bytes), fits);
    expect_range(gpuhal_fill(queue, n->part, offset, bytes, 7, 1), fits);
    expect_range(gpuhal_copy(queue, n->part, offset, n->before, 0, bytes), fits);
    expect_range(gpuhal_copy(queue, n->before, 0, n->part, offset, bytes), fits);
    assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
    assert_ok(gpuhal_fill(NULL, n->before, 0, 1024, 0xbb, 1));
    if (bytes > 0 && bytes <= sizeof host) {
        expect_range(gpuhal_copy_rect(queue, &inside, &outside, extent), fits);
        expect_range(gpuhal_copy_rect(queue, &outside, &inside, extent), fits);
        expect_range(gpuhal_write_file(queue, &file, n->part, offset, bytes), fits);
        expect_range(gpuhal_read_file(queue, n->part, offset, &file, bytes), fits);
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
    }
}

TEST(a_transfer_ends_at_the_end_of_its_part)
{
    static const uint64_t ranges[][2] = {{0, BYTES},
                                         {0, BYTES + 1},
                                         {0, 1024},
                                         {0, 1025},
                                         {BYTES - 1, 1},
                                         {BYTES - 1, 2},
                                         {BYTES, 0},
                                         {BYTES, 1},
                                         {BYTES + 1, 0},
                                         {UINT64_MAX, 1},
                                         {1, UINT64_MAX - 1},
                                         {1024, 1},
                                         {UINT64_MAX - 1023, 1024}};
    for (uint32_t hidden = 0; hidden < 2; hidden++) {
        char path[] = "gpuhal-pool-XXXXXX";
        const int file = mkstemp(path);
        static const unsigned char zeros[4096];
        assert_true(file >= 0 && write(file, zeros, sizeof zeros) == sizeof zeros);
        neighbours n = make_neighbours(hidden);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            move_all_ways(&n, NULL, path, ranges[i][0], ranges[i][1]);
            move_all_ways(&n, n.queue, path, ranges[i][0], ranges[i][1]);
        }
        close(file);
        unlink(path);
        give_neighbours(&n);
    }
}

TEST(a_whole_file_goes_into_a_part_that_is_large_enough_and_into_no_other)
{
    char path[] = "gpuhal-pool-XXXXXX";
    const int file = mkstemp(path);
    unsigned char bytes[BYTES + 1];
    memset(bytes, 0x31, sizeof bytes);
    assert_true(file >= 0 && write(file, bytes, BYTES) == BYTES);
    neighbours n = make_neighbours(0);
    const gpuhal_file whole = {.size = sizeof whole, .path = path};
    assert_ok(gpuhal_read_file(NULL, n.part, 0, &whole, GPUHAL_WHOLE_SIZE));
    expect_all(n.part, BYTES, 0x31);
    assert_int_equal(gpuhal_read_file(NULL, n.part, 1, &whole, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_true(write(file, bytes, 1) == 1);
    assert_int_equal(gpuhal_read_file(NULL, n.part, 0, &whole, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_ok(gpuhal_read_file(n.queue, n.part, 0, &whole, GPUHAL_WHOLE_SIZE));
    assert_int_equal(gpuhal_queue_synchronize(n.queue, PATIENCE_NS), GPUHAL_ERROR_OUT_OF_RANGE);
    expect_all(n.part, BYTES, 0x31);
    const gpuhal_file cut = {.size = sizeof cut, .path = path, .flags = GPUHAL_FILE_TRUNCATE};
    assert_ok(gpuhal_write_file(NULL, &cut, n.part, 1, GPUHAL_WHOLE_SIZE));
    assert_int_equal(lseek(file, 0, SEEK_END), BYTES - 1);
    close(file);
    unlink(path);
    give_neighbours(&n);
}

TEST(two_parts_of_one_segment_are_copied_and_an_overlap_inside_one_is_invalid)
{
    for (uint32_t i = 0; i < 4; i++) {
        neighbours n = make_neighbours(i & 1);
        gpuhal_queue *queue = i & 2 ? n.queue : NULL;
        const uint64_t extent[3] = {10, 20, 1};
        const gpuhal_rect to = {.buffer = n.part, .row_pitch = 20}, from = {.buffer = n.before, .row_pitch = 20},
                          over = {.buffer = n.part, .offset = 5, .row_pitch = 20},
                          beside = {.buffer = n.part, .offset = 10, .row_pitch = 20};
        assert_ok(gpuhal_copy(queue, n.part, 0, n.before, 24, BYTES));
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        expect_all(n.part, BYTES, 0xbb);
        assert_ok(gpuhal_fill(queue, n.part, 0, 500, 0xdd, 1));
        assert_ok(gpuhal_copy(queue, n.part, 500, n.part, 0, 500));
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        expect_all(n.part, BYTES, 0xdd);
        assert_int_equal(gpuhal_copy(queue, n.part, 499, n.part, 0, 500), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(gpuhal_copy(queue, n.part, 0, n.part, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_ok(gpuhal_copy_rect(queue, &to, &from, extent));
        assert_ok(gpuhal_copy_rect(queue, &beside, &to, extent));
        assert_int_equal(gpuhal_copy_rect(queue, &over, &to, extent), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        expect_all(n.part, 390, 0xbb);
        gpuhal_path path = 0;
        assert_ok(gpuhal_copy_path(n.part, n.before, &path));
        assert_int_equal(path, GPUHAL_PATH_NATIVE);
        give_neighbours(&n);
    }
}

TEST(a_part_is_copied_to_and_from_another_device)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.hidden = 1}, {.copy_alignment = 4}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pools[2];
    gpuhal_buffer *skipped[2], *parts[2];
    unsigned char in[5000], out[5000] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        const gpuhal_pool_desc desc = {.size = sizeof desc};
        assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, i), &desc, &pools[i]));
        skipped[i] = take(pools[i], NULL, 777);
        parts[i] = take(pools[i], NULL, sizeof in);
    }
    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i * 13 + i / 251);
    }
    for (int with_queue = 0; with_queue < 2; with_queue++) {
        gpuhal_queue *queue = with_queue ? queue_or_fail(gpu) : NULL;
        memset(out, 0, sizeof out);
        assert_ok(gpuhal_write(queue, parts[0], 0, in, sizeof in));
        assert_ok(gpuhal_copy(queue, parts[1], 3, parts[0], 3, sizeof in - 3));
        assert_ok(gpuhal_fill(queue, parts[0], 0, sizeof in, 0, 1));
        assert_ok(gpuhal_copy(queue, parts[0], 3, parts[1], 3, sizeof in - 3));
        assert_ok(gpuhal_read(queue, out, parts[0], 0, sizeof in));
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        assert_memory_equal(out + 3, in + 3, sizeof in - 3);
        gpuhal_queue_destroy(queue);
    }
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_buffer_release(skipped[i]);
        gpuhal_buffer_release(parts[i]);
        gpuhal_pool_destroy(pools[i]);
    }
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* If a call refuses the queue, the pool must not keep a reference to the other object. */
TEST(a_queue_of_another_gpuhal_object_is_refused_and_may_end_before_the_part)
{
    gpuhal *gpu = open_one(), *other = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    gpuhal_queue *own = queue_or_fail(gpu), *foreign = queue_or_fail(other);
    gpuhal_buffer *part = take(pool, own, SEGMENT), *plain = gpuhal_mock_buffer(gpu, 0, 64);
    unsigned char byte = 0;
    const gpuhal_rect to = {.buffer = part}, from = {.buffer = plain};
    assert_int_equal(gpuhal_fill(foreign, part, 0, 1, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_write(foreign, part, 0, &byte, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_read(foreign, &byte, part, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy(foreign, part, 0, plain, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy_rect(foreign, &to, &from, (const uint64_t[]){1, 1, 1}), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_queue_keep(foreign, &part, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_queue_destroy(foreign);
    gpuhal_close(other);
    gpuhal_buffer_release(part);
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
    gpuhal_buffer_release(plain);
    gpuhal_queue_destroy(own);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(never_out_of_memory_while_a_free_block_fits)
{
    enum { HELD = 200, STEPS = 40000 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 4 * SEGMENT});
    gpuhal_buffer *held[HELD] = {NULL};
    uint64_t state = 88172645463325252u, requested = 0;
    uint32_t refused = 0;
    for (int step = 0; step < STEPS; step++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        gpuhal_buffer **place = &held[state % HELD];
        requested -= gpuhal_buffer_bytes(*place);
        gpuhal_buffer_release(*place);
        const uint64_t bytes = 1 + (state >> 20) % (state & 64 ? 1000 : 9000);
        const gpuhal_pool_statistics before = state_of(pool);
        const uint64_t room = 4 * SEGMENT - before.reserved.current;
        const bool fits = before.largest_free_bytes >= (bytes + UNIT - 1) / UNIT * UNIT || room >= bytes + UNIT;
        gpuhal_status status = gpuhal_pool_allocate(pool, NULL, bytes, 0, 0, place);
        assert_true(status == GPUHAL_OK || (status == GPUHAL_ERROR_OUT_OF_MEMORY && !fits));
        refused += status != GPUHAL_OK;
        requested += gpuhal_buffer_bytes(*place);
        const gpuhal_pool_statistics after = state_of(pool);
        assert_int_equal(after.requested.current, requested);
        assert_int_equal(after.out_of_memory, refused);
        assert_true(after.reserved.peak <= 4 * SEGMENT);
    }
    assert_true(refused > 100);
    for (int i = 0; i < HELD; i++) {
        gpuhal_buffer_release(held[i]);
    }
    const gpuhal_pool_statistics end = state_of(pool);
    assert_int_equal(end.buffers.total_in, STEPS - refused);
    assert_int_equal(end.buffers.current, 0);
    assert_int_equal(end.used.current, 0);
    assert_int_equal(end.requested.total_in, end.requested.total_out);
    assert_int_equal(end.unused_segment_bytes, end.reserved.current);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

#include "test_main.h"
