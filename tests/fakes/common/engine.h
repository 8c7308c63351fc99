/* tests/fakes/common/engine.h: the parts of a fake driver that both vendors' functions share: devices, contexts,
 * streams, memory and copies. HIP adopted CUDA's model and numbers, so one engine serves both.
 *
 * Each device has a budget of bytes. Device memory is simulated with host memory. The address that the program gets
 * points to pages without access rights, and the bytes are in separate memory (`shadow`). So a program crashes if its
 * CPU code accesses device memory, as with a real device. Addresses are unique across all devices and the host, as with
 * unified addressing.
 *
 * One lock protects everything. fake_begin() acquires it and fake_leave() releases it. Each stream has a thread that
 * runs the stream's work. The thread does not hold the lock while it moves bytes. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include "codes.h"
#include "report.h"
#include "script.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_PAGE = 4096,
    FAKE_GRANULARITY = 2 << 20,
    FAKE_NON_BLOCKING = 1,
    FAKE_DISABLE_TIMING = 2,
    FAKE_LONGEST_PITCH = 2147483647
};

/* A point in a stream. Events and waits refer to it. */
typedef struct fake_point {
    unsigned references;
    bool done;
    uint64_t time_ns;
} fake_point;

/* An operation in a stream. */
typedef struct fake_work {
    struct fake_work *next;
    void (*run)(struct fake_work *work); /* called without the lock; NULL if there is nothing to do */
    unsigned char *to;
    const unsigned char *from;
    size_t to_pitch, from_pitch, bytes, rows;
    unsigned value, value_bytes;
    void *owned;       /* freed with the work */
    fake_code failure; /* sticky error that the work causes in the context */
    fake_point *after; /* the work waits for this point; NULL for no wait */
    fake_point *point; /* completed after the work; NULL if not requested */
} fake_work;

typedef struct fake_context fake_context;
typedef struct fake_stream fake_stream;
typedef struct fake_event fake_event;

struct fake_stream {
    fake_stream *next;
    fake_context *context;
    unsigned flags;
    int priority;
    fake_work *head, *tail;
    bool started, closing;
    pthread_t thread;
    pthread_cond_t wake;
    fake_point *last; /* follows all work of the stream; NULL if the stream was never used */
};

struct fake_event {
    fake_event *next;
    fake_context *context;
    unsigned flags;
    fake_point *point;         /* NULL if never recorded */
    const fake_stream *stream; /* the stream of the last recording, which may have been destroyed */
};

/* Owns streams, events and memory. A CUDA device may have several contexts, a HIP device only one. */
struct fake_context {
    fake_context *next;
    unsigned device; /* ordinal */
    bool primary;
    unsigned retains;
    unsigned flags;
    unsigned peers;     /* bits of the ordinals whose memory this context's kernels may access */
    fake_code error;    /* sticky error that calls in the context return, or 0 */
    fake_stream legacy; /* the NULL stream */
};

/* A device as the program sees it, after the vendor's variables for visible devices have been applied. */
typedef struct fake_device {
    const fake_plan *plan;
    const fake_mig *mig;   /* NULL if the device is not a MIG device */
    unsigned physical;     /* number in the script */
    unsigned partition;    /* number of the partition of an AMD device, otherwise 0 */
    uint64_t memory;       /* size in bytes */
    uint64_t taken;        /* bytes that this process uses */
    fake_context *primary; /* NULL if it does not exist */
    unsigned primary_flags;
    fake_code lost; /* code that fake_device_at() returns if the device is lost, otherwise 0 */
} fake_device;

typedef enum fake_region_kind {
    FAKE_DEVICE_MEMORY,
    FAKE_HOST_MEMORY,
    FAKE_REGISTERED_MEMORY,
    FAKE_MANAGED_MEMORY,
    FAKE_RANGE,
    FAKE_IMPORTED
} fake_region_kind;

/* Memory that the library manages. */
typedef struct fake_region {
    struct fake_region *next;
    fake_region_kind kind;
    uintptr_t address;
    size_t size;
    unsigned char *shadow; /* address of the bytes; equals `address` for host memory */
    fake_context *context; /* NULL for ranges, which belong to the process */
    unsigned device;       /* ordinal of the context's device; has no meaning for ranges */
    unsigned id;           /* never reused */
    struct fake_mapping *mappings;
} fake_region;

