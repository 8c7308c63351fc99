/** gpuhal/node/registry.h: the persistent record of this machine: plugins with the results of probing them, physical
 *  devices with stable numbers, tested links, paths of large writes, faults. docs/registry.md states what is stored
 *  where, and how long it is valid.
 *
 *  A view is the whole at one moment. It never changes, and reading it never waits. Times are seconds since 1970, 0
 *  for never; they are for people and affect nothing. Texts are never NULL; "" means unknown. Set the size of a
 *  structure before the call that fills it.
 */
#ifndef GPUHAL_REGISTRY_H
#define GPUHAL_REGISTRY_H

#include <gpuhal/device.h>
#include <gpuhal/instance.h>
#include <gpuhal/report.h>
#include <gpuhal/transfer.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The whole record at one moment. */
typedef struct gpuhal_registry_view gpuhal_registry_view;

/** Returns the newest state in @p gpu. Results of a transfer are added within moments.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller, gpuhal_registry_view_release(); may outlive @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_view_of(gpuhal *gpu, gpuhal_registry_view **out_view);

/** Reads the record from the disk, without probing plugins. @p config as for gpuhal_open(); only the registry's
 *  members count.
 *  @return GPUHAL_OK, also when there is no record, or none is kept; INVALID_ARGUMENT; FILE when the record exists and
 *  cannot be read, or a later version wrote it; HOST_MEMORY
 *  Owner: caller, gpuhal_registry_view_release(). Threads: any. Blocks: yes, reading a file. */
GPUHAL_API gpuhal_status gpuhal_registry_view_read(const gpuhal_config *config, gpuhal_registry_view **out_view);

/** Releases the view. NULL does nothing.
 *  Owner: @p view and its texts are invalid afterwards. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_registry_view_release(gpuhal_registry_view *view);

/** Returns the generation, which every change increments.
 *  @return the generation; 0 when nothing was ever written, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_registry_generation(const gpuhal_registry_view *view);

/** Returns the directory of the record.
 *  @return an absolute directory; "" when none is kept, or for NULL
 *  Owner: view. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_registry_place(const gpuhal_registry_view *view);

/** Returns what was wrong with the record when gpuhal_registry_view_read() read it; the view has the undamaged parts.
 *  @return a sentence; "" when nothing was, or for NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_registry_damage(const gpuhal_registry_view *view);

/** The cached result of probing a plugin file. */
typedef struct gpuhal_plugin_record {
    uint32_t size;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage; /**< The last stage entered. */
    uint32_t signal; /**< The cause that ended its helper process: see gpuhal_plugin_report.signal; 0: none. */
    const char *name;
    const char *file;
    const char *version;
    const char *driver;    /**< Path of the vendor's library. */
    const char *reason;
    const char *output;    /**< The last lines of its output, separated by line feeds. */
    const char *identity;  /**< Of the file. */
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
    uint32_t is_host;     /**< 1: the host's processor. */
    uint32_t is_present;  /**< 1: one of its interfaces was present at the last enumeration of its backend. */
    uint32_t vendor_id;   /**< PCI vendor; 0: unknown. */
    uint32_t reserved;
    const char *pci_address;
    const char *name;
    uint64_t first_seen, last_seen; /**< The latter is exact to the day. */
} gpuhal_physical_record;

/** A physical device, or a partition of it, as one backend sees it. */
typedef struct gpuhal_interface_record {
    uint32_t size;
    uint32_t number;        /**< Stable, like that of the physical device. */
    uint32_t physical;      /**< Number of the physical device. */
    uint32_t is_present;    /**< 1: it was present at the last enumeration of its backend. */
    uint32_t driver_count;  /**< Versions so far; gpuhal_registry_driver(). */
    uint32_t reserved;
    const char *backend;
    const char *name;
    const char *partition;  /**< Of a partitioned device. */
    const char *uuid;
    uint64_t first_seen, last_seen; /**< As those of the physical device. */
} gpuhal_interface_record;

