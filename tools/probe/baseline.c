/* baseline.c: see baseline.h. */
#include "baseline.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_path(char to[PATH_MAX], const char *place, const char *name)
{
    const int length = snprintf(to, PATH_MAX, "%s/baseline%s", place, name);
    errno = ENAMETOOLONG;
    return length > 0 && length < PATH_MAX;
}

gpuhal_status gpuhal_probe_baseline_read(const char *place, gpuhal_registry_view **out_view, uint64_t *out_time)
{
    char folder[PATH_MAX], file[PATH_MAX];
    struct stat status;
    *out_view = NULL;
    *out_time = 0;
    if (!make_path(folder, place, "") || !make_path(file, place, "/registry") || stat(file, &status) != 0) {
        return GPUHAL_OK;
    }
    const gpuhal_config config = {.size = sizeof config, .registry = folder, .ignore_environment = 1};
    *out_time = (uint64_t)status.st_mtime;
    return gpuhal_registry_view_read(&config, out_view);
}

bool gpuhal_probe_baseline_write(const char *place, const gpuhal_registry_view *view)
{
    char folder[PATH_MAX], file[PATH_MAX], fresh[PATH_MAX], name[64];
    snprintf(name, sizeof name, "/new-%ld", (long)getpid());
    if (!make_path(folder, place, "") || !make_path(file, place, "/registry") || !make_path(fresh, place, name) ||
        (mkdir(folder, 0700) != 0 && errno != EEXIST)) {
        return false;
    }
    unlink(fresh); /* of a killed process that had this number */
    if (gpuhal_registry_export(view, fresh) != GPUHAL_OK) {
        errno = EACCES;
        return false;
    }
    if (rename(fresh, file) != 0) {
        const int error = errno;
        unlink(fresh);
        errno = error;
        return false;
    }
    return true;
}

void gpuhal_probe_baseline_remove(const char *place)
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (make_path(folder, place, "") && make_path(file, place, "/registry")) {
        unlink(file);
        rmdir(folder);
    }
}
