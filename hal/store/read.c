/* store/read.c: reads bytes of an entry from any tier into host memory. */
#include "store/store.h"

#include "base/error.h"
#include "base/job.h"

#include <gpuhal/transfer.h>

#include <inttypes.h>
#include <string.h>

typedef struct reading {
    gpuhal_store *store;
    const char *name;
    uint64_t offset, bytes, deadline_ns;
    void *to;
} reading;

static bool is_named(const gpuhal_entry_part *part, const char *name)
{
    return !name || (part->name && strcmp(part->name, name) == 0);
}

static gpuhal_status find_part(const reading *r, const gpuhal_entry *entry, uint32_t *out_part)
{
    uint32_t part = 0;
    while (part < entry->part_count && !is_named(&entry->parts[part], r->name)) {
        part++;
    }
    *out_part = part;
    if (part == entry->part_count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_store_read: the entry has no buffer \"%s\"", r->name);
    }
    const uint64_t size = entry->parts[part].bytes;
    return r->offset <= size && r->bytes <= size - r->offset
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                  "gpuhal_store_read: %" PRIu64 " bytes from offset %" PRIu64
                                  " on, of a buffer of %" PRIu64,
                                  r->bytes, r->offset, size);
}

static gpuhal_status read_host_unlocks(const reading *r, gpuhal_entry *entry, uint32_t part)
{
    gpuhal_host_copy *copy = gpuhal_host_retain(entry->host);
    gpuhal_mutex_unlock(&r->store->mutex);
    memcpy(r->to, (const char *)copy->parts[part].memory + r->offset, (size_t)r->bytes);
    gpuhal_host_release(copy);
    gpuhal_mutex_lock(&r->store->mutex);
    return GPUHAL_OK;
}

static gpuhal_status read_file_unlocks(const reading *r, gpuhal_entry *entry, uint32_t part)
{
    gpuhal_store *store = r->store;
    gpuhal_file_copy *copy = gpuhal_file_retain(entry->file);
    entry->references++;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_status status = gpuhal_file_read(store, copy, entry, part, r->offset, r->to, r->bytes);
    gpuhal_file_release(copy);
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return status;
}

static gpuhal_status read_device_unlocks(const reading *r, gpuhal_entry *entry, uint32_t part)
{
    gpuhal_store *store = r->store;
    gpuhal_status status = gpuhal_entry_pin(store, entry);
    if (status) {
        return status;
    }
    gpuhal_mutex_unlock(&store->mutex);
    status = gpuhal_uses_wait(store, entry, NULL, false, r->deadline_ns);
    status = status ? status : gpuhal_read(NULL, r->to, entry->parts[part].device, r->offset, r->bytes);
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry *gone = gpuhal_entry_unpin(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return status;
}

/* Tries the copy in host memory first. Uses the copy in the file if the entry's state is not DEVICE or the device is
 * lost. Returns NOT_READY if the caller must repeat the lookup. */
static gpuhal_status look(const reading *r, gpuhal_entry *entry)
{
    uint32_t part = 0;
    gpuhal_status status = find_part(r, entry, &part);
    if (status || r->bytes == 0) {
        return status;
    }
    if (entry->host) {
        return read_host_unlocks(r, entry, part);
    }
    if (entry->file && (entry->state != GPUHAL_ENTRY_DEVICE || gpuhal_device_check(r->store->device))) {
        return read_file_unlocks(r, entry, part);
    }
    if (entry->worker) {
        return gpuhal_entry_wait_unlocks(r->store, entry, "gpuhal_store_read", r->deadline_ns);
    }
    const gpuhal_failure *failure = gpuhal_uses_failure(entry);
    return failure ? gpuhal_failure_status(failure) : read_device_unlocks(r, entry, part);
}

gpuhal_status gpuhal_store_read(gpuhal_store *store, const void *key, uint64_t key_bytes, const char *name,
                                uint64_t offset, void *to, uint64_t bytes, uint64_t timeout_ns)
{
    gpuhal_status status = gpuhal_store_check("gpuhal_store_read", store, key, key_bytes);
    if (status || (!to && bytes > 0)) {
        return status ? status : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_store_read: to is NULL");
    }
    const uint64_t hash = gpuhal_key_hash(key, key_bytes);
    const reading r = {.store = store,
                       .name = name,
                       .offset = offset,
                       .bytes = bytes,
                       .to = to,
                       .deadline_ns = gpuhal_deadline(timeout_ns)};
    gpuhal_entry *entry = NULL;
    gpuhal_mutex_lock(&store->mutex);
    do {
        entry = gpuhal_index_find(store, key, key_bytes, hash);
        status = entry ? look(&r, entry) : GPUHAL_OK;
    } while (entry && status == GPUHAL_NOT_READY);
    gpuhal_mutex_unlock(&store->mutex);
    return entry ? status : gpuhal_store_not_found("gpuhal_store_read", key, key_bytes);
}
