/** gpuhal/registry.h: what is remembered of this machine: plugins and what came of meeting them, hardware with numbers that stay,
 *  links that were tried, paths of large writes, faults. docs/registry.md tells what is kept where, and what holds.
 *
 *  A view is the whole at one moment. It never changes, and reading it waits for nobody. Times are seconds since 1970, 0 for never;
 *  they are for people and decide nothing. Texts are never NULL; what is unknown is "". Set the size of a structure before it is asked for.
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

/** Everything that was known at one moment. */
typedef struct gpuhal_registry_view gpuhal_registry_view;

/** The newest state that @p gpu knows. What a transfer has found comes within moments, or with gpuhal_registry_flush().
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller, gpuhal_registry_view_release(); may outlive @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_view_of(gpuhal *gpu, gpuhal_registry_view **out_view);

/** Reads what the disk has, without looking at any plugin. @p config as for gpuhal_open(), of which only the registry counts.
 *  @return GPUHAL_OK, also when nothing is remembered, or none is kept; INVALID_ARGUMENT; FILE when the record is there and cannot be
 *  read, or a later version wrote it; HOST_MEMORY
 *  Owner: caller, gpuhal_registry_view_release(). Threads: any. Blocks: yes, reading a file. */
GPUHAL_API gpuhal_status gpuhal_registry_view_read(const gpuhal_config *config, gpuhal_registry_view **out_view);

/** Gives the view up. NULL does nothing.
 *  Owner: @p view and its texts are invalid afterwards. Threads: any. Blocks: no. */
GPUHAL_API void gpuhal_registry_view_release(gpuhal_registry_view *view);

/** Rises with every change.
 *  @return the generation; 0 when nothing was ever written, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_registry_generation(const gpuhal_registry_view *view);

/** Where the record lies.
 *  @return an absolute directory; "" when none is kept, or for NULL
 *  Owner: view. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_registry_place(const gpuhal_registry_view *view);

/** What was wrong with the record when gpuhal_registry_view_read() read it; what is whole of it is in the view.
 *  @return a sentence; "" when all is well, or for NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_registry_damage(const gpuhal_registry_view *view);

/** A plugin file met under certain circumstances. */
typedef struct gpuhal_remembered_plugin {
    uint32_t size;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage; /**< The last stage entered. */
    uint32_t signal;           /**< That ended its helper process; 0: none. */
    const char *name;
    const char *file;
    const char *version;
    const char *driver;    /**< Path of the vendor's library. */
    const char *reason;
    const char *output;    /**< The last lines that it printed, separated by line feeds. */
    const char *identity;  /**< Of the file. */
    uint64_t met;
    uint32_t device_count;
    uint32_t reserved;
} gpuhal_remembered_plugin;

/** A piece of hardware. */
typedef struct gpuhal_remembered_physical {
    uint32_t size;
    uint32_t number;      /**< As in gpuhal_device_physical(): stays the same across restarts, reboots, new drivers and another order of enumeration. */
    uint32_t is_host;     /**< 1: the host's processor. */
    uint32_t is_present;  /**< 1: one of its faces was there when its backend was last listed. */
    uint32_t vendor_id;   /**< PCI vendor; 0: unknown. */
    uint32_t reserved;
    const char *pci_address;
    const char *name;
    uint64_t first_seen, last_seen; /**< The last time is exact to the day. */
} gpuhal_remembered_physical;

/** A piece of hardware, or a part of it, as one backend sees it. */
typedef struct gpuhal_remembered_face {
    uint32_t size;
    uint32_t number;        /**< Stays the same, as that of the hardware does. */
    uint32_t physical;      /**< Number of the hardware. */
    uint32_t is_present;    /**< 1: it was there when its backend was last listed. */
    uint32_t driver_count;  /**< Versions that were seen; gpuhal_registry_driver(). */
    uint32_t reserved;
    const char *backend;
    const char *name;
    const char *part;       /**< Of a partitioned device. */
    const char *uuid;
    uint64_t first_seen, last_seen; /**< As those of the hardware. */
} gpuhal_remembered_face;

/** The way from one face to another, with the drivers of then. */
typedef struct gpuhal_remembered_link {
    uint32_t size;
    uint32_t from, to;      /**< Numbers of faces. */
    uint32_t verified;      /**< 1: bytes came through right; 0: they did not. */
    gpuhal_path path;       /**< That copies took when they were measured; 0: not measured. */
    uint32_t reserved;
    uint64_t bytes_per_second, latency_ns; /**< 0: not measured. */
    uint64_t tried;
    const char *from_driver, *to_driver, *reason;
} gpuhal_remembered_link;

