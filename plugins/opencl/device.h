/* opencl/device.h: declarations that the files of this plugin share.
 *
 * An entry is one OpenCL device, kept for the life of the process under the index that it got first. An opened device
 * has a context and a few command queues ("internal streams"). A call without a queue takes an internal stream that no
 * other call uses, enqueues there, waits for its own work alone, and gives the stream back. A call with a queue
 * enqueues on that queue's command queue.
 *
 * Memory of kind DEVICE is a buffer that the host sees through map alone. If the device is the host's processor and its
 * driver has fine-grained shared memory, the buffer lies over such memory, and the host sees it at any time. UPLOAD and
 * READBACK are page-locked memory: a buffer that the driver allocated on the host and that stays mapped as long as it
 * lives. OpenCL forbids the device to touch a mapped buffer, so the buffer never takes part in a command. Its address
 * does, as the host side of a read or write. That is the fast path of GPU drivers, which know the address as
 * page-locked. Shared and imported host memory (CL_MEM_USE_HOST_PTR) also have a host address, but are buffers like any
 * other: gpuhal_opencl_buffer.mapped distinguishes them, not gpuhal_memory.host.
 *
 * The context is the plugin's, or the caller's, retained.
 */
#ifndef GPUHAL_OPENCL_DEVICE_H
#define GPUHAL_OPENCL_DEVICE_H

#include "driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* More than the threads that are likely to be in blocking calls at once, the helpers of copies included: PoCL 3.1's
 * device "basic" may wait for itself if two threads enqueue to one queue (pocl_update_event_running, for an event that
 * it is just completing). */
#define GPUHAL_OPENCL_INTERNAL_STREAMS 32u

/* clCreateProgramWithIL(), which was an extension before OpenCL 2.1. */
typedef cl_program CL_API_CALL gpuhal_opencl_create_il(cl_context context, const void *code, size_t bytes,
                                                       cl_int *out_code);

/* One device of the process. Constant once it can be found. */
typedef struct gpuhal_opencl_entry {
    cl_platform_id platform;
    cl_device_id id;
    uint32_t version; /* major * 100 + minor, the lower one of platform and device */
    uint64_t allocation_max, base_alignment;
    uint64_t import_alignment;          /* of host memory */
    bool software;                      /* a program on the host's processor */
    bool shares;                        /* and the host can see device memory at any time */
    bool compiles;                      /* OpenCL C */
    uint32_t defects;                   /* GPUHAL_OPENCL_ bits of defects.c */
    gpuhal_opencl_create_il *create_il; /* takes SPIR-V; NULL: the device does not */
} gpuhal_opencl_entry;

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    const gpuhal_opencl_entry *entry;
    cl_context context;
    cl_command_queue streams[GPUHAL_OPENCL_INTERNAL_STREAMS]; /* the first one is there from the beginning, the others
                                                                 once they are needed */
    _Atomic bool taken[GPUHAL_OPENCL_INTERNAL_STREAMS];       /* a flag for each, so that giving one back is a store */
    cl_command_queue lent;   /* the first of them, retained: the application may have got it */
    pthread_mutex_t growing; /* held to make streams, and to give one another queue */
    _Atomic uint32_t stream_count;
    _Atomic bool lost; /* a call reported it, or work did not end; it stays so */
};

/* A queue: one command queue in order, the plugin's or the caller's, retained. */
struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    cl_command_queue commands;
    cl_event *pending; /* of the plugin's commands that are not known to have ended, in order */
    uint32_t pending_count, pending_space;
    uint32_t recorded; /* number of them from before the latest recording */
    bool foreign;      /* the caller may enqueue here too, so that the plugin's last command need not be the last */
    cl_int error;      /* of failed work that no event has reported yet */
};

/* The object of a gpuhal_memory. */
typedef struct gpuhal_opencl_buffer {
    cl_mem mem;
    void *mapped;                                /* the lasting mapping of UPLOAD and READBACK, else NULL */
    bool imported;                               /* the bytes are the caller's host memory */
    bool shared;                                 /* lies over memory of clSVMAlloc(), at gpuhal_memory.host */
    _Atomic(struct gpuhal_opencl_parts *) parts; /* part.c; NULL until one is needed */
} gpuhal_opencl_buffer;

