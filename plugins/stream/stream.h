/* stream/stream.h: the declarations that this folder and a plugin share.
 *
 * CUDA and HIP have most concepts in common. This folder contains the common code. It is compiled into both the cuda
 * and the rocm plugin, each time with the vendor's names from the plugin's stream_names.h. Contexts, queues, memory,
 * discovery, the driver and telemetry differ between the vendors, so each plugin has its own sources for them. Each
 * plugin's device.h includes this header at its end. All files of the plugin and of this folder include that device.h.
 *
 * "Inside the context" means for HIP that the device is current on the thread.
 */
#ifndef GPUHAL_STREAM_H
#define GPUHAL_STREAM_H

#define GPUHAL_HOST_PAGE 4096u /* unit of page-locking */
/* If the driver cannot lock the caller's memory in one call, the memory is locked in pieces that end at multiples of
 * this size. Copies by the driver from or to host memory are split at these addresses, whether or not the memory was
 * locked in pieces. NVIDIA drivers since version 580 cannot lock 512 GiB or more in one call: their page table, with
 * 16 bytes for each page, must be smaller than 2 GiB (os-mlock.c of the kernel modules). */
#define GPUHAL_LOCKED_PIECE (UINT64_C(256) << 30)

typedef GPUHAL_OWN(entry) gpuhal_stream_entry;
typedef GPUHAL_OWN(scope) gpuhal_stream_scope;

/* Page-locked memory of the caller. One registration may contain several blocks. */
typedef struct gpuhal_stream_registration {
    struct gpuhal_stream_registration *next;
    uintptr_t start;
    uint64_t bytes;
    unsigned int flags; /* without the common flags */
    uint32_t users;
    vendor_context context; /* the context of the registering call */
    int device;
    bool adopted;  /* the context is the caller's; destroying it ends the registration */
    bool changing; /* a thread is registering or unregistering it */
    bool gone;     /* a device reset ended the registration */
    bool in_pieces;
    uint64_t id;   /* the driver's ID for this memory, or 0 if there is none */
} gpuhal_stream_registration;

/* The reason why a value is missing, or 0 if it is not missing. */
typedef struct gpuhal_stream_why {
    gpuhal_missing reason;
    char text[112];
} gpuhal_stream_why;

/* A call in progress: inside the context, on a stream. */
typedef struct gpuhal_stream_call {
    gpuhal_plugin_device *device;
    vendor_stream stream;
    vendor_event event; /* the internal stream's event; NULL for a queue's stream */
    uint32_t bit;       /* the internal stream's bit; 0 if the stream is shared or a queue's */
    gpuhal_stream_scope scope;
} gpuhal_stream_call;

/* One side of a copy: host memory or a device address. */
typedef struct gpuhal_stream_place {
    char *host; /* NULL if `device` is valid */
    uint64_t device;
} gpuhal_stream_place;

/* Returns the host address at which copies and fills use the memory, or NULL. They use managed memory, which alone has
 * both this flag and a host address, at its address on the device: so the device does the work, where the pages are. */
static inline char *gpuhal_stream_host_of(const gpuhal_memory *memory)
{
    return memory->flags & GPUHAL_MEMORY_DEVICE_LOCAL ? NULL : memory->host;
}

static inline gpuhal_stream_place gpuhal_stream_place_in(const gpuhal_memory *memory, uint64_t offset)
{
    char *const host = gpuhal_stream_host_of(memory);
    return host ? (gpuhal_stream_place){.host = host + offset}
                : (gpuhal_stream_place){.device = memory->address + offset};
}

/* An address range of `bytes`. If an alignment was requested, the range may lie inside a larger reservation. */
typedef struct gpuhal_stream_reservation {
    uint64_t start, whole_bytes, address, bytes;
} gpuhal_stream_reservation;

static inline gpuhal_stream_place gpuhal_stream_place_behind(gpuhal_stream_place place, uint64_t bytes)
{
    return place.host ? (gpuhal_stream_place){.host = place.host + bytes}
                      : (gpuhal_stream_place){.device = place.device + bytes};
}

