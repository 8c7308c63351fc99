/* store/view.c: describes a store and its entries. */
#include "store/store.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* The caller holds the mutex. */
static gpuhal_store_entry describe(const gpuhal_entry *entry)
{
    const bool on_device = entry->state == GPUHAL_ENTRY_DEVICE || entry->state == GPUHAL_ENTRY_SPILLING ||
                           entry->state == GPUHAL_ENTRY_MOVING;
    return (gpuhal_store_entry){.size = sizeof(gpuhal_store_entry),
                                .tiers = (on_device ? GPUHAL_TIER_DEVICE : 0u) | (entry->host ? GPUHAL_TIER_HOST : 0u) |
                                         (entry->file ? GPUHAL_TIER_FILE : 0u),
                                .bytes = entry->bytes,
                                .part_count = entry->part_count,
                                .pins = entry->pins,
                                .priority = entry->priority};
}

gpuhal_status gpuhal_store_describe(gpuhal_store *store, const void *key, uint64_t key_bytes,
                                    gpuhal_store_entry *out_entry)
{
    gpuhal_store_entry found = {0};
    if (!store || (out_entry && out_entry->size == 0)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_describe: store is NULL, or the size of out_entry is 0");
    }
    gpuhal_status status = gpuhal_store_check("gpuhal_store_describe", store, key, key_bytes);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&store->mutex);
    const gpuhal_entry *entry = gpuhal_index_find(store, key, key_bytes, gpuhal_key_hash(key, key_bytes));
    if (entry) {
        found = describe(entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    if (!found.size) {
        return gpuhal_store_not_found("gpuhal_store_describe", key, key_bytes);
    }
    if (out_entry) {
        found.size = out_entry->size;
        memcpy(out_entry, &found, found.size < sizeof found ? found.size : sizeof found);
    }
    return GPUHAL_OK;
}

/* ---- the list */

typedef struct listed_entry {
    gpuhal_entry *entry; /* with a reference */
    gpuhal_store_entry description;
} listed_entry;

static int by_key(const void *one, const void *other)
{
    const gpuhal_entry *a = ((const listed_entry *)one)->entry, *b = ((const listed_entry *)other)->entry;
    const uint64_t common = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    const int order = memcmp(a->key, b->key, (size_t)common);
    return order ? order : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

/* The caller holds the mutex. Returns false if host memory is short. */
static bool collect(gpuhal_store *store, const void *prefix, uint64_t bytes, listed_entry **out_list, size_t *out_count)
{
    listed_entry *list = store->entry_count ? malloc((size_t)store->entry_count * sizeof *list) : NULL;
    *out_list = list;
    *out_count = 0;
    for (uint64_t row = 0; row <= store->row_mask && list; row++) {
        for (gpuhal_entry *entry = store->rows[row]; entry; entry = entry->next) {
            if (gpuhal_key_begins(entry, prefix, bytes)) {
                entry->references++;
                list[(*out_count)++] = (listed_entry){.entry = entry, .description = describe(entry)};
            }
        }
    }
    return list || store->entry_count == 0;
}

gpuhal_status gpuhal_store_list(gpuhal_store *store, const void *prefix, uint64_t prefix_bytes,
                                gpuhal_store_visit_fn *visit, void *user)
{
    listed_entry *list = NULL;
    size_t count = 0;
    if (!store || !visit || (!prefix && prefix_bytes > 0)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_store_list: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(store->device->gpu);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&store->mutex);
    bool collected = collect(store, prefix, prefix_bytes, &list, &count);
    gpuhal_mutex_unlock(&store->mutex);
    if (!collected) {
        return gpuhal_error_host_memory();
    }
    if (count > 1) {
        qsort(list, count, sizeof *list, by_key);
    }
    bool ended = false;
    for (size_t i = 0; i < count; i++) {
        gpuhal_entry *entry = list[i].entry;
        ended = ended || visit(user, entry->key, entry->key_bytes, &list[i].description) != 0;
        gpuhal_mutex_lock(&store->mutex);
        gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_free(gone);
    }
    free(list);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_store_get_statistics(gpuhal_store *store, gpuhal_store_statistics *out_statistics)
{
    if (!store || !out_statistics || out_statistics->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_get_statistics: an argument is NULL, or its size is 0");
    }
    gpuhal_status status = gpuhal_check(store->device->gpu);
    if (status) {
        return status;
    }
    gpuhal_store_statistics all = {.size = out_statistics->size};
    gpuhal_mutex_lock(&store->mutex);
    all.pinned = store->pinned;
    all.entries = store->entry_count;
    all.device = store->in_device;
    all.host = store->in_host;
    all.file = store->in_file;
    all.spills = store->spills;
    all.restores = store->restores;
    all.spilled_bytes = store->spilled_bytes;
    all.restored_bytes = store->restored_bytes;
    all.hits = store->hits;
    all.misses = store->misses;
    all.loads = store->loads;
    all.moves = store->moves;
    all.moved_bytes = store->moved_bytes;
    all.evictions = store->evictions;
    gpuhal_mutex_unlock(&store->mutex);
    memcpy(out_statistics, &all, all.size < sizeof all ? all.size : sizeof all);
    return GPUHAL_OK;
}
