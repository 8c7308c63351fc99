/** gpuhal/plugin.h: the vendor's header. A plugin needs only this header, types.h, code.h, and native.h for native
 *  handles.
 *
 *  A plugin is one shared library that exports one function, gpuhal_plugin_query(), and links nothing of gpuhal. It
 *  translates the vendor's API into the slots below; the core checks arguments, stages, splits, caches, describes
 *  errors and counts. docs/vendor-guide.md leads from an empty folder to a passing `gpuhal-check`; docs/plugin-abi.md
 *  gives the reason for each rule.
 *
 *  Rules for everything below
 *  - The core has checked the arguments of slots: a needed value is never NULL, offsets and sizes are inside the memory
 *    object and multiples of the alignments that the device stated, sizes are never 0, and ranges do not overlap within
 *    one memory object. Only `allocate` and `open` must refuse requests that they do not know.
 *  - A slot marked BLOCKS may wait for the device. The core calls it with no lock of its own held, except the lock of
 *    the buffer that it writes if that is not HOST_COHERENT. Every other slot must return promptly, including transfers
 *    with a queue.
 *  - The core never has two calls in progress on one queue. Transfers may use one memory object at once from several
 *    threads; release, map and unmap run alone on it. `start` and `enumerate` run alone; all other calls may overlap.
 *  - `start`, `enumerate`, `describe`, `open`, `close`, `sample`, `processes` and `link` are called on changing threads
 *    of the core, which are abandoned when a call exceeds its deadline; only `open` with something to adopt is called
 *    on the application's thread. So a plugin must not rely on state of the current thread, and an `open` that succeeds
 *    too late is closed at once.
 *  - The core owns the structures that a call fills, and sets their `size`: a plugin must change neither that nor a
 *    byte beyond it, even if its own header has more members. It must read nothing beyond the lengths that it is given.
 *  - The host copies text before its function returns. Text that a plugin returns must be valid as long as the
 *    process.
 *  - No call may abort, exit, print, throw, longjmp, install a signal handler, or change the process's directory,
 *    locale, environment, umask, signal mask or current vendor context. A plugin has no constructor and no destructor,
 *    and is never unloaded.
 *  - Errors are returned as a status. If the vendor's API returned a code, pass it to gpuhal_host.report() first.
 */
#ifndef GPUHAL_PLUGIN_H
#define GPUHAL_PLUGIN_H

#include <gpuhal/code.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this ABI. While the major number is 0 the core requires an equal minor number; from 1.0 on minor versions
 *  only add at the end. The change log is at the end of docs/plugin-abi.md. */
#define GPUHAL_ABI_MAJOR 0u
#define GPUHAL_ABI_MINOR 3u
#define GPUHAL_ABI ((GPUHAL_ABI_MAJOR << 16) | GPUHAL_ABI_MINOR)

/* The plugin's own objects: defined by the plugin, opaque to the core. */
typedef struct gpuhal_plugin_instance gpuhal_plugin_instance;
typedef struct gpuhal_plugin_device gpuhal_plugin_device;
typedef struct gpuhal_plugin_queue gpuhal_plugin_queue;
typedef struct gpuhal_plugin_event gpuhal_plugin_event;
typedef struct gpuhal_plugin_range gpuhal_plugin_range;
typedef struct gpuhal_plugin_program gpuhal_plugin_program;
typedef struct gpuhal_plugin_kernel gpuhal_plugin_kernel;

/** Receives facts from the plugin. The core owns it; it is valid during the one call that it is passed to, on that
 *  call's thread. */
typedef struct gpuhal_sink gpuhal_sink;

/* ---- functions of the core */

/** One function of a vendor library for gpuhal_host.library() to find. */
typedef struct gpuhal_symbol {
    const char *name;
    void *slot; /**< Address of a function pointer. Set to the function, or to NULL when an optional one is missing. */
    int32_t required; /**< Not 0: the library is unusable without it. */
} gpuhal_symbol;

