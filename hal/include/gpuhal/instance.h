/** gpuhal/instance.h: the gpuhal object, its configuration, and the version.
 *
 *  gpuhal_open() finds the plugins, has each looked at in a process of its own, and lists the devices. Several objects may live
 *  in one process, also in two libraries that know nothing of each other; they share started backends and nothing else.
 *  gpuhal_close() gives the object up; buffers that are still alive keep what they need.
 */
#ifndef GPUHAL_INSTANCE_H
#define GPUHAL_INSTANCE_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One opened view of the machine. */
typedef struct gpuhal gpuhal;

struct gpuhal_plugin;
struct gpuhal_host;

/** A plugin's query function, for plugins linked into the program; the same type as gpuhal_plugin_query_fn in plugin.h. */
typedef const struct gpuhal_plugin *gpuhal_builtin_fn(uint32_t host_abi, const struct gpuhal_host *host);

/** Takes a line of the log. @p level: 1 error, 2 warning, 3 info, 4 debug, 5 trace. May be called from any thread, also
 *  while another call runs; lines of level 5 come from inside calls that hold locks, so then the listener must not call
 *  the library; else it may call the library, except to open or close a gpuhal object, to release the last buffer of a
 *  closed one, or to write to the buffer that the call which logs writes to. The error detail of the call that logs
 *  stays as it was. */
typedef void gpuhal_log_fn(void *user, int32_t level, const char *line);

/** How plugins are probed. */
enum {
    GPUHAL_ISOLATION_DEFAULT = 0, /**< once. */
    GPUHAL_ISOLATION_ALWAYS = 1,  /**< Each time, in a helper process each: whatever a driver does there, this process lives. */
    GPUHAL_ISOLATION_NEVER = 2,   /**< Each time, in this process; the result is not cached. */
    GPUHAL_ISOLATION_ONCE = 3     /**< As always, but a plugin with a valid cached result is not run again. */
};

/** How to open. Zero is a sensible choice for every member but size. Environment variables in parentheses override a member, save
 *  GPUHAL_BACKENDS and GPUHAL_DEVICES, which take of what the member allows and never add to it; docs/environment.md lists them. */
typedef struct gpuhal_config {
    uint32_t size;                 /**< sizeof(gpuhal_config). */
    uint32_t isolation;            /**< (GPUHAL_ISOLATION) */
    uint32_t ignore_environment;   /**< Not 0: read no GPUHAL_ variable. */
    uint32_t log_level; /**< (GPUHAL_LOG) Lines up to this level are logged: 1 error … 4 debug, 5 trace: a line for
                                        each call of a plugin's slots on devices opened from then on; 0: warnings. */
    const char *backends;          /**< (GPUHAL_BACKENDS narrows and reorders it) "rocm,vulkan": only these, in this order, then cpu. "-opencl": all but these. */
    const char *plugin_path;       /**< (GPUHAL_PLUGIN_PATH, which comes first) Absolute directories, searched before the standard ones, separated as in PATH: by ':', on Windows ';'. */
    const char *helper_path;       /**< The helper program; NULL: gpuhal/gpuhal-helper beside the library, else gpuhal-helper beside plugins. Without one no plugin
                                        is probed, save linked-in ones. */
    const char *devices;           /**< (GPUHAL_DEVICES narrows it) Comma list of selectors; devices that match none are hidden. */
    uint64_t helper_deadline_ns;   /**< Time for a plugin to start and list its devices, in a helper or in this process; 0: 15 s. */
    uint64_t memory_limit_bytes;   /**< Most that this object allocates on each device; 0: no limit. See gpuhal_device_limit_memory(). */
    uint64_t staging_limit_bytes;  /**< Page-locked memory for staging per device and direction; 0: 16 MiB. At least 64 KiB. */
    uint64_t staging_total_bytes;  /**< (GPUHAL_STAGING_TOTAL) The same for all devices of the process together; 0: 256 MiB. At least 64 KiB. */
    gpuhal_builtin_fn *const *builtins; /**< NULL-ended list of linked-in plugins, besides those compiled into the library. */
    uint64_t hang_ns;              /**< How long a driver may stay in a call beyond what the call itself may take. Then its device is lost (hung) for every other
                                        thread; the calling one stays in the driver. docs/transfers.md, "A driver that
                                        hangs". 0: 30 s; less than 20 ms counts as 20 ms. */
    const char *registry;          /**< (GPUHAL_REGISTRY) Absolute directory of the persistent record of this machine, "none" to keep none; NULL: gpuhal/ in the
                                        user's state directory. docs/registry.md. */
    const char *retry;             /**< Comma list of plugins, or "all": their cached results are not used, they are probed again. */
    gpuhal_log_fn *log;            /**< NULL: nobody listens, unless GPUHAL_LOG is set: then lines go to standard error. */
    void *log_user;
    uint32_t environment_is_clean; /**< For privileged programs alone (set-user-id, file capabilities). Not 0: the program has removed what its user put into
                                        the environment, as by clearenv(), so that drivers may be loaded. 0: it gets cpu alone. SECURITY.md. */
    const char *options; /**< (GPUHAL_OPTIONS, whose entries come after these) Options for plugins, separated by `;`:
                                        "example.memory_mib=64;cpu.devices=5G,6G". Of two for one key the later one counts;
                                        one that its plugin does not know is warned of. Plugins document theirs. */
} gpuhal_config;

/** Finds plugins and lists devices. @p config may be NULL. Plugins that fail cost themselves alone and leave a report (report.h);
 *  a machine without any device is a success with no devices.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a bad configuration or environment variable, malformed selectors too, which
 *  the detail names; NOT_FOUND for an
 *  unknown backend name, a device selector that matches nothing, or lists of devices with nothing in common; HOST_MEMORY
 *  Owner: caller, gpuhal_close(). Threads: any. Blocks: yes, until each plugin has answered or its deadline has passed. */
GPUHAL_API gpuhal_status gpuhal_open(const gpuhal_config *config, gpuhal **out_gpuhal);

/** Closes the object: devices close as soon as their last buffer is released. Vendor libraries stay loaded.
 *  Owner: @p gpu and its device pointers are invalid afterwards. Threads: any, with no other call on @p gpu in progress.
 *  Blocks: yes, closing devices, all at once: for at most hang_ns where their drivers stop. */
GPUHAL_API void gpuhal_close(gpuhal *gpu);

/** Version of the library at run time, "0.2.0".
 *  @return never NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_version(void);

/** Version of the plugin ABI that the library speaks: major << 16 | minor.
 *  @return the number
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_abi_version(void);

#ifdef __cplusplus
}
#endif
#endif
