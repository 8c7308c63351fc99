/* Stores: what they give when others are short of memory. */
#include "pressure_support.h"
#include "store_support.h"

static uint64_t relieve(store_fixture *f, gpuhal_pressure_rung rung, gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t deadline_ns = gpuhal_os_monotonic_ns() + PATIENCE_NS;
    return relieve_device(gpuhal_device_at(f->gpu, 0), rung, pool, bytes, deadline_ns);
}

TEST(what_needs_no_copy_is_given_first_and_the_rest_copied)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 8 * SEGMENT}, 0);
    gpuhal_pool *other = pool_or_fail(f.gpu, (gpuhal_pool_desc){0});
    filler how = {.byte = 1};
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "put", SEGMENT, 2));
    gpuhal_item_release(load_or_fail(&f, "loaded", SEGMENT, &how), NULL);
    gpuhal_item *pinned = load_or_fail(&f, "pinned", SEGMENT, &how);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, other, UINT64_MAX), 0);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, f.pool, 1), SEGMENT);
    assert_false(has(f.store, "loaded"));
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, f.pool, UINT64_MAX), 0);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_SPILL, NULL, UINT64_MAX), SEGMENT);
    assert_int_equal(entry_of(f.store, "put").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_SPILL, f.pool, UINT64_MAX), 0);
    assert_ok(acquire_now(&f, "put", 0, &item));
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, f.pool, UINT64_MAX), SEGMENT); /* by its copy */
    expect_bytes(pinned, NULL, 1);
    gpuhal_item_release(pinned, NULL);
    gpuhal_pool_destroy(other);
    close_store(&f);
}

TEST(a_store_that_is_destroyed_gives_nothing)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    filler how = {.byte = 1};
    gpuhal_item *item = load_or_fail(&f, "a", SEGMENT, &how);
    gpuhal_store_destroy(f.store);
    f.store = NULL;
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, f.pool, UINT64_MAX), 0);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(a_buffer_of_the_pool_gets_the_memory_of_entries)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 8 * SEGMENT}, 2 * SEGMENT);
    filler how = {.byte = 1};
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "put", SEGMENT, 2));
    gpuhal_item_release(load_or_fail(&f, "loaded", SEGMENT, &how), NULL);
    gpuhal_buffer *buffer = take(f.pool, NULL, SEGMENT);
    assert_false(has(f.store, "loaded"));
    assert_int_equal(entry_of(f.store, "put").tiers, GPUHAL_TIER_DEVICE);
    gpuhal_buffer *second = take(f.pool, NULL, SEGMENT);
    assert_int_equal(entry_of(f.store, "put").tiers, GPUHAL_TIER_HOST);
    gpuhal_buffer_release(buffer);
    assert_ok(acquire_now(&f, "put", 0, &item));
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_memory_report()->pinned_bytes, SEGMENT);
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_memory_report()->evictable_bytes, SEGMENT);
    assert_int_equal(gpuhal_last_memory_report()->spillable_bytes, 0);
    gpuhal_buffer_release(second);
    close_store(&f);
}

TEST(without_host_memory_and_a_folder_nothing_can_be_spilled)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 2 * SEGMENT);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(put_now(&f, "c", SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(0, 2 * SEGMENT,
                     "; 131072 bytes of stores cannot be spilled: host_bytes is 0, there is no folder");
    close_store(&f);
}

/* Before anything was tried: by the limit, of which a copy that a loader brings back makes room. */
TEST(what_can_be_spilled_is_what_the_limit_of_host_memory_leaves_room_for)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 2 * SEGMENT + UNIT}, 3 * SEGMENT);
    filler how = {.byte = 1};
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how, .flags = GPUHAL_ITEM_KEEP_COPY};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "loaded", 6, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_SPILL, NULL, UINT64_MAX), SEGMENT);
    assert_int_equal(entry_of(f.store, "loaded").tiers, GPUHAL_TIER_HOST);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(2 * SEGMENT, SEGMENT, " cannot be spilled: host_bytes leaves no room, there is no folder");
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_SPILL, NULL, UINT64_MAX), 2 * SEGMENT);
    close_store(&f);
}

static uint64_t pinned_when_refused(store_fixture *f, const char *key)
{
    const gpuhal_item_part parts[] = {{.name = "a", .bytes = UNIT}, {.name = "b", .bytes = 2 * SEGMENT}};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 2};
    gpuhal_item *item = NULL;
    assert_int_equal(gpuhal_store_put(f->store, NULL, key, strlen(key), &desc, 0, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(gpuhal_last_memory_report());
    assert_true(gpuhal_last_memory_report()->pinned_bytes <= gpuhal_last_memory_report()->used_bytes);
    return gpuhal_last_memory_report()->pinned_bytes;
}

/* Of which a part was allocated, when the other one was refused. */
TEST(the_entry_for_which_there_is_no_room_is_not_among_what_is_pinned)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 2 * SEGMENT);
    filler how = {.byte = 1};
    assert_int_equal(pinned_when_refused(&f, "large"), 0);
    gpuhal_item *item = load_or_fail(&f, "a", SEGMENT, &how);
    assert_int_equal(pinned_when_refused(&f, "large"), SEGMENT);
    gpuhal_item_release(item, NULL);
    assert_int_equal(pinned_when_refused(&f, "large"), 0);
    close_store(&f);
}

TEST(a_buffer_of_the_device_gets_the_memory_of_entries)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    filler how = {.byte = 1};
    gpuhal_device *device = gpuhal_device_at(f.gpu, 0);
    gpuhal_item_release(load_or_fail(&f, "a", SEGMENT, &how), NULL);
    assert_ok(gpuhal_device_limit_memory(device, 3 * SEGMENT));
    gpuhal_buffer_release(gpuhal_mock_buffer(f.gpu, 0, 2 * SEGMENT));
    assert_true(has(f.store, "a"));
    gpuhal_buffer_release(gpuhal_mock_buffer(f.gpu, 0, 2 * SEGMENT + UNIT));
    assert_false(has(f.store, "a"));
    close_store(&f);
}

/* In the order of use, although the younger one would cost no copy. */
TEST(entries_make_room_for_their_own_store_in_the_order_of_use)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 8 * SEGMENT}, 2 * SEGMENT);
    filler how = {.byte = 1};
    assert_ok(put_now(&f, "older", SEGMENT, 2));
    gpuhal_item_release(load_or_fail(&f, "younger", SEGMENT, &how), NULL);
    assert_ok(put_now(&f, "new", SEGMENT, 3));
    assert_int_equal(entry_of(f.store, "older").tiers, GPUHAL_TIER_HOST);
    assert_true(has(f.store, "younger"));
    close_store(&f);
}

#include "test_main.h"
