/* loader/helper_program.c: see helper_program.h. */
#include "loader/helper_program.h"

#include "base/text.h"
#include "loader/file_check.h"
#include "os/os.h"

#include <stdlib.h>

#define HELPER "gpuhal-helper"

static char *check_file(const char *path, gpuhal_log *log, char **out_reason)
{
    gpuhal_load_context load = {.log = log};
    gpuhal_checked_file file;
    char *helper = NULL;
    if (gpuhal_file_check(&load, path, true, &file)) {
        helper = file.path;
    } else if (!*out_reason || load.status != GPUHAL_ERROR_NOT_FOUND) {
        /* The reason why a helper was refused is more useful than the information that no helper is at the other
         * paths. */
        free(*out_reason);
        *out_reason = gpuhal_text_copy(load.reason);
    }
    gpuhal_load_finish(&load);
    return helper;
}

static char *check_helper(const char *directory, gpuhal_log *log, char **out_reason)
{
    char *path = gpuhal_text_format("%s/" HELPER "%s", directory, gpuhal_os_program_suffix());
    char *helper = path ? check_file(path, log, out_reason) : NULL;
    free(path);
    return helper;
}

/* Searches the plugin directories; returns NULL if no helper was accepted. These directories need as much trust as the
 * helper, because a user who can write to them can install a plugin. */
static char *look_beside_plugins(const char *paths, gpuhal_log *log, char **out_reason)
{
    size_t count = 0;
    char **directories = paths ? gpuhal_text_split_paths(paths, &count) : NULL;
    char *helper = NULL;
    for (size_t i = 0; i < count && !helper; i++) {
        helper = gpuhal_os_path_is_absolute(directories[i]) ? check_helper(directories[i], log, out_reason) : NULL;
    }
    gpuhal_text_list_free(directories);
    return helper;
}

char *gpuhal_helper_find(const gpuhal_settings *settings, gpuhal_log *log, char **out_reason)
{
    if (gpuhal_os_privileged()) {
        return check_helper(GPUHAL_PLUGIN_DIRECTORY, log, out_reason);
    }
    if (settings->helper_path) {
        return check_file(settings->helper_path, log, out_reason);
    }
    char *own = gpuhal_os_own_directory();
    char *beside = own ? gpuhal_text_format("%s/gpuhal", own) : NULL;
    char *helper = beside ? check_helper(beside, log, out_reason) : NULL;
    free(beside);
    free(own);
    helper = helper ? helper : check_helper(GPUHAL_PLUGIN_DIRECTORY, log, out_reason);
    helper = helper ? helper : look_beside_plugins(settings->environment_plugin_path, log, out_reason);
    return helper ? helper : look_beside_plugins(settings->plugin_path, log, out_reason);
}
