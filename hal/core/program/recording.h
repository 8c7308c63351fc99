/* program/recording.h: recordings as the files of this folder see them.
 *
 * A recording has one list of steps, which all runs use. A step's launch is prepared completely, so that a run only
 * passes it to the plugin. A run that changes slots changes the list in place if no other run needs the old values, and
 * otherwise makes a new list, which shares the unchanged launches with the old one.
 *
 * If the plugin can prepare the steps, a run passes prepared parts instead of steps. prepared.c says when.
 *
 * A run has a reference to the recording and to its list. The recording keeps its kernels and all buffers of its
 * description; a list keeps the buffers of the slots. One thread at a time starts a run of a recording.
 */
#ifndef GPUHAL_PROGRAM_RECORDING_H
#define GPUHAL_PROGRAM_RECORDING_H

#include "program/launch.h"

#include <gpuhal/recording.h>

/* ---- recorded_launch.c: a launch with copies of its values. Keeps its kernel and buffers, also suballocations. */

typedef struct gpuhal_recorded_launch gpuhal_recorded_launch;
struct gpuhal_recorded_launch {
    gpuhal_launch_record record; /* first, for gpuhal_launch_kind; without references of its own */
    _Atomic uint32_t references; /* held by lists of steps */
    gpuhal_launch given;         /* checked; all pointers lead into this block */
    struct gpuhal_use *buffers;  /* the lists of `record` */
    gpuhal_plugin_argument *arguments;
    const gpuhal_memory **memories;
    /* The slot of each argument and of the groups, counted from 1; 0 means none. Only set while the recording is
     * described. */
    uint32_t *argument_slots, groups_slot;
    gpuhal_argument given_arguments[];
};

/* Copies a checked launch. Returns NULL if out of memory. */
gpuhal_recorded_launch *gpuhal_recorded_launch_create(gpuhal_kernel *kernel, const gpuhal_launch *launch);
void gpuhal_recorded_launch_release(gpuhal_recorded_launch *launch);
/* Changes a checked argument, or the groups. The plugin must not be using the launch. */
void gpuhal_recorded_launch_set_argument(gpuhal_recorded_launch *launch, uint32_t index,
                                         const gpuhal_argument *argument);
void gpuhal_recorded_launch_set_groups(gpuhal_recorded_launch *launch, const uint32_t groups[3]);

/* ---- lists of steps */

/* A step is a gpuhal_op of gpuhal_launch_kind, a copy or a fill. Its `kind` is NULL if it does nothing. */
typedef struct gpuhal_steps {
    _Atomic uint32_t references; /* by the recording, and by runs that have not ended */
    _Atomic bool launched;       /* a run was submitted completely since the list was made or a grid has changed */
    bool has_parts;              /* a buffer is a part of a pool */
    uint32_t count, use_count;
    gpuhal_op *ops;
    struct gpuhal_use *uses; /* all buffers that the steps use; those of the slots are the last */
} gpuhal_steps;

static inline gpuhal_recorded_launch *gpuhal_step_launch(const gpuhal_op *step)
{
    const bool is_launch = step->kind == &gpuhal_launch_kind;
    return is_launch ? (gpuhal_recorded_launch *)(void *)step->uses : NULL;
}

/* A launch without groups does nothing. */
static inline bool gpuhal_step_does_nothing(const gpuhal_op *step)
{
    const gpuhal_recorded_launch *launch = gpuhal_step_launch(step);
    const uint32_t *groups = launch ? launch->given.groups : NULL;
    return !step->kind || (groups && (groups[0] == 0 || groups[1] == 0 || groups[2] == 0));
}

typedef enum gpuhal_slot_kind {
    GPUHAL_SLOT_UNUSED,
    GPUHAL_SLOT_VALUE,
    GPUHAL_SLOT_BUFFER,
    GPUHAL_SLOT_OF_GROUPS
} gpuhal_slot_kind;

typedef struct gpuhal_slot {
    gpuhal_slot_kind kind;
    bool writes;  /* a step writes to the buffer */
    bool changes; /* named by the values that are being checked */
    bool stale;   /* the prepared parts do not have the value */
    uint32_t use; /* index of the buffer in the list's `uses` */
    uint32_t place_count, place_space;
    struct gpuhal_slot_place {
        uint32_t step, argument;
    } * places;
    /* The current value. `argument.value` points to a copy, and `argument.buffer` is retained. */
    gpuhal_argument argument;
    uint32_t groups[3];
} gpuhal_slot;

