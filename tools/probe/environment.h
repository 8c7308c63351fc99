/* environment.h: the library's environment variables as the user set them, and the other variables in the environment
 * that affect which devices are visible. */
#ifndef PROBE_ENVIRONMENT_H
#define PROBE_ENVIRONMENT_H

#include "options.h"
#include "screen.h"

#include <stdint.h>

typedef struct gpuhal_probe_variable {
    const char *name, *meaning;
    char *value;           /* NULL if not set */
    const char *overruled; /* the option that overrides it; NULL if none */
    bool ignored;
    bool is_foreign; /* a set variable of other software */
} gpuhal_probe_variable;

typedef struct gpuhal_probe_environment {
    gpuhal_probe_variable *list;
    uint32_t count;
} gpuhal_probe_environment;

/* Copies the variables; for a report, without the values of plugin options. Must be called before the machine is
 * opened, because opening changes the environment. Returns false if out of memory. */
bool gpuhal_probe_environment_read(const gpuhal_probe_options *options, gpuhal_probe_environment *out_environment);
void gpuhal_probe_environment_print(const gpuhal_probe_environment *environment, const gpuhal_probe_screen *screen);
void gpuhal_probe_environment_finish(gpuhal_probe_environment *environment);

#endif
