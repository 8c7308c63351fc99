/** gpuhal/instance.h: the gpuhal object, its configuration, and the version.
 *
 *  gpuhal_open() finds the plugins, probes each in its own process, and lists the devices. Several objects may exist in
 *  one process, even in two libraries that are unaware of each other. The objects share only started backends.
 *  gpuhal_close() releases the object; existing buffers keep alive the internal objects that they need.
 *
 *      gpuhal *gpu = NULL;
 *      gpuhal_config config = {.size = sizeof config, .backends = "cuda,rocm,cpu"};
 *      if (gpuhal_open(&config, &gpu) != GPUHAL_OK)
 *          fprintf(stderr, "%s\n", gpuhal_last_error()->sentence);
 *      gpuhal_close(gpu);                               // NULL is allowed
 */
#ifndef GPUHAL_INSTANCE_H
#define GPUHAL_INSTANCE_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One open instance of the library, with its own view of the machine. */
typedef struct gpuhal gpuhal;

struct gpuhal_plugin;
struct gpuhal_host;

/** A plugin's query function, for plugins linked into the program; the same type as gpuhal_plugin_query_fn in
 *  plugin.h. */
typedef const struct gpuhal_plugin *gpuhal_builtin_fn(uint32_t host_abi, const struct gpuhal_host *host);

/** Receives a line of the log. @p level: 1 error, 2 warning, 3 info, 4 debug, 5 trace. May be called from any thread,
 *  and from several threads at once. Lines of level 5 are logged by calls that hold locks, so the function must not
 *  call the library while it handles such a line. For lines of other levels it may call the library, except to open or
 *  close a gpuhal object, to release the last buffer of a closed object, or to write to the buffer that the logging
 *  call is writing to. The error detail of the logging call is preserved. */
typedef void gpuhal_log_fn(void *user, int32_t level, const char *line);

/** How plugins are probed. */
enum {
    GPUHAL_ISOLATION_DEFAULT = 0, /**< The same as ONCE. */
    /** At every open, in one helper process per plugin. A driver that crashes in the helper does not terminate this
     *  process. */
    GPUHAL_ISOLATION_ALWAYS = 1,
    GPUHAL_ISOLATION_NEVER = 2,   /**< At every open, in this process; the result is not cached. */
    GPUHAL_ISOLATION_ONCE = 3     /**< Like ALWAYS, but a plugin with a valid cached result is not run again. */
};

/** Configuration of gpuhal_open(). Zero is the default of every member except size. The environment variable in
 *  parentheses overrides its member, unless the parentheses say otherwise. GPUHAL_BACKENDS and GPUHAL_DEVICES select
 *  from the values of their members and never add values. docs/environment.md lists the variables. */
