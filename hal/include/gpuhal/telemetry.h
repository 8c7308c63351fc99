/** gpuhal/telemetry.h: values of devices that change, and the processes on them.
 *
 *  A value has its unit in its key's name, and comes with the name of its source, or with the reason why it is missing;
 *  an unknown value is never 0. All interfaces of a physical device have the same values: those of the kernel's files,
 *  of a vendor's management library and of the APIs of all interfaces are combined, and this library's counts of bytes
 *  are sums over all interfaces. Only GPUHAL_VALUE_QUEUES_BUSY_NS is of one interface. `docs/telemetry.md` has the
 *  table.
 *
 *  Nothing here opens a device or creates a context. A device that the system has suspended is not woken, unless
 *  GPUHAL_SAMPLE_WAKE is given.
 */
#ifndef GPUHAL_TELEMETRY_H
#define GPUHAL_TELEMETRY_H

#include <gpuhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One value of a sample. */
typedef struct gpuhal_value {
    gpuhal_key key;         /**< Set by the caller: the value to read. */
    gpuhal_missing missing; /**< 0: there is a value. */
    uint64_t u64;
    char why[112];          /**< Why it is missing, "" when it is there. */
    /** Its source: "nvml", "amd-smi", "rocm-smi", "sysfs", "hwmon", "fdinfo", "proc", "rapl", "cgroup", "library" for
     *  this library's counts, or the backend whose API has it; "" when it is missing. With the suffix "-board"
     *  ("nvml-board") the value is that of the whole GPU, and equal for all its parts: count it once. */
    char source[16];
} gpuhal_value;

/** Flags of the functions below. */
enum {
    GPUHAL_SAMPLE_WAKE = 1u, /**< A suspended device may be woken. */
    /** Of gpuhal_device_processes(): do not walk over all processes of the system, which takes some 15 ms for 1000 of
     *  them. */
    GPUHAL_SAMPLE_QUICK = 2u
};

/** Reads @p count values now. The device need not be open, and is not opened; plugins are loaded if needed, unless the
 *  library itself or the system's files have all values. A value that no source has is missing, without an error; so is
 *  one that a driver does not return within 5 s, or gpuhal_config.hang_ns. The first reading of the processor's
 *  utilization waits about 100 ms at most, since it needs two samples. @p flags: GPUHAL_SAMPLE_WAKE. @p
 *  out_time_ns, on the monotonic clock, may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED, HOST_MEMORY, DEVICE_LOST, or, if no source has any of the values, why
 *  the device's backend could not be started or has none of them
 *  Owner: caller. Threads: any. Drivers are called, and files read, on threads of the library. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_device_sample(gpuhal_device *device, uint32_t flags, gpuhal_value *values,
                                              uint32_t count, uint64_t *out_time_ns);

/** One device of gpuhal_sample_all(). */
typedef struct gpuhal_sample {
    uint32_t size;         /**< sizeof(gpuhal_sample). */
    uint32_t flags;        /**< GPUHAL_SAMPLE_WAKE, or 0. */
    gpuhal_device *device;
    gpuhal_value *values;  /**< Of the caller, with their keys. */
    uint32_t count;
    gpuhal_status status;  /**< Set: the status that gpuhal_device_sample() would have returned. */
    uint64_t time_ns;      /**< Set: when the values were there, on the monotonic clock. */
} gpuhal_sample;

/** Reads the values of several devices of one gpuhal object at once, under one deadline: values that a source does not
 *  return within @p timeout_ns are missing (timed out), and do not affect other sources' values. With a @p timeout_ns
 *  of 0 the deadlines are those of gpuhal_device_sample(). Devices of one backend are asked in turn, and share the time
 *  that is left. Each sample has its own status.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED, HOST_MEMORY
 *  Owner: caller. Threads: any. Drivers are called, and files read, on threads of the library. Blocks: yes, a little
 *  longer than the deadline at most. */
GPUHAL_API gpuhal_status gpuhal_sample_all(gpuhal *gpu, gpuhal_sample *samples, uint32_t count, uint64_t timeout_ns);

