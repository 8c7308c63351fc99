/* store/store.h: the internals of a store, for the files of this folder.
 *
 * The entries are in a hash table (index.c). Least-recently-used lists (lru.c) contain the unpinned entries in
 * device memory and the entries with a copy in host memory. `mutex` protects everything in the store and its entries
 * except the contents of buffers and copies. The mutex is never held during a call to a plugin, a queue, a pool, the
 * file system or the application. A thread that works with an entry without the mutex must have a reference to it. To
 * use the parts, it must also have a pin, so that the buffers stay, or have changed the state to LOADING, SPILLING,
 * MOVING or RESTORING, so that no other thread uses them. Copies are reference-counted, so a copy stays while a thread
 * reads it, even if the entry drops it.
 */
#ifndef GPUHAL_STORE_STORE_H
#define GPUHAL_STORE_STORE_H

#include "pool/pool.h"
#include "pool/pressure.h"
#include "queue/queue.h"

#include <gpuhal/store.h>

typedef enum gpuhal_entry_state {
#define STATE(name, meaning) GPUHAL_ENTRY_##name,
#define CHANGE(from, to, reason)
#include "store/states.inc"
#undef STATE
#undef CHANGE
} gpuhal_entry_state;

typedef struct gpuhal_entry gpuhal_entry;

typedef enum gpuhal_entry_order {
    GPUHAL_STORE_UNPINNED, /* unpinned entries whose state is DEVICE */
    GPUHAL_STORE_COPIED,   /* entries that have a copy in host memory and that no thread is working with */
    GPUHAL_STORE_LISTS
} gpuhal_entry_order;

typedef struct gpuhal_entry_link {
    gpuhal_entry *older, *newer;
    bool in_list;
    uint64_t stamp;   /* newer entries have larger numbers */
    uint64_t attempt; /* last search for room that took the entry or began before the entry was added */
} gpuhal_entry_link;

typedef struct gpuhal_host_part {
    gpuhal_buffer *buffer; /* from the store's host pool, or NULL for pageable memory */
    void *memory;
} gpuhal_host_part;

typedef struct gpuhal_host_copy {
    _Atomic uint32_t references;
    uint32_t count;
    gpuhal_host_part parts[];
} gpuhal_host_copy;

typedef struct gpuhal_file_part {
    gpuhal_block_id block;
    uint64_t offset, first_sum;
} gpuhal_file_part;

typedef struct gpuhal_file_copy {
    _Atomic uint32_t references;
    gpuhal_store *store;
    _Atomic uint32_t *sums; /* checksums of all chunks of all parts */
    uint32_t count;
    gpuhal_file_part parts[];
} gpuhal_file_copy;

typedef struct gpuhal_entry_part {
    char *name; /* NULL if unnamed */
    uint64_t bytes;
    gpuhal_buffer *device; /* from the store's pool, or NULL if not in device memory */
} gpuhal_entry_part;

/* A queue's work with an entry, enqueued before an item was released. */
typedef struct gpuhal_entry_use {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* of modifying work; if NULL, a thread that waits records it */
    uint64_t number;             /* before the use is added: number of the newest use when its recording began */
    bool modifies;
} gpuhal_entry_use;

struct gpuhal_entry {
    gpuhal_entry *next; /* in the same row of the table */
    gpuhal_entry_link links[GPUHAL_STORE_LISTS];
    bool in_device;  /* counted in the store's `in_device` */
    bool has_memory; /* all parts have device memory */
    bool is_fixed;   /* counted in the store's `fixed` */
    bool listed;     /* in the table, which has a reference */
    bool reloadable; /* a loader can restore its contents */
    bool keeps_copy; /* keeps a copy even though it is reloadable */
    int32_t priority;
    gpuhal_entry_state state;
    gpuhal_entry_state from; /* previous state, while a thread works with the entry */
    uint32_t references, pins;
    uint64_t worker;         /* gpuhal_os_thread_id() of the thread that works with the entry, or 0 */
    gpuhal_host_copy *host;  /* up to date, or NULL */
    gpuhal_file_copy *file;  /* up to date, or NULL */
    gpuhal_failure *failure; /* why the contents are unknown or were not loaded */
    gpuhal_entry_use *uses;  /* with room for one more use per pin, because a release must not fail */
    size_t use_count, use_space;
    uint64_t use_number;
    uint64_t bytes, hash, key_bytes;
    const unsigned char *key;
    uint32_t part_count;
    gpuhal_entry_part parts[];
};

