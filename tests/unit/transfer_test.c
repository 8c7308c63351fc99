/* Transfers, on devices of every shape, beside a model in host memory. */
#include "support/lab.h"
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHAPES = 9, BYTES = 3 * 1024 * 1024 + 11 };

static uint32_t seed = 12345;
static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

/* One device of each shape that a plugin may have. */
static void set_up_shapes(void)
{
    static const gpuhal_lab_device shapes[SHAPES] = {
        {.name = "plain"},
        {.name = "hidden", .hidden = 1},
        {.name = "mapped", .hidden = 1, .mappable = 1},
        {.name = "copy only", .hidden = 1, .no_read_write = 1, .no_fill = 1, .no_rect = 1},
        {.name = "four byte steps", .hidden = 1, .copy_alignment = 4, .fill_alignment = 4},
        {.name = "four byte steps, copy only", .hidden = 1, .no_read_write = 1, .no_rect = 1, .copy_alignment = 4, .fill_alignment = 16},
        {.name = "refuses", .hidden = 1, .refuses = GPUHAL_LAB_READ_WRITE | GPUHAL_LAB_RECT},
        {.name = "refuses in four byte steps", .hidden = 1, .refuses = GPUHAL_LAB_READ_WRITE | GPUHAL_LAB_RECT, .copy_alignment = 4},
        {.name = "not coherent", .not_coherent = 1, .no_read_write = 1, .no_staging_kinds = 0, .no_rect = 1},
    };
    gpuhal_lab.count = SHAPES;
    memcpy(gpuhal_lab.devices, shapes, sizeof shapes);
}

static unsigned char *random_bytes(size_t count)
{
    unsigned char *bytes = malloc(count);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)next_random();
    }
    return bytes;
}

static void expect_contents(gpuhal_buffer *buffer, const unsigned char *expected, uint64_t bytes)
{
    unsigned char *got = malloc(bytes);
    assert_non_null(got);
    memset(got, 0xee, bytes);
    assert_int_equal(gpuhal_read(NULL, got, buffer, 0, bytes), GPUHAL_OK);
    if (memcmp(got, expected, bytes) != 0) {
        uint64_t i = 0;
        while (got[i] == expected[i]) {
            i++;
        }
        const char *name = NULL;
        gpuhal_device_text(gpuhal_buffer_device(buffer), GPUHAL_FACT_NAME, &name);
        fail_msg("%s: byte %llu is %02x, should be %02x", name, (unsigned long long)i, got[i], expected[i]);
    }
    free(got);
}

/* A range inside `bytes`, often small, often odd. */
static void pick_range(uint64_t bytes, uint64_t *offset, uint64_t *count)
{
    *offset = next_random() % bytes;
    uint64_t most = next_random() % 3 ? 70 : bytes;
    *count = 1 + next_random() % (most < bytes - *offset ? most : bytes - *offset);
}

TEST(writes_and_reads_of_any_range_arrive_on_every_shape_of_device)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    for (uint32_t d = 0; d < SHAPES; d++) {
        unsigned char *model = random_bytes(BYTES), *source = random_bytes(BYTES), *got = random_bytes(BYTES);
        gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, d, BYTES);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, model, BYTES), GPUHAL_OK);
        for (int round = 0; round < 60; round++) {
            uint64_t offset, count;
            pick_range(BYTES, &offset, &count);
            assert_int_equal(gpuhal_write(NULL, buffer, offset, source + offset, count), GPUHAL_OK);
            memcpy(model + offset, source + offset, count);
            pick_range(BYTES, &offset, &count);
            assert_int_equal(gpuhal_read(NULL, got, buffer, offset, count), GPUHAL_OK);
            assert_memory_equal(got, model + offset, count);
        }
        expect_contents(buffer, model, BYTES);
        gpuhal_buffer_release(buffer);
        free(model);
        free(source);
        free(got);
    }
    gpuhal_close(gpu);
}