/** The health of a device by one reading of its values: bits. docs/telemetry.md has the rules. */
enum {
    GPUHAL_AILMENT_RESET_NEEDED = 1u << 0, /**< It cannot be used before it is reset. All others are warnings. */
    GPUHAL_AILMENT_ECC_UNCORRECTED = 1u << 1, /**< Memory errors were not corrected. */
    GPUHAL_AILMENT_THERMAL = 1u << 2,         /**< It is slowed down because it is too hot. */
    GPUHAL_AILMENT_POWER_BRAKE = 1u << 3,     /**< It is slowed down because the power supply demands it. */
    GPUHAL_AILMENT_HARDWARE = 1u << 4,        /**< Its hardware slows it down, because of heat or power. */
    GPUHAL_AILMENT_REPAIR_PENDING = 1u << 5,  /**< Its memory has errors that a reset repairs. */
    GPUHAL_AILMENT_REPAIR_FAILED = 1u << 6,   /**< Its memory has errors that cannot be repaired. */
    GPUHAL_AILMENT_VALUES_LOST = 1u << 7,     /**< Its driver reports for single values that the device is lost. */
    GPUHAL_AILMENT_LINK_ERRORS = 1u << 8,     /**< Its links to other devices had errors. */
    GPUHAL_AILMENT_FABRIC_WAITS = 1u << 9,    /**< The switches behind those links are not set up yet. */
    GPUHAL_AILMENT_FABRIC_FAILED = 1u << 10   /**< The switches could not be set up. */
};

/** Judges the health of a device by @p count values that were read from it: ECC_UNCORRECTED_TOTAL, THROTTLE_REASONS,
 *  MEMORY_REPAIR, LINK_ERRORS_TOTAL, FABRIC, and why any of them is missing. gpuhal/node/sampler.h also judges by
 *  changes between two readings.
 *  @return bits GPUHAL_AILMENT_…; 0: nothing is known to be wrong
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_ailments(const gpuhal_value *values, uint32_t count);

/** A process that uses a device. Unknown members are 0, and have no bit in `flags`. */
typedef struct gpuhal_process {
    uint32_t size;           /**< sizeof(gpuhal_process). */
    uint32_t pid;            /**< 0: the driver hides it. */
    uint32_t flags;          /**< GPUHAL_PROCESS_ bits. */
    uint32_t user;           /**< User id; with USER_KNOWN. */
    uint32_t busy_permille;  /**< Share of the time that the device worked for it; with BUSY_KNOWN. */
    uint32_t reserved;
    uint64_t memory_bytes;   /**< Of the device's memory; with MEMORY_KNOWN. */
    char command[64];        /**< Its name, without control characters; "" when unknown. */
    char source[16];         /**< As in gpuhal_value. */
    char container[72];      /**< Id of its container, 64 hexadecimal digits, from its control groups; "" for none. */
} gpuhal_process;

/** Lists the processes that use the device, through any of its interfaces, those with most memory first. Without root's
 *  rights processes of other users may be missing, and in a container processes outside of it. @p out_count, how many
 *  there are, may exceed @p capacity; @p out_processes may be NULL with a capacity of 0, else the caller sets the size
 *  of the first. @p timeout_ns 0: 5 s, or gpuhal_config.hang_ns. @p flags: 0, or GPUHAL_SAMPLE_QUICK: processes that
 *  only a walk finds (with amdgpu and some other drivers, those that draw, or use Vulkan or OpenCL) are left out,
 *  unless a walk was made a moment ago.
 *  @return GPUHAL_OK, also without any process; INVALID_ARGUMENT, FORKED, HOST_MEMORY; NOT_SUPPORTED when no source
 *  lists processes; NOT_READY for a device that is suspended, or if some are left out; else why the sources failed.
 *  Processes that were listed are returned even then
 *  Owner: caller. Threads: any. Drivers are called, and files read, on threads of the library. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_device_processes(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns,
                                                 gpuhal_process *out_processes, uint32_t capacity,
                                                 uint32_t *out_count);

#ifdef __cplusplus
}
#endif
#endif