struct gpuhal_item {
    gpuhal_store *store; /* with a reference */
    gpuhal_entry *entry; /* with a reference, and a pin */
    bool modifies;
    bool fills; /* from gpuhal_store_put(); its release ends LOADING */
};

enum { GPUHAL_STORE_CLASSES = 2 * GPUHAL_ITEM_PRIORITY_MAX + 1 };

/* Entries of each priority, ordered by use. */
typedef struct gpuhal_entry_lists {
    gpuhal_entry *oldest[GPUHAL_STORE_CLASSES], *newest[GPUHAL_STORE_CLASSES];
} gpuhal_entry_lists;

struct gpuhal_store {
    gpuhal_pool *pool;
    gpuhal_device *device;
    gpuhal_store_desc desc; /* members that the caller's struct lacks are 0 */
    gpuhal_mutex mutex;
    gpuhal_condition condition; /* signalled when an entry's state changes or `passing` falls */
    uint64_t references;        /* one for the application and one per item */
    gpuhal_entry **rows;
    uint64_t row_mask, entry_count;
    gpuhal_entry_lists lists[GPUHAL_STORE_LISTS];
    uint64_t attempts, stamps;
    uint32_t pinned;
    uint32_t passing;       /* SPILLING entries, and calls that move entries; if not 0, there may be room soon */
    gpuhal_pool *host_pool; /* NULL if copies are in pageable memory or not made */
    gpuhal_pressure_entry *sources[3];
    gpuhal_store_tier in_device; /* includes `arriving` */
    uint64_t arriving;           /* bytes of `in_device` that are reserved but not allocated yet */
    gpuhal_store_tier fixed;     /* entries in device memory that cannot leave now, because they are pinned, or
                                  * because the store has no tier for copies and no loader can restore them */
    gpuhal_store_tier in_host, in_file;
    struct gpuhal_store_file *file; /* NULL if no folder was specified */
    uint64_t host_reserved;         /* bytes for copies in progress */
    bool host_refused;              /* the allocation for the last copy failed although the limit had room */
    int file_error;                 /* errno of the last failed write; 0 once a write succeeds or space is freed */
    uint64_t hits, misses, loads, evictions, spills, restores, spilled_bytes, restored_bytes, moves, moved_bytes;
};

/* The functions of each file follow, lowest layer first. Each file uses only functions declared above its own. The
 * caller holds the mutex unless a comment says otherwise. */

/* ---- lru.c */

