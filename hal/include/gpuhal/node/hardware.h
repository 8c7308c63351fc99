/** gpuhal/node/hardware.h: the GPUs and accelerators of the machine, whether an API can use them or not, and why not.
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

/** In a view that was made with GPUHAL_VIEW_HARDWARE: gpuhal_hardware_info, in the order of addresses; hardware that is
 *  not on PCI comes last. */
enum { GPUHAL_RECORD_HARDWARE = 16 };

/** Whether hardware can be used, and the first obstacle. */
typedef uint32_t gpuhal_hardware_state;
enum {
    GPUHAL_HARDWARE_READY = 1,            /**< A backend has a visible device for it. */
    /** No kernel driver is bound: its module is not installed, not loaded, or refused. */
    GPUHAL_HARDWARE_NO_KERNEL_DRIVER = 2,
    GPUHAL_HARDWARE_PASSED_THROUGH = 3,   /**< Bound to vfio-pci or pci-stub, for a virtual machine. */
    GPUHAL_HARDWARE_NODE_MISSING = 4,     /**< Its kernel driver is bound, but there is no device node. */
    GPUHAL_HARDWARE_NO_PERMISSION = 5,    /**< This user may not open the node. */
    GPUHAL_HARDWARE_NO_LIBRARY = 6,       /**< No API's user library is installed. */
    GPUHAL_HARDWARE_VERSION_MISMATCH = 7, /**< Kernel module and user library have different versions. */
    /** Hidden by a variable or a setting, or because CUDA gives this process a partition of another GPU. */
    GPUHAL_HARDWARE_HIDDEN = 8,
    GPUHAL_HARDWARE_QUARANTINED = 9,      /**< The plugin that would list it crashed or hung. */
    GPUHAL_HARDWARE_DRIVER_ERROR = 10,    /**< Its driver returns an error, or does not list it. */
    GPUHAL_HARDWARE_OFF_BUS = 11,         /**< Its configuration space reads as ones, or the driver has lost it. */
    GPUHAL_HARDWARE_GONE = 12,            /**< It is in the record of the machine, but not on the bus. */
    /** A model that no API supports: a display adapter of servers or virtual machines, or another kind of
     *  accelerator. */
    GPUHAL_HARDWARE_DISPLAY_ONLY = 13,
    GPUHAL_HARDWARE_NOT_GIVEN = 14,       /**< Not given to this container, pod, job or session; others may use it. */
    GPUHAL_HARDWARE_NO_INSTANCE = 15      /**< MIG is on, but no instance was created: no program can use it. */
};

/** How serious the state is. */
typedef uint32_t gpuhal_hardware_grade;
enum {
    GPUHAL_HARDWARE_FINE = 0,
    GPUHAL_HARDWARE_NOTE = 1,    /**< An administrator or a user decided so: hidden, passed through, partitioned. */
    GPUHAL_HARDWARE_WARNING = 2, /**< No decision is known, but it may be intended: no vendor software is installed. */
    GPUHAL_HARDWARE_PROBLEM = 3  /**< Broken, lost, or not permitted. */
};

/** One GPU or accelerator. */
typedef struct gpuhal_hardware_info {
    uint32_t size;
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    uint32_t pci_class;    /**< 0x030200; 0: not on PCI, or unknown, like the four below. */
    uint32_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    /** As in gpuhal_device_physical(); from the record of the machine if no backend lists a device for it; 0:
     *  unknown. */
    uint32_t physical;
    uint32_t numa_node;    /**< UINT32_MAX: unknown. */
    uint32_t is_asleep;    /**< 1: suspended by the kernel's runtime power management. */
    uint32_t device_count; /**< Visible devices of this hardware; 0 when it is not READY. */
    /** When a backend last listed a device for it, in seconds since 1970, accurate to the day, if it is GONE, or on
     *  the bus but no longer listed; 0: now, or never. */
    uint64_t last_seen;
    const char *address; /**< "0000:c1:00.0"; "": not on PCI. */
    const char *place;   /**< Its path below /sys/devices. */
    const char *vendor;  /**< "NVIDIA". */
    /** The driver's name, otherwise that of pci.ids, otherwise its number: "NVIDIA device 2684". */
    const char *name;
    const char *kernel_driver;         /**< The bound kernel driver: "amdgpu"; "": none. */
    const char *kernel_driver_version; /**< Version of its module, if the module has one. */
    const char *drm_card, *drm_render_node; /**< "/dev/dri/card0", "/dev/dri/renderD128". */
    const char *vendor_node;           /**< "/dev/nvidia0", "/dev/kfd", "/dev/dxg". */
    const char *local_cpus;            /**< CPUs nearest to it: "0-31,64-95". */
    /** One sentence with the cause; "": none. READY hardware has a sentence if its vendor's API cannot use it but
     *  another API can. */
    const char *why;
    /** Commands that repair or examine it, one per line; "": none. Lines with explanations begin with "#": a warning
     *  precedes its command, and the meaning of the output follows the command that prints it. */
    const char *fix;
    /** The UUID (GPUHAL_FACT_PARTITION) and the numbers (GPUHAL_FACT_PARTITION_NUMBERS) of a partition, if its
     *  driver has the partition but its API does not list it for this process; `address` is the GPU's. "": a whole
     *  GPU, or unknown. */
    const char *partition, *partition_numbers;
    /** The environment that it is NOT_GIVEN to: "this container", "this pod", "this PBS job 17", "this user
     *  session"; else "". */
    const char *not_given_to;
} gpuhal_hardware_info;

/** Returns the name of a state, as in JSON: "no_kernel_driver".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_hardware_state_name(gpuhal_hardware_state state);

#ifdef __cplusplus
}
#endif
#endif