/** A process that uses a device, for gpuhal_host.process(). */
typedef struct gpuhal_plugin_process {
    uint32_t size;  /**< sizeof(gpuhal_plugin_process) as the plugin knows it. */
    uint32_t flags; /**< GPUHAL_PROCESS_ bits. */
    /** As the driver gives it, with GPUHAL_PROCESS_FOREIGN_NAMESPACE if this process cannot see a process with that id;
     *  0 with that flag: the driver hides it. */
    uint32_t pid;
    uint32_t busy_permille; /**< Share of the time that the device worked for it; with GPUHAL_PROCESS_BUSY_KNOWN. */
    uint64_t memory_bytes;  /**< Of the device's memory; with GPUHAL_PROCESS_MEMORY_KNOWN. */
    /** The driver's name for the process, valid UTF-8 without control characters; NULL: the core reads it from the
     *  system. */
    const char *name;
} gpuhal_plugin_process;

/** Levels of gpuhal_host.log(). */
enum { GPUHAL_LOG_ERROR = 1, GPUHAL_LOG_WARNING = 2, GPUHAL_LOG_INFO = 3, GPUHAL_LOG_DEBUG = 4 };

/** Functions of the core. One table per copy of the core in the process: two engines may each bring a copy and share
 *  the plugin, so a plugin must not keep a global host. Each call of the plugin gets its host and the instance that
 *  start() created for it, or a device that was opened with both. All functions may be called from any thread; none
 *  blocks except library(). */
typedef struct gpuhal_host gpuhal_host;
struct gpuhal_host {
    uint32_t size; /**< sizeof(gpuhal_host) as the core knows it. */
    uint32_t abi;  /**< GPUHAL_ABI of the core. */

    /** Writes a line to the application's log. */
    void (*log)(const gpuhal_host *host, int32_t level, const char *text);

    /** Sets the detail of the error that this call will return, and returns @p status: `return host->report(…);`
     *  @p vendor_call and @p text may be NULL, and a @p vendor_code of 0 means none; a code is shown without a call,
     *  too. Kept per thread. */
    gpuhal_status (*report)(const gpuhal_host *host, gpuhal_status status, const char *vendor_call, int64_t vendor_code,
                            const char *text);

    /** Facts: device() begins a device (only while enumerating), and the following facts belong to it. A later fact of
     *  the same key replaces the earlier one. A key without a fact counts as missing, not supported. */
    void (*device)(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index);
    void (*u64)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value);
    void (*text)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value);
    void (*missing)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason, const char *why);

    /** Copies the value from the application (gpuhal_config.options) or the operator (GPUHAL_OPTIONS) for @p key,
     *  "<plugin>.<option>". Must be called inside start() only, for every option of the plugin: the core warns of
     *  options that were set and not read.
     *  @return GPUHAL_OK; NOT_FOUND when it was not set; OUT_OF_RANGE when it has @p bytes or more: then @p out_value
     *  is "". */
    gpuhal_status (*option)(const gpuhal_host *host, const char *key, char *out_value, uint32_t bytes);

    /** Opens the first of @p sonames (ended by NULL) that loads, or the library that GPUHAL_<setting>_LIBRARY names,
     *  and fills the slots. The library is never closed. The error detail has each name and its reason.
     *  @return GPUHAL_OK, or GPUHAL_ERROR_NO_DRIVER when no library loads or a required symbol is missing. */
    gpuhal_status (*library)(const gpuhal_host *host, const char *setting, const char *const *sonames,
                             const gpuhal_symbol *symbols, uint32_t count);

    /** Announces that devices of this plugin appeared, vanished or changed: while the application listens for changes
     *  the core soon enumerates again, on one of its threads; several announcements become one. May be called from any
     *  thread, also the driver's, at any time once start() was called; returns at once. In the helper process it does
     *  nothing. */
    void (*changed)(const gpuhal_host *host);

    /** Returns the core's extension "<owner>.<name>", for plugins that also work without it: a table of functions,
     *  constant and valid as long as the process. NULL for an unknown name; this version has none. */
    const void *(*query_extension)(const gpuhal_host *host, const char *name);

    /** Names the source of the values that follow in this call of sample(): a library or an interface of the system
     *  ("nvml", "hwmon"); 1 to 15 lower-case letters, digits, `-` and `_`. With "-board" at the end ("nvml-board") they
     *  are measured for the whole GPU, and given for a part of it. Until the first call, and after NULL, the source is
     *  the API of this plugin. The same is true of the processes of processes(). */
    void (*source)(const gpuhal_host *host, gpuhal_sink *sink, const char *name);
    /** Gives one process; only inside processes(). A process that is given twice counts once, with the flags of
     *  both. */
    void (*process)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_plugin_process *process);
};

