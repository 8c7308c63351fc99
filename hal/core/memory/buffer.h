/* memory/buffer.h: a buffer as the layers above see it. */
#ifndef GPUHAL_MEMORY_BUFFER_H
#define GPUHAL_MEMORY_BUFFER_H

#include "device/device.h"
#include "memory/address_index.h"

#include <gpuhal/buffer.h>
#include <gpuhal/share.h>

struct gpuhal_cached_import; /* memory/cached_import.h */

/* The origin of shared memory, imported host memory or wrapped memory; all members are zero for other memory. Set
 * before the buffer is added to the index. */
typedef struct gpuhal_origin {
    gpuhal_buffer *original;      /* the buffer that owns the memory, with a reference; has no original itself */
    gpuhal_released_fn *released; /* called with `user` and `memory`; may be NULL */
    void *user, *memory;
} gpuhal_origin;

struct gpuhal_buffer {
    _Atomic uint32_t references;
    /* The number of transfers in progress, or MAPPED, or CHANGING while a mapping is created or removed. Transfers are
     * counted only if the plugin must map the memory or make it coherent. */
    _Atomic int32_t use;
    gpuhal_device *device;
    const gpuhal_buffer *root; /* the buffer that owns the memory: this buffer, or the root of its original or whole
                                * buffer */
    /* The whole buffer, which has the plugin's memory object: this buffer or, for a suballocation, the pool's segment.
     * A transfer first checks its range in this buffer, and then uses the whole buffer at `begin` plus the offset. */
    gpuhal_buffer *whole;
    uint64_t begin;
    /* `used_in` is the last queue that used a suballocation. It saves a call to the pool for each use; see
     * gpuhal_queue_uses(). */
    bool is_part;
    struct gpuhal_pool *pool; /* set in a segment, to find the suballocation at an address; else NULL */
    _Atomic(const void *) used_in;
    gpuhal_plugin_range *range; /* for reserved addresses that are only partly backed by memory (range.c); else NULL */
    gpuhal_memory memory; /* has no plugin object in a suballocation with neighbours */
    uint64_t bytes;   /* as requested; memory.bytes may be larger */
    _Atomic(gpuhal_tag *) tag; /* counts this buffer unless it is a suballocation; NULL for a segment, or if no log
                                * needs it */
    _Atomic uint64_t charged; /* counted against the device's limit */
    bool counted;     /* `use` counts transfers; always set if needs_clean */
    bool read_only;   /* imported read-only; never a destination, since the host may be unable to write to the memory */
    /* Host and device see each other's bytes only after a flush or an invalidation. After a write the library
     * immediately makes exactly the written bytes visible to the host. Deferring the invalidation would lose data: an
     * API that keeps a shadow copy writes back whole ranges and would overwrite newer bytes. For the same reason
     * nothing may be flushed to the device between the write and the invalidation. `writing` is set meanwhile. */
    bool needs_clean;
    bool writing; /* protected by the device's mutex; a transfer between two buffers sets it only in the destination */
    _Atomic bool refuses_write, refuses_read; /* the plugin's slot returned NOT_SUPPORTED for this memory */
    gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]; /* empty if there is no such address */
    /* The mapping, while `use` is MAPPED. */
    void *mapped;
    uint64_t mapped_offset, mapped_bytes;
    uint32_t mapped_access;
    /* The next four members are as requested from the plugin, but export_kinds may include the host pointer; devices
     * that import the memory need them. */
    gpuhal_memory_kind kind;
    uint32_t export_kinds;
    uint64_t alignment, allocated;
    gpuhal_origin origin;
    _Atomic(struct gpuhal_cached_import *) cached_imports; /* imports by other devices, made for copies */
    /* Links released buffers whose `origin.released` the service thread must call, and segments for
     * gpuhal_segments_release(). */
    gpuhal_buffer *next_released;
};
#define GPUHAL_BUFFER_MAPPED (-1)
#define GPUHAL_BUFFER_CHANGING (-2)

/* Reads and checks the members that this library version knows. `call` is the function's name for messages. */
gpuhal_status gpuhal_buffer_take_desc(const char *call, const gpuhal_buffer_desc *given, gpuhal_buffer_desc *out);
/* Fills in the request to the plugin. The size is rounded up for aligned accesses at the end and for importers of host
 * memory. Returns TOO_LARGE or NOT_SUPPORTED, and sets the error detail. */
gpuhal_status gpuhal_buffer_plan(gpuhal_device *device, const gpuhal_buffer_desc *desc, gpuhal_alloc *out_alloc);
/* Returns the memory kinds that can be exported with a handle, as bits. */
uint32_t gpuhal_exportable_kinds(const gpuhal_device *device);
/* Writes the names of memory kinds, separated by commas: "device, upload". A buffer of 64 bytes is enough. */
void gpuhal_format_kinds(uint32_t kinds, char *out, size_t bytes);
static inline bool gpuhal_is_descriptor_kind(gpuhal_handle_kind kind)
{
    return kind == GPUHAL_HANDLE_OPAQUE_FD || kind == GPUHAL_HANDLE_DMABUF_FD;
}
/* Only the plugin knows the contents of vendor handles, so the core never reads, copies or closes them. */
static inline bool gpuhal_is_vendor_kind(gpuhal_handle_kind kind)
{
    return kind >= GPUHAL_VENDOR_KIND_FIRST && kind < 32;
}

