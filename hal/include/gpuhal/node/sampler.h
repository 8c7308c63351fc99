/** gpuhal/node/sampler.h: values over time: history, statistics of windows, thresholds, and the health of devices.
 *
 *  A sampler periodically reads the same values of the same devices on a separate thread (gpuhal-sample), and keeps the
 *  newest samples in a ring. All other calls read the ring and never call a driver. A value that was missing in a
 *  sample stays missing in the history; statistics exclude missing values and count them.
 *
 *  A threshold that is raised or cleared, and a change of health, are events. An event is passed to the callback
 *  registered for it, and added to the list of gpuhal_sampler_next_event() once gpuhal_sampler_descriptor() was called.
 *  The events of one sample are ordered by threshold number, then by device; health events come last.
 *
 *      gpuhal_sampler *sampler = NULL;
 *      gpuhal_threshold hot = {.size = sizeof hot, .key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,
 *                              .limit = 90000, .clear = 85000, .callback = slow_down};
 *      gpuhal_sampler_create(gpu, NULL, &sampler);      // every device, the usual values, once a second
 *      gpuhal_sampler_add_threshold(sampler, &hot, NULL);
 *
 *  gpuhal_close() ends the sampling. The samples stay readable, and callbacks for them are still called, until
 *  gpuhal_sampler_destroy(). Between these two calls, only the functions of this header accept the sampler's devices.
 */
#ifndef GPUHAL_SAMPLER_H
#define GPUHAL_SAMPLER_H

#include <gpuhal/device.h>
#include <gpuhal/telemetry.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reads values of devices periodically. */
typedef struct gpuhal_sampler gpuhal_sampler;

/** The values to sample, and how often. */
typedef struct gpuhal_sampler_desc {
    uint32_t size;
    uint32_t flags;        /**< GPUHAL_SAMPLE_WAKE, or 0. */
    uint32_t device_count; /**< 0 means the preferred interface of every physical device. */
    uint32_t key_count;    /**< 0 means every value except PCIe traffic, which is slow to read. */
    gpuhal_device *const *devices;
    const gpuhal_key *keys;
    uint64_t period_ns;    /**< Time from one sample to the next, 10 ms to a day; 0 means one second. */
    uint32_t history;      /**< Number of samples that are kept, at most 100,000; 0 means 300. */
    uint32_t reserved;
} gpuhal_sampler_desc;

/** Creates a sampler, which starts the first sample immediately. A sample that takes longer than the period delays the
 *  next one; missed samples are not taken later. Each source has one period to respond, but at least 100 ms and at most
 *  5 s; otherwise its values are missing. If @p desc is NULL, all defaults apply.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (a period or a history outside its limits, a duplicate device, a key
 *  that is not a value), NO_DEVICE if there is no device to sample, HOST_MEMORY
 *  Owner: caller, gpuhal_sampler_destroy(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_create(gpuhal *gpu, const gpuhal_sampler_desc *desc,
                                               gpuhal_sampler **out_sampler);

/** Stops sampling and frees the sampler. Once this call has returned, none of its callbacks runs or is called again;
 *  only a callback that makes this call itself continues until it returns. NULL does nothing.
 *  Owner: @p sampler is invalid afterwards. Threads: any, once no other thread uses it. Blocks: until a running
 *  callback has ended, never for a driver. */
GPUHAL_API void gpuhal_sampler_destroy(gpuhal_sampler *sampler);