TEST(copies_between_every_pair_of_devices_are_byte_exact)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    for (uint32_t pair = 0; pair < SHAPES * SHAPES; pair++) {
        unsigned char *to_model = random_bytes(BYTES), *from_model = random_bytes(BYTES);
        gpuhal_buffer *to = gpuhal_lab_buffer(gpu, pair / SHAPES, BYTES), *from = gpuhal_lab_buffer(gpu, pair % SHAPES, BYTES);
        assert_int_equal(gpuhal_write(NULL, to, 0, to_model, BYTES), GPUHAL_OK);
        assert_int_equal(gpuhal_write(NULL, from, 0, from_model, BYTES), GPUHAL_OK);
        for (int round = 0; round < 12; round++) {
            uint64_t from_offset, count;
            pick_range(BYTES, &from_offset, &count);
            uint64_t to_offset = next_random() % (BYTES - count + 1);
            assert_int_equal(gpuhal_copy(NULL, to, to_offset, from, from_offset, count), GPUHAL_OK);
            memcpy(to_model + to_offset, from_model + from_offset, count);
        }
        expect_contents(to, to_model, BYTES);
        expect_contents(from, from_model, BYTES);
        gpuhal_buffer_release(to);
        gpuhal_buffer_release(from);
        free(to_model);
        free(from_model);
    }
    gpuhal_close(gpu);
}

TEST(fills_repeat_the_pattern_from_the_first_byte_on)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    const uint32_t sizes[] = {1, 2, 4};
    for (uint32_t d = 0; d < SHAPES; d++) {
        unsigned char *model = random_bytes(300000);
        gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, d, 300000);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 300000), GPUHAL_OK);
        for (int round = 0; round < 60; round++) {
            uint32_t size = sizes[next_random() % 3], pattern = next_random();
            uint64_t offset, count;
            pick_range(300000, &offset, &count);
            count -= count % size;
            assert_int_equal(gpuhal_fill(NULL, buffer, offset, count, pattern, size), GPUHAL_OK);
            for (uint64_t i = 0; i < count; i++) {
                model[offset + i] = (unsigned char)(pattern >> 8 * (i % size));
            }
        }
        expect_contents(buffer, model, 300000);
        gpuhal_buffer_release(buffer);
        free(model);
    }
    gpuhal_close(gpu);
}

/* What copy_rect must do, row by row. */
static void model_rect(unsigned char *to, const gpuhal_rect *to_rect, const unsigned char *from, const gpuhal_rect *from_rect,
                       const uint64_t extent[3])
{
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            memcpy(to + to_rect->offset + z * to_rect->slice_pitch + y * to_rect->row_pitch,
                   from + from_rect->offset + z * from_rect->slice_pitch + y * from_rect->row_pitch, extent[0]);
        }
    }
}

static gpuhal_rect random_rect(gpuhal_buffer *buffer, void *host, const uint64_t extent[3])
{
    gpuhal_rect rect = {.buffer = buffer, .host = host, .offset = next_random() % 50};
    rect.row_pitch = extent[0] + next_random() % 9;
    rect.slice_pitch = rect.row_pitch * extent[1] + next_random() % 17;
    return rect;
}

