/* tests/unit/store_support.h: common code for tests of stores: a store, its pool, and a device with host-visible
 * memory. */
#ifndef GPUHAL_TEST_STORE_SUPPORT_H
#define GPUHAL_TEST_STORE_SUPPORT_H

#include "pool_support.h"

#include <gpuhal/store.h>

#include <stdatomic.h>
#include <time.h>

typedef struct store_fixture {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_store *store;
    gpuhal_queue *queue;
} store_fixture;

/* Opens a store. Entries of SEGMENT bytes fill the pool's segments exactly. */
static inline store_fixture store_or_fail(gpuhal_store_desc desc, uint64_t pool_bytes)
{
    store_fixture f = {.gpu = open_one()};
    f.pool = pool_or_fail(f.gpu, (gpuhal_pool_desc){.limit_bytes = pool_bytes});
    f.queue = queue_or_fail(f.gpu);
    desc.size = sizeof desc;
    assert_ok(gpuhal_store_create(f.pool, &desc, &f.store));
    return f;
}

static inline void close_store(store_fixture *f)
{
    gpuhal_store_destroy(f->store);
    gpuhal_queue_destroy(f->queue);
    gpuhal_pool_destroy(f->pool);
    gpuhal_close(f->gpu);
    for (int i = 0; i < 10000 && gpuhal_mock.devices[0].openings > 0; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    expect_nothing_left();
}

/* A loader that fills all buffers with one byte, and counts its calls. */
typedef struct filler {
    unsigned char byte;
    _Atomic int calls;
    gpuhal_status status;
} filler;

static inline gpuhal_status fill_item(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    filler *f = user;
    gpuhal_buffer *buffer = gpuhal_item_buffer(item, NULL);
    atomic_fetch_add(&f->calls, 1);
    return f->status ? f->status : gpuhal_fill(queue, buffer, 0, gpuhal_buffer_bytes(buffer), f->byte, 1);
}

static inline gpuhal_status acquire_loading(store_fixture *f, const char *key, uint64_t bytes, filler *how,
                                            gpuhal_item **out_item)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = bytes, .load = fill_item, .user = how};
    return gpuhal_store_acquire(f->store, NULL, key, strlen(key), &desc, 0, PATIENCE_NS, out_item);
}

static inline gpuhal_item *load_or_fail(store_fixture *f, const char *key, uint64_t bytes, filler *how)
{
    gpuhal_item *item = NULL;
    assert_ok(acquire_loading(f, key, bytes, how, &item));
    return item;
}

static inline gpuhal_status acquire_now(store_fixture *f, const char *key, uint32_t flags, gpuhal_item **out_item)
{
    return gpuhal_store_acquire(f->store, NULL, key, strlen(key), NULL, flags, 0, out_item);
}

static inline gpuhal_status put_now(store_fixture *f, const char *key, uint64_t bytes, unsigned char byte)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_put(f->store, NULL, key, strlen(key), &desc, PATIENCE_NS, &item);
    assert_int_equal(status == GPUHAL_OK, item != NULL);
    if (item) {
        assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, bytes, byte, 1));
        gpuhal_item_release(item, NULL);
    }
    return status;
}

static inline void expect_bytes(gpuhal_item *item, const char *name, unsigned char byte)
{
    gpuhal_buffer *buffer = gpuhal_item_buffer(item, name);
    assert_non_null(buffer);
    const uint64_t bytes = gpuhal_buffer_bytes(buffer);
    unsigned char *got = malloc(bytes);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, bytes));
    for (uint64_t i = 0; i < bytes; i++) {
        assert_int_equal(got[i], byte);
    }
    free(got);
}

/* Expects the numbers of bytes and the reason in the report of the allocation that has just failed. */
static inline void expect_spillable(uint64_t bytes, uint64_t not_bytes, const char *why)
{
    const gpuhal_memory_report *report = gpuhal_last_memory_report();
    assert_non_null(report);
    assert_int_equal(report->spillable_bytes, bytes);
    assert_int_equal(report->unspillable_bytes, not_bytes);
    if (not_bytes > 0 && !strstr(gpuhal_last_error()->sentence, why)) {
        fail_msg("\"%s\" is not in: %s", why, gpuhal_last_error()->sentence);
    }
}

static inline gpuhal_store_entry entry_of(gpuhal_store *store, const char *key)
{
    gpuhal_store_entry entry = {.size = sizeof entry};
    assert_ok(gpuhal_store_describe(store, key, strlen(key), &entry));
    assert_int_equal(entry.size, sizeof entry);
    return entry;
}

static inline bool has(gpuhal_store *store, const char *key)
{
    return gpuhal_store_describe(store, key, strlen(key), NULL) == GPUHAL_OK;
}

static inline gpuhal_store_statistics counts_of(gpuhal_store *store)
{
    gpuhal_store_statistics counts = {.size = sizeof counts};
    assert_ok(gpuhal_store_get_statistics(store, &counts));
    return counts;
}

#endif
