/* os/linux/file_io.c: large reads and writes at file offsets, with or without the page cache. The file position is
 * neither used nor changed, so any number of threads may share a descriptor. */
#include "os/linux/descriptor.h"
#include "os/linux/size_limit.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The O_DIRECT alignment of practically all disks, used if the kernel does not report it (before Linux 6.1). */
enum { USUAL_ALIGNMENT = 4096 };

/* Refuses files without offsets. Whether a device has offsets is known only after opening. */
static int check_form(mode_t mode, int file)
{
    if (S_ISDIR(mode)) {
        return EISDIR;
    }
    if (S_ISFIFO(mode) || S_ISSOCK(mode)) {
        return ESPIPE;
    }
    return file >= 0 && lseek(file, 0, SEEK_CUR) < 0 ? errno : 0;
}

/* Opening a FIFO could block, or unblock another process, so the type is checked before opening and again
 * afterwards. */
int gpuhal_os_file_open(const char *path, bool writes, intptr_t *out_file)
{
    struct stat status;
    bool missing = stat(path, &status) != 0;
    int error = missing ? errno : check_form(status.st_mode, -1);
    if (error && !(missing && error == ENOENT && writes)) {
        return error;
    }
    int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (writes ? O_WRONLY | O_CREAT : O_RDONLY);
    int file = gpuhal_descriptor_move_up(open(path, flags, 0666));
    if (file < 0) {
        return errno;
    }
    error = fstat(file, &status) ? errno : check_form(status.st_mode, file);
    if (error) {
        close(file);
        return error;
    }
    *out_file = file;
    return 0;
}

/* Reopens a file, even if it has no name. */
static int open_again(int file, int flags)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    return gpuhal_descriptor_move_up(open(name, flags | O_CLOEXEC | O_NONBLOCK));
}

/* Linux: "if a file is opened with O_APPEND, pwrite() appends data to the end of the file, regardless of the value of
 * offset" (pwrite(2), BUGS). An O_DIRECT descriptor accepts only aligned transfers, so the file is reopened without
 * O_DIRECT. */
int gpuhal_os_file_adopt(intptr_t descriptor, bool writes, intptr_t *out_file)
{
    struct stat status;
    if (descriptor < 0 || descriptor > INT_MAX) {
        return EBADF;
    }
    int flags = fcntl((int)descriptor, F_GETFL);
    if (flags < 0 || fstat((int)descriptor, &status)) {
        return errno;
    }
    int access = flags & O_ACCMODE;
    if ((flags & O_PATH) || access == (writes ? O_RDONLY : O_WRONLY)) {
        return EBADF;
    }
    int error = check_form(status.st_mode, (int)descriptor);
    error = !error && writes && (flags & O_APPEND) ? EINVAL : error;
    if (error) {
        return error;
    }
    int file = flags & O_DIRECT ? open_again((int)descriptor, access)
                                : fcntl((int)descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    *out_file = file;
    return file < 0 ? errno : 0;
}

int gpuhal_os_file_size(intptr_t file, uint64_t *out_bytes)
{
    struct stat status;
    if (fstat((int)file, &status)) {
        return errno;
    }
    *out_bytes = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : UINT64_MAX;
    return 0;
}

int gpuhal_os_file_read_piece(intptr_t file, uint64_t offset, void *to, uint64_t bytes, uint64_t *out_done)
{
    *out_done = 0;
    while (*out_done < bytes) {
        ssize_t got =
            pread((int)file, (char *)to + *out_done, (size_t)(bytes - *out_done), (off_t)(offset + *out_done));
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        *out_done += got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

/* A pwrite() that returns 0 is an error (EIO). Otherwise it would be retried forever. */
int gpuhal_os_file_write_piece(intptr_t file, uint64_t offset, const void *from, uint64_t bytes, uint64_t *out_done)
{
    gpuhal_size_limit held;
    int error = 0;
    *out_done = 0;
    gpuhal_size_limit_begin(&held);
    while (*out_done < bytes && !error) {
        ssize_t put =
            pwrite((int)file, (const char *)from + *out_done, (size_t)(bytes - *out_done), (off_t)(offset + *out_done));
        *out_done += put > 0 ? (uint64_t)put : 0;
        error = put > 0 || (put < 0 && errno == EINTR) ? 0 : put == 0 ? EIO : errno;
    }
    gpuhal_size_limit_end(&held, error);
    return error;
}

/* RWF_NOWAIT (Linux 4.14) reads cached bytes and returns EAGAIN for others. If a file system does not support the flag,
 * its files count as cached, because reading through the page cache is good enough. */
bool gpuhal_os_file_is_cached(intptr_t file, uint64_t offset)
{
#ifdef RWF_NOWAIT
    char byte;
    struct iovec one = {&byte, 1};
    return preadv2((int)file, &one, 1, (off_t)offset, RWF_NOWAIT) >= 0 || errno != EAGAIN;
#else /* musl before 1.2.5 */
    (void)file, (void)offset;
    return true;
#endif
}

/* A file system without O_DIRECT refuses the flag (tmpfs before Linux 6.6) or reports alignments of 0. */
int gpuhal_os_file_open_direct(intptr_t file, gpuhal_direct_file *out_direct)
{
    *out_direct =
        (gpuhal_direct_file){.file = -1, .offset_mask = USUAL_ALIGNMENT - 1, .memory_mask = USUAL_ALIGNMENT - 1};
    int direct = open_again((int)file, O_RDONLY | O_DIRECT);
    if (direct < 0) {
        return errno;
    }
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN)) {
        out_direct->offset_mask = (uint64_t)status.stx_dio_offset_align - 1;
        out_direct->memory_mask = (uint64_t)status.stx_dio_mem_align - 1;
    }
#endif
    if (out_direct->offset_mask >= USUAL_ALIGNMENT || out_direct->memory_mask >= USUAL_ALIGNMENT) {
        close(direct);
        return EINVAL;
    }
    out_direct->file = direct;
    return 0;
}

/* File systems without O_TMPFILE return EOPNOTSUPP, kernels before 3.11 EISDIR. Then the file briefly has a new name.
 * mkostemp() uses O_EXCL, which does not follow symbolic links. */
int gpuhal_os_file_open_unnamed(const char *folder, intptr_t *out_file)
{
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        char path[PATH_MAX];
        const int length = snprintf(path, sizeof path, "%s/.gpuhal-XXXXXX", folder);
        if (length < 0 || (size_t)length >= sizeof path) {
            return ENAMETOOLONG;
        }
        file = mkostemp(path, O_CLOEXEC);
        if (file >= 0) {
            unlink(path);
        }
    }
    file = gpuhal_descriptor_move_up(file);
    *out_file = file;
    return file < 0 ? errno : 0;
}

bool gpuhal_os_disk_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

int gpuhal_os_file_truncate(intptr_t file, uint64_t bytes)
{
    gpuhal_size_limit held;
    gpuhal_size_limit_begin(&held);
    const int error = ftruncate((int)file, (off_t)bytes) ? errno : 0;
    gpuhal_size_limit_end(&held, error);
    return error;
}

/* Files that are not on a disk need no sync. */
int gpuhal_os_file_sync(intptr_t file)
{
    return fdatasync((int)file) && errno != EINVAL && errno != EROFS ? errno : 0;
}
