/* cdi_libraries.c: see cdi_libraries.h. The libraries of a driver are in one directory, and their file names end with
 * the driver version: libcuda.so.580.65.06, libnvidia-ptxjitcompiler.so.580.65.06. Each name that resolves to a
 * library, such as libcuda.so.1, is a separate mount, because the container runtime creates links only through a
 * hook. */
#include "cdi_libraries.h"

#include "../common/utf8.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".so."

/* Extracts the version ("580.65.06") from the name of the file that the path resolves to. The version is "" if the name
 * has none, or if the version has no dot, as in "libcuda.so.1". */
static void read_version(const char *path, char version[NAME_MAX + 1])
{
    char real[PATH_MAX];
    const char *slash = realpath(path, real) ? strrchr(real, '/') : NULL;
    const char *suffix = slash ? strstr(slash, SUFFIX) : NULL;
    const char *digits = suffix ? suffix + strlen(SUFFIX) : "";
    const bool good = strchr(digits, '.') && digits[strspn(digits, "0123456789.")] == 0;
    snprintf(version, NAME_MAX + 1, "%s", good ? digits : "");
}

/* Returns whether the name is a library's name that has only characters that this driver's packages use. Other names
 * are left out, because they are of no use to the programs that read the document. */
static bool is_library(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    return strncmp(name, "lib", 3) == 0 && strstr(name, ".so") && name[strspn(name, letters)] == 0;
}

/* Returns whether the path is valid UTF-8; a document cannot contain any other path. */
static bool is_text(const char *path)
{
    uint32_t character;
    while (*path) {
        const size_t length = gpuhal_tool_utf8_next(path, &character);
        if (length == 0) {
            return false;
        }
        path += length;
    }
    return true;
}

static void add_mount(gpuhal_probe_json *builder, json_t *mounts, const char *host, const char *container)
{
    json_t *options = json_pack("[s, s, s, s, s]", "ro", "nosuid", "nodev", "rbind", "rprivate");
    gpuhal_probe_append(builder, mounts,
                        json_pack("{s:s, s:s, s:o}", "hostPath", host, "containerPath", container, "options", options));
}

static int compare(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name); /* same order in every locale */
}

static int filter(const struct dirent *entry)
{
    return is_library(entry->d_name);
}

json_t *gpuhal_probe_cdi_mounts(gpuhal_probe_json *builder, const char *library)
{
    json_t *mounts = json_array();
    char folder[PATH_MAX], real[PATH_MAX], path[PATH_MAX], file[PATH_MAX], version[NAME_MAX + 1], own[NAME_MAX + 1];
    struct dirent **entries = NULL;
    const char *slash = strrchr(library, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - library) : 0, library);
    read_version(library, version);
    const int count = *version && realpath(folder, real) ? scandir(real, &entries, filter, compare) : 0;
    for (int i = 0; i < count; i++) {
        const int length = snprintf(path, sizeof path, "%s/%s", real, entries[i]->d_name);
        if (length > 0 && (size_t)length < sizeof path) {
            read_version(path, own);
            if (strcmp(own, version) == 0 && realpath(path, file) && is_text(file) && is_text(path)) {
                add_mount(builder, mounts, file, path);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return mounts;
}
