/* Memory that stores release when other owners need memory. */
#include "pressure_support.h"
#include "store_support.h"

#include <pthread.h>

static uint64_t relieve(store_fixture *f, gpuhal_pressure_rung rung, gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t deadline_ns = gpuhal_os_monotonic_ns() + PATIENCE_NS;
    return relieve_device(gpuhal_device_at(f->gpu, 0), rung, pool, bytes, deadline_ns);
}

TEST(entries_that_need_no_copy_are_given_first_and_the_rest_copied)
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
    assert_int_equal(relieve(&f, GPUHAL_PRESSURE_EVICT, f.pool, UINT64_MAX), SEGMENT); /* the entry has a copy */
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

TEST(an_entry_above_the_limit_of_its_pool_is_refused_before_any_other_leaves)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 8 * SEGMENT}, 2 * SEGMENT);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(put_now(&f, "large", 3 * SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "left of the pool's limit of 131072 bytes"));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_DEVICE);
    close_store(&f);
}

/* Opens a store with four entries; the last entry is pinned. The store may have eight segments. */
static store_fixture four_entries(uint64_t limit_of_pool, gpuhal_item **out_pinned)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 8 * SEGMENT, .host_bytes = 8 * SEGMENT},
                                    limit_of_pool);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_ok(acquire_now(&f, "d", 0, out_pinned));
    return f;
}

static void expect_all_on_device(store_fixture *f)
{
    const gpuhal_store_statistics counts = counts_of(f->store);
    assert_int_equal(counts.device.entries, 4);
    assert_int_equal(counts.evictions + counts.spills, 0);
}

TEST(no_entry_leaves_if_pinned_ones_and_buffers_of_others_leave_no_room)
{
    gpuhal_item *pinned = NULL;
    store_fixture f = four_entries(8 * SEGMENT, &pinned);
    gpuhal_buffer *own = take(f.pool, NULL, SEGMENT);
    assert_int_equal(attempt(f.pool, NULL, 6 * SEGMENT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, " of them in buffers that cannot leave now"));
    assert_int_equal(attempt(f.pool, NULL, 7 * SEGMENT, 0, PATIENCE_NS), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(put_now(&f, "e", 7 * SEGMENT, 5), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_all_on_device(&f);
    gpuhal_item_release(pinned, NULL);
    assert_int_equal(attempt(f.pool, NULL, 7 * SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    assert_int_equal(counts_of(f.store).device.entries, 0);
    gpuhal_buffer_release(own);
    close_store(&f);
}

TEST(no_entry_leaves_if_pinned_ones_leave_no_room_in_the_share_of_the_store)
{
    gpuhal_item *pinned = NULL;
    store_fixture f = four_entries(0, &pinned);
    assert_int_equal(put_now(&f, "e", 7 * SEGMENT + 1, 5), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, " bytes are pinned"));
    expect_all_on_device(&f);
    gpuhal_item_release(pinned, NULL);
    assert_ok(put_now(&f, "e", 7 * SEGMENT + 1, 5));
    close_store(&f);
}

static uint64_t give_own(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    gpuhal_buffer **own = user;
    (void)device;
    (void)timeout_ns;
    const uint64_t given = *own ? SEGMENT : 0;
    assert_true(bytes >= SEGMENT);
    gpuhal_buffer_release(*own);
    *own = NULL;
    return given;
}

TEST(a_callback_may_still_give_room_that_pinned_entries_do_not_leave)
{
    gpuhal_item *pinned = NULL;
    store_fixture f = four_entries(8 * SEGMENT, &pinned);
    gpuhal_buffer *own = take(f.pool, NULL, SEGMENT);
    gpuhal_device *device = gpuhal_device_at(f.gpu, 0);
    assert_ok(gpuhal_device_on_pressure(device, 0, give_own, &own));
    assert_int_equal(attempt(f.pool, NULL, 7 * SEGMENT, 0, 0), GPUHAL_OK);
    assert_null(own);
    assert_ok(gpuhal_device_off_pressure(device, give_own, &own));
    gpuhal_item_release(pinned, NULL);
    close_store(&f);
}

typedef struct {
    gpuhal_item *pinned;
    gpuhal_event *gate;
} unpinner;

static void *unpin_and_open(void *user)
{
    const unpinner *own = user;
    gpuhal_os_sleep(50000000);
    gpuhal_item_release(own->pinned, NULL);
    gpuhal_os_sleep(50000000);
    open_gate(own->gate);
    return NULL;
}

TEST(a_vain_search_is_repeated_after_work_has_ended)
{
    unpinner own = {.pinned = NULL};
    pthread_t thread;
    store_fixture f = four_entries(8 * SEGMENT, &own.pinned);
    gpuhal_queue *queue = queue_or_fail(f.gpu);
    gpuhal_buffer *worked = take(f.pool, queue, SEGMENT);
    own.gate = close_gate(f.gpu, queue);
    assert_ok(gpuhal_fill(queue, worked, 0, SEGMENT, 1, 1));
    gpuhal_buffer_release(worked);
    assert_int_equal(pthread_create(&thread, NULL, unpin_and_open, &own), 0);
    assert_int_equal(attempt(f.pool, NULL, 8 * SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    gpuhal_queue_destroy(queue);
    close_store(&f);
}

TEST(no_entry_leaves_for_a_request_that_unspillable_entries_block)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 4 * SEGMENT);
    filler how = {.byte = 1};
    assert_ok(put_now(&f, "kept", SEGMENT, 2));
    gpuhal_item_release(load_or_fail(&f, "loaded", SEGMENT, &how), NULL);
    assert_int_equal(attempt(f.pool, NULL, 3 * SEGMENT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(has(f.store, "loaded"));
    assert_int_equal(attempt(f.pool, NULL, 3 * SEGMENT, 0, 0), GPUHAL_OK);
    assert_false(has(f.store, "loaded"));
    close_store(&f);
}

TEST(buffers_that_a_caller_brings_need_no_room_of_their_own)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = 8 * SEGMENT}, 4 * SEGMENT);
    gpuhal_item *item = NULL;
    gpuhal_item_part parts[] = {{.name = "own", .buffer = take(f.pool, NULL, 3 * SEGMENT)},
                                {.name = "new", .bytes = SEGMENT}};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 2};
    assert_ok(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_int_equal(attempt(f.pool, NULL, 4 * SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
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

/* Before the first attempt, the limit bounds the number of spillable bytes. A copy that a loader can produce again
 * makes room within the limit. */
TEST(spillable_bytes_are_bounded_by_the_limit_of_host_memory)
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

TEST(for_an_entry_above_the_limit_of_the_pool_no_other_leaves)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = UINT64_MAX}, 2 * SEGMENT);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_int_equal(put_now(&f, "b", 2 * SEGMENT + 1, 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    assert_ok(put_now(&f, "b", 2 * SEGMENT, 2));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
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

/* The first part of the entry is allocated, and the second part is refused. */
TEST(the_entry_that_finds_no_room_is_not_counted_as_pinned)
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

/* The least recently used entry is evicted, although an eviction of the newer entry would not need a copy. */
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
