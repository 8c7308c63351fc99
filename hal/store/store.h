/* store/store.h: a store as the files of this folder see it.
 *
 * The entries are in a table by key (index.c). Lists by use (lru.c) have the entries that can leave device memory, and
 * those with a copy in host memory. `mutex` protects everything in the store and in its entries but the contents of
 * buffers and copies. It is never held across a call of a plugin, of a queue, of a pool, of the system's files or of
 * the application. A thread that works with an entry without the mutex has a reference to it. It also has a pin, so
 * that the buffers stay, or has changed the state to LOADING, SPILLING, MOVING or RESTORING: then no other thread
 * touches the parts. Copies have reference counts: a copy that a thread reads stays even if its entry gives it up.
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

/* The lists that an entry can be in. */
typedef enum gpuhal_entry_order {
    GPUHAL_STORE_UNPINNED, /* in device memory, not pinned: it can leave */
    GPUHAL_STORE_COPIED,   /* with a copy in host memory, while no thread works with it */
    GPUHAL_STORE_LISTS
} gpuhal_entry_order;

typedef struct gpuhal_entry_link {
    gpuhal_entry *older, *newer;
    bool in_list;
    uint64_t stamp;   /* counts appends to any list: a newer entry has a larger one */
    uint64_t attempt; /* the last search for room that took it, or began before it came */
} gpuhal_entry_link;

typedef struct gpuhal_host_part {
    gpuhal_buffer *buffer; /* of the store's host pool; NULL: plain memory */
    void *memory;
} gpuhal_host_part;

/* A copy of an entry in host memory. */
typedef struct gpuhal_host_copy {
    _Atomic uint32_t references;
    uint32_t count;
    gpuhal_host_part parts[];
} gpuhal_host_copy;

typedef struct gpuhal_file_part {
    gpuhal_block_id block;
    uint64_t offset, first_sum;
} gpuhal_file_part;

/* A copy of an entry in the store's file. */
typedef struct gpuhal_file_copy {
    _Atomic uint32_t references;
    gpuhal_store *store;
    _Atomic uint32_t *sums; /* of each piece of each part */
    uint32_t count;
    gpuhal_file_part parts[];
} gpuhal_file_copy;

typedef struct gpuhal_entry_part {
    char *name; /* NULL: no name */
    uint64_t bytes;
    gpuhal_buffer *device; /* of the store's pool; NULL: not in device memory */
} gpuhal_entry_part;

/* Work of a queue with an entry, enqueued before an item was released. */
typedef struct gpuhal_entry_use {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* of work that modifies the entry; NULL: recorded when a thread waits for it */
    uint64_t number;             /* until it is added: that of the newest use when its recording began */
    bool modifies;
} gpuhal_entry_use;

struct gpuhal_entry {
    gpuhal_entry *next;           /* in its row of the index */
    gpuhal_entry_link links[GPUHAL_STORE_LISTS];
    bool in_device;  /* counted in `in_device` of the store */
    bool has_memory; /* all its parts are allocated there */
    bool is_fixed;   /* counted in `fixed` of the store */
    bool listed;     /* in the index, which has a reference */
    bool reloadable; /* a loader can bring back its contents */
    bool keeps_copy; /* although it is reloadable */
    int32_t priority;
    gpuhal_entry_state state;
    gpuhal_entry_state from; /* while a thread works with it: the state before */
    uint32_t references, pins;
    uint64_t worker;          /* gpuhal_os_thread_id() of the thread that works with it; 0: none */
    gpuhal_host_copy *host;   /* up to date; NULL: none */
    gpuhal_file_copy *file;   /* up to date; NULL: none */
    gpuhal_failure *failure;  /* why it is FAILED, or was not loaded */
    gpuhal_entry_use *uses;   /* has room for one more use for each pin: a release cannot fail */
    size_t use_count, use_space;
    uint64_t use_number; /* of the newest use */
    uint64_t bytes, hash, key_bytes;
    const unsigned char *key;
    uint32_t part_count;
    gpuhal_entry_part parts[];
};

