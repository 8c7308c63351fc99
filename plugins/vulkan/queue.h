/* vulkan/queue.h: declarations of timeline.c, queue.c and event.c.
 *
 * A queue collects commands in its open batch, and after these commands the runs of recordings. Submitting a batch
 * assigns it the next value of the queue's timeline semaphore. Batches run in the order of their values and are reused
 * after the semaphore has reached their value. An event is a value of a queue's timeline.
 *
 * Timelines and stamps are reference-counted, because a batch in flight may still use the timeline or stamp of an event
 * that was destroyed or recorded again.
 */
#ifndef GPUHAL_VULKAN_QUEUE_H
#define GPUHAL_VULKAN_QUEUE_H

#include "hazard.h"

#define GPUHAL_VULKAN_AWAITED 8u

/* The timeline semaphore of a queue. An idle timeline has reached its last submitted value. */
typedef struct gpuhal_vulkan_timeline {
    struct gpuhal_vulkan_timeline *next; /* next timeline in idle_timelines */
    gpuhal_plugin_device *device;
    VkSemaphore semaphore;
    _Atomic uint64_t reached; /* highest value seen */
    _Atomic uint64_t submitted; /* highest value whose batch was submitted */
    _Atomic uint64_t dropped; /* value of the batch that a queue dropped, which is never reached; 0 if there is none */
    _Atomic uint32_t references;
} gpuhal_vulkan_timeline;

/* A query pool with one timestamp. */
typedef struct gpuhal_vulkan_stamp {
    gpuhal_plugin_device *device;
    VkQueryPool pool;
    _Atomic uint32_t references;
} gpuhal_vulkan_stamp;

/* One submission of a queue: a command buffer, then the command buffers of recordings. */
typedef struct gpuhal_vulkan_batch {
    struct gpuhal_vulkan_batch *next;
    VkCommandBuffer commands;
    bool begun;             /* the batch uses `commands` */
    uint64_t value;         /* value in the queue's timeline, once submitted */
    uint32_t recorded;      /* number of operations, also of recordings */
    uint32_t awaited_count; /* number of values of other queues' timelines that the batch waits for */
    gpuhal_vulkan_timeline *awaited[GPUHAL_VULKAN_AWAITED];
    uint64_t awaited_values[GPUHAL_VULKAN_AWAITED];
    gpuhal_vulkan_stamp *stamp; /* the stamp that the batch writes, or NULL */
    gpuhal_vulkan_piece most;   /* the largest of its commands */
    bool ordered;               /* there is a barrier between its commands */
    VkPipeline pipeline;        /* bound pipeline, or NULL */
    gpuhal_vulkan_arena arena;  /* resources of its launches */
    VkCommandBuffer *runs;      /* [0]: `commands`; from [1] on: command buffers of recordings */
    uint32_t run_count;         /* number of command buffers of recordings */
    uint32_t run_space;         /* room in `runs` */
} gpuhal_vulkan_batch;

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    gpuhal_vulkan_wrapper *wrapper;
    gpuhal_vulkan_timeline *timeline;
    VkCommandPool pool;
    uint64_t submitted;                /* value of the last submission */
    gpuhal_vulkan_batch *open;         /* begun and not submitted, or NULL */
    gpuhal_vulkan_batch *first, *last; /* batches in flight, oldest first */
    gpuhal_vulkan_batch *idle;         /* batches with nothing recorded */
    uint32_t batch_count, in_flight;   /* in_flight: operations of the batches in flight */
    gpuhal_vulkan_hazards hazards; /* accesses of the open batch */
    bool adopted;                  /* the caller may submit to the VkQueue at any time */
    bool foreign;                  /* the caller may have submitted work since the plugin's last submission */
    bool failed;                   /* a submission failed; no later work may run */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    bool timed;
    gpuhal_vulkan_timeline *timeline; /* the queue's timeline, which outlives the event; NULL if never recorded */
    uint64_t value;
    gpuhal_vulkan_stamp *stamp; /* NULL until a timestamp is recorded; stale if valid_bits is 0 */
    uint32_t valid_bits;
};

/* queue.c */

/* Returns OK, or reports why nothing can be enqueued. */
gpuhal_status gpuhal_vulkan_queue_ready(gpuhal_plugin_queue *queue);
/* If no batch is open, recycles finished batches and opens one. Begins the batch's command buffer unless the batch has
 * runs; no commands may be recorded in such a batch. Returns NOT_READY, without opening a batch, while all batches or
 * too many operations are in flight. */
gpuhal_status gpuhal_vulkan_queue_open(gpuhal_plugin_queue *queue);
/* Adds a run with @p operations steps to the open batch, after opening one if necessary. *out_value is the value of the
 * batch in the queue's timeline. Returns NOT_READY as gpuhal_vulkan_queue_open() does. */
gpuhal_status gpuhal_vulkan_queue_run(gpuhal_plugin_queue *queue, const VkCommandBuffer *commands, uint32_t count,
                                      uint32_t operations, uint64_t *out_value);
/* Acquires the wrapper for a submission. Returns NOT_READY while native access owns the VkQueue. */
gpuhal_status gpuhal_vulkan_queue_enter(gpuhal_plugin_queue *queue);
/* Submits the open batch, if any. The caller must own the wrapper, through gpuhal_vulkan_queue_enter() or native
 * access. */
gpuhal_status gpuhal_vulkan_queue_submit(gpuhal_plugin_queue *queue);

/* timeline.c */

/* Returns an idle timeline or a new timeline. Its values continue from `reached`. On failure, returns NULL and reports
 * *out_status. */
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_take(gpuhal_plugin_device *device, gpuhal_status *out_status);
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_retain(gpuhal_vulkan_timeline *timeline);
void gpuhal_vulkan_timeline_release(gpuhal_vulkan_timeline *timeline);
void gpuhal_vulkan_timeline_advance(gpuhal_vulkan_timeline *timeline, uint64_t value);
/* Returns OK, NOT_READY, or DEVICE_LOST. */
gpuhal_status gpuhal_vulkan_timeline_query(gpuhal_vulkan_timeline *timeline, uint64_t value);
/* Returns OK, NOT_READY after the timeout, or DEVICE_LOST. */
gpuhal_status gpuhal_vulkan_timeline_wait(gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns);
/* Calls the Vulkan wait function, even on a lost device. */
VkResult gpuhal_vulkan_timeline_await(const gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns);
/* Returns a stamp with one reference. On failure, returns NULL and reports *out_status. */
gpuhal_vulkan_stamp *gpuhal_vulkan_stamp_create(gpuhal_plugin_device *device, gpuhal_status *out_status);
void gpuhal_vulkan_stamp_release(gpuhal_vulkan_stamp *stamp);

#endif
