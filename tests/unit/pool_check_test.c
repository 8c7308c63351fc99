/* Pools in checking mode: the errors that they detect, with the place and the time of each error. */
#include "memory/buffer.h"
#include "pool_support.h"
#include "support/open_variable.h"

typedef struct {
    char line[400];
    uint32_t count;
} heard;

static void hear(void *user, int32_t level, const char *line)
{
    heard *all = user;
    if (level == 1) {
        all->count++;
        snprintf(all->line, sizeof all->line, "%s", line);
    }
}

static gpuhal *open_heard(heard *all, gpuhal_mock_device device)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {device}};
    *all = (heard){.count = 0};
    return gpuhal_mock_open(&(gpuhal_config){.log = hear, .log_user = all}, 0);
}

static gpuhal_pool *checked(gpuhal *gpu)
{
    return pool_or_fail(gpu, (gpuhal_pool_desc){.flags = GPUHAL_POOL_CHECKING, .tag = "logits"});
}

static void write_at(gpuhal_queue *queue, gpuhal_buffer *buffer, uint64_t index)
{
    assert_ok(gpuhal_fill(queue, buffer->whole, buffer->begin + index, 1, 0x33, 1));
}

TEST(a_write_beyond_the_end_is_stated_with_its_place_and_tag)
{
    static const uint64_t places[] = {100, 101, 355};
    for (size_t i = 0; i < 6; i++) {
        heard all;
        gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){.hidden = i % 2});
        gpuhal_pool *pool = checked(gpu);
        gpuhal_buffer *before = take(pool, NULL, 256), *buffer = take(pool, NULL, 100);
        char place[80];
        snprintf(place, sizeof place, "byte %u of a pool's buffer of 100 bytes, tagged \"logits\"",
                 (unsigned)places[i / 2]);
        write_at(NULL, buffer, places[i / 2]);
        gpuhal_buffer_release(buffer);
        assert_int_equal(all.count, 1);
        assert_non_null(strstr(all.line, place));
        assert_non_null(strstr(all.line, "begins at byte 512 of"));
        gpuhal_buffer_release(before);
        assert_int_equal(all.count, 1);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

TEST(right_work_is_not_complained_about)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){.copy_alignment = 4, .fill_alignment = 16});
    gpuhal_pool *pool = checked(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    for (uint64_t i = 1; i < 600; i += 7) {
        gpuhal_buffer *buffer = take(pool, i % 2 ? queue : NULL, i), *other = take(pool, queue, 2 * i);
        assert_ok(gpuhal_fill(queue, buffer, 0, i, 0x11, 1));
        assert_ok(gpuhal_fill(queue, other, 0, 2 * i, 0x22, 1));
        gpuhal_buffer_release(buffer);
        gpuhal_buffer_release(other);
    }
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 0);
    expect_nothing_left();
}

TEST(new_buffers_and_released_memory_are_full_of_bytes_that_show)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){0});
    gpuhal_pool *pool = checked(gpu);
    gpuhal_buffer *buffer = take(pool, NULL, 1000), *kept = take(pool, NULL, 8);
    unsigned char *host = gpuhal_buffer_host(buffer);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(host[i], 0xc5);
    }
    gpuhal_buffer_release(buffer);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(host[i], 0xd9);
    }
    gpuhal_buffer_release(kept);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 0);
}

TEST(writes_of_queued_work_beyond_the_end_are_found_once_it_has_ended)
{
    for (int at_destroy = 0; at_destroy < 2; at_destroy++) {
        heard all;
        gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){0});
        gpuhal_pool *pool = checked(gpu);
        gpuhal_queue *queue = queue_or_fail(gpu), *second = queue_or_fail(gpu);
        gpuhal_event *gate = close_gate(gpu, queue);
        gpuhal_buffer *buffer = take(pool, second, 64);
        assert_ok(gpuhal_buffer_use(buffer, queue));
        write_at(queue, buffer, 70);
        gpuhal_buffer_release(buffer);
        assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
        assert_ok(gpuhal_pool_trim(pool, 0, NULL));
        assert_int_equal(all.count, 0);
        open_gate(gate);
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        if (!at_destroy) {
            assert_ok(gpuhal_pool_trim(pool, 0, NULL));
            assert_int_equal(all.count, 1);
        }
        gpuhal_pool_destroy(pool);
        assert_int_equal(all.count, 1);
        assert_non_null(strstr(all.line, "byte 70 of"));
        gpuhal_queue_destroy(queue);
        gpuhal_queue_destroy(second);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

