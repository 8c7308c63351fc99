/* Stores: many entries in one call, and the cost of a hit. This test counts each thread's lock operations and clock
 * readings. */
#include "store_support.h"

#include "os/os.h"
#include "store/store.h"

enum { MANY = 100 };

/* Wrap the library's functions (linker --wrap). */
void __wrap_gpuhal_mutex_lock(gpuhal_mutex *mutex);
void __real_gpuhal_mutex_lock(gpuhal_mutex *mutex);
uint64_t __wrap_gpuhal_os_monotonic_ns(void);
uint64_t __real_gpuhal_os_monotonic_ns(void);

static _Thread_local int locks, looks; /* per thread, so that the library's threads do not count */

void __wrap_gpuhal_mutex_lock(gpuhal_mutex *mutex)
{
    locks++;
    __real_gpuhal_mutex_lock(mutex);
}

uint64_t __wrap_gpuhal_os_monotonic_ns(void)
{
    looks++;
    return __real_gpuhal_os_monotonic_ns();
}

static uint32_t numbers[MANY];
static gpuhal_store_key keys[MANY];
static gpuhal_item *items[MANY];

/* Opens a store with `count` entries. Each entry is a single word, which contains the entry's number. */
static store_fixture begin(gpuhal_store_desc desc, uint32_t count)
{
    store_fixture f = store_or_fail(desc, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[i] = i;
        keys[i] = (gpuhal_store_key){.key = &numbers[i], .key_bytes = sizeof numbers[i]};
        items[i] = NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_item_desc one = {.size = sizeof one, .bytes = 4};
        gpuhal_item *item = NULL;
        assert_ok(gpuhal_store_put(f.store, NULL, &i, sizeof i, &one, PATIENCE_NS, &item));
        assert_ok(gpuhal_write(NULL, gpuhal_item_buffer(item, NULL), 0, &i, 4));
        gpuhal_item_release(item, NULL);
    }
    return f;
}

static void expect_numbers(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t got = UINT32_MAX;
        assert_ok(gpuhal_read(NULL, &got, gpuhal_item_buffer(items[i], NULL), 0, 4));
        assert_int_equal(got, *(const uint32_t *)keys[i].key);
    }
}

static gpuhal_status acquire_many(store_fixture *f, uint32_t count, uint32_t flags, uint64_t timeout_ns)
{
    return gpuhal_store_acquire_many(f->store, NULL, keys, count, flags, timeout_ns, items);
}

TEST(a_hit_takes_one_lock_for_each_of_its_calls_and_reads_no_clock)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3);
    for (int in_queue = 0; in_queue < 2; in_queue++) {
        gpuhal_queue *queue = in_queue ? f.queue : NULL;
        gpuhal_item *item = NULL;
        for (int i = 0; i < 2; i++) { /* the first call registers the queue with the pool */
            locks = looks = 0;
            assert_ok(gpuhal_store_acquire(f.store, queue, keys[1].key, 4, NULL, 0, PATIENCE_NS, &item));
            gpuhal_item_release(item, queue);
        }
        assert_int_equal(locks, 2);
        assert_int_equal(looks, 0);
    }
    assert_int_equal(counts_of(f.store).hits, 4);
    close_store(&f);
}

TEST(one_call_pins_many_entries_and_one_releases_them)
{
    store_fixture f = begin((gpuhal_store_desc){0}, MANY);
    keys[7] = keys[90]; /* the same key twice */
    locks = looks = 0;
    assert_ok(acquire_many(&f, MANY, 0, PATIENCE_NS));
    assert_int_equal(looks, 0);
    assert_true(locks <= MANY / 16);
    expect_numbers(MANY);
    assert_int_equal(counts_of(f.store).pinned, MANY - 1);
    assert_int_equal(counts_of(f.store).hits, MANY);
    locks = 0;
    gpuhal_item_release_many(items, MANY, NULL);
    assert_true(locks <= MANY / 16);
    assert_int_equal(counts_of(f.store).pinned, 0);
    close_store(&f);
}

TEST(one_key_that_cannot_be_had_leaves_none_pinned_or_modified)
{
    store_fixture f = begin((gpuhal_store_desc){.host_bytes = UINT64_MAX}, MANY);
    assert_int_equal(gpuhal_store_drop(f.store, &numbers[70], 4), GPUHAL_OK);
    gpuhal_store_entry first = {.size = sizeof first};
    assert_ok(attempt(f.pool, NULL, SEGMENT, 0, 0));
    for (uint32_t bad = 70; bad < 72; bad++) {
        keys[71].key_bytes = bad == 71 ? 0 : 4;
        for (uint32_t i = 0; i < MANY; i++) {
            items[i] = (gpuhal_item *)&first; /* overwritten by the call */
        }
        assert_int_equal(acquire_many(&f, MANY, GPUHAL_ACQUIRE_MODIFY, PATIENCE_NS),
                         bad == 71 ? GPUHAL_ERROR_INVALID_ARGUMENT : GPUHAL_ERROR_NOT_FOUND);
        for (uint32_t i = 0; i < MANY; i++) {
            assert_null(items[i]);
        }
        assert_int_equal(counts_of(f.store).pinned, 0);
    }
    assert_int_equal(acquire_many(&f, 70, 2, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire_many(f.store, NULL, NULL, 1, 0, 0, items), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_store_acquire_many(f.store, NULL, keys, 1, 0, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(acquire_many(&f, 0, 0, 0));
    close_store(&f);
}

TEST(an_entry_that_was_pinned_in_vain_keeps_its_copy_and_its_loader)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT, .host_bytes = UINT64_MAX}, 0);
    const gpuhal_store_key wanted[] = {{.key = "a", .key_bytes = 1}, {.key = "none", .key_bytes = 4}};
    gpuhal_item *got[2], *item = NULL;
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_ok(acquire_now(&f, "a", 0, &item));
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE | GPUHAL_TIER_HOST);
    assert_int_equal(gpuhal_store_acquire_many(f.store, NULL, wanted, 2, GPUHAL_ACQUIRE_MODIFY, 0, got),
                     GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "gpuhal_store_acquire_many: there is no entry \"none\""));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE | GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "a").pins, 0);
    assert_ok(gpuhal_store_acquire_many(f.store, NULL, wanted, 1, GPUHAL_ACQUIRE_MODIFY, 0, got));
    gpuhal_item_release_many(got, 1, NULL);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    close_store(&f);
}

