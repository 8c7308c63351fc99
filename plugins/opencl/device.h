/* opencl/device.h: declarations that the files of this plugin share.
 *
 * An entry is one OpenCL device. It is kept until the process exits, under the index that it got first. An opened
 * device has a context and a few command queues ("internal streams"). A call without a queue acquires an unused
 * internal stream, enqueues its commands there, waits only for these commands, and releases the stream. A call with a
 * queue enqueues its commands on the queue's command queue.
 *
 * DEVICE memory is a buffer that the host can access only by mapping it. If the device is the CPU and its driver
 * supports fine-grained shared memory, the buffer uses such memory and is always host-visible. UPLOAD and READBACK
 * memory is page-locked. It is a buffer that the driver allocated on the host, and stays mapped until it is freed.
 * OpenCL forbids the device to access a mapped buffer, so commands never use the buffer itself. They use the mapped
 * address as the host side of a read or write. GPU drivers have a fast path for this, because they recognize
 * page-locked addresses. Shared and imported host memory (CL_MEM_USE_HOST_PTR) also has a host address, but commands
 * use its buffers. So check gpuhal_opencl_buffer.mapped rather than gpuhal_memory.host to detect page-locked memory.
 *
 * The context either belongs to the plugin or is a retained context of the caller.
 */
#ifndef GPUHAL_OPENCL_DEVICE_H
#define GPUHAL_OPENCL_DEVICE_H

#include "driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* Larger than the likely number of threads in blocking calls, including copy helper threads. PoCL 3.1's device
 * "basic" may deadlock if two threads enqueue to one queue (pocl_update_event_running(), for an event that is being
 * completed). */
#define GPUHAL_OPENCL_INTERNAL_STREAMS 32u

/* clCreateProgramWithIL(), an extension before OpenCL 2.1. */
typedef cl_program CL_API_CALL gpuhal_opencl_create_il(cl_context context, const void *code, size_t bytes,
                                                       cl_int *out_code);

/* Immutable once gpuhal_opencl_find() returns it. */
typedef struct gpuhal_opencl_entry {
    cl_platform_id platform;
    cl_device_id id;
    uint32_t version; /* major * 100 + minor; the lower of the platform's and the device's versions */
    uint64_t allocation_max, base_alignment;
    uint64_t import_alignment;          /* alignment of host memory */
    bool software;                      /* a software implementation on the CPU */
    bool shares;                        /* a software device whose memory is always host-visible */
    bool compiles;                      /* has a compiler for OpenCL C */
    bool non_uniform;                   /* the last group of a dimension may have fewer threads than the others */
    uint32_t defects;                   /* GPUHAL_OPENCL_ bits of defects.c */
    gpuhal_opencl_create_il *create_il; /* loads SPIR-V; NULL if not supported */
} gpuhal_opencl_entry;

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    const gpuhal_opencl_entry *entry;
    cl_context context;
    /* streams[0] always exists, the others are created on demand */
    cl_command_queue streams[GPUHAL_OPENCL_INTERNAL_STREAMS];
    /* one flag per stream, so that releasing a stream is a single store */
    _Atomic bool taken[GPUHAL_OPENCL_INTERNAL_STREAMS];
    cl_command_queue lent;   /* the original queue of streams[0], retained; native access returns this queue */
    pthread_mutex_t growing; /* held while streams are created and their queues are replaced */
    _Atomic uint32_t stream_count;
    _Atomic bool lost; /* a call reported the loss, or work never finished; never reset */
};

/* A queue has one in-order command queue, either its own or the caller's, which it retains. */
struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    cl_command_queue commands;
    cl_event *pending; /* events of commands that are not known to have finished, in order */
    uint32_t pending_count, pending_space;
    uint32_t recorded; /* number of pending events up to the latest recording */
    bool foreign;      /* the caller may also enqueue commands, so the plugin's last command may not be the queue's
                        * last */
    cl_int error;      /* error of failed work that no event has reported yet */
};

/* The object of a gpuhal_memory. */
typedef struct gpuhal_opencl_buffer {
    cl_mem mem;
    void *mapped;  /* the permanent mapping of UPLOAD and READBACK memory, otherwise NULL */
    bool imported; /* the caller's host memory */
    bool shared;   /* uses clSVMAlloc() memory at gpuhal_memory.host */
    _Atomic(struct gpuhal_opencl_parts *) parts; /* part.c; created on demand */
} gpuhal_opencl_buffer;

