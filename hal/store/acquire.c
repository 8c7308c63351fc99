/* store/acquire.c: putting and acquiring entries: finding or making them, and waiting for other threads that do. */
#include "store/store.h"

#include "core/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A call that is under way. */
typedef struct request {
    const char *call;
    gpuhal_store *store;
    gpuhal_queue *queue;
    const void *key;
    uint64_t key_bytes, hash, deadline_ns; /* 0: nothing is waited for */
    const gpuhal_item_desc *desc; /* completed; NULL: nothing is made */
    gpuhal_item *item;            /* where the entry goes */
    bool counted;                 /* as a hit or a miss */
} request;

static gpuhal_status failed(const request *r, gpuhal_status status, const char *what)
{
    char text[GPUHAL_KEY_TEXT];
    return gpuhal_error_set(status, "%s: \"%s\": %s", r->call, gpuhal_key_text(r->key, r->key_bytes, text), what);
}

static void count(request *r, bool hit)
{
    if (!r->counted) {
        r->counted = true;
        r->store->hits += hit;
        r->store->misses += !hit;
    }
}

/* ---- making an entry */

/* Room in the table, also that others made where this thread finds none. With the mutex held, which may be released
 * meanwhile. */
static gpuhal_status make_place(const request *r)
{
    gpuhal_store *store = r->store;
    const uint32_t limit = store->desc.entry_limit;
    bool forgot = true;
    while (limit && store->entry_count >= limit && forgot) {
        gpuhal_mutex_unlock(&store->mutex);
        forgot = gpuhal_store_forget_one(store);
        gpuhal_mutex_lock(&store->mutex);
    }
    return !limit || store->entry_count < limit
               ? GPUHAL_OK
               : failed(r, GPUHAL_ERROR_OUT_OF_MEMORY, "the store has as many entries as it may, and can give none up");
}

/* Adds a new entry to the table, pinned; this thread fills it. NOT_READY: another thread was first. */
static gpuhal_status begin_filling(const request *r, gpuhal_entry *entry)
{
    gpuhal_store *store = r->store;
    gpuhal_status status = make_place(r);
    if (!status && gpuhal_index_find(store, r->key, r->key_bytes, r->hash)) {
        status = GPUHAL_NOT_READY;
    }
    status = status ? status : gpuhal_entry_pin(store, entry);
    if (!status) {
        gpuhal_index_add(store, entry);
        for (int list = 0; list < GPUHAL_STORE_LISTS; list++) {
            entry->links[list].attempt = store->attempts; /* searches come to an end, however many others put */
        }
        store->pinned++;
        entry->references++;
        entry->worker = gpuhal_os_thread_id();
        gpuhal_entry_change(store, entry, GPUHAL_ENTRY_LOADING);
    }
    return status;
}

/* With the mutex held, which is released meanwhile: the entry, in the table, or why it cannot be had. */
static gpuhal_status make(const request *r, gpuhal_entry **out_entry)
{
    gpuhal_store *store = r->store;
    gpuhal_entry *gone = NULL;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_status status = gpuhal_entry_create(store, r->call, r->desc, r->key, r->key_bytes, out_entry);
    gpuhal_mutex_lock(&store->mutex);
    if (!status) {
        status = begin_filling(r, *out_entry);
        gone = gpuhal_entry_unreference(store, *out_entry);
    }
    if (gone) {
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_free(gone);
        gpuhal_mutex_lock(&store->mutex);
    }
    return status;
}

/* The entry is not to be had: it leaves the table, and threads that wait for it return the same failure. With the mutex
 * held, which is released meanwhile. */
