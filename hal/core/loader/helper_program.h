/* loader/helper_program.h: finds the helper program. */
#ifndef GPUHAL_LOADER_HELPER_PROGRAM_H
#define GPUHAL_LOADER_HELPER_PROGRAM_H

#include "base/config.h"
#include "base/log.h"

/* Finds the helper: the configured one, otherwise beside the library, at the compiled-in path, or beside plugins.
 * Returns its resolved path, malloc'ed. Otherwise returns NULL and the reason, malloc'ed or NULL. */
char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason);

#endif
