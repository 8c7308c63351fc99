/* Stores: entries in device memory, by key. */
#include "store_support.h"

TEST(an_entry_that_was_put_is_acquired_with_its_bytes)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item *item = NULL, *again = NULL;
    assert_ok(put_now(&f, "one", 3000, 0x11));
    assert_ok(acquire_now(&f, "one", 0, &item));
    assert_ok(acquire_now(&f, "one", 0, &again));
    assert_ptr_equal(gpuhal_item_buffer(item, NULL), gpuhal_item_buffer(again, NULL));
    expect_bytes(item, NULL, 0x11);
    const gpuhal_store_entry entry = entry_of(f.store, "one");
    assert_int_equal(entry.bytes, 3000);
    assert_int_equal(entry.tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(entry.pins, 2);
    assert_int_equal(entry.part_count, 1);
    assert_int_equal(counts_of(f.store).pinned, 1);
    gpuhal_store_entry older = {.size = offsetof(gpuhal_store_entry, part_count)}; /* as in an earlier version */
    assert_ok(gpuhal_store_describe(f.store, "one", 3, &older));
    assert_int_equal(older.size, offsetof(gpuhal_store_entry, part_count));
    assert_int_equal(older.bytes, 3000);
    assert_int_equal(older.part_count, 0);
    gpuhal_item_release(item, NULL);
    gpuhal_item_release(again, NULL);
    assert_int_equal(entry_of(f.store, "one").pins, 0);
    assert_int_equal(counts_of(f.store).pinned, 0);
    close_store(&f);
}

TEST(a_key_without_an_entry_is_not_found)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item *item = NULL;
    assert_int_equal(acquire_now(&f, "none", 0, &item), GPUHAL_ERROR_NOT_FOUND);
    assert_null(item);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"none\""));
    assert_int_equal(gpuhal_store_describe(f.store, "none", 4, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_store_drop(f.store, "none", 4), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(counts_of(f.store).misses, 1);
    close_store(&f);
}

TEST(a_key_is_any_bytes_up_to_64_kib)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 1};
    gpuhal_item *item = NULL;
    static unsigned char large[GPUHAL_KEY_BYTES_MAX + 1];
    const unsigned char odd[] = {0xff, 0, 'a', 0xc3, '"', 0};
    assert_ok(gpuhal_store_put(f.store, NULL, odd, sizeof odd, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_store_put(f.store, NULL, odd, sizeof odd - 1, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_store_put(f.store, NULL, large, GPUHAL_KEY_BYTES_MAX, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    large[GPUHAL_KEY_BYTES_MAX - 1] = 1;
    assert_int_equal(gpuhal_store_describe(f.store, large, GPUHAL_KEY_BYTES_MAX, NULL), GPUHAL_ERROR_NOT_FOUND);
    large[GPUHAL_KEY_BYTES_MAX - 1] = 0;
    assert_ok(gpuhal_store_describe(f.store, large, GPUHAL_KEY_BYTES_MAX, NULL));
    assert_ok(gpuhal_store_describe(f.store, odd, sizeof odd, NULL));
    assert_int_equal(counts_of(f.store).entries, 3);
    assert_int_equal(gpuhal_store_put(f.store, NULL, odd, sizeof odd, &desc, 0, &item), GPUHAL_ERROR_BUSY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"\\xff\\x00a\\xc3\\x22\\x00\""));
    const uint64_t sizes[] = {0, GPUHAL_KEY_BYTES_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(gpuhal_store_put(f.store, NULL, large, sizes[i], &desc, 0, &item),
                         GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(gpuhal_store_acquire(f.store, NULL, large, sizes[i], NULL, 0, 0, &item),
                         GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(gpuhal_store_describe(f.store, large, sizes[i], NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(gpuhal_store_drop(f.store, large, sizes[i]), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    close_store(&f);
}

TEST(many_entries_are_found_each_by_its_key)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 1};
    gpuhal_item *item = NULL;
    for (uint32_t i = 0; i < 2000; i++) {
        assert_ok(gpuhal_store_put(f.store, NULL, &i, sizeof i, &desc, 0, &item));
        gpuhal_item_release(item, NULL);
    }
    for (uint32_t i = 0; i < 2000; i += 2) {
        assert_ok(gpuhal_store_drop(f.store, &i, sizeof i));
    }
    for (uint32_t i = 0; i < 2000; i++) {
        assert_int_equal(gpuhal_store_describe(f.store, &i, sizeof i, NULL),
                         i % 2 ? GPUHAL_OK : GPUHAL_ERROR_NOT_FOUND);
    }
    assert_int_equal(counts_of(f.store).entries, 1000);
    close_store(&f);
}

TEST(an_entry_has_several_buffers_by_name)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_part parts[] = {{.name = "weights", .bytes = 5000}, {.name = "bias", .bytes = 700}, {.bytes = 1}};
    gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 3};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_put(f.store, NULL, "layer", 5, &desc, 0, &item));
    assert_int_equal(gpuhal_buffer_bytes(gpuhal_item_buffer(item, "weights")), 5000);
    assert_int_equal(gpuhal_buffer_bytes(gpuhal_item_buffer(item, "bias")), 700);
    assert_ptr_equal(gpuhal_item_buffer(item, NULL), gpuhal_item_buffer(item, "weights"));
    assert_null(gpuhal_item_buffer(item, "Bias"));
    assert_null(gpuhal_item_buffer(NULL, "bias"));
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "layer").bytes, 5701);
    assert_int_equal(entry_of(f.store, "layer").part_count, 3);
    const gpuhal_item_part twice[] = {{.name = "a", .bytes = 1}, {.name = "a", .bytes = 1}};
    desc.parts = twice;
    desc.part_count = 2;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "x", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.parts = NULL;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "x", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    const gpuhal_item_part none[] = {{.name = "a", .bytes = 1}, {.name = "b"}};
    desc.parts = none;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "x", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    const gpuhal_item_part huge[] = {{.name = "a", .bytes = UINT64_MAX / 2}, {.name = "b", .bytes = UINT64_MAX / 2}};
    desc.parts = huge;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "x", 1, &desc, 0, &item), GPUHAL_ERROR_TOO_LARGE);
    assert_false(has(f.store, "x"));
    close_store(&f);
}

