/* errors.c: see errors.h. */
#include "errors.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int kept = -1; /* an in-memory file that replaces standard error */

bool gpuhal_tool_wants_json(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0 || strncmp(argv[i], "--json=", 7) == 0) {
            return true;
        }
    }
    return false;
}

int gpuhal_tool_errors_catch(void)
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

void gpuhal_tool_errors_release(int caught, char *out_line, size_t size)
{
    out_line[0] = 0;
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
    snprintf(out_line, size, "%.*s", (int)strcspn(text, "\n"), text);
}
