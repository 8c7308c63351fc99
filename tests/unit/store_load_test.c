/* Stores: loaders, and the entries that make room. */
#include "store_support.h"

#include <pthread.h>

TEST(a_loader_is_called_once_and_the_entry_kept)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    filler how = {.byte = 0x44};
    for (int i = 0; i < 3; i++) {
        gpuhal_item *item = load_or_fail(&f, "w", 5000, &how);
        expect_bytes(item, NULL, 0x44);
        gpuhal_item_release(item, NULL);
    }
    assert_int_equal(how.calls, 1);
    const gpuhal_store_statistics counts = counts_of(f.store);
    assert_int_equal(counts.loads, 1);
    assert_int_equal(counts.misses, 1);
    assert_int_equal(counts.hits, 2);
    close_store(&f);
}

TEST(a_loader_that_fails_is_called_again_by_the_next_acquire)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    filler how = {.byte = 1, .status = GPUHAL_ERROR_FILE};
    gpuhal_item *item = NULL;
    assert_int_equal(acquire_loading(&f, "w", 5000, &how, &item), GPUHAL_ERROR_FILE);
    assert_null(item);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"w\""));
    assert_false(has(f.store, "w"));
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    assert_int_equal(counts_of(f.store).device.bytes, 0);
    how.status = (gpuhal_status)12345;
    assert_int_equal(acquire_loading(&f, "w", 5000, &how, &item), GPUHAL_ERROR_CANCELLED);
    how.status = GPUHAL_OK;
    gpuhal_item_release(load_or_fail(&f, "w", 5000, &how), NULL);
    assert_int_equal(how.calls, 3);
    close_store(&f);
}

/* ---- several threads */

typedef struct gate_loader {
    store_fixture *f;
    _Atomic bool open;
    _Atomic int calls, waiting;
    gpuhal_status status;
} gate_loader;

static gpuhal_status wait_at_gate(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    gate_loader *gate = user;
    atomic_fetch_add(&gate->calls, 1);
    while (!gate->open) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    return gate->status ? gate->status : gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, 100, 0x55, 1);
}

static void *acquire_at_gate(void *user)
{
    gate_loader *gate = user;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 100, .load = wait_at_gate, .user = gate};
    gpuhal_item *item = NULL;
    atomic_fetch_add(&gate->waiting, 1);
    const gpuhal_status status = gpuhal_store_acquire(gate->f->store, NULL, "one", 3, &desc, 0, PATIENCE_NS, &item);
    if (status) {
        assert_non_null(strstr(gpuhal_last_error()->sentence, "\"one\": the loader returned"));
    } else {
        expect_bytes(item, NULL, 0x55);
        gpuhal_item_release(item, NULL);
    }
    return (void *)(intptr_t)status;
}

static void expect_one_load(gpuhal_status status)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gate_loader gate = {.f = &f, .status = status};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_at_gate, &gate), 0);
    }
    while (gate.waiting < 8 || gate.calls == 0 || counts_of(f.store).misses < 8) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    gate.open = true;
    for (int i = 0; i < 8; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, status);
    }
    assert_int_equal(gate.calls, 1);
    assert_int_equal(counts_of(f.store).loads, 1);
    assert_int_equal(has(f.store, "one"), status == GPUHAL_OK);
    close_store(&f);
}

TEST(eight_threads_that_ask_for_one_key_share_one_load)
{
    expect_one_load(GPUHAL_OK);
}

TEST(a_failed_load_is_returned_to_all_waiting_threads)
{
    expect_one_load(GPUHAL_ERROR_FILE);
}

