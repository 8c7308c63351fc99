/* Stores: one call searches for room while others find it, or look through the same entries. Copies of entries that
 * leave fail here where the test says so, and the other call comes meanwhile. */
#include "pressure_support.h"
#include "store_support.h"

#include "store/store.h"

/* Linked in the place of the library's own, which is __real_. */
gpuhal_status __wrap_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry);
gpuhal_status __real_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry);

static store_fixture f;
static void (*meanwhile)(void); /* what comes during the next copy, which then fails */

gpuhal_status __wrap_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry)
{
    void (*other)(void) = meanwhile;
    meanwhile = NULL;
    if (!other) {
        return __real_gpuhal_demote(store, entry);
    }
    other();
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Two entries fill the store's share of device memory; a third one needs the place of one of them, now. */
static void expect_room(void (*other)(void))
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *item = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT, .host_bytes = UINT64_MAX}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    meanwhile = other;
    assert_ok(gpuhal_store_put(f.store, NULL, "c", 1, &desc, 0, &item));
    assert_null(meanwhile);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

static void drop_b(void)
{
    assert_ok(gpuhal_store_drop(f.store, "b", 1));
}

TEST(room_that_others_made_counts_where_the_calls_own_copy_failed)
{
    expect_room(drop_b);
}

static void evict_for_the_pool(void)
{
    gpuhal_device *device = gpuhal_device_at(f.gpu, 0);
    assert_int_equal(relieve_device(device, GPUHAL_PRESSURE_EVICT, f.pool, 1, gpuhal_os_monotonic_ns()), 0);
}

TEST(an_entry_that_another_search_had_no_use_for_makes_room)
{
    expect_room(evict_for_the_pool);
}

static void forget(void)
{
    assert_false(gpuhal_store_forget_one(f.store));
}

TEST(an_entry_that_could_not_be_forgotten_makes_room)
{
    expect_room(forget);
}

#include "test_main.h"
