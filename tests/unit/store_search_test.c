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

/* ---- in host memory */

gpuhal_status __wrap_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns);
gpuhal_status __real_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns);
gpuhal_status __wrap_gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
gpuhal_status __real_gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);

static bool modifies_a;   /* when a search for room in host memory looks at the copy of "a" */
static bool has_no_piece; /* for the next copy, although there are enough bytes */

gpuhal_status __wrap_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns)
{
    const gpuhal_status status = __real_gpuhal_uses_wait(store, entry, queue, all, deadline_ns);
    if (modifies_a && entry->key[0] == 'a') {
        gpuhal_item *item = NULL;
        modifies_a = false;
        assert_ok(acquire_now(&f, "a", GPUHAL_ACQUIRE_MODIFY, &item));
        gpuhal_item_release(item, NULL);
    }
    return status;
}

gpuhal_status __wrap_gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy)
{
    if (!has_no_piece) {
        return __real_gpuhal_host_create(store, entry, out_copy);
    }
    has_no_piece = false;
    *out_copy = NULL;
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* "b" has to leave device memory. The copy of "a", which is pinned there, is given up by a thread that modifies "a",
 * not by the search, which finds no other. */
static void expect_room_in_host(uint64_t host_bytes)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *a = NULL, *c = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT, .host_bytes = host_bytes}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "x", SEGMENT, 3)); /* in the place of "a" */
    assert_ok(gpuhal_store_drop(f.store, "x", 1));
    assert_ok(acquire_now(&f, "a", 0, &a));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE | GPUHAL_TIER_HOST);
    modifies_a = true;
    has_no_piece = host_bytes > SEGMENT;
    assert_ok(gpuhal_store_put(f.store, NULL, "c", 1, &desc, 0, &c));
    assert_false(modifies_a || has_no_piece);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    gpuhal_item_release(c, NULL);
    gpuhal_item_release(a, NULL);
    close_store(&f);
}

TEST(room_in_host_memory_that_others_made_counts)
{
    expect_room_in_host(SEGMENT);
}

TEST(a_piece_of_host_memory_that_others_gave_back_counts)
{
    expect_room_in_host(2 * SEGMENT);
}

/* ---- after the deadline */

void __wrap_gpuhal_entry_free(gpuhal_entry *entry);
void __real_gpuhal_entry_free(gpuhal_entry *entry);

static filler thief = {.byte = 9};
static bool steals; /* another thread is faster whenever an entry has made room */
static uint64_t end_ns;

/* What is freed may be nothing. */
void __wrap_gpuhal_entry_free(gpuhal_entry *entry)
{
    __real_gpuhal_entry_free(entry);
    if (steals && !has(f.store, "s")) {
        steals = false;
        gpuhal_item_release(load_or_fail(&f, "s", SEGMENT, &thief), NULL);
        steals = gpuhal_os_monotonic_ns() < end_ns;
    }
}

/* An entry of SEGMENT bytes is all that there is room for. Without the deadline the search would go on until `end_ns`,
 * and then have its room. */
static void expect_end_of_search(uint64_t device_bytes, uint64_t pool_bytes)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *none = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = device_bytes}, pool_bytes);
    gpuhal_item_release(load_or_fail(&f, "s", SEGMENT, &thief), NULL);
    end_ns = gpuhal_os_monotonic_ns() + 2000000000;
    steals = true;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 20000000, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    steals = false;
    assert_true(thief.calls > 1);
    close_store(&f);
}

TEST(a_search_in_the_share_of_a_store_ends_at_the_deadline_where_others_take_what_it_finds)
{
    expect_end_of_search(SEGMENT, 0);
}

TEST(a_search_in_a_pool_ends_at_the_deadline_where_others_take_what_it_finds)
{
    expect_end_of_search(0, SEGMENT);
}

/* ---- in the table */

bool __wrap_gpuhal_store_forget_one(gpuhal_store *store);
bool __real_gpuhal_store_forget_one(gpuhal_store *store);

static bool drops; /* when a search for an entry to forget has found none */

bool __wrap_gpuhal_store_forget_one(gpuhal_store *store)
{
    const bool forgot = __real_gpuhal_store_forget_one(store);
    if (drops) {
        assert_false(forgot);
        drop_b();
    }
    return forgot;
}

TEST(a_place_in_the_table_that_others_gave_back_counts)
{
    f = store_or_fail((gpuhal_store_desc){.entry_limit = 2}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(put_now(&f, "c", SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    drops = true;
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    drops = false;
    close_store(&f);
}

#include "test_main.h"
