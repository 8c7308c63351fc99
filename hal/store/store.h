/* store/store.h: a store as the files of this folder see it.
 *
 * Entries are in a table by key (index.c), and while they are in device memory and not pinned, in a list by use
 * (lru.c). `mutex` protects everything in the store and in its entries but the contents of buffers. It is never held
 * across a call of a plugin, of a queue, of the pool or of the application. A thread that does something about an entry
 * without the mutex has a reference to it, and either a pin, so that its buffers stay, or it has changed the state to
 * one (LOADING) in which no other thread touches its parts.
 */
#ifndef GPUHAL_STORE_STORE_H
#define GPUHAL_STORE_STORE_H

#include "pool/pool.h"
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
    gpuhal_entry *older, *newer;  /* in the list by use, where `in_list` */
    bool in_list;
    bool in_device;  /* counted in `in_device` of the store */
    bool listed;     /* in the index, which has a reference */
    bool reloadable; /* a loader brings back what it has now */
    int32_t priority;
    gpuhal_entry_state state;
    uint32_t references, pins;
    uint64_t worker;          /* gpuhal_os_thread_id() of the thread that fills it; 0: none */
    uint64_t attempt;         /* of the last search for room that could not use it */
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
    gpuhal_entry_lists unpinned;
    uint64_t attempts;
    uint32_t pinned;
    gpuhal_store_tier in_device; /* reserved before the memory is allocated */
    uint64_t hits, misses, loads, evictions;
};

/* The functions of each file follow, from the bottom: each file uses only those above it here. With the mutex held,
 * where nothing else is said. */

/* ---- lru.c */

/* As the newest of its priority. */
void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry);
/* Does nothing to one that is not in the list. */
void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry);
/* The entry to make room with: the lowest priority, then the oldest, without those that `attempt` has marked; NULL. */
gpuhal_entry *gpuhal_entry_oldest(const gpuhal_store *store, uint64_t attempt);

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
/* Why the contents are unknown; NULL as far as is known. */
gpuhal_failure *gpuhal_uses_failure(const gpuhal_entry *entry);
/* Has the queue, or without one this thread, wait for those uses that modify, or for all. Without the mutex; the caller
 * has a pin. TIMEOUT; HOST_MEMORY; what the queue or a use that modifies failed with. */
gpuhal_status gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                               uint64_t deadline_ns);
/* The pool has to know which queues use the parts, also where the library does not see the work. HOST_MEMORY. Without
 * the mutex; the caller has a pin. */
gpuhal_status gpuhal_uses_announce(const gpuhal_entry *entry, gpuhal_queue *queue);
/* Without the mutex. */
void gpuhal_uses_free(gpuhal_entry *entry);

/* ---- entry.c */

/* Wakes the threads that wait for it. */
void gpuhal_entry_change(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_state to);
/* A new entry in no table, with one reference. INVALID_ARGUMENT, HOST_MEMORY. Without the mutex. */
gpuhal_status gpuhal_entry_create(const gpuhal_store *store, const char *call, const gpuhal_item_desc *desc,
                                  const void *key, uint64_t key_bytes, gpuhal_entry **out_entry);
/* Returns the entry where this was the last reference, for gpuhal_entry_free() without the mutex; else NULL. */
gpuhal_entry *gpuhal_entry_unreference(gpuhal_store *store, gpuhal_entry *entry);
/* Gives back everything that it has. NULL does nothing. Without the mutex. */
void gpuhal_entry_free(gpuhal_entry *entry);
/* Takes it out of the table. Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_remove(gpuhal_store *store, gpuhal_entry *entry);
/* What the entry has of the store's limit. The second does nothing where it has nothing. */
void gpuhal_entry_enters_device(gpuhal_store *store, gpuhal_entry *entry);
void gpuhal_entry_leaves_device(gpuhal_store *store, gpuhal_entry *entry);
/* HOST_MEMORY. */
gpuhal_status gpuhal_entry_pin(gpuhal_store *store, gpuhal_entry *entry);
/* Returns as gpuhal_entry_unreference(). */
gpuhal_entry *gpuhal_entry_unpin(gpuhal_store *store, gpuhal_entry *entry);

/* Gives back one reference to the store. Without the mutex. */
void gpuhal_store_unreference(gpuhal_store *store);

/* ---- room.c: without the mutex */

/* Has entries leave device memory until that has given so many bytes, or there is nothing more to be had. Returns how
 * many bytes. */
uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes);
/* Gives up one entry that a loader can bring back; false when there is none. */
bool gpuhal_store_forget_one(gpuhal_store *store);
/* Allocates all parts that have no device memory, or none. */
gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                    uint64_t deadline_ns);


#endif