static gpuhal_status give_up(const request *r, gpuhal_entry *entry)
{
    gpuhal_store *store = r->store;
    gpuhal_failure *failure = gpuhal_failure_create();
    entry->failure = gpuhal_failure_retain(failure);
    if (entry->listed) {
        (void)gpuhal_entry_remove(store, entry); /* this thread has a reference */
    }
    entry->worker = 0;
    gpuhal_entry_change(store, entry, GPUHAL_ENTRY_ABSENT);
    gpuhal_entry *gone = gpuhal_entry_unpin(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_status status = gpuhal_failure_status(failure);
    gpuhal_failure_release(failure);
    gpuhal_mutex_lock(&store->mutex);
    return status;
}

/* A loader may return what no call of this library does, or nothing that says why. */
static gpuhal_status call_loader(const request *r, gpuhal_item *item)
{
    gpuhal_error_clear();
    gpuhal_status status = r->desc->load(r->desc->user, r->queue, item);
    if (!status) {
        return GPUHAL_OK;
    }
    gpuhal_error_detail why;
    gpuhal_error_save(&why);
    const bool is_known = why.error.status == status, is_error = status < 0 && status >= GPUHAL_ERROR_INFEASIBLE;
    char text[GPUHAL_KEY_TEXT];
    return gpuhal_error_set(is_error ? status : GPUHAL_ERROR_CANCELLED, "%s: \"%s\": the loader returned \"%s\"%s%s",
                            r->call, gpuhal_key_text(r->key, r->key_bytes, text), gpuhal_status_name(status),
                            is_known ? ": " : "", is_known ? why.sentence : "");
}

/* Without the mutex: calls the loader, and records behind what it has enqueued. Its own work with the buffers may begin
 * at once, whether it uses the queue or not. */
static gpuhal_status run_loader(const request *r, gpuhal_entry *entry, gpuhal_entry_use *out_use)
{
    gpuhal_item item = {.store = r->store, .entry = entry};
    *out_use = (gpuhal_entry_use){.queue = r->queue, .modifies = true};
    gpuhal_status status = gpuhal_entry_allocate(r->store, entry, NULL, r->deadline_ns);
    status = status ? status : gpuhal_uses_announce(entry, r->queue); /* also where the loader then fails */
    status = status ? status : call_loader(r, &item);
    return status || !r->queue ? status : gpuhal_queue_record(r->queue, false, &out_use->timepoint);
}

/* With the mutex held, which is released meanwhile. */
static gpuhal_status load(request *r)
{
    gpuhal_store *store = r->store;
    gpuhal_entry *entry = NULL;
    gpuhal_entry_use use;
    gpuhal_timepoint *old = NULL;
    gpuhal_status status = make(r, &entry);
    if (status) {
        return status;
    }
    count(r, false);
    store->loads++;
    gpuhal_mutex_unlock(&store->mutex);
    status = run_loader(r, entry, &use);
    gpuhal_mutex_lock(&store->mutex);
    if (status) {
        return give_up(r, entry);
    }
    if (r->queue) {
        gpuhal_queue_retain(r->queue);
        old = gpuhal_uses_add(entry, use);
    }
    entry->worker = 0;
    gpuhal_entry_change(store, entry, entry->listed ? GPUHAL_ENTRY_DEVICE : GPUHAL_ENTRY_ABSENT);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_timepoint_release(old);
    gpuhal_mutex_lock(&store->mutex);
    r->item->entry = entry;
    return GPUHAL_OK;
}

/* ---- finding one */

/* Out of the table, so that it is made again. With the mutex held, which is released meanwhile. */
static gpuhal_status forget(const request *r, gpuhal_entry *entry)
{
    gpuhal_entry *gone = gpuhal_entry_remove(r->store, entry);
    gpuhal_mutex_unlock(&r->store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&r->store->mutex);
    return GPUHAL_NOT_READY;
}

/* The work failed that was to fill or modify it. What others have pinned stays as it is until they release it. */
static gpuhal_status take_failed(const request *r, gpuhal_entry *entry)
{
    if (entry->host || entry->file) {
        return entry->pins ? gpuhal_failure_status(gpuhal_uses_failure(entry)) : gpuhal_restore_failed(r->store, entry);
    }
    if (r->desc) {
        return forget(r, entry);
    }
    if (entry->state == GPUHAL_ENTRY_DEVICE) {
        gpuhal_entry_unlink(r->store, entry, GPUHAL_STORE_UNPINNED);
        entry->failure = entry->failure ? entry->failure : gpuhal_failure_retain(gpuhal_uses_failure(entry));
        gpuhal_entry_change(r->store, entry, GPUHAL_ENTRY_FAILED);
    }
    return gpuhal_failure_status(entry->failure);
}

/* With the mutex held, which may be released meanwhile. NOT_READY: look again. */
static gpuhal_status look(request *r)
{
    gpuhal_entry *entry = gpuhal_index_find(r->store, r->key, r->key_bytes, r->hash);
    if (!entry && !r->desc) {
        count(r, false);
        return gpuhal_store_not_found(r->call, r->key, r->key_bytes);
    }
    if (!entry) {
        return load(r);
    }
    count(r, entry->state == GPUHAL_ENTRY_DEVICE);
    if (entry->worker) {
        return gpuhal_entry_wait(r->store, entry, r->call, r->deadline_ns);
    }
    if (entry->state == GPUHAL_ENTRY_HOST || entry->state == GPUHAL_ENTRY_FILE) {
        gpuhal_status status = gpuhal_restore(r->store, entry, r->queue, r->deadline_ns);
        r->item->entry = status ? NULL : entry;
        return status;
    }
    if (entry->state == GPUHAL_ENTRY_FAILED || gpuhal_uses_failure(entry)) {
        return take_failed(r, entry);
    }
    gpuhal_status status = gpuhal_entry_pin(r->store, entry);
    r->item->entry = status ? NULL : entry;
    return status;
}

/* ---- the calls */

static gpuhal_status take_desc(const char *call, const gpuhal_item_desc *given, bool loads, gpuhal_item_desc *out)
{
    *out = (gpuhal_item_desc){.size = sizeof *out};
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (given->size == 0 || (out->flags & ~(uint32_t)GPUHAL_ITEM_KEEP_COPY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the size of desc is 0, or flags has unknown bits",
                                call);
    }
    if (out->priority < -GPUHAL_ITEM_PRIORITY_MAX || out->priority > GPUHAL_ITEM_PRIORITY_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the priority is %" PRId32 ", not from %d to %d",
                                call, out->priority, -GPUHAL_ITEM_PRIORITY_MAX, GPUHAL_ITEM_PRIORITY_MAX);
    }
    return loads == (out->load != NULL)
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: desc has %s loader", call, loads ? "no" : "a");
}

