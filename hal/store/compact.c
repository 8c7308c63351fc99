/* store/compact.c: moves unpinned entries within the pool, so that contiguous memory or whole segments become free. A
 * buffer keeps its old memory until all of its bytes are in the new memory. Moved entries keep their age. */
#include "store/store.h"

#include "base/error.h"

#include <gpuhal/transfer.h>

#include <stdlib.h>

/* Maximum number of buffers released together, because a search for the freed memory costs the same for one buffer as
 * for many. */
enum { PLACES = 64 };

typedef struct moving {
    gpuhal_store *store;
    uint64_t deadline_ns;
    uint32_t flags;         /* for allocations */
    gpuhal_entry **entries; /* with references */
    gpuhal_buffer **parts;  /* of the entries, to pass to the pool */
    size_t entry_count, part_count;
    gpuhal_buffer *places[PLACES];
    size_t place_count;
} moving;

/* ---- choosing entries */

/* Counts the entries, and lists them once the arrays exist. Excludes entries whose contents are unknown. The caller
 * holds the mutex. */
static void list_movable(moving *m)
{
    m->entry_count = m->part_count = 0;
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class ++) {
        gpuhal_entry *entry = m->store->lists[GPUHAL_STORE_UNPINNED].oldest[class];
        for (; entry; entry = entry->links[GPUHAL_STORE_UNPINNED].newer) {
            if (gpuhal_uses_failure(entry)) {
                continue;
            }
            for (uint32_t i = 0; i < entry->part_count && m->parts; i++) {
                m->parts[m->part_count + i] = gpuhal_buffer_retain(entry->parts[i].device);
            }
            if (m->entries) {
                entry->references++;
                m->entries[m->entry_count] = entry;
            }
            m->entry_count++;
            m->part_count += entry->part_count;
        }
    }
}

static bool list_all(moving *m)
{
    gpuhal_mutex_lock(&m->store->mutex);
    list_movable(m);
    gpuhal_entry **entries = m->entry_count ? malloc(m->entry_count * sizeof(gpuhal_entry *)) : NULL;
    gpuhal_buffer **parts = entries ? malloc(m->part_count * sizeof(gpuhal_buffer *)) : NULL;
    if (parts) {
        m->entries = entries;
        m->parts = parts;
        list_movable(m);
    }
    gpuhal_mutex_unlock(&m->store->mutex);
    if (!parts) {
        m->entry_count = m->part_count = 0;
        free((void *)entries);
    }
    return parts != NULL;
}

static void release_entry(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
}

/* Keeps only the entries with a part in the chosen range. */
static void keep_inside(moving *m, bool begun)
{
    const size_t count = m->entry_count;
    const gpuhal_buffer *const *part = (const gpuhal_buffer *const *)m->parts;
    m->entry_count = 0;
    for (size_t i = 0; i < count; i++) {
        gpuhal_entry *entry = m->entries[i];
        bool inside = false;
        for (const gpuhal_buffer *const *last = part + entry->part_count; part < last; part++) {
            inside = inside || (begun && gpuhal_compact_has(m->store->pool, *part));
        }
        if (inside) {
            m->entries[m->entry_count++] = entry;
        } else {
            release_entry(m->store, entry);
        }
    }
    for (size_t i = 0; i < m->part_count; i++) {
        gpuhal_buffer_release(m->parts[i]);
    }
    free((void *)m->parts);
}

/* Chooses the memory range to free. Returns its size, or 0 if none is chosen. */
static uint64_t begin(moving *m, uint64_t bytes)
{
    uint64_t begun = 0;
    if (list_all(m)) {
        begun = gpuhal_compact_begin(m->store->pool, m->parts, m->part_count, bytes,
                                     gpuhal_ladder_patience(m->deadline_ns));
        keep_inside(m, begun > 0);
    }
    return begun;
}

static void end(moving *m)
{
    for (size_t i = 0; i < m->entry_count; i++) {
        release_entry(m->store, m->entries[i]);
    }
    free((void *)m->entries);
}

/* ---- moving an entry */

static void give_up_places(moving *m)
{
    gpuhal_compact_release(m->store->pool, m->places, m->place_count);
    m->place_count = 0;
}

/* The caller must not hold the mutex. No other thread may use the part. */
static gpuhal_status move_part(moving *m, gpuhal_entry_part *part)
{
    gpuhal_buffer *from = part->device, *to = NULL;
    gpuhal_status status = gpuhal_pool_allocate_for_store(m->store->pool, NULL, part->bytes, m->flags, 0, &to);
    status = status ? status : gpuhal_copy(NULL, to, 0, from, 0, part->bytes);
    if (status) {
        gpuhal_buffer_release(to);
        return status;
    }
    atomic_store(&to->tag, atomic_load(&from->tag));
    gpuhal_mutex_lock(&m->store->mutex);
    part->device = to;
    m->store->moved_bytes += part->bytes;
    gpuhal_mutex_unlock(&m->store->mutex);
    if (m->place_count == PLACES) {
        give_up_places(m);
    }
    m->places[m->place_count++] = from;
    return GPUHAL_OK;
}

