/* stream/stream.h: the declarations that this folder and a plugin share.
 *
 * CUDA and HIP are alike in most: a device, streams on which commands follow each other, events, addresses that host
 * and devices share. Their common code is written here once, and built into the cuda and the rocm plugin, each time
 * with the vendor's names from the plugin's stream_names.h. Contexts, queues, memory, discovery, the driver and
 * telemetry differ between the vendors, so each plugin has its own sources for them. Each plugin's device.h ends with
 * this header; all files of the plugin and of this folder include that device.h.
 *
 * "Inside the context" means for HIP: with the device current on the thread.
 */
#ifndef GPUHAL_STREAM_H
#define GPUHAL_STREAM_H

#define GPUHAL_HOST_PAGE 4096u /* page-locked memory is locked in these */
/* If the driver does not lock memory of the caller at once, it is locked in pieces that end at multiples of this in the
 * address space. So no copy need ask for pieces: every copy is divided at those addresses. NVIDIA's drivers from 580 on
 * lock less than 512 GiB at once: their table of pages, 16 bytes for each, must be smaller than 2 GiB (os-mlock.c of
 * the kernel modules). */
#define GPUHAL_LOCKED_PIECE (UINT64_C(256) << 30)

/* One device of the process. */
typedef GPUHAL_OWN(entry) gpuhal_stream_entry;
/* The state of the thread that entering the context changed, and that leaving restores. */
typedef GPUHAL_OWN(scope) gpuhal_stream_scope;

/* Page-locked memory of the caller. Several blocks may be parts of it. */
typedef struct gpuhal_stream_registration {
    struct gpuhal_stream_registration *next;
    uintptr_t start;
    uint64_t bytes;
    unsigned int flags; /* beside the common flags */
    uint32_t users;
    vendor_context context; /* the context of the registering call */
    int device;
    bool adopted;  /* the context is the caller's, and the registration ends with it */
    bool changing; /* a thread makes it or gives it back */
    bool gone;     /* a reset took it */
    bool in_pieces;
    uint64_t id;   /* the driver's number of it; 0: the driver gives none */
} gpuhal_stream_registration;

/* Why a value is missing. Reason 0 means that it is not. */
typedef struct gpuhal_stream_why {
    gpuhal_missing reason;
    char text[112];
} gpuhal_stream_why;

/* A call under way: inside the context, on a stream. */
typedef struct gpuhal_stream_call {
    gpuhal_plugin_device *device;
    vendor_stream stream;
    vendor_event event; /* of the internal stream; NULL on a queue */
    uint32_t bit;       /* of the internal stream; 0: shared with others, since all are taken */
    gpuhal_stream_scope scope;
} gpuhal_stream_call;

/* One side of a copy: memory of the host, or an address of the device. */
typedef struct gpuhal_stream_place {
    char *host; /* NULL: the address counts */
    uint64_t device;
} gpuhal_stream_place;

static inline gpuhal_stream_place gpuhal_stream_place_in(const gpuhal_memory *memory, uint64_t offset)
{
    return memory->host ? (gpuhal_stream_place){.host = (char *)memory->host + offset}
                        : (gpuhal_stream_place){.device = memory->address + offset};
}

/* Addresses of `bytes`. They may lie in a larger reservation if an alignment was requested. */
typedef struct gpuhal_stream_reservation {
    uint64_t start, whole_bytes, address, bytes;
} gpuhal_stream_reservation;

static inline gpuhal_stream_place gpuhal_stream_place_behind(gpuhal_stream_place place, uint64_t bytes)
{
    return place.host ? (gpuhal_stream_place){.host = place.host + bytes}
                      : (gpuhal_stream_place){.device = place.device + bytes};
}

/* Returns how many bytes from the address on one command may take: those of one piece of page-locked memory. A side on
 * the device is not divided. */
static inline uint64_t gpuhal_stream_piece(const void *host, uint64_t bytes)
{
    const uint64_t piece = GPUHAL_LOCKED_PIECE - (uintptr_t)host % GPUHAL_LOCKED_PIECE;
    return host && piece < bytes ? piece : bytes;
}

