/** gpuhal/plugin.h: the header for vendors. A plugin needs only this header, types.h and code.h, and native.h for
 *  native handles.
 *
 *  A plugin is one shared library that exports one function, gpuhal_plugin_query(), and does not link to any part of
 *  gpuhal. It implements the slots below with the vendor's API; the core checks arguments, stages and splits transfers,
 *  caches, describes errors and counts. docs/vendor-guide.md leads from an empty folder to a passing `gpuhal-check`;
 *  docs/plugin-abi.md gives the reason for each rule.
 *
 *  Rules for everything below
 *  - The core has checked the arguments of slots: a required pointer is never NULL, offsets and sizes are inside the
 *    memory object and multiples of the alignments that the device stated, sizes are never 0, and ranges do not overlap
 *    within one memory object. Only `allocate` and `open` must reject requests that they do not support.
 *  - A slot marked BLOCKS may wait for the device. The core calls it without holding a lock of its own, except the lock
 *    of the buffer that the slot writes if the buffer is not HOST_COHERENT. All other slots must return promptly. So
 *    must transfers that get a queue.
 *  - The core never makes two calls on one queue at once. This includes event_record and queue_wait, which get the
 *    queue. But event_query, event_block, event_notify and elapsed may overlap calls on their event's queue. All calls
 *    on one event may overlap each other, except event_record and event_destroy, which run alone on their event.
 *  - Transfers may use one memory object from several threads at once; no other call on a memory object overlaps its
 *    release, map or unmap. For one instance, no call overlaps `start`, and calls of `enumerate` do not overlap each
 *    other; all other calls may overlap.
 *  - The core calls `start`, `enumerate`, `describe`, `open`, `close`, `sample`, `processes` and `link` on its own
 *    threads, not always on the same thread, and abandons a thread whose call exceeds its deadline. Only `open` with
 *    something to adopt is called on the application's thread. A plugin must therefore not rely on thread-local state.
 *    If an `open` succeeds too late, the core closes the device immediately.
 *  - The core owns the structures that a call fills, and sets their `size`. A plugin must not change the size or any
 *    byte beyond it, even if its own header has more members, and must not read beyond the lengths that it is given.
 *  - Functions of the host table copy strings before they return. Strings that a plugin returns must stay valid until
 *    the process exits.
 *  - No call may abort, exit, print, throw, longjmp, install a signal handler, or change the process's directory,
 *    locale, environment, umask, signal mask or current vendor context. A plugin has no constructor and no destructor,
 *    and is never unloaded.
 *  - Errors are returned as a status. If the vendor's API returned an error code, the plugin must first pass the code
 *    to gpuhal_host.report().
 */
#ifndef GPUHAL_PLUGIN_H
#define GPUHAL_PLUGIN_H

#include <gpuhal/code.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this ABI. While the major number is 0 the core requires an equal minor number; from 1.0 on, minor
 *  versions only add members at the end. The change log is at the end of docs/plugin-abi.md. */
#define GPUHAL_ABI_MAJOR 0u
#define GPUHAL_ABI_MINOR 4u
#define GPUHAL_ABI ((GPUHAL_ABI_MAJOR << 16) | GPUHAL_ABI_MINOR)

/* The plugin's own objects: defined by the plugin, opaque to the core. */
typedef struct gpuhal_plugin_instance gpuhal_plugin_instance;
typedef struct gpuhal_plugin_device gpuhal_plugin_device;
typedef struct gpuhal_plugin_queue gpuhal_plugin_queue;
typedef struct gpuhal_plugin_event gpuhal_plugin_event;
typedef struct gpuhal_plugin_range gpuhal_plugin_range;
typedef struct gpuhal_plugin_program gpuhal_plugin_program;
typedef struct gpuhal_plugin_kernel gpuhal_plugin_kernel;
typedef struct gpuhal_plugin_recording gpuhal_plugin_recording;

/** Receives facts from the plugin. The core owns the sink. The sink is valid only during the call that receives it, and
 *  only on the thread of this call. */
typedef struct gpuhal_sink gpuhal_sink;

/* ---- functions of the core */

/** One function of a vendor library for gpuhal_host.library() to find. */
typedef struct gpuhal_symbol {
    const char *name;
    /** Address of a function pointer, which is set to the function, or to NULL if an optional function is missing. */
    void *slot;
    int32_t required;  /**< Not 0 if the library cannot be used without this function. */
    uint32_t reserved; /**< The core ignores it. */
} gpuhal_symbol;

/** A process that uses a device, for gpuhal_host.process(). */
typedef struct gpuhal_plugin_process {
    uint32_t size;  /**< sizeof(gpuhal_plugin_process) as the plugin knows it. */
    uint32_t flags; /**< GPUHAL_PROCESS_ bits. */
    /** The pid that the driver reports. If this process cannot see a process with this pid, set
     *  GPUHAL_PROCESS_FOREIGN_NAMESPACE. If the driver hides the pid, set the flag and a pid of 0. */
    uint32_t pid;
    /** Share of the time during which the device worked for the process; valid with GPUHAL_PROCESS_BUSY_KNOWN. */
    uint32_t busy_permille;
    uint64_t memory_bytes;  /**< Device memory that the process uses; valid with GPUHAL_PROCESS_MEMORY_KNOWN. */
    /** The driver's name for the process, valid UTF-8 without control characters. With NULL, the core reads the name
     *  from the system. */
    const char *name;
} gpuhal_plugin_process;

/** Levels of gpuhal_host.log(). */
enum { GPUHAL_LOG_ERROR = 1, GPUHAL_LOG_WARNING = 2, GPUHAL_LOG_INFO = 3, GPUHAL_LOG_DEBUG = 4 };

/** Functions of the core. Each copy of the core in the process has its own table. Two engines may each contain a
 *  copy and share the plugin, so a plugin must not keep a global host. Each call receives a host and the instance that
 *  start() created for this host, or a device that was opened with both. All functions may be called from any thread;
 *  none blocks except library(). */