/* Call between begin_work() and end_work(). */
static bool move_parts(moving *m, gpuhal_entry *entry)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        gpuhal_entry_part *part = &entry->parts[i];
        status = gpuhal_compact_has(m->store->pool, part->device) ? move_part(m, part) : GPUHAL_OK;
    }
    return status == GPUHAL_OK;
}

static bool is_late(const moving *m)
{
    return m->deadline_ns > 0 && gpuhal_os_monotonic_ns() >= m->deadline_ns;
}

/* Returns false if the entry stays in the range, for example because it was pinned in the meantime, its filling does
 * not end, or there is no room. Returns true if it moved, or has left device memory. */
static bool move_entry(moving *m, gpuhal_entry *entry)
{
    gpuhal_store *store = m->store;
    bool filled = false, moved = false;
    gpuhal_mutex_lock(&store->mutex);
    if (!entry->links[GPUHAL_STORE_UNPINNED].in_list) {
        moved = !entry->in_device;
    } else if (gpuhal_entry_await_fill_unlocks(store, entry, m->deadline_ns, &filled) && filled) {
        gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_MOVING);
        gpuhal_mutex_unlock(&store->mutex);
        moved = move_parts(m, entry);
        gpuhal_mutex_lock(&store->mutex);
        store->moves += moved;
        (void)gpuhal_entry_end_work(store, entry, GPUHAL_ENTRY_DEVICE); /* never the last reference, because the list
                                                                         * has one */
    }
    gpuhal_mutex_unlock(&store->mutex);
    return moved;
}

/* ---- freeing memory */

/* Until note_end(), other threads that find no room may wait. */
static void note_begin(gpuhal_store *store)
{
    gpuhal_mutex_lock(&store->mutex);
    store->passing++;
    gpuhal_mutex_unlock(&store->mutex);
}

static void note_end(gpuhal_store *store)
{
    gpuhal_mutex_lock(&store->mutex);
    store->passing--;
    gpuhal_condition_signal_all(&store->condition);
    gpuhal_mutex_unlock(&store->mutex);
}

/* Moves the entries out of a range of at least `bytes`, or of a whole segment if `bytes` is 0. Returns the freed bytes,
 * or 0 if the range did not become free. *out_begun is true if a range was chosen. */
static uint64_t make_free(gpuhal_store *store, uint64_t bytes, uint32_t flags, uint64_t deadline_ns, bool *out_begun)
{
    moving m = {.store = store, .flags = GPUHAL_ALLOCATE_NO_EVICT | flags, .deadline_ns = deadline_ns};
    note_begin(store);
    uint64_t given = begin(&m, bytes);
    bool goes_on = given > 0;
    *out_begun = goes_on;
    for (size_t i = 0; i < m.entry_count && goes_on; i++) {
        goes_on = !is_late(&m) && move_entry(&m, m.entries[i]);
    }
    if (*out_begun) {
        give_up_places(&m);
        given = gpuhal_compact_end(store->pool, goes_on ? gpuhal_ladder_patience(deadline_ns) : 0) ? given : 0;
    }
    end(&m);
    note_end(store);
    return given;
}

uint64_t gpuhal_store_empty_segments(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns)
{
    uint64_t freed = 0, given = 1;
    bool begun = false;
    while (freed < bytes && given > 0) {
        given = make_free(store, 0, GPUHAL_ALLOCATE_WITHIN_POOL, deadline_ns, &begun);
        given = given > 0 ? gpuhal_compact_trim(store->pool, given) : 0;
        freed += given;
    }
    return freed;
}

uint64_t gpuhal_store_make_piece(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns)
{
    bool begun = false;
    const uint64_t given = make_free(store, bytes, 0, deadline_ns, &begun);
    return begun ? given : gpuhal_store_empty_segments(store, bytes, deadline_ns);
}

gpuhal_status gpuhal_store_compact(gpuhal_store *store, uint64_t timeout_ns, uint64_t *out_freed)
{
    gpuhal_error_detail before;
    if (out_freed) {
        *out_freed = 0;
    }
    if (!store) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_store_compact: store is NULL");
    }
    gpuhal_status status = gpuhal_device_check(store->device);
    if (status) {
        return status;
    }
    gpuhal_error_save(&before);
    uint64_t freed = gpuhal_compact_trim(store->pool, UINT64_MAX);
    freed += gpuhal_store_empty_segments(store, UINT64_MAX - freed, timeout_ns ? gpuhal_deadline(timeout_ns) : 0);
    gpuhal_error_restore(&before);
    if (out_freed) {
        *out_freed = freed;
    }
    return GPUHAL_OK;
}
