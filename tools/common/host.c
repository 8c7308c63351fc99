/* host.c: see host.h. */
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HOST_TEXT_BYTES 256u

/* Copies the value of the first line `PRETTY_NAME=value`, without quotes. */
static bool read_name(const char *path, char out_name[HOST_TEXT_BYTES])
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = sscanf(line, "PRETTY_NAME=%*[\"']%255[^\"'\n]", out_name) == 1 ||
                sscanf(line, "PRETTY_NAME=%255[^\"'\n]", out_name) == 1;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

void gpuhal_tool_host_read(gpuhal_tool_host *out_host)
{
    *out_host = (gpuhal_tool_host){0};
    struct utsname system;
    if (uname(&system) == 0) {
        snprintf(out_host->name, sizeof out_host->name, "%s", system.nodename);
        snprintf(out_host->kernel, sizeof out_host->kernel, "%s %s", system.sysname, system.release);
        snprintf(out_host->os, sizeof out_host->os, "%s", system.sysname);
        snprintf(out_host->architecture, sizeof out_host->architecture, "%s", system.machine);
    }
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    out_host->processors = processors > 0 ? (uint32_t)processors : 0;
    if (!read_name("/etc/os-release", out_host->os)) {
        read_name("/usr/lib/os-release", out_host->os);
    }
}