/* Returns the maximum number of bytes that one command may copy from this address, so that the copy stays within one
 * piece of page-locked memory. Device memory is not split. */
static inline uint64_t gpuhal_stream_piece(const void *host, uint64_t bytes)
{
    const uint64_t piece = GPUHAL_LOCKED_PIECE - (uintptr_t)host % GPUHAL_LOCKED_PIECE;
    return host && piece < bytes ? piece : bytes;
}

/* The flags of every kernel. */
#define GPUHAL_STREAM_LAUNCH_FORMS (GPUHAL_KERNEL_ADDS_LOCAL | GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_NULL_BUFFERS)

/* The core does not accept kernels with more parameters. */
#define GPUHAL_STREAM_ARGUMENTS_MAX 1024u

/* A launch as the driver's functions take it: one pointer for each parameter. Memory is passed as an address. Local
 * memory is not a parameter; its size is added to the launch's single block of shared memory. Some pointers point into
 * the structure itself, so it must not be moved before the driver's function has returned. */
typedef struct gpuhal_stream_launch {
    vendor_function function;
    const uint32_t *groups, *group_size;
    uint32_t shared_bytes;
    void *pointers[GPUHAL_STREAM_ARGUMENTS_MAX];
    uint64_t addresses[GPUHAL_STREAM_ARGUMENTS_MAX];
} gpuhal_stream_launch;

/* Physical memory and its mapped address range. */
typedef struct gpuhal_stream_mapping {
    gpuhal_stream_reservation at;
    vendor_allocation handle;
} gpuhal_stream_mapping;

typedef enum {
    GPUHAL_BLOCK_PLAIN,      /* cuMemAlloc, hipMalloc, and managed memory, which is freed in the same way */
    GPUHAL_BLOCK_HOST,       /* cuMemHostAlloc, hipHostMalloc */
    GPUHAL_BLOCK_REGISTERED, /* the caller's host memory */
    GPUHAL_BLOCK_MAPPED,     /* a mapping of exportable or imported memory */
    GPUHAL_BLOCK_EXTERNAL,   /* memory from another API */
    GPUHAL_BLOCK_WRAPPED     /* the caller's device memory */
} gpuhal_stream_block_kind;

/* The object behind gpuhal_memory.object. Transfers use only gpuhal_memory.address and .host. */
typedef struct gpuhal_stream_block {
    gpuhal_stream_block_kind kind;
    vendor_pointer plain; /* the driver's address before alignment; for EXTERNAL, the mapped address */
    void *host;           /* the host address that the driver returned or registered */
    gpuhal_stream_registration *registration;
    gpuhal_stream_mapping mapping;
    vendor_external external;
    int descriptor; /* for EXTERNAL, the descriptor that was passed to the driver */
    uint64_t file;  /* identifies the descriptor's file; 0 if the driver owns the descriptor */
} gpuhal_stream_block;

/* ---- defined by the plugin */

/* discovery.c: initialises the API and fills in its devices. *out_count stays 0 on failure. The caller holds a lock. */
gpuhal_status GPUHAL_OWN(make_list)(const gpuhal_host *host, gpuhal_stream_entry *entries, uint32_t space,
                                    uint32_t *out_count);
/* Lists the driver's devices that the API does not list, numbered from @p first. */
void GPUHAL_OWN(list_unlisted)(const gpuhal_host *host, gpuhal_sink *sink, uint32_t first);
/* Returns a device attribute, or @p otherwise if the driver does not know the attribute. */
int GPUHAL_OWN(attribute)(int device, unsigned int attribute, int otherwise);

/* identity.c */
void GPUHAL_OWN(identify)(gpuhal_stream_entry *entry);
void GPUHAL_OWN(list_identity)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);
/* Appends the GPU partition to the device's name, unless the driver's name already contains the partition. */
void GPUHAL_OWN(name_part)(const gpuhal_stream_entry *entry, char *name, size_t size);
/* Lists the value 0 as missing, because it means that the driver does not know the number. */
static inline void GPUHAL_OWN(list_number)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value > 0) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, GPUHAL_VENDOR_SPEAKER " gives no usable value");
    }
}
/* compute.c */
void GPUHAL_OWN(list_compute)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);

