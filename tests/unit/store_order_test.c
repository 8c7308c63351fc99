/* Stores: ordering between queues, and failing work. A gate blocks a queue's work. */
#include "store_support.h"

static gpuhal_status put_in(store_fixture *f, gpuhal_queue *queue, const char *key, unsigned char byte)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = UNIT};
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_put(f->store, queue, key, strlen(key), &desc, 0, &item);
    status = status ? status : gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, UNIT, byte, 1);
    gpuhal_item_release(item, queue);
    return status;
}

TEST(another_queue_waits_for_the_work_that_filled_the_entry)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_queue *other = queue_or_fail(f.gpu);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = NULL;
    unsigned char got[UNIT] = {0};
    assert_ok(put_in(&f, f.queue, "a", 0x21));
    assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_store_acquire(f.store, other, "a", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(other, got, gpuhal_item_buffer(item, NULL), 0, UNIT));
    gpuhal_item_release(item, other);
    assert_int_equal(gpuhal_queue_synchronize(other, 10000000), GPUHAL_ERROR_TIMEOUT);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    assert_int_equal(got[0], 0x21);
    assert_int_equal(got[UNIT - 1], 0x21);
    assert_ok(gpuhal_store_acquire(f.store, NULL, "a", 1, NULL, 0, PATIENCE_NS, &item));
    expect_bytes(item, NULL, 0x21);
    gpuhal_item_release(item, NULL);
    gpuhal_queue_destroy(other);
    close_store(&f);
}

TEST(bytes_that_are_still_being_filled_are_named_if_they_are_in_the_way)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = UNIT, .host_bytes = UINT64_MAX}, 0);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(put_in(&f, f.queue, "a", 1));
    assert_int_equal(put_in(&f, f.queue, "b", 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(
        strstr(gpuhal_last_error()->sentence,
               "; 0 bytes are pinned; 256 can leave once the work that fills them has ended (a timeout waits for it)"));
    open_gate(gate);
    close_store(&f);
}

TEST(readers_do_not_wait_for_each_other_and_modifying_waits_for_readers)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_queue *other = queue_or_fail(f.gpu), *third = queue_or_fail(f.gpu);
    gpuhal_item *item = NULL;
    unsigned char got[UNIT] = {0};
    assert_ok(put_in(&f, NULL, "a", 0x21));
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, f.queue, "a", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(f.queue, got, gpuhal_item_buffer(item, NULL), 0, UNIT));
    gpuhal_item_release(item, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, other, "a", 1, NULL, 0, 0, &item));
    gpuhal_item_release(item, other);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    assert_ok(gpuhal_store_acquire(f.store, third, "a", 1, NULL, GPUHAL_ACQUIRE_MODIFY, 0, &item));
    assert_ok(gpuhal_fill(third, gpuhal_item_buffer(item, NULL), 0, UNIT, 0x22, 1));
    gpuhal_item_release(item, third);
    assert_int_equal(gpuhal_queue_synchronize(third, 10000000), GPUHAL_ERROR_TIMEOUT);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(third, PATIENCE_NS));
    assert_int_equal(got[0], 0x21);
    gpuhal_queue_destroy(other);
    gpuhal_queue_destroy(third);
    close_store(&f);
}

static void read_and_release(store_fixture *f, gpuhal_queue *queue, unsigned char *got)
{
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f->store, queue, "a", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(queue, got, gpuhal_item_buffer(item, NULL), 0, UNIT));
    gpuhal_item_release(item, queue);
}

