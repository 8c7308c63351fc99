/* store/room.c: makes room in device memory for an entry's buffers by making other entries leave. */
#include "store/store.h"

#include "base/error.h"
#include "base/job.h"

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

/* Completes the departure of an entry that has a copy or needs none. */
static void end_leaving_unlocks(gpuhal_store *store, gpuhal_entry *entry)
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

typedef struct search {
    uint32_t rungs;
    uint64_t too_large; /* smallest size that no tier has room for */
    uint64_t deadline_ns;
} search;

static bool is_too_large(const gpuhal_store *store, uint64_t bytes)
{
    const uint64_t limit = store->desc.host_bytes, used = store->in_host.bytes + store->host_reserved;
    uint64_t in_file = 0, piece = 0;
    (void)gpuhal_file_room(store, &in_file, &piece);
    return (used < limit ? limit - used : 0) < bytes && in_file < bytes;
}

/* If no tier has room for the copy, the search skips entries of at least this size that need a copy and that no loader
 * can restore. */
static bool copy_out_unlocks(gpuhal_store *store, gpuhal_entry *entry, search *s)
{
    gpuhal_mutex_unlock(&store->mutex);
    const gpuhal_status status = gpuhal_demote(store, entry, s->deadline_ns);
    gpuhal_mutex_lock(&store->mutex);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && entry->bytes < s->too_large && is_too_large(store, entry->bytes)) {
        s->too_large = entry->bytes;
    }
    return status == GPUHAL_OK;
}

static bool may_leave(const gpuhal_store *store, const gpuhal_entry *entry, const void *user)
{
    const search *s = user;
    const uint32_t rung = gpuhal_entry_rung(store, entry);
    return (rung & s->rungs) && (rung == GPUHAL_ROOM_EVICT || entry->reloadable || entry->bytes < s->too_large);
}

/* Returns the number of bytes released. */
static uint64_t leave_unlocks(gpuhal_store *store, gpuhal_entry *entry, search *s)
{
    const uint64_t bytes = entry->bytes;
    const uint32_t rung = gpuhal_entry_rung(store, entry);
    bool copied = rung == GPUHAL_ROOM_EVICT, filled = copied;
    if (!copied &&
        (!gpuhal_entry_await_fill_unlocks(store, entry, s->deadline_ns, &filled) || (!filled && !entry->reloadable))) {
        return 0;
    }
    gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_SPILLING);
    copied = copied || (filled && copy_out_unlocks(store, entry, s));
    if (!copied && !entry->reloadable) {
        gpuhal_entry *gone = gpuhal_entry_end_work(store, entry, GPUHAL_ENTRY_DEVICE);
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_free(gone);
        gpuhal_mutex_lock(&store->mutex);
        return 0;
    }
    end_leaving_unlocks(store, entry);
    return bytes;
}