TEST(rectangles_reach_their_rows_and_leave_the_gaps_alone)
{
    enum { SPACE = 200000 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    for (uint32_t pair = 0; pair < (SHAPES + 1) * (SHAPES + 1) - 1; pair++) {
        uint32_t t = pair / (SHAPES + 1), f = pair % (SHAPES + 1); /* SHAPES: host memory */
        unsigned char *to_model = random_bytes(SPACE), *from_model = random_bytes(SPACE), *host = random_bytes(SPACE);
        gpuhal_buffer *to = t < SHAPES ? gpuhal_lab_buffer(gpu, t, SPACE) : NULL, *from = f < SHAPES ? gpuhal_lab_buffer(gpu, f, SPACE) : NULL;
        if (to) {
            assert_int_equal(gpuhal_write(NULL, to, 0, to_model, SPACE), GPUHAL_OK);
        }
        if (from) {
            assert_int_equal(gpuhal_write(NULL, from, 0, from_model, SPACE), GPUHAL_OK);
        }
        memcpy(host, to ? from_model : to_model, SPACE);
        for (int round = 0; round < 4; round++) {
            const uint64_t extent[3] = {1 + next_random() % 100, 1 + next_random() % 30, 1 + next_random() % 5};
            gpuhal_rect to_rect = random_rect(to, to ? NULL : host, extent), from_rect = random_rect(from, from ? NULL : host, extent);
            assert_int_equal(gpuhal_copy_rect(NULL, &to_rect, &from_rect, extent), GPUHAL_OK);
            model_rect(to_model, &to_rect, from_model, &from_rect, extent);
        }
        if (to) {
            expect_contents(to, to_model, SPACE);
        } else {
            assert_memory_equal(host, to_model, SPACE);
        }
        gpuhal_buffer_release(to);
        gpuhal_buffer_release(from);
        free(to_model);
        free(from_model);
        free(host);
    }
    gpuhal_close(gpu);
}

TEST(a_rectangle_with_rows_above_a_batch_crosses_devices)
{
    enum { WIDTH = 1500007, PITCH = 1500100 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char *model = random_bytes(2 * PITCH);
    gpuhal_buffer *from = gpuhal_lab_buffer(gpu, 1, 2 * PITCH), *to = gpuhal_lab_buffer(gpu, 4, 2 * WIDTH);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, 2 * PITCH), GPUHAL_OK);
    const gpuhal_rect to_rect = {.buffer = to}, from_rect = {.buffer = from, .row_pitch = PITCH};
    assert_int_equal(gpuhal_copy_rect(NULL, &to_rect, &from_rect, (const uint64_t[]){WIDTH, 2, 1}), GPUHAL_OK);
    memmove(model + WIDTH, model + PITCH, WIDTH);
    expect_contents(to, model, 2 * WIDTH);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    gpuhal_close(gpu);
}

TEST(interleaved_boxes_of_one_buffer_are_copied_and_overlapping_ones_refused)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char *model = random_bytes(1000);
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, 1000);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 1000), GPUHAL_OK);
    gpuhal_rect left = {.buffer = buffer, .offset = 0, .row_pitch = 100}, right = {.buffer = buffer, .offset = 50, .row_pitch = 100};
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){50, 10, 1}), GPUHAL_OK);
    for (int row = 0; row < 10; row++) {
        memcpy(model + 100 * row + 50, model + 100 * row, 50);
    }
    expect_contents(buffer, model, 1000);
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){51, 9, 1}), GPUHAL_ERROR_INVALID_ARGUMENT);
    right.row_pitch = 95;
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){50, 9, 1}), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_contents(buffer, model, 1000);
    gpuhal_buffer_release(buffer);
    free(model);
    gpuhal_close(gpu);
}