/* A command queue for one call. */
typedef struct gpuhal_opencl_stream {
    cl_command_queue queue;
    _Atomic bool *taken; /* NULL: shared with others, since all are taken */
} gpuhal_opencl_stream;

/* The destination of one call's commands. */
typedef struct gpuhal_opencl_track {
    gpuhal_plugin_queue *queue; /* NULL: a stream, and the call waits for its last command */
    gpuhal_opencl_stream stream;
    cl_command_queue commands;
    cl_event last;
} gpuhal_opencl_track;

/* Code that the driver has built. */
struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    cl_program program;
    bool spirv;        /* and not OpenCL C */
    bool reflects;     /* built so that kernels describe their arguments */
    uint64_t identity; /* of code, options, device and driver */
};

/* discovery.c */
gpuhal_status gpuhal_opencl_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
gpuhal_status gpuhal_opencl_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
/* Returns the entry with this index, or NULL. */
const gpuhal_opencl_entry *gpuhal_opencl_find(uint32_t index);

/* facts.c */
void gpuhal_opencl_list_facts(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry,
                              uint32_t index);
/* Returns whether the device is a program on the host's processor, even if it calls itself a GPU. */
bool gpuhal_opencl_is_software(cl_device_id id);

/* compute.c: limits and features of kernels. */
/* Gives the sizes of subgroups; 0 and 0 if the driver does not report them. */
void gpuhal_opencl_ask_subgroups(cl_device_id id, uint64_t *out_least, uint64_t *out_most);
/* Gives the architecture that code is compiled for, as in GPUHAL_FACT_TARGET_ARCHITECTURE; false if the driver does not
 * report it. */
bool gpuhal_opencl_ask_target(cl_device_id id, char *text, size_t bytes);
void gpuhal_opencl_list_compute(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id);
/* identity.c */
void gpuhal_opencl_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry);

/* defects.c: workarounds for some drivers. */
enum {
    GPUHAL_OPENCL_ONE_LAUNCH = 1u, /* a launch begins when all others have ended */
    GPUHAL_OPENCL_ONE_QUEUE = 2u,  /* a launch begins when those of other command queues have ended */
    GPUHAL_OPENCL_BUILD_TWICE = 4u /* a build that fails without a word about the code is tried once more */
};
uint32_t gpuhal_opencl_find_defects(cl_platform_id platform, cl_device_id id);
/* Surround enqueuing a launch. False: it has to wait for another launch; nothing was taken. */
bool gpuhal_opencl_take_turn(const gpuhal_plugin_device *device, cl_command_queue commands, bool waits);
/* @p launched: NULL if nothing was enqueued. */
void gpuhal_opencl_give_turn(const gpuhal_plugin_device *device, cl_command_queue commands, cl_event launched);
/* Called before the device is closed. */
void gpuhal_opencl_end_turns(const gpuhal_plugin_device *device);

/* open.c */
gpuhal_status gpuhal_opencl_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_opencl_close(gpuhal_plugin_device *device);

/* context.c */
/* Creates the command queue of an internal stream; NULL with a code. */
cl_command_queue gpuhal_opencl_create_stream(gpuhal_plugin_device *device, cl_int *out_code);
gpuhal_opencl_stream gpuhal_opencl_take_stream(gpuhal_plugin_device *device);
/* @p code: the result of the commands. After a failure the stream gets another queue. */
void gpuhal_opencl_give_stream(gpuhal_plugin_device *device, gpuhal_opencl_stream stream, cl_int code);
/* Waits for an event and releases it; @p code is the result of the call that made it. Returns the first error. */
cl_int gpuhal_opencl_finish(cl_int code, cl_event event);
/* Returns OK for CL_SUCCESS; else reports the error, and records that the device is lost. */
gpuhal_status gpuhal_opencl_result(gpuhal_plugin_device *device, const char *call, cl_int code);
/* Does the same for the end of an enqueued command. */
gpuhal_status gpuhal_opencl_executed(gpuhal_plugin_device *device, const char *call, cl_int code);
/* Returns DEVICE_LOST once the device is known to be lost. */
gpuhal_status gpuhal_opencl_alive(gpuhal_plugin_device *device);
/* Reports a fault of code, a kernel or a launch, and returns the status. */
gpuhal_status gpuhal_opencl_refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void gpuhal_opencl_describe_context(gpuhal_ops *ops);