TEST(a_buffer_of_the_pool_is_put_without_a_copy)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item_part part = {.buffer = take(f.pool, NULL, 4000)};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = &part, .part_count = 1};
    gpuhal_buffer *mine = part.buffer;
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_fill(NULL, mine, 0, 4000, 0x33, 1));
    assert_ok(gpuhal_store_put(f.store, NULL, "kv", 2, &desc, 0, &item));
    assert_ptr_equal(gpuhal_item_buffer(item, NULL), mine);
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "kv").bytes, 4000);
    assert_ok(acquire_now(&f, "kv", 0, &item));
    expect_bytes(item, NULL, 0x33);
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_store_drop(f.store, "kv", 2));
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    part.buffer = gpuhal_mock_buffer(f.gpu, 0, 100);
    assert_int_equal(gpuhal_store_put(f.store, NULL, "x", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(part.buffer);
    close_store(&f);
}

TEST(a_buffer_stays_with_the_caller_when_its_put_fails)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 1000}, 0);
    const gpuhal_item_part part = {.buffer = take(f.pool, NULL, 4000)};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = &part, .part_count = 1};
    gpuhal_item *item = NULL;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "kv", 2, &desc, 0, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_asked, 4000);
    assert_int_equal(state_of(f.pool).buffers.current, 1);
    gpuhal_buffer_release(part.buffer);
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    close_store(&f);
}

TEST(a_dropped_entry_that_is_pinned_keeps_its_memory_until_its_release)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "one", 3000, 0x11));
    assert_ok(acquire_now(&f, "one", 0, &item));
    assert_ok(gpuhal_store_drop(f.store, "one", 3));
    assert_false(has(f.store, "one"));
    assert_ok(put_now(&f, "one", 3000, 0x22));
    expect_bytes(item, NULL, 0x11);
    assert_int_equal(counts_of(f.store).pinned, 0);
    assert_int_equal(state_of(f.pool).buffers.current, 2);
    gpuhal_item_release(item, NULL);
    assert_int_equal(state_of(f.pool).buffers.current, 1);
    assert_ok(acquire_now(&f, "one", 0, &item));
    expect_bytes(item, NULL, 0x22);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(items_outlive_a_store_that_is_destroyed)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 10};
    gpuhal_item *item = NULL, *filling = NULL;
    assert_ok(put_now(&f, "one", 3000, 0x11));
    assert_ok(acquire_now(&f, "one", 0, &item));
    assert_ok(gpuhal_store_put(f.store, f.queue, "two", 3, &desc, 0, &filling));
    gpuhal_store_destroy(f.store);
    f.store = NULL;
    expect_bytes(item, NULL, 0x11);
    assert_int_equal(state_of(f.pool).buffers.current, 2);
    gpuhal_item_release(item, f.queue);
    gpuhal_item_release(filling, f.queue);
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    close_store(&f);
}

