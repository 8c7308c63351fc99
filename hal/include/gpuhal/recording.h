/** gpuhal/recording.h: device work that is described once and run many times.
 *
 *  A recording is a list of steps on one device: launches, and copies and fills of the device's buffers, of any kind of
 *  memory. A run puts all steps into a queue, in their order, as one piece of work, so that no other thread's work
 *  comes between two steps. An engine that launches the same kernels for each token records them once, and then passes
 *  only the values that change. docs/programs.md says what a run costs on each backend.
 *
 *  First the recording is described. Steps are added, and checked like the same calls in a queue. Each argument that
 *  runs may change is declared as a slot, at any time after its step was added. Several steps may use one slot, such as
 *  a position that 28 launches need. gpuhal_recording_finish() ends the description. Until then only one thread at a
 *  time may use the recording. From then on any thread may run it, in any queue of its device.
 *
 *  Runs of one recording never overlap. A run begins after all earlier work of its queue. If the previous run was put
 *  into another queue and may not have ended, the run also begins after all work that this other queue has at the time
 *  of the call, as if it waited for an event there: if that work fails, the run's queue fails too. Work that must not
 *  fail together therefore needs recordings of its own.
 *
 *  Values are read from host memory only while a step is added, and during gpuhal_recording_run(). A recording keeps
 *  its kernels and its buffers until it is freed, also suballocations of pools: their memory is not given to anyone
 *  else before. A buffer in a slot is kept until the slot has another buffer and the runs with it have ended.
 *  Everything else (host memory, files, other devices, callbacks, events) belongs in the queue, before or after the
 *  run.
 *
 *  If a run fails, its queue fails, as after a failed launch. The message names the recording, and if the driver
 *  refused a step, this step, or the range of steps that the driver gets at once. After gpuhal_queue_reset() the
 *  recording can be run again.
 *
 *      gpuhal_recording_desc desc = {.size = sizeof desc, .name = "token", .slot_count = 1};
 *      float y = 1;
 *      gpuhal_argument arguments[] = {{.buffer = buffer}, {.value = &y, .bytes = sizeof y}};
 *      gpuhal_launch launch = {.size = sizeof launch, .arguments = arguments, .argument_count = 2,
 *                              .groups = {16, 1, 1}};
 *      gpuhal_recording *recording = NULL;
 *      uint32_t step = 0;
 *      gpuhal_status status = gpuhal_recording_create(device, &desc, &recording);
 *      status = status ? status : gpuhal_recording_launch(recording, kernel, &launch, &step);
 *      status = status ? status : gpuhal_recording_slot(recording, 0, step, 1);    // slot 0 is argument 1
 *      status = status ? status : gpuhal_recording_finish(recording);
 *      for (int token = 0; token < 100 && !status; token++) {
 *          y = (float)token;
 *          gpuhal_slot_value value = {.slot = 0, .argument = {.value = &y, .bytes = sizeof y}};
 *          status = gpuhal_recording_run(queue, recording, &value, 1);
 *      }
 *      gpuhal_recording_release(recording);             // the queue keeps it until the runs have ended
 */
#ifndef GPUHAL_RECORDING_H
#define GPUHAL_RECORDING_H

#include <gpuhal/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A list of steps. */
typedef struct gpuhal_recording gpuhal_recording;

/** The recording to create. */
typedef struct gpuhal_recording_desc {
    uint32_t size;       /**< sizeof(gpuhal_recording_desc). */
    uint32_t flags;      /**< 0. */
    const char *name;    /**< For messages and traces; copied, at most GPUHAL_RECORDING_NAME_MAX bytes. May be NULL. */
    uint32_t slot_count; /**< Number of slots, at most GPUHAL_RECORDING_SLOTS_MAX. */
    uint32_t reserved;   /**< 0. */
} gpuhal_recording_desc;

/** The largest number of slots, the largest number of steps, and the bytes of a name that messages show. */
enum { GPUHAL_RECORDING_SLOTS_MAX = 65536, GPUHAL_RECORDING_STEPS_MAX = 1048576, GPUHAL_RECORDING_NAME_MAX = 63 };

/** Creates an empty recording, and opens the device if needed. A NULL @p desc means a recording without slots.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for an invalid description; HOST_MEMORY; FORKED; the errors of
 *  gpuhal_device_open()
 *  Owner: caller, gpuhal_recording_release(). Threads: any. Blocks: if the device is not open. */
GPUHAL_API gpuhal_status gpuhal_recording_create(gpuhal_device *device, const gpuhal_recording_desc *desc,
                                                 gpuhal_recording **out_recording);

