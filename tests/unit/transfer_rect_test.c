/* Copies of rectangles between host memory and devices of every kind, compared with a model. */
#include "transfer_support.h"

/* Does the same copy as gpuhal_copy_rect(), row by row. */
static void model_rect(unsigned char *to, const gpuhal_rect *to_rect, const unsigned char *from,
                       const gpuhal_rect *from_rect, const uint64_t extent[3])
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    for (uint32_t pair = 0; pair < (SHAPES + 1) * (SHAPES + 1) - 1; pair++) {
        uint32_t t = pair / (SHAPES + 1), f = pair % (SHAPES + 1); /* index SHAPES means host memory */
        unsigned char *to_model = random_bytes(SPACE), *from_model = random_bytes(SPACE), *host = random_bytes(SPACE);
        gpuhal_buffer *to = t < SHAPES ? gpuhal_mock_buffer(gpu, t, SPACE) : NULL,
                      *from = f < SHAPES ? gpuhal_mock_buffer(gpu, f, SPACE) : NULL;
        if (to) {
            assert_int_equal(gpuhal_write(NULL, to, 0, to_model, SPACE), GPUHAL_OK);
        }
        if (from) {
            assert_int_equal(gpuhal_write(NULL, from, 0, from_model, SPACE), GPUHAL_OK);
        }
        memcpy(host, to ? from_model : to_model, SPACE);
        for (int round = 0; round < 4; round++) {
            const uint64_t extent[3] = {1 + next_random() % 100, 1 + next_random() % 30, 1 + next_random() % 5};
            gpuhal_rect to_rect = random_rect(to, to ? NULL : host, extent),
                        from_rect = random_rect(from, from ? NULL : host, extent);
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char *model = random_bytes(2 * PITCH);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 1, 2 * PITCH), *to = gpuhal_mock_buffer(gpu, 4, 2 * WIDTH);
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char *model = random_bytes(1000);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 1000);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 1000), GPUHAL_OK);
    gpuhal_rect left = {.buffer = buffer, .offset = 0, .row_pitch = 100},
                right = {.buffer = buffer, .offset = 50, .row_pitch = 100};
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){50, 10, 1}), GPUHAL_OK);
    for (int row = 0; row < 10; row++) {
        memcpy(model + 100 * row + 50, model + 100 * row, 50);
    }
    expect_contents(buffer, model, 1000);
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){51, 9, 1}),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    right.row_pitch = 95;
    assert_int_equal(gpuhal_copy_rect(NULL, &right, &left, (const uint64_t[]){50, 9, 1}),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_contents(buffer, model, 1000);
    gpuhal_buffer_release(buffer);
    free(model);
    gpuhal_close(gpu);
}

TEST(a_single_slice_may_have_any_slice_pitch)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char host[64];
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
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

TEST(a_rectangle_without_extent_in_one_dimension_moves_nothing)
{
    enum { SPACE = 4096 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *to = gpuhal_mock_buffer(gpu, 0, SPACE), *from = gpuhal_mock_buffer(gpu, 0, SPACE);
    unsigned char *model = random_bytes(SPACE), *other = random_bytes(SPACE);
    gpuhal_queue *queue = NULL;
    assert_int_equal(gpuhal_write(NULL, to, 0, model, SPACE), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, from, 0, other, SPACE), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_create(gpuhal_buffer_device(to), NULL, &queue), GPUHAL_OK);
    for (int dimension = 0; dimension < 3; dimension++) {
        uint64_t extent[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
        const gpuhal_rect to_rect = {.buffer = to}, from_rect = {.buffer = from};
        extent[dimension] = 0;
        assert_int_equal(gpuhal_copy_rect(NULL, &to_rect, &from_rect, extent), GPUHAL_OK);
        assert_int_equal(gpuhal_copy_rect(queue, &to_rect, &from_rect, extent), GPUHAL_OK);
        extent[(dimension + 1) % 3] = extent[(dimension + 2) % 3] = 1;
        assert_int_equal(gpuhal_copy_rect(queue, &to_rect, &from_rect, extent), GPUHAL_OK);
    }
    assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
    expect_contents(to, model, SPACE);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(to);
    gpuhal_buffer_release(from);
    gpuhal_close(gpu);
    free(model);
    free(other);
}

#include "test_main.h"
