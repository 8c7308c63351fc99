/* store/entry.c: implements the states, references and pins of an entry. */
#include "store/store.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifdef GPUHAL_CHECK_STATES
static const struct {
    gpuhal_entry_state from, to;
} changes[] = {
#define STATE(name, meaning)
#define CHANGE(from, to, reason) {GPUHAL_ENTRY_##from, GPUHAL_ENTRY_##to},
#include "store/states.inc"
};

static void check_change(gpuhal_entry_state from, gpuhal_entry_state to)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].from == from && changes[i].to == to) {
            return;
        }
    }
    __builtin_trap();
}
#endif

void gpuhal_entry_change(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state to)
{
#ifdef GPUHAL_CHECK_STATES
    check_change(entry->state, to);
#endif
    entry->state = to;
    gpuhal_condition_signal_all(&store->condition);
}

/* ---- creation */

static gpuhal_status invalid(const char *call, const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s", call, what);
}

gpuhal_status gpuhal_item_desc_take(const char *call, const gpuhal_item_desc *given, bool loads,
                                    gpuhal_item_desc *out_desc)
{
    *out_desc = (gpuhal_item_desc){.size = sizeof *out_desc};
    memcpy(out_desc, given, given->size < sizeof *out_desc ? given->size : sizeof *out_desc);
    if (given->size == 0 || (out_desc->flags & ~(uint32_t)GPUHAL_ITEM_KEEP_COPY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the size of desc is 0, or flags has unknown bits",
                                call);
    }
    if (out_desc->priority < -GPUHAL_ITEM_PRIORITY_MAX || out_desc->priority > GPUHAL_ITEM_PRIORITY_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the priority is %" PRId32 ", not from %d to %d",
                                call, out_desc->priority, -GPUHAL_ITEM_PRIORITY_MAX, GPUHAL_ITEM_PRIORITY_MAX);
    }
    return loads == (out_desc->load != NULL)
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: desc has %s loader", call, loads ? "no" : "a");
}

static uint32_t parts_of(const gpuhal_item_desc *desc, gpuhal_item_part *one, const gpuhal_item_part **out_parts)
{
    *one = (gpuhal_item_part){.bytes = desc->bytes};
    *out_parts = desc->part_count ? desc->parts : one;
    return desc->part_count ? desc->part_count : 1;
}

static bool is_of_pool(const gpuhal_store *store, const gpuhal_buffer *buffer)
{
    return buffer->is_part && ((const gpuhal_part *)buffer)->pool == store->pool;
}

