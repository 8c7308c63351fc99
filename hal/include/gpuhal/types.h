/** gpuhal/types.h: constants and plain structures that applications and plugins share. No functions.
 *
 *  All of these types cross the plugin boundary, so the following rules apply: enumerators never change their number,
 *  members are only added at the end, and a structure that may grow begins with its size. Sizes and offsets are bytes
 *  in uint64_t.
 */
#ifndef GPUHAL_TYPES_H
#define GPUHAL_TYPES_H

#include <stddef.h>
#include <stdint.h>

/** Calling convention of all functions of the plugin ABI. It is the compiler's only convention, except on 32-bit
 *  Windows. */
#if defined(_WIN32) && !defined(_WIN64)
#define GPUHAL_CALL __cdecl
#else
#define GPUHAL_CALL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Marks a function that the library exports. On Windows a program that links the static library must define
 *  GPUHAL_STATIC. */
#if !defined(GPUHAL_API)
#if defined(_WIN32) && defined(GPUHAL_BUILDING) /* set while the library itself is compiled */
#define GPUHAL_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(GPUHAL_STATIC)
#define GPUHAL_API __declspec(dllimport)
#elif !defined(_WIN32) && defined(__GNUC__)
#define GPUHAL_API __attribute__((visibility("default")))
#else
#define GPUHAL_API
#endif
#endif

/** Evaluates to a structure that begins with its size, with this size set and all other members zero. Unlike
 *  `{.size = sizeof x}`, this is an expression, in C and in C++11 and later:
 *  `auto desc = GPUHAL_INIT(gpuhal_buffer_desc);`. */
#ifdef __cplusplus
#define GPUHAL_INIT(type)                                                                                              \
    ([] {                                                                                                              \
        type gpuhal_init = {};                                                                                         \
        gpuhal_init.size = static_cast<uint32_t>(sizeof(type));                                                        \
        return gpuhal_init;                                                                                            \
    }())
#else
#define GPUHAL_INIT(type) ((type){.size = (uint32_t)sizeof(type)})
#endif

/** Result of every call. Zero is success, positive results are not errors, and negative results are errors. Each
 *  comment states the caller's remedy. gpuhal_last_error() returns the details of the last error. */
typedef int32_t gpuhal_status;
enum {
    GPUHAL_OK = 0,
    GPUHAL_NOT_READY = 1,                /**< Poll again: the work is not done yet. */
    GPUHAL_ERROR_INVALID_ARGUMENT = -1,  /**< Give up: the calling program has a bug. */
    GPUHAL_ERROR_OUT_OF_RANGE = -2,      /**< Give up: offset and size exceed the buffer. Nothing was done. */
    GPUHAL_ERROR_NOT_SUPPORTED = -3,     /**< Do without it: this device does not offer it. Nothing was done. */
    /** Free device memory, then retry; if a limit of the pool, device or process refused the request, the message names
     *  the limit. The detail has the requested, free and total bytes. */
    GPUHAL_ERROR_OUT_OF_MEMORY = -4,
    GPUHAL_ERROR_TOO_LARGE = -5,         /**< An allocation, a group or values exceed the device's limit. */
    GPUHAL_ERROR_TIMEOUT = -6,           /**< Wait again or give up: the time ran out, the work may still finish. */
    GPUHAL_ERROR_BUSY = -7,              /**< Retry later: the object is in use (a mapping, exclusive mode, a lease). */
    GPUHAL_ERROR_DEVICE_LOST = -8,       /**< Use another device: this one failed, hung, or was unplugged. */
    /** Install the vendor's driver: its library was not found or does not load, or is a loader that finds no driver. */
    GPUHAL_ERROR_NO_DRIVER = -9,
    GPUHAL_ERROR_NO_DEVICE = -10,        /**< The driver is installed, but offers no such device. */
    GPUHAL_ERROR_NO_PERMISSION = -11,    /**< Get access to the device node (usually: join group render or video). */
    GPUHAL_ERROR_INCOMPATIBLE = -12,     /**< Update one side: versions do not match; the detail names both. */
    /** Fork before opening, or exec: the object belongs to the parent, or the parent was loading a library during
     *  the fork. */
    GPUHAL_ERROR_FORKED = -13,
    GPUHAL_ERROR_NOT_FOUND = -14,        /**< Correct the name: nothing matches. */
    /** Find the first failure: this work was queued after it. Or a callback of the caller requested the
     *  cancellation. */
    GPUHAL_ERROR_CANCELLED = -15,
    GPUHAL_ERROR_HOST_MEMORY = -16,      /**< Free host memory, then retry: malloc failed. */
    GPUHAL_ERROR_DRIVER = -17,           /**< The vendor's call failed; its code and text are in the detail. */
    /** Check the file and its disk: the disk is full or failed, or the file changed during the transfer. Plugins
     *  never return this. */
    GPUHAL_ERROR_FILE = -18,
    /** Change the request: nothing satisfies all conditions; the detail names the obstacle. Plugins never return
     *  this. */
    GPUHAL_ERROR_INFEASIBLE = -19
};