typedef struct fake_state {
    pthread_mutex_t lock;
    pthread_cond_t finished; /* signaled when work has ended; used with the lock */
    bool initialized;
    long process;
    unsigned device_count;
    fake_device devices[FAKE_DEVICES];
    fake_context *contexts;
    fake_stream *streams;
    fake_event *events;
    fake_region *regions;
} fake_state;

extern fake_state fake;

/* state.c */

/* Begins a call. Acquires the lock, counts the call and executes its fault. The fault is a crash, a hang, the loss of a
 * device, or a code in @p out_fault. The call must return this code, if it is not 0, without any effect. */
void fake_begin(const char *function, fake_code *out_fault);
fake_code fake_leave(fake_code code);
/* Returns the device with this ordinal, or NULL and the code if it does not exist or is lost. Requires the lock,
 * like all functions below. */
fake_device *fake_device_at(int ordinal, fake_code *out_code);
/* Adds a device that the program sees. */
void fake_device_see(unsigned physical, const fake_mig *mig, unsigned partition);
/* fake_context_new() returns NULL if the device does not have enough memory. fake_context_free() also destroys all
 * objects of the context. */
fake_context *fake_context_new(unsigned ordinal, unsigned flags, bool primary);
void fake_context_free(fake_context *context);
bool fake_context_alive(const fake_context *context);
/* If a `lose` statement of the script applies to this call, and the call is asynchronous, returns the failure to store
 * in the call's work. Otherwise, and if called again, returns 0. */
fake_code fake_take_poison(void);
void fake_context_fail(fake_context *context, fake_code code);
fake_code fake_peer_enable(fake_context *context, unsigned peer);
fake_code fake_peer_disable(fake_context *context, unsigned peer);

/* Implemented by the vendor's part. The first function returns whether the call's work may report a failure later. The
 * second one destroys the vendor's own objects of a context that is being destroyed. */
bool fake_is_asynchronous(const char *function);
void fake_modules_free(fake_context *context);

/* stream.c */

uint64_t fake_now_ns(void);
fake_stream *fake_stream_new(fake_context *context, unsigned flags, int priority);
/* Returns the stream, or NULL if it is not a stream or was destroyed, which is a violation. */
fake_stream *fake_stream_known(const char *function, const fake_stream *stream);
/* Appends a copy of the work to the stream. The work also waits for other streams as the rules of the legacy stream
 * require. */
fake_code fake_submit(fake_stream *stream, const fake_work *work);
bool fake_stream_is_idle(const fake_stream *stream);
/* Waits until the stream's present work has ended. Releases the lock during the wait. */
void fake_stream_drain(fake_stream *stream);
/* Waits for all streams of a context, or of all contexts if the argument is NULL. */
void fake_context_drain(fake_context *context);
void fake_stream_finish(fake_stream *stream);
void fake_stream_free(fake_stream *stream);
void fake_point_release(fake_point *point);
/* Waits for the point, or returns immediately for NULL. Releases the lock during the wait. */
void fake_point_wait(fake_point *point);

/* event.c: an event refers to the moment of its latest recording in a stream. */

fake_event *fake_event_new(fake_context *context, unsigned flags);
void fake_event_free(fake_event *event);
/* Returns the event, or NULL if it is not an event or, if @p context is not NULL, belongs to another context, which is
 * a violation. */
fake_event *fake_event_find(const char *function, const fake_context *context, const fake_event *event);
fake_code fake_event_record(fake_event *event, fake_stream *stream);
fake_code fake_event_query(const fake_event *event);
fake_code fake_event_wait(fake_event *event);
fake_code fake_event_elapsed(const fake_event *from, const fake_event *to, float *out_milliseconds);

/* memory.c */

/* Returns the region that contains all of the bytes, or NULL. */
fake_region *fake_region_find(uintptr_t address, size_t bytes);
fake_region *fake_region_add(fake_region_kind kind, uintptr_t address, size_t bytes, unsigned char *shadow,
                             fake_context *context);
