/* memory_use.c: reads /proc/self. */
#include "memory_use.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gpuhal_bench_status_kib(const char *key, double *out_kib)
{
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) {
        return false;
    }
    char line[256];
    const size_t length = strlen(key);
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            *out_kib = strtod(line + length + 1, NULL);
            found = true;
        }
    }
    fclose(file);
    return found;
}

bool gpuhal_bench_mapped_kib(const char *word, double *out_kib)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL) {
        return false;
    }
    char line[4096 + 128];
    bool inside = false;
    *out_kib = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        /* A mapping begins with its address range; the lines about it begin with a capital letter. */
        if (line[0] < 'A' || line[0] > 'Z') {
            inside = strstr(line, word) != NULL;
        } else if (inside && strncmp(line, "Rss:", 4) == 0) {
            *out_kib += strtod(line + 4, NULL);
        }
    }
    fclose(file);
    return true;
}

bool gpuhal_bench_reset_peak(void)
{
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    const bool good = write(file, "5", 1) == 1;
    close(file);
    return good;
}