TEST(ranges_that_leave_the_buffer_or_overflow_move_nothing)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char *model = random_bytes(100), other[256] = {0};
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 1, 100), *second = gpuhal_lab_buffer(gpu, 3, 100);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 100), GPUHAL_OK);
    const struct {
        uint64_t offset, bytes;
    } bad[] = {{0, 101}, {100, 1}, {101, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {50, UINT64_MAX - 49}, {1ull << 63, 1ull << 63}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t offset = bad[i].offset, bytes = bad[i].bytes;
        assert_int_equal(gpuhal_write(NULL, buffer, offset, other, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_read(NULL, other, buffer, offset, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_copy(NULL, buffer, offset, second, 0, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_copy(NULL, second, 0, buffer, offset, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_fill(NULL, buffer, offset, bytes, 0, 1), GPUHAL_ERROR_OUT_OF_RANGE);
        const gpuhal_rect rect = {.buffer = buffer, .offset = offset}, host = {.host = other};
        if (bytes > 0) {
            assert_int_equal(gpuhal_copy_rect(NULL, &rect, &host, (const uint64_t[]){bytes, 1, 1}), GPUHAL_ERROR_OUT_OF_RANGE);
        }
        assert_string_equal(gpuhal_last_error()->backend, "lab");
    }
    assert_int_equal(gpuhal_write(NULL, buffer, 100, other, 0), GPUHAL_OK);
    expect_contents(buffer, model, 100);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(second);
    free(model);
    gpuhal_close(gpu);
}

TEST(a_single_slice_may_have_any_slice_pitch)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, 64);
    const gpuhal_rect to = {.buffer = buffer, .row_pitch = 8, .slice_pitch = 1}, from = {.host = "abcdefghijklmnop"};
    assert_int_equal(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[]){4, 4, 1}), GPUHAL_OK);
    unsigned char got[28] = {0};
    assert_int_equal(gpuhal_read(NULL, got, buffer, 0, 28), GPUHAL_OK);
    assert_memory_equal(got, "abcd", 4);
    assert_memory_equal(got + 24, "mnop", 4);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(rectangle_arithmetic_that_overflows_is_refused)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char host[64];
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, 64);
    const uint64_t huge = 1ull << 62;
    const struct {
        gpuhal_rect to;
        uint64_t extent[3];
    } bad[] = {
        {{.buffer = buffer}, {8, huge, 1}},
        {{.buffer = buffer, .row_pitch = huge}, {8, 5, 1}},
        {{.buffer = buffer, .row_pitch = 8, .slice_pitch = huge}, {8, 2, 9}},
        {{.buffer = buffer, .row_pitch = 4}, {8, 2, 1}},
        {{.buffer = buffer, .slice_pitch = 8}, {8, 2, 2}},
        {{.buffer = buffer, .offset = UINT64_MAX}, {8, 2, 2}},
        {{.buffer = buffer}, {8, 3, 3}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const gpuhal_rect from = {.host = host};
        assert_true(gpuhal_copy_rect(NULL, &bad[i].to, &from, bad[i].extent) < 0);
    }
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(null_arguments_and_unknown_patterns_are_invalid)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, 64);
    gpuhal_rect rect = {.buffer = buffer}, none = {0};
    const uint64_t one[3] = {1, 1, 1};
    unsigned char byte = 0;
    const gpuhal_status invalid = GPUHAL_ERROR_INVALID_ARGUMENT;
    assert_int_equal(gpuhal_write(NULL, NULL, 0, &byte, 1), invalid);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, NULL, 1), invalid);
    assert_int_equal(gpuhal_read(NULL, NULL, buffer, 0, 1), invalid);
    assert_int_equal(gpuhal_read(NULL, &byte, NULL, 0, 1), invalid);
    assert_int_equal(gpuhal_copy(NULL, NULL, 0, buffer, 0, 1), invalid);
    assert_int_equal(gpuhal_copy(NULL, buffer, 0, NULL, 0, 1), invalid);
    assert_int_equal(gpuhal_copy(NULL, buffer, 0, buffer, 8, 16), invalid);
    assert_int_equal(gpuhal_copy((gpuhal_queue *)&byte, buffer, 0, buffer, 32, 16), invalid);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 3, 0, 3), invalid);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 3, 0, 2), invalid);
    assert_int_equal(gpuhal_fill(NULL, NULL, 0, 4, 0, 4), invalid);
    assert_int_equal(gpuhal_copy_rect(NULL, NULL, &rect, one), invalid);
    assert_int_equal(gpuhal_copy_rect(NULL, &rect, NULL, one), invalid);
    assert_int_equal(gpuhal_copy_rect(NULL, &rect, &rect, NULL), invalid);
    assert_int_equal(gpuhal_copy_rect(NULL, &rect, &none, one), invalid);
    assert_int_equal(gpuhal_copy_path(NULL, buffer, NULL), invalid);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* lab:0 has memory that the host sees, lab:1 none, and no way to write or read it but through its own copies; it imports. */