/** Why a fact has no value. An unknown value is never shown as 0. */
typedef uint32_t gpuhal_missing;
enum {
    GPUHAL_MISSING_NOT_SUPPORTED = 1, /**< The device or its API does not provide this value. */
    GPUHAL_MISSING_NO_PERMISSION = 2, /**< This user may not read the value. */
    GPUHAL_MISSING_ASLEEP = 3,        /**< Reading the value would wake the device. */
    GPUHAL_MISSING_TIMED_OUT = 4,     /**< The source exceeded its deadline. */
    GPUHAL_MISSING_FAILED = 5,        /**< The source returned an error. */
    GPUHAL_MISSING_NOT_READ = 6,      /**< The source was not read yet. */
    GPUHAL_MISSING_RESET = 7,         /**< The device responds only after a reset. */
    GPUHAL_MISSING_LOST = 8           /**< The driver reports that the device is lost, possibly for this value only. */
};

/** Numbers that are reserved for the vendor of a backend and have no meaning to this library. Two backends may use the
 *  same number with different meanings, so interpret such a number together with gpuhal_device_backend(). The ranges
 *  are: keys of facts, values and links, and link kinds, from GPUHAL_VENDOR_FIRST up; memory kinds and handle kinds
 *  from GPUHAL_VENDOR_KIND_FIRST to 31; native object types from GPUHAL_VENDOR_NATIVE_FIRST to 63. */
#define GPUHAL_VENDOR_FIRST        0x80000000u
#define GPUHAL_VENDOR_KIND_FIRST   24u
#define GPUHAL_VENDOR_NATIVE_FIRST 48u

/** Key of a fact, a sampled value or a fact about a link. Each has a number (u64) or a string (text), never both.
 *  The key's JSON name is the enumerator without the prefix, in lower case (`memory_total_bytes`); gpuhal_key_name()
 *  returns it. */
