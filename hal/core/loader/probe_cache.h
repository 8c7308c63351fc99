/* loader/probe_cache.h: results of probes that outlast the process: which ones are valid now, and which ones are new.
 *
 *     cached result                            effect on the plugin
 *     OK, NO_PERMISSION, INCOMPATIBLE          the same again, without a probe
 *     NO_DRIVER, NO_DEVICE                     the same again if the manifest names something to watch
 *     it crashed, exited, sent rubbish         QUARANTINED, not run
 *     it timed out                             QUARANTINED; probed once more if it had listed devices before
 *     its process was killed, maybe by others  it is probed; QUARANTINED if that happens twice in a row
 *     FAILED otherwise: it returned an error   it is probed
 *     none, or under another key               it is probed
 *
 * A failure of the cpu plugin, and any failure in a restricted process (gpuhal_os_is_limited), is not cached.
 *
 * The cache key has the files, variables and state of the machine in registry/key.h. A manifest adds to them:
 * `environment` names variables, `watch` files and folders. `$NAME` at the beginning of these stands for each path in
 * that variable.
 */
#ifndef GPUHAL_LOADER_PROBE_CACHE_H
#define GPUHAL_LOADER_PROBE_CACHE_H

#include "loader/loader.h"
#include "registry/key.h"

/* The input of one run of the loader. The members after the first five begin as zero. */
typedef struct gpuhal_probe_cache {
    const gpuhal_settings *settings;
    gpuhal_log *log;
    const gpuhal_database *known; /* NULL: nothing is cached, now or later */
    bool refresh;                 /* only quarantine is read */
    gpuhal_candidates *candidates;
    gpuhal_texts machine; /* made on first use */
    bool machine_made;
    gpuhal_key_seen *seen; /* used while cached results are looked for; probing takes long. NULL without memory */
} gpuhal_probe_cache;
void gpuhal_probe_cache_finish(gpuhal_probe_cache *cache);

/* Decides the candidate if the registry has a valid result. Sets the identity of its file. Returns OK or
 * HOST_MEMORY. */
gpuhal_status gpuhal_probe_cache_recall(gpuhal_probe_cache *cache, gpuhal_candidate *candidate);

/* Adds notes on names in settings.retry that no candidate has. */
void gpuhal_probe_cache_check_retry(const gpuhal_probe_cache *cache);

/* The result of probing a plugin in a helper, besides the candidate's own members. */
typedef struct gpuhal_probe_result {
    bool unruly;        /* it crashed, exited, hung or sent rubbish: it is not run again */
    bool doubtful;      /* another process may have caused the fault: the plugin is run once more */
    uint32_t fault;     /* gpuhal_fault_kind; 0: none */
    gpuhal_status status;
    const gpuhal_texts *mapped;             /* executable mappings of the helper */
    const gpuhal_texts *output;
    const gpuhal_listed_devices *devices;   /* only completely sent devices */
} gpuhal_probe_result;
/* Adds the new result to the candidates, unless the registry has it. A result that lacks memory is not cached. */
void gpuhal_probe_cache_learn(gpuhal_probe_cache *cache, gpuhal_candidate *candidate,
                              const gpuhal_probe_result *result);

/* Makes the record of a candidate that lists these devices, under the candidate's key. It must be finished in any case.
 * Returns false without memory. */
bool gpuhal_probe_cache_record(const gpuhal_candidate *candidate, const gpuhal_listed_devices *devices,
                               gpuhal_database_plugin *out_record);
/* Returns whether the candidate's key is current: a process that changes its own environment has another key. */
bool gpuhal_probe_cache_is_valid(const gpuhal_settings *settings, const gpuhal_candidate *candidate);
/* Returns whether both have the same result, at any time. */
bool gpuhal_probe_cache_same(const gpuhal_database_plugin *known, const gpuhal_database_plugin *record);

#endif
