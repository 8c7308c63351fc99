/* Stores: copies of evicted entries in host memory. */
#include "store_support.h"

/* Opens a store with device memory for `entries` entries of SEGMENT bytes, and host memory for `copies` copies. */
static store_fixture small(uint64_t entries, uint64_t copies)
{
    return store_or_fail((gpuhal_store_desc){.device_bytes = entries * SEGMENT, .host_bytes = copies * SEGMENT}, 0);
}

static void put(store_fixture *f, const char *key, unsigned char byte)
{
    assert_ok(put_now(f, key, SEGMENT, byte));
}

static gpuhal_item *get(store_fixture *f, gpuhal_queue *queue, const char *key, uint32_t flags)
{
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f->store, queue, key, strlen(key), NULL, flags, PATIENCE_NS, &item));
    return item;
}

static void expect(store_fixture *f, const char *key, unsigned char byte)
{
    gpuhal_item *item = get(f, NULL, key, 0);
    expect_bytes(item, NULL, byte);
    gpuhal_item_release(item, NULL);
}

TEST(entries_that_left_device_memory_come_back_with_their_bytes)
{
    store_fixture f = small(1, 3);
    put(&f, "a", 1);
    put(&f, "b", 2);
    put(&f, "c", 3);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_DEVICE);
    expect(&f, "a", 1);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE | GPUHAL_TIER_HOST);
    expect(&f, "b", 2);
    expect(&f, "c", 3);
    expect(&f, "a", 1);
    const gpuhal_store_statistics counts = counts_of(f.store);
    assert_int_equal(counts.spills, 3);
    assert_int_equal(counts.spilled_bytes, 3 * SEGMENT);
    assert_int_equal(counts.restores, 4);
    assert_int_equal(counts.restored_bytes, 4 * SEGMENT);
    assert_int_equal(counts.evictions, 6);
    assert_int_equal(counts.host.entries, 3);
    assert_int_equal(counts.host.bytes, 3 * SEGMENT);
    assert_int_equal(counts.device.entries, 1);
    assert_int_equal(gpuhal_mock.devices[0].staging_bytes_most, 3 * SEGMENT);
    close_store(&f);
}

TEST(a_modified_entry_is_copied_again_and_its_old_copy_given_up)
{
    store_fixture f = small(1, 2);
    put(&f, "a", 1);
    put(&f, "b", 2);
    gpuhal_item *item = get(&f, NULL, "a", GPUHAL_ACQUIRE_MODIFY);
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, SEGMENT, 7, 1));
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    expect(&f, "b", 2);
    expect(&f, "a", 7);
    assert_int_equal(counts_of(f.store).spills, 3);
    close_store(&f);
}

