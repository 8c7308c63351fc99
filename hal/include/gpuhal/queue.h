/** gpuhal/queue.h: queues, events, and waiting for them. docs/transfers.md shows the model on one page.
 *
 *  A queue is an in-order stream of work on one device: in effect, later work begins after earlier work has ended. Work
 *  may be held back until gpuhal_queue_flush(). If a plugin has no queues, the library provides them.
 *
 *  An event is recorded in a queue, and is done once all earlier work of the queue has ended. It can be recorded
 *  repeatedly; "the recording" below means the latest recording. The event counts as done until it is recorded for the
 *  first time. An event created with GPUHAL_EVENT_HOST, however, is not recorded; the host signals it
 *  (gpuhal_event_signal()).
 *
 *  When a step of a queue fails, later work is dropped. Later events, and queues that wait for these events, fail with
 *  the original cause. Every further call on the queue returns this cause until gpuhal_queue_reset(). A call that the
 *  driver rejects also fails the queue, since later work may depend on it. A call that the library rejects because of
 *  its arguments does not fail the queue. Work that must not fail together with other work, such as the work of two
 *  users, therefore needs its own queue.
 *
 *  Every wait takes a timeout in nanoseconds: 0 polls, UINT64_MAX means no limit. If the first launch of a kernel is
 *  among the queue's unfinished work, the detail of TIMEOUT names the kernel, since the driver may still be compiling
 *  it. A waiting thread uses no CPU time. It calls the driver only to poll, or if the plugin has
 *  GPUHAL_PLUGIN_HONORS_TIMEOUTS. Once a wait or a poll has returned OK, the awaited work no longer uses anything:
 *  memory that was released before can be allocated again, and buffers can be mapped. A call that enqueues work does
 *  not wait for earlier work, and moves at most 256 KiB with the CPU; a thread of the queue makes longer CPU copies
 *  when their turn comes. A call that enqueues work is as prompt as the driver's own function, which may wait when its
 *  ring is full.
 *
 *  If a driver call does not return within gpuhal_config.hang_ns (ten times that while the driver may be compiling a
 *  kernel for its first launch), the device is lost (hung). Calls of all other threads on the device return
 *  DEVICE_LOST, its queues and events fail, descriptors become readable, and callbacks and listeners are called. Other
 *  devices are not affected. The calling thread itself stays in the driver until the driver returns; its call then
 *  returns DEVICE_LOST. A driver that waits for endless work does not count as hung; waits for this work return
 *  TIMEOUT.
 *
 *      gpuhal_queue *queue = NULL;
 *      gpuhal_event *event = NULL;
 *      gpuhal_status status = gpuhal_queue_create(device, NULL, &queue);
 *      status = status ? status : gpuhal_event_create(gpu, 0, &event);
 *      status = status ? status : gpuhal_write(queue, buffer, 0, host, bytes);
 *      status = status ? status : gpuhal_event_record(event, queue);
 *      status = status ? status : gpuhal_event_wait(event, 1000000000); // at most a second
 *      gpuhal_event_destroy(event);
 *      gpuhal_queue_destroy(queue);
 */
#ifndef GPUHAL_QUEUE_H
#define GPUHAL_QUEUE_H

#include <gpuhal/buffer.h>
#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An in-order stream of work on a device. */
typedef struct gpuhal_queue gpuhal_queue;

/** A point in a queue. */
typedef struct gpuhal_event gpuhal_event;

/** Flags of queues and events. */
enum { GPUHAL_QUEUE_TIMED = 1u /**< Events with GPUHAL_EVENT_TIMED will be recorded in the queue. */ };
enum {
    /** For gpuhal_event_elapsed(). Recording takes slightly longer. The event keeps the vendor's queue, even after the
     *  gpuhal_queue was destroyed, until the event is destroyed or recorded elsewhere. If a queue has failed and its
     *  driver records no event, its last work then ends only with its timed events: destroy them before the last queue
     *  or the gpuhal object, whose call otherwise takes gpuhal_config.hang_ns. */
    GPUHAL_EVENT_TIMED = 1u,
    /** Signalled once by gpuhal_event_signal(), never recorded. Cannot be combined with TIMED. */
    GPUHAL_EVENT_HOST = 2u
};

