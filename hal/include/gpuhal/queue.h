/** gpuhal/queue.h: queues, events, and waiting for them. docs/transfers.md shows the model on one page.
 *
 *  A queue is an in-order stream of work on one device: what was enqueued earlier has ended before what was enqueued later begins, as
 *  far as anybody can see. Nothing need start before gpuhal_queue_flush(). A plugin without queues gets them from the library.
 *
 *  An event is recorded in a queue and is done once everything that was enqueued there before has ended. It can be recorded again and
 *  again; "the recording" below means its latest one. Until it is recorded for the first time it counts as done. An event created with
 *  GPUHAL_EVENT_HOST is done when the host says so (gpuhal_event_signal()).
 *
 *  Failure: when a step of a queue fails, the work behind it is dropped, and the events behind it fail with the original cause, also in
 *  queues that wait for them. The queue answers every further call with that cause until gpuhal_queue_reset(). A call that the driver
 *  refuses fails the queue as well, since what it was to do is missing; one that the library refuses for its arguments does not.
 *  So work that must not fail with other work, such as the loads of two users, takes a queue of its own.
 *
 *  Waiting takes a timeout in nanoseconds: 0 asks without waiting, UINT64_MAX means no limit. A thread that waits uses no processor
 *  time. It is in the driver only where it asks without waiting, or where the plugin has GPUHAL_PLUGIN_HONORS_TIMEOUTS. After a wait, or a
 *  poll, has returned OK, everything that the awaited work held has been given back: memory that was released before can be allocated
 *  again, and buffers can be mapped. A call that enqueues neither waits for earlier work nor moves more than 256 KiB by
 *  the processor: a thread of the queue does such work in its turn. It is as prompt as the driver's own function for
 *  enqueuing, which may wait where its ring is full.
 *
 *  When a driver does not come back from a call for gpuhal_config.hang_ns, its device is lost (hung): every other thread's calls return
 *  DEVICE_LOST, its queues and events fail, descriptors become readable, callbacks and listeners are called, and other devices go on. The
 *  calling thread itself stays in the driver until that returns; its call then returns DEVICE_LOST. A driver that waits for work that does
 *  not end does not hang: waits for that work end with TIMEOUT.
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
enum { GPUHAL_QUEUE_TIMED = 1u /**< Events with GPUHAL_EVENT_TIMED will be recorded here. */ };
enum {
    GPUHAL_EVENT_TIMED = 1u, /**< gpuhal_event_elapsed() will be asked. Recording takes a little longer. */
    GPUHAL_EVENT_HOST = 2u   /**< gpuhal_event_signal() ends it, once; it is not recorded. Not with TIMED. */
};

/** What to create. */
typedef struct gpuhal_queue_desc {
    uint32_t size;              /**< sizeof(gpuhal_queue_desc). */
    int32_t priority;           /**< Higher is more urgent, 0 is usual; what the API does not have is cut to what it has. */
    uint32_t flags;             /**< GPUHAL_QUEUE_ bits. */
    uint32_t reserved;
    const gpuhal_native *adopt; /**< A vendor's queue that the caller keeps (native.h); NULL: a new one. What the caller submits to it
                                 *   outside of native access the library does not know of: where its ring is full of that, a call
                                 *   that waits there for longer than gpuhal_config.hang_ns is a hang. */
} gpuhal_queue_desc;

/** Makes a queue. @p desc may be NULL. Opens the device when it is not.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for adoption, HOST_MEMORY, and what gpuhal_device_open() returns
 *  Owner: caller, gpuhal_queue_destroy(). Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_queue_create(gpuhal_device *device, const gpuhal_queue_desc *desc, gpuhal_queue **out_queue);

/** Destroys the queue, and ends its native access. What was enqueued is flushed and still done; buffers stay alive until then, events
 *  become done. After gpuhal_close() the last queue waits for that, at most for gpuhal_config.hang_ns: one behind an event that the host has
 *  not signalled by then goes on, and calls its functions, when that is signalled or destroyed.
 *  Owner: @p queue is invalid afterwards. Threads: any, with no other call on @p queue in progress. Blocks: no. */
GPUHAL_API void gpuhal_queue_destroy(gpuhal_queue *queue);

