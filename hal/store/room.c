/* store/room.c: room in device memory for the buffers of an entry, which others leave. */
#include "store/store.h"

#include "core/error.h"
#include "core/job.h"

#include <inttypes.h>
#include <stdio.h>

enum { SLICE_NS = 10000000 };

void gpuhal_entry_release_parts(gpuhal_entry *entry)
{
    for (uint32_t i = 0; i < entry->part_count; i++) {
        gpuhal_buffer_release(entry->parts[i].device);
        entry->parts[i].device = NULL;
    }
}

/* The second half of every way out: the memory goes back once a copy is there, or none is needed. With the mutex held,
 * which is released meanwhile. */
static void end_leaving(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_release_parts(entry);
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry_leaves_device(store, entry);
    store->evictions++;
    if (!entry->host && !entry->file && entry->listed) {
        (void)gpuhal_entry_remove(store, entry); /* this thread has a reference */
    }
    gpuhal_entry *gone = gpuhal_entry_end_work(store, entry, gpuhal_entry_tier(entry));
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
}

/* The first half: a copy, once the work has ended that filled and modified it. With the mutex held, which is released
 * meanwhile. */
static bool copy_out(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_status status = gpuhal_uses_wait(store, entry, NULL, false, deadline_ns);
    status = status ? status : gpuhal_demote(store, entry);
    gpuhal_mutex_lock(&store->mutex);
    return status == GPUHAL_OK;
}

uint32_t gpuhal_entry_rung(const gpuhal_store *store, const gpuhal_entry *entry)
{
    const bool has_copy = entry->host || entry->file, has_tiers = store->desc.host_bytes || store->file;
    const bool wants_copy = !has_copy && (!entry->reloadable || (entry->keeps_copy && has_tiers));
    return wants_copy ? GPUHAL_ROOM_SPILL : GPUHAL_ROOM_EVICT;
}

static bool is_on_rung(const gpuhal_store *store, const gpuhal_entry *entry, uint32_t which)
{
    return which & gpuhal_entry_rung(store, entry);
}

/* With the mutex held, which is released meanwhile. Returns how many bytes that gave. */
static uint64_t leave(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    const uint64_t bytes = entry->bytes;
    const uint32_t rung = gpuhal_entry_rung(store, entry);
    gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_SPILLING);
    if (rung == GPUHAL_ROOM_SPILL && !copy_out(store, entry, deadline_ns) && !entry->reloadable) {
        gpuhal_entry *gone = gpuhal_entry_end_work(store, entry, GPUHAL_ENTRY_DEVICE);
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_free(gone);
        gpuhal_mutex_lock(&store->mutex);
        return 0;
    }
    end_leaving(store, entry);
    return bytes;
}