typedef uint32_t gpuhal_key;
enum {
    /* Facts of a device: constant until the process exits, unless gpuhal/rescan.h reports a change. */
    GPUHAL_FACT_NAME = 1,             /**< text: the vendor's name for the model. Mandatory. */
    GPUHAL_FACT_VENDOR = 2,           /**< text: the manufacturer. */
    GPUHAL_FACT_VENDOR_ID = 3,        /**< number: PCI vendor id, else Khronos vendor id. */
    GPUHAL_FACT_TYPE = 4,             /**< number: gpuhal_device_type. Mandatory. */
    GPUHAL_FACT_DRIVER_VERSION = 5,   /**< text. */
    GPUHAL_FACT_API_VERSION = 6,      /**< text: version of the vendor's API on the device. */
    GPUHAL_FACT_PCI_ADDRESS = 7,      /**< text: `0000:c1:00.0`, lower case: domain, bus, device, function. */
    GPUHAL_FACT_UUID = 8,             /**< text: 8-4-4-4-12 lower-case hex, no prefix. */
    GPUHAL_FACT_LUID = 9,             /**< text: 16 lower-case hex digits. */
    GPUHAL_FACT_DRM_RENDER_NODE = 10, /**< text: `226:128`, major and minor of the render node. */
    GPUHAL_FACT_PARTITION = 11,       /**< text: name of the partition (MIG, AMD) of a physical device. */
    GPUHAL_FACT_NUMA_NODE = 12,       /**< number. */
    /** number: the vendor's own ordinal in this process (CUDA ordinal, DLPack device_id). */
    GPUHAL_FACT_NATIVE_INDEX = 13,
    GPUHAL_FACT_MEMORY_TOTAL_BYTES = 14,      /**< number: total device memory. */
    GPUHAL_FACT_ALLOCATION_MAX_BYTES = 15,    /**< number: largest single allocation; larger requests are TOO_LARGE. */
    GPUHAL_FACT_ALLOCATION_MAX_COUNT = 16,    /**< number: maximum number of allocations that can exist at once. */
    GPUHAL_FACT_BINDING_MAX_BYTES = 17,       /**< number: largest range of one kernel argument. */
    GPUHAL_FACT_BINDING_ALIGNMENT_BYTES = 18, /**< number: alignment of a kernel argument's start inside a buffer. */
    /** number: power of two up to 4096 for offsets and sizes of copy, write and read; missing means 1. */
    GPUHAL_FACT_COPY_ALIGNMENT_BYTES = 19,
    /** number: power of two up to 4096 for offset and size of fill; missing means 1. */
    GPUHAL_FACT_FILL_ALIGNMENT_BYTES = 20,
    GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES = 21, /**< number: power of two for imported host pointers. */
    /** number: access to pageable host memory: 0 none, 1 staged by the driver, 2 direct. */
    GPUHAL_FACT_PAGEABLE_ACCESS = 22,
    GPUHAL_FACT_UNIFIED_MEMORY = 23,       /**< number: 1 when device and host share one memory, else 0. */
    GPUHAL_FACT_COMPUTE_UNITS = 24,        /**< number: the API's own count (SMs, CUs, cores). */
    GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ = 25, /**< number. */
    /** number: 1 for a software device, a program on the host's CPU, else 0. Mandatory. */
    GPUHAL_FACT_SOFTWARE = 26,
    GPUHAL_FACT_PHYSICAL_QUEUES = 27, /**< number: number of queues that progress independently, if 2 or more. */
    /** number: bit 1 << gpuhal_memory_kind for each kind that allocate accepts. Mandatory. */
    GPUHAL_FACT_MEMORY_KINDS = 28,
    /** number: bit 1 << gpuhal_handle_kind; missing means none. HOST_POINTER means that even memory of kind DEVICE has
     *  a host address, in ordinary pages. */
    GPUHAL_FACT_EXPORT_KINDS = 29,
    GPUHAL_FACT_IMPORT_KINDS = 30, /**< number: bit 1 << gpuhal_handle_kind; missing means none. */
    /** number: bit 1 << gpuhal_native_type of the objects that open and wrap accept; missing means none. */
    GPUHAL_FACT_ADOPT_KINDS = 31,
    /** text: 8-4-4-4-12 lower-case hex; opaque file descriptors can be passed between devices with the same value
     *  (VkPhysicalDeviceIDProperties). */
    GPUHAL_FACT_DRIVER_UUID = 32,
    /** text: the compilers' name of the instruction set: `sm_86`, `gfx1100`, `x86_64`. */
    GPUHAL_FACT_TARGET_ARCHITECTURE = 33,
    /** number: smallest number of threads that run in lockstep (warp, wavefront, subgroup). */
    GPUHAL_FACT_SUBGROUP_SIZE_MIN = 34,
    /** number: largest number of such threads; equal to SUBGROUP_SIZE_MIN if there is only one size. */
    GPUHAL_FACT_SUBGROUP_SIZE_MAX = 35,
    GPUHAL_FACT_GROUP_SIZE_MAX = 36,   /**< number: maximum number of threads in a group (block, workgroup). */
    GPUHAL_FACT_GROUP_SIZE_MAX_X = 37, /**< number: maximum number of threads along the first dimension. */
    GPUHAL_FACT_GROUP_SIZE_MAX_Y = 38, /**< number: along the second dimension. */
    GPUHAL_FACT_GROUP_SIZE_MAX_Z = 39, /**< number: along the third dimension. */
    /** number: memory that the threads of a group share (shared, local, LDS): the amount that a kernel gets without
     *  requesting more from the driver. */
    GPUHAL_FACT_GROUP_MEMORY_BYTES = 40,
    GPUHAL_FACT_DATA_TYPES = 41, /**< number: bits GPUHAL_DATA_… of the types that kernels can compute with. */
    /** number: nominal bandwidth of the device's memory, not measured. */
    GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND = 42,
    /** number: bit 1 << gpuhal_memory_kind of memory with a permanent host address. */
    GPUHAL_FACT_HOST_VISIBLE_KINDS = 43,
    /** number: the coherent kinds among HOST_VISIBLE_KINDS: host and device see each other's writes without a
     *  mapping. */
    GPUHAL_FACT_HOST_COHERENT_KINDS = 44,
    /** text: code formats that the device accepts (code.h), best first, separated by blanks; missing means none. */
    GPUHAL_FACT_PROGRAM_FORMATS = 45,
    /** text: why the vendor's API does not list the device for this process, as a sentence without its full stop:
     *  `MIG is on, and it has no instance`. An entry with this fact is hardware, or a partition, that the driver
     *  knows. The core lists it as hardware at its PCI_ADDRESS, and creates no device for it. */
    GPUHAL_FACT_UNLISTED = 46,
    /** text: numbers of a MIG device's GPU instance and compute instance, as in the kernel's files: `3/0`. */
    GPUHAL_FACT_PARTITION_NUMBERS = 47,
    /** number: gpuhal_compute_mode; missing if the vendor has none. */
    GPUHAL_FACT_COMPUTE_MODE = 48,
    /** number: bit 1 << gpuhal_memory_kind of the memory that kernels can use as an argument. Mandatory with
     *  programs. Imported memory is not included: a launch that cannot use it is refused. */
    GPUHAL_FACT_KERNEL_KINDS = 49,
    /** number: GPUHAL_KERNEL_ bits (code.h) that kernels of the device can have; a kernel's own are in its
     *  gpuhal_kernel_info. Missing means none. */
    GPUHAL_FACT_LAUNCH_FORMS = 50,
    /** number: bit 1 << gpuhal_memory_kind of the memory that can be allocated for export with the handles of
     *  EXPORT_KINDS, other than HOST_POINTER. Missing means memory of kind DEVICE only. */
    GPUHAL_FACT_EXPORTABLE_KINDS = 51,