/** Adds a copy between two buffers of the device, or within one buffer between ranges that do not overlap.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a recording that is finished, ranges that overlap, a buffer of another
 *  device, or memory that was imported read-only as the destination; OUT_OF_RANGE; TOO_LARGE above
 *  GPUHAL_RECORDING_STEPS_MAX steps; HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: the recording keeps the buffers. Threads: one at a time. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_recording_copy(gpuhal_recording *recording, gpuhal_buffer *to, uint64_t to_offset,
                                               gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes);

/** Adds a fill of a range with a pattern of 1, 2 or 4 bytes (gpuhal_fill()).
 *  @return as gpuhal_recording_copy(); INVALID_ARGUMENT also for a pattern of another size, or a range that is not a
 *  multiple of the pattern's size
 *  Owner: the recording keeps the buffer. Threads: one at a time. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_recording_fill(gpuhal_recording *recording, gpuhal_buffer *to, uint64_t to_offset,
                                               uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes);

/** Adds a launch. The arguments are checked and copied. A launch without groups is a step that does nothing, until a
 *  slot changes its groups. @p out_step, which may be NULL, receives the step's number, which counts all steps from 0.
 *  @return as gpuhal_kernel_launch(), but never BUSY: only a run needs its buffers to be unmapped; INVALID_ARGUMENT for
 *  a recording that is finished; TOO_LARGE above GPUHAL_RECORDING_STEPS_MAX steps
 *  Owner: the recording keeps the kernel and the buffers. Threads: one at a time. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_recording_launch(gpuhal_recording *recording, gpuhal_kernel *kernel,
                                                 const gpuhal_launch *launch, uint32_t *out_step);

/** Means the number of groups of a launch, in place of one of its arguments. */
#define GPUHAL_SLOT_GROUPS UINT32_MAX

/** Declares that runs may change argument @p argument of launch @p step, counted from 0, or its groups
 *  (GPUHAL_SLOT_GROUPS). All arguments of one slot must have been recorded with the same value, or the same range of
 *  one buffer; this is the slot's value in the first run unless that run changes it. Local memory, and copies and
 *  fills, cannot change.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a recording that is finished, a slot, step or argument that does not exist,
 *  an argument that has a slot already, or one whose kind, size or value differs from the others of its slot;
 *  HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: nothing. Threads: one at a time. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_recording_slot(gpuhal_recording *recording, uint32_t slot, uint32_t step,
                                               uint32_t argument);

/** Ends the description. From now on the recording can be run. The driver prepares the steps, if it can. The log names
 *  slots without a step, at level INFO.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a recording that is finished; HOST_MEMORY; DRIVER; BUSY;
 *  DEVICE_LOST; FORKED. After an error the recording is not finished, and the call can be repeated
 *  Owner: nothing. Threads: one at a time. Blocks: while the driver prepares the steps, which may include compiling. */
GPUHAL_API gpuhal_status gpuhal_recording_finish(gpuhal_recording *recording);

/** Returns how runs pass the steps of a finished recording to the driver: "driver", the driver has prepared them
 *  (docs/programs.md says what that is on each backend), or "list", each run enqueues them. A run whose values the
 *  driver's form cannot take enqueues the steps even with "driver".
 *  @return never NULL; "" for a recording that is not finished, or NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_recording_form(const gpuhal_recording *recording);

/** A new value of a slot. For a slot of groups, `argument` must be empty; for other slots, `groups` is ignored. The
 *  value of a slot without a step is ignored, so that the recordings of several parts of a model can take the same
 *  values. */
typedef struct gpuhal_slot_value {
    uint32_t slot;
    uint32_t reserved;        /**< 0. */
    gpuhal_argument argument; /**< A value, or a range of a buffer, as in a launch. */
    uint32_t groups[3];       /**< For a slot of groups. If any of them is 0, nothing is launched. */
    uint32_t reserved2;       /**< 0. */
} gpuhal_slot_value;

/** Puts a run into the queue. @p values lists the slots that change, each at most once; the other slots keep their
 *  values of the previous run. All values are checked before any slot changes: after an error other than a failure of
 *  the queue or the device, the slots are as before.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a recording that is not finished, a queue of another device or NULL, a slot
 *  that does not exist or is listed twice, or a value of another kind or size; the errors of gpuhal_kernel_launch() for
 *  values and groups; BUSY for a mapped buffer, during native access to the queue or to the queue of the previous run,
 *  in a function that this call itself calls (a log listener), or while work of previous runs may still be in another
 *  queue that has failed; HOST_MEMORY; the cause of the queue's failure, or of the other queue's; DEVICE_LOST; FORKED;
 *  DRIVER
 *  Owner: the queue keeps the recording until the run has ended. Threads: any; concurrent runs of one recording are put
 *  in some order. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_recording_run(gpuhal_queue *queue, gpuhal_recording *recording,
                                              const gpuhal_slot_value *values, uint32_t count);

/** Adds a reference.
 *  @return @p recording
 *  Owner: caller, one more gpuhal_recording_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_recording *gpuhal_recording_retain(gpuhal_recording *recording);

/** Drops a reference. The last one frees the recording, after its runs have ended. NULL does nothing.
 *  Owner: the caller's reference ends. Threads: any. Blocks: with the last reference. */
GPUHAL_API void gpuhal_recording_release(gpuhal_recording *recording);

#ifdef __cplusplus
}
#endif
#endif
