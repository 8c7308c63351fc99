/* telemetry/files.c: see files.h. */
#include "telemetry/files.h"

#include "base/records.h"
#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Sets the reason why a file cannot be read. Recent kernels return EPERM if the GPU sleeps. An empty file means that
 * the GPU does not have the value. */
static void say_unreadable(gpuhal_value *value, const char *name, int error)
{
    gpuhal_missing reason = GPUHAL_MISSING_FAILED;
    if (error == 0 || error == ENOENT || error == ENOTDIR || error == EOPNOTSUPP || error == ENODEV ||
        error == EINVAL) {
        reason = GPUHAL_MISSING_NOT_SUPPORTED;
    } else if (error == EACCES) {
        reason = GPUHAL_MISSING_NO_PERMISSION;
    } else if (error == EPERM) {
        reason = GPUHAL_MISSING_ASLEEP;
    }
    if (error == ENOENT || error == ENOTDIR) {
        gpuhal_value_miss(value, reason, "the system has no file %.40s for this device", name);
    } else if (error == 0) {
        gpuhal_value_miss(value, reason, "the system's file %.40s is empty", name);
    } else {
        gpuhal_value_miss(value, reason, "the system's file %.40s cannot be read: %s", name, strerror(error));
    }
}

bool gpuhal_files_are_of_bus(const gpuhal_files *files)
{
    return strcmp(files->driver, "nvidia") == 0;
}

bool gpuhal_files_are_of_tegra(const gpuhal_files *files)
{
    return strcmp(files->driver, GPUHAL_TEGRA) == 0;
}

size_t gpuhal_files_bytes(const char *directory, const char *name, void *out_bytes, size_t size, gpuhal_value *value)
{
    char path[GPUHAL_PATH_BYTES + 64];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    const int error = gpuhal_os_kernel_file_read(-1, path, out_bytes, size - 1, &count);
    ((char *)out_bytes)[count] = 0;
    if (error || count == 0) {
        say_unreadable(value, name, error);
        return 0;
    }
    return count;
}

bool gpuhal_files_line(const char *directory, const char *name, char *out_text, size_t size, gpuhal_value *value)
{
    if (gpuhal_files_bytes(directory, name, out_text, size, value) > 0) {
        out_text[strcspn(out_text, "\n")] = 0;
        if (out_text[0]) {
            return true;
        }
        say_unreadable(value, name, 0);
    }
    return false;
}

bool gpuhal_files_number(const char *directory, const char *name, uint64_t *out_number, gpuhal_value *value)
{
    char text[32];
    if (!gpuhal_files_line(directory, name, text, sizeof text, value)) {
        return false;
    }
    if (!gpuhal_records_u64(text, out_number)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file %.40s holds no number", name);
        return false;
    }
    return true;
}

bool gpuhal_files_find(const char *directory, const char *prefix, char out_path[GPUHAL_PATH_BYTES])
{
    char **names = NULL;
    size_t count = 0;
    out_path[0] = 0;
    (void)gpuhal_os_directory_names(directory, &names, &count);
    for (size_t i = 0; i < count && !out_path[0]; i++) {
        if (strncmp(names[i], prefix, strlen(prefix)) == 0) {
            const int length = snprintf(out_path, GPUHAL_PATH_BYTES, "%s/%s", directory, names[i]);
            /* A truncated path would name another file. */
            out_path[0] = length < GPUHAL_PATH_BYTES ? out_path[0] : 0;
        }
    }
    gpuhal_os_names_free(names, count);
    return out_path[0] != 0;
}

/* hwmon numbers are assigned in discovery order, so the sensor directory is searched below the device's own
 * directory. There the device's own sensors come before the sensors of its parts. */
const char *gpuhal_files_sensors(gpuhal_files *files, gpuhal_value *value)
{
    if (!files->looked_for_sensors) {
        char directory[GPUHAL_PATH_BYTES];
        snprintf(directory, sizeof directory, "%s/hwmon", files->device);
        (void)gpuhal_files_find(directory, "hwmon", files->sensors);
        files->looked_for_sensors = true;
    }
    if (!files->sensors[0]) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the system has no sensors of this device");
    }
    return files->sensors[0] ? files->sensors : NULL;
}

const char *gpuhal_files_card(gpuhal_files *files)
{
    if (!files->looked_for_card) {
        char directory[GPUHAL_PATH_BYTES];
        snprintf(directory, sizeof directory, "%s/drm", files->device);
        (void)gpuhal_files_find(directory, "card", files->card);
        files->looked_for_card = true;
    }
    return files->card[0] ? files->card : NULL;
}