/** The queue to create. */
typedef struct gpuhal_queue_desc {
    uint32_t size;              /**< sizeof(gpuhal_queue_desc). */
    int32_t priority;           /**< Higher is more urgent, 0 is the default; clamped to the API's range. */
    uint32_t flags;             /**< GPUHAL_QUEUE_ bits. */
    uint32_t reserved;
    /** A vendor's queue to use (native.h), or NULL for a new queue. The caller must keep the vendor's queue until the
     *  gpuhal_queue was destroyed, its work has ended, and its events with GPUHAL_EVENT_TIMED were destroyed or
     *  recorded elsewhere; if another queue waited for such an event (gpuhal_queue_wait()), also until that queue was
     *  destroyed. The library does not see submissions that the caller makes outside native access. If they fill the
     *  ring of the vendor's queue, a call that waits there for longer than gpuhal_config.hang_ns counts as a hang. */
    const gpuhal_native *adopt;
} gpuhal_queue_desc;

/** Creates a queue. @p desc may be NULL. Opens the device if needed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for adoption, HOST_MEMORY, and the errors of gpuhal_device_open()
 *  Owner: caller, gpuhal_queue_destroy(). Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_queue_create(gpuhal_device *device, const gpuhal_queue_desc *desc,
                                             gpuhal_queue **out_queue);

/** Destroys the queue, and ends its native access. Enqueued work is flushed and completes; buffers stay alive until it
 *  has completed, and events become done. The end of a failed queue's work is known when gpuhal_queue_reset() would
 *  know it. After gpuhal_close(), destroying the last queue waits for this work, for at
 *  most gpuhal_config.hang_ns. If work still waits for an event that the host has not signalled, it continues, and
 *  calls its functions, once the event is signalled. If the event is destroyed instead, this work fails with CANCELLED.
 *  Owner: @p queue is invalid afterwards. Threads: any, with no other call on @p queue in progress. Blocks: no, except
 *  for the last queue after gpuhal_close(). */
GPUHAL_API void gpuhal_queue_destroy(gpuhal_queue *queue);

/** Submits all enqueued work to the device.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, the cause of the queue's failure, DEVICE_LOST,
 *  FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_flush(gpuhal_queue *queue);

/** Makes later work of the queue begin once the event's recording is done. The event may belong to any queue, device
 *  and backend. It may be recorded again or destroyed right after this call. If the recording fails, this queue fails
 *  as well.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, HOST_MEMORY, the cause of the queue's failure,
 *  DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_wait(gpuhal_queue *queue, gpuhal_event *event);

/** Flushes, and waits until all earlier work has ended.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY during native access and in a function called by this queue, the
 *  cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_synchronize(gpuhal_queue *queue, uint64_t timeout_ns);

/** Makes a failed queue usable again, once the driver has ended the queue's remaining work. If the queue got pool
 *  memory that another queue's work was still using (pool.h), this work must have ended as well, or, if the other queue
 *  has failed, the other queue must have been reset or destroyed. If the driver does not record an event in the failed
 *  queue, only the destruction of the vendor's queue shows the end of the work. Then the queue's events with
 *  GPUHAL_EVENT_TIMED must have been destroyed or recorded elsewhere, and queues that have waited for its events must
 *  have been synchronized, reset or destroyed. Other queues are not affected. After TIMEOUT the reset continues, and
 *  another call waits for its end.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY during native access and in a function called by this queue,
 *  HOST_MEMORY, DEVICE_LOST, FORKED, or the reason why no event or no new queue could be created
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_reset(gpuhal_queue *queue, uint64_t timeout_ns);

/** Begins native access: submits all enqueued work to the vendor's queue, returns that queue, and locks it if the API
 *  requires that (VkQueue). Until gpuhal_queue_native_end(), the queue orders the caller's submissions after its
 *  earlier work and before its later work. The caller needs no barriers: on Vulkan, the library's submissions begin and
 *  end with barriers for all commands. During native access other calls on this queue return BUSY, except
 *  gpuhal_queue_keep() and gpuhal_queue_destroy(). Several queues may share one VkQueue. While one of them is in native
 *  access, native access cannot begin on another, new work of the others is submitted later, and blocking transfers of
 *  the device that need the VkQueue wait for native access to end. On the thread that began native access, such
 *  transfers and a second native access return BUSY immediately.
 *  @return GPUHAL_OK; TIMEOUT when deferred work could not be submitted, or the vendor's queue could not be locked, in
 *  time; NOT_SUPPORTED for a queue without a vendor's object; INVALID_ARGUMENT, also for a size of 0; BUSY during
 *  another native access and in a function called by this queue; the cause of the queue's failure; DEVICE_LOST; FORKED
 *  Owner: the library keeps the vendor's queue; at most `size` bytes of @p out_native are written. Threads: any.
 *  Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_native_begin(gpuhal_queue *queue, uint64_t timeout_ns, gpuhal_native *out_native);

/** Ends native access.
 *  @return GPUHAL_OK, INVALID_ARGUMENT without native access, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any, not only the thread that began native access. Blocks: no, except in the driver's own
 *  calls when its ring is full. */
