/* cuda/device.h: what the files of this plugin share.
 *
 * An entry is one device as CUDA numbers it in this process; CUDA fixes that list when it is initialised, so the index of a
 * device is its ordinal. An opening works in a context: the device's primary one, which every user of the runtime API in the
 * process shares and which is retained while the opening lives, or one that the caller handed over. Each call makes it current if
 * it is not, and leaves the thread with the context that it had.
 *
 * A blocking call takes a stream of the opening ("lane") that nobody uses, enqueues there, waits for its own work and gives the
 * lane back. Lanes do not wait for the default stream, so the engine's work is not in their way. Behind an adopted device with a
 * stream, a lane first waits for what that stream had been given.
 *
 * Some errors of CUDA are sticky: the context is of no more use, and only the end of the process mends it. The first such code is
 * kept and answers every later call. For the primary context it is kept with the entry, which all its openings share. A context
 * that somebody else destroyed or reset is lost for the opening alone: the device has a new one for those who open it again.
 */
#ifndef GPUHAL_CUDA_DEVICE_H
#define GPUHAL_CUDA_DEVICE_H

#include "stream_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_CUDA_LANES      8u
#define GPUHAL_CUDA_PER_THREAD 2u    /* CU_STREAM_PER_THREAD: another stream on each thread, so nothing that threads can share */

/* One device of the process. Constant once it can be found, but for what is atomic. */
typedef struct gpuhal_cuda_entry {
    CUdevice device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool is_mig;              /* a part of a GPU that was divided */
    bool maps_host;           /* the device reads and writes page-locked memory */
    bool registers_host;      /* and memory that the caller owns */
    bool registers_read_only; /* also where nobody may write */
    bool has_ranges;          /* virtual memory management */
    bool exports_fd;
    char pci[24];       /* canonical; "" when unknown */
    char uuid[40];      /* canonical; "" when unknown */
    char nvml_uuid[48]; /* as NVML spells it: "GPU-…" or "MIG-…"; "" when unknown */
    char driver_version[80];
    _Atomic CUresult lost; /* the sticky code of the primary context, 0 while it works */
} gpuhal_cuda_entry;

/* One opening. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_cuda_entry *entry;
    CUcontext context;
    bool adopted;                      /* the context is the caller's */
    CUstream foreign;                  /* the caller's stream that blocking calls come after, or NULL */
    _Atomic CUresult *lost;            /* of the entry, or own_lost */
    _Atomic CUresult own_lost;         /* of an adopted context; of any that was destroyed under us */
    CUdeviceptr marker;                /* memory by which a reset of the context shows */
    uint64_t marker_id;                /* CUDA's number of it; 0: CUDA gives none */
    CUstream lanes[GPUHAL_CUDA_LANES]; /* the first one is there from the beginning, the others once they are needed */
    CUevent events[GPUHAL_CUDA_LANES]; /* one for each lane, for waiting without spinning */
    _Atomic uint32_t claimed;          /* bit i: lanes[i] is there, or a thread is making it */
    _Atomic uint32_t made;             /* bit i: lanes[i] is there */
    _Atomic uint32_t idle;             /* bit i: lanes[i] is there and nobody uses it */
};

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    CUstream stream;
    bool adopted; /* the stream is the caller's */
};

/* What entering the context changed of the thread, which leaving puts back. */
typedef struct gpuhal_cuda_visit {
    CUstreamCaptureMode mode; /* when relaxed */
    bool pushed, relaxed;
} gpuhal_cuda_visit;

/* A call under way: in the context, on a stream. */
typedef struct gpuhal_cuda_call {
    gpuhal_plugin_device *device;
    CUstream stream;
    CUevent event; /* of the lane; NULL on a queue */
    uint32_t bit;  /* of the lane; 0: shared with others, since all are taken */
    gpuhal_cuda_visit visit;
} gpuhal_cuda_call;

/* Physical memory at an address. */
typedef struct gpuhal_cuda_mapping {
    CUdeviceptr address;
    uint64_t bytes;
    CUmemGenericAllocationHandle handle;
} gpuhal_cuda_mapping;