TEST(the_limit_of_host_memory_holds_and_entries_without_room_stay)
{
    store_fixture f = small(1, 1);
    gpuhal_item *item = NULL;
    put(&f, "a", 1);
    put(&f, "b", 2);
    assert_int_equal(put_now(&f, "c", SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(acquire_now(&f, "b", 0, &item));
    assert_int_equal(acquire_now(&f, "a", 0, &(gpuhal_item *){NULL}), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    expect(&f, "b", 2);
    assert_int_equal(counts_of(f.store).host.bytes, SEGMENT);
    assert_ok(gpuhal_store_drop(f.store, "b", 1));
    expect(&f, "a", 1);
    /* The copy of an entry that is also in device memory is dropped to make room. */
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    close_store(&f);
}

TEST(without_host_memory_nothing_is_copied)
{
    store_fixture f = small(1, 0);
    put(&f, "a", 1);
    assert_int_equal(put_now(&f, "b", SEGMENT, 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect(&f, "a", 1);
    assert_int_equal(counts_of(f.store).spills, 0);
    close_store(&f);
}

TEST(copies_are_in_plain_memory_if_the_device_has_no_page_locked)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices[0].no_staging_kinds = 1, .devices[0].hidden = 1};
    store_fixture f = {.gpu = gpuhal_mock_open(NULL, 0)};
    const gpuhal_store_desc desc = {.size = sizeof desc, .device_bytes = SEGMENT, .host_bytes = UINT64_MAX};
    f.pool = pool_or_fail(f.gpu, (gpuhal_pool_desc){0});
    f.queue = queue_or_fail(f.gpu);
    assert_ok(gpuhal_store_create(f.pool, &desc, &f.store));
    put(&f, "a", 1);
    put(&f, "b", 2);
    gpuhal_item *item = get(&f, f.queue, "a", 0);
    expect_bytes(item, NULL, 1);
    gpuhal_item_release(item, f.queue);
    expect(&f, "b", 2);
    unsigned char byte = 0;
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, SEGMENT - 1, &byte, 1, PATIENCE_NS));
    assert_int_equal(byte, 1);
    close_store(&f);
}

TEST(all_buffers_of_an_entry_leave_and_come_back_together)
{
    store_fixture f = small(1, 2);
    const gpuhal_item_part parts[] = {{.name = "k", .bytes = 5000}, {.name = "v", .bytes = 77}, {.bytes = 1}};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 3};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_put(f.store, NULL, "kv", 2, &desc, 0, &item));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, "k"), 0, 5000, 0x31, 1));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, "v"), 0, 77, 0x32, 1));
    gpuhal_item_release(item, NULL);
    put(&f, "other", 9);
    assert_int_equal(entry_of(f.store, "kv").tiers, GPUHAL_TIER_HOST);
    item = get(&f, NULL, "kv", 0);
    expect_bytes(item, "k", 0x31);
    expect_bytes(item, "v", 0x32);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(a_loaded_entry_is_copied_only_if_its_copy_is_to_be_kept)
{
    store_fixture f = small(1, 2);
    filler how = {.byte = 5};
    gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    desc.flags = GPUHAL_ITEM_KEEP_COPY;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "b", 1, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_false(has(f.store, "a"));
    assert_int_equal(counts_of(f.store).spills, 0);
    put(&f, "c", 6);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    expect(&f, "b", 5);
    assert_int_equal(how.calls, 2);
    /* The entry's copy is dropped to make room for entries without a loader. */
    put(&f, "d", 7);
    put(&f, "e", 8);
    assert_false(has(f.store, "b"));
    assert_int_equal(entry_of(f.store, "d").tiers, GPUHAL_TIER_HOST);
    close_store(&f);
}

/* ---- order */

TEST(a_queue_waits_for_the_copy_back_and_its_caller_does_not)
{
    store_fixture f = small(1, 2);
    unsigned char got[SEGMENT];
    gpuhal_queue *other = queue_or_fail(f.gpu);
    put(&f, "a", 1);
    put(&f, "b", 2);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = get(&f, f.queue, "a", 0), *same = NULL;
    assert_ok(gpuhal_read(f.queue, got, gpuhal_item_buffer(item, NULL), 0, SEGMENT));
    gpuhal_item_release(item, f.queue);
    assert_int_equal(acquire_now(&f, "a", 0, &same), GPUHAL_ERROR_TIMEOUT);
    same = get(&f, other, "a", 0);
    gpuhal_item_release(same, other);
    assert_int_equal(gpuhal_queue_synchronize(other, 10000000), GPUHAL_ERROR_TIMEOUT);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    assert_int_equal(got[0], 1);
    assert_int_equal(got[SEGMENT - 1], 1);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    gpuhal_queue_destroy(other);
    close_store(&f);
}

