/* library.h: uses the plugin like an application: through gpuhal_open(), a manifest, and a subprocess that lists the
 * devices. */
#ifndef GPUHAL_CHECK_LIBRARY_H
#define GPUHAL_CHECK_LIBRARY_H

#include "check.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_library {
    gpuhal *gpu;
    char name[64]; /* the backend's name */
    char log[1024]; /* warnings, one per line */
} gpuhal_library;

/* Opens a gpuhal object that finds this plugin before all others, through the given manifest or a generated manifest.
 * Fails the check if the object cannot be opened. @p name is the backend's name. */
void gpuhal_library_open(gpuhal_library *library, const gpuhal_context *context, const char *name);
void gpuhal_library_close(gpuhal_library *library);
/* Returns the library's report on the plugin; fails the check if the library did not find the plugin. */
gpuhal_plugin_report gpuhal_library_report(const gpuhal_library *library, const gpuhal_context *context);

#endif
