/* baseline.c: see baseline.h. */
#include "baseline.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* subdirectories of the registry's directory */
static const char accepted_name[] = "baseline", first_name[] = "first";

static bool make_path(char to[PATH_MAX], const char *place, const char *folder, const char *name)
{
    const int length = snprintf(to, PATH_MAX, "%s/%s%s", place, folder, name);
    errno = ENAMETOOLONG;
    return length > 0 && length < PATH_MAX;
}

static bool is_there(const char *place, const char *name, uint64_t *out_time)
{
    char file[PATH_MAX];
    struct stat status = {0};
    const bool there = make_path(file, place, name, "/registry") && stat(file, &status) == 0;
    *out_time = (uint64_t)status.st_mtime;
    return there;
}

gpuhal_status gpuhal_probe_baseline_read(const char *place, gpuhal_view **out_view, bool *out_accepted,
                                         uint64_t *out_time)
{
    char folder[PATH_MAX];
    *out_view = NULL;
    *out_accepted = is_there(place, accepted_name, out_time);
    if ((!*out_accepted && !is_there(place, first_name, out_time)) ||
        !make_path(folder, place, *out_accepted ? accepted_name : first_name, "")) {
        return GPUHAL_OK;
    }
    const gpuhal_config config = {.size = sizeof config, .registry = folder, .ignore_environment = 1};
    return gpuhal_view_read(&config, out_view);
}

static void remove_one(const char *place, const char *name)
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (make_path(folder, place, name, "") && make_path(file, place, name, "/registry")) {
        unlink(file);
        rmdir(folder);
    }
}

bool gpuhal_probe_baseline_write(const char *place, const gpuhal_view *view, bool accepted)
{
    char folder[PATH_MAX], file[PATH_MAX], fresh[PATH_MAX], name[64];
    const char *own = accepted ? accepted_name : first_name;
    snprintf(name, sizeof name, "/new-%ld", (long)getpid());
    if (!make_path(folder, place, own, "") || !make_path(file, place, own, "/registry") ||
        !make_path(fresh, place, own, name) || (mkdir(folder, 0700) != 0 && errno != EEXIST)) {
        return false;
    }
    unlink(fresh); /* a killed process with the same pid may have left this file */
    if (gpuhal_view_write(view, fresh) != GPUHAL_OK) {
        errno = EACCES;
        return false;
    }
    if (rename(fresh, file) != 0) {
        const int error = errno;
        unlink(fresh);
        errno = error;
        return false;
    }
    if (accepted) {
        remove_one(place, first_name);
    }
    return true;
}

void gpuhal_probe_baseline_remove(const char *place)
{
    remove_one(place, accepted_name);
    remove_one(place, first_name);
}
