/* common/file.h: opens files below /proc and /sys, or below the directory that replaces the root. */
#ifndef GPUHAL_PLUGIN_FILE_H
#define GPUHAL_PLUGIN_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a file for reading. Returns -1 with errno. Fails with EINVAL if it is not a regular file, since reading a pipe
 * or a device might block forever. */
static inline int gpuhal_plugin_open_plain(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(file);
        errno = EINVAL;
        file = -1;
    }
    return file;
}

#endif
