/* store/acquire.c: puts and acquires entries. Finds or creates an entry, and waits for threads that work with it. */
#include "store/store.h"

#include "base/error.h"

#include <stdlib.h>

typedef struct request {
    const char *call;
    gpuhal_store *store;
    gpuhal_queue *queue;
    const void *key;
    uint64_t key_bytes, hash;
    uint64_t deadline_ns;         /* 0 if the call must not wait. Not set for a hit, so that a hit reads no clock. */
    const gpuhal_item_desc *desc; /* complete description, or NULL if no entry may be created */
    gpuhal_item *item;
    bool modifies;
    bool counted; /* as a hit or a miss */
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

/* ---- creating an entry */

/* The new entry is pinned, and this thread must fill it. Returns NOT_READY if another thread was first. */
static gpuhal_status begin_filling(const request *r, gpuhal_entry *entry)
{
    gpuhal_store *store = r->store;
    const bool is_there = gpuhal_index_find(store, r->key, r->key_bytes, r->hash);
    gpuhal_status status = is_there ? GPUHAL_NOT_READY : gpuhal_entry_pin(store, entry);
    if (!status) {
        gpuhal_index_add(store, entry);
        for (int list = 0; list < GPUHAL_STORE_LISTS; list++) {
            entry->links[list].attempt = store->attempts; /* searches in progress skip new entries, so they end even if
                                                           * other threads keep adding entries */
        }
        store->pinned++;
        entry->references++;
        entry->worker = gpuhal_os_thread_id();
        gpuhal_entry_change(store, entry, GPUHAL_ENTRY_LOADING);
    }
    return status;
}

static gpuhal_status make_unlocks(const request *r, gpuhal_entry **out_entry)
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

/* Removes the entry from the table, and passes its failure to the threads that wait for it. */
static gpuhal_status give_up_unlocks(const request *r, gpuhal_entry *entry)
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

/* Replaces a status that is not a known error with CANCELLED. */
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

/* Allocates the buffers without the queue, because the loader may use them immediately, with or without it. The caller
 * must not hold the mutex. */
static gpuhal_status run_loader(const request *r, gpuhal_entry *entry, gpuhal_entry_use *out_use)
{
    gpuhal_item item = {.store = r->store, .entry = entry};
    *out_use = (gpuhal_entry_use){.queue = r->queue, .modifies = true};
    gpuhal_status status = gpuhal_entry_allocate(r->store, entry, NULL, r->deadline_ns);
    status = status ? status : gpuhal_uses_announce(entry, r->queue); /* required even if the loader fails later */
    status = status ? status : call_loader(r, &item);
    return status || !r->queue ? status : gpuhal_queue_record(r->queue, false, &out_use->timepoint);
}

static gpuhal_status load_unlocks(request *r)
{
    gpuhal_store *store = r->store;
    gpuhal_entry *entry = NULL;
    gpuhal_entry_use use;
    gpuhal_timepoint *old = NULL;
    gpuhal_status status = make_unlocks(r, &entry);
    if (status) {
        return status;
    }
    count(r, false);
    store->loads++;
    gpuhal_mutex_unlock(&store->mutex);
    status = run_loader(r, entry, &use);
    gpuhal_mutex_lock(&store->mutex);
    if (status) {
        return give_up_unlocks(r, entry);
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

/* ---- finding an entry */

/* Removes the entry from the table, so that a new entry is created. */
static gpuhal_status forget_unlocks(const request *r, gpuhal_entry *entry)
{
    gpuhal_entry *gone = gpuhal_entry_remove(r->store, entry);
    gpuhal_mutex_unlock(&r->store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&r->store->mutex);
    return GPUHAL_NOT_READY;
}

/* Called if the work that fills or modifies the entry has failed. If other callers have pinned the entry, its buffers
 * stay until they release it. */
static gpuhal_status take_failed(const request *r, gpuhal_entry *entry)
{
    if (entry->host || entry->file) {
        return entry->pins ? gpuhal_failure_status(gpuhal_uses_failure(entry)) : gpuhal_restore_failed(r->store, entry);
    }
    if (r->desc) {
        return forget_unlocks(r, entry);
    }
    if (entry->state == GPUHAL_ENTRY_DEVICE) {
        gpuhal_entry_unlink(r->store, entry, GPUHAL_STORE_UNPINNED);
        entry->failure = entry->failure ? entry->failure : gpuhal_failure_retain(gpuhal_uses_failure(entry));
        gpuhal_entry_change(r->store, entry, GPUHAL_ENTRY_FAILED);
    }
    return gpuhal_failure_status(entry->failure);
}

/* Returns NOT_READY if the caller must repeat the lookup. */
static gpuhal_status look_unlocks(request *r)
{
    gpuhal_entry *entry = gpuhal_index_find(r->store, r->key, r->key_bytes, r->hash);
    if (!entry && !r->desc) {
        count(r, false);
        return gpuhal_store_not_found(r->call, r->key, r->key_bytes);
    }
    if (!entry) {
        return load_unlocks(r);
    }
    count(r, entry->state == GPUHAL_ENTRY_DEVICE || entry->state == GPUHAL_ENTRY_MOVING);
    if (entry->worker) {
        return gpuhal_entry_wait_unlocks(r->store, entry, r->call, r->deadline_ns);
    }
    if (entry->state == GPUHAL_ENTRY_HOST || entry->state == GPUHAL_ENTRY_FILE) {
        gpuhal_status status = gpuhal_restore_unlocks(r->store, entry, r->queue, r->deadline_ns);
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

/* Pins the entry if no work or wait is needed. The caller holds the mutex. */
static bool hit(request *r)
{
    gpuhal_entry *entry = gpuhal_index_find(r->store, r->key, r->key_bytes, r->hash);
    if (!entry || entry->state != GPUHAL_ENTRY_DEVICE || !gpuhal_uses_are_before(entry, r->queue, r->modifies) ||
        gpuhal_entry_pin(r->store, entry)) {
        return false;
    }
    count(r, true);
    r->item->entry = entry;
    return true;
}

/* ---- the public functions */

static gpuhal_status begin(request *r, const gpuhal_item_desc *given, bool loads, gpuhal_item_desc *desc)
{
    gpuhal *gpu = r->store->device->gpu;
    gpuhal_status status = gpuhal_store_check(r->call, r->store, r->key, r->key_bytes);
    if (!status && r->queue && r->queue->device->gpu != gpu) {
        status = gpuhal_two_objects(r->call, "store and queue", gpu, r->queue->device->gpu);
    }
    status = status ? status : gpuhal_device_check(r->store->device);
    status = status || !given ? status : gpuhal_item_desc_take(r->call, given, loads, desc);
    if (status) {
        return status;
    }
    r->desc = given ? desc : NULL;
    r->hash = gpuhal_key_hash(r->key, r->key_bytes);
    r->item = malloc(sizeof *r->item);
    if (!r->item) {
        return gpuhal_error_host_memory();
    }
    *r->item = (gpuhal_item){.store = r->store};
    return GPUHAL_OK;
}

static gpuhal_status adopt(const request *r, gpuhal_entry *entry)
{
    for (uint32_t i = 0; i < entry->part_count && r->desc->part_count; i++) {
        gpuhal_buffer *buffer = r->desc->parts[i].buffer;
        entry->parts[i].device = buffer ? gpuhal_buffer_retain(buffer) : NULL;
        if (buffer) {
            gpuhal_part_join_store(buffer);
        }
    }
    return gpuhal_entry_allocate(r->store, entry, r->queue, r->deadline_ns);
}

/* The entry remains LOADING while the caller fills it. */
static gpuhal_status put(request *r)
{
    gpuhal_store *store = r->store;
    gpuhal_entry *entry = gpuhal_index_find(store, r->key, r->key_bytes, r->hash);
    gpuhal_status status = entry ? GPUHAL_NOT_READY : make_unlocks(r, &entry);
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
        return give_up_unlocks(r, entry);
    }
    for (uint32_t i = 0; i < r->desc->part_count; i++) { /* never the last references, because the entry has its own */
        gpuhal_buffer_release(r->desc->parts[i].buffer);
    }
    r->item->entry = entry;
    r->item->modifies = r->item->fills = true;
    store->references++;
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
    request r = {.call = "gpuhal_store_put",
                 .store = store,
                 .queue = queue,
                 .key = key,
                 .key_bytes = key_bytes,
                 .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0};
    gpuhal_status status = begin(&r, given, false, &desc);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&store->mutex);
    status = put(&r);
    gpuhal_mutex_unlock(&store->mutex);
    if (status) {
        free(r.item);
        return status;
    }
    *out_item = r.item;
    return GPUHAL_OK;
}

/* Pins the entry, then makes the queue or this thread wait for its work. If that work has failed, looks the entry up
 * again. */
static gpuhal_status acquire_slowly(request *r)
{
    gpuhal_store *store = r->store;
    gpuhal_status status = GPUHAL_NOT_READY;
    while (status == GPUHAL_NOT_READY) {
        gpuhal_mutex_lock(&store->mutex);
        do {
            status = look_unlocks(r);
        } while (status == GPUHAL_NOT_READY);
        store->references += status == GPUHAL_OK;
        gpuhal_mutex_unlock(&store->mutex);
        if (status) {
            break;
        }
        gpuhal_entry *entry = r->item->entry, *gone = NULL;
        status = gpuhal_uses_wait(store, entry, r->queue, r->modifies, r->deadline_ns);
        status = status ? status : gpuhal_uses_announce(entry, r->queue);
        if (status) {
            gpuhal_mutex_lock(&store->mutex);
            status = gpuhal_uses_failure(entry) ? GPUHAL_NOT_READY : status;
            gone = gpuhal_entry_unpin(store, entry);
            store->references--; /* never the last reference, because the caller has one */
            gpuhal_mutex_unlock(&store->mutex);
            gpuhal_entry_free(gone);
        }
    }
    return status;
}

static uint32_t pin_hits(request *requests, uint32_t count)
{
    gpuhal_store *store = requests[0].store;
    uint32_t hits = 0;
    gpuhal_mutex_lock(&store->mutex);
    while (hits < count && hit(&requests[hits])) {
        hits++;
    }
    store->references += hits;
    gpuhal_mutex_unlock(&store->mutex);
    return hits;
}

typedef struct patience {
    uint64_t timeout_ns, deadline_ns;
    bool begun;
} patience;

static uint64_t deadline_of(patience *time)
{
    if (!time->begun) {
        time->begun = true;
        time->deadline_ns = time->timeout_ns ? gpuhal_deadline(time->timeout_ns) : 0;
    }
    return time->deadline_ns;
}

/* Returns the number of pinned requests: all if the status is OK. */
static uint32_t acquire(request *requests, uint32_t count, patience *time, gpuhal_status *out_status)
{
    gpuhal_status status = GPUHAL_OK;
    uint32_t pinned = 0;
    while (pinned < count && !status) {
        const uint32_t end = pinned + pin_hits(&requests[pinned], count - pinned);
        for (uint32_t i = pinned; i < end && !status; i++) {
            status = gpuhal_uses_announce(requests[i].item->entry, requests[i].queue);
        }
        pinned = end;
        if (pinned < count && !status) {
            requests[pinned].deadline_ns = deadline_of(time);
            status = acquire_slowly(&requests[pinned]);
            pinned += status == GPUHAL_OK;
        }
    }
    *out_status = status;
    return pinned;
}

static void undo(gpuhal_item *item, bool is_acquired)
{
    if (is_acquired) {
        item->modifies = false;
        gpuhal_item_release(item, NULL);
    } else {
        free(item);
    }
}

/* Maximum number of entries processed before other threads can lock the mutex. */
enum { TURN = 32 };

/* Acquires at most TURN keys in the same way as `like`. */
static gpuhal_status acquire_turn(const request *like, const gpuhal_store_key *keys, uint32_t count, patience *time,
                                  gpuhal_item **out_items)
{
    request requests[TURN];
    gpuhal_item_desc descs[TURN];
    gpuhal_status status = GPUHAL_OK;
    uint32_t begun = 0, pinned = 0;
    for (; begun < count && !status; begun += status == GPUHAL_OK) {
        requests[begun] = *like;
        requests[begun].key = keys[begun].key;
        requests[begun].key_bytes = keys[begun].key_bytes;
        status = begin(&requests[begun], keys[begun].desc, true, &descs[begun]);
    }
    if (!status) {
        pinned = acquire(requests, count, time, &status);
    }
    for (uint32_t i = 0; i < begun; i++) {
        if (status) {
            undo(requests[i].item, i < pinned);
        } else {
            requests[i].item->modifies = like->modifies;
            out_items[i] = requests[i].item;
        }
    }
    return status;
}

static gpuhal_status acquire_many(const request *like, const gpuhal_store_key *keys, uint32_t count,
                                  uint64_t timeout_ns, gpuhal_item **out_items)
{
    patience time = {.timeout_ns = timeout_ns};
    gpuhal_status status = GPUHAL_OK;
    uint32_t done = 0;
    while (done < count && !status) {
        const uint32_t turn = count - done < TURN ? count - done : TURN;
        status = acquire_turn(like, &keys[done], turn, &time, &out_items[done]);
        done += status ? 0 : turn;
    }
    while (status && done > 0) {
        undo(out_items[--done], true);
        out_items[done] = NULL;
    }
    return status;
}

gpuhal_status gpuhal_store_acquire(gpuhal_store *store, gpuhal_queue *queue, const void *key, uint64_t key_bytes,
                                   const gpuhal_item_desc *desc, uint32_t flags, uint64_t timeout_ns,
                                   gpuhal_item **out_item)
{
    if (out_item) {
        *out_item = NULL;
    }
    if (!store || !out_item || (flags & ~(uint32_t)GPUHAL_ACQUIRE_MODIFY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_acquire: an argument is NULL, or flags has unknown bits");
    }
    const request like = {
        .call = "gpuhal_store_acquire", .store = store, .queue = queue, .modifies = flags & GPUHAL_ACQUIRE_MODIFY};
    const gpuhal_store_key one = {.key = key, .key_bytes = key_bytes, .desc = desc};
    return acquire_many(&like, &one, 1, timeout_ns, out_item);
}

gpuhal_status gpuhal_store_acquire_many(gpuhal_store *store, gpuhal_queue *queue, const gpuhal_store_key *keys,
                                        uint32_t count, uint32_t flags, uint64_t timeout_ns, gpuhal_item **out_items)
{
    for (uint32_t i = 0; i < count && out_items; i++) {
        out_items[i] = NULL;
    }
    if (!store || !keys || !out_items || (flags & ~(uint32_t)GPUHAL_ACQUIRE_MODIFY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_acquire_many: an argument is NULL, or flags has unknown bits");
    }
    const request like = {
        .call = "gpuhal_store_acquire_many", .store = store, .queue = queue, .modifies = flags & GPUHAL_ACQUIRE_MODIFY};
    return acquire_many(&like, keys, count, timeout_ns, out_items);
}
