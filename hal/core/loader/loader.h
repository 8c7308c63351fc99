/* loader/loader.h: the loader's interface for the layers above: it turns directories of files into backends that list
 * devices.
 *
 * gpuhal_loader_run() finds every candidate and leaves one gpuhal_candidate each, in the order of priority, whatever
 * its result. It loads no plugin into this process, unless isolation is off, the plugin is built in, or it is the
 * library's own cpu plugin and no helper can be started. gpuhal_backend_start() loads the plugin when a device is first
 * opened or sampled. All gpuhal objects of the process share the started backends, which are never stopped.
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

/* A plugin that was found. Texts are malloc'ed, NULL when unknown. */
typedef struct gpuhal_candidate {
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    bool decided; /* the state is final; else the candidate is to be probed */
    int32_t priority;
    char *name, *version, *file, *reason, *driver;
    gpuhal_builtin_fn *builtin; /* linked in: no file */
    uint64_t device, inode;     /* of the file, for duplicates; 0, 0: unknown */
    uint64_t time_ns;
    bool isolated;
    bool ignore_environment; /* the plugin may use no library from the environment */
    char *options;           /* the options for it; NULL: none */
    bool own;                /* from the library's own directory */
    bool ambiguous;          /* a duplicate only by the order of file names */
    char *manifest, *libraries, *environment, *watch; /* the manifest's path, and its contributions to the cache key */
    char *identity;    /* of the file, for the registry; NULL: it has no record */
    gpuhal_texts key;  /* key of the cached result; empty: there is none */
    bool cached;   /* the result is from an earlier probe */
    uint64_t probed_at;      /* in seconds since 1970; 0: never */
    uint32_t signal;   /* the signal that ended its helper; 0: none */
    int64_t code;      /* the vendor's, of the call that failed; 0: none, or the result is cached */
    char *output;      /* the last lines of its helper's output */
    char *note;        /* about how long the result is valid; NULL: none */
    gpuhal_listed_devices devices; /* if state is OK: the listed devices; if it is NO_DEVICE: only unlisted ones */
} gpuhal_candidate;

typedef struct gpuhal_candidates {
    gpuhal_candidate *list;
    size_t count, capacity;
    char **notes; /* about the whole search */
    size_t note_count;
    gpuhal_database_plugin *learned; /* results for the registry */
    gpuhal_database_fault *faults;
    size_t learned_count, fault_count;
} gpuhal_candidates;

/* Runs the loader. Fails only for a bad GPUHAL_BACKENDS, a relative path in a list, or without memory. `known`: the
 * registry's database, which is only read; NULL: none. `refresh`: only quarantine is taken from it, and all other
 * plugins are probed. */
gpuhal_status gpuhal_loader_run(const gpuhal_settings *settings, gpuhal_log *log, const gpuhal_database *known,
                                bool refresh, gpuhal_candidates *out_candidates);
void gpuhal_candidates_finish(gpuhal_candidates *candidates);

/* A plugin that was started in this process. */
typedef struct gpuhal_backend gpuhal_backend;

/* Loads, negotiates the ABI, starts and enumerates on a separate thread, once per process and set of options. A second
 * caller waits for the first and gets the same result. A failed start may be tried again. Returns FORKED if a parent of
 * this process started the plugin and it is not fork-safe. Returns TIMEOUT if the plugin exceeds the deadline, and from
 * then on at once, until the plugin returns. */
gpuhal_status gpuhal_backend_start(const gpuhal_candidate *candidate, uint64_t deadline_ns,
                                   gpuhal_backend **out_backend);
const gpuhal_plugin *gpuhal_backend_plugin(const gpuhal_backend *backend);
/* Returns the path of the vendor's library that the plugin opened first; NULL if it opened none. */
const char *gpuhal_backend_driver(const gpuhal_backend *backend);
/* Returns the files of the plugin and its driver in this process. */
const gpuhal_driver_files *gpuhal_backend_files(const gpuhal_backend *backend);
/* Returns the instance that the plugin's start() created; may be NULL. */
gpuhal_plugin_instance *gpuhal_backend_instance(const gpuhal_backend *backend);
/* Returns the newest list of the devices in this process; lists never change and are never freed. */
const gpuhal_listed_devices *gpuhal_backend_devices(const gpuhal_backend *backend);
/* Returns when the plugin first returned that list, by the monotonic clock. The list may lack later changes of the
 * machine. */
uint64_t gpuhal_backend_begun_ns(const gpuhal_backend *backend);
/* Has the plugin list its devices again, unless it has since `since_ns`. Returns OK, also for an empty list. After
 * TIMEOUT or another failure the newest list is kept. */
gpuhal_status gpuhal_backend_refresh(gpuhal_backend *backend, uint64_t since_ns, uint64_t deadline_ns);
/* Returns the candidate's backend if it is ready in this process; NULL otherwise. */
gpuhal_backend *gpuhal_backend_started(const gpuhal_candidate *candidate);

/* Sets `notifier` whenever a plugin announces that its devices changed, until unwatched. */
typedef struct gpuhal_host_watcher {
    struct gpuhal_host_watcher *next;
    intptr_t notifier;
    uint32_t generation; /* fork generation */
} gpuhal_host_watcher;
void gpuhal_host_watch(gpuhal_host_watcher *watcher, intptr_t notifier);
/* Does nothing to a watcher that is not active. */
void gpuhal_host_unwatch(gpuhal_host_watcher *watcher);

/* Returns the host table of this copy of the core. */
const gpuhal_host *gpuhal_host_table(void);
/* Collects facts in `facts`; for sample(). Lies on the caller's stack. */
typedef struct gpuhal_process_list gpuhal_process_list; /* loader/processes.h */
struct gpuhal_sink {
    gpuhal_facts *facts;            /* the place for facts now; NULL: facts are dropped */
    gpuhal_listed_devices *devices; /* during enumerate(): device() adds here; else NULL */
    gpuhal_process_list *processes; /* during processes(); else NULL */
    const void *listener;           /* gpuhal_direct_listener, instead of the three above; else NULL */
    char source[GPUHAL_SOURCE_BYTES]; /* of the next facts */
    /* locked around each fact, since another thread may take the facts so far; NULL: no other thread does */
    gpuhal_mutex *mutex;
    bool closed;                    /* that thread has taken them: later facts are dropped */
    char problem[160];              /* the first rule that the plugin broke; "": none */
};

#endif