struct gpuhal_item {
    gpuhal_store *store; /* with a reference */
    gpuhal_entry *entry; /* with a reference, and a pin */
    bool modifies;
    bool fills; /* of gpuhal_store_put(): its release ends LOADING */
};

enum { GPUHAL_STORE_CLASSES = 2 * GPUHAL_ITEM_PRIORITY_MAX + 1 };

/* Entries of each priority, by use. */
typedef struct gpuhal_entry_lists {
    gpuhal_entry *oldest[GPUHAL_STORE_CLASSES], *newest[GPUHAL_STORE_CLASSES];
} gpuhal_entry_lists;

struct gpuhal_store {
    gpuhal_pool *pool;
    gpuhal_device *device;
    gpuhal_store_desc desc; /* completed */
    gpuhal_mutex mutex;
    gpuhal_condition condition; /* the state of an entry has changed */
    uint64_t references;        /* the application's, and one for each item */
    gpuhal_entry **rows;
    uint64_t row_mask, entry_count;
    gpuhal_entry_lists lists[GPUHAL_STORE_LISTS];
    uint64_t attempts, stamps;
    uint32_t pinned;
    uint32_t passing;            /* entries that are SPILLING, and calls that move entries: soon there may be room */
    gpuhal_pool *host_pool;      /* NULL: copies are in plain memory, or there are none */
    gpuhal_pressure_entry *sources[3];
    gpuhal_store_tier in_device; /* reserved before the memory is allocated */
    uint64_t arriving;           /* bytes of `in_device` that are not allocated yet */
    gpuhal_store_tier fixed;     /* entries in device memory that cannot leave now: pinned, or no tier takes a copy */
    gpuhal_store_tier in_host, in_file;
    struct gpuhal_store_file *file; /* NULL: no folder was given */
    uint64_t host_reserved;      /* for copies that are being made */
    bool host_refused;           /* the last copy got no memory, although the limit had room */
    int file_error;              /* errno of the last write; 0 after a write succeeds or room comes free */
    uint64_t hits, misses, loads, evictions, spills, restores, spilled_bytes, restored_bytes, moves, moved_bytes;
};

/* The functions of each file follow, from the bottom: each file uses only functions above it here. The caller holds the
 * mutex unless a comment says otherwise. */

/* ---- lru.c */