/* memory.c and transfer.c: fill their slots, as far as the device's version has them. */
void gpuhal_opencl_describe_memory(gpuhal_ops *ops);
void gpuhal_opencl_describe_transfer(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
/* Surround the commands that a call enqueues, on a queue or an internal stream. */
gpuhal_opencl_track gpuhal_opencl_begin(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue);
/* @p code: of the last call that should have enqueued a command. Waits unless there is a queue. */
gpuhal_status gpuhal_opencl_end(gpuhal_plugin_device *device, gpuhal_opencl_track *t, const char *call, cl_int code);

/* part.c */
/* Creates a buffer over a part of a buffer, which may be a part itself. */
cl_mem gpuhal_opencl_create_part(cl_mem mem, uint64_t offset, uint64_t bytes, cl_int *out_code);
/* Takes such a buffer from the parts that are kept with the memory, or creates it; the caller releases it. */
cl_mem gpuhal_opencl_take_part(gpuhal_opencl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_int *out_code);
/* Called before the buffer itself is released. */
void gpuhal_opencl_release_parts(gpuhal_opencl_buffer *buffer);

/* program.c, reflect.c and kernel.c. Programs have the requirements of queues. */
/* Returns the formats that the device takes, as in the fact; NULL: none. */
const char *gpuhal_opencl_formats(const gpuhal_opencl_entry *entry);
void gpuhal_opencl_describe_program(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
/* Fills in the parameters of the description, which the driver must not contradict, or those of the driver. */
gpuhal_status gpuhal_opencl_fill_parameters(const gpuhal_plugin_program *program, cl_kernel kernel,
                                            const gpuhal_kernel_desc *desc, gpuhal_parameter *out_parameters,
                                            uint32_t count);
/* Fills in the size of groups of the description or the code, and all limits. */
gpuhal_status gpuhal_opencl_fill_limits(const gpuhal_plugin_program *program, cl_kernel kernel,
                                        const gpuhal_kernel_desc *desc, gpuhal_kernel_info *info);
void gpuhal_opencl_describe_kernel(gpuhal_ops *ops);

/* pending.c */
/* Makes room for more events; false: there is no memory. */
bool gpuhal_opencl_queue_grow(gpuhal_plugin_queue *queue);
/* Takes over the event of the command that was enqueued last. */
void gpuhal_opencl_queue_keep(gpuhal_plugin_queue *queue, cl_event event);
/* Releases the events of commands that have ended, and records a failure. */
void gpuhal_opencl_queue_retire(gpuhal_plugin_queue *queue);

/* queue.c and event.c. Both need functions of OpenCL 1.2. */
bool gpuhal_opencl_has_queues(const gpuhal_opencl_entry *entry);
void gpuhal_opencl_describe_queue(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
gpuhal_status gpuhal_opencl_event_create(gpuhal_plugin_device *device, uint32_t flags, gpuhal_plugin_event **out_event);
void gpuhal_opencl_event_destroy(gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_query(gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns);
/* Returns whether the recorded work has ended, also if it failed or the device is lost. */
bool gpuhal_opencl_event_has_ended(const gpuhal_plugin_event *event);
/* Returns the latest recording: NULL before the first. */
cl_event gpuhal_opencl_event_handle(const gpuhal_plugin_event *event);
/* The remaining slots of events. */
void gpuhal_opencl_describe_event(gpuhal_ops *ops);

/* share.c: the caller's host memory and buffers. */
gpuhal_status gpuhal_opencl_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Releases the buffer, and waits up to LET_GO_SECONDS until the driver no longer uses its host memory. */
void gpuhal_opencl_release_import(gpuhal_plugin_device *device, gpuhal_opencl_buffer *buffer);
void gpuhal_opencl_describe_share(gpuhal_ops *ops);

/* Returns the address of the plugin's page-locked memory, which no command uses as a buffer; NULL for all other
 * memory. */
static inline char *gpuhal_opencl_mapped(const gpuhal_memory *memory)
{
    return ((const gpuhal_opencl_buffer *)memory->object)->mapped ? memory->host : NULL;
}

static inline cl_mem gpuhal_opencl_mem(const gpuhal_memory *memory)
{
    return ((const gpuhal_opencl_buffer *)memory->object)->mem;
}

#endif