/* ---- vendor.c: plugin memory */

/* Calls the plugin and checks its result. `bytes` is the application's requested size, for messages. An imported
 * descriptor stays open and still belongs to the caller. */
gpuhal_status gpuhal_memory_allocate(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                     gpuhal_memory *out_memory);
/* If the application requested host sharing, checks that other devices can import the memory at its host address. On
 * failure releases the memory, sets the error detail and returns DRIVER. */
gpuhal_status gpuhal_memory_check_shareable(gpuhal_device *device, uint32_t export_kinds, gpuhal_memory *memory);
/* Calls memory_flush or memory_invalidate, which the device must offer. Sets no error detail. */
gpuhal_status gpuhal_memory_clean(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                                  bool invalidate);
/* Releases memory, unless the driver hangs. */
void gpuhal_memory_release(gpuhal_device *device, gpuhal_memory *memory);
/* Returns the granularity for a range of *range_bytes, and rounds the size up to a multiple of it. Returns 0 if the
 * plugin has no virtual memory or does not report a granularity. Preserves the error detail. */
uint64_t gpuhal_memory_page_bytes(gpuhal_device *device, uint64_t *range_bytes);
/* `bytes` is a multiple of the granularity. The second function releases the addresses and all committed memory. */
gpuhal_status gpuhal_memory_reserve(gpuhal_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                    gpuhal_plugin_range **out_range);
void gpuhal_memory_release_range(gpuhal_buffer *buffer);
/* A decommit releases the memory of one whole commit. Only one thread at a time may call these functions for a
 * buffer. */
gpuhal_status gpuhal_memory_commit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes);
gpuhal_status gpuhal_memory_decommit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes);
/* Returns an empty buffer of this size, not charged and not yet in the index. Returns NULL if out of memory. */
gpuhal_buffer *gpuhal_buffer_blank(gpuhal_device *device, uint64_t bytes);
void gpuhal_buffer_free(gpuhal_buffer *buffer);
/* A failed allocation, passed to gpuhal_layers.relieve. The thread's last error describes the failure. */
typedef struct gpuhal_relief {
    gpuhal_device *device;
    uint64_t bytes;
    uint64_t held_bytes;  /* allocated on the device before this allocation was tried */
    uint64_t deadline_ns; /* 0 means do not wait */
    bool asks;            /* stores and callbacks may be used as well */
    struct gpuhal_pool *pool; /* the pool that requests a segment, and that reports the failure; else NULL */
    gpuhal_status (*again)(void *user); /* retries the allocation */
    void *user;
} gpuhal_relief;

/* Creates a pool's segment, like gpuhal_buffer_create(). A refusal does not count as a device fault yet. Stores and
 * callbacks are not used. */
gpuhal_status gpuhal_buffer_create_segment(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                           struct gpuhal_pool *pool, gpuhal_buffer **out_buffer);
/* Charges `bytes` to the device's limit. `asked` is the caller's requested size, for messages. On OUT_OF_MEMORY sets
 * the error detail. */
gpuhal_status gpuhal_memory_charge(gpuhal_device *device, uint64_t bytes, uint64_t asked);
void gpuhal_memory_discharge(gpuhal_device *device, uint64_t bytes);
void gpuhal_memory_count_in(gpuhal_device *device, uint64_t bytes);
/* Returns the device's free memory as reported by its driver or the system, or UINT64_MAX if neither reports it.
 * Preserves the error detail. */
uint64_t gpuhal_memory_free_bytes(gpuhal_device *device);
/* The last step of creation. Adds the buffer to the index, and a reference to its gpuhal object. `memory` must be
 * complete. */
void gpuhal_buffer_enlist(gpuhal_buffer *buffer);
/* Creates a buffer from memory that the device imports according to `alloc`. Adds a reference to the original. */
gpuhal_status gpuhal_buffer_of_import(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                      gpuhal_origin origin, gpuhal_buffer **out_buffer);
/* Exports a new handle for the memory, and returns the memory's offset in the exported allocation. */
gpuhal_status gpuhal_buffer_give_out(gpuhal_buffer *buffer, gpuhal_handle_kind kind, gpuhal_handle *out_handle,
                                     uint64_t *out_offset);
/* Returns the granularity of host memory imports, a multiple of the device's copy alignment. */
uint64_t gpuhal_import_unit(const gpuhal_device *device);

/* ---- tag.c */

/* Finds or creates the tag with this text. NULL or "" is the tag of untagged buffers. Returns INVALID_ARGUMENT or
 * HOST_MEMORY. */