typedef enum {
    GPUHAL_CUDA_PLAIN,      /* cuMemAlloc */
    GPUHAL_CUDA_HOST,       /* cuMemHostAlloc */
    GPUHAL_CUDA_REGISTERED, /* the caller's host memory */
    GPUHAL_CUDA_MAPPED,     /* a mapping: memory that can be given out, or was taken in */
    GPUHAL_CUDA_EXTERNAL,   /* memory of another API */
    GPUHAL_CUDA_WRAPPED     /* the caller's device memory */
} gpuhal_cuda_block_kind;

/* Page-locked memory of the caller, of which several blocks may be parts. */
typedef struct gpuhal_cuda_registration gpuhal_cuda_registration;

/* What gpuhal_memory.object points to. Transfers look at gpuhal_memory.address and .host alone. */
typedef struct gpuhal_cuda_block {
    gpuhal_cuda_block_kind kind;
    CUdeviceptr plain; /* what cuMemAlloc gave, before alignment; EXTERNAL: what was mapped */
    void *host;        /* what cuMemHostAlloc gave or cuMemHostRegister got */
    gpuhal_cuda_registration *registration;
    gpuhal_cuda_mapping mapping;
    CUexternalMemory external;
} gpuhal_cuda_block;

/* discovery.c */
gpuhal_status gpuhal_cuda_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
/* The entry with this index, or NULL. */
gpuhal_cuda_entry *gpuhal_cuda_find(uint32_t index);
/* An attribute of a device, @p otherwise when the driver does not know it. */
int gpuhal_cuda_attribute(CUdevice device, CUdevice_attribute attribute, int otherwise);

/* compute.c: what the device computes with. */
void gpuhal_cuda_tell_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *entry);

/* system.c: with the option cuda.system_root, files are looked for below that directory; the first start() decides. */
gpuhal_status gpuhal_cuda_use_system(const gpuhal_host *host, bool first);
/* What the file of this name tells of the device on the PCI bus; false when nothing. */
bool gpuhal_cuda_read_system(const gpuhal_cuda_entry *entry, const char *name, char *out_text, size_t size);
/* The version of the kernel's half of the driver; false when it is not known. */
bool gpuhal_cuda_read_module_version(char *out_text, size_t size);
/* How many GPUs the kernel's driver has, as far as this process may see; 0 also when nothing tells. */
uint32_t gpuhal_cuda_count_system(void);
/* Another number once the kernel's driver, or a node of it, came, went, or may be used: cuInit may then answer something else. */
uint32_t gpuhal_cuda_see_system(void);
/* The kernel's driver is there without its second half, which CUDA alone needs. */
bool gpuhal_cuda_lacks_uvm(void);
/* Why libcuda, which does not say, may find no device. Gives the status for it. */
gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size);

/* identity.c: fills pci, uuid, nvml_uuid and is_mig; tells them. */
void gpuhal_cuda_identify(gpuhal_cuda_entry *entry);
void gpuhal_cuda_tell_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *entry);

