/* error.c: see error.h. */
#include "error.h"

#include "build.h"
#include "screen.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static int kept = -1; /* a file in memory, in the place of standard error */

int gpuhal_probe_error_catch(void)
{
    const int own = dup(STDERR_FILENO);
    kept = own >= 0 ? memfd_create("errors", MFD_CLOEXEC) : -1;
    if (kept >= 0 && dup2(kept, STDERR_FILENO) >= 0) {
        return own;
    }
    if (own >= 0) {
        close(own);
    }
    return -1;
}

void gpuhal_probe_error_release(int caught)
{
    if (caught < 0) {
        return;
    }
    dup2(caught, STDERR_FILENO);
    close(caught);
    char text[2048];
    const ssize_t bytes = pread(kept, text, sizeof text - 1, 0);
    close(kept);
    kept = -1;
    text[bytes > 0 ? bytes : 0] = 0;
    fputs(text, stderr);
    text[strcspn(text, "\n")] = 0;
    gpuhal_probe_set_said(text);
}

bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out)
{
    static const char *const codes[] = {
        [PROBE_INTERNAL] = "internal",
        [PROBE_USAGE] = "usage",
        [PROBE_PARTIAL] = "not_usable",
        [PROBE_NOT_FOUND] = "not_found",
        [PROBE_NO_PERMISSION] = "no_permission",
    };
    const char *name = (size_t)code < sizeof codes / sizeof *codes && codes[code] ? codes[code] : "internal";
    const char *message = gpuhal_probe_last_said(), *colon = strstr(message, "gpuhal-probe: ");
    gpuhal_probe_json builder = {0};
    json_t *document = json_object(), *error = json_object();
    gpuhal_probe_put(&builder, error, "code", gpuhal_probe_any_text(name));
    gpuhal_probe_put(&builder, error, "message",
                     gpuhal_probe_any_text(colon == message ? message + strlen("gpuhal-probe: ") : message));
    gpuhal_probe_put(&builder, document, "schema", gpuhal_probe_any_text("gpuhal.probe/2"));
    gpuhal_probe_put(&builder, document, "error", error);
    return gpuhal_probe_json_print(&builder, document, out);
}
