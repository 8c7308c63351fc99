/* loader/helper_program.h: finds the helper program. */
#ifndef GPUHAL_LOADER_HELPER_PROGRAM_H
#define GPUHAL_LOADER_HELPER_PROGRAM_H

#include "base/config.h"
#include "base/log.h"

/* Finds the helper at the configured path. If no path is configured, searches beside the library, at the compiled-in
 * path, and beside plugins. A privileged process searches only at the compiled-in path. Returns the helper's resolved
 * path, malloc'ed; NULL on failure. *out_reason must be NULL before the call. The caller must free it in any case: it
 * is malloc'ed if the helper was missing or refused at one path, even if a later path has the helper. */
char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason);

#endif