    /* Values: they change over time; gpuhal_device_sample() reads them (gpuhal/telemetry.h). */
    /** number: currently free memory of the physical device, whose total is the preferred interface's
     *  MEMORY_TOTAL_BYTES; at most the bytes that a limit of the vendor's driver leaves. Another interface may have
     *  less. */
    GPUHAL_VALUE_MEMORY_FREE_BYTES = 0x1000,
    GPUHAL_VALUE_MEMORY_USED_BYTES = 0x1001, /**< number: the physical device's memory in use now, by all processes. */
    GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS = 0x1002,        /**< number: temperature of the chip. */
    GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS = 0x1003, /**< number. */
    GPUHAL_VALUE_POWER_MICROWATTS = 0x1004,       /**< number: drawn by the whole board, now or over the last second. */
    GPUHAL_VALUE_POWER_LIMIT_MICROWATTS = 0x1005, /**< number: the limit in force. */
    GPUHAL_VALUE_ENERGY_MICROJOULES = 0x1006,     /**< number: consumed since the driver was loaded. */
    GPUHAL_VALUE_CLOCK_CORE_HERTZ = 0x1007,       /**< number. */
    GPUHAL_VALUE_CLOCK_MEMORY_HERTZ = 0x1008,     /**< number. */
    GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE = 0x1009, /**< number: share of the time during which work was executed. */
    /** number: share of the time during which memory was read or written. */
    GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE = 0x100a,
    GPUHAL_VALUE_FAN_PERMILLE = 0x100b, /**< number: share of the fan's full speed; may be above 1000. */
    GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND = 0x100c, /**< number: towards the device. */
    GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND = 0x100d,    /**< number: from the device. */
    GPUHAL_VALUE_THROTTLE_REASONS = 0x100e,              /**< number: bits GPUHAL_THROTTLE_…, or 0. */
    /** number: corrected memory errors in the device's lifetime. */
    GPUHAL_VALUE_ECC_CORRECTED_TOTAL = 0x100f,
    GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL = 0x1010, /**< number: uncorrected memory errors in the device's lifetime. */
    /* The library itself counts this value, so it is never missing. */
    /** number: currently allocated by buffers of this gpuhal object on the device, through all its interfaces. */
    GPUHAL_VALUE_MEMORY_HELD_BYTES = 0x1011,
    /** number: reserved by the driver itself; not included in MEMORY_USED_BYTES. */
    GPUHAL_VALUE_MEMORY_RESERVED_BYTES = 0x1012,
    /** number: currently used by this process, through all APIs. */
    GPUHAL_VALUE_MEMORY_PROCESS_BYTES = 0x1013,
    GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS = 0x1014, /**< number: temperature of the chip's hottest spot. */
    /** number: utilization of the video encoders, or of the common engine if one engine encodes and decodes. */
    GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE = 0x1015,
    GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE = 0x1016, /**< number: of the video decoders, or of the common engine. */
    GPUHAL_VALUE_PCIE_GENERATION = 0x1017,     /**< number: current generation of the link; may be lower when idle. */
    GPUHAL_VALUE_PCIE_WIDTH = 0x1018,          /**< number: current number of lanes. */
    GPUHAL_VALUE_PCIE_GENERATION_MAX = 0x1019, /**< number: the highest generation that the device supports. */
    GPUHAL_VALUE_PCIE_WIDTH_MAX = 0x101a,      /**< number: the most lanes that the device supports. */
    GPUHAL_VALUE_PCIE_REPLAYS_TOTAL = 0x101b,  /**< number: packets that the link retransmitted. */
    GPUHAL_VALUE_PERFORMANCE_STATE = 0x101c,   /**< number: the vendor's numbering; 0 is the fastest. */
    GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE = 0x101d, /**< number. */
    /* The library counts these two. */
    /** number: time during which a queue of this gpuhal object on this interface of the device had work, as far as the
     *  library has noticed the end of the work; counted from the first reading of this value. */
    GPUHAL_VALUE_QUEUES_BUSY_NS = 0x101e,
    /** number: bytes that this gpuhal object moved to, from and within the device, through all its interfaces;
     *  gpuhal_pair_usage() returns the bytes to another device. */
    GPUHAL_VALUE_TRANSFERRED_BYTES = 0x101f,
    /** number: the vendor's code of the latest error that its driver reported for the device, except errors that
     *  applications cause (docs/telemetry.md); missing ("not read") before the first error. */
    GPUHAL_VALUE_VENDOR_EVENT_CODE = 0x1020,
    GPUHAL_VALUE_VENDOR_EVENTS_TOTAL = 0x1021, /**< number: number of such errors since the first reading. */
    /* The library calculates this value. */
    /** number: bytes that new buffers of this interface can have now: the minimum of MEMORY_FREE_BYTES and of the
     *  bytes that the gpuhal object's buffers leave of MEMORY_TOTAL_BYTES, of its limit and leases, and of the
     *  process's cgroup (source "cgroup"). */
    GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES = 0x1022,
    GPUHAL_VALUE_MEMORY_REPAIR = 0x1023, /**< number: gpuhal_memory_repair. */
    /** number: maximum device memory that all processes of this process's control group together may use, if the kernel
     *  (dmem.max, source "cgroup") or the vendor's driver sets a limit. */
    GPUHAL_VALUE_MEMORY_LIMIT_BYTES = 0x1024,
    /** number: 1 if the driver keeps an unused device ready (NVIDIA's persistence mode), else 0. */
    GPUHAL_VALUE_PERSISTENCE = 0x1025,
    GPUHAL_VALUE_DISPLAY_ACTIVE = 0x1026, /**< number: 1 while a display shows the device's output, else 0. */
    GPUHAL_VALUE_LINKS_UP = 0x1027, /**< number: the vendor's own links (NVLink) that are up. */
    /** number: errors of the vendor's own links that caused a retransmission or a recovery of the link, since the
     *  driver was loaded. */
    GPUHAL_VALUE_LINK_ERRORS_TOTAL = 0x1028,
    GPUHAL_VALUE_FABRIC = 0x1029, /**< number: gpuhal_fabric. */

