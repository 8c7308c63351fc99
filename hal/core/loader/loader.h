/* loader/loader.h: the loader's interface for the layers above. The loader finds plugins in directories, and turns them
 * into backends that list devices.
 *
 * gpuhal_loader_run() returns one gpuhal_candidate for each plugin that it finds, in order of priority, regardless of
 * the result. It loads a plugin into this process only if isolation is off, the plugin is built in, or it is the
 * library's own cpu plugin and no helper can be started. All other plugins are loaded by gpuhal_backend_start() when a
 * device is first opened or sampled. All gpuhal objects of the process share the started backends, which are never
 * stopped.
 */
#ifndef GPUHAL_LOADER_H
#define GPUHAL_LOADER_H

#include "base/config.h"
#include "base/listed.h"
#include "base/log.h"
#include "loader/driver_files.h"
#include "os/os.h"
#include "registry/database.h"

#include <gpuhal/plugin.h>
#include <gpuhal/report.h>

/* A plugin that was found. Strings are malloc'ed; NULL if unknown. */
typedef struct gpuhal_candidate {
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    bool decided; /* the state is final; otherwise the candidate still has to be probed */
    int32_t priority;
    char *name, *version, *file, *reason, *driver;
    gpuhal_builtin_fn *builtin; /* if set, the plugin is linked in and has no file */
    uint64_t device, inode;     /* identify the file, to detect duplicates; both 0 if unknown */
    uint64_t time_ns;
    bool isolated;
    bool ignore_environment; /* the plugin must not use a library named in the environment */
    char *options;           /* NULL if none */
    bool own;                /* the plugin is in this library's own directory */
    bool ambiguous;          /* the plugin is a duplicate only because of the order of file names */
    char *manifest, *libraries, *environment, *watch; /* the manifest's path, and its contributions to the cache key */
    char *settings; /* of the manifest: words NAME=VALUE, which the driver needs in the environment; NULL if none */
    char *identity;                /* identity of the file for the registry; NULL if no result is recorded */
    gpuhal_texts key;              /* cache key of the result; empty if none */
    bool cached;                   /* the result is from an earlier probe */
    uint64_t probed_at;            /* in seconds since 1970; 0 if never */
    uint32_t signal;               /* the signal that terminated its helper; 0 if none */
    int64_t code;                  /* the vendor's code of the failed call; 0 if none or if cached */
    char *output;                  /* the last lines of its helper's output */
    char *note;                    /* a note about how long the result is valid; NULL if none */
    gpuhal_listed_devices devices; /* with state OK, the listed devices; with NO_DEVICE, only unlisted devices */
} gpuhal_candidate;

typedef struct gpuhal_candidates {
    gpuhal_candidate *list;
    size_t count, capacity;
    char **notes; /* notes about the whole search */
    size_t note_count;
    gpuhal_database_plugin *learned; /* results to be stored in the registry */
    gpuhal_database_fault *faults;
    size_t learned_count, fault_count;
} gpuhal_candidates;

/* Runs the loader. Fails only for an invalid list of backends or paths, for a relative path, or if out of memory.
 * `known` is the registry's database, which is not changed, or NULL. With `refresh`, only quarantined results are read
 * from the database, and all other plugins are probed. */
gpuhal_status gpuhal_loader_run(const gpuhal_settings *settings, gpuhal_log *log, const gpuhal_database *known,
                                bool refresh, gpuhal_candidates *out_candidates);
void gpuhal_candidates_finish(gpuhal_candidates *candidates);

typedef struct gpuhal_backend gpuhal_backend;

/* Loads the plugin, negotiates the ABI, starts the plugin and lists its devices, once per process and set of options.
 * This runs on a separate thread; only the library's own cpu plugin may start on the caller's. A concurrent caller
 * waits for the first caller and gets the same result. A failed start may be retried. Returns FORKED if a parent
 * process started the plugin and the plugin is not fork-safe. Returns TIMEOUT if the plugin exceeds the deadline. Until
 * the plugin's call has returned, later calls return TIMEOUT immediately. */
gpuhal_status gpuhal_backend_start(const gpuhal_candidate *candidate, uint64_t deadline_ns,
                                   gpuhal_backend **out_backend);
const gpuhal_plugin *gpuhal_backend_plugin(const gpuhal_backend *backend);
/* Returns the path of the first vendor library that the plugin opened; NULL if it opened none. */
const char *gpuhal_backend_driver(const gpuhal_backend *backend);
const gpuhal_driver_files *gpuhal_backend_files(const gpuhal_backend *backend);
/* Returns the instance that the plugin's start() created; may be NULL. */
gpuhal_plugin_instance *gpuhal_backend_instance(const gpuhal_backend *backend);
/* Returns the newest list of devices in this process. A list never changes and is never freed. */
const gpuhal_listed_devices *gpuhal_backend_devices(const gpuhal_backend *backend);
/* Returns the monotonic start time of the first plugin call that returned this list. The list may not include later
 * changes of the hardware. */
uint64_t gpuhal_backend_begun_ns(const gpuhal_backend *backend);
/* Makes the plugin list its devices again, unless it has done so after `since_ns`. Returns OK for an empty list as
 * well. After TIMEOUT or another failure the newest list is kept. */
gpuhal_status gpuhal_backend_refresh(gpuhal_backend *backend, uint64_t since_ns, uint64_t deadline_ns);
/* Returns the candidate's backend if the backend is ready in this process, otherwise NULL. */
gpuhal_backend *gpuhal_backend_started(const gpuhal_candidate *candidate);

/* Signals `notifier` whenever a plugin reports that its devices changed, until gpuhal_host_unwatch() is called. */
typedef struct gpuhal_host_watcher {
    struct gpuhal_host_watcher *next;
    intptr_t notifier;
    uint32_t generation; /* fork generation */
} gpuhal_host_watcher;
void gpuhal_host_watch(gpuhal_host_watcher *watcher, intptr_t notifier);
/* Does nothing if the watcher is not active. */
void gpuhal_host_unwatch(gpuhal_host_watcher *watcher);

const gpuhal_host *gpuhal_host_table(void);
/* Receives the data that plugins report during sample() and other calls. Part of a query (loader/query.c), or on the
 * caller's stack. */
typedef struct gpuhal_process_list gpuhal_process_list; /* loader/processes.h */
struct gpuhal_sink {
    gpuhal_facts *facts;              /* the current store for facts; without one, a fact breaks a rule */
    gpuhal_listed_devices *devices;   /* list that device() extends during enumerate(); otherwise NULL */
    gpuhal_process_list *processes;   /* list that receives processes during processes(); otherwise NULL */
    const void *listener;             /* a gpuhal_direct_listener in place of the three members above, or NULL */
    char source[GPUHAL_SOURCE_BYTES]; /* source of the facts that follow */
    /* locked while a fact is added, if another thread may take the facts received so far; otherwise NULL */
    gpuhal_mutex *mutex;
    bool closed;       /* the facts have been taken, so further facts are dropped */
    char problem[160]; /* the first rule that the plugin broke; "" if none */
};

#endif