typedef struct gpuhal_host gpuhal_host;
struct gpuhal_host {
    uint32_t size; /**< sizeof(gpuhal_host) as the core knows it. */
    uint32_t abi;  /**< GPUHAL_ABI of the core. */

    /** Writes a line to the application's log. */
    void (GPUHAL_CALL *log)(const gpuhal_host *host, int32_t level, const char *text);

    /** Sets the detail of an error, and returns @p status for the plugin to return: `return host->report(…);` @p
     *  vendor_call and @p text may be NULL, and a @p vendor_code of 0 means that there is no code. A code without a
     *  call is also shown. The detail is kept per thread. */
    gpuhal_status (GPUHAL_CALL *report)(const gpuhal_host *host, gpuhal_status status, const char *vendor_call,
                                        int64_t vendor_code, const char *text);

    /** Report facts. device() begins a device (only in enumerate()); the following facts belong to it. A later fact
     *  with the same key replaces the earlier one. A key without a fact counts as missing with the reason "not
     *  supported". */
    void (GPUHAL_CALL *device)(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index);
    void (GPUHAL_CALL *u64)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value);
    void (GPUHAL_CALL *text)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value);
    void (GPUHAL_CALL *missing)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason,
                                const char *why);

    /** Copies the value that the application (gpuhal_config.options) or the operator (GPUHAL_OPTIONS) set for @p key,
     *  "<plugin>.<option>". Must be called only in start(), for every option of the plugin, because the core warns
     *  about options that were set but not read.
     *  @return GPUHAL_OK; NOT_FOUND when the option was not set; OUT_OF_RANGE when the value has @p bytes or more;
     *  @p out_value is then "". */
    gpuhal_status (GPUHAL_CALL *option)(const gpuhal_host *host, const char *key, char *out_value, uint32_t bytes);

    /** Opens the first of @p sonames (ended by NULL) that loads, or the library that GPUHAL_<setting>_LIBRARY names,
     *  and sets the slots of @p symbols. The library is never closed. The error detail lists each name and why it
     *  failed.
     *  @return GPUHAL_OK, or GPUHAL_ERROR_NO_DRIVER when no library loads or a required symbol is missing. */
    gpuhal_status (GPUHAL_CALL *library)(const gpuhal_host *host, const char *setting, const char *const *sonames,
                                         const gpuhal_symbol *symbols, uint32_t count);

    /** Notifies the core that devices of this plugin appeared, vanished or changed. While the application listens
     *  for changes, the core soon enumerates again, on one of its threads; several notifications are merged. May be
     *  called from any thread, including the driver's, at any time once start() was called; returns immediately.
     *  Does nothing in the helper process. */
    void (GPUHAL_CALL *changed)(const gpuhal_host *host);

    /** Returns the core's extension "<owner>.<name>": a table of functions, constant and valid until the process
     *  exits. Returns NULL for an unknown name; this version has no extensions. A plugin must also work without the
     *  extension. */
    const void *(GPUHAL_CALL *query_extension)(const gpuhal_host *host, const char *name);

    /** Sets the source of the values that follow in this call of sample(): a library or a system interface ("nvml",
     *  "hwmon"); 1 to 15 lower-case letters, digits, `-` and `_`. The suffix "-board" ("nvml-board") means that the
     *  values are measured for the whole GPU but reported for a partition. Until the first call, and after NULL, the
     *  source is this plugin's API. The same applies to the processes that processes() reports. */
    void (GPUHAL_CALL *source)(const gpuhal_host *host, gpuhal_sink *sink, const char *name);
    /** Reports one process; only in processes(). If a process is reported twice, it counts once, with the flags of both
     *  reports. */
    void (GPUHAL_CALL *process)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_plugin_process *process);
};

/* ---- memory */

/** Flags of gpuhal_memory. */
enum {
    GPUHAL_MEMORY_HOST_COHERENT = 1u, /**< Host access requires no memory_flush() or memory_invalidate(). */
    /** Host reads are fast. For copies to other devices the core reads such memory directly only if it is also
     *  HOST_COHERENT; otherwise the device copies the bytes out. */
    GPUHAL_MEMORY_HOST_CACHED = 2u,
    /** The memory is the device's own. The flag matters only for memory with a host address: peer copies are tried only
     *  if the flag is set. Memory without a host address counts as if the flag were set. */
    GPUHAL_MEMORY_DEVICE_LOCAL = 4u,
    /** Kernels cannot use this memory, so the core rejects launches with it. */
    GPUHAL_MEMORY_NO_KERNELS = 8u,
    /** A launch cannot read its numbers of groups from this memory, so the core rejects such a launch. */
    GPUHAL_MEMORY_NO_INDIRECT = 16u
};

/** One allocation of the plugin. The core zeroes the structure and sets `size` first, later passes it back
 *  unchanged, and addresses bytes in it as (memory, offset). */
typedef struct gpuhal_memory {
    uint32_t size;
    uint32_t flags;
    uint64_t bytes; /**< At least the requested size. */
    /** The memory's address in the device's kernels. 0 means that kernels can access the memory only as an argument,
     *  and that the core rejects it in the `uses` of a launch. */
    uint64_t address;
    void *object; /**< The plugin's own object, opaque to the core. */
    /** The host address, valid as long as the memory exists; a multiple of 64 unless the memory was imported. NULL if
     *  there is none, or only through map. */
    void *host;
} gpuhal_memory;