/* link.c */
void GPUHAL_OWN(list_connection)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *from,
                                 const gpuhal_stream_entry *to);
/* telemetry.c, and nvml_processes.c or kfd_processes.c */
gpuhal_status GPUHAL_OWN(sample)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
gpuhal_status GPUHAL_OWN(processes)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                    uint32_t flags, gpuhal_sink *sink);

/* context.c: acquire() retains the device's context, or checks and adopts the caller's context. */
gpuhal_status GPUHAL_OWN(acquire)(gpuhal_plugin_device *device, const gpuhal_native *adopt);
void GPUHAL_OWN(release_context)(gpuhal_plugin_device *device);
/* Inside the context: allocates the marker. */
void GPUHAL_OWN(make_marker)(gpuhal_plugin_device *device);
gpuhal_status GPUHAL_OWN(native_device)(gpuhal_plugin_device *device, gpuhal_native *out_native);
/* Makes the context current, or returns the loss code if the device is lost. Call leave() only after a successful
 * enter(). */
vendor_code GPUHAL_OWN(enter)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope);
/* Enters the context to release objects. Also enters a lost context, but not a context that is known to be destroyed or
 * reset (CUDA), or a device that was reset (HIP). */
vendor_code GPUHAL_OWN(enter_to_release)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope);
void GPUHAL_OWN(leave)(const gpuhal_stream_scope *scope);
/* Checks with the marker whether the context was destroyed or the device was reset. If so, all objects of the context
 * are destroyed too. */
bool GPUHAL_OWN(is_gone)(gpuhal_plugin_device *device);
/* Called inside the context. Refuses a stream that is being captured into a graph, because no thread may wait for an
 * event that is recorded in such a stream. *out_call is NULL if the driver did not return the code. */
vendor_code GPUHAL_OWN(may_record)(vendor_stream stream, const char **out_call);
/* For optional functions that only query or prepare something. If such a function returns "not supported", the code
 * becomes OK, and the caller keeps its default value. */
static inline vendor_code GPUHAL_OWN(may_lack)(vendor_code code)
{
    if (code != GPUHAL_VENDOR_NOT_SUPPORTED) {
        return code;
    }
    GPUHAL_OWN(ignore)(code);
    return GPUHAL_VENDOR_OK;
}
/* Returns OK for success; otherwise reports the error and records whether the device is lost. @p call is the call that
 * returned the code, or NULL if no driver call returned it, for example because the device was already lost. */
gpuhal_status GPUHAL_OWN(result)(gpuhal_plugin_device *device, const char *call, vendor_code code);
/* Like result(), for a lookup call. A runtime may return the device-lost code for an unknown name (chipStar does), so
 * the device counts as lost only if another call confirms the loss. Otherwise the status is DRIVER. */
gpuhal_status GPUHAL_OWN(result_of_lookup)(gpuhal_plugin_device *device, const char *call, vendor_code code);
/* Like result(), for a call on @p device that uses an object of @p other. The device whose calls fail counts as
 * lost. */
gpuhal_status GPUHAL_OWN(result_of_two)(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        vendor_code code);
static inline gpuhal_status GPUHAL_OWN(enter_or_report)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope)
{
    const vendor_code code = GPUHAL_OWN(enter)(device, out_scope);
    return GPUHAL_OWN(result)(device, out_scope->failed, code);
}
/* Returns OK while driver calls on the device work, otherwise their error code. A persistent error also makes this call
 * fail. */
static inline vendor_code GPUHAL_OWN(probe)(gpuhal_plugin_device *device)
{
    gpuhal_stream_scope scope;
    size_t free_bytes, total;
    vendor_code code = GPUHAL_OWN(enter)(device, &scope);
    if (code == GPUHAL_VENDOR_OK) {
        code = GPUHAL_VENDOR_MEMORY_INFO(&free_bytes, &total);
        GPUHAL_OWN(leave)(&scope);
    }
    return code;
}