TEST(a_loader_that_does_not_return_blocks_only_its_key_and_for_the_timeout)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gate_loader gate = {.f = &f};
    filler how = {.byte = 2};
    pthread_t thread;
    gpuhal_item *item = NULL;
    assert_int_equal(pthread_create(&thread, NULL, acquire_at_gate, &gate), 0);
    while (gate.calls == 0) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    assert_int_equal(acquire_now(&f, "one", 0, &item), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "one", 3, NULL, 0, 20000000, &item), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(entry_of(f.store, "one").tiers, 0);
    gpuhal_item_release(load_or_fail(&f, "other", 100, &how), NULL);
    assert_ok(put_now(&f, "third", 100, 3));
    gate.open = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(acquire_now(&f, "one", 0, &item));
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(an_entry_that_is_dropped_while_it_is_loaded_is_its_acquirers_alone)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gate_loader gate = {.f = &f};
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, acquire_at_gate, &gate), 0);
    while (gate.calls == 0) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    assert_ok(gpuhal_store_drop(f.store, "one", 3));
    assert_ok(put_now(&f, "one", 10, 7));
    gate.open = true;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(entry_of(f.store, "one").bytes, 10);
    assert_int_equal(state_of(f.pool).buffers.current, 1);
    close_store(&f);
}

typedef struct nested {
    store_fixture *f;
    gpuhal_status own, put_own;
} nested;

static gpuhal_status load_others(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    nested *n = user;
    filler how = {.byte = 0x66};
    gpuhal_item *other = NULL;
    n->own = acquire_loading(n->f, "outer", 100, &how, &other);
    n->put_own = put_now(n->f, "outer", 100, 1);
    gpuhal_status status = acquire_loading(n->f, "inner", 100, &how, &other);
    status = status ? status
                    : gpuhal_copy(queue, gpuhal_item_buffer(item, NULL), 0, gpuhal_item_buffer(other, NULL), 0, 100);
    gpuhal_item_release(other, queue);
    return status;
}

TEST(a_loader_may_use_the_store_for_other_keys_and_gets_busy_for_its_own)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    nested n = {.f = &f};
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 100, .load = load_others, .user = &n};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "outer", 5, &desc, 0, PATIENCE_NS, &item));
    assert_int_equal(n.own, GPUHAL_ERROR_BUSY);
    assert_int_equal(n.put_own, GPUHAL_ERROR_BUSY);
    expect_bytes(item, NULL, 0x66);
    gpuhal_item_release(item, NULL);
    assert_true(has(f.store, "inner"));
    close_store(&f);
}

/* ---- putting */

TEST(others_wait_for_an_entry_that_is_being_put)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 100};
    gate_loader gate = {.f = &f, .open = true};
    gpuhal_item *item = NULL, *same = NULL;
    pthread_t thread;
    void *result = NULL;
    assert_ok(gpuhal_store_put(f.store, NULL, "one", 3, &desc, 0, &item));
    assert_int_equal(acquire_now(&f, "one", 0, &same), GPUHAL_ERROR_BUSY);
    assert_int_equal(pthread_create(&thread, NULL, acquire_at_gate, &gate), 0);
    while (counts_of(f.store).misses < 2) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, 100, 0x55, 1));
    gpuhal_item_release(item, NULL);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(gate.calls, 0);
    close_store(&f);
}

TEST(a_put_that_is_given_up_leaves_the_key_to_others)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 100};
    filler how = {.byte = 9};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_put(f.store, NULL, "one", 3, &desc, 0, &item));
    assert_ok(gpuhal_store_drop(f.store, "one", 3));
    gpuhal_item_release(item, NULL);
    assert_false(has(f.store, "one"));
    assert_int_equal(state_of(f.pool).buffers.current, 0);
    item = load_or_fail(&f, "one", 100, &how);
    expect_bytes(item, NULL, 9);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

/* ---- room */

static void touch(store_fixture *f, const char *key, filler *how)
{
    gpuhal_item_release(load_or_fail(f, key, SEGMENT, how), NULL);
}

TEST(the_entry_not_used_for_longest_makes_room)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * SEGMENT}, 0);
    filler how = {.byte = 1};
    touch(&f, "a", &how);
    touch(&f, "b", &how);
    touch(&f, "c", &how);
    touch(&f, "a", &how);
    touch(&f, "d", &how);
    assert_true(has(f.store, "a") && has(f.store, "c") && has(f.store, "d"));
    assert_false(has(f.store, "b"));
    assert_int_equal(how.calls, 4);
    touch(&f, "b", &how);
    assert_false(has(f.store, "c"));
    assert_int_equal(counts_of(f.store).evictions, 2);
    assert_int_equal(counts_of(f.store).device.entries, 3);
    assert_int_equal(counts_of(f.store).device.bytes, 3 * SEGMENT);
    close_store(&f);
}

