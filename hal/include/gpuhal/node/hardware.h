/** gpuhal/node/hardware.h: the GPUs and accelerators of the machine, whether an API can use each of them, and the
 *  reason if none can.
 *
 *  gpuhal_view_of() reads the kernel's lists (PCI, DRM, KFD, NVIDIA's files in /proc), and joins them by address with
 *  the devices of the view and with the record of the machine. It runs no plugin, opens no device file, and wakes no
 *  sleeping GPU. If the kernel does not list the hardware of a device, as in a container without /sys, the device's
 *  GPUHAL_RECORD_HARDWARE has the facts that its driver reports. No string has a control character.
 *
 *      gpuhal_view *view = NULL;
 *      gpuhal_hardware_info info = {.size = sizeof info};
 *      gpuhal_view_of(gpu, GPUHAL_VIEW_HARDWARE, &view);
 *      for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_HARDWARE, i, &info) == GPUHAL_OK; i++)
 *          printf("%s: %s\n", info.address, gpuhal_hardware_state_name(info.state));
 *      gpuhal_view_release(view);
 */
#ifndef GPUHAL_HARDWARE_H
#define GPUHAL_HARDWARE_H

#include <gpuhal/types.h>
#include <gpuhal/view.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of the gpuhal_hardware_info records in a view that was made with GPUHAL_VIEW_HARDWARE. The records are in the
 *  order of addresses; hardware that is not on PCI comes last. */
enum { GPUHAL_RECORD_HARDWARE = 16 };

/** Whether hardware can be used, and the first obstacle. */
typedef uint32_t gpuhal_hardware_state;
enum {
    GPUHAL_HARDWARE_READY = 1,            /**< A backend has a visible device for the hardware. */
    /** No kernel driver is bound: the module is not installed, not loaded, or refused. */
    GPUHAL_HARDWARE_NO_KERNEL_DRIVER = 2,
    GPUHAL_HARDWARE_PASSED_THROUGH = 3,   /**< Bound to vfio-pci or pci-stub, for a virtual machine. */
    GPUHAL_HARDWARE_NODE_MISSING = 4,     /**< A kernel driver is bound, but there is no device node. */
    GPUHAL_HARDWARE_NO_PERMISSION = 5,    /**< This user may not open the node. */
    GPUHAL_HARDWARE_NO_LIBRARY = 6,       /**< No API's user library is installed. */
    GPUHAL_HARDWARE_VERSION_MISMATCH = 7, /**< Kernel module and user library have different versions. */
    /** Hidden by a variable or a setting, or because CUDA gives this process a partition of another GPU. */
    GPUHAL_HARDWARE_HIDDEN = 8,
    GPUHAL_HARDWARE_QUARANTINED = 9,      /**< The plugin that would list the hardware crashed or hung. */
    GPUHAL_HARDWARE_DRIVER_ERROR = 10,    /**< The driver returns an error, or does not list the hardware. */
    /** The configuration space reads as ones, or the driver has lost the hardware. */
    GPUHAL_HARDWARE_OFF_BUS = 11,
    GPUHAL_HARDWARE_GONE = 12,            /**< The hardware is in the record of the machine, but not on the bus. */
    /** A model that no API supports: a display adapter of servers or virtual machines, or another kind of
     *  accelerator. */
    GPUHAL_HARDWARE_DISPLAY_ONLY = 13,
    GPUHAL_HARDWARE_NOT_GIVEN = 14,       /**< Not given to this container, pod, job or session; others may use it. */
    GPUHAL_HARDWARE_NO_INSTANCE = 15      /**< MIG is on, but no instance was created, so no program can use the GPU. */
};

/** How serious the state is. */
typedef uint32_t gpuhal_hardware_grade;
enum {
    GPUHAL_HARDWARE_FINE = 0,
    /** An administrator or a user chose the state, such as hidden, passed through or partitioned. */
    GPUHAL_HARDWARE_NOTE = 1,
    GPUHAL_HARDWARE_WARNING = 2, /**< The state may be intended, for example if no vendor software is installed. */
    GPUHAL_HARDWARE_PROBLEM = 3  /**< Broken, lost, or not permitted. */
};

/** One GPU or accelerator. */
typedef struct gpuhal_hardware_info {
    uint32_t size;
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    uint32_t pci_class;    /**< Class such as 0x030200. It and the next four members are 0 if not on PCI or unknown. */
    uint32_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    /** Number as in gpuhal_device_physical(). If no backend lists a device for the hardware, this is the number in the
     *  record of the machine, or 0 if unknown. */
    uint32_t physical;
    uint32_t numa_node;    /**< UINT32_MAX if unknown. */
    uint32_t is_asleep;    /**< 1 if suspended by the kernel's runtime power management. */
    uint32_t device_count; /**< Number of visible devices of this hardware; 0 if the state is not READY. */
    /** For hardware that is GONE or no longer listed: when a backend last listed a device for it, in seconds since
     *  1970, accurate to the day. 0 means now or never. */
    uint64_t last_seen;
    const char *address; /**< PCI address such as "0000:c1:00.0", or "" if not on PCI. */
    const char *place;   /**< Path of the hardware below /sys/devices. */
    const char *vendor;  /**< Name of the vendor, such as "NVIDIA". */
    /** The name from the driver, else from pci.ids, else the vendor with the device id, such as "NVIDIA device
     *  2684". */
    const char *name;
    const char *kernel_driver;         /**< The bound kernel driver, such as "amdgpu", or "" if there is none. */
    const char *kernel_driver_version; /**< Version of the driver's module, or "". */
    const char *drm_card, *drm_render_node; /**< "/dev/dri/card0", "/dev/dri/renderD128". */
    const char *vendor_node;           /**< "/dev/nvidia0", "/dev/kfd", "/dev/dxg". */
    const char *local_cpus;            /**< The nearest CPUs, such as "0-31,64-95". */
    /** One sentence with the cause, or "". READY hardware has a sentence if its vendor's API cannot use it but another
     *  API can. */
    const char *why;
    /** Commands that repair or examine the hardware, one per line, or "". Lines with explanations begin with "#". A
     *  warning precedes its command; an explanation of the output follows its command. */
    const char *fix;
    /** The UUID (GPUHAL_FACT_PARTITION) and the numbers (GPUHAL_FACT_PARTITION_NUMBERS) of a partition, if its
     *  driver has the partition but its API does not list it for this process; `address` is the GPU's address. "" for a
     *  whole GPU, or if unknown. */
    const char *partition, *partition_numbers;
    /** The environment that was NOT_GIVEN the hardware, such as "this container", "this pod", "this PBS job 17" or
     *  "this user session"; else "". */
    const char *not_given_to;
} gpuhal_hardware_info;

/** Returns the JSON name of a state, such as "no_kernel_driver".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_hardware_state_name(gpuhal_hardware_state state);

#ifdef __cplusplus
}
#endif
#endif
