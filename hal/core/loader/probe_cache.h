/* loader/probe_cache.h: probe results that outlast the process. Decides which cached results are valid, and which new
 * results are stored.
 *
 *     cached result                            effect on the plugin
 *     OK, NO_PERMISSION, INCOMPATIBLE          the result is reused without a probe
 *     NO_DRIVER, NO_DEVICE                     reused if the manifest watches something, otherwise probed
 *     crashed, exited or sent invalid data     QUARANTINED, not run
 *     timed out                                QUARANTINED; probed again if the deadline is longer now, and once more
 *                                              if the plugin had listed devices before
 *     killed, possibly by another process      probed; QUARANTINED after the same signal twice in a row
 *     FAILED with an error from the plugin     probed
 *     none, or with another key                probed
 *
 * Failures of the cpu plugin or in a restricted process (gpuhal_os_is_limited) are not cached.
 *
 * The cache key consists of files, variables and the machine's state; registry/key.h lists them. A manifest can add
 * variables (`environment`) and files and folders (`watch`). A leading `$NAME` in `watch` is replaced by each path in
 * that variable.
 */
#ifndef GPUHAL_LOADER_PROBE_CACHE_H
#define GPUHAL_LOADER_PROBE_CACHE_H

#include "loader/loader.h"
#include "registry/key.h"

/* The input of one run of the loader. The members after the first five must be zero. */
typedef struct gpuhal_probe_cache {
    const gpuhal_settings *settings;
    gpuhal_log *log;
    const gpuhal_database *known; /* NULL disables the cache */
    bool refresh;                 /* only quarantined results are used */
    gpuhal_candidates *candidates;
    gpuhal_texts machine; /* created on first use */
    bool machine_made;
    gpuhal_key_seen *seen; /* used only while looking up results; NULL before that, or if out of memory */
} gpuhal_probe_cache;
void gpuhal_probe_cache_finish(gpuhal_probe_cache *cache);

/* Decides the candidate if the registry has a valid result. Sets the identity of the candidate's file. Returns OK or
 * HOST_MEMORY. */
gpuhal_status gpuhal_probe_cache_recall(gpuhal_probe_cache *cache, gpuhal_candidate *candidate);

/* Adds a note for each name in settings.retry that no candidate has. */
void gpuhal_probe_cache_check_retry(const gpuhal_probe_cache *cache);

/* The result of probing a plugin in a helper, without the part that is stored in the candidate. */
typedef struct gpuhal_probe_result {
    bool unruly;        /* the plugin crashed, exited, hung or sent invalid data, and must not run again */
    bool doubtful;      /* another process may have caused the fault, so the plugin is run once more */
    uint32_t fault;     /* a gpuhal_fault_kind; 0 if none */
    gpuhal_status status;
    const gpuhal_texts *mapped;             /* the helper's executable mappings */
    const gpuhal_texts *output;
    const gpuhal_listed_devices *devices;   /* completely received devices only */
} gpuhal_probe_result;
/* Adds a new result to the candidates, unless the registry already has it. If out of memory, the result is not
 * cached. */
void gpuhal_probe_cache_learn(gpuhal_probe_cache *cache, gpuhal_candidate *candidate,
                              const gpuhal_probe_result *result);

/* Makes a record with the candidate's key and these devices. The record must be finished in any case. Returns false if
 * out of memory. */
bool gpuhal_probe_cache_record(const gpuhal_candidate *candidate, const gpuhal_listed_devices *devices,
                               gpuhal_database_plugin *out_record);
/* Returns whether the candidate's key is current. A process that changes its own environment changes the key. */
bool gpuhal_probe_cache_is_valid(const gpuhal_settings *settings, const gpuhal_candidate *candidate);
/* Returns whether both records have the same result, regardless of when it was obtained. */
bool gpuhal_probe_cache_same(const gpuhal_database_plugin *known, const gpuhal_database_plugin *record);

#endif
