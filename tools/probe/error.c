/* error.c: see error.h. */
#include "error.h"

#include "build.h"
#include "screen.h"

#include <string.h>

bool gpuhal_probe_wants_json(int count, char *const *arguments)
{
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++) {
        const char *own = arguments[i];
        const bool after = strcmp(own, "--format") == 0 && i + 1 < count && strcmp(arguments[i + 1], "json") == 0;
        if (after || strcmp(own, "--json") == 0 || strncmp(own, "--json=", 7) == 0 ||
            strcmp(own, "--format=json") == 0) {
            return true;
        }
    }
    return false;
}

bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out)
{
    static const char *const codes[] = {
        [PROBE_INTERNAL] = "internal",           [PROBE_USAGE] = "usage",
        [PROBE_PARTIAL] = "not_usable",          [PROBE_NOT_FOUND] = "not_found",
        [PROBE_NO_PERMISSION] = "no_permission",
    };
    const char *name = (size_t)code < sizeof codes / sizeof *codes && codes[code] ? codes[code] : "internal";
    gpuhal_probe_json builder = {0};
    return gpuhal_probe_json_print(
        &builder, gpuhal_json_error("gpuhal.probe/2", "gpuhal-probe", name, gpuhal_probe_last_said()), out);
}
