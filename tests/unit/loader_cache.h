/* tests/unit/loader_cache.h: common code for tests of cached results. The code simulates program starts, which read and
 * write a registry, and copies plugins, which tests can change. */
#ifndef LOADER_CACHE_H
#define LOADER_CACHE_H

#include "loader_support.h"
#include "registry/fields.h"
#include "registry/registry.h"

/* The longest wait for the lock, with 32 concurrent processes on a slow machine. */
#define PATIENCE_NS UINT64_C(120000000000)

/* Simulates a program start: reads the registry, probes plugins, and writes the results. The caller finishes the
 * candidates. */
UNUSED_HELPER gpuhal_candidates start(const gpuhal_settings *settings, gpuhal_log *log)
{
    gpuhal_candidates candidates;
    gpuhal_registry *registry = gpuhal_registry_create(in_folder("state"), PATIENCE_NS, NULL);
    assert_non_null(registry);
    gpuhal_snapshot *known = gpuhal_registry_snapshot(registry);
    assert_int_equal(gpuhal_loader_run(settings, log, &known->database, false, &candidates), GPUHAL_OK);
    gpuhal_snapshot_release(known);
    gpuhal_changes changes = {.now = gpuhal_os_wall_clock(),
                              .plugins = candidates.learned,
                              .plugin_count = candidates.learned_count,
                              .faults = candidates.faults,
                              .fault_count = candidates.fault_count};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    return candidates;
}

UNUSED_HELPER gpuhal_settings once(void)
{
    gpuhal_settings settings = own_settings();
    settings.isolation = GPUHAL_ISOLATION_ONCE;
    return settings;
}

UNUSED_HELPER gpuhal_settings without_helper(void)
{
    gpuhal_settings settings = once();
    settings.helper_path = (char *)"/nonexistent/gpuhal-helper";
    return settings;
}

/* Copies a plugin into the folder and writes its manifest, so that tests can change both files. */
UNUSED_HELPER void own_plugin(const char *name, const char *more)
{
    char file[64], manifest[64];
    snprintf(file, sizeof file, "gpuhal-%s.so", name);
    snprintf(manifest, sizeof manifest, "%s.gpuhal", name);
    copy_file(test_plugin(name), in_folder(file));
    write_manifest(manifest, name, file, more);
}

UNUSED_HELPER gpuhal_candidate *candidate_of(const gpuhal_candidates *candidates, const char *name)
{
    gpuhal_candidate *candidate = (gpuhal_candidate *)find_candidate(candidates, name);
    assert_non_null(candidate);
    return candidate;
}

/* Simulates a start, and returns whether the plugin's result came from the cache. */
UNUSED_HELPER bool result_is_cached(const gpuhal_settings *settings, const char *name, gpuhal_plugin_state state)
{
    gpuhal_candidates candidates = start(settings, NULL);
    const gpuhal_candidate *candidate = candidate_of(&candidates, name);
    if (candidate->state != state) {
        print_candidates(&candidates);
        fail_msg("another state");
    }
    bool cached = candidate->cached;
    assert_true(cached == (candidate->time_ns == 0));
    gpuhal_candidates_finish(&candidates);
    return cached;
}

#endif