/** A request to allocate or to import memory. */
typedef struct gpuhal_alloc {
    uint32_t size;
    gpuhal_memory_kind kind;
    uint64_t bytes;
    /** Power of two for the device address, and for the host address if there is one. 0 means the device's own
     *  alignment. */
    uint64_t alignment;
    uint64_t import_offset; /**< Offset of the memory in the imported handle. */
    uint64_t reserved[2];
    /** Bits 1 << gpuhal_handle_kind: several APIs need the kinds at allocation. Never includes HOST_POINTER, because
     *  gpuhal_memory.host is this pointer. */
    uint32_t export_kinds;
    /** GPUHAL_IMPORT_ bits, for host memory only. READ_ONLY: the memory may be mapped without write access, and is
     *  never a destination; if the driver cannot import such memory, return NOT_SUPPORTED. */
    uint32_t flags;
    uint32_t peer_count;
    uint32_t reserved2;
    gpuhal_plugin_device *const *peers; /**< Devices that must be able to access this memory. */
    /** If the handle's kind is not 0, the plugin imports this memory in place of an allocation. Host memory stays the
     *  caller's until release, which must return only once the vendor's API no longer uses the memory. Its address and
     *  bytes are multiples of the reported import alignment, and gpuhal_memory.host must be the pointer passed in. A
     *  file descriptor becomes the plugin's only on success. For a descriptor, kind, bytes, alignment and export_kinds
     *  equal those of the exporting allocation, since APIs without self-describing descriptors need them (Vulkan). The
     *  same applies to a handle of the vendor's own kind (GPUHAL_VENDOR_KIND_FIRST to 31), which the core passes on and
     *  never closes. The handle is the last member, so that it can grow. */
    gpuhal_handle handle;
} gpuhal_alloc;

/** One side of a rectangular copy: memory of the device, or host memory. */
typedef struct gpuhal_plugin_rect {
    uint64_t offset;      /**< Offset of the first byte. */
    uint64_t row_pitch;   /**< Bytes from row to row; at least the width. */
    uint64_t slice_pitch; /**< Bytes from slice to slice; at least row_pitch times the rows. */
    uint64_t reserved;    /**< The plugin ignores it. */
    const gpuhal_memory *memory; /**< NULL for host memory. */
    void *host;                  /**< Used when memory is NULL. The source is only read. */
} gpuhal_plugin_rect;

/** One argument of a launch, in the order of the kernel's parameters. */
typedef struct gpuhal_plugin_argument {
    gpuhal_parameter_kind kind;
    uint32_t access;      /**< For memory: GPUHAL_ACCESS_READ, GPUHAL_ACCESS_WRITE, or both. */
    uint64_t offset;      /**< Offset in the memory. */
    uint64_t bytes;       /**< Size of the memory range, of the value, or of local memory. */
    uint64_t reserved[2]; /**< The plugin ignores them. */
    /** NULL unless the argument is a buffer. With GPUHAL_KERNEL_NULL_BUFFERS a buffer may be NULL, too, with an offset
     *  and bytes of 0. */
    const gpuhal_memory *memory;
    const void *value; /**< The plugin must copy it during the call. */
} gpuhal_plugin_argument;

/** One launch of a kernel. The core has checked it against the kernel's flags in gpuhal_kernel_info. */
typedef struct gpuhal_plugin_launch {
    uint32_t size;
    uint32_t argument_count;
    uint32_t groups[3];     /**< Never 0, and at most the kernel's groups_max. All are 1 if `indirect` is not NULL. */
    uint32_t group_size[3]; /**< Never 0. The kernel's, except with GPUHAL_KERNEL_GROUP_SIZE. */
    uint32_t offset[3];     /**< 0 without GPUHAL_KERNEL_OFFSET. Offset plus groups is at most groups_max. */
    uint32_t local_bytes;   /**< In addition to the local memory of arguments; 0 without GPUHAL_KERNEL_ADDS_LOCAL. */
    uint32_t uses_count;
    uint32_t reserved;
    /** Number of threads in each dimension: groups times group_size. With GPUHAL_KERNEL_THREADS it may be less, by
     *  less than one group. */
    uint64_t threads[3];
    uint64_t indirect_offset; /**< Offset in `indirect`, a multiple of 4. */
    const gpuhal_plugin_argument *arguments;
    /** Memory that the kernel accesses through addresses in values or in memory. For hazard tracking, this memory
     *  counts as read and written. */
    const gpuhal_memory *const *uses;
    /** Memory with the three numbers of groups, as uint32_t, which the device reads when the launch begins, after the
     *  queue's earlier work. NULL without GPUHAL_KERNEL_INDIRECT. */
    const gpuhal_memory *indirect;
} gpuhal_plugin_launch;

/** Kinds of steps in a recording. */
enum { GPUHAL_STEP_COPY = 1, GPUHAL_STEP_FILL = 2, GPUHAL_STEP_LAUNCH = 3 };
/** Flags of a step. CHANGES: recording_set() may replace the launch. */
enum { GPUHAL_STEP_CHANGES = 1u };
/** The core splits a longer list into several recordings. */
enum { GPUHAL_PLUGIN_STEPS_MAX = 256 };

/** One step of a recording. Its members mean the same as the parameters of copy, fill and launch; those of the other
 *  kinds are 0. */
typedef struct gpuhal_plugin_step {
    uint32_t kind;
    uint32_t index; /**< Position in recording_create(), counted from 0. */
    uint32_t flags;
    uint32_t pattern;
    uint32_t pattern_bytes;
    uint32_t reserved; /**< The plugin ignores this member and `reserved2`. */
    uint64_t to_offset;
    uint64_t from_offset;
    uint64_t bytes;
    uint64_t reserved2[2];
    const gpuhal_memory *to; /**< Also the memory to fill. */
    const gpuhal_memory *from;
    gpuhal_plugin_kernel *kernel;
    const gpuhal_plugin_launch *launch;
} gpuhal_plugin_step;

/** Input and output of program_load() besides the code. */
typedef struct gpuhal_plugin_build {
    uint32_t size;
    uint32_t used_compiled; /**< The plugin sets it to 1 if `compiled` was sufficient. */
    uint64_t compiled_bytes;
    /** The result of program_compiled() for the same code on the same device and driver in an earlier run, or NULL.
     *  This is a hint: if the driver rejects it, the code is compiled. */
    const void *compiled;
    void *user;
    /** Receives the compiler's output, even after success. May be called several times. */
    void (GPUHAL_CALL *log)(void *user, const char *text);
} gpuhal_plugin_build;

/** Flags of queue_create and event_create: the event's time will be read. */
enum { GPUHAL_TIMED = 1u };

