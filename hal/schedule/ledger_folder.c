/* schedule/ledger_folder.c: finds the ledger's folder. gpuhal_ledger_files_open() checks that the folder is safe. An
 * unsafe folder is an error; no other folder is tried. */
#include "schedule/ledger.h"

#include "device/for_schedule.h"

#include <stdlib.h>

static bool is_for_this_user(const char *folder)
{
    gpuhal_file_info info;
    return gpuhal_os_file_info(folder, &info) == 0 && gpuhal_os_may_use(folder) == 0;
}

gpuhal_status gpuhal_ledger_folder_find(const char *root, const char *named, char **out_folder, bool *out_shared)
{
    char found[512] = "";
    bool own = false;
    *out_folder = named ? gpuhal_text_copy(named) : gpuhal_text_format("%s/run/gpuhal", root);
    *out_shared = *out_folder && (named || is_for_this_user(*out_folder));
    if (!*out_folder || *out_shared) {
        return *out_folder ? GPUHAL_OK : gpuhal_error_host_memory();
    }
    free(*out_folder);
    *out_folder = NULL;
    if (!gpuhal_os_runtime_folder(found, sizeof found, &own)) {
        return gpuhal_error_set(GPUHAL_ERROR_FILE,
                                "leases: no folder of the user's can be written to; name one with GPUHAL_LEDGER");
    }
    *out_folder =
        own ? gpuhal_text_format("%s/gpuhal", found) : gpuhal_text_format("%s/gpuhal-%u", found, gpuhal_os_user());
    return *out_folder ? GPUHAL_OK : gpuhal_error_host_memory();
}
