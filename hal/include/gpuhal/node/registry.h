/** gpuhal/node/registry.h: the persistent record of this machine: probed plugins with their results, physical devices
 *  with stable numbers, tested links, and faults. docs/registry.md describes the contents, the location, and the
 *  validity of each result.
 *
 *  A view (gpuhal/view.h) has a snapshot of the whole record. The snapshot comes either from the gpuhal object, which
 *  has results of a transfer within moments, or from the disk. Times are in seconds since 1970, or 0 for never; they
 *  are informational only.
 *
 *      gpuhal_view *view = NULL;
 *      gpuhal_fault_record fault = {.size = sizeof fault};
 *      gpuhal_view_read(NULL, &view);                   // of the file, without opening a gpuhal object
 *      for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, i, &fault) == GPUHAL_OK; i++)
 *          printf("%s of %s: %s\n", fault.kind, fault.plugin, fault.detail);
 *      gpuhal_view_release(view);
 */
#ifndef GPUHAL_REGISTRY_H
#define GPUHAL_REGISTRY_H

#include <gpuhal/transfer.h>
#include <gpuhal/view.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of records in every view of a library that was built with GPUHAL_NODE. */
enum {
    GPUHAL_RECORD_REGISTRY = 17,           /**< gpuhal_registry_info: one, about the record itself. */
    GPUHAL_RECORD_REGISTRY_PLUGIN = 18,    /**< gpuhal_plugin_record: one for each file and cache key. */
    GPUHAL_RECORD_REGISTRY_PHYSICAL = 19,  /**< gpuhal_physical_record */
    GPUHAL_RECORD_REGISTRY_INTERFACE = 20, /**< gpuhal_interface_record */
    GPUHAL_RECORD_REGISTRY_DRIVER = 21,    /**< gpuhal_driver_record: grouped by interface. */
    GPUHAL_RECORD_REGISTRY_LINK = 22,      /**< gpuhal_link_record */
    GPUHAL_RECORD_REGISTRY_FAULT = 23      /**< gpuhal_fault_record */
};

/** Reads the record from the disk, without probing plugins, into a view that has only these kinds. @p config as for
 *  gpuhal_open(); only the members for the registry are used.
 *  @return GPUHAL_OK, also when there is no record, or none is kept; INVALID_ARGUMENT; FILE when the record exists but
 *  cannot be read, or a later version wrote it; HOST_MEMORY
 *  Owner: caller, gpuhal_view_release(). Threads: any. Blocks: yes, reading a file. */
GPUHAL_API gpuhal_status gpuhal_view_read(const gpuhal_config *config, gpuhal_view **out_view);

/** Writes the view's record to a new file, accessible only to its owner, in the format of docs/registry.md, for
 *  gpuhal_registry_import().
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FORKED; FILE; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the disk. */
GPUHAL_API gpuhal_status gpuhal_view_write(const gpuhal_view *view, const char *path);

/** The record itself. */
typedef struct gpuhal_registry_info {
    uint32_t size;
    uint32_t reserved;
    uint64_t generation; /**< Incremented by every change; 0 means that nothing was ever written. */
    const char *place;   /**< Absolute path of the directory, or "" if no record is kept. */
    /** A sentence about damage that gpuhal_view_read() found in the record; the view has the undamaged parts. */
    const char *damage;
} gpuhal_registry_info;

/** The cached result of probing a plugin file. */
typedef struct gpuhal_plugin_record {
    uint32_t size;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage; /**< The last stage entered. */
    /** Number of the signal that terminated the helper process (see gpuhal_plugin_report.signal), or 0. */
    uint32_t signal;
    const char *name;
    const char *file;
    const char *version;
    const char *driver;    /**< Path of the vendor's library. */
    const char *reason;
    const char *output;    /**< The last lines of the plugin's output, separated by line feeds. */
    const char *identity;  /**< Identity of the file. */
    uint64_t probed_at;
    uint32_t device_count;
    uint32_t reserved;
} gpuhal_plugin_record;

