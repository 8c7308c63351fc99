/** gpuhal/telemetry.h: values of devices that change over time, and the processes that use the devices.
 *
 *  The unit of a value is in its key's name. A value comes with the name of its source, or with the reason why it is
 *  missing; an unknown value is never 0. All interfaces of a physical device have the same values: the library combines
 *  values from the kernel's files, the vendor's management library and the APIs of all interfaces, and its own counts
 *  of bytes are sums over all interfaces. Only GPUHAL_VALUE_QUEUES_BUSY_NS applies to one interface.
 *  `docs/telemetry.md` contains a table of all values.
 *
 *  No function of this header opens a device or creates a context. A device that the system has suspended is not woken
 *  unless GPUHAL_SAMPLE_WAKE is set.
 *
 *      gpuhal_value values[] = {{.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS},
 *                               {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}};
 *      if (gpuhal_device_sample(device, 0, values, 2, NULL) == GPUHAL_OK && values[0].missing)
 *          printf("no temperature: %s\n", values[0].why);
 */
#ifndef GPUHAL_TELEMETRY_H
#define GPUHAL_TELEMETRY_H

#include <gpuhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One value of a sample. */
typedef struct gpuhal_value {
    gpuhal_key key;         /**< The value to read; set by the caller. */
    gpuhal_missing missing; /**< 0 if there is a value. */
    uint64_t u64;
    char why[112];          /**< Why the value is missing, or "". */
    /** Source of the value: "nvml", "amd-smi", "rocm-smi", "sysfs", "hwmon", "fdinfo", "proc", "rapl", "cgroup",
     *  "library" for this library's counts, or the backend whose API returned it; "" if the value is missing. With the
     *  suffix "-board" ("nvml-board") the value applies to the whole GPU and is the same for all its partitions, so
     *  count it only once. */
    char source[16];
} gpuhal_value;

/** Flags of the functions below. */
enum {
    GPUHAL_SAMPLE_WAKE = 1u, /**< A suspended device may be woken. */
    /** For gpuhal_device_processes(): do not scan all processes of the system, which takes about 15 ms for 1000
     *  processes. */
    GPUHAL_SAMPLE_QUICK = 2u
};

/** Reads @p count values now. The device need not be open, and is not opened; plugins are loaded if needed, unless the
 *  library itself or the system's files have all values. A value that no source has is missing, without an error. A
 *  value is also missing if a driver does not return it within 5 s, or within gpuhal_config.hang_ns if that is shorter.
 *  The first reading of the CPU's utilization waits for at most about 100 ms, since it requires two samples. @p flags:
 *  GPUHAL_SAMPLE_WAKE. @p out_time_ns, on the monotonic clock, may be NULL.
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
    gpuhal_value *values;  /**< The caller's array, with its keys set. */
    uint32_t count;
    gpuhal_status status;  /**< Set to the status that gpuhal_device_sample() would have returned. */
    uint64_t time_ns;      /**< Set to the time when the values had been read, on the monotonic clock. */
} gpuhal_sample;

/** Reads the values of several devices of one gpuhal object at once, with one deadline. Values that a source does not
 *  return within @p timeout_ns are missing (timed out); other sources' values are not affected. With a @p timeout_ns of
 *  0 the deadlines are those of gpuhal_device_sample(). Devices of one backend are queried in turn, and share the
 *  remaining time. Each sample has its own status.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED, HOST_MEMORY
 *  Owner: caller. Threads: any. Drivers are called, and files read, on threads of the library. Blocks: yes, at most
 *  a little longer than the deadline. */
GPUHAL_API gpuhal_status gpuhal_sample_all(gpuhal *gpu, gpuhal_sample *samples, uint32_t count, uint64_t timeout_ns);

