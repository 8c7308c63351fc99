/** gpuhal/store.h: stores buffers under keys, with a total size that may exceed the device's memory.
 *
 *  A store belongs to a pool (pool.h), and allocates its buffers from the pool. An entry is one buffer, or several
 *  named buffers, under a key, which is a string of arbitrary bytes. A caller that needs an entry acquires it.
 *  Acquiring pins the entry: its buffers are in device memory, and stay in it until the entry is released. To make
 *  room, the store evicts unpinned entries, in the order of priorities, lowest first, and among entries of one priority
 *  the least recently used first. An entry that a loader can load again is discarded. Every other entry is copied to
 *  host memory, or to a file; copies in host memory move to the file to make room. If neither has room, the entry
 *  stays. If an entry to be evicted is still being filled, the store waits for the filling work instead of evicting a
 *  more recently used entry, for at most half of the caller's time, and never more than a second. A copy is kept until
 *  the entry is modified, so that evicting the same entry again costs nothing. Bytes read back from the file are
 *  verified with a checksum: bytes that differ from those written are never returned. Entries are also evicted for
 *  other buffers of the pool, and of its device, before those allocations fail (pool.h).
 *
 *  A buffer of an entry is valid only while the entry is pinned; when it is pinned again, the entry may have another
 *  buffer. Work that is enqueued in a queue after an acquire for that queue runs after all work that filled or modified
 *  the entry. Several callers may have an entry pinned at once; if any of them modifies the entry, the callers must
 *  coordinate the order of their work.
 *
 *      gpuhal_item *item;
 *      gpuhal_item_desc desc = {.size = sizeof desc, .bytes = bytes, .load = load, .user = model};
 *      gpuhal_store_acquire(store, queue, "layer 7", 7, &desc, 0, UINT64_MAX, &item);
 *      gpuhal_copy(queue, buffer, 0, gpuhal_item_buffer(item, NULL), 0, bytes);
 *      gpuhal_item_release(item, queue);
 *
 *  Keys have 1 to GPUHAL_KEY_BYTES_MAX bytes; with any other number, calls return INVALID_ARGUMENT. Copies are made on
 *  the threads that need the room, and restored on the acquiring threads, or in their queues. In a forked child every
 *  call on a store of the parent returns FORKED, and releasing does nothing.
 */
#ifndef GPUHAL_STORE_H
#define GPUHAL_STORE_H

#include <gpuhal/buffer.h>
#include <gpuhal/file.h>
#include <gpuhal/pool.h>
#include <gpuhal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A collection of entries with keys. */
typedef struct gpuhal_store gpuhal_store;

/** An entry that one caller has pinned. */
typedef struct gpuhal_item gpuhal_item;

enum {
    GPUHAL_KEY_BYTES_MAX = 65536,
    GPUHAL_ITEM_PRIORITY_MAX = 3 /**< Priorities range from -GPUHAL_ITEM_PRIORITY_MAX to this. */
};

/** The description of a store. */
typedef struct gpuhal_store_desc {
    uint32_t size;         /**< sizeof(gpuhal_store_desc). */
    /** Maximum number of entries in device memory, or 0 for any number. Above the limit, entries are evicted, as for
     *  bytes. */
    uint32_t entry_limit;
    /** Maximum bytes of entries in device memory; 0 means that only the limits of the pool and device apply. */
    uint64_t device_bytes;
    /** Maximum bytes of copies in host memory, which is page-locked if the device has such memory. 0 means that no
     *  copies are made in host memory; UINT64_MAX means no limit. If every tier is full, an entry that is being
     *  restored is temporarily in other host memory: one entry for each acquiring thread. */
    uint64_t host_bytes;
    /** Maximum bytes of the file; 0 means that only the disk limits the file. Not used without a folder. */
    uint64_t file_bytes;
    /** A folder for the file, on a disk with room; NULL means that there is no file. The file has no name, and only the
     *  user of the process can access it, even in a folder of another user. It is deleted with the store. */
    const char *folder;
} gpuhal_store_desc;

/** Creates an empty store, whose buffers are allocated from @p pool. @p desc may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED; for the folder NOT_FOUND if it does not exist,
 *  INVALID_ARGUMENT if it is not a folder, NO_PERMISSION, FILE, each with the system's error message
 *  Owner: caller, gpuhal_store_destroy(), before the pool is destroyed. Threads: any. Blocks: to create the file. */
GPUHAL_API gpuhal_status gpuhal_store_create(gpuhal_pool *pool, const gpuhal_store_desc *desc,
                                             gpuhal_store **out_store);

/** Destroys the store and drops its entries. Acquired items stay valid until they are released, and must be released
 *  even though the store is destroyed.
 *  Owner: @p store is invalid afterwards. Threads: any, with no other call on @p store in progress. Blocks: no. */
