/* Writes, reads, copies and fills of ranges on devices of every kind. The results must be exact to the byte. Invalid
 * ranges must be refused, and failures must be reported correctly. */
#include "support/pattern.h"
#include "transfer_support.h"

/* Chooses a random range inside `bytes`, often small and often unaligned. */
static void pick_range(uint64_t bytes, uint64_t *offset, uint64_t *count)
{
    *offset = next_random() % bytes;
    uint64_t most = next_random() % 3 ? 70 : bytes;
    *count = 1 + next_random() % (most < bytes - *offset ? most : bytes - *offset);
}

TEST(writes_and_reads_of_any_range_arrive_on_every_shape_of_device)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    for (uint32_t d = 0; d < SHAPES; d++) {
        unsigned char *model = random_bytes(BYTES), *source = random_bytes(BYTES), *got = random_bytes(BYTES);
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, d, BYTES);
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    for (uint32_t pair = 0; pair < SHAPES * SHAPES; pair++) {
        unsigned char *to_model = random_bytes(BYTES), *from_model = random_bytes(BYTES);
        gpuhal_buffer *to = gpuhal_mock_buffer(gpu, pair / SHAPES, BYTES),
                      *from = gpuhal_mock_buffer(gpu, pair % SHAPES, BYTES);
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
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const uint32_t sizes[] = {1, 2, 4};
    for (uint32_t d = 0; d < SHAPES; d++) {
        unsigned char *model = random_bytes(300000);
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, d, 300000);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 300000), GPUHAL_OK);
        for (int round = 0; round < 60; round++) {
            uint32_t size = sizes[next_random() % 3], pattern = next_random();
            uint64_t offset, count;
            pick_range(300000, &offset, &count);
            count -= count % size;
            assert_int_equal(gpuhal_fill(NULL, buffer, offset, count, pattern, size), GPUHAL_OK);
            for (uint64_t i = 0; i < count; i++) {
                model[offset + i] = pattern_byte(pattern, size, i);
            }
        }
        expect_contents(buffer, model, 300000);
        gpuhal_buffer_release(buffer);
        free(model);
    }
    gpuhal_close(gpu);
}

TEST(ranges_that_leave_the_buffer_or_overflow_move_nothing)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char *model = random_bytes(100), other[256] = {0};
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 100), *second = gpuhal_mock_buffer(gpu, 3, 100);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, 100), GPUHAL_OK);
    const struct {
        uint64_t offset, bytes;
    } bad[] = {{0, 101},
               {100, 1},
               {101, 0},
               {UINT64_MAX, 1},
               {1, UINT64_MAX},
               {UINT64_MAX, UINT64_MAX},
               {50, UINT64_MAX - 49},
               {1ull << 63, 1ull << 63}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t offset = bad[i].offset, bytes = bad[i].bytes;
        assert_int_equal(gpuhal_write(NULL, buffer, offset, other, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_read(NULL, other, buffer, offset, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_copy(NULL, buffer, offset, second, 0, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_copy(NULL, second, 0, buffer, offset, bytes), GPUHAL_ERROR_OUT_OF_RANGE);
        assert_int_equal(gpuhal_fill(NULL, buffer, offset, bytes, 0, 1), GPUHAL_ERROR_OUT_OF_RANGE);
        const gpuhal_rect rect = {.buffer = buffer, .offset = offset}, host = {.host = other};
        if (bytes > 0) {
            assert_int_equal(gpuhal_copy_rect(NULL, &rect, &host, (const uint64_t[]){bytes, 1, 1}),
                             GPUHAL_ERROR_OUT_OF_RANGE);
        }
        assert_string_equal(gpuhal_last_error()->backend, "mock");
    }
    assert_int_equal(gpuhal_write(NULL, buffer, 100, other, 0), GPUHAL_OK);
    expect_contents(buffer, model, 100);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(second);
    free(model);
    gpuhal_close(gpu);
}

TEST(null_arguments_and_unknown_patterns_are_invalid)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
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

TEST(verify_accepts_every_good_shape_and_names_the_first_wrong_byte)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, d)), GPUHAL_OK);
    }
    gpuhal_mock.devices[0].fail_read = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_device_verify(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(an_error_says_nothing_of_earlier_calls_that_succeeded)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.quiet_failures = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    gpuhal_mock.devices[0].spurious_report = 1;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "x", 1), GPUHAL_OK);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_copy(NULL, buffer, 0, buffer, 32, 8), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_lost_device_answers_lost_on_every_later_call_and_closing_works)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char byte = 1;
    gpuhal_buffer *lost = gpuhal_mock_buffer(gpu, 1, 64), *good = gpuhal_mock_buffer(gpu, 2, 64);
    gpuhal_mock.devices[1].fail_write = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(gpuhal_write(NULL, lost, 0, &byte, 1), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_mock.devices[1].fail_write = GPUHAL_OK;
    assert_int_equal(gpuhal_write(NULL, lost, 0, &byte, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_copy(NULL, good, 0, lost, 0, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_write(NULL, good, 0, &byte, 1), GPUHAL_OK);
    gpuhal_buffer_release(lost);
    gpuhal_buffer_release(good);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].openings, 0);
}

#include "test_main.h"