/* ---- memory */

/** Flags of gpuhal_memory. */
enum {
    GPUHAL_MEMORY_HOST_COHERENT = 1u, /**< Host access needs no memory_flush() or memory_invalidate(). */
    /** Fast to read for the host. The core reads from it, for copies to other devices, only if it is HOST_COHERENT too;
     *  otherwise the device copies the bytes out. */
    GPUHAL_MEMORY_HOST_CACHED = 2u,
    /** In the device's memory. The flag matters only for memory with a host address: peer copies are tried only if it
     *  is set. Memory without a host address counts as if it were set. */
    GPUHAL_MEMORY_DEVICE_LOCAL = 4u,
    /** Kernels cannot use it: the core refuses launches with it. */
    GPUHAL_MEMORY_NO_KERNELS = 8u
};

/** One allocation of the plugin. The core zeroes it and sets `size` first, passes it back unchanged, and addresses
 *  bytes in it as (memory, offset). */
typedef struct gpuhal_memory {
    uint32_t size;
    uint32_t flags;
    void *object;     /**< The plugin's own; opaque to the core. */
    uint64_t bytes;   /**< At least the requested size. */
    /** Its address in kernels of the device; 0: they reach it only as an argument, and the core refuses it among the
     *  uses of a launch. */
    uint64_t address;
    /** The host's address as long as the memory exists, a multiple of 64 unless it was imported; NULL: none, or only
     *  through map. */
    void *host;
} gpuhal_memory;

/** A request to allocate or to import memory. */
typedef struct gpuhal_alloc {
    uint32_t size;
    gpuhal_memory_kind kind;
    uint64_t bytes;
    /** Power of two for the device address, and for the host address if there is one; 0: the device's own. */
    uint64_t alignment;
    /** Bit 1 << gpuhal_handle_kind: several APIs need these at allocation. Never HOST_POINTER: gpuhal_memory.host has
     *  it. */
    uint32_t export_kinds;
    uint32_t peer_count;
    gpuhal_plugin_device *const *peers; /**< Devices that must be able to access this memory. */
    /** kind not 0: import this memory instead. Host memory stays the caller's until release, which must return only
     *  once the vendor does not use it any more; address and bytes are multiples of the stated import alignment,
     *  gpuhal_memory.host is the pointer passed in. A file descriptor becomes the plugin's only on success; kind,
     *  bytes, alignment and export_kinds then equal those of the exporting allocation, which APIs without
     *  self-describing descriptors need (Vulkan). The same is true of a handle of the vendor's own kind
     *  (GPUHAL_VENDOR_KIND_FIRST to 31), which the core passes on and never closes. */
    gpuhal_handle import;
    uint64_t import_offset;
    /** GPUHAL_IMPORT_ bits, for host memory only. READ_ONLY: the memory may be mapped without write access, and is
     *  never a destination; a driver that cannot import it returns NOT_SUPPORTED. */
    uint32_t flags;
    uint32_t reserved;
} gpuhal_alloc;

/** One side of a rectangular copy: memory of the device, or host memory. */
typedef struct gpuhal_plugin_rect {
    const gpuhal_memory *memory; /**< NULL: host memory. */
    void *host;                  /**< Used when memory is NULL. The source is only read. */
    uint64_t offset;             /**< Of the first byte. */
    uint64_t row_pitch;          /**< Bytes from row to row; at least the width. */
    uint64_t slice_pitch;        /**< Bytes from slice to slice; at least row_pitch times the rows. */
} gpuhal_plugin_rect;