static gpuhal *open_importer(uint32_t refuses)
{
    gpuhal_lab = (gpuhal_lab_state){
        .count = 2,
        .devices = {{.name = "visible"},
                    {.name = "discrete", .hidden = 1, .import_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER, .import_alignment = 4096}}};
    gpuhal_lab.devices[1].no_read_write = refuses == 0;
    gpuhal_lab.devices[1].refuses = refuses;
    return gpuhal_lab_open(NULL, 0);
}

static void expect_path(const gpuhal_buffer *to, const gpuhal_buffer *from, gpuhal_path expected)
{
    gpuhal_path path = 0;
    assert_int_equal(gpuhal_copy_path(to, from, &path), GPUHAL_OK);
    assert_int_equal(path, expected);
}

/* Both directions, twice: the import is made once, and each copy is one of the device's own. */
static void check_sharing_copies(uint32_t refuses)
{
    gpuhal *gpu = open_importer(refuses);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_lab_buffer(gpu, 0, BYTES), *hidden = gpuhal_lab_buffer(gpu, 1, BYTES), *back = gpuhal_lab_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 2; round++) {
        expect_path(hidden, visible, GPUHAL_PATH_SHARED);
        assert_int_equal(gpuhal_copy(NULL, hidden, 7, visible, 7, BYTES - 7), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, hidden, 0, visible, 0, 7), GPUHAL_OK);
        expect_path(back, hidden, GPUHAL_PATH_SHARED);
        assert_int_equal(gpuhal_fill(NULL, back, 0, BYTES, 0, 1), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, back, 0, hidden, 0, BYTES), GPUHAL_OK);
        expect_contents(back, model, BYTES);
    }
    assert_int_equal(gpuhal_lab.devices[1].imports, 2);
    assert_int_equal(gpuhal_lab.devices[1].copies, 6);
    assert_int_equal(gpuhal_lab.devices[1].staging_bytes_most, 0);
    gpuhal_buffer_release(visible);
    gpuhal_buffer_release(hidden);
    gpuhal_buffer_release(back);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_lab.devices[1].allocations, 0);
    free(model);
}

TEST(copies_to_memory_without_direct_access_import_the_other_side_and_take_one_pass)
{
    check_sharing_copies(0);
}

TEST(a_driver_that_refuses_direct_access_is_learned_and_the_other_side_imported)
{
    check_sharing_copies(GPUHAL_LAB_READ_WRITE);
}

TEST(where_the_import_fails_or_is_not_worth_it_copies_are_staged_and_say_so)
{
    gpuhal *gpu = open_importer(0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_lab_buffer(gpu, 0, BYTES), *hidden = gpuhal_lab_buffer(gpu, 1, BYTES), *little = gpuhal_lab_buffer(gpu, 0, 4096);
    gpuhal_lab.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(gpuhal_copy(NULL, hidden, 0, visible, 0, BYTES), GPUHAL_OK);
        expect_path(hidden, visible, GPUHAL_PATH_STAGED);
        expect_contents(hidden, model, BYTES);
    }
    gpuhal_lab.devices[1].fail_import = 0;
    expect_path(hidden, little, GPUHAL_PATH_STAGED);
    expect_path(little, hidden, GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_copy(NULL, little, 0, hidden, 4096, 4096), GPUHAL_OK);
    expect_contents(little, model + 4096, 4096);
    assert_int_equal(gpuhal_lab.devices[1].imports, 0);
    gpuhal_buffer_release(visible);
    gpuhal_buffer_release(hidden);
    gpuhal_buffer_release(little);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_lab.devices[1].allocations, 0);
    free(model);
}

