/* loader/file_check.c: see file_check.h. file_trust.c checks which users can change the file, and
 * gpuhal_os_image_check() its format. */
#include "loader/file_check.h"

#include "os/os.h"

#include <errno.h>
#include <stdlib.h>

bool gpuhal_file_check_image(gpuhal_load_context *load, const gpuhal_checked_file *file, bool program)
{
    char why[256];
    int error = 0;
    switch (gpuhal_os_image_check(file->path, file->bytes, program, why, sizeof why, &error)) {
    case GPUHAL_IMAGE_GOOD:
        return true;
    case GPUHAL_IMAGE_FOREIGN:
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_INCOMPATIBLE, GPUHAL_ERROR_INCOMPATIBLE, "%s %s", file->path, why);
    case GPUHAL_IMAGE_BAD:
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_DRIVER, "%s %s", file->path, why);
    default:
        return error == ENOMEM ? gpuhal_load_no_memory(load) : gpuhal_file_refuse_unreadable(load, file->path, error);
    }
}

bool gpuhal_file_check(gpuhal_load_context *load, const char *path, bool program, gpuhal_checked_file *out_file)
{
    if (!gpuhal_file_check_trust(load, path, out_file)) {
        return false;
    }
    if (!gpuhal_file_check_image(load, out_file, program)) {
        gpuhal_checked_file_finish(out_file);
        return false;
    }
    return true;
}

void gpuhal_checked_file_finish(gpuhal_checked_file *file)
{
    free(file->path);
    *file = (gpuhal_checked_file){0};
}
