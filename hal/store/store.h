/* store/store.h: a store as the files of this folder see it.
 *
 * Entries are in a table by key (index.c), and in lists by use (lru.c): of those that can leave device memory, and of
 * those that have a copy in host memory. `mutex` protects everything in the store and in its entries but the contents
 * of buffers and copies. It is never held across a call of a plugin, of a queue, of a pool, of the system's files or of
 * the application. A thread that does something about an entry without the mutex has a reference to it, and either a
 * pin, so that its buffers stay, or it has changed the state to one (LOADING, SPILLING, RESTORING) in which no other
 * thread touches its parts. Copies are counted, so that one that is being read stays although its entry gives it up.
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

/* What an entry is in a list of. */
typedef enum gpuhal_entry_order {
    GPUHAL_STORE_UNPINNED, /* in device memory, not pinned: it can leave */
    GPUHAL_STORE_COPIED,   /* with a copy in host memory that no thread works with */
    GPUHAL_STORE_LISTS
} gpuhal_entry_order;

typedef struct gpuhal_entry_link {
    gpuhal_entry *older, *newer;
    bool in_list;
    uint64_t stamp;   /* counts what was appended to any list: newer ones have a larger one */
    uint64_t attempt; /* the last search for room that took it, or that began before it came */
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
    char *name; /* NULL: without one */
    uint64_t bytes;
    gpuhal_buffer *device; /* of the store's pool; NULL: not in device memory */
} gpuhal_entry_part;

/* Work of a queue with an entry, from before an item was released. */
typedef struct gpuhal_entry_use {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* of what modifies the entry; NULL: to be recorded when it is waited for */
    uint64_t number;             /* until it is added: of the newest use when its recording began */
    bool modifies;
} gpuhal_entry_use;

struct gpuhal_entry {
    gpuhal_entry *next;           /* in its row of the index */
    gpuhal_entry_link links[GPUHAL_STORE_LISTS];
    bool in_device;  /* counted in `in_device` of the store */
    bool has_memory; /* all that it needs there */
    bool is_fixed;   /* counted in `fixed` of the store */
    bool listed;     /* in the index, which has a reference */
    bool reloadable; /* a loader brings back what it has now */
    bool keeps_copy; /* although it does */
    int32_t priority;
    gpuhal_entry_state state;
    gpuhal_entry_state from; /* while a thread works with it: the state before */
    uint32_t references, pins;
    uint64_t worker;          /* gpuhal_os_thread_id() of the thread that works with it; 0: none */
    gpuhal_host_copy *host;   /* up to date; NULL: none */
    gpuhal_file_copy *file;   /* likewise */
    gpuhal_failure *failure;  /* why it is FAILED, or was not loaded */
    gpuhal_entry_use *uses;   /* has room for one more for each pin, so that a release cannot fail */
    size_t use_count, use_space;
    uint64_t use_number; /* of the newest one */
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
    uint32_t passing;            /* entries that are SPILLING, and calls that move others: soon there may be room */
    gpuhal_pool *host_pool;      /* NULL: copies are in plain memory, or there are none */
    gpuhal_pressure_entry *sources[3];
    gpuhal_store_tier in_device; /* reserved before the memory is allocated */
    uint64_t arriving;           /* bytes of that which are not allocated yet */
    gpuhal_store_tier fixed;     /* entries there that cannot leave now: pinned, or no tier would have a copy */
    gpuhal_store_tier in_host, in_file;
    struct gpuhal_store_file *file; /* NULL: no folder was given */
    uint64_t host_reserved;      /* for copies that are being made */
    bool host_refused;           /* memory within the limit, the last time that a copy was to be made */
    int file_error;              /* errno of the last write; 0 once it succeeds, and where room comes free */
    uint64_t hits, misses, loads, evictions, spills, restores, spilled_bytes, restored_bytes, moves, moved_bytes;
};

/* The functions of each file follow, from the bottom: each file uses only those above it here. With the mutex held,
 * where nothing else is said. */

/* ---- lru.c */