    /* Facts of a link between two devices. */
    GPUHAL_LINK_KIND = 0x2000, /**< number: gpuhal_link_kind. */
    /** number: nominal bandwidth in one direction, not measured. */
    GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND = 0x2001,
    /** number: 1 when the driver reports that one device can access the other's memory, else 0. */
    GPUHAL_LINK_PEER_ADVERTISED = 0x2002,
    GPUHAL_LINK_GENERATION = 0x2003, /**< number: generation of NVLink, xGMI or PCI Express. */
    GPUHAL_LINK_COUNT = 0x2004,      /**< number: parallel links, or PCI Express lanes. */
    /* The library measures these in gpuhal_link_verify(), and caches them for these devices and drivers. */
    GPUHAL_LINK_VERIFIED = 0x2005, /**< number: 1 when the bytes arrived unchanged, 0 when they did not. */
    GPUHAL_LINK_PATH = 0x2006,     /**< number: gpuhal_path of the measured copies. */
    /** number: bandwidth of large copies in one direction, between memory of the two devices. */
    GPUHAL_LINK_MEASURED_BYTES_PER_SECOND = 0x2007,
    GPUHAL_LINK_MEASURED_LATENCY_NS = 0x2008, /**< number: latency of a small copy, from the call to the arrival. */
    /** number: time of the measurement, in seconds since 1970; before this program's start if it is cached. */
    GPUHAL_LINK_TRIED_SECONDS = 0x2009,
    GPUHAL_LINK_NAME = 0x200a /**< text: the vendor's name of the link, such as "Infinity Fabric". */
};