static int32_t collect(void *user, const void *key, uint64_t key_bytes, const gpuhal_store_entry *entry)
{
    char *text = user;
    assert_int_equal(entry->size, sizeof *entry);
    assert_int_equal(entry->bytes, key_bytes);
    strncat(text, key, key_bytes);
    strcat(text, " ");
    return 0;
}

TEST(keys_are_listed_in_order_by_their_prefix)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const char *keys[] = {"b", "a/2", "a", "a/10", "a/1"};
    for (size_t i = 0; i < 5; i++) {
        assert_ok(put_now(&f, keys[i], strlen(keys[i]), 1));
    }
    char text[64] = "";
    assert_ok(gpuhal_store_list(f.store, "a/", 2, collect, text));
    assert_string_equal(text, "a/1 a/10 a/2 ");
    text[0] = 0;
    assert_ok(gpuhal_store_list(f.store, NULL, 0, collect, text));
    assert_string_equal(text, "a a/1 a/10 a/2 b ");
    uint64_t count = 0;
    assert_ok(gpuhal_store_clear(f.store, "a/1", 3, &count));
    assert_int_equal(count, 2);
    text[0] = 0;
    assert_ok(gpuhal_store_list(f.store, NULL, 0, collect, text));
    assert_string_equal(text, "a a/2 b ");
    assert_ok(gpuhal_store_clear(f.store, NULL, 0, NULL));
    assert_int_equal(counts_of(f.store).entries, 0);
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    close_store(&f);
}

static int32_t end_at_once(void *user, const void *key, uint64_t key_bytes, const gpuhal_store_entry *entry)
{
    (void)key, (void)key_bytes, (void)entry;
    ++*(int *)user;
    return 1;
}

static int32_t drop_it(void *user, const void *key, uint64_t key_bytes, const gpuhal_store_entry *entry)
{
    (void)entry;
    assert_ok(gpuhal_store_drop(user, key, key_bytes));
    return 0;
}

TEST(a_list_may_be_ended_and_its_entries_dropped)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    int calls = 0;
    assert_ok(put_now(&f, "a", 1, 1));
    assert_ok(put_now(&f, "b", 1, 1));
    assert_ok(gpuhal_store_list(f.store, NULL, 0, end_at_once, &calls));
    assert_int_equal(calls, 1);
    assert_ok(gpuhal_store_list(f.store, NULL, 0, drop_it, f.store));
    assert_int_equal(counts_of(f.store).entries, 0);
    close_store(&f);
}

TEST(arguments_that_mean_nothing_are_refused)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item *item = NULL;
    gpuhal_store *store = NULL;
    gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 1};
    gpuhal_store_desc no_size = {0};
    gpuhal_store_entry entry = {0};
    gpuhal_store_statistics counts = {0};
    assert_int_equal(gpuhal_store_create(NULL, NULL, &store), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_create(f.pool, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_create(f.pool, &no_size, &store), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, NULL, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_put(f.store, NULL, NULL, 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "a", 1, NULL, 2, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.flags = 2;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.flags = 0;
    desc.priority = GPUHAL_ITEM_PRIORITY_MAX + 1;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.priority = -GPUHAL_ITEM_PRIORITY_MAX - 1;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.priority = 0;
    desc.load = fill_item;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    desc.size = 0;
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_describe(f.store, "a", 1, &entry), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_get_statistics(f.store, &counts), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_list(f.store, NULL, 0, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_list(f.store, NULL, 1, collect, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_clear(f.store, NULL, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(item);
    gpuhal_item_release(NULL, NULL);
    gpuhal_store_destroy(NULL);
    assert_int_equal(counts_of(f.store).entries, 0);
    close_store(&f);
}

#include "test_main.h"