/** A queue for queue_create(). */
typedef struct gpuhal_plugin_queue_desc {
    uint32_t size;
    uint32_t flags; /**< 0 or GPUHAL_TIMED. */
    int32_t priority;
    uint32_t reserved;
    const gpuhal_native *adopt; /**< The caller's queue, which the plugin uses; NULL for a new queue. */
} gpuhal_plugin_queue_desc;

/** An event for event_create(). */
typedef struct gpuhal_plugin_event_desc {
    uint32_t size;
    uint32_t flags; /**< 0 or GPUHAL_TIMED. */
} gpuhal_plugin_event_desc;

/* ---- functions of a device */

/* The tables of the groups, defined below. */
typedef struct gpuhal_queue_ops gpuhal_queue_ops;
typedef struct gpuhal_peer_ops gpuhal_peer_ops;
typedef struct gpuhal_range_ops gpuhal_range_ops;
typedef struct gpuhal_program_ops gpuhal_program_ops;
typedef struct gpuhal_native_ops gpuhal_native_ops;
typedef struct gpuhal_recording_ops gpuhal_recording_ops;

/** The functions of one device. The core zeroes the structure and sets `size` to its own size; describe() fills in the
 *  slots of one device, and open() may clear some. A NULL slot means that the device does not offer the function. The
 *  core derives capabilities from the slots, so capabilities and slots cannot disagree. Mandatory: allocate, release,
 *  copy. For every other slot the core has a fallback, or returns NOT_SUPPORTED.
 *
 *  The other slots are in tables, one for each group, which the plugin owns and never changes. A NULL pointer to a
 *  table means that the device does not offer the group. open() may replace a pointer by NULL or by another table. A
 *  table must stay valid as long as the opened device; a table that describe() sets, until the process exits. Each
 *  table begins with `size`, the plugin's own sizeof, and with the version of the group:
 *  - The core reads min(size, its own sizeof) bytes, and never writes. A slot at or beyond `size` counts as NULL.
 *  - The core does not offer a group whose version it does not know, and uses the device without the group. It logs a
 *    warning, and gpuhal-probe --explain shows the reason.
 *  - If a table is smaller than the group's minimum, or a mandatory slot is NULL, the core refuses the plugin after
 *    describe(), and the device after open().
 *
 *  Every transfer slot takes a queue. If it is NULL, the slot BLOCKS until the transfer is complete, and is not ordered
 *  with other work. Otherwise the slot enqueues the transfer, which may be held back until queue_flush. The slot must
 *  then neither wait for the device nor move more than 256 KiB with the CPU inside the call; a thread of the plugin may
 *  move any number of bytes later. If a transfer cannot be enqueued in this way (in several APIs from host memory to
 *  host memory, and to pageable memory), the slot must return NOT_SUPPORTED, before any side effect and without
 *  report(). The core then does the transfer without a queue, on a thread of the queue, once the work before it has
 *  ended. Until the work has ended, the host memory and the memory objects of a transfer stay valid; structures and
 *  arrays that are passed by a pointer are valid only during the call.
 */
typedef struct gpuhal_ops {
    uint32_t size;
    uint32_t reserved;

    /* Memory. Mandatory. */

    /** BLOCKS. Commits the memory: if the API allocates lazily, the plugin must touch it now, unless it is of kind
     *  MIGRATING. Returns NOT_SUPPORTED for unknown kinds, imports, exports and peers, TOO_LARGE for a size above the
     *  largest allocation, and OUT_OF_MEMORY for any other lack of memory, after which the device must stay usable. */
    gpuhal_status (GPUHAL_CALL *allocate)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                          gpuhal_memory *out_memory);
    /** BLOCKS. Frees memory that no transfer uses any more. */
    void (GPUHAL_CALL *release)(gpuhal_plugin_device *device, gpuhal_memory *memory);

    /* Transfer. copy is mandatory. */

    gpuhal_status (GPUHAL_CALL *copy)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                      uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset,
                                      uint64_t bytes);
    /** Copies pageable host memory to device memory. Fallback: copy from memory of kind UPLOAD. A plugin that can write
     *  only some of its memory directly (with a host address and no unfinished work on the queue) returns NOT_SUPPORTED
     *  for all other memory, before any side effect and without report(). */
    gpuhal_status (GPUHAL_CALL *write)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                       const gpuhal_memory *to, uint64_t offset, const void *from, uint64_t bytes);
    /** Copies device memory to pageable host memory. Fallback: copy to memory of kind READBACK. May return
     *  NOT_SUPPORTED as write does. */
    gpuhal_status (GPUHAL_CALL *read)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                      const gpuhal_memory *from, uint64_t offset, uint64_t bytes);
    /** Fills the range with the low @p pattern_bytes bytes (1, 2 or 4) of @p pattern, as the host stores an integer
     *  of that size (uint16_t, uint32_t). @p bytes is a multiple of @p pattern_bytes. Fallback: write. */
    gpuhal_status (GPUHAL_CALL *fill)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                      const gpuhal_memory *memory, uint64_t offset, uint64_t bytes, uint32_t pattern,
                                      uint32_t pattern_bytes);
    /** Copies extent[0] bytes by extent[1] rows by extent[2] slices. At most one side is in host memory; if both sides
     *  are in one memory object, their pitches are equal. Fallback: row by row. May return NOT_SUPPORTED as write
     *  does. */
    gpuhal_status (GPUHAL_CALL *copy_rect)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                           const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                           const uint64_t extent[3]);
    /** BLOCKS. Makes host writes visible to the device (memory_flush), or device writes to the host
     *  (memory_invalidate), for memory with a host address that is not HOST_COHERENT. Imported host memory counts as
     *  such memory if the API may have its own copy (CL_MEM_USE_HOST_PTR). Both or none. Must not change a byte outside
     *  the range on the device's side, nor on either side of imported memory. In memory that the plugin allocated, host
     *  bytes around the range may be overwritten with the device's bytes (because of Vulkan's non-coherent atoms),
     *  since the host writes such memory only while it is mapped. */
    gpuhal_status (GPUHAL_CALL *memory_flush)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                              uint64_t offset, uint64_t bytes);
    gpuhal_status (GPUHAL_CALL *memory_invalidate)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                                   uint64_t offset, uint64_t bytes);
    /** Returns OK or DEVICE_LOST from state that is already known, without calling the driver. */
    gpuhal_status (GPUHAL_CALL *query_health)(gpuhal_plugin_device *device);

    /* Host memory. */

    /** BLOCKS. Page-locks memory that the caller owns. Both or none. */
    gpuhal_status (GPUHAL_CALL *register_host)(gpuhal_plugin_device *device, void *memory, uint64_t bytes);
    gpuhal_status (GPUHAL_CALL *unregister_host)(gpuhal_plugin_device *device, void *memory);
    /** BLOCKS. Maps memory, for APIs without lasting host addresses. Both or none. */
    gpuhal_status (GPUHAL_CALL *map)(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                     uint64_t bytes, uint32_t access, void **out_pointer);
    gpuhal_status (GPUHAL_CALL *unmap)(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer);
    /** BLOCKS. Called only for kinds named in export_kinds at allocation, and never for HOST_POINTER, which needs no
     *  slot. A file descriptor must be new and close-on-exec; the caller closes it. A handle of the vendor's own
     *  kind is passed on unchanged, with an offset of 0. */
    gpuhal_status (GPUHAL_CALL *export_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                               gpuhal_handle_kind kind, gpuhal_handle *out_handle,
                                               uint64_t *out_offset);

    /* Groups. NULL means that the device does not offer the group. Later versions of the ABI add groups at the end. */

    const gpuhal_queue_ops *queues;
    const gpuhal_peer_ops *peers;     /**< Other devices of this plugin. */
    const gpuhal_range_ops *ranges;   /**< Virtual memory. Fallback: pools use allocate. */
    const gpuhal_program_ops *programs;
    const gpuhal_native_ops *native;
    const gpuhal_recording_ops *recordings; /**< Fallback: each run enqueues the steps. */
} gpuhal_ops;