/* What both calls check, with the object for the result. */
static gpuhal_status begin(request *r, const gpuhal_item_desc *given, bool loads, gpuhal_item_desc *desc)
{
    gpuhal *gpu = r->store->device->gpu;
    gpuhal_status status = gpuhal_store_check(r->call, r->store, r->key, r->key_bytes);
    if (!status && r->queue && r->queue->device->gpu != gpu) {
        status = gpuhal_two_objects(r->call, "store and queue", gpu, r->queue->device->gpu);
    }
    status = status ? status : gpuhal_device_check(r->store->device);
    status = status || !given ? status : take_desc(r->call, given, loads, desc);
    if (status) {
        return status;
    }
    r->desc = given ? desc : NULL;
    r->hash = gpuhal_key_hash(r->key, r->key_bytes);
    r->item = calloc(1, sizeof *r->item);
    if (!r->item) {
        return gpuhal_error_host_memory();
    }
    r->item->store = r->store;
    return GPUHAL_OK;
}

/* The caller's item, or nothing. */
static gpuhal_status finish(const request *r, gpuhal_status status, gpuhal_item **out_item)
{
    if (status) {
        free(r->item);
        return status;
    }
    gpuhal_mutex_lock(&r->store->mutex);
    r->store->references++;
    gpuhal_mutex_unlock(&r->store->mutex);
    *out_item = r->item;
    return GPUHAL_OK;
}

static gpuhal_status adopt(const request *r, gpuhal_entry *entry)
{
    for (uint32_t i = 0; i < entry->part_count && r->desc->part_count; i++) {
        gpuhal_buffer *buffer = r->desc->parts[i].buffer;
        entry->parts[i].device = buffer ? gpuhal_buffer_retain(buffer) : NULL;
    }
    return gpuhal_entry_allocate(r->store, entry, r->queue, r->deadline_ns);
}