/* Physical memory at addresses. */
typedef struct gpuhal_stream_mapping {
    gpuhal_stream_reservation at;
    vendor_allocation handle;
} gpuhal_stream_mapping;

typedef enum {
    GPUHAL_BLOCK_PLAIN,      /* cuMemAlloc, hipMalloc */
    GPUHAL_BLOCK_HOST,       /* cuMemHostAlloc, hipHostMalloc */
    GPUHAL_BLOCK_REGISTERED, /* the caller's host memory */
    GPUHAL_BLOCK_MAPPED,     /* a mapping: memory that can be exported, or was imported */
    GPUHAL_BLOCK_EXTERNAL,   /* memory of another API */
    GPUHAL_BLOCK_WRAPPED     /* the caller's device memory */
} gpuhal_stream_block_kind;

/* The object behind gpuhal_memory.object. Transfers look at gpuhal_memory.address and .host alone. */
typedef struct gpuhal_stream_block {
    gpuhal_stream_block_kind kind;
    vendor_pointer plain; /* the driver's address, before alignment; EXTERNAL: the mapped address */
    void *host;           /* the host address that the driver returned or registered */
    gpuhal_stream_registration *registration;
    gpuhal_stream_mapping mapping;
    vendor_external external;
    int descriptor; /* EXTERNAL: the descriptor that the driver got */
    uint64_t file;  /* the file of the descriptor; 0: the driver owns the descriptor */
} gpuhal_stream_block;

/* ---- of the plugin */

/* discovery.c: initialises the API and fills in its devices; *out_count stays 0 on failure. Under a lock. */
gpuhal_status GPUHAL_OWN(make_list)(const gpuhal_host *host, gpuhal_stream_entry *entries, uint32_t space,
                                    uint32_t *out_count);
/* Lists the driver's devices that the API does not list, with numbers from @p first on. */
void GPUHAL_OWN(list_unlisted)(const gpuhal_host *host, gpuhal_sink *sink, uint32_t first);
/* Returns an attribute of a device; @p otherwise if the driver does not know it. */
int GPUHAL_OWN(attribute)(int device, unsigned int attribute, int otherwise);

/* identity.c: fills in the entry's identity; lists it. */
void GPUHAL_OWN(identify)(gpuhal_stream_entry *entry);
void GPUHAL_OWN(list_identity)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);
/* Appends to the name which part of a divided GPU the device is, unless the driver's name says so. */
void GPUHAL_OWN(name_part)(const gpuhal_stream_entry *entry, char *name, size_t size);
/* A value of 0 is missing: the driver does not know it. */
static inline void GPUHAL_OWN(list_number)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value > 0) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, GPUHAL_VENDOR_SPEAKER " gives no usable value");
    }
}
/* compute.c: lists the device's compute units, types of data and bandwidth. */
void GPUHAL_OWN(list_compute)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);

/* link.c: lists kind, generation, count and speed of the connection between the two. */
void GPUHAL_OWN(list_connection)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *from,
                                 const gpuhal_stream_entry *to);
/* telemetry.c, and nvml_processes.c or kfd_processes.c */
gpuhal_status GPUHAL_OWN(sample)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
gpuhal_status GPUHAL_OWN(processes)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                    uint32_t flags, gpuhal_sink *sink);

/* context.c: retains the device's context, or checks and adopts the caller's; releases it. */
gpuhal_status GPUHAL_OWN(acquire)(gpuhal_plugin_device *device, const gpuhal_native *adopt);
void GPUHAL_OWN(release_context)(gpuhal_plugin_device *device);
/* Inside the context: allocates the marker, memory that shows a reset. */
void GPUHAL_OWN(make_marker)(gpuhal_plugin_device *device);
gpuhal_status GPUHAL_OWN(native_device)(gpuhal_plugin_device *device, gpuhal_native *out_native);
/* Makes the context current; refuses with the code of the loss. Leave only an entered context. */
vendor_code GPUHAL_OWN(enter)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope);
/* Does the same for releasing objects, which must also work in a lost context, except for a HIP device that was
 * reset. */