/* A command queue for one call. */
typedef struct gpuhal_opencl_stream {
    cl_command_queue queue;
    _Atomic bool *taken; /* NULL if the stream is shared */
} gpuhal_opencl_stream;

/* The destination of one call's commands. */
typedef struct gpuhal_opencl_track {
    gpuhal_plugin_queue *queue; /* NULL if the commands are enqueued on `stream`, and the call waits for the last
                                 * command */
    gpuhal_opencl_stream stream;
    cl_command_queue commands;
    cl_event last;
} gpuhal_opencl_track;

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    cl_program program;
    bool spirv;        /* SPIR-V rather than OpenCL C */
    bool reflects;     /* built so that kernels describe their arguments */
    bool non_uniform;  /* built so that the last group of a dimension may have fewer threads than the others */
    uint64_t identity; /* hash of code, options, device and driver */
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
/* Returns whether the device is implemented in software on the CPU, even if it claims to be a GPU. */
bool gpuhal_opencl_is_software(cl_device_id id);

/* compute.c: kernel limits and features. */
/* Returns the smallest and largest subgroup size; 0 and 0 if the driver does not report them. */
void gpuhal_opencl_ask_subgroups(cl_device_id id, uint64_t *out_least, uint64_t *out_most);
/* Returns the architecture that code is compiled for, as in GPUHAL_FACT_TARGET_ARCHITECTURE. Returns false if the
 * driver does not report it. */
bool gpuhal_opencl_ask_target(cl_device_id id, char *text, size_t bytes);
void gpuhal_opencl_list_compute(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id);
/* identity.c */
void gpuhal_opencl_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry);

/* defects.c: workarounds for driver defects. */
enum {
    GPUHAL_OPENCL_ONE_LAUNCH = 1u, /* a launch starts only after all other launches have finished */
    GPUHAL_OPENCL_ONE_QUEUE = 2u,  /* a launch starts only after the launches of other command queues have finished */
    GPUHAL_OPENCL_BUILD_TWICE = 4u /* retry a build once if it fails without a compiler message */
};
uint32_t gpuhal_opencl_find_defects(cl_platform_id platform, cl_device_id id);
/* Called before a launch is enqueued; gpuhal_opencl_give_turn() is called afterwards. Waits for other launches if
 * @p waits. Otherwise returns false, and acquires nothing, if the call would have to wait for another launch. */
bool gpuhal_opencl_take_turn(const gpuhal_plugin_device *device, cl_command_queue commands, bool waits);
/* @p launched is the launch's event, or NULL if nothing was enqueued. */
void gpuhal_opencl_give_turn(const gpuhal_plugin_device *device, cl_command_queue commands, cl_event launched);
/* Must be called before the device is closed. */
void gpuhal_opencl_end_turns(const gpuhal_plugin_device *device);

/* open.c */
gpuhal_status gpuhal_opencl_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_opencl_close(gpuhal_plugin_device *device);

/* context.c */
/* Returns NULL on failure, with the error code in *out_code. */
cl_command_queue gpuhal_opencl_create_stream(gpuhal_plugin_device *device, cl_int *out_code);
gpuhal_opencl_stream gpuhal_opencl_take_stream(gpuhal_plugin_device *device);
/* Releases the stream. @p code is the result of its commands. If they failed, the stream's command queue is
 * replaced. */
void gpuhal_opencl_give_stream(gpuhal_plugin_device *device, gpuhal_opencl_stream stream, cl_int code);
/* Waits for an event and releases it. @p code is the result of the call that created the event. Returns the first
 * error. */
cl_int gpuhal_opencl_finish(cl_int code, cl_event event);
/* Returns OK for CL_SUCCESS. Otherwise reports the error and, if the device was lost, records that. */
gpuhal_status gpuhal_opencl_result(gpuhal_plugin_device *device, const char *call, cl_int code);
/* Like gpuhal_opencl_result(), for the execution status of a command. */
gpuhal_status gpuhal_opencl_executed(gpuhal_plugin_device *device, const char *call, cl_int code);
/* Reports DEVICE_LOST if the device is known to be lost. */
gpuhal_status gpuhal_opencl_alive(gpuhal_plugin_device *device);
/* Reports code or a kernel that is invalid or not supported. */
gpuhal_status gpuhal_opencl_refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
gpuhal_status gpuhal_opencl_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native);
void gpuhal_opencl_describe_context(gpuhal_ops *ops);