typedef struct gpuhal_config {
    uint32_t size;                 /**< sizeof(gpuhal_config). */
    uint32_t isolation;            /**< (GPUHAL_ISOLATION) */
    uint32_t ignore_environment;   /**< If not 0, no GPUHAL_ variable is read. */
    /** (GPUHAL_LOG) Lines up to this level are logged: 1 error … 4 debug, 5 trace (a line for each call of a plugin's
     *  slots, on devices that are opened later). 0 means warnings. */
    uint32_t log_level;
    /** (GPUHAL_BACKENDS restricts and reorders it) "rocm,vulkan" means only these backends, in this order, and then
     *  cpu. "-opencl" means all backends except opencl. */
    const char *backends;
    /** (GPUHAL_PLUGIN_PATH, which is searched first) Absolute directories to search before the standard directories,
     *  separated as in PATH: by ':', on Windows by ';'. */
    const char *plugin_path;
    /** Path of the helper program. NULL means gpuhal/gpuhal-helper next to the library, else gpuhal-helper next to the
     *  plugins. Without a helper, only linked-in plugins are probed. */
    const char *helper_path;
    /** (GPUHAL_DEVICES restricts it) Comma-separated list of selectors, see gpuhal_select(); devices that the list
     *  does not name are hidden. A limit after a selector, `cuda:0@8GiB` or `gpu@25%`, sets the initial limit of
     *  gpuhal_device_limit_memory(); the lowest limit applies. `most_free` and `least_loaded` leave only one of the
     *  devices that both lists name: the one with the most free memory or the lowest load when the object is opened.
     *  Drivers are loaded to read these values. */
    const char *devices;
    /** Timeout for a plugin to start and list its devices, in a helper or in this process; 0 means 15 s. */
    uint64_t helper_deadline_ns;
    /** Limit in bytes for this object's allocations on each device; 0 means no limit. See
     *  gpuhal_device_limit_memory(). */
    uint64_t memory_limit_bytes;
    /** Limit in bytes for page-locked staging memory per device and direction; 0 means 16 MiB. At least 64 KiB. */
    uint64_t staging_limit_bytes;
    /** (GPUHAL_STAGING_TOTAL) The same limit for all devices of the process together; 0 means 256 MiB. At least 64
     *  KiB. */
    uint64_t staging_total_bytes;
    /** NULL-terminated list of linked-in plugins, in addition to those compiled into the library. Copied. */
    gpuhal_builtin_fn *const *builtins;
    /** Timeout of a driver call, in addition to the time that the call itself may take. The timeout is ten times as
     *  long while the driver may be compiling a kernel for its first launch; loading a program and creating a kernel
     *  have no limit. After the timeout the call's device is lost (hung) for every other thread, and the calling thread
     *  stays in the driver: see docs/transfers.md, "A driver that hangs". 0 means 30 s; less than 20 ms counts as 20
     *  ms. */
    uint64_t hang_ns;
    /** (GPUHAL_REGISTRY) Absolute directory of the persistent record of this machine (docs/registry.md), or "none" to
     *  keep no record. NULL means gpuhal/ in the user's state directory. */
    const char *registry;
    /** Comma-separated list of plugins, or "all". These plugins are probed again, without their cached results. */
    const char *retry;
    gpuhal_log_fn *log;            /**< NULL means no log, or standard error if GPUHAL_LOG is set. */
    void *log_user;
    /** Only for privileged programs (set-user-id, file capabilities); see SECURITY.md. Not 0 if the program has removed
     *  the user's variables from the environment, for example with clearenv(), so that drivers may be loaded. If 0,
     *  only cpu is used. */
    uint32_t environment_is_clean;
    /** (GPUHAL_OPTIONS, whose entries are appended) Options for plugins, separated by `;`:
     *  "example.memory_mib=64;cpu.devices=5G,6G". If a key occurs twice, the later entry applies. An option that its
     *  plugin does not know causes a warning. Plugins document their options. */
    const char *options;
    /** (GPUHAL_LEDGER) Absolute directory for the records of leases (gpuhal/schedule/lease.h), or "none" for no leases.
     *  NULL means gpuhal/ in the user's runtime directory. */
    const char *ledger;
} gpuhal_config;

/** Finds plugins and lists devices. @p config may be NULL. A plugin that fails affects only itself and leaves a report
 *  (report.h). On a machine without devices the call succeeds with an empty list.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for a bad configuration, environment variable or selector, which the detail
 *  names; NOT_FOUND for an unknown backend name, a device selector that matches nothing, or lists that leave no device;
 *  HOST_MEMORY
 *  Owner: caller, gpuhal_close(). Threads: any. Blocks: yes, until each plugin was probed or its deadline has passed;
 *  with `most_free` or `least_loaded` twice that, and then as long as gpuhal_sample_all(). */
GPUHAL_API gpuhal_status gpuhal_open(const gpuhal_config *config, gpuhal **out_gpuhal);

/** Closes the object; a device is closed as soon as its last buffer is released. Vendor libraries stay loaded.
 *  Remaining objects are logged at level 3 (info): for each device and tag (gpuhal_buffer_set_tag()) the number of
 *  buffers and their bytes, including buffers that only queued work still uses, and pools and stores that were not
 *  destroyed. Callbacks of events, of released memory, and of requests for work slots and leases are still called, even
 *  after this call has returned. Until gpuhal_sampler_destroy(), a sampler's callbacks for earlier samples are still
 *  called. Callbacks of changes are no longer called.
 *  Owner: @p gpu and its device pointers are invalid afterwards, except that a sampler's calls
 *  (gpuhal/node/sampler.h) accept its devices until the sampler is destroyed. Threads: any, with no other call on @p
 *  gpu in progress. Blocks: yes, while all devices close concurrently, at most for hang_ns if drivers hang; also
 *  until a listener of changes that is being called has returned. */
GPUHAL_API void gpuhal_close(gpuhal *gpu);

/** Returns the version of the library at run time, such as "0.2.0".
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
