/* os/linux/descriptor.h: keeps files away from the numbers of standard input, output and error. A process that has
 * closed one of these would give its number to the next file, and print into that. */
#ifndef GPUHAL_OS_DESCRIPTOR_H
#define GPUHAL_OS_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Returns the result of open(), moved up if need be; below 0 with errno. */
static inline int gpuhal_descriptor_move_up(int file)
{
    if (file < 0 || file > STDERR_FILENO) {
        return file;
    }
    const int above = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(file);
    errno = error;
    return above;
}

#endif