/* event.c. Inside the context: checks whether the caller's stream can be used as a queue; reports errors. */
gpuhal_status GPUHAL_OWN(check_stream)(gpuhal_plugin_device *device, vendor_stream stream);
/* Called inside the context. */
vendor_code GPUHAL_OWN(create_events)(gpuhal_plugin_event *event, bool timed);
vendor_code GPUHAL_OWN(record)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
/* The next two functions enter the context themselves. */
void GPUHAL_OWN(queue_destroy)(gpuhal_plugin_queue *queue);
void GPUHAL_OWN(event_destroy)(gpuhal_plugin_event *event);

/* address.c. Inside the context: finds the device address of the page-locked memory that begins at @p host. */
vendor_code GPUHAL_OWN(show_host)(void *host, uint64_t *out_address);
/* Returns NULL if the device's memory at the address has at least @p bytes, otherwise an error message. */
const char *GPUHAL_OWN(pointer_fault)(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes);
/* page_lock.c. Inside a context: returns the driver's ID for the memory at the address, or 0 if there is none. */
uint64_t GPUHAL_OWN(id_at)(uintptr_t address);
/* Compares IDs to check whether the driver still has this registration. */
static inline bool GPUHAL_OWN(is_there)(const gpuhal_stream_registration *one)
{
    return one->id == 0 || GPUHAL_OWN(id_at)(one->start) == one->id;
}
/* page_lock() registers a piece with the driver, inside the context. page_unlock() unregisters the piece that begins at
 * @p start, even on a lost device, and enters the context itself. */
vendor_code GPUHAL_OWN(page_lock)(const gpuhal_stream_registration *own, uintptr_t start, uint64_t bytes,
                                  const char **out_call);
vendor_code GPUHAL_OWN(page_unlock)(gpuhal_plugin_device *device, const gpuhal_stream_registration *own,
                                    uintptr_t start);
/* read_only_flags() returns the flags for read-only memory, or 0 if the device does not support such memory.
 * flags_matter() returns whether other flags might succeed after this error. */
unsigned int GPUHAL_OWN(read_only_flags)(const gpuhal_plugin_device *device);
bool GPUHAL_OWN(flags_matter)(vendor_code code);
/* Reports a failed page-lock and returns its status; returns OK for success. @p read_only: read-only access was
 * requested. */
gpuhal_status GPUHAL_OWN(lock_failed)(gpuhal_plugin_device *device, const char *call, vendor_code code,
                                      bool read_only);

/* calls.c: inside the context; these functions do not report errors. */
/* Creates a stream that does not synchronize with the default stream, and an event for waiting without spinning. */
vendor_code GPUHAL_OWN(create_stream)(vendor_stream *out_stream, vendor_event *out_event, const char **out_call);
void GPUHAL_OWN(destroy_stream)(vendor_stream stream, vendor_event event);
/* copy_bytes() enqueues a copy. copy_call() returns the name of the driver call that copy_bytes() uses. */
vendor_code GPUHAL_OWN(copy_bytes)(vendor_stream stream, const gpuhal_stream_place *to,
                                   const gpuhal_stream_place *from, uint64_t bytes);
const char *GPUHAL_OWN(copy_call)(const gpuhal_stream_place *to, const gpuhal_stream_place *from);
/* Enqueues a copy between device addresses. Either address may refer to host memory. */
vendor_code GPUHAL_OWN(copy_anywhere)(vendor_stream stream, uint64_t to, uint64_t from, uint64_t bytes);
vendor_code GPUHAL_OWN(copy_between)(vendor_stream stream, uint64_t to, vendor_context to_device, uint64_t from,
                                     vendor_context from_device, uint64_t bytes);
vendor_code GPUHAL_OWN(copy_rows)(vendor_stream stream, const gpuhal_stream_place *to, uint64_t to_pitch,
                                  const gpuhal_stream_place *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows);
