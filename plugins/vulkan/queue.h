/* vulkan/queue.h: declarations of timeline.c, queue.c and event.c.
 *
 * A queue collects commands in its open batch. Submitting a batch gives the queue's timeline semaphore the next value;
 * batches run in the order of their values and are used again once their value has been reached. An event is a value of
 * a queue's timeline.
 *
 * Timelines and stamps are counted: a batch in flight may use one that its event has released.
 */
#ifndef GPUHAL_VULKAN_QUEUE_H
#define GPUHAL_VULKAN_QUEUE_H

#include "hazard.h"

#define GPUHAL_VULKAN_AWAITED 8u

/* The timeline semaphore of a queue. An idle one has reached the last value that was submitted. */
typedef struct gpuhal_vulkan_timeline {
    struct gpuhal_vulkan_timeline *next; /* of idle_timelines */
    gpuhal_plugin_device *device;
    VkSemaphore semaphore;
    _Atomic uint64_t reached; /* highest value seen */
    _Atomic uint32_t references;
} gpuhal_vulkan_timeline;

/* A query pool with one timestamp. */
typedef struct gpuhal_vulkan_stamp {
    gpuhal_plugin_device *device;
    VkQueryPool pool;
    _Atomic uint32_t references;
} gpuhal_vulkan_stamp;

/* One command buffer of a queue. */
typedef struct gpuhal_vulkan_batch {
    struct gpuhal_vulkan_batch *next;
    VkCommandBuffer commands;
    uint64_t value;         /* of the queue's timeline, once submitted */
    uint32_t recorded;      /* operations */
    uint32_t awaited_count; /* values of other timelines that it waits for */
    gpuhal_vulkan_timeline *awaited[GPUHAL_VULKAN_AWAITED];
    uint64_t awaited_values[GPUHAL_VULKAN_AWAITED];
    gpuhal_vulkan_stamp *stamp; /* that it writes, or NULL */
    bool dispatches;            /* it has launches */
    VkPipeline pipeline;        /* that is bound, or NULL */
    gpuhal_vulkan_arena arena;  /* of its launches */
} gpuhal_vulkan_batch;

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    gpuhal_vulkan_wrapper *wrapper;
    gpuhal_vulkan_timeline *timeline;
    VkCommandPool pool;
    uint64_t submitted;                /* value of the last submission */
    gpuhal_vulkan_batch *open;         /* begun and not submitted, or NULL */
    gpuhal_vulkan_batch *first, *last; /* in flight, oldest first */
    gpuhal_vulkan_batch *idle;         /* with nothing recorded */
    uint32_t batch_count, in_flight;   /* in_flight: operations of batches in flight */
    gpuhal_vulkan_hazards hazards; /* of the open batch */
    bool adopted;                  /* the caller may submit to the VkQueue at any time */
    bool foreign;                  /* the caller has submitted something since the plugin's last submission */
    bool failed;                   /* a batch was dropped; nothing after it may run */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    bool timed;
    gpuhal_vulkan_timeline *timeline; /* of the queue, which lives longer; NULL: never recorded */
    uint64_t value;
    gpuhal_vulkan_stamp *stamp; /* NULL: that recording has no time */
    uint32_t valid_bits;        /* of the stamp */
};

/* queue.c */

/* Returns OK, or why nothing can be enqueued. */
gpuhal_status gpuhal_vulkan_queue_ready(gpuhal_plugin_queue *queue);
/* Opens a batch if none is open, and takes back batches whose value was reached. NOT_READY, with nothing done, while
 * all are in flight, or too many operations. */
gpuhal_status gpuhal_vulkan_queue_open(gpuhal_plugin_queue *queue);
/* Takes the right to submit; NOT_READY while native access has the VkQueue. */
gpuhal_status gpuhal_vulkan_queue_enter(gpuhal_plugin_queue *queue);
/* Submits the open batch, if any. Needs the right to submit. */
gpuhal_status gpuhal_vulkan_queue_submit(gpuhal_plugin_queue *queue);

/* timeline.c */

/* Returns an idle timeline, or a new one; its values go on from `reached`. NULL: *out_status is reported. */
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_take(gpuhal_plugin_device *device, gpuhal_status *out_status);
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_retain(gpuhal_vulkan_timeline *timeline);
void gpuhal_vulkan_timeline_release(gpuhal_vulkan_timeline *timeline);
/* Records that the value was reached. */
void gpuhal_vulkan_timeline_advance(gpuhal_vulkan_timeline *timeline, uint64_t value);
/* Returns OK, NOT_READY, or DEVICE_LOST. */
gpuhal_status gpuhal_vulkan_timeline_query(gpuhal_vulkan_timeline *timeline, uint64_t value);
/* Returns OK, NOT_READY when the time is over, or DEVICE_LOST. */
gpuhal_status gpuhal_vulkan_timeline_wait(gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns);
/* Calls the vendor's wait, also on a lost device. */
VkResult gpuhal_vulkan_timeline_await(const gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns);
/* Returns a stamp with one reference; NULL: *out_status is reported. */
gpuhal_vulkan_stamp *gpuhal_vulkan_stamp_create(gpuhal_plugin_device *device, gpuhal_status *out_status);
void gpuhal_vulkan_stamp_release(gpuhal_vulkan_stamp *stamp);

#endif