/* ---- groups of functions of a device. 0.x: all may still change. A change that a core of an earlier version could
 * misunderstand gives the group another version; a slot at the end does not. */

/** Versions of the groups. */
enum {
    GPUHAL_QUEUES_VERSION = 1,
    GPUHAL_PEERS_VERSION = 1,
    GPUHAL_RANGES_VERSION = 1,
    GPUHAL_PROGRAMS_VERSION = 1,
    GPUHAL_NATIVE_VERSION = 1,
    GPUHAL_RECORDINGS_VERSION = 1
};

/** Queues and events. The slots up to event_query are mandatory. */
struct gpuhal_queue_ops {
    uint32_t size;    /**< sizeof(gpuhal_queue_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_QUEUES_VERSION, as the plugin knows it. */

    gpuhal_status (GPUHAL_CALL *queue_create)(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                              gpuhal_plugin_queue **out_queue);
    /** BLOCKS until the work has ended. The core has already waited for the work, unless event_record failed after it.
     *  So a plugin may abandon work that continues for seconds after this call; in this case the device counts as lost.
     *  No event outlives its queue: all events whose latest recording is in this queue have already been destroyed, and
     *  other queues' work that waits for such an event has ended. */
    void (GPUHAL_CALL *queue_destroy)(gpuhal_plugin_queue *queue);
    /** Submits enqueued work to the device. Returns NOT_READY, before any side effect and without report(), if the call
     *  would have to wait (because the ring is full, or the vendor's queue is in native access). The core then calls
     *  again later, from the queue's thread. The same applies to event_record, queue_wait, and transfers with a
     *  queue. */
    gpuhal_status (GPUHAL_CALL *queue_flush)(gpuhal_plugin_queue *queue);
    gpuhal_status (GPUHAL_CALL *event_create)(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                              gpuhal_plugin_event **out_event);
    /** May be called before the event is done, and while an earlier recording is pending in another queue. */
    void (GPUHAL_CALL *event_destroy)(gpuhal_plugin_event *event);
    /** Records the event, which may have been recorded before, and flushes. May return NOT_READY as queue_flush
     *  does. After another call on the queue has failed, the event shows the end of the work that was enqueued before;
     *  if that is impossible, the core waits for this work in queue_destroy. */
    gpuhal_status (GPUHAL_CALL *event_record)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
    /** Returns OK, NOT_READY, or the error of the work that precedes the event. An error means that the work has ended,
     *  so a query that itself fails, for example without host memory, returns NOT_READY. */
    gpuhal_status (GPUHAL_CALL *event_query)(gpuhal_plugin_event *event);

    /* Each of the following is optional. */

    /** BLOCKS without spinning; may exceed its timeout. Returns the same as event_query: OK once the work has ended;
     *  NOT_READY, without report(), when the timeout expires; or the error of the work. The core calls it on one of
     *  its own threads or for a blocking copy, and with GPUHAL_PLUGIN_HONORS_TIMEOUTS also on waiting threads.
     *  Fallback: polling. */
    gpuhal_status (GPUHAL_CALL *event_block)(gpuhal_plugin_event *event, uint64_t timeout_ns);
    /** Registers @p done to be called when the event is done, on any thread, possibly within this call. @p done
     *  neither blocks nor calls the plugin. */
    gpuhal_status (GPUHAL_CALL *event_notify)(gpuhal_plugin_event *event,
                                              void (GPUHAL_CALL *done)(void *user, gpuhal_status status), void *user);
    /** Makes later work wait for an event that was recorded and flushed. After NOT_SUPPORTED for this pair, the core
     *  defers later work. May return NOT_READY as queue_flush does. */
    gpuhal_status (GPUHAL_CALL *queue_wait)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
    gpuhal_status (GPUHAL_CALL *elapsed)(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns);
};

/** Peers: other devices of this plugin. All slots are mandatory. The core uses a pair only after a test pattern
 *  arrived unchanged. */
struct gpuhal_peer_ops {
    uint32_t size;    /**< sizeof(gpuhal_peer_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_PEERS_VERSION, as the plugin knows it. */

