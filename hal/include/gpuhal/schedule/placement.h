/** gpuhal/schedule/placement.h: the placement of a model's layers on devices.
 *
 *  A placement gives each device that it uses one range of consecutive layers, its stage. gpuhal_place() finds the best
 *  placement for an objective. It is a pure function of its input. It opens no device and allocates no device memory,
 *  and the caller chooses the source of the numbers: a file's header, a measurement, gpuhal_placement_describe().
 *
 *      gpuhal_placement_problem problem = {.size = sizeof problem, .objective = GPUHAL_PLACEMENT_LATENCY,
 *                                          .layers = layers, .layer_count = 32, .devices = devices, .device_count = 2};
 *      gpuhal_placement *placement;
 *      if (gpuhal_place(&problem, NULL, &placement) == GPUHAL_ERROR_INFEASIBLE)
 *          puts(gpuhal_last_error()->sentence);
 *
 *  The time of a layer on a device is the longer of the times for reading its bytes and for its operations. The time of
 *  a stage is the sum over its layers, plus `start_seconds` of its device. The time of a link is its latency plus the
 *  time for the output of the last layer before it.
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

/** The value to minimise. Of several equally good placements, the placement with the shortest step is chosen. */
typedef uint32_t gpuhal_placement_objective;
enum {
    GPUHAL_PLACEMENT_LATENCY = 0,       /**< The time of one step: the sum over all stages and links. */
    GPUHAL_PLACEMENT_THROUGHPUT = 1,    /**< The time of the slowest stage or link, for steps in a pipeline. */
    GPUHAL_PLACEMENT_FEWEST_DEVICES = 2,
    GPUHAL_PLACEMENT_BALANCED = 3,      /**< The largest share of a device's memory that is used. */
    GPUHAL_PLACEMENT_LEAST_MOVED = 4    /**< The bytes of layers that are not on their `previous` device. */
};

/** One layer. */
typedef struct gpuhal_placement_layer {
    const char *name;        /**< For messages; NULL means the index. */
    uint64_t weight_bytes;
    /** Additional bytes as long as the model is loaded, such as the layer's part of a KV cache. */
    uint64_t state_bytes;
    /** Bytes needed while the layer runs. Of all layers on one device, the largest workspace counts. */
    uint64_t workspace_bytes;
    uint64_t read_bytes;     /**< Bytes of memory read in one step; 0 means the weights and the state. */
    uint64_t output_bytes;   /**< Passed to the next layer in one step. */
    double operations;       /**< Floating-point operations in one step. */
    uint64_t devices;        /**< Bit d is set if the layer may be on device d. 0 means any device. */
    /** Layers with the same number share their weights, which must have the same size; on one device they count once. 0
     *  means not shared. */
    uint32_t tie;
    uint32_t reserved; /**< 0. */
} gpuhal_placement_layer;

/** One device. */
typedef struct gpuhal_placement_device {
    const char *name;             /**< For messages; NULL means the index. */
    /** The bytes that layers may use. With 0, the device takes no layers (a lost device). */
    uint64_t capacity_bytes;
    uint64_t margin_bytes;        /**< The part of the capacity that is left free. */
    double bytes_per_second;      /**< Bandwidth of the device's memory. 0 means unknown; reading then takes no time. */
    double operations_per_second; /**< 0 means unknown; operations then take no time. */
    double start_seconds;         /**< Time in each step before the device's first layer. */
    uint32_t layer_limit;         /**< Maximum number of layers; 0 means no limit. */
    uint32_t reserved;            /**< 0. */
} gpuhal_placement_device;

/** The link from one device to another. */
typedef struct gpuhal_placement_link {
    /** INFINITY means that there is no link, so stages on these devices are never consecutive. */
    double latency_seconds;
    double bytes_per_second; /**< 0 means unknown; bytes then take no time. */
} gpuhal_placement_link;

/** Flags of a problem. */
enum {
    /** Devices may be in any order. Without this flag the first layers are on the used device with the lowest
     *  number, and so on. In both cases devices may be left unused. */
    GPUHAL_PLACEMENT_FREE_ORDER = 1u
};

/** A problem for gpuhal_place(). */
typedef struct gpuhal_placement_problem {
    uint32_t size; /**< sizeof(gpuhal_placement_problem). */
    gpuhal_placement_objective objective;
    const gpuhal_placement_layer *layers;
    const gpuhal_placement_device *devices;
    /** Index `from * device_count + to`; links from a device to itself are not used. NULL means that links take no
     *  time. */
    const gpuhal_placement_link *links;
    /** For each layer, the device that has the layer now, or UINT32_MAX. Used for LEAST_MOVED and the count of moved
     *  bytes. NULL means that no layer is on a device. */
    const uint32_t *previous;
    uint32_t layer_count;  /**< 1 to GPUHAL_PLACEMENT_LAYERS_MAX. */
    uint32_t device_count; /**< 1 to GPUHAL_PLACEMENT_DEVICES_MAX. */
    uint32_t flags;        /**< GPUHAL_PLACEMENT_ bits. */
} gpuhal_placement_problem;