TEST(modifying_waits_for_all_queues_that_read_before_in_any_order)
{
    for (int last = 0; last < 2; last++) {
        store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
        gpuhal_queue *readers[] = {queue_or_fail(f.gpu), queue_or_fail(f.gpu)};
        gpuhal_item *item = NULL;
        unsigned char got[2][UNIT] = {{0}};
        assert_ok(put_in(&f, NULL, "a", 0x21));
        gpuhal_event *gate = close_gate(f.gpu, readers[last]);
        for (int i = 0; i < 2; i++) {
            read_and_release(&f, readers[i], got[i]);
        }
        assert_ok(gpuhal_store_acquire(f.store, f.queue, "a", 1, NULL, GPUHAL_ACQUIRE_MODIFY, 0, &item));
        assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, UNIT, 0x22, 1));
        gpuhal_item_release(item, f.queue);
        assert_int_equal(gpuhal_queue_synchronize(f.queue, 10000000), GPUHAL_ERROR_TIMEOUT);
        open_gate(gate);
        assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
        assert_int_equal(got[last][0], 0x21);
        gpuhal_queue_destroy(readers[0]);
        gpuhal_queue_destroy(readers[1]);
        close_store(&f);
    }
}

/* The queue that releases an item may not have waited for all work that the next queue must wait for. */
TEST(earlier_work_counts_even_if_another_queue_releases_the_next_item)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_queue *other = queue_or_fail(f.gpu), *idle = queue_or_fail(f.gpu), *reader = queue_or_fail(f.gpu);
    gpuhal_item *item = NULL;
    unsigned char got[UNIT] = {0};
    assert_ok(put_in(&f, NULL, "a", 0x21));
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, f.queue, "a", 1, NULL, GPUHAL_ACQUIRE_MODIFY, 0, &item));
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, UNIT, 0x22, 1));
    gpuhal_item_release(item, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, other, "a", 1, NULL, GPUHAL_ACQUIRE_MODIFY, 0, &item));
    gpuhal_item_release(item, idle);
    assert_ok(gpuhal_queue_synchronize(idle, PATIENCE_NS));
    assert_ok(gpuhal_store_acquire(f.store, reader, "a", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(reader, got, gpuhal_item_buffer(item, NULL), 0, UNIT));
    gpuhal_item_release(item, reader);
    assert_int_equal(gpuhal_queue_synchronize(reader, 10000000), GPUHAL_ERROR_TIMEOUT);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(reader, PATIENCE_NS));
    assert_int_equal(got[0], 0x22);
    assert_int_equal(got[UNIT - 1], 0x22);
    gpuhal_queue_destroy(reader);
    gpuhal_queue_destroy(idle);
    gpuhal_queue_destroy(other);
    close_store(&f);
}

TEST(an_entry_whose_filling_failed_returns_why_until_it_is_dropped)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_item *item = NULL;
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(put_in(&f, f.queue, "a", 0x21));
    assert_ok(gpuhal_event_signal(gate, GPUHAL_ERROR_FILE));
    gpuhal_event_destroy(gate);
    assert_int_equal(gpuhal_queue_synchronize(f.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpuhal_store_acquire(f.store, NULL, "a", 1, NULL, 0, PATIENCE_NS, &item), GPUHAL_ERROR_FILE);
        assert_null(item);
        unsigned char got = 0;
        assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, 0, &got, 1, PATIENCE_NS), GPUHAL_ERROR_FILE);
    }
    assert_int_equal(entry_of(f.store, "a").tiers, 0);
    /* A failure before the release must have the same effect as a failure after it. */
    assert_int_equal(put_in(&f, f.queue, "b", 0x21), GPUHAL_ERROR_FILE);
    assert_int_equal(acquire_now(&f, "b", 0, &item), GPUHAL_ERROR_FILE);
    assert_ok(gpuhal_store_drop(f.store, "a", 1));
    assert_ok(put_in(&f, NULL, "a", 0x22));
    assert_ok(acquire_now(&f, "a", 0, &item));
    expect_bytes(item, NULL, 0x22);
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_queue_reset(f.queue, PATIENCE_NS));
    close_store(&f);
}

