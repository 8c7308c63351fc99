/** gpuhal/instance.h: the gpuhal object, its configuration, and the version.
 *
 *  gpuhal_open() finds the plugins, probes each in its own process, and lists the devices. Several objects may exist in
 *  one process, also in two libraries that do not know each other; they share only started backends. gpuhal_close()
 *  releases the object; existing buffers keep the objects that they need.
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

/** A plugin's query function, for plugins linked into the program; the same type as gpuhal_plugin_query_fn in
 *  plugin.h. */
typedef const struct gpuhal_plugin *gpuhal_builtin_fn(uint32_t host_abi, const struct gpuhal_host *host);

/** Receives a line of the log. @p level: 1 error, 2 warning, 3 info, 4 debug, 5 trace. May be called from any thread,
 *  also while another call runs; lines of level 5 come from inside calls that hold locks, so then the listener must not
 *  call the library. For other lines it may call the library, except to open or close a gpuhal object, to release the
 *  last buffer of a closed object, or to write to the buffer that the logging call is writing to. The error detail of
 *  the logging call is kept. */
typedef void gpuhal_log_fn(void *user, int32_t level, const char *line);

/** How plugins are probed. */
enum {
    GPUHAL_ISOLATION_DEFAULT = 0, /**< once. */
    /** Each time, in a helper process per plugin: no driver can crash this process there. */
    GPUHAL_ISOLATION_ALWAYS = 1,
    GPUHAL_ISOLATION_NEVER = 2,   /**< Each time, in this process; the result is not cached. */
    GPUHAL_ISOLATION_ONCE = 3     /**< As ALWAYS, but a plugin with a valid cached result is not run again. */
};

/** How to open. Zero is the default of every member except size. Environment variables in parentheses override a
 *  member, except GPUHAL_BACKENDS and GPUHAL_DEVICES, which select from what the member allows and never add to it;
 *  docs/environment.md lists them. */
typedef struct gpuhal_config {
    uint32_t size;                 /**< sizeof(gpuhal_config). */
    uint32_t isolation;            /**< (GPUHAL_ISOLATION) */
    uint32_t ignore_environment;   /**< Not 0: read no GPUHAL_ variable. */
    uint32_t log_level; /**< (GPUHAL_LOG) Lines up to this level are logged: 1 error … 4 debug, 5 trace: a line for
                                        each call of a plugin's slots on devices opened from then on; 0: warnings. */
    /** (GPUHAL_BACKENDS narrows and reorders it) "rocm,vulkan": only these, in this order, then cpu. "-opencl": all
     *  except these. */
    const char *backends;
    /** (GPUHAL_PLUGIN_PATH, which comes first) Absolute directories, searched before the standard ones, separated as
     *  in PATH: by ':', on Windows ';'. */
    const char *plugin_path;
    /** The helper program; NULL: gpuhal/gpuhal-helper beside the library, else gpuhal-helper beside plugins. Without a
     *  helper only linked-in plugins are probed. */
    const char *helper_path;
    /** (GPUHAL_DEVICES narrows it) Comma list of selectors, see gpuhal_select(); devices that it does not name are
     *  hidden. A limit after a selector, `cuda:0@8GiB` or `gpu@25%`, sets the initial limit of
     *  gpuhal_device_limit_memory(); the lowest counts. `most_free` and `least_loaded` leave one device, the one with
     *  most free memory or least load when the object is opened, of the devices that both lists name; drivers are
     *  loaded to read these values. */
    const char *devices;
    /** Timeout for a plugin to start and list its devices, in a helper or in this process; 0: 15 s. */
    uint64_t helper_deadline_ns;
    /** Limit of this object's allocations on each device; 0: none. See gpuhal_device_limit_memory(). */
    uint64_t memory_limit_bytes;
    /** Page-locked memory for staging per device and direction; 0: 16 MiB. At least 64 KiB. */
    uint64_t staging_limit_bytes;
    /** (GPUHAL_STAGING_TOTAL) The same for all devices of the process together; 0: 256 MiB. At least 64 KiB. */
    uint64_t staging_total_bytes;
    /** NULL-ended list of linked-in plugins, besides those compiled into the library. It is copied. */
    gpuhal_builtin_fn *const *builtins;
    /** Timeout of a driver's call, added to the time that the call itself may take; ten times as long while the driver
     *  may be compiling a kernel for its first launch; loading a program and creating a kernel have no limit. After the
     *  timeout the call's device is lost (hung) for every other thread; the calling thread stays in the driver.
     *  docs/transfers.md, "A driver that hangs". 0: 30 s; less than 20 ms counts as 20 ms. */
    uint64_t hang_ns;
    /** (GPUHAL_REGISTRY) Absolute directory of the persistent record of this machine, "none" to keep none; NULL:
     *  gpuhal/ in the user's state directory. docs/registry.md. */
    const char *registry;
    /** Comma list of plugins, or "all": their cached results are not used, they are probed again. */
    const char *retry;
    gpuhal_log_fn *log;            /**< NULL: no log, unless GPUHAL_LOG is set: then lines go to standard error. */
    void *log_user;
    /** For privileged programs alone (set-user-id, file capabilities). Not 0: the program has removed its user's
     *  variables from the environment, as by clearenv(), so that drivers may be loaded. 0: only cpu is used.
     *  SECURITY.md. */
    uint32_t environment_is_clean;
    /** (GPUHAL_OPTIONS, whose entries come after these) Options for plugins, separated by `;`:
     *  "example.memory_mib=64;cpu.devices=5G,6G". Of two entries for one key the later one counts; an option that its
     *  plugin does not know causes a warning. Plugins document theirs. */
    const char *options;
    /** (GPUHAL_LEDGER) Absolute directory for the records of leases (gpuhal/schedule/lease.h), "none" for none; NULL:
     *  gpuhal/ in the user's runtime directory. */
    const char *ledger;
} gpuhal_config;

