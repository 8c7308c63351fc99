/* loader/file_check.h: what is demanded of a file before any byte of it runs. Nothing here executes or maps the file.
 *
 * A half-copied library kills the process that loads it, a FIFO hangs it, and whoever may write the file decides what runs. The
 * checks are about accidents and permissions; what a hostile file does is the helper process's business.
 */
#ifndef GPUHAL_LOADER_FILE_CHECK_H
#define GPUHAL_LOADER_FILE_CHECK_H

#include "loader/load_context.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_checked_file {
    char *path; /* malloc'ed, without symbolic links */
    uint64_t device, inode, bytes;
} gpuhal_checked_file;

/* A regular file that not everybody can change, nor put another in its place: SECURITY.md has the rules. In a privileged
 * process it belongs to root alone; elsewhere another owner than root and the user is worth a warning. */
bool gpuhal_file_check_trust(gpuhal_load_context *load, const char *path, gpuhal_checked_file *out_file);
/* Complete, and for this machine. `program`: may be an executable of fixed addresses too. */
bool gpuhal_file_check_image(gpuhal_load_context *load, const gpuhal_checked_file *file, bool program);
/* Both. */
bool gpuhal_file_check(gpuhal_load_context *load, const char *path, bool program, gpuhal_checked_file *out_file);
/* Says why a file cannot be read, an errno; always false. */
bool gpuhal_file_refuse_unreadable(gpuhal_load_context *load, const char *path, int error);
void gpuhal_checked_file_finish(gpuhal_checked_file *file);

#endif
