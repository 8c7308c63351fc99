/* environment.c: see environment.h. */
#include "environment.h"

#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *overruling(const gpuhal_probe_options *options, const char *name)
{
    if (options->backends && strcmp(name, "GPUHAL_BACKENDS") == 0) {
        return "--backends";
    }
    if (options->device && strcmp(name, "GPUHAL_DEVICES") == 0) {
        return "--device";
    }
    return NULL;
}

bool gpuhal_probe_environment_read(const gpuhal_probe_options *options, gpuhal_probe_environment *out_environment)
{
    *out_environment = (gpuhal_probe_environment){0};
    gpuhal_environment_entry entry = {.size = sizeof entry};
    uint32_t count = 0;
    while (gpuhal_environment_at(NULL, count, &entry) == GPUHAL_OK) {
        count++;
    }
    out_environment->list = calloc(count + 1, sizeof *out_environment->list);
    if (!out_environment->list) {
        return false;
    }
    for (uint32_t i = 0; i < count && gpuhal_environment_at(NULL, i, &entry) == GPUHAL_OK; i++) {
        gpuhal_probe_variable *variable = &out_environment->list[out_environment->count++];
        *variable = (gpuhal_probe_variable){
            .name = entry.name,
            .meaning = entry.meaning,
            .value = entry.value ? strdup(entry.value) : NULL,
            .overruled = entry.value ? overruling(options, entry.name) : NULL,
            .ignored = entry.ignored != 0,
        };
        if (entry.value && !variable->value) {
            gpuhal_probe_environment_finish(out_environment);
            return false;
        }
    }
    return true;
}

static void print_variable(const gpuhal_probe_variable *variable, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_screen_put(screen, PROBE_BOLD, variable->name);
    if (variable->value) {
        fputs(" = ", screen->out);
        gpuhal_probe_screen_put(screen, PROBE_PLAIN, variable->value);
    } else {
        gpuhal_probe_screen_put(screen, PROBE_DIM, " is not set");
    }
    if (variable->ignored) {
        gpuhal_probe_screen_put(screen, PROBE_WARN, " (ignored)");
    }
    if (variable->overruled) {
        gpuhal_probe_screen_put(screen, PROBE_WARN, " (overruled by ");
        gpuhal_probe_screen_put(screen, PROBE_WARN, variable->overruled);
        gpuhal_probe_screen_put(screen, PROBE_WARN, ")");
    }
    fputs("\n    ", screen->out);
    gpuhal_probe_screen_wrap(screen, variable->meaning, 4, 4);
}

void gpuhal_probe_environment_print(const gpuhal_probe_environment *environment, const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0; i < environment->count; i++) {
        print_variable(&environment->list[i], screen);
    }
}

void gpuhal_probe_environment_finish(gpuhal_probe_environment *environment)
{
    for (uint32_t i = 0; i < environment->count; i++) {
        free(environment->list[i].value);
    }
    free(environment->list);
    *environment = (gpuhal_probe_environment){0};
}