/** Finds plugins and lists devices. @p config may be NULL. A plugin that fails affects only itself and leaves a report
 *  (report.h); on a machine without devices the call succeeds with none.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a bad configuration, environment variable or selector, which the detail
 *  names; NOT_FOUND for an unknown backend name, a device selector that matches nothing, or lists that leave no device;
 *  HOST_MEMORY
 *  Owner: caller, gpuhal_close(). Threads: any. Blocks: yes, until each plugin was probed or its deadline has
 *  passed; with `most_free` or `least_loaded` twice that, and as gpuhal_sample_all(). */
GPUHAL_API gpuhal_status gpuhal_open(const gpuhal_config *config, gpuhal **out_gpuhal);

/** Closes the object; a device is closed as soon as its last buffer is released. Vendor libraries stay loaded. The log
 *  states the remaining objects at level 3 (info): for each device and tag (gpuhal_buffer_set_tag()) how many buffers
 *  with how many bytes, including those that only work of queues still uses, and pools and stores that were not
 *  destroyed.
 *  Callbacks of events, of released memory, and of requests for work slots and leases still come, also after this
 *  returns, and so do those of a sampler for its earlier samples, until gpuhal_sampler_destroy(); callbacks of changes
 *  do not.
 *  Owner: @p gpu and its device pointers are invalid afterwards, except that the calls of a sampler
 *  (gpuhal/node/sampler.h) take its devices until it is destroyed. Threads: any, with no other call on @p gpu in
 *  progress. Blocks: yes, while all devices close concurrently: at most hang_ns if drivers hang; and until a listener
 *  of changes that is being called has returned. */
GPUHAL_API void gpuhal_close(gpuhal *gpu);

/** Returns the version of the library at run time, "0.2.0".
 *  @return never NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_version(void);

/** Returns the version of the library's plugin ABI: major << 16 | minor.
 *  @return the number
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_abi_version(void);

#ifdef __cplusplus
}
#endif
#endif