struct gpuhal_recording {
    _Atomic uint32_t references; /* by the application, and by runs that have not ended */
    _Atomic uint32_t running;    /* number of runs that have not ended */
    _Atomic uint32_t unsent;     /* number of runs with steps that the plugin has not received */
    gpuhal_device *device;
    char *name;
    bool finished;
    uint32_t slot_count;
    gpuhal_slot *slots;
    gpuhal_buffer **kept; /* retained: the buffers of copies and fills */
    uint32_t kept_count, kept_space;
    uint32_t step_space; /* of `steps->ops`, until the recording is finished */
    gpuhal_steps *steps;
    struct gpuhal_prepared *prepared; /* NULL if each run enqueues the steps */
    gpuhal_mutex mutex; /* protects the next two members */
    gpuhal_condition condition;
    uint64_t starter;    /* thread that starts a run; 0 if none does */
    gpuhal_queue *queue; /* retained: the queue of the previous run; only used by the starter */
};

/* ---- recording.c: set the error detail */

/* Sets and returns the status, with a message that begins with the device and the recording. */
gpuhal_status gpuhal_recording_refuse(const gpuhal_recording *recording, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Frees a recording without references, and releases its reference to the gpuhal object. */
void gpuhal_recording_free(gpuhal_recording *recording);
/* Inserts the recording and `where` after the first part of this thread's last message, and returns the status. */
gpuhal_status gpuhal_recording_name_step(const gpuhal_recording *recording, const char *where, gpuhal_status status);

/* ---- prepared.c. One thread at a time: the one that finishes the recording or starts a run; only
 * gpuhal_prepared_run() may be called by the thread that submits. */

typedef struct gpuhal_prepared gpuhal_prepared;

/* Sets `prepared` of a recording that is being finished, unless the plugin cannot prepare it. Sets the error detail. */
gpuhal_status gpuhal_prepared_create(gpuhal_recording *recording);
void gpuhal_prepared_destroy(gpuhal_device *device, gpuhal_prepared *own);
/* Notes that the value of slot `number` has changed, or may have. Does nothing if the recording is not prepared. */
void gpuhal_prepared_expect(gpuhal_recording *recording, uint32_t number);
/* Called when a run is being started, and counted as not received by the plugin. Passes the values of `list` to the
 * plugin. Returns false if the run must enqueue the steps. */
bool gpuhal_prepared_update(const gpuhal_recording *recording, const gpuhal_steps *list);
/* Returns the largest number of steps in a part, or 0 if the recording is not prepared. */
uint32_t gpuhal_prepared_most_steps(const gpuhal_recording *recording);
/* Enqueues a part, which begins with step `first` of the list. Sets the number of steps that the plugin has for it, and
 * the first step of the next part. */
gpuhal_status gpuhal_prepared_run(gpuhal_plugin_queue *queue, const gpuhal_recording *recording,
                                  const gpuhal_steps *list, uint32_t part, uint32_t first, uint32_t *out_steps,
                                  uint32_t *out_end);

/* ---- steps.c */

/* Creates an empty list with room for `space` steps. Returns NULL if out of memory. */
gpuhal_steps *gpuhal_steps_create(uint32_t space);
void gpuhal_steps_release(gpuhal_steps *steps);
/* Releases a reference. Returns true if it was the last; the caller must then free the list, or have it freed. */
bool gpuhal_steps_unreference(gpuhal_steps *steps);
void gpuhal_steps_free(gpuhal_steps *steps);
/* Copies the list of a finished recording. Launches that the listed slots will change are copied too; the lists share
 * the other launches. Returns NULL if out of memory. */
gpuhal_steps *gpuhal_steps_copy(const gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count);
/* Lists the buffers of all steps and slots. Returns HOST_MEMORY with its detail. */
gpuhal_status gpuhal_steps_list_uses(gpuhal_recording *recording);
/* Returns whether another list has launches that the slot changes. */
bool gpuhal_steps_share(const gpuhal_steps *steps, const gpuhal_slot *slot);
/* Sets a slot's value in the list. No other run may need the old value. */
void gpuhal_steps_set(gpuhal_steps *steps, const gpuhal_slot *slot, const gpuhal_argument *argument,
                      const uint32_t groups[3]);
/* Returns whether the driver may compile a kernel during the next run. */
bool gpuhal_steps_may_compile(gpuhal_steps *steps);

#endif