/** The constraint that prevents every placement. */
typedef uint32_t gpuhal_placement_constraint;
enum {
    GPUHAL_PLACEMENT_BY_LAYER = 1,      /**< `layer` fits on none of its permitted devices, even alone. */
    GPUHAL_PLACEMENT_BY_MEMORY = 2,     /**< The layers fit only with more memory. */
    /** The layers' `devices` contradict the order of devices, or the rule of one range for each device. */
    GPUHAL_PLACEMENT_BY_DEVICES = 3,
    GPUHAL_PLACEMENT_BY_LAYER_LIMIT = 4, /**< The `layer_limit` of devices. */
    GPUHAL_PLACEMENT_BY_LINKS = 5       /**< Missing links. */
};

/** Why there is no placement. */
typedef struct gpuhal_placement_shortfall {
    uint32_t size; /**< sizeof(gpuhal_placement_shortfall). */
    gpuhal_placement_constraint constraint;
    /** BY_LAYER: the layer, and the device with the least missing bytes; BY_DEVICES: the layer if no device accepts
     *  it; otherwise UINT32_MAX. */
    uint32_t layer, device;
    /** BY_LAYER and BY_MEMORY: how many additional bytes would suffice, on all devices together, if they were on the
     *  devices that need them. This is the minimum, unless not all orders are compared or there are thousands of
     *  layers; in these cases a lower number may exist. 0 means unknown. */
    uint64_t missing_bytes;
} gpuhal_placement_shortfall;

/** Finds the best placement. @p out_shortfall, which may be NULL, says why there is none when INFEASIBLE is returned;
 *  set its size first. In free order all orders are compared if that takes at most 64 MiB of memory, which is always
 *  true up to 12 devices and 80 layers. Devices that are equal in all numbers and links take less memory. Above that,
 *  the call searches for a good order, and `gap` says how far from the best it may be.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, with the cause in the detail: a number that is negative, NAN or infinite (only
 *  speeds and the latency of a link may be INFINITY), a size that is not set, more seconds than a number can express,
 *  tied weights that differ in size, more than 2^63 bytes in all; INFEASIBLE; HOST_MEMORY
 *  Owner: caller, gpuhal_placement_destroy(); nothing of @p problem is needed afterwards. Threads: any. Blocks: no,
 *  but it computes: for 80 layers on 12 different devices in free order some tenths of a second. */
GPUHAL_API gpuhal_status gpuhal_place(const gpuhal_placement_problem *problem,
                                      gpuhal_placement_shortfall *out_shortfall, gpuhal_placement **out_placement);

/** A placement as a whole. */
typedef struct gpuhal_placement_info {
    uint32_t size;            /**< sizeof(gpuhal_placement_info). */
    uint32_t stage_count;
    double step_seconds;      /**< All stages and links, one after the other. */
    double slowest_seconds;   /**< The slowest stage or link. */
    double largest_share;     /**< The largest used share of a device's capacity minus margin: 0 to 1. */
    uint64_t moved_bytes;     /**< Weights and states of layers that were on another device before, or on none. */
    /** The largest share of the objective's value that a better placement could save. 0 means that this placement is
     *  provably the best; 0.1 means that no placement is better by more than a tenth. */
    double gap;
} gpuhal_placement_info;

/** Describes a placement as a whole. Set @p out_info->size first.
 *  @return GPUHAL_OK, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_placement_get_info(const gpuhal_placement *placement,
                                                   gpuhal_placement_info *out_info);

/** The layers of one device. */
typedef struct gpuhal_placement_stage {
    uint32_t size; /**< sizeof(gpuhal_placement_stage). */
    uint32_t device;
    uint32_t first_layer, layer_count;
    uint64_t used_bytes;  /**< Weights (each counted once), states and the largest workspace. */
    uint64_t left_bytes;  /**< The rest of the capacity, including the margin. */
    double seconds;       /**< Time of the stage. */
    double link_seconds;  /**< Time of the link from the preceding stage; 0 for the first. */
} gpuhal_placement_stage;

/** Returns stage @p index, in the order of layers. Set @p out_stage->size first.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_placement_stage_at(const gpuhal_placement *placement, uint32_t index,
                                                   gpuhal_placement_stage *out_stage);

/** Releases a placement. NULL does nothing.
 *  Owner: @p placement is invalid afterwards. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_placement_destroy(gpuhal_placement *placement);

/** Describes a device as it is now: its id, its free memory (or its total memory, if the free memory cannot be read),
 *  and how fast it reads its memory, if the driver reports that. Operations are unknown, and all other members are 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED; NOT_SUPPORTED if its memory is unknown; DEVICE_LOST
 *  Owner: the name is valid as long as the device pointer. Threads: any. Blocks: yes, as gpuhal_device_sample(). */
GPUHAL_API gpuhal_status gpuhal_placement_describe(gpuhal_device *device, gpuhal_placement_device *out_device);

/** Describes the link from one device to another: with the measured values (gpuhal_link_verify()), otherwise with the
 *  reported bandwidth, otherwise as an unknown link, which takes no time.
 *  @return GPUHAL_OK; as gpuhal_link_u64(), except NOT_SUPPORTED
 *  Owner: nothing. Threads: any. Blocks: yes, at the first query for a pair. */
GPUHAL_API gpuhal_status gpuhal_placement_describe_link(gpuhal_device *from, gpuhal_device *to,
                                                        gpuhal_placement_link *out_link);

#ifdef __cplusplus
}
#endif
#endif