gpuhal_status gpuhal_tag_get(gpuhal_device *device, const char *text, gpuhal_tag **out_tag);
/* Adds a buffer to the tag's counts, or removes it from them. Accepts NULL. */
void gpuhal_tag_count(gpuhal_tag *tag, uint64_t bytes, bool in);

/* Releases a reference on a thread that retires work. This thread releases the memory, but the service thread calls
 * `origin.released`. */
void gpuhal_buffer_drop(gpuhal_buffer *buffer);
/* The second half of releasing: calls `origin.released` if set, and frees the structure. Called with no lock held. */
void gpuhal_buffer_end(gpuhal_buffer *buffer);
/* Returns the flags for other devices' imports of the buffer's memory. */
static inline uint32_t gpuhal_buffer_import_flags(const gpuhal_buffer *buffer)
{
    return buffer->read_only ? GPUHAL_IMPORT_READ_ONLY : 0;
}
/* Returns INVALID_ARGUMENT with its detail. */
gpuhal_status gpuhal_buffer_refuse_write(const gpuhal_buffer *buffer);

/* Adds a reference, unless the last reference was already released: the index may still contain the buffer for a
 * moment. */
static inline bool gpuhal_buffer_try_retain(gpuhal_buffer *buffer)
{
    uint32_t references = atomic_load(&buffer->references);
    while (references > 0) {
        if (atomic_compare_exchange_weak(&buffer->references, &references, references + 1)) {
            return true;
        }
    }
    return false;
}
/* For a suballocation, sets the error detail and returns NOT_SUPPORTED, unless the suballocation fills a segment that
 * can be exported. Access to any other suballocation would include its neighbours. */
gpuhal_status gpuhal_buffer_check_separate(const gpuhal_buffer *buffer, const char *action);
/* Returns BUSY with its detail. */
gpuhal_status gpuhal_buffer_busy(const gpuhal_buffer *buffer);

/* Must enclose every transfer. `writes` is true if the transfer writes to this buffer. Entering a mapped buffer sets
 * the error detail and returns BUSY. */
gpuhal_status gpuhal_buffer_enter_counted(gpuhal_buffer *buffer, bool writes);
void gpuhal_buffer_leave_counted(gpuhal_buffer *buffer, bool writes);
static inline gpuhal_status gpuhal_buffer_enter(gpuhal_buffer *buffer, bool writes)
{
    if (__builtin_expect(buffer->counted, 0)) {
        return gpuhal_buffer_enter_counted(buffer, writes);
    }
    return atomic_load_explicit(&buffer->use, memory_order_relaxed) == 0 ? GPUHAL_OK : gpuhal_buffer_busy(buffer);
}

static inline void gpuhal_buffer_leave(gpuhal_buffer *buffer, bool writes)
{
    if (__builtin_expect(buffer->counted, 0)) {
        gpuhal_buffer_leave_counted(buffer, writes);
    }
}

/* Either buffer may be NULL. */
static inline void gpuhal_buffers_leave(gpuhal_buffer *to, gpuhal_buffer *from)
{
    if (from) {
        gpuhal_buffer_leave(from, false);
    }
    if (to) {
        gpuhal_buffer_leave(to, true);
    }
}

static inline gpuhal_status gpuhal_buffers_enter(gpuhal_buffer *to, gpuhal_buffer *from)
{
    gpuhal_status status = to ? gpuhal_buffer_enter(to, true) : GPUHAL_OK;
    if (!status && from && (status = gpuhal_buffer_enter(from, false))) {
        gpuhal_buffers_leave(to, NULL);
    }
    return status;
}

/* Returns whether a transfer would return BUSY now; false for NULL. */
static inline bool gpuhal_buffer_is_mapped(const gpuhal_buffer *buffer)
{
    return buffer && atomic_load_explicit(&buffer->use, memory_order_relaxed) < 0;
}

/* For a buffer with needs_clean: makes the host's writes visible to the device (false), or the device's writes visible
 * to the host (true). */
gpuhal_status gpuhal_buffer_clean(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, bool invalidate);
/* Must be called after every successful write by the library, before gpuhal_buffer_leave(). */
static inline gpuhal_status gpuhal_buffer_written(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return __builtin_expect(!buffer->needs_clean, 1) ? GPUHAL_OK : gpuhal_buffer_clean(buffer, offset, bytes, true);
}

/* ---- range.c: for pools on devices with virtual memory; one call at a time per range */

/* Creates a buffer of addresses that have no memory yet. Charges nothing. Returns NOT_SUPPORTED without virtual
 * memory. */
gpuhal_status gpuhal_range_create(gpuhal_device *device, uint64_t bytes, struct gpuhal_pool *pool,
                                  gpuhal_buffer **out_buffer);
/* Commits memory to addresses, under the rules of gpuhal_buffer_create_segment(). Offset and bytes are multiples of
 * gpuhal_memory_page_bytes(). */
gpuhal_status gpuhal_range_commit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes);
/* Releases the memory of one commit. On failure it stays committed. */
gpuhal_status gpuhal_range_decommit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes);

#endif