/** The device that the queue belongs to.
 *  @return the device; NULL for NULL
 *  Owner: its gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_queue_device(const gpuhal_queue *queue);

/** Hands everything that was enqueued to the device.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, the cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_flush(gpuhal_queue *queue);

/** What is enqueued from now on begins once the event's recording is done. The event may be of any queue, device and backend; it may
 *  be recorded again or destroyed right after this call. When the recording fails, so does this queue.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, HOST_MEMORY, the cause of the
 *  queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_wait(gpuhal_queue *queue, gpuhal_event *event);

/** Flushes, and waits until everything that was enqueued before has ended.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY during native access and in a function that this queue calls, the
 *  cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_synchronize(gpuhal_queue *queue, uint64_t timeout_ns);

/** Makes a queue that failed usable again, once what the driver still had of it has ended. Does nothing to a queue that did not fail. After
 *  TIMEOUT it goes on, and another call waits for the same end.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY during native access, HOST_MEMORY, DEVICE_LOST, FORKED, or why there is no new queue
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_reset(gpuhal_queue *queue, uint64_t timeout_ns);

/** Begins native access: hands everything enqueued to the vendor's queue, gives that queue, and locks it where the API wants that
 *  (VkQueue). What the caller submits to it until gpuhal_queue_native_end() comes after what was enqueued before and before what is
 *  enqueued later, without barriers of the caller's around it: on Vulkan, what the library submits begins and ends with barriers for all
 *  commands. Meanwhile other calls on this queue are BUSY.
 *  Several queues may share one VkQueue. During native access to one of them it cannot begin on another one, and what is enqueued there is
 *  submitted later; blocking transfers of the device that need that VkQueue wait for native access to end. On the thread that began it they,
 *  and another native access, are BUSY at once.
 *  @return GPUHAL_OK; TIMEOUT when deferred work could not be handed over, or the vendor's queue not be had, in time; NOT_SUPPORTED for a
 *  queue that is the library's own; INVALID_ARGUMENT, also for a size of 0; BUSY during another native access; the cause of the queue's
 *  failure; DEVICE_LOST; FORKED
 *  Owner: the library keeps the vendor's queue; at most `size` bytes of @p out_native are written. Threads: any. Blocks: yes, up to
 *  @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_queue_native_begin(gpuhal_queue *queue, uint64_t timeout_ns, gpuhal_native *out_native);

/** Ends native access.
 *  @return GPUHAL_OK, INVALID_ARGUMENT without native access, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any, also another one than began it. Blocks: no; where the driver's ring is full, as long
 *  as its own calls. */
GPUHAL_API gpuhal_status gpuhal_queue_native_end(gpuhal_queue *queue);

/** Keeps buffers until everything that was enqueued so far has ended, and what the caller submitted in native access, where the queue is
 *  in one: for memory that only kernels of the caller's own use, whose references it may then release.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, the cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: the queue adds references of its own. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_keep(gpuhal_queue *queue, gpuhal_buffer *const *buffers, uint32_t count);

/** A function that a queue calls. Another status than OK fails the queue. */
typedef gpuhal_status gpuhal_call_fn(void *user);

/** Calls @p fn once, on a thread of the queue's own, when everything that was enqueued before has ended; what is enqueued later begins after
 *  it. It may call the library, but gpuhal_queue_synchronize(), gpuhal_queue_reset() and gpuhal_queue_native_begin() of
 *  this queue, gpuhal_device_synchronize() of its device and gpuhal_event_wait() for an event that is recorded in it are
 *  BUSY. Waiting for work of another queue that waits for this one takes the whole time. It may take as long as it
 *  likes. Never called where the queue fails before its turn. What waits mean otherwise (NOT_READY, NOT_SUPPORTED,
 *  TIMEOUT, BUSY) and what is no status is no cause: a queue fails with CANCELLED then.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY during native access, HOST_MEMORY, the cause of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: caller keeps @p user until then. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_call(gpuhal_queue *queue, gpuhal_call_fn *fn, void *user);

/** Takes the vendor's queue, valid during the call. Another status than OK fails the queue. */
typedef gpuhal_status gpuhal_native_fn(void *user, const gpuhal_native *native);