/* Adds the entry as the newest of its priority, or moves it there. */
void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Puts an entry that was taken out back in its place: before all entries that were appended later. */
void gpuhal_entry_return(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Does nothing if the entry is not in the list. */
void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Whether a search has any use for an entry. */
typedef bool gpuhal_entry_filter(const gpuhal_store *store, const gpuhal_entry *entry, const void *user);
/* Returns the oldest entry of the lowest priority that passes the filter, and marks it as taken by this search. Skips
 * entries added after the search began, or taken by this or a later one. NULL: none. Each call begins with the oldest
 * again, since the list may have changed: the filter must reject entries known to be useless. */
gpuhal_entry *gpuhal_entry_next(gpuhal_store *store, gpuhal_entry_order list, uint64_t attempt,
                                gpuhal_entry_filter *filter, const void *user);

/* ---- index.c */

/* Makes the table; false without memory. Without the mutex, as the next. */
bool gpuhal_index_init(gpuhal_store *store);
void gpuhal_index_finish(gpuhal_store *store);
uint64_t gpuhal_key_hash(const void *key, uint64_t bytes);
gpuhal_entry *gpuhal_index_find(const gpuhal_store *store, const void *key, uint64_t bytes, uint64_t hash);
void gpuhal_index_add(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_index_remove(gpuhal_store *store, gpuhal_entry *entry);
/* Whether the entry's key begins with the prefix. */
bool gpuhal_key_begins(const gpuhal_entry *entry, const void *prefix, uint64_t bytes);
/* Writes the beginning of a key for messages: quotes, backslashes and bytes that are not printable as \xNN. Returns
 * `text`. */
enum { GPUHAL_KEY_TEXT = 80 };
const char *gpuhal_key_text(const void *key, uint64_t bytes, char text[GPUHAL_KEY_TEXT]);

/* INVALID_ARGUMENT without a store or for an invalid key; FORKED; with the detail. Without the mutex, as the next
 * function. */
gpuhal_status gpuhal_store_check(const char *call, const gpuhal_store *store, const void *key, uint64_t key_bytes);
gpuhal_status gpuhal_store_not_found(const char *call, const void *key, uint64_t key_bytes);

/* ---- uses.c */

/* Makes room for the use of one more pin, and one for loading; false without memory. */
bool gpuhal_uses_reserve(gpuhal_entry *entry);
/* Adds the use that an item's release has recorded, and takes over its references. Returns a timepoint to release
 * without the mutex, or NULL. */
gpuhal_timepoint *gpuhal_uses_add(gpuhal_entry *entry, gpuhal_entry_use use);
/* Adds a read by the queue. Returns as gpuhal_uses_add(). */
gpuhal_timepoint *gpuhal_uses_add_read(gpuhal_entry *entry, gpuhal_queue *queue);
/* Whether the uses that modify, or all, come before later work of the queue, or without a queue have ended. False if
 * one is known to have failed. */
bool gpuhal_uses_are_before(const gpuhal_entry *entry, const gpuhal_queue *queue, bool all);
/* Returns why the contents are unknown; NULL: no failure is known. */
gpuhal_failure *gpuhal_uses_failure(const gpuhal_entry *entry);
/* Makes the queue, or without one this thread, wait for the uses that modify, or for all. Without the mutex; the caller
 * has a reference. TIMEOUT; HOST_MEMORY; the failure of the queue or of a use that modifies. */
gpuhal_status gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                               uint64_t deadline_ns);
/* Notifies the pool that the queue uses the parts, also for work that the library does not see. HOST_MEMORY. Without
 * the mutex; the caller has a pin. */
gpuhal_status gpuhal_uses_announce(const gpuhal_entry *entry, gpuhal_queue *queue);
/* Whether nothing has to be announced; true for a NULL queue. */
bool gpuhal_uses_are_announced(const gpuhal_entry *entry, const gpuhal_queue *queue);
/* Without the mutex. */
void gpuhal_uses_free(gpuhal_entry *entry);

/* ---- host.c: without the mutex */

/* Creates the pool for copies, if the store needs one. Returns as gpuhal_pool_create(). */
gpuhal_status gpuhal_host_open(gpuhal_store *store);
void gpuhal_host_close(gpuhal_store *store);
/* Allocates memory for a copy of the entry. OUT_OF_MEMORY, HOST_MEMORY. */
gpuhal_status gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* Does the same in plain memory, which no limit counts. */
gpuhal_status gpuhal_host_create_spare(const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* NULL returns NULL, or does nothing. */
gpuhal_host_copy *gpuhal_host_retain(gpuhal_host_copy *copy);
void gpuhal_host_release(gpuhal_host_copy *copy);
/* Copies the parts of the entry from device memory, and waits. The second copies to device memory, in the queue if
 * there is one and the copy is not in plain memory. */
gpuhal_status gpuhal_host_take(gpuhal_host_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_host_give(const gpuhal_host_copy *copy, const gpuhal_entry *entry, gpuhal_queue *queue);

/* ---- file.c: without the mutex */

/* Makes the file. Returns as gpuhal_store_create(); gpuhal_file_close() must follow in any case. */
gpuhal_status gpuhal_file_open(gpuhal_store *store, const char *folder);
void gpuhal_file_close(gpuhal_store *store);
/* Makes a new copy of the parts, from the copy in host memory, or with NULL from device memory. OUT_OF_MEMORY above the
 * limit; FILE; HOST_MEMORY; a failure to read the device. */
gpuhal_status gpuhal_file_take(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *host,
                               gpuhal_file_copy **out_copy);
/* NULL returns NULL, or does nothing. */
gpuhal_file_copy *gpuhal_file_retain(gpuhal_file_copy *copy);
void gpuhal_file_release(gpuhal_file_copy *copy);
/* Brings all parts to device memory, or bytes of one to the host, and checks them: FILE if they differ from the written
 * ones. */
gpuhal_status gpuhal_file_give(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_file_read(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry, uint32_t part,
                               uint64_t offset, void *to, uint64_t bytes);
/* Returns how many bytes of the file a copy of the entry takes, and its largest piece. */
uint64_t gpuhal_file_bytes(const gpuhal_entry *entry, uint64_t *out_largest);
/* Reads how many bytes are free, and the largest piece. Returns why there are no more: GPUHAL_LACKS_ bits. With the
 * mutex held. */
uint32_t gpuhal_file_room(const gpuhal_store *store, uint64_t *out_bytes, uint64_t *out_largest);

/* ---- entry.c */

/* Changes the state, and wakes the threads that wait for that. */
void gpuhal_entry_change(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state to);
/* Completes the description, which must have a loader exactly if `loads`. INVALID_ARGUMENT. Without the mutex. */
gpuhal_status gpuhal_item_desc_take(const char *call, const gpuhal_item_desc *given, bool loads,
                                    gpuhal_item_desc *out_desc);
/* Creates an entry in no table, with one reference. INVALID_ARGUMENT, TOO_LARGE, HOST_MEMORY. Without the mutex. */
gpuhal_status gpuhal_entry_create(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                  const void *key, uint64_t key_bytes, gpuhal_entry **out_entry);
/* Returns the entry if this was its last reference, for gpuhal_entry_free() without the mutex; else NULL. */
gpuhal_entry *gpuhal_entry_unreference(gpuhal_store *store, gpuhal_entry *entry);
/* Frees the entry and all its members. NULL does nothing. Without the mutex. */
void gpuhal_entry_free(gpuhal_entry *entry);
/* Takes the entry out of the table. Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_remove(gpuhal_store *store, gpuhal_entry *entry);
/* Counts the entry in the store's limit. gpuhal_entry_leaves_device() ends that; nothing happens if the entry is not
 * counted. */
void gpuhal_entry_enters_device(gpuhal_store *store, gpuhal_entry *entry);
/* Updates `fixed` after a change of the entry's pins, memory or loader, or of the index. */
void gpuhal_entry_count(gpuhal_store *store, gpuhal_entry *entry);
/* Call it before the parts are released, so that the entry is not counted as fixed without memory. */
void gpuhal_entry_loses_memory(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_leaves_device(gpuhal_store *store, gpuhal_entry *entry);
/* Attaches a copy to an entry without one. Detaching returns it, for a release without the mutex; NULL: none. */
void gpuhal_entry_attach_host(gpuhal_store *store, gpuhal_entry *entry, gpuhal_host_copy *copy);
gpuhal_host_copy *gpuhal_entry_detach_host(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_attach_file(gpuhal_store *store, gpuhal_entry *entry, gpuhal_file_copy *copy);
gpuhal_file_copy *gpuhal_entry_detach_file(gpuhal_store *store, gpuhal_entry *entry);
/* Begins and ends a time when this thread alone touches the entry's parts. The second changes to ABSENT if the entry
 * was dropped meanwhile, and returns as gpuhal_entry_unreference(). In the state that it had before, the entry is as
 * old as it was; in another state it is the newest. */
void gpuhal_entry_begin_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
gpuhal_entry *gpuhal_entry_end_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
/* Waits until the thread that works with the entry has finished. NOT_READY: look again. The failure of a load; TIMEOUT;
 * BUSY if this thread works with it. */
gpuhal_status gpuhal_entry_wait_unlocks(gpuhal_store *store, gpuhal_entry *entry, const char *call,
                                        uint64_t deadline_ns);
/* Waits for the work that filled and modified the entry; other threads can use it meanwhile. *out_filled: the work has
 * ended well. False: the entry was used meanwhile, and is not among the oldest any more. */
bool gpuhal_entry_await_fill_unlocks(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns, bool *out_filled);
/* The state of an entry that is in device memory no longer. */
gpuhal_entry_state gpuhal_entry_tier(const gpuhal_entry *entry);
/* Pins the entry. HOST_MEMORY. */
gpuhal_status gpuhal_entry_pin(gpuhal_store *store, gpuhal_entry *entry);
/* Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_unpin(gpuhal_store *store, gpuhal_entry *entry);

/* Gives back one reference to the store. Without the mutex. */
void gpuhal_store_unreference(gpuhal_store *store);

/* ---- demote.c: without the mutex */

/* Gives an entry that this thread works with a copy of its parts in device memory: in host memory, where other entries
 * may have to make room, else in the file. Waits until the deadline for the work that fills those entries. */
gpuhal_status gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns);

/* ---- figures.c: with the mutex held */

/* Which entries may leave device memory: entries that need not be copied first (EVICT), or the others. */
enum { GPUHAL_ROOM_EVICT = 1, GPUHAL_ROOM_SPILL = 2 };
/* Which of the two an entry in device memory belongs to. */
uint32_t gpuhal_entry_rung(const gpuhal_store *store, const gpuhal_entry *entry);
/* Adds the bytes that a rung could give; EVICT also counts the pinned ones. */
void gpuhal_store_count(const gpuhal_store *store, uint32_t which, gpuhal_pressure_figures *figures);

/* ---- compact.c: without the mutex */

/* Moves unpinned entries elsewhere in the pool, so that a stretch of `bytes` comes free, or else whole segments with as
 * many bytes together. Returns how many came free. The segments go back to the driver. */
uint64_t gpuhal_store_make_piece(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);
/* Frees segments only, until they have `bytes` together. */
uint64_t gpuhal_store_empty_segments(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);

/* ---- room.c: without the mutex */

/* Makes entries leave device memory until that has given `bytes`, or no more can leave. As far as the deadline allows,
 * waits for work that fills older entries before a younger one leaves. Returns how many bytes came free. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns);
/* Gives the memory of all parts back to the pool, to be used after the work that has it now. */
void gpuhal_entry_release_parts(gpuhal_entry *entry);
/* Allocates all parts that have no device memory, or none. */
gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                    uint64_t deadline_ns);

/* ---- pressure.c: without the mutex */

/* Lets the store's entries make room for other buffers of its device. The second ends that, and waits for a thread that
 * makes room. */
gpuhal_status gpuhal_store_offer(gpuhal_store *store);
void gpuhal_store_withdraw(gpuhal_store *store);

/* ---- exchange.c: without the mutex, by the thread that works with the entry */

/* Moves the copy of an entry that found no room in device memory to memory that no limit counts, so that another entry
 * can have its place. OUT_OF_MEMORY, with the caller's detail: that would not help, or there is no such memory; FILE if
 * the copy is damaged. */
gpuhal_status gpuhal_exchange_begin(gpuhal_store *store, gpuhal_entry *entry);
/* Ends the exchange: gives the copy up if the entry is back in device memory, else finds a place for it again. */
void gpuhal_exchange_end(gpuhal_store *store, gpuhal_entry *entry, bool is_back);

/* ---- restore.c */

/* Brings an entry that no other thread works with back into device memory, and pins it. */
gpuhal_status gpuhal_restore_unlocks(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                     uint64_t deadline_ns);
/* Goes back to the copy of an entry after the work that brought it back failed: it has not been modified since. The
 * entry must not be pinned. Returns NOT_READY. */
gpuhal_status gpuhal_restore_failed(gpuhal_store *store, gpuhal_entry *entry);

#endif