TEST(an_entry_whose_loading_failed_behind_its_acquire_is_loaded_again)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    filler how = {.byte = 5};
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = UNIT, .load = fill_item, .user = &how};
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, f.queue, "a", 1, &desc, 0, 0, &item));
    gpuhal_item_release(item, f.queue);
    assert_ok(gpuhal_event_signal(gate, GPUHAL_ERROR_FILE));
    gpuhal_event_destroy(gate);
    assert_int_equal(gpuhal_queue_synchronize(f.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    item = load_or_fail(&f, "a", UNIT, &how);
    expect_bytes(item, NULL, 5);
    gpuhal_item_release(item, NULL);
    assert_int_equal(how.calls, 2);
    assert_ok(gpuhal_queue_reset(f.queue, PATIENCE_NS));
    close_store(&f);
}

/* The memory of an evicted entry may only be reused after the queue's work on the entry. */
TEST(memory_of_an_entry_goes_behind_the_work_that_uses_it)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, SEGMENT);
    filler how = {.byte = 7};
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how};
    gpuhal_item *item = NULL;
    unsigned char *got = malloc(SEGMENT);
    gpuhal_item_release(load_or_fail(&f, "a", SEGMENT, &how), NULL);
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, f.queue, "a", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(f.queue, got, gpuhal_item_buffer(item, NULL), 0, SEGMENT));
    gpuhal_item_release(item, f.queue);
    how.byte = 8;
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "b", 1, &desc, 0, 10000000, &item),
                     GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_pending, SEGMENT);
    open_gate(gate);
    item = load_or_fail(&f, "b", SEGMENT, &how);
    expect_bytes(item, NULL, 8);
    gpuhal_item_release(item, NULL);
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    assert_int_equal(got[0], 7);
    assert_int_equal(got[SEGMENT - 1], 7);
    free(got);
    close_store(&f);
}

/* Stands for work that the library does not see, such as a kernel that the caller launches. */
static gpuhal_status do_work(void *user)
{
    (void)user;
    return GPUHAL_OK;
}

/* Enqueues work that the library does not see, and returns an error. */
static gpuhal_status fail_behind_work(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    (void)item;
    assert_ok(gpuhal_queue_call(queue, do_work, user));
    return GPUHAL_ERROR_CANCELLED;
}

TEST(memory_goes_behind_the_queue_of_the_release_not_of_the_acquire)
{
    for (uint32_t flags = 0; flags <= GPUHAL_ACQUIRE_MODIFY; flags++) {
        store_fixture f = store_or_fail((gpuhal_store_desc){0}, SEGMENT);
        gpuhal_item *item = NULL;
        assert_ok(put_now(&f, "a", SEGMENT, 1));
        assert_ok(acquire_now(&f, "a", flags, &item));
        gpuhal_event *gate = close_gate(f.gpu, f.queue);
        assert_ok(gpuhal_queue_call(f.queue, do_work, NULL));
        gpuhal_item_release(item, f.queue);
        assert_ok(gpuhal_store_drop(f.store, "a", 1));
        assert_int_equal(attempt(f.pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
        open_gate(gate);
        assert_ok(attempt(f.pool, NULL, SEGMENT, 0, PATIENCE_NS));
        close_store(&f);
    }
}

TEST(memory_goes_behind_the_work_of_a_loader_that_failed)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, SEGMENT);
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .load = fail_behind_work};
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    gpuhal_item *item = NULL;
    assert_int_equal(gpuhal_store_acquire(f.store, f.queue, "a", 1, &desc, 0, 0, &item), GPUHAL_ERROR_CANCELLED);
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(gate);
    assert_ok(attempt(f.pool, NULL, SEGMENT, 0, PATIENCE_NS));
    close_store(&f);
}

TEST(arguments_of_two_objects_are_refused)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal *foreign = gpuhal_mock_open(NULL, 0);
    gpuhal_queue *queue = queue_or_fail(foreign);
    gpuhal_item *item = NULL;
    assert_ok(put_in(&f, NULL, "a", 1));
    assert_int_equal(gpuhal_store_acquire(f.store, queue, "a", 1, NULL, 0, 0, &item), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(put_in(&f, queue, "b", 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_queue_destroy(queue);
    gpuhal_close(foreign);
    close_store(&f);
}

#include "test_main.h"
