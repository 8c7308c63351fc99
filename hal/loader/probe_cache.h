/* loader/probe_cache.h: verdicts that outlast the process: what is known of a plugin under the circumstances of now, and what is learned.
 *
 *     known                                                     what becomes of the plugin
 *     OK, NO_PERMISSION, INCOMPATIBLE                           the same again, without asking it
 *     NO_DRIVER, NO_DEVICE                                      the same again where the manifest names something to watch
 *     it crashed, exited, sent rubbish                          QUARANTINED, not run
 *     it did not answer                                         QUARANTINED; met once more where it had listed devices before
 *     its process was killed, maybe by others                   it is met; QUARANTINED when that happens twice in a row
 *     FAILED otherwise: it answered that it failed              it is met
 *     nothing, or under other circumstances                     it is met
 *
 * A failure of the cpu plugin, and any that a limited process saw (gpuhal_os_is_limited), is not kept.
 *
 * Circumstances are the files, variables and state of the machine in registry/key.h. A manifest adds to them: `environment` names
 * variables, `watch` files and folders, where `$NAME` at the beginning stands for each path in that variable.
 */
#ifndef GPUHAL_LOADER_PROBE_CACHE_H
#define GPUHAL_LOADER_PROBE_CACHE_H

#include "loader/loader.h"

/* What one run of the loader goes by. Zero-initialised but for the first five members is ready. */
typedef struct gpuhal_probe_cache {
    const gpuhal_settings *settings;
    gpuhal_log *log;
    const gpuhal_database *known; /* NULL: nothing is remembered, and nothing will be */
    bool afresh;                 /* only quarantine is recalled */
    gpuhal_candidates *candidates;
    gpuhal_texts machine; /* made when it is first needed */
    bool machine_made;
} gpuhal_probe_cache;
void gpuhal_probe_cache_finish(gpuhal_probe_cache *cache);

/* Decides the candidate where the registry can. Leaves the identity of its file in it. OK or HOST_MEMORY. */
gpuhal_status gpuhal_probe_cache_recall(gpuhal_probe_cache *cache, gpuhal_candidate *candidate);

/* Remarks on names in settings.retry that no candidate has. */
void gpuhal_probe_cache_check_retry(const gpuhal_probe_cache *cache);

/* What meeting a plugin in a helper came to, besides what stands in the candidate. */
typedef struct gpuhal_probe_result {
    bool unruly;        /* it crashed, exited, hung or sent rubbish: it is not run again */
    bool doubtful;      /* that may have been somebody else's doing: it is run once more */
    uint32_t fault;     /* gpuhal_fault_kind; 0: none */
    gpuhal_status status;
    const gpuhal_texts *mapped;             /* files with code in the helper's memory */
    const gpuhal_texts *output;
    const gpuhal_listed_devices *devices;   /* those that it told of completely */
} gpuhal_probe_result;
/* Adds what was learned to the candidates, unless it is known already. What there is no memory for is not remembered. */
void gpuhal_probe_cache_learn(gpuhal_probe_cache *cache, gpuhal_candidate *candidate, const gpuhal_probe_result *result);

/* The record of a candidate that lists these devices, under the circumstances that stand in it. Finish it, whatever the answer: false
 * without memory. */
bool gpuhal_probe_cache_record(const gpuhal_candidate *candidate, const gpuhal_listed_devices *devices, gpuhal_database_plugin *out_record);
/* Whether the circumstances that stand in the candidate are those of now: who changes its own environment is under others. */
bool gpuhal_probe_cache_is_valid(const gpuhal_settings *settings, const gpuhal_candidate *candidate);
/* Whether both say the same, whenever it was. */
bool gpuhal_probe_cache_same(const gpuhal_database_plugin *known, const gpuhal_database_plugin *record);

#endif