/* As the newest of its priority, also where it is in the list already. */
void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* One that was taken out: where it was, before all that were appended later. */
void gpuhal_entry_return(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Does nothing to one that is not in the list. */
void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list);
/* Whether a search has any use for an entry. */
typedef bool gpuhal_entry_filter(const gpuhal_store *store, const gpuhal_entry *entry, const void *user);
/* The entry to make room with: of the lowest priority the oldest that passes the filter, that was there when the search
 * began, and that neither this search nor a later one took before; now this one has. NULL: none. Each call begins with
 * the oldest again, since the list may have changed: the filter shall pass none that is known to be of no use. */
gpuhal_entry *gpuhal_entry_next(gpuhal_store *store, gpuhal_entry_order list, uint64_t attempt,
                                gpuhal_entry_filter *filter, const void *user);

/* ---- index.c */

/* The table; false without memory. Without the mutex, as the next. */
bool gpuhal_index_init(gpuhal_store *store);
void gpuhal_index_finish(gpuhal_store *store);
uint64_t gpuhal_key_hash(const void *key, uint64_t bytes);
gpuhal_entry *gpuhal_index_find(const gpuhal_store *store, const void *key, uint64_t bytes, uint64_t hash);
void gpuhal_index_add(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_index_remove(gpuhal_store *store, gpuhal_entry *entry);
/* Whether the entry's key begins so. */
bool gpuhal_key_begins(const gpuhal_entry *entry, const void *prefix, uint64_t bytes);
/* The beginning of a key for messages: bytes that are not printable as \xNN. Returns `text`. */
enum { GPUHAL_KEY_TEXT = 80 };
const char *gpuhal_key_text(const void *key, uint64_t bytes, char text[GPUHAL_KEY_TEXT]);

/* INVALID_ARGUMENT for what is no key, or FORKED, with its detail. Without the mutex, as the next. */
gpuhal_status gpuhal_store_check(const char *call, const gpuhal_store *store, const void *key, uint64_t key_bytes);
gpuhal_status gpuhal_store_not_found(const char *call, const void *key, uint64_t key_bytes);

/* ---- uses.c */

/* Room for the use of one more pin, and one for loading; false without memory. */
bool gpuhal_uses_reserve(gpuhal_entry *entry);
/* Adds what the item's release has recorded, and owns the references. Returns a timepoint to release without the
 * mutex, or NULL. */
gpuhal_timepoint *gpuhal_uses_add(gpuhal_entry *entry, gpuhal_entry_use use);
/* Adds a read; the same. */
gpuhal_timepoint *gpuhal_uses_add_read(gpuhal_entry *entry, gpuhal_queue *queue);
/* Whether all uses that modify, or all, come before later work of the queue, or without one have ended: well, as far as
 * is known. */
bool gpuhal_uses_are_before(const gpuhal_entry *entry, const gpuhal_queue *queue, bool all);
/* Why the contents are unknown; NULL as far as is known. */
gpuhal_failure *gpuhal_uses_failure(const gpuhal_entry *entry);
/* Has the queue, or without one this thread, wait for those uses that modify, or for all. Without the mutex; the caller
 * has a pin. TIMEOUT; HOST_MEMORY; what the queue or a use that modifies failed with. */
gpuhal_status gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                               uint64_t deadline_ns);
/* The pool has to know which queues use the parts, also where the library does not see the work. HOST_MEMORY. Without
 * the mutex; the caller has a pin. */
gpuhal_status gpuhal_uses_announce(const gpuhal_entry *entry, gpuhal_queue *queue);
/* Whether there is nothing to announce, as for NULL. */
bool gpuhal_uses_are_announced(const gpuhal_entry *entry, const gpuhal_queue *queue);
/* Without the mutex. */
void gpuhal_uses_free(gpuhal_entry *entry);

/* ---- host.c: without the mutex */

/* What copies are made in. What gpuhal_pool_create() returns. */
gpuhal_status gpuhal_host_open(gpuhal_store *store);
void gpuhal_host_close(gpuhal_store *store);
/* Memory for a copy of the entry: OUT_OF_MEMORY, HOST_MEMORY. */
gpuhal_status gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* The same in plain memory, above every limit. */
gpuhal_status gpuhal_host_create_spare(const gpuhal_entry *entry, gpuhal_host_copy **out_copy);
/* NULL stays NULL, and does nothing. */
gpuhal_host_copy *gpuhal_host_retain(gpuhal_host_copy *copy);
void gpuhal_host_release(gpuhal_host_copy *copy);
/* Copies the parts of the entry from device memory, and waits; to device memory, in the queue where there is one and
 * the copy is not in plain memory. */
