/* store/store.c: creates and destroys a store, and drops entries. */
#include "store/store.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static gpuhal_status invalid(const char *call, const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s", call, what);
}

static gpuhal_store *make_store(gpuhal_pool *pool, const gpuhal_store_desc *desc)
{
    gpuhal_store *store = calloc(1, sizeof *store);
    if (!store || !gpuhal_index_init(store)) {
        free(store);
        return NULL;
    }
    store->pool = pool;
    store->device = pool->device;
    store->desc = *desc;
    store->references = 1;
    gpuhal_mutex_init(&store->mutex);
    gpuhal_condition_init(&store->condition);
    atomic_fetch_add(&pool->device->gpu->references, 1);
    return store;
}

gpuhal_status gpuhal_store_create(gpuhal_pool *pool, const gpuhal_store_desc *given, gpuhal_store **out_store)
{
    gpuhal_store_desc desc = {.size = sizeof desc};
    if (out_store) {
        *out_store = NULL;
    }
    if (!pool || !out_store || (given && given->size == 0)) {
        return invalid("gpuhal_store_create", "pool or out_store is NULL, or the size of desc is 0");
    }
    gpuhal_status status = gpuhal_check(pool->device->gpu);
    if (status) {
        return status;
    }
    if (given) {
        memcpy(&desc, given, given->size < sizeof desc ? given->size : sizeof desc);
    }
    gpuhal_store *store = make_store(pool, &desc);
    if (!store) {
        return gpuhal_error_host_memory();
    }
    status = gpuhal_host_open(store);
    status = status || !desc.folder ? status : gpuhal_file_open(store, desc.folder);
    store->desc.folder = NULL; /* the string belongs to the caller and is no longer needed */
    status = status ? status : gpuhal_store_offer(store);
    if (status) {
        gpuhal_store_destroy(store);
        return status;
    }
    *out_store = store;
    return GPUHAL_OK;
}

void gpuhal_store_destroy(gpuhal_store *store)
{
    if (store && !gpuhal_is_inherited(store->device->gpu)) {
        gpuhal_store_withdraw(store);
        (void)gpuhal_store_clear(store, NULL, 0, NULL);
        gpuhal_store_unreference(store);
    }
}

gpuhal_status gpuhal_store_drop(gpuhal_store *store, const void *key, uint64_t key_bytes)
{
    gpuhal_status status = gpuhal_store_check("gpuhal_store_drop", store, key, key_bytes);
    if (status) {
        return status;
    }
    gpuhal_entry *gone = NULL;
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry *entry = gpuhal_index_find(store, key, key_bytes, gpuhal_key_hash(key, key_bytes));
    if (entry) {
        gone = gpuhal_entry_remove(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    return entry ? GPUHAL_OK : gpuhal_store_not_found("gpuhal_store_drop", key, key_bytes);
}

/* Removes the entries whose keys begin with the prefix. Returns those without users, linked by `next`. The caller holds
 * the mutex. */
static gpuhal_entry *remove_all(gpuhal_store *store, const void *prefix, uint64_t bytes, uint64_t *out_count)
{
    gpuhal_entry *list = NULL;
    for (uint64_t row = 0; row <= store->row_mask; row++) {
        for (gpuhal_entry *entry = store->rows[row], *next; entry; entry = next) {
            next = entry->next;
            gpuhal_entry *gone = NULL;
            if (gpuhal_key_begins(entry, prefix, bytes)) {
                gone = gpuhal_entry_remove(store, entry);
                (*out_count)++;
            }
            if (gone) {
                gone->next = list;
                list = gone;
            }
        }
    }
    return list;
}

gpuhal_status gpuhal_store_clear(gpuhal_store *store, const void *prefix, uint64_t prefix_bytes, uint64_t *out_count)
{
    uint64_t count = 0;
    if (out_count) {
        *out_count = 0;
    }
    if (!store || (!prefix && prefix_bytes > 0)) {
        return invalid("gpuhal_store_clear", "store or prefix is NULL");
    }
    gpuhal_status status = gpuhal_check(store->device->gpu);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry *list = remove_all(store, prefix, prefix_bytes, &count);
    gpuhal_mutex_unlock(&store->mutex);
    while (list) {
        gpuhal_entry *entry = list;
        list = entry->next;
        gpuhal_entry_free(entry);
    }
    if (out_count) {
        *out_count = count;
    }
    return GPUHAL_OK;
}