vendor_code GPUHAL_OWN(enter_to_release)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope);
void GPUHAL_OWN(leave)(const gpuhal_stream_scope *scope);
/* Returns whether the context was destroyed or the device reset, as the marker shows. Everything in the context went
 * with it. */
bool GPUHAL_OWN(is_gone)(gpuhal_plugin_device *device);
/* Inside the context. Refuses a stream that is being captured into a graph: no thread may wait for an event
 * recorded there. Such a code is not the driver's, so *out_call is NULL. */
vendor_code GPUHAL_OWN(may_record)(vendor_stream stream, const char **out_call);
/* A function that only describes or prepares may be missing. An exported function that returns "not supported" counts
 * as missing too: that code becomes OK, and the caller keeps its assumption. */
static inline vendor_code GPUHAL_OWN(may_lack)(vendor_code code)
{
    if (code != GPUHAL_VENDOR_NOT_SUPPORTED) {
        return code;
    }
    GPUHAL_OWN(ignore)(code);
    return GPUHAL_VENDOR_OK;
}
/* Returns OK for success; otherwise reports the error, and records whether the device is lost. @p call returned the
 * code; NULL: no call did now, the device was lost before. */
gpuhal_status GPUHAL_OWN(result)(gpuhal_plugin_device *device, const char *call, vendor_code code);
/* Does the same for a call that only looks something up. A runtime may return the code of a lost device for an unknown
 * name (chipStar does), so the device is lost only if another call says so too. Otherwise the status is DRIVER. */
gpuhal_status GPUHAL_OWN(result_of_lookup)(gpuhal_plugin_device *device, const char *call, vendor_code code);
/* Does the same for a call of @p device that uses an object of @p other: the device whose calls fail is the lost
 * one. */
gpuhal_status GPUHAL_OWN(result_of_two)(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        vendor_code code);
/* Makes the context current; reports. */
static inline gpuhal_status GPUHAL_OWN(enter_or_report)(gpuhal_plugin_device *device, gpuhal_stream_scope *out_scope)
{
    const vendor_code code = GPUHAL_OWN(enter)(device, out_scope);
    return GPUHAL_OWN(result)(device, out_scope->failed, code);
}
/* Returns OK while calls still work on the device, otherwise their code: this call would return a persistent code
 * too. */
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

