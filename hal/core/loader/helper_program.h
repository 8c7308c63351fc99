/* loader/helper_program.h: finds the helper program. */
#ifndef GPUHAL_LOADER_HELPER_PROGRAM_H
#define GPUHAL_LOADER_HELPER_PROGRAM_H

#include "base/config.h"
#include "base/log.h"

/* Returns the helper's resolved path, malloc'ed: that of the configuration, else beside the library, at the compiled-in
 * place, or beside plugins. Otherwise NULL with the reason, malloc'ed; the reason may be NULL too. */
char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason);

#endif
