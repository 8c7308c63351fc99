/* library.h: the plugin in an application: through gpuhal_open(), a manifest, and a helper process that lists the
 * devices. */
#ifndef GPUHAL_CHECK_LIBRARY_H
#define GPUHAL_CHECK_LIBRARY_H

#include "check.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_library {
    gpuhal *gpu;
    char name[64]; /* of the backend */
    char log[1024]; /* warnings, one a line */
} gpuhal_library;

/* Opens a gpuhal object that sees this plugin before all others, by the given manifest or a generated one. Fails the
 * check if the object cannot be opened. @p name: of the backend. */
void gpuhal_library_open(gpuhal_library *library, const gpuhal_context *context, const char *name);
void gpuhal_library_close(gpuhal_library *library);
/* Returns the library's report on the plugin; fails the check if the library did not find it. */
gpuhal_plugin_report gpuhal_library_report(const gpuhal_library *library, const gpuhal_context *context);

#endif