/** Health problems that one reading of a device's values shows. Bit values; docs/telemetry.md has the rules. */
enum {
    /** The device cannot be used until it is reset. All other bits are warnings. */
    GPUHAL_AILMENT_RESET_NEEDED = 1u << 0,
    GPUHAL_AILMENT_ECC_UNCORRECTED = 1u << 1, /**< Memory errors were not corrected. */
    GPUHAL_AILMENT_THERMAL = 1u << 2,         /**< The device is slowed down because it is too hot. */
    GPUHAL_AILMENT_POWER_BRAKE = 1u << 3,     /**< The device is slowed down because the power supply requests it. */
    GPUHAL_AILMENT_HARDWARE = 1u << 4,        /**< The hardware slows the device down, because of heat or power. */
    GPUHAL_AILMENT_REPAIR_PENDING = 1u << 5,  /**< The device's memory has errors that a reset repairs. */
    GPUHAL_AILMENT_REPAIR_FAILED = 1u << 6,   /**< The device's memory has errors that cannot be repaired. */
    GPUHAL_AILMENT_VALUES_LOST = 1u << 7,     /**< For some values, the driver reports that the device is lost. */
    GPUHAL_AILMENT_LINK_ERRORS = 1u << 8,     /**< The device's links to other devices had errors. */
    GPUHAL_AILMENT_FABRIC_WAITS = 1u << 9,    /**< The switches behind the links are not set up yet. */
    GPUHAL_AILMENT_FABRIC_FAILED = 1u << 10   /**< The switches could not be set up. */
};

/** Determines the health of a device from @p count values that were read from it: ECC_UNCORRECTED_TOTAL,
 *  THROTTLE_REASONS, MEMORY_REPAIR, LINK_ERRORS_TOTAL, FABRIC, and the reasons why any of them is missing.
 *  gpuhal/node/sampler.h also considers changes between two readings.
 *  @return bits GPUHAL_AILMENT_…; 0 if nothing is known to be wrong
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_ailments(const gpuhal_value *values, uint32_t count);

/** A process that uses a device. Unknown members are 0, and their bits in `flags` are clear. */
typedef struct gpuhal_process {
    uint32_t size;           /**< sizeof(gpuhal_process). */
    uint32_t pid;            /**< Process id; 0 if the driver hides it. */
    uint32_t flags;          /**< GPUHAL_PROCESS_ bits. */
    uint32_t user;           /**< User id; valid with USER_KNOWN. */
    /** Share of the time during which the device worked for the process; valid with BUSY_KNOWN. */
    uint32_t busy_permille;
    uint32_t reserved;
    uint64_t memory_bytes;   /**< Device memory that the process uses; valid with MEMORY_KNOWN. */
    char command[64];        /**< Name of the process, without control characters; "" if unknown. */
    char source[16];         /**< As in gpuhal_value. */
    char container[72];      /**< Container id, 64 hexadecimal digits from the process's cgroups; "" for none. */
} gpuhal_process;

/** Lists the processes that use the device through any of its interfaces, the largest memory users first. Without root
 *  privileges, processes of other users may be missing; in a container, processes outside the container may be missing.
 *  @p out_count, the number of processes, may exceed @p capacity. @p out_processes may be NULL if @p capacity is 0;
 *  otherwise the caller sets the size of the first element. With a @p timeout_ns of 0, each driver has 5 s, or
 *  gpuhal_config.hang_ns if that is shorter. @p flags: 0, or GPUHAL_SAMPLE_QUICK, which omits processes that only a
 *  scan finds (with amdgpu and some other drivers: processes that draw, or use Vulkan or OpenCL), unless a scan was
 *  made a moment ago.
 *  @return GPUHAL_OK, even if there is no process; INVALID_ARGUMENT, FORKED, HOST_MEMORY; NOT_SUPPORTED when no source
 *  lists processes; NOT_READY for a suspended device, or if processes were omitted; otherwise why the sources failed.
 *  Processes that were found are returned even then
 *  Owner: caller. Threads: any. Drivers are called, and files read, on threads of the library. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_device_processes(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns,
                                                 gpuhal_process *out_processes, uint32_t capacity,
                                                 uint32_t *out_count);

#ifdef __cplusplus
}
#endif
#endif