/* Enqueues a fill; @p at and @p bytes are multiples of the pattern's size, which is 1, 2 or 4. */
vendor_code GPUHAL_OWN(fill_whole)(vendor_stream stream, uint64_t at, const unsigned char *pattern,
                                   uint32_t pattern_bytes, uint64_t bytes);
/* Returns whether any of these bytes are pageable, according to the driver. */
bool GPUHAL_OWN(is_pageable)(const void *host, uint64_t bytes);
/* Finds the CUDA or HIP version; returns false if it is unknown. */
bool GPUHAL_OWN(api_version)(char *out_text, size_t size);
/* Reserves addresses. If the alignment is 0, they are aligned to the granularity. */
vendor_code GPUHAL_OWN(reserve)(uint64_t bytes, uint64_t alignment, gpuhal_stream_reservation *out_reserved);
void GPUHAL_OWN(unmap)(uint64_t address, uint64_t bytes);
/* The caller keeps the descriptor. */
vendor_code GPUHAL_OWN(import_handle)(int descriptor, vendor_allocation *out_handle);

/* compute.c: finds the device's target (such as `sm_90` or `gfx942`), or "" if the target is not certain. */
#define GPUHAL_STREAM_TARGET 32
void GPUHAL_OWN(name_target)(const gpuhal_stream_entry *entry, char out_name[GPUHAL_STREAM_TARGET]);
/* module.c: returns whether an image in this format ends within @p bytes, as its own headers state. */
bool GPUHAL_OWN(is_image)(const char *format, const unsigned char *image, uint64_t bytes);
/* Returns whether code for @p target may run on a device with target @p device. The driver makes the final decision. */
bool GPUHAL_OWN(takes_target)(const char *format, const char *target, const char *device);
/* Returns whether all options are known; otherwise @p out_unknown is the first unknown one. */
bool GPUHAL_OWN(takes_options)(const gpuhal_code *code, char *out_unknown, size_t size);
/* Called inside the context. Passes the compiler's whole output to @p build. @p out_words receives the beginning of the
 * compiler's error message as one line. */
vendor_code GPUHAL_OWN(load_module)(const gpuhal_code *code, const void *image, gpuhal_plugin_build *build,
                                    vendor_module *out_module, char *out_words, size_t size);
/* Writes advice about a module that the driver refused with this code. Returns false if there is no advice for this
 * code. */
bool GPUHAL_OWN(explain_refusal)(vendor_code code, char *out_text, size_t size);
/* Inside the context: reads a function attribute. The value is -1 if the driver does not have this attribute. */
vendor_code GPUHAL_OWN(of_function)(int *out_value, unsigned int attribute, vendor_function function);
/* Inside the context: prepares the function so that launches may use all shared memory. @p most is the device's limit,
 * and @p own is the number of bytes that the code itself uses. @p out_call is the failed call. */
vendor_code GPUHAL_OWN(prepare_function)(vendor_function function, uint32_t own, uint32_t most, const char **out_call);
/* Inside the context: finds the size of a parameter by its index; 0 after the last one. */
#define GPUHAL_STREAM_UNKNOWN UINT64_MAX /* the driver does not report it */
vendor_code GPUHAL_OWN(parameter_bytes)(vendor_function function, uint32_t index, uint64_t *out_bytes);

/* graph.c: returns whether the driver has all functions for graphs. The others are called inside the context. */
bool GPUHAL_OWN(has_graphs)(void);
/* The result points into @p launch. */
vendor_kernel_node GPUHAL_OWN(kernel_node)(gpuhal_stream_launch *launch);
/* These two add a node that runs after the node @p after; NULL for the first node. The element of a fill has 1, 2 or 4
 * bytes, and its size divides the address. */
vendor_code GPUHAL_OWN(add_copy)(const gpuhal_plugin_device *device, vendor_graph graph, const vendor_node *after,
                                 const gpuhal_stream_place *to, const gpuhal_stream_place *from, uint64_t bytes,
                                 vendor_node *out_node);
