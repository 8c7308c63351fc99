/* Searches for room in a store, while other calls find room or scan the same entries. A test can make the copy of an
 * evicted entry fail, and make the other call during that copy. */
#include "pressure_support.h"
#include "store_support.h"

#include "store/store.h"

#include <pthread.h>

/* Wraps the library's function (linker --wrap). */
gpuhal_status __wrap_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns);
gpuhal_status __real_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns);

static store_fixture f;
static void (*meanwhile)(void); /* runs during the next copy, which then fails */
static unsigned copies;         /* number of attempts */

gpuhal_status __wrap_gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    void (*other)(void) = meanwhile;
    meanwhile = NULL;
    copies++;
    if (!other) {
        return __real_gpuhal_demote(store, entry, deadline_ns);
    }
    other();
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Two entries fill the store's share of device memory; a third entry needs the memory of one, without a wait. */
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

TEST(room_that_others_made_counts_even_if_the_calls_own_copy_failed)
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

/* ---- in host memory */

gpuhal_status __wrap_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns);
gpuhal_status __real_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns);
gpuhal_status __wrap_gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
gpuhal_status __real_gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);

static gpuhal_event *gate;           /* opened once a search waits for the work that fills "a" */
static bool modifies_a;              /* modifies "a" after the next wait for the work on "a" in a search */
static void (*while_reserved)(void); /* called when room for the next copy is reserved, before it has memory */
static bool has_no_piece;            /* the next copy finds no contiguous memory, although enough bytes are free */

gpuhal_status __wrap_gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                                      uint64_t deadline_ns)
{
    if (gate && entry->key[0] == 'a' && deadline_ns > gpuhal_os_monotonic_ns()) {
        open_gate(gate);
        gate = NULL;
    }
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
    void (*other)(void) = while_reserved;
    while_reserved = NULL;
    if (other) {
        other();
    }
    if (!has_no_piece) {
        return __real_gpuhal_host_create(store, entry, out_copy);
    }
    has_no_piece = false;
    *out_copy = NULL;
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* "a" is pinned in device memory, and "b" must leave this memory. A thread that modifies "a" releases the copy of "a".
 * The search does not find other room. */
static void expect_room_in_host(uint64_t host_bytes)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *a = NULL, *c = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT, .host_bytes = host_bytes}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "x", SEGMENT, 3)); /* replaces "a" */
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

static void expect_one_spillable(void)
{
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(SEGMENT, SEGMENT, "host");
}

/* Host memory has room for three copies. "w" has a copy, and the copy of "a" is in progress, so only one more copy
 * fits. */
TEST(a_copy_that_is_being_made_leaves_less_room_for_others)
{
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * SEGMENT, .host_bytes = 3 * SEGMENT}, 3 * SEGMENT);
    for (int i = 0; i < 4; i++) {
        assert_ok(put_now(&f, (const char *[]){"w", "a", "b", "c"}[i], SEGMENT, (unsigned char)i));
    }
    assert_int_equal(entry_of(f.store, "w").tiers, GPUHAL_TIER_HOST);
    while_reserved = expect_one_spillable;
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_null(while_reserved);
    close_store(&f);
}

/* ---- the order of use */

/* "a", "b" and "c" fill the store's share. "a" is the oldest entry. The work that fills "a" does not end before the
 * gate opens. */
static void fill_behind_gate(void)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *item = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * SEGMENT, .host_bytes = UINT64_MAX}, 0);
    gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_store_put(f.store, f.queue, "a", 1, &desc, 0, &item));
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, SEGMENT, 1, 1));
    gpuhal_item_release(item, f.queue);
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
}

static void expect_at(const char *key, uint32_t tiers, unsigned char byte)
{
    gpuhal_item *item = NULL;
    assert_int_equal(entry_of(f.store, key).tiers, tiers);
    assert_ok(acquire_now(&f, key, 0, &item));
    expect_bytes(item, NULL, byte);
    gpuhal_item_release(item, NULL);
}

TEST(the_oldest_entry_leaves_even_if_its_filling_is_pending)
{
    fill_behind_gate();
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_null(gate);
    expect_at("b", GPUHAL_TIER_DEVICE, 2);
    expect_at("a", GPUHAL_TIER_HOST, 1);
    close_store(&f);
}

TEST(a_call_without_time_passes_over_an_entry_that_is_being_filled_and_it_stays_the_oldest)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *item = NULL;
    fill_behind_gate();
    assert_ok(gpuhal_store_put(f.store, NULL, "d", 1, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_non_null(gate);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    open_gate(gate);
    gate = NULL;
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    assert_ok(gpuhal_store_put(f.store, NULL, "e", 1, &desc, 0, &item));
    gpuhal_item_release(item, NULL);
    expect_at("c", GPUHAL_TIER_DEVICE, 3);
    expect_at("a", GPUHAL_TIER_HOST, 1);
    close_store(&f);
}

static void fail_nothing(void)
{
}

TEST(an_entry_whose_copy_failed_stays_the_oldest)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *item = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * SEGMENT, .host_bytes = UINT64_MAX}, 0);
    for (int i = 0; i < 3; i++) {
        assert_ok(put_now(&f, (const char *[]){"a", "b", "c"}[i], SEGMENT, (unsigned char)(i + 1)));
    }
    meanwhile = fail_nothing;
    for (int i = 0; i < 2; i++) {
        assert_ok(gpuhal_store_put(f.store, NULL, (const char *[]){"d", "e"}[i], 1, &desc, 0, &item));
        gpuhal_item_release(item, NULL);
    }
    expect_at("c", GPUHAL_TIER_DEVICE, 3);
    expect_at("b", GPUHAL_TIER_HOST, 2);
    expect_at("a", GPUHAL_TIER_HOST, 1);
    close_store(&f);
}