/* The caller fills it: so long it stays LOADING. */
static gpuhal_status put(request *r)
{
    gpuhal_store *store = r->store;
    gpuhal_entry *entry = gpuhal_index_find(store, r->key, r->key_bytes, r->hash);
    gpuhal_status status = entry ? GPUHAL_NOT_READY : make(r, &entry);
    if (status == GPUHAL_NOT_READY) {
        return failed(r, GPUHAL_ERROR_BUSY, "the key has an entry");
    }
    if (status) {
        return status;
    }
    gpuhal_mutex_unlock(&store->mutex);
    status = adopt(r, entry);
    gpuhal_mutex_lock(&store->mutex);
    if (status) {
        return give_up(r, entry);
    }
    for (uint32_t i = 0; i < r->desc->part_count; i++) { /* the caller's references: not the last ones */
        gpuhal_buffer_release(r->desc->parts[i].buffer);
    }
    r->item->entry = entry;
    r->item->modifies = r->item->fills = true;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_store_put(gpuhal_store *store, gpuhal_queue *queue, const void *key, uint64_t key_bytes,
                               const gpuhal_item_desc *given, uint64_t timeout_ns, gpuhal_item **out_item)
{
    gpuhal_item_desc desc;
    if (out_item) {
        *out_item = NULL;
    }
    if (!store || !given || !out_item) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_store_put: an argument is NULL");
    }
    request r = {.call = "gpuhal_store_put", .store = store, .queue = queue, .key = key, .key_bytes = key_bytes,
                 .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0};
    gpuhal_status status = begin(&r, given, false, &desc);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&store->mutex);
    status = put(&r);
    gpuhal_mutex_unlock(&store->mutex);
    return finish(&r, status, out_item);
}

/* A pinned entry, whose work the queue or the thread then waits for. Where that turns out to have failed, the entry is
 * looked at again. */
static gpuhal_status acquire(request *r, bool modifies)
{
    gpuhal_store *store = r->store;
    gpuhal_status status = GPUHAL_NOT_READY;
    while (status == GPUHAL_NOT_READY) {
        gpuhal_mutex_lock(&store->mutex);
        do {
            status = look(r);
        } while (status == GPUHAL_NOT_READY);
        gpuhal_mutex_unlock(&store->mutex);
        if (status) {
            break;
        }
        gpuhal_entry *entry = r->item->entry, *gone = NULL;
        status = gpuhal_uses_wait(store, entry, r->queue, modifies, r->deadline_ns);
        status = status ? status : gpuhal_uses_announce(entry, r->queue);
        if (status) {
            gpuhal_mutex_lock(&store->mutex);
            status = gpuhal_uses_failure(entry) ? GPUHAL_NOT_READY : status;
            gone = gpuhal_entry_unpin(store, entry);
            gpuhal_mutex_unlock(&store->mutex);
            gpuhal_entry_free(gone);
        }
    }
    r->item->modifies = modifies;
    return status;
}

gpuhal_status gpuhal_store_acquire(gpuhal_store *store, gpuhal_queue *queue, const void *key, uint64_t key_bytes,
                                   const gpuhal_item_desc *given, uint32_t flags, uint64_t timeout_ns,
                                   gpuhal_item **out_item)
{
    gpuhal_item_desc desc;
    if (out_item) {
        *out_item = NULL;
    }
    if (!store || !out_item || (flags & ~(uint32_t)GPUHAL_ACQUIRE_MODIFY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_acquire: an argument is NULL, or flags has unknown bits");
    }
    request r = {.call = "gpuhal_store_acquire", .store = store, .queue = queue, .key = key, .key_bytes = key_bytes,
                 .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0};
    gpuhal_status status = begin(&r, given, true, &desc);
    status = status ? status : acquire(&r, flags & GPUHAL_ACQUIRE_MODIFY);
    return r.item ? finish(&r, status, out_item) : status;
}