TEST(a_lower_priority_makes_room_before_a_longer_time)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT}, 0);
    filler how = {.byte = 1};
    gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how, .priority = 1};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "high", 4, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    desc.priority = -1;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "low", 3, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "low").priority, -1);
    touch(&f, "new", &how);
    assert_true(has(f.store, "high"));
    assert_false(has(f.store, "low"));
    touch(&f, "newer", &how);
    assert_true(has(f.store, "high"));
    assert_false(has(f.store, "new"));
    close_store(&f);
}

TEST(pinned_entries_and_entries_without_a_loader_make_no_room)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 2 * SEGMENT);
    filler how = {.byte = 1};
    gpuhal_item *pinned = load_or_fail(&f, "pinned", SEGMENT, &how), *item = NULL;
    assert_ok(put_now(&f, "put", SEGMENT, 2));
    assert_int_equal(acquire_loading(&f, "new", SEGMENT, &how, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_false(has(f.store, "new"));
    expect_bytes(pinned, NULL, 1);
    gpuhal_item_release(pinned, NULL);
    touch(&f, "new", &how);
    assert_false(has(f.store, "pinned"));
    assert_ok(acquire_now(&f, "put", 0, &item));
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(an_entry_that_no_room_would_do_for_blames_no_other)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = SEGMENT}, 0);
    filler how = {.byte = 1};
    gpuhal_item *item = NULL;
    touch(&f, "a", &how);
    assert_int_equal(acquire_loading(&f, "b", SEGMENT + 1, &how, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(strstr(gpuhal_last_error()->sentence, "of which"));
    assert_true(has(f.store, "a"));
    close_store(&f);
}

TEST(a_loaded_entry_that_was_modified_is_not_given_up)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = SEGMENT}, 0);
    filler how = {.byte = 1};
    gpuhal_item *item = NULL;
    touch(&f, "a", &how);
    assert_ok(acquire_now(&f, "a", GPUHAL_ACQUIRE_MODIFY, &item));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, SEGMENT, 2, 1));
    gpuhal_item_release(item, NULL);
    assert_int_equal(acquire_loading(&f, "b", 1, &how, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_asked, 1);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "cannot be spilled"));
    assert_ok(acquire_now(&f, "a", 0, &item));
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(above_the_limit_of_entries_the_oldest_is_given_up_or_goes_to_the_next_tier)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.entry_limit = 3, .host_bytes = UINT64_MAX}, 0);
    filler how = {.byte = 1};
    gpuhal_item *item = NULL;
    touch(&f, "a", &how);
    assert_ok(put_now(&f, "b", 1, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    touch(&f, "d", &how);
    assert_false(has(f.store, "a"));
    assert_ok(put_now(&f, "e", 1, 5));
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(counts_of(f.store).entries, 4);
    assert_int_equal(counts_of(f.store).device.entries, 3);
    assert_ok(acquire_now(&f, "b", 0, &item));
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(counts_of(f.store).device.entries, 3);
    close_store(&f);
}

TEST(a_limit_of_entries_without_a_next_tier_is_named)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.entry_limit = 2}, 0);
    filler how = {.byte = 1};
    gpuhal_item *pinned = load_or_fail(&f, "a", 100, &how), *item = NULL;
    assert_ok(put_now(&f, "b", 200, 2));
    assert_int_equal(put_now(&f, "c", 300, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence,
                           "300 bytes requested for an entry of a store that may have 2 entries in device memory; 100 "
                           "bytes are pinned; 200 cannot be spilled: host_bytes is 0, there is no "
                           "folder"));
    assert_int_equal(gpuhal_last_error()->bytes_asked, 300);
    assert_int_equal(gpuhal_last_error()->bytes_free, UINT64_MAX);
    gpuhal_item_release(pinned, NULL);
    touch(&f, "c", &how);
    assert_false(has(f.store, "a"));
    assert_ok(acquire_now(&f, "b", 0, &item));
    expect_bytes(item, NULL, 2);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

#include "test_main.h"
