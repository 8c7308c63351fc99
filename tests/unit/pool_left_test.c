/* Tags, and leaked objects, which gpuhal_close() reports. */
#include "pool_support.h"

#include <gpuhal/store.h>

typedef struct {
    char lines[16][200];
    uint32_t count;
} heard;

static void hear(void *user, int32_t level, const char *line)
{
    heard *all = user;
    if (strstr(line, "before gpuhal_close") && all->count < 16) {
        assert_int_equal(level, 3);
        snprintf(all->lines[all->count++], sizeof all->lines[0], "%s", line);
    }
}

static gpuhal *open_heard(heard *all, uint32_t level)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    *all = (heard){.count = 0};
    return gpuhal_mock_open(&(gpuhal_config){.log = hear, .log_user = all, .log_level = level}, 0);
}

static bool has_line(const heard *all, const char *one, const char *two, const char *three)
{
    bool found = false;
    for (uint32_t i = 0; i < all->count && !found; i++) {
        found = strstr(all->lines[i], one) && strstr(all->lines[i], two) && strstr(all->lines[i], three);
    }
    return found;
}

TEST(closing_states_the_buffers_left_of_each_tag_and_device)
{
    heard all;
    gpuhal *gpu = open_heard(&all, 3);
    gpuhal_pool *tagged = pool_or_fail(gpu, (gpuhal_pool_desc){.tag = "activations"});
    gpuhal_pool *plain = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *left[] = {
        take(tagged, NULL, 100),        take(tagged, NULL, 200),        take(plain, NULL, 7),
        gpuhal_mock_buffer(gpu, 0, 50),
        gpuhal_mock_buffer(gpu, 0, 60), gpuhal_mock_buffer(gpu, 1, 70), take(tagged, NULL, 9),
    };
    gpuhal_buffer *gone = gpuhal_mock_buffer(gpu, 0, 5000);
    assert_ok(gpuhal_buffer_set_tag(gone, "activations"));
    assert_ok(gpuhal_buffer_set_tag(left[3], "weights"));
    assert_ok(gpuhal_buffer_set_tag(left[3], "activations"));
    assert_ok(gpuhal_buffer_set_tag(left[5], "weights"));
    assert_ok(gpuhal_buffer_set_tag(left[6], "kv cache"));
    gpuhal_buffer_release(gone);
    gpuhal_pool_destroy(tagged);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 5);
    assert_true(has_line(&all, "mock:0", "3 buffers tagged \"activations\"", " 350 bytes"));
    assert_true(has_line(&all, "mock:0", "2 buffers without a tag", " 67 bytes"));
    assert_true(has_line(&all, "mock:0", "1 buffer tagged \"kv cache\"", " 9 bytes"));
    assert_true(has_line(&all, "mock:1", "1 buffer tagged \"weights\"", " 70 bytes"));
    assert_true(has_line(&all, "mock:0", "not destroyed", "1 pool with segments of 8192 bytes"));
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        gpuhal_buffer_release(left[i]);
    }
    gpuhal_pool_destroy(plain);
    expect_nothing_left();
}

TEST(closing_states_nothing_if_all_is_released_or_the_level_is_lower)
{
    heard all;
    gpuhal *gpu = open_heard(&all, 3);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.tag = "activations"});
    gpuhal_buffer_release(take(pool, NULL, 100));
    gpuhal_buffer_release(gpuhal_mock_buffer(gpu, 0, 50));
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 0);
    gpu = open_heard(&all, 3);
    gpuhal_queue *queue = queue_or_fail(gpu);
    pool = pool_or_fail(gpu, (gpuhal_pool_desc){.tag = "activations"});
    gpuhal_buffer_release(take(pool, queue, 100)); /* the pool keeps the buffer for the queue */
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 1); /* only the pool */
    gpuhal_pool_destroy(pool);
    gpu = open_heard(&all, 2);
    gpuhal_buffer *left = gpuhal_mock_buffer(gpu, 0, 50);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 0);
    gpuhal_buffer_release(left);
    expect_nothing_left();
}

TEST(closing_states_stores_that_were_not_destroyed)
{
    heard all;
    gpuhal *gpu = open_heard(&all, 3);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_store *stores[3];
    for (size_t i = 0; i < 3; i++) {
        assert_ok(gpuhal_store_create(pool, NULL, &stores[i]));
    }
    gpuhal_store_destroy(stores[0]);
    gpuhal_close(gpu);
    assert_true(has_line(&all, "mock:0", "not destroyed", "2 stores"));
    gpuhal_store_destroy(stores[1]);
    gpuhal_store_destroy(stores[2]);
    gpuhal_pool_destroy(pool);
    expect_nothing_left();
}

TEST(a_buffer_of_a_pool_loses_its_own_tag_with_its_release)
{
    heard all;
    gpuhal *gpu = open_heard(&all, 3);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *buffer = take(pool, NULL, 100);
    assert_ok(gpuhal_buffer_set_tag(buffer, "first"));
    gpuhal_buffer_release(buffer);
    buffer = take(pool, NULL, 100);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    assert_int_equal(all.count, 1);
    assert_true(has_line(&all, "1 buffer without a tag", "", ""));
    gpuhal_buffer_release(buffer);
    expect_nothing_left();
}

TEST(a_tag_has_at_most_63_bytes_and_no_control_characters)
{
    heard all;
    gpuhal *gpu = open_heard(&all, 3);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 8);
    char text[65];
    memset(text, 'x', sizeof text);
    text[64] = 0;
    assert_int_equal(gpuhal_buffer_set_tag(buffer, text), GPUHAL_ERROR_INVALID_ARGUMENT);
    text[63] = 0;
    assert_ok(gpuhal_buffer_set_tag(buffer, text));
    assert_int_equal(gpuhal_buffer_set_tag(buffer, "two\nlines"), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_set_tag(NULL, "x"), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_pool *pool = NULL;
    const gpuhal_pool_desc desc = {.size = sizeof desc, .tag = "\x7f"};
    assert_int_equal(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(pool);
    gpuhal_close(gpu);
    assert_true(has_line(&all, text, "1 buffer", " 8 bytes"));
    gpuhal_buffer_release(buffer);
    gpu = open_heard(&all, 3);
    buffer = gpuhal_mock_buffer(gpu, 0, 8);
    assert_ok(gpuhal_buffer_set_tag(buffer, "x"));
    assert_ok(gpuhal_buffer_set_tag(buffer, NULL));
    gpuhal_close(gpu);
    assert_true(has_line(&all, "1 buffer without a tag", "", ""));
    gpuhal_buffer_release(buffer);
}

#include "test_main.h"