static bool same_name(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static gpuhal_status check_part(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                const gpuhal_item_part *parts, uint32_t i)
{
    const gpuhal_buffer *buffer = parts[i].buffer;
    if (buffer && (desc->load || !is_of_pool(store, buffer))) {
        return invalid(call, desc->load ? "a loader fills buffers of the store's own"
                                        : "a buffer is not a part of the store's pool");
    }
    if (!buffer && parts[i].bytes == 0) {
        return invalid(call, "a buffer has at least 1 byte");
    }
    for (uint32_t other = 0; other < i; other++) {
        if (same_name(parts[i].name, parts[other].name) || (buffer && parts[other].buffer == buffer)) {
            return invalid(call, "two buffers have one name, or are one");
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status check_parts(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                 uint64_t *out_bytes)
{
    gpuhal_item_part one;
    const gpuhal_item_part *parts = NULL;
    const uint32_t count = parts_of(desc, &one, &parts);
    gpuhal_status status = parts ? GPUHAL_OK : invalid(call, "parts is NULL");
    *out_bytes = 0;
    for (uint32_t i = 0; i < count && !status; i++) {
        const uint64_t bytes = parts[i].buffer ? parts[i].buffer->bytes : parts[i].bytes;
        status = check_part(store, call, desc, parts, i);
        if (!status && bytes > INT64_MAX - *out_bytes) {
            status = gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE, "%s: more bytes than can be addressed", call);
        }
        *out_bytes += status ? 0 : bytes;
    }
    return status;
}

static gpuhal_status fill_parts(gpuhal_entry *entry, const gpuhal_item_desc *desc)
{
    gpuhal_item_part one;
    const gpuhal_item_part *parts = NULL;
    entry->part_count = parts_of(desc, &one, &parts);
    for (uint32_t i = 0; i < entry->part_count; i++) {
        gpuhal_entry_part *part = &entry->parts[i];
        part->bytes = parts[i].buffer ? parts[i].buffer->bytes : parts[i].bytes;
        part->name = parts[i].name ? strdup(parts[i].name) : NULL;
        if (parts[i].name && !part->name) {
            return gpuhal_error_host_memory();
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_entry_create(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                  const void *key, uint64_t key_bytes, gpuhal_entry **out_entry)
{
    uint64_t bytes = 0;
    *out_entry = NULL;
    gpuhal_status status = check_parts(store, call, desc, &bytes);
    if (status) {
        return status;
    }
    const uint32_t count = desc->part_count ? desc->part_count : 1;
    gpuhal_entry *entry = calloc(1, sizeof *entry + count * sizeof *entry->parts + (size_t)key_bytes);
    if (!entry) {
        return gpuhal_error_host_memory();
    }
    unsigned char *own_key = (unsigned char *)&entry->parts[count];
    memcpy(own_key, key, (size_t)key_bytes);
    entry->key = own_key;
    entry->key_bytes = key_bytes;
    entry->hash = gpuhal_key_hash(key, key_bytes);
    entry->bytes = bytes;
    entry->references = 1;
    entry->priority = desc->priority;
    entry->reloadable = desc->load != NULL;
    entry->keeps_copy = desc->flags & GPUHAL_ITEM_KEEP_COPY;
    status = fill_parts(entry, desc);
    if (status) {
        gpuhal_entry_free(entry);
        return status;
    }
    *out_entry = entry;
    return GPUHAL_OK;
}

/* ---- references and pins */

void gpuhal_store_unreference(gpuhal_store *store)
{
    gpuhal *gpu = store->device->gpu;
    gpuhal_mutex_lock(&store->mutex);
    const bool last = --store->references == 0;
    gpuhal_mutex_unlock(&store->mutex);
    if (last) {
        gpuhal_host_close(store);
        gpuhal_file_close(store);
        gpuhal_index_finish(store);
        gpuhal_condition_finish(&store->condition);
        gpuhal_mutex_finish(&store->mutex);
        free(store);
        gpuhal_unreference(gpu);
    }
}

void gpuhal_entry_free(gpuhal_entry *entry)
{
    if (!entry) {
        return;
    }
    for (uint32_t i = 0; i < entry->part_count; i++) {
        gpuhal_buffer_release(entry->parts[i].device);
        free(entry->parts[i].name);
    }
    gpuhal_host_release(entry->host);
    gpuhal_file_release(entry->file);
    gpuhal_uses_free(entry);
    gpuhal_failure_release(entry->failure);
    free(entry);
}

void gpuhal_entry_count(gpuhal_store *store, gpuhal_entry *entry)
{
    const bool has_copies = store->desc.host_bytes > 0 || store->file || entry->reloadable || !entry->listed;
    const bool is_fixed = entry->has_memory && (entry->pins > 0 || !has_copies);
    if (is_fixed == entry->is_fixed) {
        return;
    }
    const uint64_t bytes = is_fixed ? entry->bytes : -entry->bytes, one = is_fixed ? 1 : UINT64_MAX;
    entry->is_fixed = is_fixed;
    store->fixed.bytes += bytes;
    store->fixed.entries += one;
    atomic_fetch_add_explicit(&store->pool->fixed_bytes, bytes, memory_order_relaxed);
}

void gpuhal_entry_loses_memory(gpuhal_store *store, gpuhal_entry *entry)
{
    entry->has_memory = false;
    gpuhal_entry_count(store, entry);
}

void gpuhal_entry_enters_device(gpuhal_store *store, gpuhal_entry *entry)
{
    entry->in_device = true;
    store->in_device.entries++;
    store->in_device.bytes += entry->bytes;
}

void gpuhal_entry_leaves_device(gpuhal_store *store, gpuhal_entry *entry)
{
    if (entry->in_device) {
        entry->in_device = entry->has_memory = false;
        store->in_device.entries--;
        store->in_device.bytes -= entry->bytes;
        gpuhal_entry_count(store, entry);
    }
}

void gpuhal_entry_attach_host(gpuhal_store *store, gpuhal_entry *entry, gpuhal_host_copy *copy)
{
    entry->host = copy;
    store->in_host.entries++;
    store->in_host.bytes += entry->bytes;
}

gpuhal_host_copy *gpuhal_entry_detach_host(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_host_copy *copy = entry->host;
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_COPIED);
    if (copy) {
        entry->host = NULL;
        store->in_host.entries--;
        store->in_host.bytes -= entry->bytes;
    }
    return copy;
}

void gpuhal_entry_attach_file(gpuhal_store *store, gpuhal_entry *entry, gpuhal_file_copy *copy)
{
    entry->file = copy;
    store->in_file.entries++;
    store->in_file.bytes += entry->bytes;
}

gpuhal_file_copy *gpuhal_entry_detach_file(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_file_copy *copy = entry->file;
    if (copy) {
        entry->file = NULL;
        store->in_file.entries--;
        store->in_file.bytes -= entry->bytes;
    }
    return copy;
}

/* The entry will be freed without the mutex, so the store's counts must exclude it now. */
gpuhal_entry *gpuhal_entry_unreference(gpuhal_store *store, gpuhal_entry *entry)
{
    if (--entry->references > 0) {
        return NULL;
    }
    gpuhal_entry_leaves_device(store, entry);
    entry->host = gpuhal_entry_detach_host(store, entry);
    entry->file = gpuhal_entry_detach_file(store, entry);
    return entry;
}

gpuhal_entry *gpuhal_entry_remove(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_index_remove(store, entry);
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_UNPINNED);
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_COPIED);
    store->pinned -= entry->pins > 0;
    gpuhal_entry_count(store, entry);
    /* If a thread works with the entry, the entry becomes ABSENT when this work ends. */
    if (!entry->worker) {
        gpuhal_entry_change(store, entry, GPUHAL_ENTRY_ABSENT);
    }
    return gpuhal_entry_unreference(store, entry);
}

/* `insert` is gpuhal_entry_append() or gpuhal_entry_return(). */
static void enlist(gpuhal_store *store, gpuhal_entry *entry,
                   void (*insert)(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list))
{
    if (entry->state == GPUHAL_ENTRY_DEVICE && entry->pins == 0) {
        insert(store, entry, GPUHAL_STORE_UNPINNED);
    }
    if (entry->host && !entry->worker) {
        insert(store, entry, GPUHAL_STORE_COPIED);
    }
}

gpuhal_status gpuhal_entry_pin(gpuhal_store *store, gpuhal_entry *entry)
{
    if (!gpuhal_uses_reserve(entry)) {
        return gpuhal_error_host_memory();
    }
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_UNPINNED);
    store->pinned += entry->pins == 0 && entry->listed;
    entry->pins++;
    entry->references++;
    gpuhal_entry_count(store, entry);
    return GPUHAL_OK;
}

gpuhal_entry *gpuhal_entry_unpin(gpuhal_store *store, gpuhal_entry *entry)
{
    entry->pins--;
    gpuhal_entry_count(store, entry);
    if (entry->listed) {
        store->pinned -= entry->pins == 0;
        enlist(store, entry, gpuhal_entry_append);
    }
    return gpuhal_entry_unreference(store, entry);
}

void gpuhal_entry_begin_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state)
{
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_UNPINNED);
    gpuhal_entry_unlink(store, entry, GPUHAL_STORE_COPIED);
    entry->from = entry->state;
    gpuhal_entry_change(store, entry, state);
    store->passing += state == GPUHAL_ENTRY_SPILLING;
    entry->worker = gpuhal_os_thread_id();
    entry->references++;
}

