/** gpuhal/schedule/assign.h: chooses a device for each step of a program, before the first step runs.
 *
 *  Each step has a need (rank.h), or needs no device. gpuhal_assign() finds a device for every step, or returns an
 *  error that names a step and its unmet need. If the policy's own choices leave a step without room, other choices are
 *  tried, so that an assignment is found whenever one exists, up to a limit on the effort.
 *
 *      gpuhal_need small = {.size = sizeof small, .bytes = UINT64_C(1) << 30};
 *      gpuhal_need large = {.size = sizeof large, .bytes = UINT64_C(8) << 30};
 *      gpuhal_assign_step steps[] = {{.size = sizeof *steps, .name = "load"},
 *                                    {.size = sizeof *steps, .name = "segment", .need = &large, .group = 1},
 *                                    {.size = sizeof *steps, .name = "measure", .need = &small, .group = 1}};
 *      gpuhal_assign_desc desc = {.size = sizeof desc, .policy = GPUHAL_ASSIGN_PACK, .steps = steps, .step_count = 3};
 *      gpuhal_assignment *assignment;
 *      if (gpuhal_assign(gpu, &desc, &assignment) == GPUHAL_OK) {
 *          run_on(gpuhal_assignment_device(assignment, 1));
 *          gpuhal_assignment_destroy(assignment);
 *      }
 *
 *  An assignment allocates and reserves nothing. When a device vanishes (rescan.h), assign again.
 */
#ifndef GPUHAL_ASSIGN_H
#define GPUHAL_ASSIGN_H

#include <gpuhal/schedule/rank.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of steps. */
enum {
    /** If the step's group does not fit on one device, this step may be on another device. */
    GPUHAL_STEP_MAY_SPLIT = 1u << 0,
    /** The step is already running on the device that the balance has recorded for it, so the values measured for this
     *  device include the step's bytes and its share of the time. */
    GPUHAL_STEP_RUNS = 1u << 1
};

/** One step. */
typedef struct gpuhal_assign_step {
    uint32_t size;           /**< sizeof(gpuhal_assign_step). */
    uint32_t flags;          /**< GPUHAL_STEP_ bits. */
    const char *name;        /**< For messages, and for the balance; NULL means the step's number. */
    const gpuhal_need *need; /**< NULL if the step needs no device. */
    uint32_t group;          /**< Steps of the same group are on the same device; 0 means no group. */
    uint32_t busy_permille;  /**< Share of the time during which a device works for the step, if known. */
} gpuhal_assign_step;

/** The choice among the devices that satisfy a step's need. */
typedef uint32_t gpuhal_assign_policy;
enum {
    GPUHAL_ASSIGN_FIRST = 0,       /**< The first device with room. */
    /** The device after the preceding step's device. With a balance, the first step gets the device after the last
     *  device of the preceding call; without a balance, it gets the first device. */
    GPUHAL_ASSIGN_ROUND_ROBIN = 1,
    GPUHAL_ASSIGN_SPREAD = 2,      /**< Minimises the largest number of steps on one device. */
    GPUHAL_ASSIGN_PACK = 3,        /**< Minimises the number of used devices. */
    GPUHAL_ASSIGN_MOST_FREE = 4,   /**< The device with the most free memory, minus the bytes of earlier steps. */
    /** The device with the least load, as in GPUHAL_RANK_LEAST_LOADED, including the load of earlier steps. With a
     *  balance, the step keeps its earlier device, unless another device's load is lower by more than the margin. */
    GPUHAL_ASSIGN_LEAST_LOADED = 5
};

/** Flags of gpuhal_assign(). */
enum {
    /** The steps run one after another and keep no memory, so only the largest step on each device must fit. */
    GPUHAL_ASSIGN_IN_TURN = 1u
};

/** The description of an assignment. */
typedef struct gpuhal_assign_desc {
    uint32_t size;  /**< sizeof(gpuhal_assign_desc). */
    uint32_t flags; /**< GPUHAL_ASSIGN_IN_TURN, or 0. */
    gpuhal_assign_policy policy;
    uint32_t step_count;
    const gpuhal_assign_step *steps; /**< All with the same size. */
    gpuhal_device *const *devices;   /**< Tried in this order; lost devices are skipped. */
    uint32_t device_count;           /**< 0 means all devices of the gpuhal object. */
    uint32_t promise_count;
    const gpuhal_promise *promises;
    gpuhal_balance *balance; /**< The earlier choices; changed when the call returns OK. May be NULL. */
    uint64_t timeout_ns;     /**< Timeout for reading values; 0 means as for gpuhal_device_sample(). */
} gpuhal_assign_desc;

/** A device for each step. */
typedef struct gpuhal_assignment gpuhal_assignment;

/** Assigns a device to each step that needs one. Values are read, and plugins are loaded to read them, only if a step
 *  needs bytes or the policy depends on values. If a device's free memory is unknown, its total memory counts. If no
 *  step needs a device, the assignment is empty, even on a machine without devices.
 *  @return GPUHAL_OK; NOT_FOUND when no device satisfies the need of a step, apart from `bytes`; INFEASIBLE when there
 *  is not enough memory, or no device for a whole group; FORKED; INVALID_ARGUMENT; HOST_MEMORY. The detail names the
 *  step
 *  Owner: caller, gpuhal_assignment_destroy(), before gpuhal_close(). Threads: any; one call at a time with the same
 *  balance. Blocks: if values are read. */
GPUHAL_API gpuhal_status gpuhal_assign(gpuhal *gpu, const gpuhal_assign_desc *desc, gpuhal_assignment **out_assignment);

/** Counts the steps that have a device.
 *  @return the count; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_assignment_count(const gpuhal_assignment *assignment);

/** Returns the device of step number @p step, counted from 0.
 *  @return the device; NULL for a step that needs none, past the last, or for NULL
 *  Owner: its gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_assignment_device(const gpuhal_assignment *assignment, uint32_t step);

/** Returns how many bytes the steps on @p device need: the sum of all steps, or with GPUHAL_ASSIGN_IN_TURN the bytes of
 *  the largest step.
 *  @return the bytes; 0 for a device without steps, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_assignment_bytes(const gpuhal_assignment *assignment, const gpuhal_device *device);

/** Returns whether all devices of the assignment can still be used, as far as the library knows; does not call a
 *  driver.
 *  @return GPUHAL_OK; DEVICE_LOST, with a step and its device in the detail; FORKED; INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_assignment_check(const gpuhal_assignment *assignment);

/** Destroys the assignment. NULL does nothing.
 *  Owner: @p assignment is invalid afterwards. Threads: any, with no other call on @p assignment in progress.
 *  Blocks: no. */
GPUHAL_API void gpuhal_assignment_destroy(gpuhal_assignment *assignment);

#ifdef __cplusplus
}
#endif
#endif
