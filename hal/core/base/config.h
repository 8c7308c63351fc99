/* base/config.h: the settings, made of defaults, the application's structure and the environment; and the only table of
 * environment variables. */
#ifndef GPUHAL_BASE_CONFIG_H
#define GPUHAL_BASE_CONFIG_H

#include <gpuhal/instance.h>

#include <stdbool.h>

/* The longest GPUHAL_SYSTEM_ROOT, with its 0. */
#define GPUHAL_SYSTEM_ROOT_BYTES 256u

/* Texts are malloc'ed copies; NULL if nothing was set. */
typedef struct gpuhal_settings {
    char *backends, *environment_backends; /* the member, and GPUHAL_BACKENDS, which narrows it */
    char *plugin_path;      /* the member: a list of directories */
    char *environment_plugin_path; /* GPUHAL_PLUGIN_PATH: searched before it */
    char *user_plugin_directory; /* the user's own; NULL: none */
    char *helper_path;
    char *devices, *environment_devices; /* the member, and GPUHAL_DEVICES, which narrows it */
    char *decision; /* the value that decided which one device these name; NULL: none */
    char *registry;         /* absolute directory of the persistent record; NULL: none */
    char *program_cache;    /* absolute directory of compiled programs; NULL: none */
    uint64_t program_cache_bytes; /* the limit of that directory */
    char *pool_trace;       /* absolute file; NULL: none */
    char *trace;            /* the same, of queues */
    char *ledger;           /* absolute directory of leases, or "none"; NULL: the user's own */
    uint64_t lease;         /* number of the lease that a parent holds for this process; 0: none */
    char *options;          /* for plugins, see base/options.h */
    /* replaces `/` when /sys, /proc and /dev are read; "": the machine's own */
    char system_root[GPUHAL_SYSTEM_ROOT_BYTES];
    uint32_t isolation; /* GPUHAL_ISOLATION_ALWAYS, _ONCE or _NEVER */
    char *retry;        /* comma list of plugins that are probed without cached results, or "all" */
    bool ignore_environment; /* requested, or the process is privileged */
    bool environment_is_clean; /* of a privileged process: drivers may be loaded */
    uint32_t log_level;
    bool log_to_stderr;     /* GPUHAL_LOG is set and the application has no listener */
    bool pool_check; /* every pool is in checking mode */
    uint64_t helper_deadline_ns, hang_ns, memory_limit_bytes, staging_limit_bytes, staging_total_bytes;
    gpuhal_builtin_fn *const *builtins; /* NULL-ended, malloc'ed */
    gpuhal_log_fn *log;
    void *log_user;
} gpuhal_settings;

gpuhal_status gpuhal_settings_make(const gpuhal_config *given, gpuhal_settings *out_settings);
void gpuhal_settings_finish(gpuhal_settings *settings);
/* Returns "GPUHAL_A, GPUHAL_B": the variables that are set and were not read, malloc'ed; NULL if there are none. */
char *gpuhal_settings_ignored(const gpuhal_settings *settings);

/* Returns the names of environment variables in alphabetical order; NULL past the last. */
const char *gpuhal_variable_name(uint32_t index);
const char *gpuhal_variable_meaning(uint32_t index);

#endif
