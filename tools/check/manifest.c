/* manifest.c: see manifest.h. */
#include "manifest.h"

#include "../common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 64 << 10 };

static void take_line(gpuhal_manifest *manifest, char *line, unsigned number)
{
    line = gpuhal_tool_trimmed(line);
    char *equals = strchr(line, '=');
    if (line[0] == '#' || line[0] == '[' || equals == NULL || manifest->count == MANIFEST_LINES_MAX) {
        return;
    }
    *equals = '\0';
    manifest->lines[manifest->count++] =
        (gpuhal_manifest_line){gpuhal_tool_trimmed(line), gpuhal_tool_trimmed(equals + 1), number};
}

bool gpuhal_manifest_read(const char *file, gpuhal_manifest *out_manifest, char *out_problem, size_t size)
{
    *out_manifest = (gpuhal_manifest){.text = calloc(1, BYTES_MAX + 1)};
    FILE *stream = fopen(file, "re");
    bool good = stream != NULL && out_manifest->text != NULL;
    if (good) {
        out_manifest->text[fread(out_manifest->text, 1, BYTES_MAX, stream)] = '\0';
        good = !ferror(stream); /* fopen() also succeeds for a folder */
    }
    if (!good) {
        snprintf(out_problem, size, "%s: %s", file, strerror(errno));
    }
    if (stream != NULL) {
        fclose(stream);
    }
    if (!good) {
        return false;
    }
    unsigned number = 0;
    for (char *line = out_manifest->text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        take_line(out_manifest, line, ++number);
        line = end;
    }
    return true;
}

void gpuhal_manifest_finish(gpuhal_manifest *manifest)
{
    free(manifest->text);
    *manifest = (gpuhal_manifest){0};
}

const char *gpuhal_manifest_value(const gpuhal_manifest *manifest, const char *key)
{
    for (unsigned l = 0; l < manifest->count; l++) {
        if (strcmp(manifest->lines[l].key, key) == 0) {
            return manifest->lines[l].value;
        }
    }
    return NULL;
}

/* A relative path is relative to the manifest's folder. The suffix of shared libraries is appended to a plain
 * `gpuhal-NAME`. */
bool gpuhal_manifest_library(const gpuhal_manifest *manifest, const char *file, char *out_path, size_t size)
{
    const char *library = gpuhal_manifest_value(manifest, "library");
    const char *slash = strrchr(file, '/');
    if (library == NULL || library[0] == '\0') {
        return false;
    }
    const int folder = library[0] == '/' || slash == NULL ? 0 : (int)(slash - file + 1);
    const char *suffix = strncmp(library, "gpuhal-", 7) != 0 || strpbrk(library, "./") != NULL ? "" : ".so";
    return snprintf(out_path, size, "%.*s%s%s", folder, file, library, suffix) < (int)size;
}
