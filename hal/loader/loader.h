/* loader/loader.h: from directories full of files to backends that list devices. What the layers above see of the loader.
 *
 * gpuhal_loader_run() finds every candidate and leaves one gpuhal_candidate each, in the order of priority, whatever became of it.
 * Nothing of a plugin is loaded into this process by it, unless isolation is off or the plugin is built in, or it is the library's own
 * cpu plugin and no helper can be started. gpuhal_backend_start() loads it, when a device is first opened or sampled. Started backends
 * are shared by all gpuhal objects of the process and live for ever.
 */
#ifndef GPUHAL_LOADER_H
#define GPUHAL_LOADER_H

#include "core/config.h"
#include "core/listed.h"
#include "core/log.h"
#include "os/os.h"
#include "registry/database.h"

#include <gpuhal/plugin.h>
#include <gpuhal/report.h>

/* A plugin that was found. Texts are malloc'ed, NULL when unknown. */
typedef struct gpuhal_candidate {
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    bool decided; /* the state is final; else nothing speaks against meeting it */
    int32_t priority;
    char *name, *version, *file, *reason, *driver;
    gpuhal_builtin_fn *builtin; /* linked in: no file */
    uint64_t device, inode;     /* of the file, for duplicates; 0, 0: unknown */
    uint64_t time_ns;
    bool isolated;
    bool ignore_environment; /* the plugin gets no library from the environment */
    char *options;           /* those of the settings that are for it; NULL: none */
    bool own;                /* from the library's own directory */
    char *manifest, *libraries, *environment, *watch; /* the manifest's path, and what it says that the answers depend on */
    char *identity;    /* of the file, for the registry; NULL: nothing is remembered of it */
    gpuhal_texts key;  /* the circumstances of the verdict that is remembered; empty: none is */
    bool cached;   /* the verdict is from an earlier meeting */
    uint64_t probed_at;      /* when, in seconds since 1970; 0: it was not */
    uint32_t signal;   /* that ended its helper; 0: none */
    char *output;      /* the last lines that its helper printed */
    char *note;        /* on how long the verdict is good; NULL: nothing to say */
    gpuhal_listed_devices devices; /* when state is OK */
} gpuhal_candidate;

typedef struct gpuhal_candidates {
    gpuhal_candidate *list;
    size_t count, capacity;
    char **remarks; /* sentences about the whole search */
    size_t remark_count;
    gpuhal_database_plugin *learned; /* verdicts for the registry */
    gpuhal_database_fault *faults;
    size_t learned_count, fault_count;
} gpuhal_candidates;

/* Fails only for a bad GPUHAL_BACKENDS, a relative path in a list, or without memory. `known` is what the registry holds, NULL for
 * nothing; it is only read meanwhile. `afresh`: only what is quarantined counts of it, all others are met. */
gpuhal_status gpuhal_loader_run(const gpuhal_settings *settings, gpuhal_log *log, const gpuhal_database *known, bool afresh,
                                gpuhal_candidates *out_candidates);
void gpuhal_candidates_finish(gpuhal_candidates *candidates);

/* A plugin that is loaded and started in this process. */
typedef struct gpuhal_backend gpuhal_backend;

/* Loads, shakes hands, starts and enumerates, once per process and set of options, on a thread of its own; a second
 * caller waits for the first and gets the same answer, a failed start may be tried again. FORKED when the backend was
 * started before a fork and is not fork-safe. TIMEOUT when the plugin does not come back in time, and from then on at
 * once, until it does. */
gpuhal_status gpuhal_backend_start(const gpuhal_candidate *candidate, uint64_t deadline_ns, gpuhal_backend **out_backend);
const gpuhal_plugin *gpuhal_backend_plugin(const gpuhal_backend *backend);
/* Path of the vendor's library that the plugin opened first; NULL for none. */
const char *gpuhal_backend_driver(const gpuhal_backend *backend);
/* What its start() made; may be NULL. */
gpuhal_plugin_instance *gpuhal_backend_instance(const gpuhal_backend *backend);
/* The devices as listed in this process, newest listing; each listing is immutable and stays for ever. */
const gpuhal_listed_devices *gpuhal_backend_devices(const gpuhal_backend *backend);
/* When the plugin first said that, by the monotonic clock: it may know nothing that happened to the machine since. */
uint64_t gpuhal_backend_begun_ns(const gpuhal_backend *backend);
/* Has the plugin list again, unless it did since then. OK, also for an empty list; TIMEOUT, or why it failed: then the newest listing stays. */
gpuhal_status gpuhal_backend_refresh(gpuhal_backend *backend, uint64_t since_ns, uint64_t deadline_ns);
/* The candidate's backend if it works in this process already; NULL otherwise. */
gpuhal_backend *gpuhal_backend_started(const gpuhal_candidate *candidate);
/* The fork generation in which it was started, or 0 when it works in every generation: to compare on the fast path. */
uint32_t gpuhal_backend_generation(const gpuhal_backend *backend);

/* Has `notifier` set whenever a plugin announces that its devices changed, until unwatched. */
typedef struct gpuhal_host_watcher {
    struct gpuhal_host_watcher *next;
    intptr_t notifier;
    uint32_t generation; /* fork generation */
} gpuhal_host_watcher;
void gpuhal_host_watch(gpuhal_host_watcher *watcher, intptr_t notifier);
/* Does nothing to one that does not watch. */
void gpuhal_host_unwatch(gpuhal_host_watcher *watcher);

/* The host table of this copy of the core. */
const gpuhal_host *gpuhal_host_table(void);
/* A sink that fills `facts`; for sample(). Lives on the caller's stack. */
struct gpuhal_sink {
    gpuhal_facts *facts;            /* where facts go now; NULL: nowhere */
    gpuhal_listed_devices *devices; /* enumerating: device() adds here; else NULL */
    const void *listener;           /* gpuhal_direct_listener, instead of the two above; else NULL */
    gpuhal_mutex *mutex;            /* taken around each fact, since another thread may take what came so far; NULL: none does */
    bool closed;                    /* that thread has taken it: what still comes is dropped */
    char problem[160];              /* first rule that the plugin broke, "" when none */
};

#endif
