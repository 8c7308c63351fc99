/* host.c: see host.h. */
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define HOST_TEXT_BYTES 256u

/* Finds the first line that is `key`, blanks, `separator`, value; copies the value without blanks and quotes around it. */
static bool read_value(const char *path, const char *key, char separator, char out_value[HOST_TEXT_BYTES])
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    char line[1024];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) != 0) {
            continue;
        }
        char *value = line + length + strspn(line + length, " \t");
        if (*value != separator) {
            continue;
        }
        value += 1 + strspn(value + 1, " \t\"'");
        size_t end = strcspn(value, "\n");
        while (end && strchr(" \t\"'", value[end - 1])) {
            end--;
        }
        snprintf(out_value, HOST_TEXT_BYTES, "%.*s", (int)end, value);
        found = end != 0;
    }
    fclose(file);
    return found;
}

void gpuhal_probe_host_read(gpuhal_probe_host *out_host)
{
    *out_host = (gpuhal_probe_host){0};
    struct utsname system;
    if (uname(&system) == 0) {
        snprintf(out_host->name, sizeof out_host->name, "%s", system.nodename);
        snprintf(out_host->kernel, sizeof out_host->kernel, "%s %s", system.sysname, system.release);
        snprintf(out_host->os, sizeof out_host->os, "%s", system.sysname);
    }
    if (!read_value("/etc/os-release", "PRETTY_NAME", '=', out_host->os)) {
        read_value("/usr/lib/os-release", "PRETTY_NAME", '=', out_host->os);
    }
    read_value("/proc/cpuinfo", "model name", ':', out_host->cpu); /* not every architecture names its model there */
}