GPUHAL_API gpuhal_status gpuhal_queue_native_end(gpuhal_queue *queue);

/** Keeps buffers alive until all earlier work has ended, including the caller's submissions during native access. This
 *  lets the caller release buffers that only its own kernels use.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, the cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: the queue adds its own references. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_keep(gpuhal_queue *queue, gpuhal_buffer *const *buffers, uint32_t count);

/** A function that a queue calls. A status other than OK fails the queue. */
typedef gpuhal_status gpuhal_call_fn(void *user);

/** Enqueues a call of @p fn. A thread of the queue calls it once, when all earlier work has ended; later work begins
 *  after it has returned. @p fn may call the library, but gpuhal_queue_synchronize(), gpuhal_queue_reset() and
 *  gpuhal_queue_native_begin() of this queue, gpuhal_device_synchronize() of its device and gpuhal_event_wait() for an
 *  event that is recorded in this queue return BUSY. If @p fn waits for another queue that waits for this queue, the
 *  wait takes its whole timeout. @p fn may run for any length of time. It is never called if the queue fails first.
 *  Statuses with another meaning for waits (NOT_READY, NOT_SUPPORTED, TIMEOUT, BUSY) and invalid statuses fail the
 *  queue with CANCELLED.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, HOST_MEMORY, the cause of the queue's failure,
 *  DEVICE_LOST, FORKED
 *  Owner: caller must keep @p user until @p fn has returned, or, if the queue failed before that, until
 *  gpuhal_queue_reset() has returned OK. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_call(gpuhal_queue *queue, gpuhal_call_fn *fn, void *user);

/** Receives the vendor's queue, which is valid during this call. A status other than OK fails the queue. */
typedef gpuhal_status gpuhal_native_fn(void *user, const gpuhal_native *native);

/** Enqueues native access without waiting. A thread of the queue calls @p fn once with the vendor's queue, when all
 *  earlier work has been submitted. Submissions of @p fn are ordered like other work of the queue. Otherwise the call
 *  behaves like gpuhal_queue_call(). The thread counts as the thread that began native access. Therefore, blocking
 *  transfers in @p fn return BUSY if they need the same VkQueue.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for a queue without a vendor's object, BUSY during native
 *  access, HOST_MEMORY, the cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: caller must keep @p user until @p fn has returned, or, if the queue failed before that, until
 *  gpuhal_queue_reset() has returned OK. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_native_call(gpuhal_queue *queue, gpuhal_native_fn *fn, void *user);

/** Waits until all work that was enqueued on the device through this gpuhal object has ended.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY when a queue is in native access, and in a function called by a
 *  queue of the device, the cause of a queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_device_synchronize(gpuhal_device *device, uint64_t timeout_ns);

/** Creates an event for queues of any device of the gpuhal object. @p flags: GPUHAL_EVENT_ bits.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller, gpuhal_event_destroy(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_create(gpuhal *gpu, uint32_t flags, gpuhal_event **out_event);

/** Destroys the event, even if it is not done. Its callbacks, watches and descriptors, and queues that wait for it, are
 *  not affected. If a GPUHAL_EVENT_HOST event was not signalled, however, they receive CANCELLED
 *  (gpuhal_event_signal()). May be called from the event's own callback.
 *  Owner: @p event is invalid afterwards. Threads: any, with no other call on @p event in progress. Blocks: no, except
 *  for the driver if this is the last timed event of a destroyed queue, because the call then releases the vendor's
 *  queue. */