/** Which of two paths large writes from ordinary memory take, as it was measured with the driver and the plugin's file
 *  of then. */
typedef struct gpuhal_remembered_write_path {
    uint32_t size;
    uint32_t face;          /**< Number of the face. */
    uint32_t is_staged;     /**< 1: through the library's staging memory; 0: the plugin's own write. */
    uint32_t reserved;
    uint64_t plugin_bytes_per_second, staged_bytes_per_second; /**< 0: not measured. */
    uint64_t measured;
    const char *driver;     /**< Its version. */
    const char *plugin;     /**< Name, else identity of the plugin's file, which is not remembered any more. */
} gpuhal_remembered_write_path;

/** What went wrong, how often. */
typedef struct gpuhal_remembered_fault {
    uint32_t size;
    uint32_t face;          /**< Number of the face; 0: it happened to the plugin. */
    const char *kind;       /**< "crash", "hang", "lost", "out_of_memory". */
    const char *plugin;     /**< Name, else identity of the plugin; "" when it happened to a face. */
    const char *driver_version, *detail; /**< Of the last time. */
    uint64_t count, first, last;
} gpuhal_remembered_fault;

/** Plugin number @p index, counted from 0; one file may be there several times, as it was met under other circumstances.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_plugin(const gpuhal_registry_view *view, uint32_t index, gpuhal_remembered_plugin *out_plugin);

/** Looks whether all is as it was when plugin number @p index was met, so that its verdict holds. @p out_why gets "" then, else a
 *  sentence that tells what is not, cut to @p why_bytes.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND past the last, HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, looking at files; opens no device. */
GPUHAL_API gpuhal_status gpuhal_registry_plugin_stale(const gpuhal_registry_view *view, uint32_t index, char *out_why, uint32_t why_bytes);

/** Piece of hardware number @p index, counted from 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_physical(const gpuhal_registry_view *view, uint32_t index, gpuhal_remembered_physical *out_physical);

/** Face number @p index, counted from 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_face(const gpuhal_registry_view *view, uint32_t index, gpuhal_remembered_face *out_face);

/** Link number @p index, counted from 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_link(const gpuhal_registry_view *view, uint32_t index, gpuhal_remembered_link *out_link);

/** Write path number @p index, counted from 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_write_path(const gpuhal_registry_view *view, uint32_t index,
                                                    gpuhal_remembered_write_path *out_write_path);

/** Fault number @p index, counted from 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts live as long as @p view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_fault(const gpuhal_registry_view *view, uint32_t index, gpuhal_remembered_fault *out_fault);

/** Driver version number @p index, the newest last, of the face at place @p face of the list; @p out_since may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: view. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_driver(const gpuhal_registry_view *view, uint32_t face, uint32_t index, const char **out_version,
                                                uint64_t *out_since);

/** The numbers under which a device is remembered: of the face that it is, and of its hardware. Either may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND for a device that has none
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_registry_device(const gpuhal_device *device, uint32_t *out_face, uint32_t *out_physical);

/** Writes what @p gpu has found out and the disk does not have yet, such as faults. gpuhal_close() does so, too: this is for programs that end
 *  without it.
 *  @return GPUHAL_OK, also when there is nothing or none is kept; INVALID_ARGUMENT; FILE when it cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_flush(gpuhal *gpu);

/** Forgets verdicts and faults of the plugins named @p plugin; everything for NULL. Numbers that were given are not given again.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; NOT_FOUND for a plugin that is not remembered; FILE when it cannot be
 *  written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_forget(const gpuhal_config *config, const char *plugin);

/** Writes the view to a file that does not exist yet, for its owner alone, in the format of docs/registry.md.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FILE; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_export(const gpuhal_registry_view *view, const char *path);

/** Puts what an export holds in the place of all that is remembered. A file that is damaged in any place changes nothing.
 *  @return GPUHAL_OK once the disk has it; INVALID_ARGUMENT; FILE for a file that cannot be read, is damaged or of a later version, or
 *  when the registry cannot be written; HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for other writers and the disk. */
GPUHAL_API gpuhal_status gpuhal_registry_import(const gpuhal_config *config, const char *path);

#ifdef __cplusplus
}
#endif
#endif
