/* manifest.h: NAME.gpuhal as its author wrote it, with lines `key = value`. Only the library validates the whole
 * file. */
#ifndef GPUHAL_CHECK_MANIFEST_H
#define GPUHAL_CHECK_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

enum { MANIFEST_LINES_MAX = 64 };

typedef struct gpuhal_manifest_line {
    const char *key, *value;
    unsigned number;
} gpuhal_manifest_line;

typedef struct gpuhal_manifest {
    char *text; /* the lines point into it */
    gpuhal_manifest_line lines[MANIFEST_LINES_MAX];
    unsigned count;
} gpuhal_manifest;

/* Returns false with a message in @p out_problem if the file cannot be read. Call finish in any case. */
bool gpuhal_manifest_read(const char *file, gpuhal_manifest *out_manifest, char *out_problem, size_t size);
void gpuhal_manifest_finish(gpuhal_manifest *manifest);
/* Returns the value of a key, or NULL. */
const char *gpuhal_manifest_value(const gpuhal_manifest *manifest, const char *key);
/* Finds the path of the library that the manifest @p file names; returns false if there is none. */
bool gpuhal_manifest_library(const gpuhal_manifest *manifest, const char *file, char *out_path, size_t size);

#endif