static uint64_t make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns)
{
    search s = {.rungs = which, .too_large = UINT64_MAX, .deadline_ns = deadline_ns};
    uint64_t given = 0;
    gpuhal_entry *entry = NULL;
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t attempt = ++store->attempts;
    while (given < bytes && (entry = gpuhal_entry_next(store, GPUHAL_STORE_UNPINNED, attempt, may_leave, &s)) != NULL) {
        given += leave_unlocks(store, entry, &s);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return given;
}

/* The order of use is more important than speed. The first pass waits for the work that fills an older entry until the
 * deadline of gpuhal_ladder_patience(). Then younger entries that need no such wait may leave. The last pass waits
 * until the deadline. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    uint64_t given = make_room(store, bytes, which, gpuhal_ladder_patience(deadline_ns));
    if (given < bytes && (which & GPUHAL_ROOM_SPILL) && gpuhal_os_monotonic_ns() < deadline_ns) {
        given += make_room(store, bytes - given, which, deadline_ns);
    }
    gpuhal_error_restore(&before);
    return given;
}

/* Waits for another thread that makes an entry leave, even a dropped entry, or that moves entries. Returns false if
 * there is no such thread or the deadline has passed. */
static bool await_room(gpuhal_store *store, uint64_t deadline_ns)
{
    gpuhal_mutex_lock(&store->mutex);
    const bool waits = store->passing > 0 && gpuhal_os_monotonic_ns() < deadline_ns;
    if (waits) {
        gpuhal_condition_wait_until(&store->condition, &store->mutex, deadline_ns);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return waits;
}

/* Room made by other threads also counts. */
static bool find_room(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns)
{
    const uint32_t both = GPUHAL_ROOM_EVICT | GPUHAL_ROOM_SPILL;
    return gpuhal_store_make_room(store, bytes, both, deadline_ns) > 0 || await_room(store, deadline_ns);
}

/* Returns the number of bytes that have to leave device memory, 0 if there is room for the entry, or UINT64_MAX if all
 * entries that can leave would not make enough room. The caller holds the mutex. */
static uint64_t excess_of(const gpuhal_store *store, const gpuhal_entry *entry)
{
    const uint64_t limit = store->desc.device_bytes ? store->desc.device_bytes : UINT64_MAX;
    const uint32_t most = store->desc.entry_limit;
    if (entry->bytes > limit || limit - entry->bytes < store->fixed.bytes || (most && store->fixed.entries >= most)) {
        return UINT64_MAX;
    }
    const uint64_t left = limit - entry->bytes, used = store->in_device.bytes;
    const bool is_full = most && store->in_device.entries >= most;
    return used > left ? used - left : is_full; /* if only the number of entries is at its limit, one entry of any size
                                                 * has to leave */
}

static void describe_limits(const gpuhal_store_desc *desc, char *text, size_t size)
{
    int used = 0;
    if (desc->device_bytes) {
        used = snprintf(text, size, "%" PRIu64 " bytes%s", desc->device_bytes, desc->entry_limit ? " in " : "");
    }
    if (desc->entry_limit) {
        snprintf(text + used, size - (size_t)used, "%" PRIu32 " entries", desc->entry_limit);
    }
}

static void describe_kept(const gpuhal_pressure_figures *kept, char *text, size_t size)
{
    char lacks[GPUHAL_LACKS_TEXT];
    int used = snprintf(text, size, "; %" PRIu64 " bytes are pinned", kept->pinned_bytes);
    if (kept->bytes > 0) {
        used += snprintf(text + used, size - (size_t)used,
                         "; %" PRIu64 " can leave once the work that fills them has ended (a timeout waits for it)",
                         kept->bytes);
    }
    if (kept->stuck_bytes > 0) {
        gpuhal_pressure_describe(kept->lacks, lacks);
        snprintf(text + used, size - (size_t)used, "; %" PRIu64 " cannot be spilled: %s", kept->stuck_bytes, lacks);
    }
}

/* The caller holds the mutex. */
static gpuhal_status no_room(const gpuhal_store *store, const gpuhal_entry *entry, bool tried)
{
    const uint64_t limit = store->desc.device_bytes, used = store->in_device.bytes;
    const uint64_t left = limit > used ? limit - used : 0;
    char limits[64], kept[192 + GPUHAL_LACKS_TEXT] = "";
    describe_limits(&store->desc, limits, sizeof limits);
    if (limit == 0 || entry->bytes <= limit) {
        gpuhal_pressure_figures figures = {0};
        gpuhal_store_count(store, GPUHAL_ROOM_EVICT, &figures);
        gpuhal_store_count(store, GPUHAL_ROOM_SPILL, &figures);
        figures.bytes = tried ? figures.bytes : 0; /* without a try, these bytes could leave but would not be enough */
        describe_kept(&figures, kept, sizeof kept);
    }
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested for an entry of a store that may have %s in device memory%s",
                     store->device->id, entry->bytes, limits, kept);
    gpuhal_error_add_device(store->device->candidate->name, store->device->id);
    gpuhal_error_add_bytes(entry->bytes, limit ? left : UINT64_MAX, limit ? limit : UINT64_MAX);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Returns whether less is in device memory than a search saw (`had`), or entries were moved since (`moves`), so that a
 * new search may find room. The caller holds the mutex. */
static bool has_changed(const gpuhal_store *store, gpuhal_store_tier had, uint64_t moves)
{
    return store->in_device.bytes < had.bytes || store->in_device.entries < had.entries || store->moves != moves;
}

/* Returns whether a call that may wait has reached its deadline. A call that may not wait continues as long as it finds
 * room. */
static bool is_late(uint64_t deadline_ns)
{
    return deadline_ns > 0 && gpuhal_os_monotonic_ns() >= deadline_ns;
}

/* Reserves the entry's share of the store's limits, and makes room if possible. No further search begins after the
 * deadline, because other threads could take the found room again and again. */
static gpuhal_status reserve(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_OK;
    bool late = false;
    uint64_t excess = 0;
    gpuhal_mutex_lock(&store->mutex);
    while (!status && (excess = excess_of(store, entry)) > 0) {
        const gpuhal_store_tier had = store->in_device;
        const uint64_t moves = store->moves;
        gpuhal_mutex_unlock(&store->mutex);
        const bool ends = excess == UINT64_MAX || late, found = !ends && find_room(store, excess, deadline_ns);
        late = is_late(deadline_ns);
        gpuhal_mutex_lock(&store->mutex);
        if (ends || (!found && !has_changed(store, had, moves))) {
            status = no_room(store, entry, excess < UINT64_MAX);
        }
    }
    if (!status) {
        gpuhal_entry_enters_device(store, entry);
        store->arriving += entry->bytes;
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}

/* With a timeout of 0, a pool still waits up to a second for other threads that request memory. A caller whose deadline
 * has passed must not wait, so the timeout is 1 ns. */
static gpuhal_status try_part(gpuhal_store *store, gpuhal_entry_part *part, gpuhal_queue *queue, uint32_t flags,
                              uint64_t deadline_ns)
{
    const uint64_t now = gpuhal_os_monotonic_ns(), some_ns = deadline_ns > 0;
    const uint64_t left_ns = deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns > now ? deadline_ns - now : some_ns;
    return gpuhal_pool_allocate_for_store(store->pool, queue, part->bytes, flags, left_ns, &part->device);
}

/* Returns the deadline of a short wait for work that still uses freed memory. If the work does not end in time, more
 * entries leave. */
static uint64_t soon(uint64_t deadline_ns)
{
    const uint64_t slice_ns = gpuhal_deadline(SLICE_NS);
    return slice_ns < deadline_ns ? slice_ns : deadline_ns;
}

/* If moving entries may be enough, the store's entries move first. Then they leave in their order, regardless of the
 * cost. If this is not enough, other sources are used. If `hopeless` (the new entry alone exceeds the pool's limit),
 * no entry moves or leaves for the part. */
static gpuhal_status allocate_part(gpuhal_store *store, gpuhal_entry_part *part, gpuhal_queue *queue,
                                   uint64_t deadline_ns, bool hopeless)
{
    const uint32_t alone = GPUHAL_ALLOCATE_NO_EVICT;
    bool late = false;
    gpuhal_status status = try_part(store, part, queue, alone, soon(deadline_ns));
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && hopeless) {
        return status;
    }
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && gpuhal_compact_may_help(store->pool, part->bytes) &&
        gpuhal_store_make_piece(store, part->bytes, deadline_ns) > 0) {
        status = try_part(store, part, queue, alone, soon(deadline_ns));
    }
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && !late && find_room(store, part->bytes, deadline_ns)) {
        status = try_part(store, part, queue, alone, soon(deadline_ns));
        late = is_late(deadline_ns);
    }
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? try_part(store, part, queue, 0, deadline_ns) : status;
}

static uint64_t missing_bytes(const gpuhal_entry *entry)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        bytes += entry->parts[i].device ? 0 : entry->parts[i].bytes;
    }
    return bytes;
}

gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, uint64_t deadline_ns)
{
    /* Checks the total first, so that no entry leaves for a request that the pool must refuse. */
    const uint64_t bytes = missing_bytes(entry);
    const gpuhal_request whole = {.pool = store->pool, .queue = queue, .bytes = bytes, .block_bytes = bytes};
    gpuhal_status status = gpuhal_pool_check_request(&whole);
    status = status ? status : reserve(store, entry, deadline_ns);
    if (status) {
        return status;
    }
    const uint64_t limit = atomic_load(&store->pool->limit_bytes);
    const bool hopeless = limit > 0 && bytes > limit;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        gpuhal_entry_part *part = &entry->parts[i];
        status = part->device ? status : allocate_part(store, part, queue, deadline_ns, hopeless);
    }
    if (status) {
        gpuhal_entry_release_parts(entry);
    }
    gpuhal_mutex_lock(&store->mutex);
    store->arriving -= entry->bytes;
    if (status) {
        gpuhal_entry_leaves_device(store, entry);
    } else {
        entry->has_memory = true;
        gpuhal_entry_count(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}