/** Native access without waiting: calls @p fn once with the vendor's queue, on a thread of the queue's own, when everything that was
 *  enqueued before has been submitted. What @p fn submits keeps its place among the rest. Otherwise as
 *  gpuhal_queue_call(), and its thread is as one that began native access: blocking transfers of a device whose
 *  VkQueue it has are BUSY.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for a queue that is the library's own, BUSY during native access, HOST_MEMORY, the cause
 *  of the queue's failure, DEVICE_LOST, FORKED
 *  Owner: caller keeps @p user until then. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_queue_native_call(gpuhal_queue *queue, gpuhal_native_fn *fn, void *user);

/** Waits until everything that was enqueued on all queues of the device through this gpuhal object has ended.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY when one is during native access or calls this thread's function, the cause of a
 *  queue's failure, DEVICE_LOST, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_device_synchronize(gpuhal_device *device, uint64_t timeout_ns);

/** Makes an event, for queues of any device of the object. @p flags: GPUHAL_EVENT_ bits.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller, gpuhal_event_destroy(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_create(gpuhal *gpu, uint32_t flags, gpuhal_event **out_event);

/** Destroys the event, also one that is not done: callbacks, watches, descriptors that were handed out, and queues that wait for it
 *  get to know of its end as before. May be called from its own callback.
 *  Owner: @p event is invalid afterwards. Threads: any, with no other call on @p event in progress. Blocks: no. */
GPUHAL_API void gpuhal_event_destroy(gpuhal_event *event);

/** Ends an event that was created with GPUHAL_EVENT_HOST: what waits for it goes on, or fails with @p status. Once. Destroying one that was not
 *  signalled fails what waits for it with CANCELLED. No driver sees such an event, so a wait for it is never a hang.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also the second time, for another event, and for a status that is neither OK nor an error
 *  that a queue can fail with (gpuhal_queue_call())
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_signal(gpuhal_event *event, gpuhal_status status);

/** Records the event behind everything that was enqueued, and flushes. An earlier recording is forgotten; who waits for that one is
 *  not disturbed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a queue of another gpuhal object, for an event of the host's, and for a timed event in a queue
 *  that is not timed),
 *  BUSY during native access, HOST_MEMORY, the cause of the queue's failure, DEVICE_LOST, FORKED. On failure nothing was recorded.
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_record(gpuhal_event *event, gpuhal_queue *queue);

/** Whether the recording is done.
 *  @return GPUHAL_OK, NOT_READY, INVALID_ARGUMENT, or why the recording failed
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_poll(gpuhal_event *event);

/** Waits until the recording is done.
 *  @return GPUHAL_OK, TIMEOUT, INVALID_ARGUMENT, BUSY in a function that the recording's queue calls, or why the recording failed
 *  Owner: nothing. Threads: any. Blocks: yes, up to @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_event_wait(gpuhal_event *event, uint64_t timeout_ns);

/** A descriptor for poll(), epoll and event loops, on Windows an event for WaitForMultipleObjects(): readable as soon as the recording is done or has failed, and until the event is
 *  recorded again. Nothing is read from it; gpuhal_event_poll() says which of the two.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system gives no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_descriptor(gpuhal_event *event, gpuhal_os_handle *out_descriptor);

/** Closes what a call of this library handed out as a gpuhal_os_handle: descriptors of events, of completions and of changes, and handles
 *  of exported memory. A program for one system may use close() or CloseHandle() instead. -1 does nothing.
 *  Owner: takes @p handle. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_os_handle_close(gpuhal_os_handle handle);

/** Takes the end of a recording. @p status: GPUHAL_OK, or why it failed. */
typedef void gpuhal_completion_fn(void *user, gpuhal_status status);

/** Has @p done called once, when the recording is done or has failed: on a thread of the library that serves all callbacks of the
 *  gpuhal object one after the other. The callback may call the library and may destroy the event; as long as it runs, no other
 *  callback does.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY; on failure it is never called
 *  Owner: caller keeps @p user until the callback. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_on_completion(gpuhal_event *event, gpuhal_completion_fn *done, void *user);

/** Has @p user handed out by gpuhal_next_completion() once, when the recording is done or has failed. For event loops with one descriptor.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller keeps @p user. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_watch(gpuhal_event *event, void *user);

/** A descriptor that is readable as long as gpuhal_next_completion() has something to hand out. Nothing is read from it.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system gives no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_completion_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor);

/** Hands out the next watched recording that has ended, in the order of their ends; @p out_status: GPUHAL_OK, or why it failed.
 *  @return GPUHAL_OK, NOT_READY when there is none, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_next_completion(gpuhal *gpu, void **out_user, gpuhal_status *out_status);

/** The device's time from one recording to another of the same device.
 *  @return GPUHAL_OK, NOT_READY, INVALID_ARGUMENT (an event not timed, never recorded, or of another device; the second recorded before
 *  the first), NOT_SUPPORTED where the API has no time stamps, or why a recording failed
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_event_elapsed(gpuhal_event *from, gpuhal_event *to, uint64_t *out_ns);

#ifdef __cplusplus
}
#endif
#endif