/* memory.c and transfer.c: fill in their slots, except slots that the device's version does not support. */
void gpuhal_opencl_describe_memory(gpuhal_ops *ops);
gpuhal_status gpuhal_opencl_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native);
void gpuhal_opencl_describe_transfer(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
/* Called before commands are enqueued, on a queue or an internal stream. gpuhal_opencl_end() is called afterwards. */
gpuhal_opencl_track gpuhal_opencl_begin(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue);
/* @p code is the result of the last enqueuing call. Waits for the commands if there is no queue. */
gpuhal_status gpuhal_opencl_end(gpuhal_plugin_device *device, gpuhal_opencl_track *t, const char *call, cl_int code);

/* part.c */
/* Creates a sub-buffer of a buffer, which may itself be a sub-buffer. */
cl_mem gpuhal_opencl_create_part(cl_mem mem, uint64_t offset, uint64_t bytes, cl_int *out_code);
/* Returns a sub-buffer from the memory's cache, or creates it. The caller must release the sub-buffer. */
cl_mem gpuhal_opencl_take_part(gpuhal_opencl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_int *out_code);
/* Must be called before the buffer itself is released. */
void gpuhal_opencl_release_parts(gpuhal_opencl_buffer *buffer);

/* program.c, reflect.c and kernel.c. Programs require gpuhal_opencl_has_queues(). */
/* Returns the code formats that the device accepts, as in the fact, or NULL if there are none. */
const char *gpuhal_opencl_formats(const gpuhal_opencl_entry *entry);
void gpuhal_opencl_describe_program(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
/* Fills in the parameters from the description or from the driver. Fails if the driver contradicts the description. */
gpuhal_status gpuhal_opencl_fill_parameters(const gpuhal_plugin_program *program, cl_kernel kernel,
                                            const gpuhal_kernel_desc *desc, gpuhal_parameter *out_parameters,
                                            uint32_t count);
/* Fills in the group size from the description or the code, and all limits. */
gpuhal_status gpuhal_opencl_fill_limits(const gpuhal_plugin_program *program, cl_kernel kernel,
                                        const gpuhal_kernel_desc *desc, gpuhal_kernel_info *info);
gpuhal_status gpuhal_opencl_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);
void gpuhal_opencl_kernel_destroy(gpuhal_plugin_kernel *kernel);
gpuhal_status gpuhal_opencl_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch);

/* pending.c */
/* Grows the array of events. Returns false if out of memory. */
bool gpuhal_opencl_queue_grow(gpuhal_plugin_queue *queue);
/* Appends the event of the latest command and takes ownership of the event. */
void gpuhal_opencl_queue_keep(gpuhal_plugin_queue *queue, cl_event event);
/* Releases the events of finished commands, and records the first failure. */
void gpuhal_opencl_queue_retire(gpuhal_plugin_queue *queue);

/* queue.c and event.c. Both files require functions of OpenCL 1.2. */
bool gpuhal_opencl_has_queues(const gpuhal_opencl_entry *entry);
void gpuhal_opencl_describe_queue(const gpuhal_opencl_entry *entry, gpuhal_ops *ops);
gpuhal_status gpuhal_opencl_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event);
void gpuhal_opencl_event_destroy(gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_query(gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns);
/* Returns whether the recorded work has ended, even if it failed or the device is lost. */
bool gpuhal_opencl_event_has_ended(const gpuhal_plugin_event *event);
/* Returns the latest recording, or NULL before the first recording. */
cl_event gpuhal_opencl_event_handle(const gpuhal_plugin_event *event);
gpuhal_status gpuhal_opencl_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns);
gpuhal_status gpuhal_opencl_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
gpuhal_status gpuhal_opencl_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native);

/* share.c: the caller's host memory and buffers. */
gpuhal_status gpuhal_opencl_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Releases the buffer, and waits up to LET_GO_SECONDS until the driver no longer uses its host memory. */
void gpuhal_opencl_release_import(gpuhal_plugin_device *device, gpuhal_opencl_buffer *buffer);
gpuhal_status gpuhal_opencl_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                        gpuhal_memory *out_memory);
void gpuhal_opencl_describe_share(gpuhal_ops *ops);

/* Returns the address of page-locked memory of the plugin, or NULL for any other memory. */
static inline char *gpuhal_opencl_mapped(const gpuhal_memory *memory)
{
    return ((const gpuhal_opencl_buffer *)memory->object)->mapped ? memory->host : NULL;
}

static inline cl_mem gpuhal_opencl_mem(const gpuhal_memory *memory)
{
    return ((const gpuhal_opencl_buffer *)memory->object)->mem;
}

#endif