/** How two devices are connected. SAME_MEMORY is the closest connection, followed by the other kinds in numeric order.
 *  A vendor's own fabric has a number from GPUHAL_VENDOR_FIRST up, and a GPUHAL_LINK_NAME. */
typedef uint32_t gpuhal_link_kind;
enum {
    GPUHAL_LINK_NVLINK = 1,           /**< Directly. */
    GPUHAL_LINK_NVLINK_SWITCH = 2,    /**< Through NVSwitch. */
    GPUHAL_LINK_XGMI = 3,
    GPUHAL_LINK_SAME_BOARD = 4,       /**< PCI Express inside one card. */
    GPUHAL_LINK_PCIE_SWITCH = 5,      /**< Through switches, not through the CPU. */
    GPUHAL_LINK_PCIE_HOST_BRIDGE = 6, /**< Through one host bridge of the CPU. */
    GPUHAL_LINK_NUMA_NODE = 7,        /**< Through several host bridges of one NUMA node. */
    GPUHAL_LINK_SYSTEM = 8,           /**< From one NUMA node to another. */
    GPUHAL_LINK_SAME_MEMORY = 9, /**< Interfaces of one physical device, or devices that both use the host's memory. */
    /** Through host memory, because one device uses host memory, or because no closer link is known. */
    GPUHAL_LINK_HOST = 10
};

/** Data types of a device's kernels, besides 32-bit integers and floats, which all devices have. Bits of
 *  GPUHAL_FACT_DATA_TYPES; a bit that is not set means not supported, or not reported by the driver. */