/* Makes the entry the newest of its priority, whether or not it is in the list. */
void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Inserts a removed entry at its old position, before all entries that were appended later. */
void gpuhal_entry_return(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Does nothing if the entry is not in the list. */
void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
typedef bool gpuhal_entry_filter(const gpuhal_store *store, const gpuhal_entry *entry, const void *user);
/* Returns the oldest entry of the lowest priority that passes the filter, or NULL. Marks the entry as taken by this
 * search. Skips entries that were added after the search began or were taken by this or a later search. Each call
 * starts at the oldest entry, because the list may have changed, so the filter must reject entries known to be useless.
 */
gpuhal_entry *gpuhal_entry_next(gpuhal_store *store, gpuhal_entry_order list, uint64_t attempt,
                                gpuhal_entry_filter *filter, const void *user);

/* ---- index.c */

/* Returns false if host memory is short. Call this function and the next without the mutex. */
bool gpuhal_index_init(gpuhal_store *store);
void gpuhal_index_finish(gpuhal_store *store);
uint64_t gpuhal_key_hash(const void *key, uint64_t bytes);
gpuhal_entry *gpuhal_index_find(const gpuhal_store *store, const void *key, uint64_t bytes, uint64_t hash);
void gpuhal_index_add(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_index_remove(gpuhal_store *store, gpuhal_entry *entry);
bool gpuhal_key_begins(const gpuhal_entry *entry, const void *prefix, uint64_t bytes);
/* Writes the beginning of a key for messages. Writes quotes, backslashes and non-printable bytes as \xNN. Returns
 * `text`. */
enum { GPUHAL_KEY_TEXT = 80 };
const char *gpuhal_key_text(const void *key, uint64_t bytes, char text[GPUHAL_KEY_TEXT]);

/* Returns OK, INVALID_ARGUMENT for a NULL store or an invalid key, or FORKED, and sets the error detail. This function
 * and the next do not need the mutex. */
gpuhal_status gpuhal_store_check(const char *call, const gpuhal_store *store, const void *key, uint64_t key_bytes);
gpuhal_status gpuhal_store_not_found(const char *call, const void *key, uint64_t key_bytes);

/* ---- uses.c */

/* Makes room for the uses of one more pin and one load. Returns false if host memory is short. */
bool gpuhal_uses_reserve(gpuhal_entry *entry);
/* Adds the use that an item's release has recorded, and takes ownership of the use's references. Returns a timepoint
 * that the caller must release without the mutex, or NULL. */
gpuhal_timepoint *gpuhal_uses_add(gpuhal_entry *entry, gpuhal_entry_use use);
/* Returns the same as gpuhal_uses_add(). */
gpuhal_timepoint *gpuhal_uses_add_read(gpuhal_entry *entry, gpuhal_queue *queue);
/* Returns whether the modifying uses (or `all` uses) are known to precede later work of the queue or, if the queue is
 * NULL, to have ended. Returns false after a known failure. */
bool gpuhal_uses_are_before(const gpuhal_entry *entry, const gpuhal_queue *queue, bool all);
/* Returns why the contents are unknown, or NULL if no failure is known. */
gpuhal_failure *gpuhal_uses_failure(const gpuhal_entry *entry);
/* Makes the queue (or this thread if the queue is NULL) wait for the modifying uses or for `all` uses. The caller has a
 * reference, but not the mutex. Returns OK, TIMEOUT, HOST_MEMORY, or the failure of the queue or of a modifying use. */
gpuhal_status gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                               uint64_t deadline_ns);
/* Notifies the pool that the queue uses the parts, even for work not enqueued through the library. Returns OK or
 * HOST_MEMORY. The caller has a pin, but not the mutex. */
gpuhal_status gpuhal_uses_announce(const gpuhal_entry *entry, gpuhal_queue *queue);
/* Returns whether gpuhal_uses_announce() has nothing to do, as for a NULL queue. The caller needs a pin, but not the
 * mutex. */
bool gpuhal_uses_are_announced(const gpuhal_entry *entry, const gpuhal_queue *queue);
/* The caller must not hold the mutex. */
void gpuhal_uses_free(gpuhal_entry *entry);

/* ---- host.c: call without the mutex */

/* Creates the pool for copies, if the store needs one. Returns the same as gpuhal_pool_create(). */
gpuhal_status gpuhal_host_open(gpuhal_store *store);
void gpuhal_host_close(gpuhal_store *store);
/* Returns OK, OUT_OF_MEMORY or HOST_MEMORY. */
gpuhal_status gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* Allocates pageable memory for a copy, which no limit counts. */
gpuhal_status gpuhal_host_create_spare(const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* retain(NULL) returns NULL; release(NULL) does nothing. Call retain() with the mutex held. */
gpuhal_host_copy *gpuhal_host_retain(gpuhal_host_copy *copy);
void gpuhal_host_release(gpuhal_host_copy *copy);
/* take() copies the entry's parts from device memory, and waits for the copy. give() copies them back, in the queue if
 * there is one and the copy is page-locked. */
gpuhal_status gpuhal_host_take(gpuhal_host_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_host_give(const gpuhal_host_copy *copy, const gpuhal_entry *entry, gpuhal_queue *queue);

/* ---- file.c: call without the mutex */

/* Creates the store's unnamed file in `folder`. Returns the same as gpuhal_store_create(). gpuhal_file_close() must
 * follow even after an error. */
gpuhal_status gpuhal_file_open(gpuhal_store *store, const char *folder);
void gpuhal_file_close(gpuhal_store *store);
/* Copies the parts to the file from the copy in host memory or, if `host` is NULL, from device memory. Returns OK,
 * OUT_OF_MEMORY if the file has no room, FILE, HOST_MEMORY, or a failure to read device memory. */
gpuhal_status gpuhal_file_take(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *host,
                               gpuhal_file_copy **out_copy);
/* retain(NULL) returns NULL; release(NULL) does nothing. Call retain() with the mutex held. */
gpuhal_file_copy *gpuhal_file_retain(gpuhal_file_copy *copy);
void gpuhal_file_release(gpuhal_file_copy *copy);
/* give() copies all parts to device memory; read() copies bytes of one part to host memory. Both return FILE if the
 * bytes differ from the written bytes. */
gpuhal_status gpuhal_file_give(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_file_read(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry, uint32_t part,
                               uint64_t offset, void *to, uint64_t bytes);
/* Returns how many file bytes a copy of the entry needs. *out_largest is the size of the largest block. Does not need
 * the mutex. */
uint64_t gpuhal_file_bytes(const gpuhal_entry *entry, uint64_t *out_largest);
/* Reads the number of free bytes and the size of the largest free block. Returns GPUHAL_LACKS_ bits: why there is no
 * more room. The caller holds the mutex. */
uint32_t gpuhal_file_room(const gpuhal_store *store, uint64_t *out_bytes, uint64_t *out_largest);

/* ---- entry.c */

/* Changes the state, and wakes threads that wait for it. */
void gpuhal_entry_change(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state to);
/* Completes the description, which must have a loader if and only if `loads` is true. Returns OK or INVALID_ARGUMENT.
 * The caller must not hold the mutex. */
gpuhal_status gpuhal_item_desc_take(const char *call, const gpuhal_item_desc *given, bool loads,
                                    gpuhal_item_desc *out_desc);
/* Creates an entry that is not in the table, with one reference. Returns OK, INVALID_ARGUMENT, TOO_LARGE or
 * HOST_MEMORY. The caller must not hold the mutex. */
gpuhal_status gpuhal_entry_create(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                  const void *key, uint64_t key_bytes, gpuhal_entry **out_entry);
/* Drops a reference. Returns the entry if it was the last reference, otherwise NULL. The caller must pass the result to
 * gpuhal_entry_free() without the mutex. */
gpuhal_entry *gpuhal_entry_unreference(gpuhal_store *store, gpuhal_entry *entry);
/* Accepts NULL. The caller must not hold the mutex. */
void gpuhal_entry_free(gpuhal_entry *entry);
/* Returns the same as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_remove(gpuhal_store *store, gpuhal_entry *entry);
/* Counts the entry in the store's limit until gpuhal_entry_leaves_device(), which does nothing if the entry is not
 * counted. */
void gpuhal_entry_enters_device(gpuhal_store *store, gpuhal_entry *entry);
/* Updates `fixed` after a change of the entry's pins, memory or loader, or of the index. */
void gpuhal_entry_count(gpuhal_store *store, gpuhal_entry *entry);
/* Call before the parts are released, so that an entry without memory does not count as fixed. */
void gpuhal_entry_loses_memory(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_leaves_device(gpuhal_store *store, gpuhal_entry *entry);
/* Attach a copy to an entry that has none of this kind. Detaching returns the copy, which the caller must release
 * without the mutex, or NULL. */
void gpuhal_entry_attach_host(gpuhal_store *store, gpuhal_entry *entry, gpuhal_host_copy *copy);
gpuhal_host_copy *gpuhal_entry_detach_host(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_attach_file(gpuhal_store *store, gpuhal_entry *entry, gpuhal_file_copy *copy);
gpuhal_file_copy *gpuhal_entry_detach_file(gpuhal_store *store, gpuhal_entry *entry);
/* Begin and end exclusive use of the entry's parts by this thread. end_work() changes the state to ABSENT if the entry
 * was dropped in the meantime, and returns the same as gpuhal_entry_unreference(). If the entry returns to its previous
 * state, it keeps its age; otherwise it becomes the newest. */
void gpuhal_entry_begin_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
gpuhal_entry *gpuhal_entry_end_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
/* Waits until the thread that works with the entry has finished. Returns NOT_READY if the caller must repeat the
 * lookup, the failure of a load, TIMEOUT, or BUSY if this thread works with the entry. */
gpuhal_status gpuhal_entry_wait_unlocks(gpuhal_store *store, gpuhal_entry *entry, const char *call,
                                        uint64_t deadline_ns);
/* Waits for the work that filled and modified the entry. Other threads can use the entry during the wait. *out_filled
 * is true if the work has succeeded. Returns false if the entry left the list of unpinned entries or became newer
 * during the wait. */
bool gpuhal_entry_await_fill_unlocks(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns, bool *out_filled);
/* Returns the state of an entry that is no longer in device memory. */
gpuhal_entry_state gpuhal_entry_tier(const gpuhal_entry *entry);
/* Returns OK or HOST_MEMORY. */
gpuhal_status gpuhal_entry_pin(gpuhal_store *store, gpuhal_entry *entry);
/* Returns the same as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_unpin(gpuhal_store *store, gpuhal_entry *entry);

/* The caller must not hold the mutex. */
void gpuhal_store_unreference(gpuhal_store *store);

/* ---- demote.c: call without the mutex */

/* Copies an entry in this thread's exclusive use from device memory to host memory, or else to the file. Other entries
 * may have to leave host memory for it; until the deadline, waits for the work that fills them. */
gpuhal_status gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns);

/* ---- figures.c: call with the mutex held */

/* Entries that may leave device memory: entries that need no copy (EVICT), and the others (SPILL). */
enum { GPUHAL_ROOM_EVICT = 1, GPUHAL_ROOM_SPILL = 2 };
/* Returns EVICT or SPILL for an entry, which must be in device memory. */
uint32_t gpuhal_entry_rung(const gpuhal_store *store, const gpuhal_entry *entry);
/* Adds the bytes that a rung could release. With EVICT, also counts pinned bytes. */
void gpuhal_store_count(const gpuhal_store *store, uint32_t which, gpuhal_pressure_figures *figures);

/* ---- compact.c: call without the mutex */

/* Moves unpinned entries within the pool, so that a range of `bytes` becomes free or, if no range can be chosen, whole
 * segments with `bytes` in total, which are returned to the driver. Returns the number of freed bytes. */
uint64_t gpuhal_store_make_piece(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);
/* Frees only segments, until they have `bytes` in total or no more can be freed. */
uint64_t gpuhal_store_empty_segments(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);

/* ---- room.c: call without the mutex */

/* Makes entries leave device memory until `bytes` are released or no more entries can leave. If the deadline allows,
 * waits for work that fills older entries before a younger entry leaves. Returns the number of released bytes. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns);
/* Releases the memory of all parts to the pool, which reuses it after the work that still uses it. */
void gpuhal_entry_release_parts(gpuhal_entry *entry);
/* Allocates device memory for all parts that have none. If an allocation fails, releases the memory of all parts. */
gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                    uint64_t deadline_ns);

/* ---- pressure.c: call without the mutex */

/* offer() registers the store, so that its entries make room for other buffers of its device. withdraw() removes the
 * store, and waits for a thread that is making room. */
gpuhal_status gpuhal_store_offer(gpuhal_store *store);
void gpuhal_store_withdraw(gpuhal_store *store);

/* ---- exchange.c: call without the mutex, from the thread that works with the entry */

/* Moves the copy of an entry that found no room in device memory to memory that no limit counts, so that another entry
 * can use the copy's place. Returns OUT_OF_MEMORY with the caller's error detail if this would not help or such memory
 * is short. Returns FILE if the copy cannot be read, or HOST_MEMORY. */
gpuhal_status gpuhal_exchange_begin(gpuhal_store *store, gpuhal_entry *entry);
/* If the entry is in device memory again, drops the copy; otherwise finds a place for the copy. */
void gpuhal_exchange_end(gpuhal_store *store, gpuhal_entry *entry, bool is_back);

/* ---- restore.c */

/* Restores an entry to device memory and pins it. No other thread may be working with the entry. */
gpuhal_status gpuhal_restore_unlocks(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                     uint64_t deadline_ns);
/* Falls back to the entry's copy after the work that restored the entry has failed. The entry must not have been
 * modified since and must not be pinned. Returns NOT_READY. */
gpuhal_status gpuhal_restore_failed(gpuhal_store *store, gpuhal_entry *entry);

#endif