/* event.c. Inside the context: checks whether the caller's stream may be a queue; reports. */
gpuhal_status GPUHAL_OWN(check_stream)(gpuhal_plugin_device *device, vendor_stream stream);
/* Inside the context. */
vendor_code GPUHAL_OWN(create_events)(gpuhal_plugin_event *event, bool timed);
vendor_code GPUHAL_OWN(record)(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
/* Enter the context by themselves. */
void GPUHAL_OWN(queue_destroy)(gpuhal_plugin_queue *queue);
void GPUHAL_OWN(event_destroy)(gpuhal_plugin_event *event);

/* address.c, inside the context: finds the device's address of page-locked memory that begins at @p host. */
vendor_code GPUHAL_OWN(show_host)(void *host, uint64_t *out_address);
/* Returns NULL if @p bytes of this device's memory lie at the address, otherwise the reason. */
const char *GPUHAL_OWN(pointer_fault)(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes);
/* page_lock.c: returns the driver's number of the memory at the address; 0: it gives none. Inside a context. */
uint64_t GPUHAL_OWN(id_at)(uintptr_t address);
/* Returns whether a registration is still the one that was made here, by its number. */
static inline bool GPUHAL_OWN(is_there)(const gpuhal_stream_registration *one)
{
    return one->id == 0 || GPUHAL_OWN(id_at)(one->start) == one->id;
}
/* Registers a piece with the driver, inside the context; gives one back, by its beginning, also with a lost device. */
vendor_code GPUHAL_OWN(page_lock)(const gpuhal_stream_registration *own, uintptr_t start, uint64_t bytes,
                                  const char **out_call);
vendor_code GPUHAL_OWN(page_unlock)(gpuhal_plugin_device *device, const gpuhal_stream_registration *own,
                                    uintptr_t start);
/* Returns the flags for memory that is only read, 0 if the device knows none; whether others may succeed after this
 * code. */
unsigned int GPUHAL_OWN(read_only_flags)(const gpuhal_plugin_device *device);
bool GPUHAL_OWN(flags_matter)(vendor_code code);
/* Returns the status of a failure to lock pages, which @p read_only says are only to be read; OK for success. */
gpuhal_status GPUHAL_OWN(lock_failed)(gpuhal_plugin_device *device, const char *call, vendor_code code,
                                      bool read_only);

/* calls.c: inside the context; failures are not reported. */
/* Creates a stream that does not wait for the default one, and an event for waiting without spinning. */
vendor_code GPUHAL_OWN(create_stream)(vendor_stream *out_stream, vendor_event *out_event, const char **out_call);
void GPUHAL_OWN(destroy_stream)(vendor_stream stream, vendor_event event);
/* Enqueues a copy; returns the name of the call for it. */
vendor_code GPUHAL_OWN(copy_bytes)(vendor_stream stream, const gpuhal_stream_place *to,
                                   const gpuhal_stream_place *from, uint64_t bytes);
const char *GPUHAL_OWN(copy_call)(const gpuhal_stream_place *to, const gpuhal_stream_place *from);
/* Does the same if a side may be host memory, known by the address that the device has for it. */
vendor_code GPUHAL_OWN(copy_anywhere)(vendor_stream stream, uint64_t to, uint64_t from, uint64_t bytes);
/* Does the same between two devices. */
vendor_code GPUHAL_OWN(copy_between)(vendor_stream stream, uint64_t to, vendor_context to_device, uint64_t from,
                                     vendor_context from_device, uint64_t bytes);
/* Enqueues a copy of rows that lie evenly. */
vendor_code GPUHAL_OWN(copy_rows)(vendor_stream stream, const gpuhal_stream_place *to, uint64_t to_pitch,
                                  const gpuhal_stream_place *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows);
/* Enqueues a fill; @p at and @p bytes are multiples of the pattern's size, which is 1, 2 or 4. */
vendor_code GPUHAL_OWN(fill_whole)(vendor_stream stream, uint64_t at, const unsigned char *pattern,
                                   uint32_t pattern_bytes, uint64_t bytes);
/* Returns whether any of these bytes are not page-locked, as far as the driver knows. */
bool GPUHAL_OWN(is_pageable)(const void *host, uint64_t bytes);
/* Finds the version of CUDA or HIP; false if it is not known. */
bool GPUHAL_OWN(api_version)(char *out_text, size_t size);
/* Reserves addresses; an alignment of 0 is that of the granularity. */
vendor_code GPUHAL_OWN(reserve)(uint64_t bytes, uint64_t alignment, gpuhal_stream_reservation *out_reserved);
/* Takes a mapping away. */
void GPUHAL_OWN(unmap)(uint64_t address, uint64_t bytes);
/* Imports memory by its descriptor, which stays the caller's. */
vendor_code GPUHAL_OWN(import_handle)(int descriptor, vendor_allocation *out_handle);

/* compute.c: finds the device's target (`sm_90`, `gfx942`); "" if it is not certain. */
#define GPUHAL_STREAM_TARGET 32
void GPUHAL_OWN(name_target)(const gpuhal_stream_entry *entry, char out_name[GPUHAL_STREAM_TARGET]);
/* module.c: returns whether an image of this format ends at the stated size. */
bool GPUHAL_OWN(is_image)(const char *format, const unsigned char *image, uint64_t bytes);
/* Returns whether code for one target may run on a device with another. The driver knows more, and has the last
 * word. */
bool GPUHAL_OWN(takes_target)(const char *format, const char *target, const char *device);
/* Returns whether all options are known; otherwise @p out_unknown is the first unknown one. */
bool GPUHAL_OWN(takes_options)(const gpuhal_code *code, char *out_unknown, size_t size);
/* Inside the context. Passes the whole output of the compiler to @p build, and the beginning of its complaint, in one
 * line, to @p out_words. */
vendor_code GPUHAL_OWN(load_module)(const gpuhal_code *code, const void *image, gpuhal_plugin_build *build,
                                    vendor_module *out_module, char *out_words, size_t size);
/* Advises what to do about a module that the driver refused with this code, unless the vendor's text says it. */
bool GPUHAL_OWN(explain_refusal)(vendor_code code, char *out_text, size_t size);
/* Inside the context: reads an attribute of a function; -1 if this driver has none. */
vendor_code GPUHAL_OWN(of_function)(int *out_value, unsigned int attribute, vendor_function function);
/* Inside the context: makes the function ready, with launches that may ask for all shared memory: @p most; the code has
 * @p own of it already. @p out_call is the failed call. */
vendor_code GPUHAL_OWN(prepare_function)(vendor_function function, uint32_t own, uint32_t most, const char **out_call);
/* Inside the context: finds the size of a parameter, by its number; 0 after the last one. */
#define GPUHAL_STREAM_UNKNOWN UINT64_MAX /* the driver does not say */
vendor_code GPUHAL_OWN(parameter_bytes)(vendor_function function, uint32_t index, uint64_t *out_bytes);

/* ---- of this folder */

/* discovery.c */
gpuhal_status GPUHAL_OWN(enumerate)(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
/* Returns the entry with this index, or NULL. */
gpuhal_stream_entry *GPUHAL_OWN(find)(uint32_t index);

/* context.c */
gpuhal_status GPUHAL_OWN(open)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void GPUHAL_OWN(close)(gpuhal_plugin_device *device);
/* Returns OK while the processor may touch page-locked memory of the opened device: CUDA's goes with the context, and
 * HIP's with a reset on a machine with one GPU. */
gpuhal_status GPUHAL_OWN(check_host)(gpuhal_plugin_device *device);
/* Reports an error of an allocation; an out-of-memory error includes the free memory of the device. Inside the
 * context. */
gpuhal_status GPUHAL_OWN(allocation_failed)(gpuhal_plugin_device *device, const char *call, vendor_code code,
                                            uint64_t bytes);

/* internal_stream.c: makes the first internal stream of an opened device; destroys all. Both inside the context. */
vendor_code GPUHAL_OWN(make_first_stream)(gpuhal_plugin_device *device, const char **out_call);
void GPUHAL_OWN(destroy_streams)(gpuhal_plugin_device *device);
/* Enters, and takes a stream: the queue's, or an internal one after the caller's stream; reports. */
gpuhal_status GPUHAL_OWN(begin)(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_stream_call *out_call);
/* Waits if the call blocks, gives the stream back and leaves. @p code is the result of enqueueing with the call @p
 * in_out_name. Returns the first error, and its call. */
vendor_code GPUHAL_OWN(end)(gpuhal_stream_call *call, vendor_code code, uint64_t bytes, const char **in_out_name);

/* facts.c */
void GPUHAL_OWN(list_facts)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);

/* link.c */
gpuhal_status GPUHAL_OWN(link)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink);