enum {
    GPUHAL_DATA_FP16 = 1u << 0,     /**< IEEE half precision arithmetic, not storage alone. */
    GPUHAL_DATA_BF16 = 1u << 1,     /**< bfloat16 arithmetic, at least in matrix or dot instructions. */
    GPUHAL_DATA_FP64 = 1u << 2,
    GPUHAL_DATA_FP8 = 1u << 3,      /**< 8-bit floats (E4M3, E5M2) in matrix instructions. */
    GPUHAL_DATA_INT8 = 1u << 4,
    GPUHAL_DATA_INT16 = 1u << 5,
    GPUHAL_DATA_INT64 = 1u << 6,
    GPUHAL_DATA_INT8_DOT = 1u << 7, /**< Dot products of packed 8-bit integers in one instruction (dp4a). */
    GPUHAL_DATA_INT4 = 1u << 8      /**< 4-bit integers in matrix or dot instructions. */
};
#define GPUHAL_DATA_COUNT 9u

/** Why the clocks of a device are limited. Bits of GPUHAL_VALUE_THROTTLE_REASONS. */
enum {
    GPUHAL_THROTTLE_IDLE = 1u << 0,        /**< The device is idle. */
    GPUHAL_THROTTLE_SETTING = 1u << 1,     /**< A setting lowers the clocks. */
    GPUHAL_THROTTLE_POWER_CAP = 1u << 2,   /**< The power limit lowers the clocks. */
    GPUHAL_THROTTLE_THERMAL = 1u << 3,     /**< The device is too hot. */
    GPUHAL_THROTTLE_POWER_BRAKE = 1u << 4, /**< The power supply requests a lower draw. */
    GPUHAL_THROTTLE_HARDWARE = 1u << 5,    /**< The hardware slowed itself down, for heat or power. */
    GPUHAL_THROTTLE_SYNC = 1u << 6,        /**< The clocks are synchronised with another device. */
    GPUHAL_THROTTLE_DISPLAY = 1u << 7,     /**< The display's settings limit the clocks. */
    GPUHAL_THROTTLE_OTHER = 1u << 8        /**< A reason that this version of the library does not know. */
};

/** Known facts about a process that uses a device. Bits. */
enum {
    GPUHAL_PROCESS_MEMORY_KNOWN = 1u << 0,
    GPUHAL_PROCESS_BUSY_KNOWN = 1u << 1,
    GPUHAL_PROCESS_COMPUTE = 1u << 2,  /**< The process runs compute work. */
    GPUHAL_PROCESS_GRAPHICS = 1u << 3, /**< The process runs graphics work. */
    /** The pid belongs to a PID namespace that this process does not see; in this namespace, another process may have
     *  the same pid. */
    GPUHAL_PROCESS_FOREIGN_NAMESPACE = 1u << 4,
    GPUHAL_PROCESS_USER_KNOWN = 1u << 5,
    /** The process is a service that lets several processes use one device (NVIDIA's MPS), or uses the device
     *  through such a service. */
    GPUHAL_PROCESS_SHARES = 1u << 6
};

/** The type of a device. */
typedef uint32_t gpuhal_device_type;
enum {
    GPUHAL_DEVICE_GPU = 1,            /**< Has its own memory. */
    GPUHAL_DEVICE_INTEGRATED_GPU = 2, /**< Shares the host's memory. */
    GPUHAL_DEVICE_CPU = 3,
    GPUHAL_DEVICE_ACCELERATOR = 4
};

/** The repair of defective locations in the device's memory: the device replaces them with spare ones, or stops
 *  using them (NVIDIA's row remapping and page retirement). */
typedef uint32_t gpuhal_memory_repair;
enum {
    GPUHAL_MEMORY_REPAIR_NONE = 0,    /**< No repair is pending. */
    GPUHAL_MEMORY_REPAIR_PENDING = 1, /**< The next reset of the device repairs the memory. */
    GPUHAL_MEMORY_REPAIR_FAILED = 2   /**< No spare location is left. */
};

/** How far the vendor's service has set up the switches between a device and others (NVIDIA's fabric manager). */
typedef uint32_t gpuhal_fabric;
enum {
    GPUHAL_FABRIC_READY = 1,
    GPUHAL_FABRIC_WAITS = 2, /**< The setup has not begun, or has not ended. */
    GPUHAL_FABRIC_FAILED = 3
};

