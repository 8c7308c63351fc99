/* recorder.h: lists of steps that run twice: on a model, which makes a blocking call of copy, fill or launch for each
 * step, and as recordings in queues. Afterwards both must have the same bytes.
 *
 * A script is a function that creates, changes and runs recordings with the functions below. gpuhal_recorder_play()
 * calls it first for the model, then for the plugin's recordings, and compares the bytes. The steps work on two memory
 * objects with PLACES places each. A place has room for all buffers of the given kernel. Without a given kernel the
 * steps are only copies and fills.
 */
#ifndef GPUHAL_CHECK_RECORDER_H
#define GPUHAL_CHECK_RECORDER_H

#include "kernel.h"
#include "load.h"

enum { RECORDER_MEMORIES = 2, RECORDER_PLACES = 3, RECORDER_QUEUES = 2, RECORDER_RECORDINGS = 2 };
/* The last units of each place, which no launch uses. */
enum { RECORDER_TAIL = 64 };

/* A launch: the place of its buffers, and how it differs from the given launch. */
typedef struct gpuhal_planned_launch {
    unsigned memory, place;
    unsigned minus; /* each number that is larger than this is less by this; any kernel accepts a smaller count */
    unsigned fewer; /* so many groups fewer in the first dimension, if at least one remains */
    gpuhal_launch_form form; /* without `indirect` */
    bool indirect;           /* the numbers of groups are in memory object `numbers` */
    unsigned numbers;
} gpuhal_planned_launch;

typedef struct gpuhal_planned_step {
    uint32_t kind, flags;
    gpuhal_planned_launch launch;
    unsigned to, from; /* memory objects */
    uint64_t to_offset, from_offset, bytes;
    uint32_t pattern, pattern_bytes;
} gpuhal_planned_step;

typedef struct gpuhal_plan {
    gpuhal_planned_step steps[GPUHAL_PLUGIN_STEPS_MAX];
    uint32_t count;
    gpuhal_plugin_recording *recording; /* NULL for the model */
} gpuhal_plan;

/* Room for the structures of one call. After the call, gpuhal-check overwrites it. */
typedef struct gpuhal_recorder_room gpuhal_recorder_room;

typedef struct gpuhal_recorder {
    const gpuhal_context *context;
    gpuhal_given_kernel own;
    bool has_kernel;
    uint64_t unit;  /* offsets and sizes of copies and fills are multiples of it */
    uint64_t place; /* size of a place, with at least 64 units before its tail */
    gpuhal_area areas[RECORDER_MEMORIES], model[RECORDER_MEMORIES];
    bool has_load; /* otherwise only `slow.work` is valid */
    gpuhal_load slow;
    gpuhal_plugin_queue *queues[RECORDER_QUEUES]; /* the first one is the queue of `slow` */
    gpuhal_plugin_event *events[RECORDER_QUEUES];
    gpuhal_plan plans[RECORDER_RECORDINGS];
    gpuhal_recorder_room *room;
    bool is_model;
    bool refused;              /* the plugin returned NOT_SUPPORTED, so there is nothing to compare */
    bool created;              /* the script has called recording_create */
    unsigned played, refusals; /* number of scripts, and of those that the plugin refused */
    const char *refused_by;    /* the slot that refused the last of these scripts, and the script */
    const char *not_compared;
    bool judged; /* at least one script was compared */
} gpuhal_recorder;

/* The reason for a check that was skipped, with `refused_by`. */
#define GPUHAL_REFUSED_ALL "nothing was compared: %s returned not supported each time"

/* Returns whether the device has recordings; otherwise skips the check. */
bool gpuhal_recorder_offered(const gpuhal_context *context);
/* Scripts can call gpuhal_recorder_load() only with @p slow. */
void gpuhal_recorder_init(gpuhal_recorder *recorder, const gpuhal_context *context, bool slow);
void gpuhal_recorder_finish(gpuhal_recorder *recorder);
/* Like init and finish. Skips the check if the device has no recordings, or refused all scripts; notes how many it
 * refused. */
bool gpuhal_recorder_begin(gpuhal_recorder *recorder, const gpuhal_context *context, bool slow);
void gpuhal_recorder_end(gpuhal_recorder *recorder);
/* Failures begin with @p what, a string constant. Destroys the script's recordings. */
void gpuhal_recorder_play(gpuhal_recorder *recorder, void (*script)(gpuhal_recorder *recorder), const char *what);

/* ---- plans: each function appends steps to the plan with this number */

void gpuhal_plan_copy(gpuhal_recorder *recorder, unsigned plan, unsigned to, uint64_t to_offset, unsigned from,
                      uint64_t from_offset, uint64_t bytes);
/* Does nothing if the device has no slot fill. */
void gpuhal_plan_fill(gpuhal_recorder *recorder, unsigned plan, unsigned to, uint64_t to_offset, uint64_t bytes,
                      uint32_t pattern, uint32_t pattern_bytes);
/* Does nothing without a given kernel. */
void gpuhal_plan_launch(gpuhal_recorder *recorder, unsigned plan, uint32_t flags, gpuhal_planned_launch launch);

/* Rotates the tail of the memory's first place by one unit, through the tail of its second place. Without a kernel, a
 * list of copies and fills would leave the same bytes in each run; with the rotation, the number of runs is visible. */
void gpuhal_plan_rotation(gpuhal_recorder *recorder, unsigned plan, unsigned memory);
/* Appends steps until the plan has @p count of them. Each step works on bytes of the step before it. */
void gpuhal_plan_chain(gpuhal_recorder *recorder, unsigned plan, uint32_t count);

/* ---- calls of scripts */

/* recording_create with the steps of the plan. */
void gpuhal_recorder_create(gpuhal_recorder *recorder, unsigned plan);
void gpuhal_recorder_destroy(gpuhal_recorder *recorder, unsigned plan);
/* recording_set of these steps, which are in ascending order. */
void gpuhal_recorder_set(gpuhal_recorder *recorder, unsigned plan, const uint32_t *indexes,
                         const gpuhal_planned_launch *launches, uint32_t count);
void gpuhal_recorder_run(gpuhal_recorder *recorder, unsigned queue, unsigned plan);
/* A copy in a queue, outside recordings. */
void gpuhal_recorder_copy(gpuhal_recorder *recorder, unsigned queue, unsigned to, uint64_t to_offset, unsigned from,
                          uint64_t from_offset, uint64_t bytes);
/* Releases a memory object, and puts another one with the same bytes into its place. All launches on it must be
 * replaced before the next run. */
void gpuhal_recorder_release(gpuhal_recorder *recorder, unsigned memory);
/* Enqueues slow work in the first queue. */
void gpuhal_recorder_load(gpuhal_recorder *recorder);
/* Makes later work of one queue wait for the work that the other queue has now. */
void gpuhal_recorder_follow(gpuhal_recorder *recorder, unsigned queue, unsigned other);
/* Waits until the work of both queues has ended. */
void gpuhal_recorder_await(gpuhal_recorder *recorder);

#endif