vendor_code GPUHAL_OWN(add_fill)(const gpuhal_plugin_device *device, vendor_graph graph, const vendor_node *after,
                                 uint64_t at, uint32_t element, uint32_t element_bytes, uint64_t bytes,
                                 vendor_node *out_node);

/* ---- defined in this folder */

/* discovery.c */
gpuhal_status GPUHAL_OWN(enumerate)(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
/* Returns the entry with this index, or NULL. */
gpuhal_stream_entry *GPUHAL_OWN(find)(uint32_t index);

/* context.c */
gpuhal_status GPUHAL_OWN(open)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void GPUHAL_OWN(close)(gpuhal_plugin_device *device);
/* Returns OK while the CPU may access the opened device's page-locked memory. CUDA unmaps this memory when the context
 * is destroyed. HIP unmaps it when the device is reset, on a machine with one GPU. */
gpuhal_status GPUHAL_OWN(check_host)(gpuhal_plugin_device *device);
/* Called inside the context. An out-of-memory error includes the device's free memory. */
gpuhal_status GPUHAL_OWN(allocation_failed)(gpuhal_plugin_device *device, const char *call, vendor_code code,
                                            uint64_t bytes);

/* internal_stream.c. Inside the context: creates an opened device's first internal stream; destroys all internal
 * streams. */
vendor_code GPUHAL_OWN(make_first_stream)(gpuhal_plugin_device *device, const char **out_call);
void GPUHAL_OWN(destroy_streams)(gpuhal_plugin_device *device);
/* Enters the context and takes a stream: the queue's, or an internal one that is ordered after the caller's stream.
 * Reports errors. */
gpuhal_status GPUHAL_OWN(begin)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_stream_call *out_call);
/* Waits if the call blocks, gives the stream back and leaves the context. @p code is the result of enqueueing with the
 * call @p in_out_name. Returns the first error and the name of its call. */
vendor_code GPUHAL_OWN(end)(gpuhal_stream_call *call, vendor_code code, uint64_t bytes, const char **in_out_name);

/* facts.c */
void GPUHAL_OWN(list_facts)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);

/* link.c */
gpuhal_status GPUHAL_OWN(link)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink);

/* processes.c */
/* Returns whether this process is in the machine's first pid namespace. */
bool GPUHAL_OWN(is_first_namespace)(void);
/* Lists a process, with a flag if this process cannot see it. */
void GPUHAL_OWN(give_process)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_plugin_process process);
/* Reports why the list of processes may be incomplete; returns OK for reason 0. */
gpuhal_status GPUHAL_OWN(processes_failed)(const gpuhal_host *host, const gpuhal_stream_why *why, const char *call,
                                           int64_t code);

/* management.c */
gpuhal_stream_why GPUHAL_OWN(because)(gpuhal_missing reason, const char *text);
/* Returns whether a sample of these keys includes the key. An empty list means all keys. */
bool GPUHAL_OWN(wants)(const gpuhal_key *keys, uint32_t count, gpuhal_key key);
/* Waits for the exclusive right to call the management library; returns false if the thread that has it hangs. */
bool GPUHAL_OWN(take_turn)(void);
void GPUHAL_OWN(give_turn)(void);

/* system.c: reads the option. Only the first start() sets the root. */
#define GPUHAL_STREAM_PATH    512
#define GPUHAL_STREAM_DEVICES "/sys/bus/pci/devices"
gpuhal_status GPUHAL_OWN(use_system)(const gpuhal_host *host, bool first);
/* Writes the full path, including the root. */
void GPUHAL_OWN(path)(char out_path[GPUHAL_STREAM_PATH], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Reads a file, appends a NUL and returns the length. Returns 0 with errno set on failure, and 0 with errno 0 for an
 * empty file. */
size_t GPUHAL_OWN(read_file)(const char *path, char *out_bytes, size_t size);
/* Reads the first line of a file. Returns false if the line is empty, or, with errno set, if the file cannot be
 * read. */
bool GPUHAL_OWN(read_line)(const char *path, char *out_text, size_t size);
/* Reads the first line of a file in the device's sysfs directory. */
bool GPUHAL_OWN(read_system)(const gpuhal_stream_entry *entry, const char *name, char *out_text, size_t size);
void GPUHAL_OWN(list_numa_node)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);
bool GPUHAL_OWN(is_asleep)(const gpuhal_stream_entry *entry);
/* Returns bytes per second over @p lanes PCI Express lanes, in one direction; 0 for an unknown generation. */
uint64_t GPUHAL_OWN(pcie_speed)(uint64_t generation, uint64_t lanes);

