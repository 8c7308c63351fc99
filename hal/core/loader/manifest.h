/* loader/manifest.h: reads NAME.gpuhal, the small text file beside a plugin, before any of the plugin's code is
 * loaded. */
#ifndef GPUHAL_LOADER_MANIFEST_H
#define GPUHAL_LOADER_MANIFEST_H

#include "loader/load_context.h"

#include <stdbool.h>
#include <stdint.h>

#define GPUHAL_MANIFEST_BYTES_MAX (64u << 10)

/* Strings are malloc'ed, or NULL if absent. All except `library`, `environment` and `settings` are the file's values,
 * with escapes resolved. */
typedef struct gpuhal_manifest {
    char *name;
    char *library;   /* absolute; may contain symbolic links */
    char *abi;       /* versions separated by blanks */
    char *platforms; /* keywords; NULL means every platform */
    char *environment; /* variables that affect the result */
    char *settings;    /* words NAME=VALUE: the values with which the driver must start */
    char *libraries;   /* sonames of the vendor's libraries */
    char *watch;       /* files and folders, which may contain variables (probe_cache.h) */
    bool speaks_abi; /* `abi` includes a version that this library takes */
    bool has_priority;
    int32_t priority;
} gpuhal_manifest;

/* Runs stage MANIFEST. A relative `library` is resolved against the manifest's directory, or refused if
 * `absolute_only`. After an error *out_manifest keeps the members read so far, for the report. *out_manifest must be
 * finished in any case. */
bool gpuhal_manifest_read(gpuhal_load_context *load, const char *path, bool absolute_only,
                          gpuhal_manifest *out_manifest);
void gpuhal_manifest_finish(gpuhal_manifest *manifest);
/* Calls `take` for each of the settings. Returns false if out of memory. */
bool gpuhal_manifest_each_setting(const char *settings,
                                  void (*take)(void *user, const char *name, const char *value), void *user);
bool gpuhal_manifest_has_platform(const gpuhal_manifest *manifest, const char *platform);

#endif