static void *copy_again_and_again(void *user)
{
    gpuhal_buffer **pair = user;
    for (int round = 0; round < 20; round++) {
        assert_int_equal(gpuhal_copy(NULL, pair[1], 0, pair[0], 0, BYTES), GPUHAL_OK);
    }
    return NULL;
}

TEST(threads_that_copy_from_one_buffer_at_once_leave_one_import)
{
    gpuhal *gpu = open_importer(0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_lab_buffer(gpu, 0, BYTES), *pairs[4][2];
    pthread_t threads[4];
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int t = 0; t < 4; t++) {
        pairs[t][0] = visible;
        pairs[t][1] = gpuhal_lab_buffer(gpu, 1, BYTES);
        assert_int_equal(pthread_create(&threads[t], NULL, copy_again_and_again, pairs[t]), 0);
    }
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
    assert_int_equal(gpuhal_lab.devices[1].allocations, 4 + 1);
    for (int t = 0; t < 4; t++) {
        expect_contents(pairs[t][1], model, BYTES);
        gpuhal_buffer_release(pairs[t][1]);
    }
    gpuhal_buffer_release(visible);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_lab.devices[1].allocations, 0);
    free(model);
}

TEST(a_staged_copy_holds_no_more_than_the_bound_whatever_its_size)
{
    enum { LARGE = 40 << 20 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(&(gpuhal_config){.staging_limit_bytes = 256 << 10}, 0);
    unsigned char *model = random_bytes(LARGE);
    gpuhal_buffer *from = gpuhal_lab_buffer(gpu, 1, LARGE), *to = gpuhal_lab_buffer(gpu, 3, LARGE);
    gpuhal_path path = 0;
    assert_int_equal(gpuhal_copy_path(to, from, &path), GPUHAL_OK);
    assert_int_equal(path, GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, LARGE), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, LARGE), GPUHAL_OK);
    expect_contents(to, model, LARGE);
    for (int d = 0; d < SHAPES; d++) {
        assert_true(gpuhal_lab.devices[d].staging_bytes_most <= 2 * (256 << 10));
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_lab.devices[1].allocations, 0);
    assert_int_equal(gpuhal_lab.devices[3].allocations, 0);
}

TEST(a_failing_half_of_a_staged_copy_is_reported_with_its_device_and_leaves_the_ring_usable)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *from = gpuhal_lab_buffer(gpu, 1, BYTES), *to = gpuhal_lab_buffer(gpu, 2, BYTES);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 3; round++) {
        gpuhal_lab.devices[1].fail_copy = GPUHAL_ERROR_DRIVER;
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_ERROR_DRIVER);
        assert_string_equal(gpuhal_last_error()->device, "lab:1");
        assert_string_equal(gpuhal_last_error()->vendor_call, "labCopy");
        gpuhal_lab.devices[1].fail_copy = GPUHAL_OK;
        gpuhal_lab.devices[2].fail_write = GPUHAL_ERROR_DRIVER;
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_ERROR_DRIVER);
        assert_string_equal(gpuhal_last_error()->device, "lab:2");
        assert_int_equal(gpuhal_last_error()->vendor_code, 3);
        gpuhal_lab.devices[2].fail_write = GPUHAL_OK;
    }
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_OK);
    expect_contents(to, model, BYTES);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    gpuhal_close(gpu);
}

typedef struct crossing {
    gpuhal *gpu;
    uint32_t number;
    _Atomic int wrong;
} crossing;