GPUHAL_API void gpuhal_store_destroy(gpuhal_store *store);

/** One buffer of an entry. */
typedef struct gpuhal_item_part {
    const char *name;      /**< Different from the other parts' names, or NULL for a part without a name. */
    uint64_t bytes;        /**< At least 1; not used with a buffer. */
    /** For gpuhal_store_put(): a buffer of the store's pool, whose reference the store takes over when the call
     *  returns OK. The caller must not have another reference when the call returns. With NULL, the store allocates a
     *  buffer. */
    gpuhal_buffer *buffer;
} gpuhal_item_part;

/** Fills the buffers of an entry (gpuhal_item_buffer()), with work in @p queue or with calls that return when they
 *  are done. May call the store for other keys; for the key of @p item, calls that need the entry return BUSY. If
 *  loaders on two threads acquire each other's keys, they wait for each other until one of them times out. @p queue
 *  is the one passed to gpuhal_store_acquire(), and may be NULL. @p item is valid during the call. The acquire
 *  returns any status other than OK, or CANCELLED if the status is not an error of this library. */
typedef gpuhal_status gpuhal_load_fn(void *user, gpuhal_queue *queue, gpuhal_item *item);

/** Flags of entries. */
enum {
    /** Loading takes long, so a copy is made on eviction if there is room, as for entries without a loader. */
    GPUHAL_ITEM_KEEP_COPY = 1u
};

/** Describes how to create an entry. */
typedef struct gpuhal_item_desc {
    uint32_t size;                  /**< sizeof(gpuhal_item_desc). */
    uint32_t flags;                 /**< GPUHAL_ITEM_ bits. */
    /** Entries with a lower priority are evicted first, regardless of their last use. */
    int32_t priority;
    uint32_t part_count;            /**< 0 means one buffer of `bytes` bytes, without a name. */
    uint64_t bytes;                 /**< Not used with parts. */
    const gpuhal_item_part *parts;
    gpuhal_load_fn *load;
    void *user;                     /**< For `load`. */
} gpuhal_item_desc;

/** Creates an entry for the caller to fill, and pins it. Its contents are the bytes in its buffers when the item is
 *  released; until then, other acquires of the entry wait. With @p queue the buffers are for work in that queue, as
 *  with gpuhal_pool_allocate(). `load` must be NULL. To give up, drop the entry and release the item.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; BUSY if the key already has an entry; OUT_OF_MEMORY when there is no room
 *  within @p timeout_ns; TOO_LARGE; HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: caller, gpuhal_item_release(). Threads: any. Blocks: to make room; for work of other queues up to
 *  @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_store_put(gpuhal_store *store, gpuhal_queue *queue, const void *key,
                                          uint64_t key_bytes, const gpuhal_item_desc *desc, uint64_t timeout_ns,
                                          gpuhal_item **out_item);

/** Flags of gpuhal_store_acquire(). */
enum {
    /** The caller will write to the buffers. Its work runs after all work of items that were released before, not
     *  only after work that modified the entry. The entry's copies are discarded when the item is released. */
    GPUHAL_ACQUIRE_MODIFY = 1u
};

/** Pins an entry, and restores it to device memory if necessary. Work that is enqueued in @p queue afterwards runs
 *  after all work that fills the entry; with a NULL queue the call waits for that work. If the key has no entry, @p
 *  desc, which may be NULL, says how to create one: its `load` is called on this thread, and only once, even if several
 *  threads acquire the entry at the same time. The other threads wait. If `load` fails, all these calls return its
 *  status and its sentence; the next acquire calls `load` again. @p timeout_ns: how long to wait for other threads, and
 *  for work of queues if memory is short; a running loader or copy is not interrupted.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND without an entry and without @p desc; TIMEOUT; BUSY in the loader of
 *  the same entry, and for the thread that puts it; OUT_OF_MEMORY when there is no room; TOO_LARGE; HOST_MEMORY; the
 *  failure of the loader; the failure of the work that was to fill or modify the entry, until the entry is dropped or
 *  loaded again; FILE, with key and offset, if the copy in the file is damaged or cannot be read: each time, or only
 *  once if a loader can load the entry again, since the entry is then removed; DEVICE_LOST; FORKED
 *  Owner: caller, gpuhal_item_release(). Threads: any. Blocks: to make room, for the loader, and to read the file; for
 *  other threads up to @p timeout_ns; with a NULL queue until the buffers are filled. */
GPUHAL_API gpuhal_status gpuhal_store_acquire(gpuhal_store *store, gpuhal_queue *queue, const void *key,
                                              uint64_t key_bytes, const gpuhal_item_desc *desc, uint32_t flags,
                                              uint64_t timeout_ns, gpuhal_item **out_item);

