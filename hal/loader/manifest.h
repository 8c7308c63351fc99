/* loader/manifest.h: NAME.gpuhal, the small text beside a plugin, read before anything of the plugin is touched. */
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
    char *platforms; /* likewise: words; NULL: every platform */
    char *environment; /* likewise: variables that the answers depend on; NULL: none */
    char *libraries;   /* likewise: sonames of the vendor's; NULL: none */
    char *watch;       /* likewise: files and folders, with variables in them (verdict.h) */
    bool speaks_abi; /* one of the versions is this library's */
    bool has_priority;
    int32_t priority;
} gpuhal_manifest;

/* Stage MANIFEST. A relative `library` is taken from the manifest's own directory, unless `absolute_only`. What was understood
 * before a mistake is kept in *out_manifest, for the report; finish it in any case. */
bool gpuhal_manifest_read(gpuhal_load_context *load, const char *path, bool absolute_only, gpuhal_manifest *out_manifest);
void gpuhal_manifest_finish(gpuhal_manifest *manifest);
/* Whether the manifest is for the platform that this is. */
bool gpuhal_manifest_has_platform(const gpuhal_manifest *manifest, const char *platform);

#endif