/** Which processes may use the device through the vendor's API, as set by the administrator. */
typedef uint32_t gpuhal_compute_mode;
enum {
    GPUHAL_COMPUTE_SHARED = 1,    /**< Any number of processes. */
    GPUHAL_COMPUTE_EXCLUSIVE = 2, /**< One process at a time. */
    GPUHAL_COMPUTE_PROHIBITED = 3 /**< No process. */
};

/** The purpose of memory. A vendor's own kind (GPUHAL_VENDOR_KIND_FIRST) is allocated like DEVICE if the device
 *  reports it, and may have a host address. */
typedef uint32_t gpuhal_memory_kind;
enum {
    /** Fastest for the device; the host may be unable to access it. Every device has this kind. */
    GPUHAL_MEMORY_DEVICE = 0,
    /** Page-locked host memory that the host writes and the device reads. It always has a host address. */
    GPUHAL_MEMORY_UPLOAD = 1,
    /** Page-locked, cached host memory that the device writes and the host reads. It always has a host address. */
    GPUHAL_MEMORY_READBACK = 2,
    GPUHAL_MEMORY_DEVICE_MAPPED = 3, /**< Device memory that has a host address (resizable BAR, unified memory). */
    /** Memory with the same address on host and device, which is always coherent. The driver may move its pages to the
     *  side that accesses them (CUDA and HIP managed memory, Level Zero shared memory). The host may access it at any
     *  time, also while the device works, even beside bytes that the device accesses. Of the same bytes, the host sees
     *  the device's writes once the work has ended, and later work sees the host's writes. A device that does not
     *  allow this has no such memory. It cannot be shared with other devices, exported or imported, since other drivers
     *  would pin its pages. */
    GPUHAL_MEMORY_MIGRATING = 4
};

/** Flags of imported host memory. Bits. */
enum {
    /** The memory is only read; it may be mapped without write permission (a file of weights). */
    GPUHAL_IMPORT_READ_ONLY = 1u
};

/** How the host may access a mapping. Bits. */
enum {
    GPUHAL_ACCESS_READ = 1u,
    GPUHAL_ACCESS_WRITE = 2u,
    GPUHAL_ACCESS_DISCARD = 4u /**< With WRITE: the old contents are not needed, and are not read back first. */
};

/** How memory can be passed from one device, API or process to another. */
typedef uint32_t gpuhal_handle_kind;
enum {
    GPUHAL_HANDLE_HOST_POINTER = 1,
    GPUHAL_HANDLE_OPAQUE_FD = 2,
    GPUHAL_HANDLE_DMABUF_FD = 3,
    GPUHAL_HANDLE_OPAQUE_WIN32 = 4, /**< An NT handle on Windows. */
    GPUHAL_HANDLE_IPC = 5
};

/** A file descriptor, or a HANDLE on Windows. gpuhal_os_handle_close() closes handles that the library returns. */
typedef intptr_t gpuhal_os_handle;

/** Memory that can be shared, in one of the forms of gpuhal_handle_kind. */
typedef struct gpuhal_handle {
    uint32_t size;           /**< sizeof(gpuhal_handle). */
    gpuhal_handle_kind kind; /**< 0 for no handle. */
    union {
        void *pointer;             /**< HOST_POINTER. */
        gpuhal_os_handle os;       /**< OPAQUE_FD, DMABUF_FD, OPAQUE_WIN32. */
        unsigned char ipc[64];     /**< IPC: the vendor's opaque bytes. */
    } as;
} gpuhal_handle;

/** A vendor's object: its type, and the values that identify it. native.h states the values of each type. */
typedef struct gpuhal_native {
    uint32_t size;      /**< sizeof(gpuhal_native). */
    uint32_t type;      /**< gpuhal_native_type, see native.h. */
    uint64_t values[4];
    const void *typed;  /**< A structure of native.h if four values do not suffice, else NULL. */
} gpuhal_native;

#ifdef __cplusplus
}
#endif
#endif