TEST(an_entry_that_is_used_while_its_filling_is_waited_for_stays)
{
    fill_behind_gate();
    modifies_a = true;
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_false(modifies_a);
    expect_at("a", GPUHAL_TIER_DEVICE, 1);
    expect_at("b", GPUHAL_TIER_HOST, 2);
    close_store(&f);
}

/* ---- after the deadline */

void __wrap_gpuhal_entry_free(gpuhal_entry *entry);
void __real_gpuhal_entry_free(gpuhal_entry *entry);

static filler thief = {.byte = 9};
static bool steals; /* another thread takes an evicted entry's memory first */
static uint64_t end_ns;

void __wrap_gpuhal_entry_free(gpuhal_entry *entry)
{
    __real_gpuhal_entry_free(entry);
    if (steals && !has(f.store, "s")) {
        steals = false;
        gpuhal_item_release(load_or_fail(&f, "s", SEGMENT, &thief), NULL);
        steals = gpuhal_os_monotonic_ns() < end_ns;
    }
}

/* The store has room for only one entry of SEGMENT bytes. Without the deadline the search would continue until
 * `end_ns`, and then find room. */
static void expect_end_of_search(uint64_t device_bytes, uint64_t pool_bytes)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *none = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = device_bytes}, pool_bytes);
    gpuhal_item_release(load_or_fail(&f, "s", SEGMENT, &thief), NULL);
    end_ns = gpuhal_os_monotonic_ns() + UINT64_C(20000000000);
    steals = true;
    assert_int_equal(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 20000000, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    steals = false;
    assert_true(thief.calls > 1);
    close_store(&f);
}

TEST(a_search_in_a_stores_share_ends_at_the_deadline_if_others_take_its_finds)
{
    expect_end_of_search(SEGMENT, 0);
}

TEST(a_search_in_a_pool_ends_at_the_deadline_if_others_take_its_finds)
{
    expect_end_of_search(0, SEGMENT);
}

typedef struct putter {
    pthread_t thread;
    _Atomic bool returned;
    gpuhal_status status;
} putter;

static void *put_other(void *user)
{
    putter *own = user;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT};
    gpuhal_item *item = NULL;
    own->status = gpuhal_store_put(f.store, NULL, "b", 1, &desc, PATIENCE_NS, &item);
    atomic_store(&own->returned, true);
    gpuhal_item_release(item, NULL);
    return NULL;
}

static _Atomic bool moves, may_end;

uint64_t __wrap_gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                                     uint64_t deadline_ns);
uint64_t __real_gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                                     uint64_t deadline_ns);

uint64_t __wrap_gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                                     uint64_t deadline_ns)
{
    atomic_store(&moves, true);
    while (!atomic_load(&may_end)) {
        gpuhal_os_sleep(1000000);
    }
    return __real_gpuhal_compact_begin(pool, movable, count, bytes, deadline_ns);
}

static void *move_all(void *user)
{
    (void)user;
    assert_ok(gpuhal_store_compact(f.store, PATIENCE_NS, NULL));
    return NULL;
}

/* The move references all entries, so dropped entries keep their memory until the move ends. */
TEST(a_call_waits_for_dropped_entries_while_another_thread_moves_them)
{
    putter own = {.status = GPUHAL_NOT_READY};
    pthread_t mover;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = SEGMENT}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_int_equal(pthread_create(&mover, NULL, move_all, NULL), 0);
    while (!atomic_load(&moves)) {
        gpuhal_os_sleep(1000000);
    }
    assert_ok(gpuhal_store_drop(f.store, "a", 1));
    assert_int_equal(pthread_create(&own.thread, NULL, put_other, &own), 0);
    gpuhal_os_sleep(30000000);
    assert_false(atomic_load(&own.returned));
    atomic_store(&may_end, true);
    pthread_join(mover, NULL);
    pthread_join(own.thread, NULL);
    assert_ok(own.status);
    close_store(&f);
}

/* Uses as many entries as a large model needs. The tiers have exactly enough room, so entries are exchanged. If an
 * entry cannot be evicted, no other entry of the same size can be evicted either. */
TEST(with_thousands_of_entries_and_no_room_few_are_tried)
{
    enum { ENTRIES = 4096, FIT = 1024, BYTES = 4096, MOST = 6 };
    char key[16];
    gpuhal_item *item = NULL;
    f = store_or_fail((gpuhal_store_desc){.device_bytes = FIT * BYTES, .host_bytes = (ENTRIES - FIT) * BYTES}, 0);
    for (unsigned i = 0; i < ENTRIES; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_ok(put_now(&f, key, BYTES, (unsigned char)i));
    }
    for (unsigned i = 0; i < 20; i++) {
        const unsigned number = i * 97 % ENTRIES;
        snprintf(key, sizeof key, "%u", number);
        copies = 0;
        assert_ok(acquire_now(&f, key, 0, &item));
        assert_true(copies > 0 && copies <= MOST);
        expect_bytes(item, NULL, (unsigned char)number);
        gpuhal_item_release(item, NULL);
    }
    copies = 0;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = BYTES};
    assert_int_equal(gpuhal_store_put(f.store, NULL, "more", 4, &desc, 0, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(copies <= MOST);
    close_store(&f);
}

#include "test_main.h"