/* context.c */
gpuhal_status gpuhal_cuda_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_cuda_close(gpuhal_plugin_device *device);
/* Makes the context current; refuses with the sticky code of a lost one. Leave only what was entered. */
CUresult gpuhal_cuda_enter(gpuhal_plugin_device *device, gpuhal_cuda_visit *out_visit);
/* The same for letting go of things, which has to go on in a lost context too. */
CUresult gpuhal_cuda_enter_anyway(gpuhal_plugin_device *device, gpuhal_cuda_visit *out_visit);
/* Makes any context current. */
CUresult gpuhal_cuda_enter_context(CUcontext context, gpuhal_cuda_visit *out_visit);
void gpuhal_cuda_leave(const gpuhal_cuda_visit *visit);
/* Whether the context was destroyed, or its device reset: all that was in it went with it. */
bool gpuhal_cuda_is_gone(gpuhal_plugin_device *device);
/* OK while the processor may touch page-locked memory of the opening, which goes with the context. */
gpuhal_status gpuhal_cuda_check_host(gpuhal_plugin_device *device);
/* The code after which nothing works any more, 0 while it does. */
CUresult gpuhal_cuda_lost_code(gpuhal_plugin_device *device);
/* Inside the context. Refuses a stream that is being captured into a graph: nobody may wait for an event recorded there. */
CUresult gpuhal_cuda_may_record(CUstream stream);
/* Enters, and takes a stream: the queue's, or a lane. */
CUresult gpuhal_cuda_begin(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_cuda_call *out_call);
/* Waits when the call blocks, gives the lane back and leaves. @p code is what enqueueing answered. Returns the first error. */
CUresult gpuhal_cuda_end(gpuhal_cuda_call *call, CUresult code, uint64_t bytes);
/* OK for CUDA_SUCCESS; else reports the error, and remembers when the device is lost. */
gpuhal_status gpuhal_cuda_result(gpuhal_plugin_device *device, const char *call, CUresult code);
/* The same for a call of @p device that uses something of @p other: the one that is lost is the one whose context fails. */
gpuhal_status gpuhal_cuda_result_of_two(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        CUresult code);
void gpuhal_cuda_describe_context(gpuhal_ops *ops);

/* memory.c, registration.c, share.c, queue.c, virtual_memory.c and program.c: fill their slots, as far as the device has them. */
void gpuhal_cuda_describe_memory(gpuhal_ops *ops);
void gpuhal_cuda_describe_registration(const gpuhal_cuda_entry *entry, gpuhal_ops *ops);
void gpuhal_cuda_describe_share(const gpuhal_cuda_entry *entry, gpuhal_ops *ops);
void gpuhal_cuda_describe_queue(gpuhal_ops *ops);
void gpuhal_cuda_describe_ranges(const gpuhal_cuda_entry *entry, gpuhal_ops *ops);
void gpuhal_cuda_describe_program(gpuhal_ops *ops);

/* memory.c: an error of an allocation; out of memory comes with what the device has free. Inside the context. */
gpuhal_status gpuhal_cuda_allocation_failed(gpuhal_plugin_device *device, const char *call, CUresult code, uint64_t bytes);

/* registration.c: page-locks memory of the caller, or counts one more user where that is done already. Inside the context. */
CUresult gpuhal_cuda_lock_pages(const gpuhal_plugin_device *device, void *memory, uint64_t bytes, unsigned int flags,
                                gpuhal_cuda_registration **out_registration);
/* Counts one user less, also with a lost device; the last one's memory is the caller's alone again. */
CUresult gpuhal_cuda_unlock_pages(gpuhal_cuda_registration *registration);
/* Where the registration begins, which may be before the memory that was asked for. */
void *gpuhal_cuda_registered(const gpuhal_cuda_registration *registration);
/* The status of a failure to lock pages; OK for CUDA_SUCCESS. */
gpuhal_status gpuhal_cuda_lock_failed(gpuhal_plugin_device *device, const char *call, CUresult code);

/* share.c: memory that others see too. */
gpuhal_status gpuhal_cuda_allocate_shared(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
gpuhal_status gpuhal_cuda_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Gives back what the block of one of the two holds. Inside the context. */
void gpuhal_cuda_release_shared(gpuhal_cuda_block *block);

/* virtual_memory.c: both inside the context. */
CUresult gpuhal_cuda_granularity(const gpuhal_plugin_device *device, uint64_t *out_bytes);
/* Physical memory of the device, for export when @p exported. */
CUresult gpuhal_cuda_create(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                            CUmemGenericAllocationHandle *out_handle);
/* Lets the device, and the peers, read and write there. */
CUresult gpuhal_cuda_allow(const gpuhal_plugin_device *device, CUdeviceptr address, uint64_t bytes,
                           gpuhal_plugin_device *const *peers, uint32_t peer_count);

/* link.c and telemetry.c */
gpuhal_status gpuhal_cuda_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink);
gpuhal_status gpuhal_cuda_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);

#include "../stream/stream.h"

#endif