/* processes.c */
/* Returns whether pids are those of the machine. */
bool GPUHAL_OWN(is_first_namespace)(void);
/* Lists a process, marked if this process cannot see it. */
void GPUHAL_OWN(give_process)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_plugin_process process);
/* Reports why there may be more processes than were listed; OK for reason 0. */
gpuhal_status GPUHAL_OWN(processes_failed)(const gpuhal_host *host, const gpuhal_stream_why *why, const char *call,
                                           int64_t code);

/* management.c */
gpuhal_stream_why GPUHAL_OWN(because)(gpuhal_missing reason, const char *text);
/* Returns whether a sample of these keys has the key. An empty list stands for all keys. */
bool GPUHAL_OWN(wants)(const gpuhal_key *keys, uint32_t count, gpuhal_key key);
/* Waits for the right to call the management library; false: the thread with the turn hangs there. */
bool GPUHAL_OWN(take_turn)(void);
void GPUHAL_OWN(give_turn)(void);

/* system.c: reads the option; the first start() decides. */
#define GPUHAL_STREAM_PATH    512
#define GPUHAL_STREAM_DEVICES "/sys/bus/pci/devices"
gpuhal_status GPUHAL_OWN(use_system)(const gpuhal_host *host, bool first);
/* Writes the full path, with the root in front. */
void GPUHAL_OWN(path)(char out_path[GPUHAL_STREAM_PATH], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Reads a file, ends it with a zero and returns its length; 0 with errno on failure, and 0 with errno 0 for an empty
 * file. */
size_t GPUHAL_OWN(read_file)(const char *path, char *out_bytes, size_t size);
/* Reads the first line of a file; false if the line is empty, or with errno if the file cannot be read. */
bool GPUHAL_OWN(read_line)(const char *path, char *out_text, size_t size);
/* Reads the first line of a file of the device's directory. */
bool GPUHAL_OWN(read_system)(const gpuhal_stream_entry *entry, const char *name, char *out_text, size_t size);
void GPUHAL_OWN(list_numa_node)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry);
bool GPUHAL_OWN(is_asleep)(const gpuhal_stream_entry *entry);
/* Returns bytes per second over @p lanes of PCI Express, in one direction; 0 for an unknown generation. */
uint64_t GPUHAL_OWN(pcie_speed)(uint64_t generation, uint64_t lanes);