/** One argument of a launch, in the order of the kernel's parameters. */
typedef struct gpuhal_plugin_argument {
    gpuhal_parameter_kind kind;
    uint32_t access;             /**< Of memory: GPUHAL_ACCESS_READ, GPUHAL_ACCESS_WRITE, or both. */
    const gpuhal_memory *memory; /**< NULL unless it is a buffer. */
    uint64_t offset;             /**< In the memory. */
    uint64_t bytes;              /**< Of the part of the memory, of the value, or of local memory. */
    const void *value;           /**< The plugin must copy it during the call. */
} gpuhal_plugin_argument;

/** One launch of a kernel. */
typedef struct gpuhal_plugin_launch {
    uint32_t size;
    uint32_t argument_count;
    const gpuhal_plugin_argument *arguments;
    uint32_t groups[3];   /**< Never 0, and up to groups_max of the kernel. */
    uint32_t local_bytes; /**< Beside the local memory of arguments; 0 without GPUHAL_KERNEL_ADDS_LOCAL. */
    /** Memory that the kernel reaches by addresses in values or in memory. For hazards it counts as read and
     *  written. */
    const gpuhal_memory *const *uses;
    uint32_t uses_count;
    uint32_t reserved;
} gpuhal_plugin_launch;

/** Input and output of program_load() beside the code. */
typedef struct gpuhal_plugin_build {
    uint32_t size;
    uint32_t reserved;
    /** The result of program_compiled() for the same code on the same device and driver in an earlier run; NULL: none.
     *  It is a hint: if the driver does not take it the code is compiled. */
    const void *compiled;
    uint64_t compiled_bytes;
    uint32_t used_compiled; /**< The plugin sets it to 1 if `compiled` was enough. */
    uint32_t reserved2;
    void *user;
    /** Takes the compiler's output, also after success. May be called several times. */
    void (*log)(void *user, const char *text);
} gpuhal_plugin_build;

/** Flags of queue_create and event_create: the event's time will be read. */
enum { GPUHAL_TIMED = 1u };

/* ---- functions of a device */

/** The core provides this many bytes for a gpuhal_ops, so that a plugin with a later minor version cannot write beyond
 *  the end. */
#define GPUHAL_OPS_SPACE 1024u

/** The functions of one device. The core zeroes it and sets `size` to its own size; describe() fills the slots of one
 *  device, and open() may clear some. NULL: not offered on this device. Capabilities follow from the slots, so the two
 *  cannot disagree. Mandatory: allocate, release, copy. For every other slot the core has a fallback, or returns
 *  NOT_SUPPORTED.
 *
 *  Every transfer slot takes a queue. NULL: BLOCKS until the transfer is complete, without any order to other work.
 *  Otherwise it enqueues, and the work may start as late as queue_flush. It must neither wait for the device nor move
 *  more than 256 KiB by the processor: a transfer that cannot be enqueued that way (in several APIs host memory to host
 *  memory, and copies to pageable memory) must return NOT_SUPPORTED, before any side effect and without report(). The
 *  core then does it without a queue, on a thread of the queue, once the work before it has ended.
 */