GPUHAL_API void gpuhal_event_destroy(gpuhal_event *event);

/** Signals an event that was created with GPUHAL_EVENT_HOST. Work and threads that wait for it continue, or fail with
 *  @p status. An event can be signalled only once. If it is destroyed before that, work that waits for it fails with
 *  CANCELLED. Drivers do not see such events, so a wait for one is never a hang.
 *  @return GPUHAL_OK; FORKED; INVALID_ARGUMENT, also for a second signal, for an event without GPUHAL_EVENT_HOST, and
 *  for a status that is neither OK nor an error that a queue can fail with (gpuhal_queue_call())
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_signal(gpuhal_event *event, gpuhal_status status);

/** Records the event after all earlier work, and flushes. An earlier recording is replaced; waits for that recording
 *  are not affected.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a queue of another gpuhal object, for a GPUHAL_EVENT_HOST event, and
 *  for a timed event in a queue that is not timed), BUSY during native access, HOST_MEMORY, the cause of the queue's
 *  failure, DEVICE_LOST, FORKED. On failure nothing was recorded.
 *  Owner: nothing. Threads: any. Blocks: no, except for the driver as in gpuhal_event_destroy(), for the earlier
 *  recording. */
GPUHAL_API gpuhal_status gpuhal_event_record(gpuhal_event *event, gpuhal_queue *queue);

/** Returns whether the recording is done.
 *  @return GPUHAL_OK, FORKED, NOT_READY, INVALID_ARGUMENT, or why the recording failed
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_poll(gpuhal_event *event);

/** Waits until the recording is done.
 *  @return GPUHAL_OK, FORKED, TIMEOUT, INVALID_ARGUMENT, BUSY in a function called by the recording's queue, or why the
 *  recording failed
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_event_wait(gpuhal_event *event, uint64_t timeout_ns);

/** Returns a descriptor for poll(), epoll and event loops; on Windows an event for WaitForMultipleObjects(). It is
 *  readable as soon as the recording is done or has failed, until the event is recorded again. The caller must not read
 *  from it; gpuhal_event_poll() returns the result.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system provides no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_descriptor(gpuhal_event *event, gpuhal_os_handle *out_descriptor);

/** Closes a gpuhal_os_handle that a call of this library returned: descriptors of events, of completions and of
 *  changes, and handles of exported memory. A program for one system may use close() or CloseHandle() instead. -1 does
 *  nothing.
 *  Owner: takes @p handle. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_os_handle_close(gpuhal_os_handle handle);

/** Receives the result of a recording. @p status is GPUHAL_OK, or why the recording failed. */
typedef void gpuhal_completion_fn(void *user, gpuhal_status status);

/** Registers @p done to be called once, when the recording is done or has failed. One thread of the library makes all
 *  calls of this kind for the gpuhal object, one at a time, including calls for changes, released memory, samplers,
 *  work slots and leases. The callback may call the library and may destroy the event.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY; on failure @p done is never called
 *  Owner: caller must keep @p user until the callback. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_on_completion(gpuhal_event *event, gpuhal_completion_fn *done, void *user);

/** Makes gpuhal_next_completion() return @p user once, when the recording is done or has failed. Meant for event loops
 *  with one descriptor.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller keeps @p user. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_watch(gpuhal_event *event, void *user);

/** Returns a descriptor that is readable while gpuhal_next_completion() has a result. The caller must not read from it.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system provides no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_completion_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor);

/** Returns the next watched recording that has ended. Recordings are returned in the order of their ends. @p out_status
 *  is GPUHAL_OK, or why the recording failed.
 *  @return GPUHAL_OK, FORKED, NOT_READY when there is none, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_next_completion(gpuhal *gpu, void **out_user, gpuhal_status *out_status);

/** Returns the time between two recordings on the same device, as measured by the device.
 *  @return GPUHAL_OK, FORKED, NOT_READY, INVALID_ARGUMENT (an event that is not timed, was never recorded, or belongs
 *  to another device; @p to was recorded before @p from), NOT_SUPPORTED if the API has no time stamps, or why a
 *  recording failed
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_elapsed(gpuhal_event *from, gpuhal_event *to, uint64_t *out_ns);

#ifdef __cplusplus
}
#endif
#endif