TEST(in_checking_mode_no_queue_has_memory_before_the_work_on_it_has_ended)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){0});
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.flags = GPUHAL_POOL_CHECKING, .limit_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer_release(take(pool, queue, SEGMENT - 256));
    assert_int_equal(attempt(pool, queue, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(gate);
    assert_int_equal(attempt(pool, queue, SEGMENT - 256, 0, PATIENCE_NS), GPUHAL_OK);
    assert_int_equal(attempt(pool, NULL, SEGMENT - 255, 0, PATIENCE_NS), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_second_release_is_stated_and_harms_no_other_buffer)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){0});
    gpuhal_pool *pool = checked(gpu);
    gpuhal_buffer *buffer = take(pool, NULL, 100);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer *others[100];
    for (int i = 0; i < 100; i++) {
        others[i] = take(pool, NULL, 100);
        assert_true(others[i] != buffer);
    }
    for (uint32_t i = 1; i <= 3; i++) {
        gpuhal_buffer_release(buffer);
        assert_int_equal(all.count, i);
        assert_non_null(strstr(all.line, "buffer of 100 bytes, tagged \"logits\", was released again"));
    }
    assert_int_equal(state_of(pool).buffers.current, 100);
    for (int i = 0; i < 100; i++) {
        gpuhal_buffer_release(others[i]);
    }
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(the_last_4096_released_buffers_are_known_and_older_ones_are_used_again)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){0});
    gpuhal_pool *pool = checked(gpu);
    gpuhal_buffer *first = take(pool, NULL, 8);
    gpuhal_buffer_release(first);
    for (int i = 1; i < 4097; i++) {
        gpuhal_buffer *buffer = take(pool, NULL, 8);
        assert_true(buffer != first);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_buffer *buffer = take(pool, NULL, 8);
    assert_ptr_equal(buffer, first);
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 0);
}

TEST(a_buffer_that_cannot_be_prepared_is_not_given)
{
    heard all;
    gpuhal *gpu = open_heard(&all, (gpuhal_mock_device){.hidden = 1, .no_fill = 1});
    gpuhal_pool *pool = checked(gpu);
    gpuhal_buffer_release(take(pool, NULL, 8));
    atomic_store(&gpuhal_mock.devices[0].fail_write, GPUHAL_ERROR_DRIVER);
    assert_int_equal(attempt(pool, NULL, 8, 0, 0), GPUHAL_ERROR_DRIVER);
    atomic_store(&gpuhal_mock.devices[0].fail_write, GPUHAL_OK);
    assert_int_equal(state_of(pool).buffers.current, 0);
    assert_int_equal(attempt(pool, NULL, 8, 0, 0), GPUHAL_OK);
    assert_int_equal(all.count, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(the_environment_variable_puts_every_pool_into_checking_mode)
{
    static const struct {
        const char *value;
        uint32_t found;
    } cases[] = {{"1", 1}, {"0", 0}, {"", 0}};
    heard all;
    gpuhal *gpu = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        all.count = 0;
        assert_ok(open_with_variable("GPUHAL_POOL_CHECK", cases[i].value, hear, &all, &gpu));
        gpuhal_device *device = NULL;
        gpuhal_pool *pool = NULL;
        assert_ok(gpuhal_select(gpu, "mock:0", 0, &device, NULL));
        assert_ok(gpuhal_pool_create(device, NULL, &pool));
        gpuhal_buffer *buffer = take(pool, NULL, 100);
        assert_int_equal(gpuhal_mock.devices[0].fills > 0, cases[i].found);
        write_at(NULL, buffer, 100);
        gpuhal_buffer_release(buffer);
        assert_int_equal(all.count, cases[i].found);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
    }
    gpu = NULL;
    assert_int_equal(open_with_variable("GPUHAL_POOL_CHECK", "yes", hear, &all, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(gpu);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_POOL_CHECK"));
}

#include "test_main.h"