/* environment.c: lists the vendor variables that are set, separated by commas; returns false and "" if none is set. @p
 * names ends with NULL. */
bool GPUHAL_OWN(list_variables)(const char *const *names, char *out_text, size_t size);
/* Names the reason why devices of the kernel driver are not listed, including the verb, as in
 * "HIP_VISIBLE_DEVICES, or missing access to device nodes, hides". */
void GPUHAL_OWN(say_what_hides)(const char *const *names, char *out_text, size_t size);

/* transfer.c. Inside the context: enqueues a copy, split at the boundaries of page-locked pieces. */
vendor_code GPUHAL_OWN(copy_pieces)(vendor_stream stream, gpuhal_stream_place to, gpuhal_stream_place from,
                                    uint64_t bytes);
/* Returns whether the driver would wait for the stream's work before a copy call returns. Pass the address of a side in
 * host memory, and NULL for a side on the device. */
bool GPUHAL_OWN(waits)(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes);

/* program.c */
void GPUHAL_OWN(gather)(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                        gpuhal_stream_launch *out);

/* virtual_memory.c: these functions run inside the context. */
vendor_code GPUHAL_OWN(granularity)(const gpuhal_plugin_device *device, uint64_t *out_bytes);
/* Creates physical memory on the device. */
vendor_code GPUHAL_OWN(create)(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                               vendor_allocation *out_handle);
/* Maps physical memory at reserved addresses and gives the device and its peers read and write access. @p out_call is
 * the failed call. */
vendor_code GPUHAL_OWN(map)(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes,
                            vendor_allocation handle, gpuhal_plugin_device *const *peers, uint32_t peer_count,
                            const char **out_call);
void GPUHAL_OWN(free_addresses)(const gpuhal_stream_reservation *reserved);

/* registration.c. Inside the context: page-locks the caller's memory, or counts one more user of memory that is already
 * locked. The second flags are tried if they differ and the driver refuses the first. @p out_call is the failed
 * call. */
vendor_code GPUHAL_OWN(lock_pages)(gpuhal_plugin_device *device, void *memory, uint64_t bytes,
                                   const unsigned int flags[2], gpuhal_stream_registration **out_registration,
                                   const char **out_call);
/* Removes one user, even on a lost device. The last user unregisters the memory. */
vendor_code GPUHAL_OWN(unlock_pages)(gpuhal_plugin_device *device, gpuhal_stream_registration *registration);

/* share.c: memory that other devices or processes can access. */
gpuhal_status GPUHAL_OWN(allocate_shared)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                          gpuhal_memory *out_memory);
gpuhal_status GPUHAL_OWN(import)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Called inside the context. */
void GPUHAL_OWN(release_shared)(gpuhal_stream_block *block);

/* memory.c and queue.c: slots for the table of plugin.c. */
gpuhal_status GPUHAL_OWN(native_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                        gpuhal_native *out_native);
gpuhal_status GPUHAL_OWN(wrap_memory)(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                      gpuhal_memory *out_memory);
gpuhal_status GPUHAL_OWN(native_queue)(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
gpuhal_status GPUHAL_OWN(native_event)(gpuhal_plugin_event *event, gpuhal_native *out_native);

/* Fill in their slots, as far as the device supports them. */
void GPUHAL_OWN(describe_context)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_memory)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_registration)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);
void GPUHAL_OWN(describe_share)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);
void GPUHAL_OWN(describe_transfer)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_rect)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_queue)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_peer)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_program)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_recording)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_ranges)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);

#endif