gpuhal_entry *gpuhal_entry_end_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state)
{
    entry->worker = 0;
    store->passing -= entry->state == GPUHAL_ENTRY_SPILLING;
    gpuhal_entry_change(store, entry, entry->listed ? state : GPUHAL_ENTRY_ABSENT);
    if (entry->listed) {
        enlist(store, entry, state == entry->from ? gpuhal_entry_return : gpuhal_entry_append);
    }
    return gpuhal_entry_unreference(store, entry);
}

gpuhal_entry_state gpuhal_entry_tier(const gpuhal_entry *entry)
{
    return entry->host ? GPUHAL_ENTRY_HOST : GPUHAL_ENTRY_FILE;
}

/* Returns BUSY if this thread works with the entry, because it would wait for itself until the deadline. */
gpuhal_status gpuhal_entry_wait_unlocks(gpuhal_store *store, gpuhal_entry *entry, const char *call,
                                        uint64_t deadline_ns)
{
    char text[GPUHAL_KEY_TEXT];
    gpuhal_status status = GPUHAL_NOT_READY;
    const gpuhal_entry_state state = entry->state;
    gpuhal_key_text(entry->key, entry->key_bytes, text);
    if (entry->worker == gpuhal_os_thread_id()) {
        return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s: \"%s\": this thread is filling the entry", call, text);
    }
    entry->references++;
    /* No wait begins after the deadline, because callers call again after each change, perhaps for a new entry with the
     * same key. */
    while (entry->state == state && status == GPUHAL_NOT_READY) {
        if (gpuhal_os_monotonic_ns() < deadline_ns) {
            gpuhal_condition_wait_until(&store->condition, &store->mutex, deadline_ns);
        } else {
            status = gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: \"%s\": another thread is working with the entry",
                                      call, text);
        }
    }
    if (entry->state == GPUHAL_ENTRY_ABSENT && entry->failure) {
        status = gpuhal_failure_status(entry->failure);
    }
    gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return status;
}

bool gpuhal_entry_await_fill_unlocks(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns, bool *out_filled)
{
    const gpuhal_entry_link *link = &entry->links[GPUHAL_STORE_UNPINNED];
    const uint64_t stamp = link->stamp;
    entry->references++;
    gpuhal_mutex_unlock(&store->mutex);
    *out_filled = gpuhal_uses_wait(store, entry, NULL, false, deadline_ns) == GPUHAL_OK;
    gpuhal_mutex_lock(&store->mutex);
    const bool unused = link->in_list && link->stamp == stamp;
    gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
    if (gone) {
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_free(gone);
        gpuhal_mutex_lock(&store->mutex);
    }
    return unused;
}