/** One of many entries. */
typedef struct gpuhal_store_key {
    const void *key;
    uint64_t key_bytes;
    const gpuhal_item_desc *desc; /**< As for gpuhal_store_acquire(). With NULL, no entry is created. */
} gpuhal_store_key;

/** Pins many entries: either all or none. This is equivalent to calls of gpuhal_store_acquire() for each entry in turn,
 *  with one timeout for all, but is cheaper: up to 32 entries that are in device memory are pinned with one access to
 *  the store. There must be room for all entries in device memory at the same time; if two threads pin many entries at
 *  once, both may get OUT_OF_MEMORY. The same key may occur several times.
 *  @return as gpuhal_store_acquire(), for the first key that fails, named in the sentence; then all of @p out_items are
 *  NULL
 *  Owner: caller, gpuhal_item_release_many() or gpuhal_item_release() for each of @p count items. Threads: any. Blocks:
 *  as gpuhal_store_acquire(). */
GPUHAL_API gpuhal_status gpuhal_store_acquire_many(gpuhal_store *store, gpuhal_queue *queue,
                                                   const gpuhal_store_key *keys, uint32_t count, uint32_t flags,
                                                   uint64_t timeout_ns, gpuhal_item **out_items);

/** Pins the contents of a file, which are read by gpuhal_read_file() if the store does not have them. All callers that
 *  request the same bytes of the same unchanged file, by any path or link, share one entry. Device, inode, size and
 *  times are in the key: a file that was replaced or written to, or got another link or mode, is read again, and the
 *  old entry is evicted like any other. A write within the resolution of the file's times is not noticed. The key
 *  begins with "file DEVICE:INODE ", the numbers of stat() in hexadecimal digits, for gpuhal_store_list() and
 *  gpuhal_store_clear(). @p bytes counts from @p file->offset; GPUHAL_WHOLE_SIZE means up to the end of the file.
 *  @return as gpuhal_store_acquire() and gpuhal_read_file(); INVALID_ARGUMENT for a descriptor; FILE when the file
 *  changes while it is read; OUT_OF_RANGE also for 0 bytes
 *  Owner: caller, gpuhal_item_release(); @p file may be freed when the call returns, its `user` when the file has
 *  been read. Threads: any. Blocks: as gpuhal_store_acquire(). */
GPUHAL_API gpuhal_status gpuhal_store_acquire_file(gpuhal_store *store, gpuhal_queue *queue, const gpuhal_file *file,
                                                   uint64_t bytes, uint64_t timeout_ns, gpuhal_item **out_item);

/** Returns the entry's buffer named @p name, or its first buffer if @p name is NULL.
 *  @return the buffer; NULL if no buffer has that name, or for NULL
 *  Owner: the item, until its release. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_buffer *gpuhal_item_buffer(const gpuhal_item *item, const char *name);

/** Unpins the entry immediately. Later users that must run after the work that was enqueued in @p queue wait for it: if
 *  they have a queue, the wait takes place on the device. With a NULL @p queue the work on the entry must have ended. A
 *  NULL @p item does nothing.
 *  Owner: @p item is invalid afterwards. Threads: any, with no other call on @p item in progress. Blocks: no. */
GPUHAL_API void gpuhal_item_release(gpuhal_item *item, gpuhal_queue *queue);

/** Unpins many entries: calls gpuhal_item_release() for each of them, in this order. Any of @p items may be NULL.
 *  Owner: the items are invalid afterwards. Threads: any, with no other call on any of them in progress. Blocks: no. */
GPUHAL_API void gpuhal_item_release_many(gpuhal_item *const *items, uint32_t count, gpuhal_queue *queue);

/** Removes an entry from the store, so that the key no longer has an entry. The memory of a pinned entry is freed with
 *  its last item.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_store_drop(gpuhal_store *store, const void *key, uint64_t key_bytes);

/** Drops all entries whose keys begin with @p prefix; with 0 bytes all entries. @p out_count may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_store_clear(gpuhal_store *store, const void *prefix, uint64_t prefix_bytes,
                                            uint64_t *out_count);

/** Restores an entry to device memory without pinning it, for a later acquire. The same as gpuhal_store_acquire()
 *  without a loader, followed by gpuhal_item_release() with the same queue; the copying takes place in that queue.
 *  @return as gpuhal_store_acquire()
 *  Owner: nothing. Threads: any. Blocks: as gpuhal_store_acquire(). */
GPUHAL_API gpuhal_status gpuhal_store_prefetch(gpuhal_store *store, gpuhal_queue *queue, const void *key,
                                               uint64_t key_bytes, uint64_t timeout_ns);