/** Returns device number @p index of the sampler, counted from 0.
 *  @return the device; NULL past the last
 *  Owner: the gpuhal object, and the sampler. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_sampler_device(const gpuhal_sampler *sampler, uint32_t index);

/** Returns values of the newest sample, selected by @p values[i].key. A key that is not sampled is missing (not read).
 *  @p out_time_ns, on the monotonic clock, may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a device that is not sampled), NOT_READY before the first
 *  sample, DEVICE_LOST when the device was lost before that sample, or the error that made its backend fail to start
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_latest(gpuhal_sampler *sampler, const gpuhal_device *device,
                                               gpuhal_value *values, uint32_t count, uint64_t *out_time_ns);

/** One value in one sample. */
typedef struct gpuhal_point {
    uint64_t time_ns;       /**< On the monotonic clock. */
    uint64_t u64;
    gpuhal_missing missing; /**< 0 if there is a value. */
    uint32_t reserved;
} gpuhal_point;

/** Copies the newest samples of one value, in order of time. @p out_count is the number of copied samples.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a device or a key that is not sampled)
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_history(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_key key,
                                                gpuhal_point *out_points, uint32_t capacity, uint32_t *out_count);

/** Statistics of one value over a window of time. */
typedef struct gpuhal_window {
    uint32_t size;            /**< sizeof(gpuhal_window), set by the caller. */
    uint32_t count;           /**< Number of samples with a value. If 0, all other numbers are 0, except `missing`. */
    uint32_t missing;         /**< Number of samples without a value. */
    uint32_t reserved;
    uint64_t from_ns, to_ns;  /**< Times of the first and the last sample with a value. */
    uint64_t first, last;
    uint64_t min, max;
    uint64_t mean;            /**< Mean of the samples, rounded down. */
    /** For a value that counts up (energy, errors, bytes): the sum of its increases from sample to sample. If a sample
     *  is below the preceding sample, the counter was reset, and the sample adds nothing. */
    uint64_t increase;
} gpuhal_window;

/** Computes the statistics of the samples that are at most @p window_ns old, or of all kept samples if @p window_ns is
 *  0.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0, a device or a key that is not sampled)
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_window(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_key key,
                                               uint64_t window_ns, gpuhal_window *out_window);

/** The state of health of a device. */
typedef uint32_t gpuhal_health_state;
enum {
    GPUHAL_HEALTH_UNKNOWN = 0,  /**< Not sampled yet. */
    GPUHAL_HEALTH_OK = 1,
    GPUHAL_HEALTH_DEGRADED = 2, /**< The device works, but an operator should examine it. */
    GPUHAL_HEALTH_LOST = 3      /**< The device cannot be used any more. */
};

/** Why a device is degraded. Bit values; docs/telemetry.md states when each is set and cleared. */
enum {
    GPUHAL_HEALTH_FAULTS = 1u << 0,           /**< Another interface of the physical device was lost in this process. */
    GPUHAL_HEALTH_ECC = 1u << 1,              /**< New memory errors that could not be corrected. */
    GPUHAL_HEALTH_THERMAL = 1u << 2,          /**< The device is slowed down because it is too hot. */
    GPUHAL_HEALTH_POWER_BRAKE = 1u << 3,      /**< The device is slowed down because the power supply requests it. */
    GPUHAL_HEALTH_PCIE_REPLAYS = 1u << 4,     /**< The device's PCIe link often retransmits packets. */
    /** The vendor's driver reported an error that the application did not cause. */
    GPUHAL_HEALTH_VENDOR_EVENT = 1u << 5
};

/** The health of a device. */
typedef struct gpuhal_health {
    uint32_t size;            /**< sizeof(gpuhal_health), set by the caller. */
    gpuhal_health_state state;
    uint32_t reasons;         /**< Bits GPUHAL_HEALTH_…; 0 unless degraded. */
    uint32_t reserved;
    uint64_t since_ns;        /**< When the device entered this state, on the monotonic clock; 0 for UNKNOWN. */
    char sentence[240];       /**< Human-readable description of the problem; "" for OK and UNKNOWN. */
} gpuhal_health;