void fake_region_free(fake_region *region);
bool fake_region_is_host(const fake_region *region);
/* Reserves address space without access rights for device memory. Returns 0 on failure. */
uintptr_t fake_reserve(size_t bytes, size_t alignment);
/* Takes bytes from the device's budget. Returns false if too few are left. */
bool fake_take(unsigned device, uint64_t bytes);
void fake_give(unsigned device, uint64_t bytes);
uint64_t fake_free_bytes(unsigned device);
fake_code fake_memory_new(fake_context *context, size_t bytes, uintptr_t *out_address);
/* Allocates page-locked or managed memory. */
fake_code fake_host_memory_new(fake_context *context, fake_region_kind kind, size_t bytes, void **out_memory);
/* Returns whether a region contains at least one byte of the pages on which these bytes lie. */
bool fake_pages_are_known(const void *memory, size_t bytes);
fake_code fake_host_memory_register(fake_context *context, void *memory, size_t bytes, bool read_only);
/* If a region of the kind @p kind or @p other begins at this address, waits for all work of all devices and frees the
 * region. Otherwise reports a violation and returns @p unknown. */
fake_code fake_memory_free(const char *function, uintptr_t address, fake_region_kind kind, fake_region_kind other,
                           fake_code unknown);

/* The location of the bytes of a transfer or a kernel. */
typedef struct fake_place {
    unsigned char *bytes;
    bool pageable;
    bool device;
    unsigned ordinal;
} fake_place;

/* Finds the bytes. If @p host is false, returns INVALID_VALUE for memory that the library does not manage. */
fake_code fake_place_find(const char *function, fake_context *context, uintptr_t address, size_t bytes, bool host,
                          fake_place *out);

/* copy.c */

/* The rows of bytes that a call moves, with a pitch for each side. */
typedef struct fake_move {
    uintptr_t to, from;
    size_t to_pitch, from_pitch, bytes, rows;
    bool to_host, from_host; /* whether the side may be pageable host memory */
} fake_move;

/* Enqueues the move. Pageable host memory is staged: the call reads a source before it returns, and has filled a
 * target when it returns. */
fake_code fake_submit_move(const char *function, fake_context *context, fake_stream *stream, const fake_move *what);
fake_code fake_submit_fill(const char *function, fake_context *context, fake_stream *stream, uintptr_t to,
                           unsigned value, unsigned value_bytes, size_t count);

/* launch.c: kernels that run on the host. The caller sets the kernel's name, groups and shared memory. */

/* Reads the arguments of a known kernel. */
void fake_launch_read(fake_launch *io, void **parameters);
fake_code fake_submit_launch(fake_context *context, fake_stream *stream, const fake_launch *as);

/* virtual.c: physical memory, address ranges, mappings, and memory imported by file descriptor. */

typedef struct fake_physical fake_physical;
typedef struct fake_import fake_import;

fake_code fake_physical_new(const char *function, size_t bytes, int device, bool exportable,
                            fake_physical **out_physical);
fake_code fake_physical_release(const char *function, uintptr_t handle);
fake_code fake_physical_export(uintptr_t handle, int *out_fd);
fake_code fake_physical_import(int fd, fake_physical **out_physical);
/* If the alignment is 0, the range is aligned to the granularity, but not to any larger power of two. */
fake_code fake_range_reserve(const char *function, size_t bytes, size_t alignment, uintptr_t *out_address);
fake_code fake_range_free(const char *function, uintptr_t address, size_t bytes);
fake_code fake_range_map(const char *function, uintptr_t address, size_t bytes, uintptr_t handle);
fake_code fake_range_unmap(const char *function, uintptr_t address, size_t bytes);
fake_code fake_range_access(const char *function, uintptr_t address, size_t bytes, int device, bool granted);
bool fake_range_reached(const fake_region *range, uintptr_t address, size_t bytes, unsigned device);
/* Finds the mapping that contains an address of the range. Returns false if nothing is mapped at the address. */
bool fake_range_piece(const fake_region *range, uintptr_t address, uintptr_t *out_start, size_t *out_size);
unsigned fake_region_device(const fake_region *region, uintptr_t address);
/* Takes ownership of the descriptor on success. */
fake_code fake_import_new(int fd, size_t bytes, fake_import **out_import);
fake_code fake_import_free(const char *function, fake_import *import);
fake_code fake_import_map(fake_context *context, fake_import *import, size_t offset, size_t bytes,
                          uintptr_t *out_address);

#endif