TEST(many_keys_bring_back_their_outside_entries_and_load_the_missing_ones)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * SEGMENT, .host_bytes = UINT64_MAX}, 0);
    filler how = {.byte = 9};
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how};
    const gpuhal_store_key wanted[] = {{.key = "d", .key_bytes = 1},
                                       {.key = "a", .key_bytes = 1},
                                       {.key = "new", .key_bytes = 3, .desc = &desc}};
    gpuhal_item *got[3];
    for (int i = 0; i < 4; i++) {
        assert_ok(put_now(&f, (const char *[]){"a", "b", "c", "d"}[i], SEGMENT, (unsigned char)(i + 1)));
    }
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    assert_ok(gpuhal_store_acquire_many(f.store, f.queue, wanted, 3, 0, PATIENCE_NS, got));
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    expect_bytes(got[0], NULL, 4);
    expect_bytes(got[1], NULL, 1);
    expect_bytes(got[2], NULL, 9);
    assert_int_equal(counts_of(f.store).pinned, 3);
    gpuhal_item_release_many(got, 3, f.queue);
    assert_int_equal(counts_of(f.store).hits, 1);
    assert_int_equal(counts_of(f.store).misses, 2);
    close_store(&f);
}

TEST(many_acquires_wait_for_one_timeout_together_and_then_pin_none)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 4};
    gpuhal_item *filling[2];
    assert_ok(gpuhal_store_put(f.store, NULL, &numbers[3], 4, &desc, 0, &filling[0]));
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(filling[0], NULL), 0, 4, 3, 4));
    gpuhal_item_release(filling[0], f.queue);
    assert_int_equal(acquire_many(&f, 4, 0, 5000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(counts_of(f.store).pinned, 0);
    open_gate(gate);
    assert_ok(acquire_many(&f, 4, 0, PATIENCE_NS));
    expect_numbers(4);
    gpuhal_item_release_many(items, 4, NULL);
    close_store(&f);
}

/* Some items are NULL, some are modified, and they are from two stores. */
TEST(items_of_all_kinds_are_released_together)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 4);
    gpuhal_store *other = NULL;
    gpuhal_item *mixed[7] = {0}, *item = NULL;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 4};
    assert_ok(gpuhal_store_create(f.pool, NULL, &other));
    assert_ok(gpuhal_store_put(other, f.queue, "x", 1, &desc, 0, &mixed[1]));
    assert_ok(gpuhal_store_acquire(f.store, f.queue, &numbers[0], 4, NULL, 0, 0, &mixed[2]));
    assert_ok(gpuhal_store_acquire(f.store, f.queue, &numbers[1], 4, NULL, GPUHAL_ACQUIRE_MODIFY, 0, &mixed[3]));
    assert_ok(gpuhal_store_acquire(f.store, f.queue, &numbers[2], 4, NULL, 0, 0, &mixed[4]));
    assert_ok(gpuhal_store_acquire(f.store, f.queue, &numbers[3], 4, NULL, 0, 0, &mixed[6]));
    assert_ok(gpuhal_store_drop(f.store, &numbers[3], 4));
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(mixed[3], NULL), 0, 4, 77, 4));
    gpuhal_item_release_many(mixed, 7, f.queue);
    assert_int_equal(counts_of(f.store).pinned, 0);
    assert_int_equal(counts_of(other).pinned, 0);
    assert_int_equal(state_of(f.pool).buffers.current, 4);
    uint32_t got = 0;
    assert_ok(gpuhal_store_acquire(f.store, NULL, &numbers[1], 4, NULL, 0, PATIENCE_NS, &item));
    assert_ok(gpuhal_read(NULL, &got, gpuhal_item_buffer(item, NULL), 0, 4));
    assert_int_equal(got, 77);
    gpuhal_item_release(item, NULL);
    gpuhal_store_destroy(other);
    close_store(&f);
}

/* If the keys were not spread, lookups would search long rows. */
TEST(numbers_as_keys_are_spread_over_the_rows)
{
    enum { ROWS = 1024 };
    static const uint32_t steps[] = {1, 4096, 1u << 21};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        bool used[ROWS] = {false};
        int count = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            const uint32_t key = i * steps[s];
            bool *row = &used[gpuhal_key_hash(&key, sizeof key) % ROWS];
            count += !*row;
            *row = true;
        }
        assert_true(count > ROWS / 2);
    }
}

TEST(many_items_outlive_their_store)
{
    store_fixture f = begin((gpuhal_store_desc){0}, MANY);
    assert_ok(acquire_many(&f, MANY, 0, 0));
    gpuhal_store_destroy(f.store);
    f.store = NULL;
    expect_numbers(MANY);
    gpuhal_item_release_many(items, MANY, f.queue);
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    close_store(&f);
}

#include "test_main.h"