    /** BLOCKS. Lets @p device access memory of @p other. Returns NOT_SUPPORTED if the driver refuses. */
    gpuhal_status (GPUHAL_CALL *peer_enable)(gpuhal_plugin_device *device, gpuhal_plugin_device *other);
    /** BLOCKS. Called once for each peer_enable. */
    void (GPUHAL_CALL *peer_disable)(gpuhal_plugin_device *device, gpuhal_plugin_device *other);
    /** @p queue belongs to one of the two devices, or is NULL, as for every transfer. May return NOT_SUPPORTED as write
     *  does. */
    gpuhal_status (GPUHAL_CALL *peer_copy)(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device,
                                           const gpuhal_memory *to, uint64_t to_offset,
                                           gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                                           uint64_t from_offset, uint64_t bytes);
};

/** Virtual memory for pools: addresses, with device memory behind some of them. All slots are mandatory. The core
 *  makes one call at a time on a range. */
struct gpuhal_range_ops {
    uint32_t size;    /**< sizeof(gpuhal_range_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_RANGES_VERSION, as the plugin knows it. */

    /** BLOCKS. Returns a power of two for a range of @p range_bytes, and for a larger range at least as much. The
     *  range's address and size, and all offsets and sizes within it, are multiples of this number. */
    gpuhal_status (GPUHAL_CALL *range_granularity)(gpuhal_plugin_device *device, uint64_t range_bytes,
                                                   uint64_t *out_bytes);
    /** BLOCKS. Reserves addresses without memory. The transfer slots, native_memory and kernels accept @p out_memory
     *  like memory from allocate; `host` stays NULL, and only committed ranges are accessed. The memory becomes invalid
     *  with the range; release is not called. */
    gpuhal_status (GPUHAL_CALL *range_reserve)(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                               gpuhal_plugin_range **out_range);
    /** BLOCKS. Commits memory of kind DEVICE at addresses that have none, while other addresses of the range may be
     *  in use. May return OUT_OF_MEMORY as allocate does, after which nothing must have changed. Pools pass no @p
     *  peers. */
    gpuhal_status (GPUHAL_CALL *range_commit)(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                                              gpuhal_plugin_device *const *peers, uint32_t peer_count);
    /** BLOCKS. Frees the memory of one whole commit. No transfer uses this memory any more, but other addresses of
     *  the range may be in use. After a failure the memory is still committed. */
    gpuhal_status (GPUHAL_CALL *range_decommit)(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
    /** BLOCKS. Releases the range and all memory that is still committed. */
    void (GPUHAL_CALL *range_release)(gpuhal_plugin_range *range);
};

/** Programs. The slots up to launch are mandatory. */
struct gpuhal_program_ops {
    uint32_t size;    /**< sizeof(gpuhal_program_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_PROGRAMS_VERSION, as the plugin knows it. */

    /** BLOCKS. Loads code in a format that the fact PROGRAM_FORMATS lists. @p code is only read during the call.
     *  Returns NOT_SUPPORTED for another format or kind of code, INCOMPATIBLE for code for another target,
     *  INVALID_ARGUMENT for code that is damaged or does not compile. After these errors, DRIVER and TOO_LARGE, the
     *  core tries the program's next alternative. */
    gpuhal_status (GPUHAL_CALL *program_load)(gpuhal_plugin_device *device, const gpuhal_code *code,
                                              gpuhal_plugin_build *build, gpuhal_plugin_program **out_program);
    /** BLOCKS. Called once all kernels of the program have been destroyed. */
    void (GPUHAL_CALL *program_unload)(gpuhal_plugin_program *program);
    /** BLOCKS. Prepares a function as described by @p desc, so that no launch compiles, if the driver supports this.
     *  The core zeroes @p out_info and sets its size; the plugin must fill in parameters and group_size, and parameters
     *  must stay valid as long as the kernel exists. NOT_FOUND, INVALID_ARGUMENT, TOO_LARGE and NOT_SUPPORTED have the
     *  same meaning as in gpuhal_kernel_create(). May be called several times for one name; several threads may create
     *  kernels of one program at once. */
    gpuhal_status (GPUHAL_CALL *kernel_create)(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                               gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);
    /** BLOCKS. Called while no launch of the kernel is in progress. */
    void (GPUHAL_CALL *kernel_destroy)(gpuhal_plugin_kernel *kernel);
    /** @p queue has the same meaning as for every transfer: with NULL, the slot BLOCKS until the kernel has ended, and
     *  is not ordered with other work. Several threads may launch one kernel at once. The core has checked arguments
     *  against the kernel's parameters, ranges against the memory and the facts BINDING_MAX_BYTES and
     *  BINDING_ALIGNMENT_BYTES, memory against its flags, and groups and local memory against the kernel's info. If a
     *  plugin rejects a launch for any other reason, the queue fails. Exceptions are NOT_SUPPORTED and NOT_READY, which
     *  mean the same as for transfers. */
    gpuhal_status (GPUHAL_CALL *launch)(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                        const gpuhal_plugin_launch *launch);
    /** BLOCKS. Returns the code that the driver has compiled for the program and its kernels so far, for
     *  gpuhal_plugin_build.compiled of a later run. Some drivers compile during this call. On entry, *bytes is the
     *  capacity of @p to; on return, it is the size of the code. If the capacity is too small or @p to is NULL, nothing
     *  is written to @p to. Returns NOT_SUPPORTED if the driver caches compiled code itself, or there is nothing to
     *  cache. Optional. */
    gpuhal_status (GPUHAL_CALL *program_compiled)(gpuhal_plugin_program *program, void *to, uint64_t *bytes);
    /** BLOCKS. Compiles another group size of the kernel, so that a launch with this size compiles nothing. The core
     *  has checked the size against the device's facts and the kernel's group_size_max. Returns TOO_LARGE if the
     *  group's memory exceeds the device's limits. Threads may prepare sizes of one kernel at once, also the same size,
     *  and may launch the kernel at the same time. Optional; mandatory for kernels with GPUHAL_KERNEL_PREPARED_SIZES,
     *  of which a launch has only sizes that were prepared. */
    gpuhal_status (GPUHAL_CALL *kernel_prepare)(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3]);
};

