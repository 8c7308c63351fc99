/* loader/helper_program.c: see helper_program.h. */
#include "loader/helper_program.h"

#include "core/text.h"
#include "loader/file_check.h"
#include "os/os.h"

#include <stdlib.h>

/* Checks one place. Returns the resolved path, or NULL with the reason. */
static char *check_helper(const char *path, gpuhal_log *log, char **out_reason)
{
    gpuhal_attempt attempt = {.log = log};
    gpuhal_checked_file file;
    char *helper = NULL;
    if (gpuhal_file_check(&attempt, path, true, &file)) {
        helper = file.path;
    } else if (!*out_reason || attempt.status != GPUHAL_ERROR_NOT_FOUND) {
        /* That one place has no helper says less than why another place's was refused. */
        free(*out_reason);
        *out_reason = gpuhal_text_copy(attempt.reason);
    }
    gpuhal_attempt_finish(&attempt);
    return helper;
}

/* A helper that was named explicitly is taken or nothing is: another one would not be what was asked for. */
char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason)
{
    bool privileged = gpuhal_os_privileged();
    if (settings->helper_path && !privileged) {
        return check_helper(settings->helper_path, log, out_reason);
    }
    char *own = privileged ? NULL : gpuhal_os_own_directory();
    char *path = own ? gpuhal_text_format("%s/gpuhal/gpuhal-helper", own) : NULL;
    char *helper = path ? check_helper(path, log, out_reason) : NULL;
    free(path);
    free(own);
    return helper ? helper : check_helper(GPUHAL_PLUGIN_DIRECTORY "/gpuhal-helper", log, out_reason);
}
