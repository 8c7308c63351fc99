/** gpuhal/schedule/placement.h: which layers of a model go on which device.
 *
 *  A placement gives each device that it uses one range of consecutive layers, its stage. gpuhal_place() finds the best
 *  one for an objective: a pure function of the numbers that it is given, the same at every call. No device is opened,
 *  nothing is allocated on one, and what the numbers come from is the caller's: a file's header, a measurement,
 *  gpuhal_placement_describe().
 *
 *      gpuhal_placement_problem problem = {.size = sizeof problem, .objective = GPUHAL_PLACEMENT_LATENCY,
 *                                          .layers = layers, .layer_count = 32, .devices = devices, .device_count = 2};
 *      gpuhal_placement *placement;
 *      if (gpuhal_place(&problem, NULL, &placement) == GPUHAL_ERROR_INFEASIBLE)
 *          puts(gpuhal_last_error()->sentence);
 *
 *  The time of a layer on a device is the longer one of reading its bytes and of its operations; of a stage, the sum,
 *  and `start_seconds` of its device; of a link, its latency and what the last layer before it hands over.
 */
#ifndef GPUHAL_PLACEMENT_H
#define GPUHAL_PLACEMENT_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A result of gpuhal_place(). It never changes. */
typedef struct gpuhal_placement gpuhal_placement;

enum {
    GPUHAL_PLACEMENT_LAYERS_MAX = 65535,
    GPUHAL_PLACEMENT_DEVICES_MAX = 64
};

/** What is to be least. Of several that are equally good, the one with the shortest step. */
typedef uint32_t gpuhal_placement_objective;
enum {
    GPUHAL_PLACEMENT_LATENCY = 0,       /**< The time of one step: of all stages and links, one after the other. */
    GPUHAL_PLACEMENT_THROUGHPUT = 1,    /**< The time of the slowest stage or link, where steps follow each other. */
    GPUHAL_PLACEMENT_FEWEST_DEVICES = 2,
    GPUHAL_PLACEMENT_BALANCED = 3,      /**< The largest share of a device's memory that is used. */
    GPUHAL_PLACEMENT_LEAST_MOVED = 4    /**< The bytes of layers that are elsewhere than `previous` has them. */
};

/** One layer. */
typedef struct gpuhal_placement_layer {
    const char *name;        /**< For messages; NULL: its number. */
    uint64_t weight_bytes;
    uint64_t state_bytes;    /**< Besides, as long as the model is there: its part of a KV cache. */
    uint64_t workspace_bytes; /**< While it runs. Of all layers on one device, the largest counts. */
    uint64_t read_bytes;     /**< Of memory, in one step; 0: the weights and the state. */
    uint64_t output_bytes;   /**< Handed to the next layer in one step. */
    double operations;       /**< Of floating point, in one step. */
    uint64_t devices;        /**< Bit d: it may be on device d. 0: on any. */
    /** Layers with the same number share their weights, which have one size: on one device they count once. 0: with no
     *  other. */
    uint32_t tie;
    uint32_t reserved; /**< 0. */
} gpuhal_placement_layer;

/** One device. */
typedef struct gpuhal_placement_device {
    const char *name;             /**< For messages; NULL: its number. */
    uint64_t capacity_bytes;      /**< What layers may use. 0: the device takes none, as one that is lost. */
    uint64_t margin_bytes;        /**< Of it, what is left free. */
    double bytes_per_second;      /**< Of its memory; 0: unknown, reading takes no time. */
    double operations_per_second; /**< 0: unknown, operations take no time. */
    double start_seconds;         /**< In each step, before its first layer. */
    uint32_t layer_limit;         /**< Most layers; 0: no limit. */
    uint32_t reserved;            /**< 0. */
} gpuhal_placement_device;

/** The link from one device to another. */
typedef struct gpuhal_placement_link {
    double latency_seconds;  /**< INFINITY: there is no link, and the two stages are never one after the other. */
    double bytes_per_second; /**< 0: unknown, bytes take no time. */
} gpuhal_placement_link;

/** Flags of a problem. */
enum {
    /** Devices in any order. Without it the first layers are on the device with the lowest number that is used, and so
     *  on; devices are left out in both cases. */
    GPUHAL_PLACEMENT_FREE_ORDER = 1u
};

/** What to place. */
typedef struct gpuhal_placement_problem {
    uint32_t size; /**< sizeof(gpuhal_placement_problem). */
    gpuhal_placement_objective objective;
    const gpuhal_placement_layer *layers;
    const gpuhal_placement_device *devices;
    /** Number `from * device_count + to`; those from a device to itself are not used. NULL: links take no time. */
    const gpuhal_placement_link *links;
    /** For each layer the device that has it now, UINT32_MAX: none. For LEAST_MOVED and the count of moved bytes; NULL:
     *  no layer is anywhere. */
    const uint32_t *previous;
    uint32_t layer_count;  /**< 1 to GPUHAL_PLACEMENT_LAYERS_MAX. */
    uint32_t device_count; /**< 1 to GPUHAL_PLACEMENT_DEVICES_MAX. */
    uint32_t flags;        /**< GPUHAL_PLACEMENT_ bits. */
} gpuhal_placement_problem;