/** Native handles. Each slot is optional, but native_lock and native_unlock come together. The core sets the size of
 *  @p out_native first. */
struct gpuhal_native_ops {
    uint32_t size;    /**< sizeof(gpuhal_native_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_NATIVE_VERSION, as the plugin knows it. */

    gpuhal_status (GPUHAL_CALL *native_device)(gpuhal_plugin_device *device, gpuhal_native *out_native);
    gpuhal_status (GPUHAL_CALL *native_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                               gpuhal_native *out_native);
    gpuhal_status (GPUHAL_CALL *native_queue)(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
    gpuhal_status (GPUHAL_CALL *native_event)(gpuhal_plugin_event *event, gpuhal_native *out_native);
    /** BLOCKS. Wraps memory that the caller owns and keeps until release; release does not free the memory. Returns
     *  INVALID_ARGUMENT for an object of another type, or an object that cannot hold @p bytes. */
    gpuhal_status (GPUHAL_CALL *wrap_memory)(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                             gpuhal_memory *out_memory);
    /** Surround the caller's own submissions to native_queue(). native_lock flushes the queue, and locks the
     *  vendor's queue if the API requires that (VkQueue). native_lock BLOCKS up to @p timeout_ns. It returns NOT_READY,
     *  with nothing locked, when the timeout expires, and BUSY immediately if this thread already has the lock through
     *  another queue. native_unlock may be called from any thread, even for an abandoned device. The submissions in
     *  between are ordered with the work of the queue. Both or none; without them the core flushes. */
    gpuhal_status (GPUHAL_CALL *native_lock)(gpuhal_plugin_queue *queue, uint64_t timeout_ns);
    void (GPUHAL_CALL *native_unlock)(gpuhal_plugin_queue *queue);
};

/** Recordings: lists of steps that are prepared once and run many times. All slots are mandatory. The group needs the
 *  groups of queues and programs. The core makes one call at a time on a recording. */
struct gpuhal_recording_ops {
    uint32_t size;    /**< sizeof(gpuhal_recording_ops) as the plugin knows it. */
    uint32_t version; /**< GPUHAL_RECORDINGS_VERSION, as the plugin knows it. */

    /** BLOCKS. Prepares @p count steps, 1 to GPUHAL_PLUGIN_STEPS_MAX. Each step is one that copy, fill or launch would
     *  get in one call with a queue, so there is no fill for a device without the slot, and no launch without groups.
     *  Structures and arrays are valid only during the call. Kernels and memory, with its gpuhal_memory, stay valid
     *  until the recording is destroyed. Only memory of a launch with GPUHAL_STEP_CHANGES may be released earlier; the
     *  core then replaces the launch before the next run. Returns NOT_SUPPORTED, without report(), for steps that the
     *  driver cannot record; the core then enqueues the steps in each run. */
    gpuhal_status (GPUHAL_CALL *recording_create)(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps,
                                                  uint32_t count, gpuhal_plugin_recording **out_recording);
    /** Replaces the launches of @p count steps with GPUHAL_STEP_CHANGES, in the order of their indexes. Each step is
     *  complete, with its kernel and all arguments. Buffers, values, `uses` and groups may differ, and with the groups
     *  the threads; the rest of the launch stays the same. Steps that are not passed stay as they are. The change
     *  applies to later runs. Runs that are already enqueued keep the launches that they began with, and the slot must
     *  not wait for them. Returns NOT_SUPPORTED, without report(), for launches that the driver cannot record. After an
     *  error, the recording may have old and new launches. The core then passes the same steps again before it runs the
     *  recording again, and meanwhile enqueues the steps itself. */
    gpuhal_status (GPUHAL_CALL *recording_set)(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps,
                                               uint32_t count);
    /** Enqueues a run: all steps in the order of their indexes, each as if it had been enqueued by itself. Like launch,
     *  the slot may return NOT_SUPPORTED or NOT_READY before any side effect. @p queue is never NULL. The core orders
     *  the runs of one recording: a run begins after the previous run has ended, because both are in one queue, or
     *  because the queue waits for an event of the other queue. But a run may be enqueued before the previous run has
     *  ended. */
    gpuhal_status (GPUHAL_CALL *recording_run)(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording);
    /** BLOCKS. Called while no run is in progress. */
    void (GPUHAL_CALL *recording_destroy)(gpuhal_plugin_recording *recording);
};

/* ---- the plugin itself */

/** Flags of gpuhal_plugin. */
enum {
    /** A forked child may open devices with the plugin that its parent started. Without this flag the core does not
     *  use the plugin in the child. */
    GPUHAL_PLUGIN_FORK_SAFE = 1u,
    /** event_query, event_record and queue_flush return immediately, and event_block returns within its timeout, as
     *  far as the driver allows. The core may then call them on waiting threads of the application, which saves a
     *  thread switch. */
    GPUHAL_PLUGIN_HONORS_TIMEOUTS = 2u
};

/** Flags of gpuhal_plugin.sample() and processes(). */
enum {
    /** The call may wake a sleeping device, or the core has just seen the device awake: the plugin need not find out
     *  from the system whether the device sleeps. */
    GPUHAL_SAMPLE_MAY_WAKE = 1u
};

/** The result of gpuhal_plugin_query(): a constant that is valid until the process exits. Members up to close are
 *  mandatory. */
typedef struct gpuhal_plugin {
    uint32_t size;       /**< sizeof(gpuhal_plugin) as the plugin knows it. */
    uint32_t abi;        /**< GPUHAL_ABI as the plugin knows it. */
    uint32_t flags;
    uint32_t reserved;
    /** Name of the backend: a lower-case letter, then lower-case letters, digits and `_`; at most 31 characters. */
    const char *name;
    /** Human-readable version of the plugin, 1 to 63 bytes of UTF-8 without control characters. */
    const char *version;

    /** BLOCKS. Called before all other calls, once per copy of the core and, for each copy, once per set of options of
     *  the application's objects. Opens the vendor's library, but no device or context; must not start a thread that
     *  could be started later. *out_instance, NULL on entry, receives the plugin's state for this start; every call
     *  below gets the instance together with its host. The instance stays valid until the process exits, unless start()
     *  fails. Must be safe when another copy of the core calls it concurrently.
     *  @return GPUHAL_OK; NO_DRIVER if the vendor's library does not load, or is a loader that finds no driver;
     *  NO_DEVICE if there is a driver, and no device; NO_PERMISSION if there are device nodes, and this process may
     *  open none of them; … */
    gpuhal_status (GPUHAL_CALL *start)(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);
    /** BLOCKS. Lists the devices and their facts; must not use device memory or create a context. If there are no
     *  devices, it returns OK, or NO_DEVICE, NO_DRIVER or NO_PERMISSION as start() does, with a reason. Within a
     *  process, an index must always refer to the same device, so a later call may only append or omit devices. */
    gpuhal_status (GPUHAL_CALL *enumerate)(const gpuhal_host *host, gpuhal_plugin_instance *instance,
                                           gpuhal_sink *sink);
    /** Fills in the slots of device @p index, without opening it. Returns NOT_FOUND for an index that was never
     *  enumerated. */
    gpuhal_status (GPUHAL_CALL *describe)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                          gpuhal_ops *out_ops);
    /** BLOCKS. Opens a device, or adopts the objects in @p adopt, if not NULL. @p ops has the slots from describe().
     *  open() clears slots that the opened device does not offer, and states the reason with report() and
     *  NOT_SUPPORTED, even if it returns OK; for an adopted device the core passes the reason on. May be called several
     *  times for one index; each opened device is closed separately. */
    gpuhal_status (GPUHAL_CALL *open)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
    /** BLOCKS. Closes an opened device whose memory, queues and events have all been released. */
    void (GPUHAL_CALL *close)(gpuhal_plugin_device *device);