/** Moves unpinned entries together in the store's pool, so that segments become unused, and returns all unused segments
 *  to the driver. Pools do this themselves, as far as necessary, if their free memory is fragmented (pool.h). Entries
 *  stay in device memory, with all their bytes. A segment is kept if anything else in it is in use. @p timeout_ns: how
 *  long to wait for work of queues that fills entries; 0 means not at all. @p out_freed is the number of returned
 *  bytes, and may be NULL.
 *  @return GPUHAL_OK, even if nothing became free; INVALID_ARGUMENT; DEVICE_LOST; FORKED
 *  Owner: nothing. Threads: any. Blocks: to copy, and for the driver; for work of queues up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_store_compact(gpuhal_store *store, uint64_t timeout_ns, uint64_t *out_freed);

/** Copies bytes of an entry's buffer to host memory, from any tier, and leaves the entry in that tier. If the entry has
 *  a copy, this works even when the device is lost. The call is ordered after work of items that were released before;
 *  modifications through an item that is still acquired may or may not be included. @p name as for
 *  gpuhal_item_buffer(). @p timeout_ns: how long to wait for work of queues that fills or modifies the entry, and for
 *  threads that work with the entry.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND for the key or the name; OUT_OF_RANGE; TIMEOUT; BUSY for the thread
 *  that fills it; HOST_MEMORY; FILE as gpuhal_store_acquire(); the failure that left its contents unknown; DEVICE_LOST;
 *  FORKED; as gpuhal_read()
 *  Owner: caller. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_store_read(gpuhal_store *store, const void *key, uint64_t key_bytes, const char *name,
                                           uint64_t offset, void *to, uint64_t bytes, uint64_t timeout_ns);

/** The tiers that have the bytes of an entry. Bits. */
enum {
    GPUHAL_TIER_DEVICE = 1u,
    GPUHAL_TIER_HOST = 2u, /**< A copy in host memory. */
    GPUHAL_TIER_FILE = 4u
};

/** The state of an entry. */
typedef struct gpuhal_store_entry {
    uint32_t size;       /**< sizeof(gpuhal_store_entry). */
    /** GPUHAL_TIER_ bits; 0 while the entry is filled for the first time, or if filling failed. */
    uint32_t tiers;
    uint64_t bytes;      /**< Bytes of all its buffers. */
    uint32_t part_count; /**< Number of its buffers. */
    uint32_t pins;       /**< Number of acquired items. */
    int32_t priority;
    uint32_t reserved;
} gpuhal_store_entry;

/** Describes the entry of a key without using it. At most `size` bytes are written. @p out_entry may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_store_describe(gpuhal_store *store, const void *key, uint64_t key_bytes,
                                               gpuhal_store_entry *out_entry);

/** Receives an entry. May call the store. A result other than 0 ends the list. */
typedef int32_t gpuhal_store_visit_fn(void *user, const void *key, uint64_t key_bytes,
                                      const gpuhal_store_entry *entry);

/** Calls @p visit for each entry whose key begins with @p prefix, which may have 0 bytes, in the order of memcmp().
 *  Entries that other threads add or drop during the call may or may not be included.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: keys and descriptions are valid during the call of @p visit. Threads: any; @p visit is called on the
 *  calling thread. Blocks: as @p visit does. */
GPUHAL_API gpuhal_status gpuhal_store_list(gpuhal_store *store, const void *prefix, uint64_t prefix_bytes,
                                           gpuhal_store_visit_fn *visit, void *user);

/** The part of a store in one tier. */
typedef struct gpuhal_store_tier {
    uint64_t entries, bytes; /**< Entries whose bytes are in this tier, including entries that are in several tiers. */
} gpuhal_store_tier;

/** The state of a store, and its counts since it was created. */
typedef struct gpuhal_store_statistics {
    uint32_t size;     /**< sizeof(gpuhal_store_statistics). */
    uint32_t pinned;   /**< Entries with acquired items, without dropped entries. */
    uint64_t entries;
    gpuhal_store_tier device, host, file;
    uint64_t hits;     /**< Acquires of entries in device memory. */
    uint64_t misses;   /**< All other acquires that looked up the key. */
    uint64_t loads;    /**< Number of loader calls. */
    uint64_t evictions; /**< Number of times that an entry left device memory to make room. */
    uint64_t spills;    /**< Copies that were made for evictions, and their bytes. */
    uint64_t spilled_bytes;
    uint64_t restores;  /**< Entries that were restored from a copy, and their bytes. */
    uint64_t restored_bytes;
    uint64_t moves;     /**< Entries that moved within device memory to free a contiguous range. */
    uint64_t moved_bytes; /**< Bytes that were moved to free a contiguous range. */
} gpuhal_store_statistics;

/** Reads the state. At most `size` bytes are written.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_store_get_statistics(gpuhal_store *store, gpuhal_store_statistics *out_statistics);

#ifdef __cplusplus
}
#endif
#endif