static void *cross(void *user)
{
    crossing *c = user;
    uint32_t a = c->number % SHAPES, b = (c->number + 1 + c->number / SHAPES) % SHAPES;
    unsigned char *model = malloc(BYTES), *got = malloc(BYTES);
    gpuhal_buffer *from = gpuhal_lab_buffer(c->gpu, a, BYTES), *to = gpuhal_lab_buffer(c->gpu, b, BYTES);
    memset(model, (int)c->number + 1, BYTES);
    for (int round = 0; round < 3; round++) {
        c->wrong += gpuhal_write(NULL, from, 0, model, BYTES) != GPUHAL_OK;
        c->wrong += gpuhal_copy(NULL, to, 1, from, 0, BYTES - 1) != GPUHAL_OK;
        c->wrong += gpuhal_copy(NULL, from, 3, to, 1, BYTES - 3) != GPUHAL_OK;
        c->wrong += gpuhal_read(NULL, got, from, 0, BYTES) != GPUHAL_OK;
        c->wrong += memcmp(model, got, BYTES) != 0;
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    free(got);
    return NULL;
}

/* Copies between devices 0 and 1, which need not have anything to say about the bytes. */
static void *cross_two(void *user)
{
    crossing *c = user;
    gpuhal_buffer *from = gpuhal_lab_buffer(c->gpu, 0, BYTES), *to = gpuhal_lab_buffer(c->gpu, 1, BYTES);
    for (int round = 0; round < 30; round++) {
        if (gpuhal_copy(NULL, to, 0, from, 0, BYTES) != GPUHAL_OK) {
            c->wrong = 1;
        }
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    return NULL;
}

TEST(many_threads_cross_devices_at_once_through_a_tiny_ring)
{
    enum { THREADS = 14 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(&(gpuhal_config){.staging_limit_bytes = 64 << 10}, 0);
    pthread_t threads[THREADS];
    crossing crossings[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        crossings[i] = (crossing){gpu, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, cross, &crossings[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crossings[i].wrong, 0);
    }
    gpuhal_close(gpu);
}

TEST(verify_accepts_every_good_shape_and_names_the_first_wrong_byte)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 1);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, d)), GPUHAL_OK);
    }
    gpuhal_lab.devices[0].fail_read = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_device_verify(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(an_error_tells_nothing_of_earlier_calls_that_succeeded)
{
    gpuhal_lab = (gpuhal_lab_state){.count = 1, .devices = {{.quiet_failures = 1}}};
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_lab_buffer(gpu, 0, 64);
    gpuhal_lab.devices[0].gossip = 1;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "x", 1), GPUHAL_OK);
    gpuhal_lab.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_copy(NULL, buffer, 0, buffer, 32, 8), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_staged_copy_works_in_a_child_whose_parent_was_copying)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    gpuhal_lab = (gpuhal_lab_state){.count = 2, .fork_safe = 1, .devices = {{.hidden = 1}, {.hidden = 1}}};
    gpuhal *gpu = gpuhal_lab_open(&(gpuhal_config){.staging_limit_bytes = 64 << 10}, 0);
    crossing c = {gpu, 0, 0};
    pthread_t threads[4];
    gpuhal_buffer *from = gpuhal_lab_buffer(gpu, 0, 1 << 20), *to = gpuhal_lab_buffer(gpu, 1, 1 << 20);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, cross_two, &c), 0);
    }
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            _exit(gpuhal_copy(NULL, to, 0, from, 0, 1 << 20) == GPUHAL_OK ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(c.wrong, 0);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
}

TEST(a_lost_device_answers_lost_on_every_later_call_and_closing_works)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_lab_open(NULL, 0);
    unsigned char byte = 1;
    gpuhal_buffer *lost = gpuhal_lab_buffer(gpu, 1, 64), *good = gpuhal_lab_buffer(gpu, 2, 64);
    gpuhal_lab.devices[1].fail_write = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(gpuhal_write(NULL, lost, 0, &byte, 1), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_lab.devices[1].fail_write = GPUHAL_OK;
    assert_int_equal(gpuhal_write(NULL, lost, 0, &byte, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_copy(NULL, good, 0, lost, 0, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_write(NULL, good, 0, &byte, 1), GPUHAL_OK);
    gpuhal_buffer_release(lost);
    gpuhal_buffer_release(good);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_lab.devices[1].openings, 0);
}

#include "test_main.h"
