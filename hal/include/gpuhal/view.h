/** gpuhal/view.h: a snapshot of the plugins (with the reason why each plugin is used or not), the physical devices,
 *  their interfaces, and the evidence for these interfaces. gpuhal/node.h adds the machine's hardware and the record of
 *  the machine.
 *
 *  A view never changes, even after gpuhal_rescan(). A view contains records of several kinds. Each kind is a list with
 *  a separate structure; all kinds are read in the same way:
 *
 *      gpuhal_view *view = NULL;
 *      gpuhal_plugin_report report = {.size = sizeof report};
 *      gpuhal_view_of(gpu, 0, &view);
 *      for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++)
 *          printf("%s: %s\n", report.name, report.reason);
 *      gpuhal_view_release(view);
 *
 *  Strings and devices in records of this header are valid as long as the gpuhal object exists; strings in records of
 *  gpuhal/node.h are valid as long as the view exists. Strings are never NULL; "" means unknown.
 *
 *  A GPU that CUDA, Vulkan and OpenCL list is one physical device with three interfaces. Interfaces are matched by PCI
 *  address, else DRM render node, else UUID within one vendor, else LUID; never by name or index. All software devices
 *  on the host's CPU are interfaces of the CPU. A partition (MIG, AMD) is a separate device under one physical device.
 *  docs/identity.md states the rule.
 */
#ifndef GPUHAL_VIEW_H
#define GPUHAL_VIEW_H

#include <gpuhal/device.h>
#include <gpuhal/report.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The plugins, devices and evidence at one moment. */
typedef struct gpuhal_view gpuhal_view;

/** A kind of record, with its structure. Kinds from 16 up are in the headers of gpuhal/node.h. */
typedef uint32_t gpuhal_record_kind;
enum {
    GPUHAL_RECORD_PLUGIN = 1,    /**< gpuhal_plugin_report: each plugin that was found, in the order of priority. */
    GPUHAL_RECORD_NOTE = 2,      /**< gpuhal_note_info: notes about the whole search. */
    GPUHAL_RECORD_PHYSICAL = 3,  /**< gpuhal_physical_info: each physical device with a visible interface. */
    GPUHAL_RECORD_INTERFACE = 4, /**< gpuhal_interface_info: visible devices, grouped by physical device. */
    GPUHAL_RECORD_EVIDENCE = 5   /**< gpuhal_evidence: grouped by physical device. */
};

/** A note about the whole search, such as plugins that were not probed because the helper program is missing. */
typedef struct gpuhal_note_info {
    uint32_t size;
    const char *text; /**< A sentence. */
} gpuhal_note_info;

/** One physical device. */
typedef struct gpuhal_physical_info {
    uint32_t size;
    uint32_t number;         /**< As in gpuhal_device_physical(). */
    uint32_t device_count;   /**< Number of visible devices that are interfaces of this physical device. */
    uint32_t evidence_count;
    const char *pci_address; /**< The first address that one of its interfaces reports. */
    /** UUID of the whole device, not of a partition; the first UUID that an interface reports. */
    const char *uuid;
    /** Index of this device's first GPUHAL_RECORD_INTERFACE, and of its first GPUHAL_RECORD_EVIDENCE. */
    uint32_t first_interface, first_evidence;
} gpuhal_physical_info;

/** A visible device, as an interface of a physical device. */
typedef struct gpuhal_interface_info {
    uint32_t size;
    uint32_t number;   /**< Stable number in the record of the machine, or 0. */
    uint32_t physical; /**< The number of its physical device. */
    gpuhal_device *device;
} gpuhal_interface_info;

/** Why two devices are interfaces of one physical device, or why two similar devices are not. */
typedef struct gpuhal_evidence {
    uint32_t size;
    /** 1 for one physical device; 0 for two physical devices, although both report the same value, which the sentence
     *  names. */
    uint32_t same;
    const char *device;     /**< "vulkan:0". */
    /** The device that `device` was matched with, such as "cuda:0". This is a hidden device if only a hidden device
     *  connects two visible devices. */
    const char *other;
    const char *matched_by; /**< "pci_address", "drm_render_node", "uuid", "luid", "host_processor". */
    const char *value;      /**< The string that both devices report; "" for "host_processor". */
    const char *sentence;   /**< Human-readable. */
    uint32_t physical;      /**< The number of the physical device of `device`. */
} gpuhal_evidence;

/** Flag that makes gpuhal_view_of() search the machine and include GPUHAL_RECORD_HARDWARE (gpuhal/node/hardware.h). */
enum { GPUHAL_VIEW_HARDWARE = 1 };

/** Creates a view of the latest enumeration, which is the enumeration of gpuhal_open() until gpuhal_rescan() finds
 *  another state. @p flags: 0 or GPUHAL_VIEW_HARDWARE.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY; for GPUHAL_VIEW_HARDWARE also NOT_SUPPORTED in a library
 *  that was built without GPUHAL_NODE, and FILE if the hardware cannot be listed, for example because the process has
 *  no free file descriptor
 *  Owner: caller, gpuhal_view_release(), which may come after gpuhal_close(); the view may be read until
 *  gpuhal_close(). Threads: any. Blocks: only with GPUHAL_VIEW_HARDWARE, reading files of the kernel; opens no
 *  device. */
GPUHAL_API gpuhal_status gpuhal_view_of(const gpuhal *gpu, uint32_t flags, gpuhal_view **out_view);

/** Counts the records of a kind.
 *  @return the count; 0 for NULL, and for a kind that the view does not have
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_view_count(const gpuhal_view *view, gpuhal_record_kind kind);

/** Returns record number @p index of a kind, counted from 0. Set the size of the kind's structure first.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last; NOT_SUPPORTED for a
 *  kind that the view does not have; the message says whether the view was made without GPUHAL_VIEW_HARDWARE, has only
 *  the record of the machine, or the library does not know the kind
 *  Owner: strings and devices in the record are valid as stated at the top of this header. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_view_get(const gpuhal_view *view, gpuhal_record_kind kind, uint32_t index,
                                         void *out_record);

/** Releases the view. NULL does nothing.
 *  Owner: @p view is invalid afterwards. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_view_release(gpuhal_view *view);

#ifdef __cplusplus
}
#endif
#endif