gpuhal_status gpuhal_host_take(gpuhal_host_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_host_give(const gpuhal_host_copy *copy, const gpuhal_entry *entry, gpuhal_queue *queue);

/* ---- file.c: without the mutex */

/* Makes the file. What gpuhal_store_create() returns; gpuhal_file_close() is needed in any case. */
gpuhal_status gpuhal_file_open(gpuhal_store *store, const char *folder);
void gpuhal_file_close(gpuhal_store *store);
/* A new copy of the parts, from the copy in host memory, or with NULL from device memory. OUT_OF_MEMORY above the
 * limit; FILE; HOST_MEMORY; what reading the device returns. */
gpuhal_status gpuhal_file_take(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *host,
                               gpuhal_file_copy **out_copy);
/* NULL stays NULL, and does nothing. */
gpuhal_file_copy *gpuhal_file_retain(gpuhal_file_copy *copy);
void gpuhal_file_release(gpuhal_file_copy *copy);
/* Brings all parts to device memory, or bytes of one to the host, and checks them: FILE where they are not what was
 * written. */
gpuhal_status gpuhal_file_give(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry);
gpuhal_status gpuhal_file_read(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry, uint32_t part,
                               uint64_t offset, void *to, uint64_t bytes);
/* What a copy of the entry takes of the file, and its largest piece. */
uint64_t gpuhal_file_bytes(const gpuhal_entry *entry, uint64_t *out_largest);
/* What is free, and the largest piece. Returns what stands against more: GPUHAL_LACKS_ bits. With the mutex held. */
uint32_t gpuhal_file_room(const gpuhal_store *store, uint64_t *out_bytes, uint64_t *out_largest);

/* ---- entry.c */

/* Wakes the threads that wait for it. */
void gpuhal_entry_change(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state to);
/* The description, completed, which must have a loader or must not. INVALID_ARGUMENT. Without the mutex. */
gpuhal_status gpuhal_item_desc_take(const char *call, const gpuhal_item_desc *given, bool loads,
                                    gpuhal_item_desc *out_desc);
/* A new entry in no table, with one reference. INVALID_ARGUMENT, HOST_MEMORY. Without the mutex. */
gpuhal_status gpuhal_entry_create(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                  const void *key, uint64_t key_bytes, gpuhal_entry **out_entry);
/* Returns the entry where this was the last reference, for gpuhal_entry_free() without the mutex; else NULL. */
gpuhal_entry *gpuhal_entry_unreference(gpuhal_store *store, gpuhal_entry *entry);
/* Frees it with everything that it has. NULL does nothing. Without the mutex. */
void gpuhal_entry_free(gpuhal_entry *entry);
/* Takes it out of the table. Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_remove(gpuhal_store *store, gpuhal_entry *entry);
/* What the entry has of the store's limit. The second does nothing where it has nothing. */
void gpuhal_entry_enters_device(gpuhal_store *store, gpuhal_entry *entry);
/* Counts the entry in `fixed`, or no longer: after a change of its pins, its memory, its loader or the index. */
void gpuhal_entry_count(gpuhal_store *store, gpuhal_entry *entry);
/* Before its parts are released, so that it is not counted as fixed without memory. */
void gpuhal_entry_loses_memory(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_leaves_device(gpuhal_store *store, gpuhal_entry *entry);
/* Gives the entry a copy, which it has not; takes it away, to be released without the mutex: NULL where it has none. */
void gpuhal_entry_attach_host(gpuhal_store *store, gpuhal_entry *entry, gpuhal_host_copy *copy);
gpuhal_host_copy *gpuhal_entry_detach_host(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_attach_file(gpuhal_store *store, gpuhal_entry *entry, gpuhal_file_copy *copy);
gpuhal_file_copy *gpuhal_entry_detach_file(gpuhal_store *store, gpuhal_entry *entry);
/* Begins and ends a time in which this thread alone touches the entry's parts. The second changes to ABSENT where the
 * entry was dropped meanwhile, and returns as gpuhal_entry_unreference(). In the state that it had before, the entry
 * is as old as it was; in another one it is the newest. */
void gpuhal_entry_begin_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
gpuhal_entry *gpuhal_entry_end_work(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state state);
/* Waits until another thread has done with it. NOT_READY: look again. The failure of a load; TIMEOUT; BUSY where
 * that thread is this one. */
gpuhal_status gpuhal_entry_wait_unlocks(gpuhal_store *store, gpuhal_entry *entry, const char *call,
                                        uint64_t deadline_ns);
/* Waits for the work that filled and modified the entry, which stays in everybody's reach meanwhile: *out_filled: it
 * has ended well. False: the entry was used then, and is not among the oldest any more. */
bool gpuhal_entry_await_fill_unlocks(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns, bool *out_filled);
/* The state of one that is in device memory no longer. */
gpuhal_entry_state gpuhal_entry_tier(const gpuhal_entry *entry);
/* HOST_MEMORY. */
gpuhal_status gpuhal_entry_pin(gpuhal_store *store, gpuhal_entry *entry);
/* Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_unpin(gpuhal_store *store, gpuhal_entry *entry);

/* Gives back one reference to the store. Without the mutex. */
void gpuhal_store_unreference(gpuhal_store *store);

/* ---- demote.c: without the mutex */

/* Gives an entry that this thread works with a copy of what it has in device memory: in host memory, for which others
 * may have to make room, else in the file. What fills those is waited for until the deadline. */
gpuhal_status gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns);

/* ---- figures.c: with the mutex held */

/* Which entries may leave device memory: those of which nothing has to be copied; the others. */
enum { GPUHAL_ROOM_EVICT = 1, GPUHAL_ROOM_SPILL = 2 };
/* Which of them an entry that is in device memory belongs to. */
uint32_t gpuhal_entry_rung(const gpuhal_store *store, const gpuhal_entry *entry);
/* Adds what a rung could give; the first one also counts what is pinned. */
void gpuhal_store_count(const gpuhal_store *store, uint32_t which, gpuhal_pressure_figures *figures);

/* ---- compact.c: without the mutex */

/* Moves unpinned entries elsewhere in the pool, so that a stretch of so many bytes comes free, or else whole segments
 * of as many bytes together. Returns how many came free; those of segments are given back to the driver. */
uint64_t gpuhal_store_make_piece(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);
/* Only segments, until they have so many bytes. */
uint64_t gpuhal_store_empty_segments(gpuhal_store *store, uint64_t bytes, uint64_t deadline_ns);

/* ---- room.c: without the mutex */

/* Has entries leave device memory until that has given so many bytes, or there is nothing more to be had. What fills
 * the older ones is waited for before a younger one leaves in their place, as far as the deadline allows. Returns how
 * many bytes. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes, uint32_t which, uint64_t deadline_ns);
/* Gives the memory of all parts back to the pool, behind the work that uses it. */
void gpuhal_entry_release_parts(gpuhal_entry *entry);
/* Allocates all parts that have no device memory, or none. */
gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                    uint64_t deadline_ns);

/* ---- pressure.c: without the mutex */

/* Has the store's entries make room for others of its device, and ends that, waiting for a thread that makes room. */
gpuhal_status gpuhal_store_offer(gpuhal_store *store);
void gpuhal_store_withdraw(gpuhal_store *store);

/* ---- exchange.c: without the mutex, by the thread that works with the entry */

/* Moves the copy of an entry, for which there is no room in device memory, to memory that does not count, so that
 * others may have its place. OUT_OF_MEMORY, with the caller's detail: that would not help, or there is no such memory;
 * FILE where the copy is damaged. */
gpuhal_status gpuhal_exchange_begin(gpuhal_store *store, gpuhal_entry *entry);
/* Ends that: the copy is given up if the entry is back in device memory; else it gets a place again. */
void gpuhal_exchange_end(gpuhal_store *store, gpuhal_entry *entry, bool is_back);

/* ---- restore.c */

/* Brings an entry that is in no other thread's hands back into device memory, and pins it. */
gpuhal_status gpuhal_restore_unlocks(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                     uint64_t deadline_ns);
/* The work failed that brought it back, so it has not been modified since: its copy is what it has. Not while it is
 * pinned. Returns NOT_READY. */
gpuhal_status gpuhal_restore_failed(gpuhal_store *store, gpuhal_entry *entry);

#endif
