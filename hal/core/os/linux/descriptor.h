/* os/linux/descriptor.h: keeps files off descriptors 0 to 2. If a process has closed one of these, open() could return
 * its number, and the process would print into the file. */
#ifndef GPUHAL_OS_DESCRIPTOR_H
#define GPUHAL_OS_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Takes a result of open(). Returns the descriptor, moved up if necessary; negative with errno on failure. */
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