/** A physical device. */
typedef struct gpuhal_physical_record {
    uint32_t size;
    /** As in gpuhal_device_physical(): stable across restarts, reboots, new drivers and another order of
     * enumeration. */
    uint32_t number;
    uint32_t is_host;     /**< 1 for the host's CPU. */
    uint32_t is_present;  /**< 1 if an interface was present at the last enumeration of the interface's backend. */
    uint32_t vendor_id;   /**< PCI vendor id, or 0 if unknown. */
    uint32_t reserved;
    const char *pci_address;
    const char *name; /**< For the host's processor, the name from the backend cpu, or "" without that backend. */
    uint64_t first_seen, last_seen; /**< `last_seen` is accurate to the day. */
} gpuhal_physical_record;

/** A physical device, or a partition of it, as one backend exposes it. */
typedef struct gpuhal_interface_record {
    uint32_t size;
    uint32_t number;        /**< Stable, like the number of the physical device. */
    uint32_t physical;      /**< Number of the physical device. */
    uint32_t is_present;    /**< 1 if present at the last enumeration of the backend. */
    uint32_t driver_count;  /**< Number of recorded versions: at most the newest 16. */
    uint32_t first_driver;  /**< Index of its first GPUHAL_RECORD_REGISTRY_DRIVER. */
    const char *backend;
    const char *name;
    const char *partition;  /**< Name of the partition, if there is one. */
    const char *uuid;
    uint64_t first_seen, last_seen; /**< As for the physical device. */
} gpuhal_interface_record;

/** A version of an interface's driver; the newest version is the last. */
typedef struct gpuhal_driver_record {
    uint32_t size;
    uint32_t interface_number;
    const char *version;
    uint64_t since;
} gpuhal_driver_record;

/** The link from one interface to another, with the drivers at the time of the test. */
typedef struct gpuhal_link_record {
    uint32_t size;
    uint32_t from, to;      /**< Numbers of interfaces; if equal, this is the result of gpuhal_device_verify(). */
    uint32_t verified;      /**< 1 if the bytes arrived unchanged, else 0. */
    gpuhal_path path;       /**< Path of the measured copies, or 0 if not measured. */
    uint32_t reserved;
    uint64_t bytes_per_second, latency_ns; /**< 0 if not measured. */
    uint64_t tried;
    const char *from_driver, *to_driver, *reason;
} gpuhal_link_record;

/** A kind of fault, and how often it happened. */
typedef struct gpuhal_fault_record {
    uint32_t size;
    uint32_t interface_number; /**< 0 for a fault of the plugin. */
    const char *kind;       /**< "crash", "hang", "lost", "out_of_memory". */
    const char *plugin;     /**< Name of the plugin, otherwise its identity; "" for a fault of an interface. */
    const char *driver_version, *detail; /**< Driver version and detail of the latest fault. */
    uint64_t count, first, last;
} gpuhal_fault_record;

/** Checks whether the cached result of GPUHAL_RECORD_REGISTRY_PLUGIN number @p index is valid, which means that its
 *  cache key is current. @p out_why receives "" if the result is valid, otherwise a sentence that names the difference,
 *  truncated to @p why_bytes.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last, HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, reading files; opens no device. */
GPUHAL_API gpuhal_status gpuhal_registry_plugin_stale(const gpuhal_view *view, uint32_t index, char *out_why,
                                                      uint32_t why_bytes);

/** Removes the cached results and faults of the plugins named @p plugin, or the whole record for NULL. Numbers are
 *  never reused.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; NOT_FOUND for a plugin without a record; FILE when it
 *  cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_forget(const gpuhal_config *config, const char *plugin);

/** Removes the record of one physical device that was taken out of the machine, with its interfaces, links and faults;
 *  @p number is the number in the device's gpuhal_physical_record. All other records are kept. If the device is still
 *  in the machine, the next program that lists it records it again, under another number. Open gpuhal objects keep the
 *  old number. They record results of the device again once it has a record; until then the log has a warning.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; NOT_FOUND for a number without a record; FILE when it
 *  cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_forget_physical(const gpuhal_config *config, uint32_t number);

/** Replaces the whole record with a file of gpuhal_view_write(). A damaged file changes nothing. Open gpuhal objects
 *  keep the old numbers, but record their results for the same devices under the new numbers. If a device is not in the
 *  file, its results are not recorded, and the log has a warning.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FILE for a file that cannot be read, is damaged or of a
 *  later version, or when the registry cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_import(const gpuhal_config *config, const char *path);

#ifdef __cplusplus
}
#endif
#endif