    /* The members below are optional. */

    /** BLOCKS. Reads values of a device, which need not be open. With a @p count of 0, reads all values. The plugin may
     *  also report further values that the same reading yields; the core requests one value at a time, and does not
     *  request values that it already has. */
    gpuhal_status (GPUHAL_CALL *sample)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                        const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
    /** BLOCKS. Reports facts of the link from one device to another. The devices need not be open. 0.x. */
    gpuhal_status (GPUHAL_CALL *link)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from,
                                      uint32_t to, gpuhal_sink *sink);
    /** Returns the plugin's extension "<vendor>.<name>", for applications that know it (gpuhal_device_extension()):
     *  a table of functions that is constant, valid until the process exits, and the same at each call. Returns NULL
     *  for an unknown name, without report(). Must return promptly, on any thread. The name is never NULL. */
    const void *(GPUHAL_CALL *query_extension)(const gpuhal_host *host, gpuhal_plugin_instance *instance,
                                               const char *name);
    /** Frees the allocations of start(), including the instance. For leak checks only; the core never calls this
     *  function. */
    void (GPUHAL_CALL *stop)(const gpuhal_host *host, gpuhal_plugin_instance *instance);
    /** BLOCKS. Lists the processes that use a device, including this process. The device need not be open. @p flags are
     *  as for sample(). Returns OK, even if there is no process. With another status, the processes reported so far
     *  count as well, and the status states why the list may be incomplete: NOT_SUPPORTED, NO_PERMISSION, NOT_READY for
     *  a device that sleeps, … */
    gpuhal_status (GPUHAL_CALL *processes)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                           uint32_t flags, gpuhal_sink *sink);
} gpuhal_plugin;

/** The one exported function. @p host_abi is the core's GPUHAL_ABI. A plugin that does not support its major number
 *  calls `host->report(host, GPUHAL_ERROR_INCOMPATIBLE, …)` and returns NULL. For every minor number it returns a
 *  table, and the core decides whether it takes the version in the table. Must not start anything. */
typedef const gpuhal_plugin *GPUHAL_CALL gpuhal_plugin_query_fn(uint32_t host_abi, const gpuhal_host *host);

/** If a different name is set on the compiler's command line, several plugins can be linked into one program. */
#ifndef GPUHAL_PLUGIN_QUERY
#define GPUHAL_PLUGIN_QUERY gpuhal_plugin_query
#endif
/** Marks the exported function. If this macro is defined as empty on the compiler's command line, nothing is exported,
 *  as required for a plugin that is linked into another binary. */
#if !defined(GPUHAL_PLUGIN_API)
#if defined(_WIN32)
#define GPUHAL_PLUGIN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define GPUHAL_PLUGIN_API __attribute__((visibility("default")))
#else
#define GPUHAL_PLUGIN_API
#endif
#endif
GPUHAL_PLUGIN_API const gpuhal_plugin *GPUHAL_CALL GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host);

/** Whether a structure of the core has a member that a later minor version added: `if (GPUHAL_HAS(host, process))`.
 *  @p structure is a pointer to a structure that begins with its size. */
#define GPUHAL_HAS(structure, member)                                                                                  \
    ((size_t)((const char *)&(structure)->member - (const char *)(structure)) + sizeof((structure)->member) <=         \
     (size_t)(structure)->size)

/** The smallest sizes that the core accepts, up to the last mandatory member. */
#define GPUHAL_PLUGIN_MINIMUM ((uint32_t)(offsetof(gpuhal_plugin, close) + sizeof(void *)))
#define GPUHAL_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_ops, copy) + sizeof(void *)))
#define GPUHAL_QUEUE_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_queue_ops, event_query) + sizeof(void *)))
#define GPUHAL_PEER_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_peer_ops, peer_copy) + sizeof(void *)))
#define GPUHAL_RANGE_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_range_ops, range_release) + sizeof(void *)))
#define GPUHAL_PROGRAM_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_program_ops, launch) + sizeof(void *)))
#define GPUHAL_NATIVE_OPS_MINIMUM ((uint32_t)offsetof(gpuhal_native_ops, native_device))
#define GPUHAL_RECORDING_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_recording_ops, recording_destroy) + sizeof(void *)))

#ifdef __cplusplus
}
#endif
#endif
