/* loader/helper_program.h: where the program is that meets plugins. */
#ifndef GPUHAL_LOADER_HELPER_PROGRAM_H
#define GPUHAL_LOADER_HELPER_PROGRAM_H

#include "core/config.h"
#include "core/log.h"

/* Its resolved path, malloc'ed: that of the configuration, else beside the library, where it was compiled to be, or beside plugins. NULL with the
 * reason, malloc'ed; NULL there too when it is nowhere. */
char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason);

#endif