/** The link from one interface to another, with the drivers of that time. */
typedef struct gpuhal_link_record {
    uint32_t size;
    uint32_t from, to;      /**< Numbers of interfaces; equal ones: the result of gpuhal_device_verify(). */
    uint32_t verified;      /**< 1: the bytes arrived unchanged; 0: they did not. */
    gpuhal_path path;       /**< Of the copies that were measured; 0: not measured. */
    uint32_t reserved;
    uint64_t bytes_per_second, latency_ns; /**< 0: not measured. */
    uint64_t tried;
    const char *from_driver, *to_driver, *reason;
} gpuhal_link_record;

/** A kind of fault, and how often it happened. */
typedef struct gpuhal_fault_record {
    uint32_t size;
    uint32_t interface_number; /**< 0: a fault of the plugin. */
    const char *kind;       /**< "crash", "hang", "lost", "out_of_memory". */
    const char *plugin;     /**< Name, else identity of the plugin; "" for a fault of an interface. */
    const char *driver_version, *detail; /**< Of the latest one. */
    uint64_t count, first, last;
} gpuhal_fault_record;

/** Returns plugin number @p index, counted from 0; one file has one record for each cache key.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_plugin(const gpuhal_registry_view *view, uint32_t index,
                                                gpuhal_plugin_record *out_plugin);

/** Checks whether the cached result of plugin number @p index is valid: whether its cache key is current. @p out_why
 *  gets "" then, else a sentence that names the difference, cut to @p why_bytes.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last, HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, reading files; opens no device. */
GPUHAL_API gpuhal_status gpuhal_registry_plugin_stale(const gpuhal_registry_view *view, uint32_t index, char *out_why,
                                                      uint32_t why_bytes);

/** Returns physical device number @p index, counted from 0.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_physical(const gpuhal_registry_view *view, uint32_t index,
                                                  gpuhal_physical_record *out_physical);

/** Returns interface number @p index, counted from 0.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_interface(const gpuhal_registry_view *view, uint32_t index,
                                                   gpuhal_interface_record *out_interface);

/** Returns link number @p index, counted from 0.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_link(const gpuhal_registry_view *view, uint32_t index,
                                              gpuhal_link_record *out_link);

/** Returns fault number @p index, counted from 0.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_fault(const gpuhal_registry_view *view, uint32_t index,
                                               gpuhal_fault_record *out_fault);

/** Returns driver version number @p n, the newest last, of interface number @p index; @p out_since may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_driver(const gpuhal_registry_view *view, uint32_t index, uint32_t n,
                                                const char **out_version, uint64_t *out_since);

/** Returns the stable numbers of a device: of its interface, and of its physical device. Either may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND for a device without them
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_device(const gpuhal_device *device, uint32_t *out_interface,
                                                uint32_t *out_physical);

/** Removes the cached results and faults of the plugins named @p plugin; everything for NULL. Numbers are never given
 *  again.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; NOT_FOUND for a plugin without a record; FILE when it
 *  cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_forget(const gpuhal_config *config, const char *plugin);

/** Removes the record of one physical device that was taken out, with its interfaces, links, paths of writes and
 *  faults; @p number is that of its gpuhal_physical_record. The rest stays. A device that is still there is recorded
 *  again, under another number, by the next program that lists it.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; NOT_FOUND for a number without a record; FILE when it
 *  cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_forget_physical(const gpuhal_config *config, uint32_t number);

/** Writes the view to a new file, accessible to its owner only, in the format of docs/registry.md.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FORKED; FILE; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_export(const gpuhal_registry_view *view, const char *path);

/** Replaces the whole record by an export. A damaged file changes nothing.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FILE for a file that cannot be read, is damaged or of a
 *  later version, or when the registry cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_import(const gpuhal_config *config, const char *path);

#ifdef __cplusplus
}
#endif
#endif
