/* base/config.h: the settings, merged from defaults, gpuhal_config and the environment; the table of environment
 * variables. */
#ifndef GPUHAL_BASE_CONFIG_H
#define GPUHAL_BASE_CONFIG_H

#include <gpuhal/instance.h>

#include <stdbool.h>

/* Maximum size of GPUHAL_SYSTEM_ROOT, including the terminating 0. */
#define GPUHAL_SYSTEM_ROOT_BYTES 256u

/* Strings are malloc'ed copies; NULL means not set. */
typedef struct gpuhal_settings {
    char *backends, *environment_backends; /* from gpuhal_config, and from GPUHAL_BACKENDS, which restricts it */
    char *plugin_path;      /* list of directories from gpuhal_config */
    char *environment_plugin_path; /* GPUHAL_PLUGIN_PATH, searched first */
    char *user_plugin_directory; /* directory of the user's plugins; may be NULL */
    char *helper_path;
    char *devices, *environment_devices; /* from gpuhal_config, and from GPUHAL_DEVICES, which restricts it */
    char *decision; /* why values, such as free memory, selected the device in gpuhal_open(); may be NULL */
    char *registry;         /* absolute directory of the registry; NULL disables it */
    char *program_cache;    /* absolute directory of compiled programs; NULL disables the cache */
    uint64_t program_cache_bytes; /* maximum size of the program cache */
    char *pool_trace;       /* absolute file name; may be NULL */
    char *trace;            /* like pool_trace, for queues */
    char *ledger;           /* absolute directory of leases, or "none"; NULL for the default */
    uint64_t lease;         /* number of the lease that a parent holds for this process; 0 if none */
    char *options;          /* plugin options, see base/options.h */
    /* replaces `/` for /sys, /proc and /dev; "" for the real root */
    char system_root[GPUHAL_SYSTEM_ROOT_BYTES];
    uint32_t isolation; /* GPUHAL_ISOLATION_ALWAYS, _ONCE or _NEVER */
    char *retry;        /* comma-separated list of plugins to be probed without cached results, or "all" */
    bool ignore_environment; /* set if requested, or if the process is privileged */
    bool environment_is_clean; /* drivers may be loaded in a privileged process */
    uint32_t log_level;
    bool log_to_stderr;     /* GPUHAL_LOG is set and the application has no listener */
    bool pool_check; /* enables checking mode in every pool */
    uint64_t helper_deadline_ns, hang_ns, memory_limit_bytes, staging_limit_bytes, staging_total_bytes;
    gpuhal_builtin_fn *const *builtins; /* NULL-terminated, malloc'ed */
    gpuhal_log_fn *log;
    void *log_user;
} gpuhal_settings;

gpuhal_status gpuhal_settings_make(const gpuhal_config *given, gpuhal_settings *out_settings);
void gpuhal_settings_finish(gpuhal_settings *settings);
/* Returns the names of variables that are set but were ignored ("GPUHAL_A, GPUHAL_B"), malloc'ed; NULL if there are
 * none. */
char *gpuhal_settings_ignored(const gpuhal_settings *settings);

/* Returns the name of a variable, in alphabetical order; NULL past the last. */
const char *gpuhal_variable_name(uint32_t index);
const char *gpuhal_variable_meaning(uint32_t index);

#endif