/** What stands in the way of every placement. */
typedef uint32_t gpuhal_placement_constraint;
enum {
    GPUHAL_PLACEMENT_BY_LAYER = 1,      /**< `layer` fits no device that it may be on, even alone. */
    GPUHAL_PLACEMENT_BY_MEMORY = 2,     /**< The layers fit only with more memory. */
    GPUHAL_PLACEMENT_BY_DEVICES = 3,    /**< `devices` of layers: their order, or that they are one range each. */
    GPUHAL_PLACEMENT_BY_LAYER_LIMIT = 4, /**< `layer_limit` of devices. */
    GPUHAL_PLACEMENT_BY_LINKS = 5       /**< Missing links. */
};

/** Why there is no placement. */
typedef struct gpuhal_placement_shortfall {
    uint32_t size; /**< sizeof(gpuhal_placement_shortfall). */
    gpuhal_placement_constraint constraint;
    uint32_t layer, device; /**< BY_LAYER: which, and the device where least is missing; else UINT32_MAX. */
    /** BY_LAYER and BY_MEMORY: how many bytes more would do, on all devices together, if they were where they are
     *  needed. The least possible, except where all orders are not compared or the layers are thousands: then there may
     *  be a lower number; 0: unknown. */
    uint64_t missing_bytes;
} gpuhal_placement_shortfall;

/** Finds the best placement. @p out_shortfall, which may be NULL, has why there is none when INFEASIBLE is returned:
 *  set its size first. In free order all orders are compared where that takes at most 64 MiB of memory, which devices
 *  that are equal in all numbers and links make easy: always up to 12 devices and 80 layers. Above that a good order
 *  is searched for, and `gap` says how far from the best it may be.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, which the detail names: a number that is negative or none, a size that is not
 *  set, more seconds than a number can say, weights that are tied and differ in size, more than 2^63 bytes in all;
 *  INFEASIBLE; HOST_MEMORY
 *  Owner: caller, gpuhal_placement_destroy(); nothing of @p problem is needed afterwards. Threads: any. Blocks: no, but
 *  it computes: for 80 layers on 12 unlike devices in free order some tenths of a second. */
GPUHAL_API gpuhal_status gpuhal_place(const gpuhal_placement_problem *problem,
                                      gpuhal_placement_shortfall *out_shortfall, gpuhal_placement **out_placement);

/** A placement as a whole. */
typedef struct gpuhal_placement_info {
    uint32_t size;            /**< sizeof(gpuhal_placement_info). */
    uint32_t stage_count;
    double step_seconds;      /**< All stages and links, one after the other. */
    double slowest_seconds;   /**< The slowest stage or link. */
    double largest_share;     /**< Of a device's capacity without margin that is used: 0 to 1. */
    uint64_t moved_bytes;     /**< Weights and states of layers that are elsewhere than before, or were nowhere. */
    /** How much of the objective's value a better placement could save at most: 0: this is the best one, which is
     *  proven; 0.1: none is better by more than a tenth. */
    double gap;
} gpuhal_placement_info;

/** Returns what a placement is like. Set @p out_info->size first.
 *  @return GPUHAL_OK, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_placement_get_info(const gpuhal_placement *placement,
                                                   gpuhal_placement_info *out_info);

/** The layers of one device. */
typedef struct gpuhal_placement_stage {
    uint32_t size; /**< sizeof(gpuhal_placement_stage). */
    uint32_t device;
    uint32_t first_layer, layer_count;
    uint64_t used_bytes;  /**< Weights, each once, states and the largest workspace. */
    uint64_t left_bytes;  /**< Of the capacity, the margin included. */
    double seconds;       /**< Of the stage. */
    double link_seconds;  /**< From the stage before it; 0 for the first. */
} gpuhal_placement_stage;

/** Returns stage @p index, in the order of layers. Set @p out_stage->size first.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_placement_stage_at(const gpuhal_placement *placement, uint32_t index,
                                                   gpuhal_placement_stage *out_stage);

/** Releases a placement. NULL does nothing.
 *  Owner: @p placement is invalid afterwards. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_placement_destroy(gpuhal_placement *placement);

/** Describes a device as it is now: its id; what is free of its memory, or all of it where that cannot be read; how
 *  fast it reads its memory, where the driver states it. Operations are unknown, and the rest is 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED; NOT_SUPPORTED where its memory is unknown; DEVICE_LOST
 *  Owner: the name is valid as long as the device. Threads: any. Blocks: yes, as gpuhal_sample_take(). */
GPUHAL_API gpuhal_status gpuhal_placement_describe(gpuhal_device *device, gpuhal_placement_device *out_device);

/** Describes the link from one device to another: as it was measured (gpuhal_link_verify()), else with the bandwidth
 *  that is stated, else unknown: free.
 *  @return GPUHAL_OK, and what gpuhal_link_u64() returns, but for NOT_SUPPORTED
 *  Owner: nothing. Threads: any. Blocks: yes, at the first query for a pair. */
GPUHAL_API gpuhal_status gpuhal_placement_describe_link(gpuhal_device *from, gpuhal_device *to,
                                                        gpuhal_placement_link *out_link);

#ifdef __cplusplus
}
#endif
#endif
