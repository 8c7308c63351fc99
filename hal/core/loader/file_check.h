/* loader/file_check.h: checks of a file before any of its code runs. Nothing here may execute or map the file.
 *
 * A half-copied library kills the process that loads it, a FIFO hangs it, and a user that can write to the file decides
 * which code runs. The checks are about accidents and permissions; the helper process is the protection against a
 * hostile file.
 */
#ifndef GPUHAL_LOADER_FILE_CHECK_H
#define GPUHAL_LOADER_FILE_CHECK_H

#include "loader/load_context.h"
#include "os/os.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_checked_file {
    char *path; /* malloc'ed, without symbolic links */
    uint64_t device, inode, bytes;
} gpuhal_checked_file;

/* The folder of a file that was checked, if no link leads there. The plugins of a listing and their manifests lie side
 * by side, so the path to them is checked once. All zero means none. */
struct gpuhal_known_folder {
    char *path; /* malloc'ed */
    gpuhal_file_info info;
};
void gpuhal_known_folder_finish(gpuhal_known_folder *folder);

/* Checks that it is a regular file that other users can neither change nor replace: SECURITY.md has the rules. In a
 * privileged process it must belong to root alone. In other processes an owner other than root and the user causes a
 * warning. */
bool gpuhal_file_check_trust(gpuhal_load_context *load, const char *path, gpuhal_checked_file *out_file);
/* Checks that it is complete, and for this machine. `program`: may be an executable of fixed addresses too. */
bool gpuhal_file_check_image(gpuhal_load_context *load, const gpuhal_checked_file *file, bool program);
/* Does both checks. */
bool gpuhal_file_check(gpuhal_load_context *load, const char *path, bool program, gpuhal_checked_file *out_file);
/* Describes why a file cannot be read; `error` is an errno. Always returns false. */
bool gpuhal_file_refuse_unreadable(gpuhal_load_context *load, const char *path, int error);
void gpuhal_checked_file_finish(gpuhal_checked_file *file);

#endif
