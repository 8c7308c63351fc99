/** gpuhal/node/hardware.h: the GPUs and accelerators of the machine, whether an API can use them or not, and why not.
 *
 *  gpuhal_view_of() reads the kernel's lists (PCI, DRM, KFD, NVIDIA's files in /proc), and joins them by address with
 *  the devices of the view and with the record of the machine. It runs no plugin, opens no device file, and wakes no
 *  sleeping GPU. If the kernel does not list the hardware of a device, as in a container without /sys, the device's
 *  GPUHAL_RECORD_HARDWARE has the facts that its driver states. No text has a control character.
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

/** Whether hardware can be used, and the first thing that prevents it. */
typedef uint32_t gpuhal_hardware_state;
enum {
    GPUHAL_HARDWARE_READY = 1,            /**< A device of a backend stands for it. */
    GPUHAL_HARDWARE_NO_KERNEL_DRIVER = 2, /**< None is bound: its module is not installed, not loaded, or refused. */
    GPUHAL_HARDWARE_PASSED_THROUGH = 3,   /**< Bound to vfio-pci or pci-stub, for a virtual machine. */
    GPUHAL_HARDWARE_NODE_MISSING = 4,     /**< Its kernel driver is bound, and there is no device node. */
    GPUHAL_HARDWARE_NO_PERMISSION = 5,    /**< This user may not open the node. */
    GPUHAL_HARDWARE_NO_LIBRARY = 6,       /**< The user library of no API is installed. */
    GPUHAL_HARDWARE_VERSION_MISMATCH = 7, /**< Kernel module and user library are of two versions. */
    GPUHAL_HARDWARE_HIDDEN = 8,           /**< By a variable or a setting, or since CUDA gives this process a part of
                                               another GPU. */
    GPUHAL_HARDWARE_QUARANTINED = 9,      /**< The plugin that would list it crashed or hung. */
    GPUHAL_HARDWARE_DRIVER_ERROR = 10,    /**< Its driver returns an error, or does not list it. */
    GPUHAL_HARDWARE_OFF_BUS = 11,         /**< Its configuration space reads as ones, or the driver has lost it. */
    GPUHAL_HARDWARE_GONE = 12,            /**< The record of the machine has it, and the bus has not. */
    GPUHAL_HARDWARE_DISPLAY_ONLY = 13,    /**< A model that no API drives: a display of servers or virtual machines, or
                                               an accelerator of another kind. */
    GPUHAL_HARDWARE_NOT_GIVEN = 14,       /**< To this container, pod, job or session; others may use it. */
    GPUHAL_HARDWARE_NO_INSTANCE = 15      /**< MIG is on, and no part of it was made: no program can use it. */
};

/** How serious the state is. */
typedef uint32_t gpuhal_hardware_grade;
enum {
    GPUHAL_HARDWARE_FINE = 0,
    GPUHAL_HARDWARE_NOTE = 1,    /**< An administrator or a user decided so: hidden, passed through, divided. */
    GPUHAL_HARDWARE_WARNING = 2, /**< No decision is known, and it may be right: no vendor software is installed. */
    GPUHAL_HARDWARE_PROBLEM = 3  /**< Broken, lost, or not permitted. */
};

/** One GPU or accelerator. */
typedef struct gpuhal_hardware_info {
    uint32_t size;
    gpuhal_hardware_state state;
    gpuhal_hardware_grade grade;
    uint32_t pci_class;    /**< 0x030200; 0: not on PCI, or unknown, as the four below. */
    uint32_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
    /** As in gpuhal_device_physical(); from the record of the machine if no device stands for it; 0: unknown. */
    uint32_t physical;
    uint32_t numa_node;    /**< UINT32_MAX: unknown. */
    uint32_t is_asleep;    /**< 1: suspended by the kernel's runtime power management. */
    uint32_t device_count; /**< Visible devices that stand for it; 0 when it is not READY. */
    /** When a device last stood for it, in seconds since 1970, exact to the day, if it is GONE, or on the bus and not
     *  listed any more; 0: now, or never. */
    uint64_t last_seen;
    const char *address; /**< "0000:c1:00.0"; "": not on PCI. */
    const char *place;   /**< Its path below /sys/devices. */
    const char *vendor;  /**< "NVIDIA". */
    /** As the driver names it, else by pci.ids, else by its number: "NVIDIA device 2684". */
    const char *name;
    const char *kernel_driver;         /**< The one that is bound: "amdgpu"; "": none. */
    const char *kernel_driver_version; /**< Of its module, if the module states one. */
    const char *drm_card, *drm_render_node; /**< "/dev/dri/card0", "/dev/dri/renderD128". */
    const char *vendor_node;           /**< "/dev/nvidia0", "/dev/kfd", "/dev/dxg". */
    const char *local_cpus;            /**< Processors nearest to it: "0-31,64-95". */
    /** One sentence with the cause; "": none. READY hardware has a sentence if its vendor's API cannot use it and
     *  another API can. */
    const char *why;
    /** Commands that mend or examine it, a line each; "": none. Lines of words begin with "#": a warning stands before
     *  its command, the meaning of the answers after a question. */
    const char *fix;
    /** The UUID (GPUHAL_FACT_PARTITION) and the numbers (GPUHAL_FACT_PARTITION_NUMBERS) of a part of a divided GPU, if
     *  its driver has the part, but its API does not list it for this process; `address` is the GPU's. "": a whole GPU,
     *  or not known. */
    const char *partition, *partition_numbers;
    /** Whom it is NOT_GIVEN to: "this container", "this pod", "this PBS job 17", "this user session"; else "". */
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
