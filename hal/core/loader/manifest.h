/* loader/manifest.h: NAME.gpuhal, the small text beside a plugin, read before any of the plugin's code is loaded. */
#ifndef GPUHAL_LOADER_MANIFEST_H
#define GPUHAL_LOADER_MANIFEST_H

#include "loader/load_context.h"

#include <stdbool.h>
#include <stdint.h>

#define GPUHAL_MANIFEST_BYTES_MAX (64u << 10)

/* Texts are malloc'ed. */
typedef struct gpuhal_manifest {
    char *name;
    char *library;   /* absolute, maybe with symbolic links */
    char *abi;       /* as written: versions separated by blanks */
    char *platforms; /* as written: words; NULL: every platform */
    char *environment; /* as written: variables that the result depends on; NULL: none */
    char *libraries;   /* as written: sonames of the vendor's libraries; NULL: none */
    char *watch;       /* as written: files and folders, with variables in them (probe_cache.h) */
    bool speaks_abi; /* one of the versions is this library's */
    bool has_priority;
    int32_t priority;
} gpuhal_manifest;

/* Runs stage MANIFEST. A relative `library` is taken from the manifest's own directory, unless `absolute_only`. Members
 * that were read before an error are kept in *out_manifest, for the report. It must be finished in any case. */
bool gpuhal_manifest_read(gpuhal_load_context *load, const char *path, bool absolute_only,
                          gpuhal_manifest *out_manifest);
void gpuhal_manifest_finish(gpuhal_manifest *manifest);
/* Returns whether the manifest is for this platform. */
bool gpuhal_manifest_has_platform(const gpuhal_manifest *manifest, const char *platform);

#endif