typedef struct gpuhal_ops {
    uint32_t size;
    uint32_t reserved;

    /* Memory. Mandatory. */

    /** BLOCKS. Commits the memory: an API that allocates lazily must touch it now. Unknown kinds, imports, exports and
     *  peers are NOT_SUPPORTED; a size above the largest allocation is TOO_LARGE; otherwise a lack of memory is
     *  OUT_OF_MEMORY, and the device must stay usable. */
    gpuhal_status (*allocate)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
    /** BLOCKS. Frees memory. No transfer uses it any more. */
    void (*release)(gpuhal_plugin_device *device, gpuhal_memory *memory);

    /* Transfer. copy is mandatory. */

    gpuhal_status (*copy)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
    /** Copies pageable host memory to device memory. Fallback: memory of kind UPLOAD, and copy; a plugin that can
     *  write only some of its memory directly (with a host address and no unfinished work on the queue) returns
     *  NOT_SUPPORTED for the rest, before any side effect and without report(). */
    gpuhal_status (*write)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                           uint64_t offset, const void *from, uint64_t bytes);
    /** Copies device memory to pageable host memory. Fallback: copy to memory of kind READBACK; NOT_SUPPORTED as for
     *  write. */
    gpuhal_status (*read)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to, const gpuhal_memory *from,
                          uint64_t offset, uint64_t bytes);
    /** Repeats the low @p pattern_bytes (1, 2 or 4) of @p pattern, laid out as the host stores a number of that many
     *  bytes (uint16_t, uint32_t); bytes is a multiple of that. Fallback: write. */
    gpuhal_status (*fill)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes);
    /** Copies extent[0] bytes by extent[1] rows by extent[2] slices. At most one side is in host memory; two sides in
     *  one memory object have equal pitches. Fallback: by rows; NOT_SUPPORTED as for write. */
    gpuhal_status (*copy_rect)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                               const gpuhal_plugin_rect *from, const uint64_t extent[3]);
    /** BLOCKS. Makes host writes visible to the device (memory_flush), or device writes to the host
     *  (memory_invalidate), for memory with a host address that is not HOST_COHERENT. Imported host memory is such
     *  memory if the API may have its own copy (CL_MEM_USE_HOST_PTR). Both or none. Must not change a byte outside the
     *  range on the device's side, nor on either side of imported memory. In memory of the plugin's own the host may
     *  get the device's bytes around the range (Vulkan's atoms): the host writes such memory only while it maps it. */
    gpuhal_status (*memory_flush)(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                  uint64_t bytes);
    gpuhal_status (*memory_invalidate)(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes);
    /** Returns OK or DEVICE_LOST, from known state, without calling the driver. */
    gpuhal_status (*query_health)(gpuhal_plugin_device *device);

    /* Host memory. */

    /** BLOCKS. Page-locks memory that the caller owns. Both or none. */
    gpuhal_status (*register_host)(gpuhal_plugin_device *device, void *memory, uint64_t bytes);
    gpuhal_status (*unregister_host)(gpuhal_plugin_device *device, void *memory);
    /** BLOCKS. Maps memory, for APIs without lasting host addresses. Both or none. */
    gpuhal_status (*map)(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t access, void **out_pointer);
    gpuhal_status (*unmap)(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer);
    /** BLOCKS. Only for kinds named in export_kinds at allocation, and never for HOST_POINTER, which needs no slot. A
     *  file descriptor is a new one, close-on-exec, the caller's to close. A handle of the vendor's own kind is passed
     *  on unchanged, with an offset of 0. */
    gpuhal_status (*export_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset);

    /* Queues and events: all seven or none. From here to the end of queues 0.x: may still change. */

    gpuhal_status (*queue_create)(gpuhal_plugin_device *device, int32_t priority, uint32_t flags,
                                  const gpuhal_native *adopt, gpuhal_plugin_queue **out_queue);
    /** BLOCKS until the work has ended. The core has waited for it before, so a plugin may abandon work that goes on
     *  for seconds after this: the device then counts as lost. The core calls it after the last call with an event
     *  whose newest recording is in this queue, event_destroy included, and after the end of work of other queues that
     *  waits for such an event: no event outlives its queue. */
    void (*queue_destroy)(gpuhal_plugin_queue *queue);
    /** Submits enqueued work to the device. Returns NOT_READY, before any side effect and without report(), if it would
     *  have to wait (a full ring, a vendor's queue in native access): the core calls again later, from the queue's
     *  thread. The same is true of event_record, queue_wait, and transfers with a queue. */
    gpuhal_status (*queue_flush)(gpuhal_plugin_queue *queue);
    gpuhal_status (*event_create)(gpuhal_plugin_device *device, uint32_t flags, gpuhal_plugin_event **out_event);
    /** The event may be one that is not done: after a failure. */
    void (*event_destroy)(gpuhal_plugin_event *event);
    /** Records the event, again if it was recorded before, and flushes. NOT_READY as for queue_flush. */
    gpuhal_status (*event_record)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
    /** Returns OK, NOT_READY, or the error of the work before the event. */
    gpuhal_status (*event_query)(gpuhal_plugin_event *event);

    /* Queues, each optional. */

    /** BLOCKS, without spinning; may overrun its timeout. Returns as event_query does: OK once the work has ended;
     *  NOT_READY, without report(), when the time is over; or the error of the work. The core calls it on one of its
     *  threads, or for a copy that blocks anyway; with GPUHAL_PLUGIN_HONORS_TIMEOUTS on waiting threads, too. Fallback:
     *  polling. */
    gpuhal_status (*event_block)(gpuhal_plugin_event *event, uint64_t timeout_ns);
    /** Has @p done called when the event is done: on any thread, also inside this call. @p done neither blocks nor
     *  calls the plugin. */
    gpuhal_status (*event_notify)(gpuhal_plugin_event *event, void (*done)(void *user, gpuhal_status status),
                                  void *user);
    /** Makes later work wait for an event that was recorded and flushed. After NOT_SUPPORTED for this pair the core
     *  defers later work. NOT_READY as for queue_flush. */
    gpuhal_status (*queue_wait)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
    gpuhal_status (*elapsed)(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns);

    /* Peers: other devices of this plugin. All or none. 0.x. The core uses a pair only after a test pattern arrived
     * unchanged. */

    /** BLOCKS. Lets @p device access memory of @p other. NOT_SUPPORTED when the driver refuses. */
    gpuhal_status (*peer_enable)(gpuhal_plugin_device *device, gpuhal_plugin_device *other);
    /** BLOCKS. Once for each peer_enable. */
    void (*peer_disable)(gpuhal_plugin_device *device, gpuhal_plugin_device *other);
    /** @p queue belongs to one of the two devices; NULL as for every transfer. NOT_SUPPORTED as for write. */
    gpuhal_status (*peer_copy)(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                               uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                               uint64_t from_offset, uint64_t bytes);

    /* Virtual memory: addresses, and device memory behind parts of them, for pools. All or none; one call at a time on
     * a range. 0.x. Fallback: pools allocate. */

    /** BLOCKS. Gives a power of two: addresses are multiples of it, and so are all offsets and sizes below. */
    gpuhal_status (*range_granularity)(gpuhal_plugin_device *device, uint64_t *out_bytes);
    /** BLOCKS. Takes addresses and no memory. The transfer slots, native_memory and kernels take @p out_memory like
     *  memory of allocate; `host` stays NULL, and only committed parts are touched. It ends with the range: release is
     *  not called. */
    gpuhal_status (*range_reserve)(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                   gpuhal_plugin_range **out_range);
    /** BLOCKS. Puts memory of kind DEVICE behind addresses that have none, while other addresses of the range are in
     *  use. OUT_OF_MEMORY as for allocate; then nothing has changed. Pools give no @p peers. */
    gpuhal_status (*range_commit)(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                                  gpuhal_plugin_device *const *peers, uint32_t peer_count);
    /** BLOCKS. Takes back the memory of one whole commit, which no transfer uses any more, while other addresses of the
     *  range are in use. After a failure the memory is still there. */
    gpuhal_status (*range_decommit)(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
    /** BLOCKS. Releases the range, with all memory that is left. */
    void (*range_release)(gpuhal_plugin_range *range);

    /* Programs. All or none, except the last. 0.x. */

    /** BLOCKS. Loads code in a format that the fact PROGRAM_FORMATS has. @p code is only read during the call.
     *  NOT_SUPPORTED for another format or kind of code, INCOMPATIBLE for code of another target, INVALID_ARGUMENT for
     *  code that is damaged or does not compile: then the core tries another form of the program. */
    gpuhal_status (*program_load)(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                  gpuhal_plugin_program **out_program);
    /** BLOCKS. All kernels of the program have been destroyed. */
    void (*program_unload)(gpuhal_plugin_program *program);
    /** BLOCKS. Prepares a function as described by desc, so that no launch compiles, if the driver can do that. The
     *  core zeroes @p out_info and sets its size; the plugin must fill in parameters and group_size, and parameters
     *  must be valid as long as the kernel. NOT_FOUND, INVALID_ARGUMENT, TOO_LARGE and NOT_SUPPORTED as
     *  gpuhal_kernel_create() returns them. May be called several times for one name; several threads may create
     *  kernels of one program at once. */
    gpuhal_status (*kernel_create)(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);
    /** BLOCKS. No launch of the kernel is in progress. */
    void (*kernel_destroy)(gpuhal_plugin_kernel *kernel);
    /** @p queue as for every transfer: NULL BLOCKS until the kernel has ended, without any order to other work. Several
     *  threads may launch one kernel at once. The core has compared arguments with the kernel's parameters, ranges with
     *  the memory and the facts BINDING_MAX_BYTES and BINDING_ALIGNMENT_BYTES, memory with its flags, and groups and
     *  local memory with the kernel's info: a launch that a plugin refuses for any other reason fails the queue, except
     *  with NOT_SUPPORTED and NOT_READY, which mean the same as for transfers. */
    gpuhal_status (*launch)(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                            const gpuhal_plugin_launch *launch);
    /** BLOCKS. Gives the code that the driver has compiled for the program and its kernels so far, for
     *  gpuhal_plugin_build.compiled of a later run. Some drivers compile on this request. *bytes is the room at @p to,
     *  and becomes the size; if the room is too small, or @p to is NULL, nothing is written. NOT_SUPPORTED: the driver
     *  keeps compiled code itself, or there is nothing to keep. Optional. */
    gpuhal_status (*program_compiled)(gpuhal_plugin_program *program, void *to, uint64_t *bytes);

    /* Native handles, each optional. 0.x. The core sets the size of @p out_native first. */

    gpuhal_status (*native_device)(gpuhal_plugin_device *device, gpuhal_native *out_native);
    gpuhal_status (*native_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                   gpuhal_native *out_native);
    gpuhal_status (*native_queue)(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
    gpuhal_status (*native_event)(gpuhal_plugin_event *event, gpuhal_native *out_native);
    /** BLOCKS. Wraps memory that the caller owns and keeps until release, which does not free it. INVALID_ARGUMENT for
     *  an object of another type, or an object that cannot hold @p bytes. */
    gpuhal_status (*wrap_memory)(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                 gpuhal_memory *out_memory);
    /** Surround the caller's own submissions to native_queue(). native_lock flushes the queue and locks the vendor's
     *  queue if the API needs that (VkQueue). It BLOCKS up to @p timeout_ns, and returns NOT_READY, with nothing
     *  locked, when that time is over, and BUSY at once if this thread has the lock already, by another queue.
     *  native_unlock may be called from any thread, also for a device that was given up. Work of the queue is ordered
     *  with the submissions in between. Both or none; without them the core flushes. */
    gpuhal_status (*native_lock)(gpuhal_plugin_queue *queue, uint64_t timeout_ns);
    void (*native_unlock)(gpuhal_plugin_queue *queue);
} gpuhal_ops;

/* ---- the plugin itself */

/** Flags of gpuhal_plugin. */
enum {
    /** A child of a fork may open devices with the plugin that its parent started. Without this flag the core does not
     *  use the plugin there. */
    GPUHAL_PLUGIN_FORK_SAFE = 1u,
    /** event_query, event_record and queue_flush return at once and event_block within its timeout, as far as the
     *  driver allows: waiting threads of the application may call them, which saves a thread switch. */
    GPUHAL_PLUGIN_HONORS_TIMEOUTS = 2u
};

/** Flags of gpuhal_plugin.sample() and processes(). */
enum {
    /** A sleeping device may be woken, or the core saw it awake a moment ago: the plugin need not ask the system
     *  whether it sleeps. */
    GPUHAL_SAMPLE_MAY_WAKE = 1u
};

/** The result of gpuhal_plugin_query(): one constant, valid as long as the process. Members up to close are
 *  mandatory. */
typedef struct gpuhal_plugin {
    uint32_t size;       /**< sizeof(gpuhal_plugin) as the plugin knows it. */
    uint32_t abi;        /**< GPUHAL_ABI as the plugin knows it. */
    uint32_t flags;
    uint32_t reserved;
    /** Name of the backend: a lower-case letter, then lower-case letters, digits and `_`; at most 31 characters. */
    const char *name;
    const char *version; /**< Version of the plugin, for people: 1 to 63 bytes of UTF-8, no control characters. */

    /** BLOCKS. Called before all other calls; once per copy of the core, and there once for each set of options of the
     *  application's objects. Opens the vendor's library, but no device or context; starts no thread that can start
     *  later. *out_instance, NULL until then, is the plugin's state for this start; every call below gets it with its
     *  host. It is valid as long as the process, unless start() fails. Must be safe when another copy of the core calls
     *  it concurrently.
     *  @return GPUHAL_OK, GPUHAL_ERROR_NO_DRIVER, GPUHAL_ERROR_NO_PERMISSION, … */
    gpuhal_status (*start)(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);
    /** BLOCKS. Lists the devices and their facts; must not use device memory or create a context. Without devices it
     *  returns OK, or NO_DEVICE with a reason. An index must never change its device in a process: a later call only
     *  appends or omits devices. */
    gpuhal_status (*enumerate)(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
    /** Fills in the slots of device @p index, without opening it. NOT_FOUND for an index that was never enumerated. */
    gpuhal_status (*describe)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops);
    /** BLOCKS. Opens a device, or adopts the objects in @p adopt (NULL: none). @p ops has the slots from describe();
     *  open() clears slots that this opening lacks, and gives the reason by report() with NOT_SUPPORTED, even if it
     *  returns OK; the core repeats the reason. May be called several times for one index; each opening is closed
     *  separately. */
    gpuhal_status (*open)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                          const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
    /** BLOCKS. Closes an opening whose memory, queues and events have all been released. */
    void (*close)(gpuhal_plugin_device *device);

    /* Optional from here. */

    /** BLOCKS. Reads values of a device, which need not be open. @p count 0: all of its values. Values that come out of
     *  the same reading may be given too: the core asks for one at a time, and does not ask again for values that it
     *  has. */
    gpuhal_status (*sample)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
    /** BLOCKS. Gives facts of the link from one device to another; neither need be open. 0.x. */
    gpuhal_status (*link)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                          gpuhal_sink *sink);
    /** Returns the plugin's extension "<vendor>.<name>", for applications that know it (gpuhal_device_extension()): a
     *  table of functions, constant, valid as long as the process, the same at each call. NULL for an unknown name,
     *  without report(). It must return promptly, on any thread. The name is never NULL. */
    const void *(*query_extension)(const gpuhal_host *host, gpuhal_plugin_instance *instance, const char *name);
    /** Frees the allocations of start(), including the instance. For leak checks only: the core never calls it. */
    void (*stop)(const gpuhal_host *host, gpuhal_plugin_instance *instance);
    /** BLOCKS. Lists the processes that use a device, which need not be open, this one among them; flags as for
     *  sample(). Returns OK, also without any process; with another status, processes listed before count as well, and
     *  the status shows why there may be more: NOT_SUPPORTED, NO_PERMISSION, NOT_READY for a device that sleeps, … */
    gpuhal_status (*processes)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               uint32_t flags, gpuhal_sink *sink);
} gpuhal_plugin;