/** Returns the health as of the newest sample.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0 or a device that is not sampled)
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_health(gpuhal_sampler *sampler, const gpuhal_device *device,
                                               gpuhal_health *out_health);

/** Returns the JSON name of a state, such as "degraded".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_health_name(gpuhal_health_state state);

/** The kind of an event. */
typedef uint32_t gpuhal_sampler_event_kind;
enum {
    GPUHAL_SAMPLER_RAISED = 1,  /**< A value has passed its threshold. */
    GPUHAL_SAMPLER_CLEARED = 2, /**< The value is no longer beyond the threshold's `clear`. */
    GPUHAL_SAMPLER_HEALTH = 3   /**< The device's health state or its reasons have changed. */
};

/** One event. */
typedef struct gpuhal_sampler_event {
    uint32_t size;
    gpuhal_sampler_event_kind kind;
    gpuhal_device *device;
    uint64_t time_ns;      /**< Time of the sample, on the monotonic clock. */
    uint32_t threshold;    /**< The threshold's number; 0 for HEALTH. */
    gpuhal_key key;        /**< 0 for HEALTH. */
    uint64_t value;        /**< The value; for HEALTH the gpuhal_health_state. */
    char sentence[240];    /**< Human-readable, such as "cuda:1: temperature_millicelsius is 91000, above 90000". */
} gpuhal_sampler_event;

/** Receives an event, on the thread of the library that serves all callbacks of the gpuhal object; it may call the
 *  library, but not gpuhal_close(). @p event is valid during the call. */
typedef void gpuhal_sampler_fn(void *user, const gpuhal_sampler_event *event);

/** A limit of a value. */
typedef struct gpuhal_threshold {
    uint32_t size;
    gpuhal_key key;
    gpuhal_device *device; /**< NULL means every device of the sampler, each separately. */
    uint32_t is_below;     /**< 0 if values above `limit` raise the threshold, 1 if values below it do. */
    uint32_t samples;      /**< Number of consecutive samples that raise or clear the threshold; 0 means one. */
    uint64_t limit;
    /** Hysteresis: a raised threshold is cleared by a value that is not beyond `clear`. 0 means the limit itself, even
     *  if `is_below` is 1. Must not be beyond the limit. */
    uint64_t clear;
    gpuhal_sampler_fn *callback; /**< NULL for no callback. */
    void *user;
} gpuhal_threshold;

/** Adds a threshold; the next sample is the first to be compared with it. A sample without the value changes nothing.
 *  @p out_number, at least 1, may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (a key or a device that is not sampled, `clear` beyond `limit`),
 *  HOST_MEMORY
 *  Owner: caller must keep `user` until the threshold is removed. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_add_threshold(gpuhal_sampler *sampler, const gpuhal_threshold *threshold,
                                                      uint32_t *out_number);

/** Removes a threshold. Once this call has returned, its callback is not running and is not called again; only a
 *  callback that makes this call itself continues until it returns.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND
 *  Owner: nothing. Threads: any. Blocks: until a running call of the callback has ended. */
GPUHAL_API gpuhal_status gpuhal_sampler_remove_threshold(gpuhal_sampler *sampler, uint32_t number);

/** Registers @p callback to be called for every change of health of every device of the sampler. NULL ends the calls,
 *  like removing a threshold.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller must keep @p user until a call with NULL, or gpuhal_sampler_destroy(), has returned. Threads: any.
 *  Blocks: with NULL, until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_sampler_on_health(gpuhal_sampler *sampler, gpuhal_sampler_fn *callback, void *user);

/** Returns a descriptor that is readable while gpuhal_sampler_next_event() has an event. The caller must not read from
 *  it. From the first call on, at most 256 events are kept; the oldest are dropped.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system provides no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_descriptor(gpuhal_sampler *sampler, gpuhal_os_handle *out_descriptor);

/** Returns the next event. Set @p out_event->size first.
 *  @return GPUHAL_OK, FORKED, NOT_READY when there is none, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_sampler_next_event(gpuhal_sampler *sampler, gpuhal_sampler_event *out_event);

#ifdef __cplusplus
}
#endif
#endif
