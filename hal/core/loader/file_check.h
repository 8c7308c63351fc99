/* loader/file_check.h: checks a file before any of its code runs. Nothing here may execute or map the file.
 *
 * A half-copied library would crash the process that loads it, a FIFO would block the process, and a user with write
 * access to the file could run any code in it. These checks protect against accidents and wrong permissions, and the
 * helper process against hostile files.
 */
#ifndef GPUHAL_LOADER_FILE_CHECK_H
#define GPUHAL_LOADER_FILE_CHECK_H

#include "loader/load_context.h"
#include "os/os.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_checked_file {
    char *path; /* malloc'ed, symbolic links resolved */
    uint64_t device, inode, bytes;
} gpuhal_checked_file;

/* The folder of the last checked file whose path has no symbolic link, ".", ".." or "//". Plugins and their manifests
 * are usually in one folder, so the path to it is checked only once. All zero means none. */
struct gpuhal_known_folder {
    char *path; /* malloc'ed */
    gpuhal_file_info info;
};
void gpuhal_known_folder_finish(gpuhal_known_folder *folder);

/* Checks that the file is a regular file that other users can neither change nor replace (SECURITY.md lists the rules).
 * In a privileged process the file must belong to root and must not be group-writable. In other processes, an owner
 * other than root and the user only causes a warning. */
bool gpuhal_file_check_trust(gpuhal_load_context *load, const char *path, gpuhal_checked_file *out_file);
/* Checks that the file is complete and built for this machine. With `program`, also accepts a position-dependent
 * executable. */
bool gpuhal_file_check_image(gpuhal_load_context *load, const gpuhal_checked_file *file, bool program);
/* Runs gpuhal_file_check_trust() and gpuhal_file_check_image(). */
bool gpuhal_file_check(gpuhal_load_context *load, const char *path, bool program, gpuhal_checked_file *out_file);
/* Fails with the reason why a file cannot be read; `error` is an errno. Always returns false. */
bool gpuhal_file_refuse_unreadable(gpuhal_load_context *load, const char *path, int error);
void gpuhal_checked_file_finish(gpuhal_checked_file *file);

#endif