/** The one exported function. @p host_abi is the core's GPUHAL_ABI; a plugin that cannot serve it calls
 *  `host->report(host, GPUHAL_ERROR_INCOMPATIBLE, …)` and returns NULL. Must not start anything. */
typedef const gpuhal_plugin *gpuhal_plugin_query_fn(uint32_t host_abi, const gpuhal_host *host);

/** Another name, set on the compiler's command line, allows several plugins to be linked into one program. */
#ifndef GPUHAL_PLUGIN_QUERY
#define GPUHAL_PLUGIN_QUERY gpuhal_plugin_query
#endif
/** Marks the exported function. Defined empty on the compiler's command line, it exports nothing: for a plugin that is
 *  linked into another binary. */
#if !defined(GPUHAL_PLUGIN_API)
#if defined(_WIN32)
#define GPUHAL_PLUGIN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define GPUHAL_PLUGIN_API __attribute__((visibility("default")))
#else
#define GPUHAL_PLUGIN_API
#endif
#endif
GPUHAL_PLUGIN_API const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host);

/** The smallest size that the core accepts: up to the last mandatory member. */
#define GPUHAL_PLUGIN_MINIMUM ((uint32_t)(offsetof(gpuhal_plugin, close) + sizeof(void *)))
#define GPUHAL_OPS_MINIMUM ((uint32_t)(offsetof(gpuhal_ops, copy) + sizeof(void *)))

#ifdef __cplusplus
}
#endif
#endif