TEST(an_entry_is_copied_behind_the_work_that_modifies_it)
{
    store_fixture f = small(1, 2);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    put(&f, "a", 1);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = get(&f, f.queue, "a", GPUHAL_ACQUIRE_MODIFY);
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, SEGMENT, 9, 1));
    gpuhal_item_release(item, f.queue);
    assert_int_equal(gpuhal_store_put(f.store, NULL, "b", 1, &desc, 10000000, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    open_gate(gate);
    put(&f, "b", 2);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    expect(&f, "a", 9);
    close_store(&f);
}

TEST(an_entry_whose_copy_back_failed_comes_from_its_copy_again)
{
    store_fixture f = small(1, 2);
    put(&f, "a", 1);
    put(&f, "b", 2);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = get(&f, f.queue, "a", 0);
    gpuhal_item_release(item, f.queue);
    assert_ok(gpuhal_event_signal(gate, GPUHAL_ERROR_FILE));
    gpuhal_event_destroy(gate);
    assert_int_equal(gpuhal_queue_synchronize(f.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    expect(&f, "a", 1);
    assert_ok(gpuhal_queue_reset(f.queue, PATIENCE_NS));
    close_store(&f);
}

TEST(an_entry_that_cannot_be_copied_stays_in_place)
{
    store_fixture f = small(1, 2);
    put(&f, "a", 1);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_int_equal(put_now(&f, "b", SEGMENT, 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_OK;
    expect(&f, "a", 1);
    put(&f, "b", 2);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    gpuhal_item *item = NULL;
    assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_store_drop(f.store, "b", 1));
    assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_OK;
    assert_int_equal(counts_of(f.store).device.bytes, 0);
    expect(&f, "a", 1);
    close_store(&f);
}

TEST(a_prefetched_entry_is_in_device_memory_and_not_pinned)
{
    store_fixture f = small(1, 2);
    put(&f, "a", 1);
    put(&f, "b", 2);
    assert_ok(gpuhal_store_prefetch(f.store, f.queue, "a", 1, PATIENCE_NS));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE | GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "a").pins, 0);
    expect(&f, "a", 1);
    assert_int_equal(gpuhal_store_prefetch(f.store, NULL, "none", 4, 0), GPUHAL_ERROR_NOT_FOUND);
    close_store(&f);
}

/* ---- reading */

TEST(bytes_are_read_wherever_they_are)
{
    store_fixture f = small(1, 2);
    unsigned char got[100];
    put(&f, "a", 1);
    put(&f, "b", 2);
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, 10, got, 100, 0));
    assert_int_equal(got[99], 1);
    assert_ok(gpuhal_store_read(f.store, "b", 1, NULL, SEGMENT - 100, got, 100, 0));
    assert_int_equal(got[0], 2);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, 1, got, SEGMENT, 0), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, UINT64_MAX, got, 2, 0), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_store_read(f.store, "a", 1, "x", 0, got, 1, 0), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_store_read(f.store, "x", 1, NULL, 0, got, 1, 0), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, 0, NULL, 1, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, SEGMENT, NULL, 0, 0));
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = get(&f, f.queue, "b", GPUHAL_ACQUIRE_MODIFY);
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, SEGMENT, 9, 1));
    gpuhal_item_release(item, f.queue);
    assert_int_equal(gpuhal_store_read(f.store, "b", 1, NULL, 0, got, 1, 0), GPUHAL_ERROR_TIMEOUT);
    open_gate(gate);
    assert_ok(gpuhal_store_read(f.store, "b", 1, NULL, 0, got, 1, PATIENCE_NS));
    assert_int_equal(got[0], 9);
    close_store(&f);
}

TEST(copies_are_read_when_the_device_is_lost)
{
    store_fixture f = small(1, 3);
    unsigned char byte = 0;
    gpuhal_item *item = NULL;
    put(&f, "a", 1);
    put(&f, "b", 2);
    put(&f, "c", 3);
    item = get(&f, NULL, "a", 0);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(gpuhal_copy(NULL, gpuhal_item_buffer(item, NULL), 0, gpuhal_item_buffer(item, NULL), 100, 100),
                     GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_item *none = NULL;
    assert_int_equal(acquire_now(&f, "b", 0, &none), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(put_now(&f, "d", 1, 4), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, 5, &byte, 1, 0)); /* the entry is pinned, and keeps its copy */
    assert_int_equal(byte, 1);
    assert_ok(gpuhal_store_read(f.store, "b", 1, NULL, 5, &byte, 1, 0));
    assert_int_equal(byte, 2);
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_store_read(f.store, "c", 1, NULL, 5, &byte, 1, 0));
    assert_int_equal(byte, 3);
    close_store(&f);
}

#include "test_main.h"