/* environment.c: lists those of the vendor's variables that are set, with commas; false and "" if none is set. The
 * names end with NULL. */
bool GPUHAL_OWN(list_variables)(const char *const *names, char *out_text, size_t size);
/* Names the cause that keeps devices of the kernel's driver from being listed, up to the verb: "HIP_VISIBLE_DEVICES, or
 * what this process may open, hides". */
void GPUHAL_OWN(say_what_hides)(const char *const *names, char *out_text, size_t size);

/* transfer.c, inside the context: enqueues a copy, piece by piece of page-locked memory. */
vendor_code GPUHAL_OWN(copy_pieces)(vendor_stream stream, gpuhal_stream_place to, gpuhal_stream_place from,
                                    uint64_t bytes);
/* Returns whether the driver would wait for the work of a stream before a copy in it returns. A side in host memory is
 * its address; a side on the device is NULL. */
bool GPUHAL_OWN(waits)(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes);

/* virtual_memory.c: all inside the context. */
vendor_code GPUHAL_OWN(granularity)(const gpuhal_plugin_device *device, uint64_t *out_bytes);
/* Creates physical memory of the device, for export if @p exported. */
vendor_code GPUHAL_OWN(create)(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                               vendor_allocation *out_handle);
/* Maps physical memory at reserved addresses, and lets the device and the peers read and write there. @p out_call is
 * the failed call. */
vendor_code GPUHAL_OWN(map)(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes,
                            vendor_allocation handle, gpuhal_plugin_device *const *peers, uint32_t peer_count,
                            const char **out_call);
void GPUHAL_OWN(free_addresses)(const gpuhal_stream_reservation *reserved);

/* registration.c: page-locks memory of the caller, or counts one more user of memory that is locked already. The second
 * flags are used if they differ and the driver refuses the first. Inside the context. @p out_call is the failed
 * call. */
vendor_code GPUHAL_OWN(lock_pages)(gpuhal_plugin_device *device, void *memory, uint64_t bytes,
                                   const unsigned int flags[2], gpuhal_stream_registration **out_registration,
                                   const char **out_call);
/* Counts one user less, also with a lost device. After the last user the memory is the caller's alone again. */
vendor_code GPUHAL_OWN(unlock_pages)(gpuhal_plugin_device *device, gpuhal_stream_registration *registration);

/* share.c: memory that others see too. */
gpuhal_status GPUHAL_OWN(allocate_shared)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                          gpuhal_memory *out_memory);
gpuhal_status GPUHAL_OWN(import)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Releases the resources of such a block. Inside the context. */
void GPUHAL_OWN(release_shared)(gpuhal_stream_block *block);

/* Fill their slots, as far as the device has them. */
void GPUHAL_OWN(describe_context)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_memory)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_registration)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);
void GPUHAL_OWN(describe_share)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);
void GPUHAL_OWN(describe_transfer)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_rect)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_queue)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_peer)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_program)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_ranges)(const gpuhal_stream_entry *entry, gpuhal_ops *ops);

#endif