static uint64_t make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns)
{
    uint64_t given = 0;
    gpuhal_entry *entry = NULL;
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t attempt = ++store->attempts;
    while (given < bytes && (entry = gpuhal_entry_next(store, GPUHAL_STORE_UNPINNED, attempt, is_on_rung, which))) {
        given += leave(store, entry, deadline_ns);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return given;
}

/* First without waiting for work of queues, since a younger entry may have none. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    uint64_t given = make_room(store, bytes, which, 0);
    if (given < bytes && (which & GPUHAL_ROOM_SPILL) && gpuhal_os_monotonic_ns() < deadline_ns) {
        given += make_room(store, bytes - given, which, deadline_ns);
    }
    gpuhal_error_restore(&before);
    return given;
}

/* Waits until an entry that another thread has leave is out; false: no thread does that, or the time is over. */
static bool await_room(gpuhal_store *store, uint64_t deadline_ns)
{
    gpuhal_mutex_lock(&store->mutex);
    const bool waits = store->leaving > 0 && gpuhal_os_monotonic_ns() < deadline_ns;
    if (waits) {
        gpuhal_condition_wait_until(&store->condition, &store->mutex, deadline_ns);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return waits;
}

/* What others leave counts as well. */
static bool find_room(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns)
{
    const uint32_t both = GPUHAL_ROOM_EVICT | GPUHAL_ROOM_SPILL;
    return gpuhal_store_make_room(store, bytes, both, deadline_ns) > 0 || await_room(store, deadline_ns);
}

static bool can_be_forgotten(const gpuhal_store *store, const gpuhal_entry *entry, uint32_t which)
{
    (void)store, (void)which;
    return entry->reloadable && entry->pins == 0;
}

bool gpuhal_store_forget_one(gpuhal_store *store)
{
    gpuhal_entry *gone = NULL;
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t attempt = ++store->attempts;
    gpuhal_entry *entry = gpuhal_entry_next(store, GPUHAL_STORE_COPIED, attempt, can_be_forgotten, 0);
    entry = entry ? entry : gpuhal_entry_next(store, GPUHAL_STORE_UNPINNED, attempt, can_be_forgotten, 0);
    if (entry) {
        gone = gpuhal_entry_remove(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    return entry != NULL;
}

static gpuhal_status no_room(const gpuhal_store *store, uint64_t bytes, uint64_t used)
{
    const uint64_t limit = store->desc.device_bytes;
    char kept[80] = "";
    if (bytes <= limit) { /* else giving up what there is would not help, and nothing was tried */
        snprintf(kept, sizeof kept, ", of which %" PRIu64 " are in use and cannot be given up", used);
    }
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested for an entry of a store that may have %" PRIu64
                     " in device memory%s",
                     store->device->id, bytes, limit, kept);
    gpuhal_error_add_device(store->device->candidate->name, store->device->id);
    gpuhal_error_add_bytes(bytes, limit > used ? limit - used : 0, limit);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Whether the store has less in device memory than it had. */
static bool has_less(gpuhal_store *store, uint64_t used)
{
    gpuhal_mutex_lock(&store->mutex);
    const bool less = store->in_device.bytes < used;
    gpuhal_mutex_unlock(&store->mutex);
    return less;
}

/* Whether a call that may wait has no time left. One that may not goes on as long as it finds room: it waits for
 * nothing. */
static bool is_late(uint64_t deadline_ns)
{
    return deadline_ns > 0 && gpuhal_os_monotonic_ns() >= deadline_ns;
}

/* Takes so many bytes of the store's limit, making room as far as possible. What others gave back meanwhile counts,
 * also where this thread finds nothing more. Others may take what it found: no further search begins after the
 * deadline. */
static gpuhal_status reserve(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    const uint64_t limit = store->desc.device_bytes;
    gpuhal_status status = GPUHAL_OK;
    bool late = false;
    gpuhal_mutex_lock(&store->mutex);
    while (!status && limit && (entry->bytes > limit || store->in_device.bytes > limit - entry->bytes)) {
        const uint64_t used = store->in_device.bytes, over = entry->bytes > limit ? 0 : used - (limit - entry->bytes);
        gpuhal_mutex_unlock(&store->mutex);
        if (entry->bytes > limit || late || (!find_room(store, over, deadline_ns) && !has_less(store, used))) {
            status = no_room(store, entry->bytes, used);
        }
        late = is_late(deadline_ns);
        gpuhal_mutex_lock(&store->mutex);
    }
    if (!status) {
        gpuhal_entry_enters_device(store, entry);
        store->arriving += entry->bytes;
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}

/* A pool that may not wait at all does so for other threads that ask for memory, which is not for those whose time is
 * over. */
static gpuhal_status try_part(gpuhal_store *store, gpuhal_entry_part *part, gpuhal_queue *queue, uint32_t flags,
                              uint64_t deadline_ns)
{
    const uint64_t now = gpuhal_os_monotonic_ns(), some_ns = deadline_ns > 0;
    const uint64_t left_ns = deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns > now ? deadline_ns - now : some_ns;
    return gpuhal_pool_allocate(store->pool, queue, part->bytes, flags, left_ns, &part->device);
}

/* What left may be behind work that ends soon; if not, more leaves. */
static uint64_t soon(uint64_t deadline_ns)
{
    const uint64_t slice_ns = gpuhal_deadline(SLICE_NS);
    return slice_ns < deadline_ns ? slice_ns : deadline_ns;
}

/* Others are asked when the store's own entries do not suffice: those leave in their order, whatever leaving costs. */
static gpuhal_status allocate_part(gpuhal_store *store, gpuhal_entry_part *part, gpuhal_queue *queue,
                                   uint64_t deadline_ns)
{
    const uint32_t alone = GPUHAL_ALLOCATE_NO_EVICT;
    bool late = false;
    gpuhal_status status = try_part(store, part, queue, alone, soon(deadline_ns));
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && !late && find_room(store, part->bytes, deadline_ns)) {
        status = try_part(store, part, queue, alone, soon(deadline_ns));
        late = is_late(deadline_ns);
    }
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? try_part(store, part, queue, 0, deadline_ns) : status;
}

gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, uint64_t deadline_ns)
{
    gpuhal_status status = reserve(store, entry, deadline_ns);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        status = entry->parts[i].device ? status : allocate_part(store, &entry->parts[i], queue, deadline_ns);
    }
    if (status) {
        gpuhal_entry_release_parts(entry);
    }
    gpuhal_mutex_lock(&store->mutex);
    store->arriving -= entry->bytes;
    if (status) {
        gpuhal_entry_leaves_device(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}
