/* output.c: see output.h. Writes the contents to a temporary file in the same directory and renames that file. The
 * temporary name begins with a dot and has a different ending, so that programs that read all files in the directory
 * ignore it. */
#include "output.h"

#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, const char *why)
{
    gpuhal_probe_say("%s cannot be written: %s", path, why);
    return false;
}

/* Returns whether the path refers to a descriptor. Links in /proc resolve to the descriptor's file. This program has
 * rearranged its descriptors, so /dev/stdout refers to standard error's file. */
static bool names_descriptor(const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return strncmp(path, "/dev/std", 8) == 0 || (realpath(folder, real) && strncmp(real, "/proc/", 6) == 0);
}

/* Resolves symbolic links, so that the link's target is replaced and not the link. A file without write permission is
 * not replaced, even if the directory's permissions allow it. */
static bool find_target(const char *path, char target[PATH_MAX])
{
    struct stat status;
    if (names_descriptor(path)) {
        return fail(path, "it names a descriptor; without --output the listing goes to standard output");
    }
    if (lstat(path, &status) != 0) {
        const int error = errno, length = snprintf(target, PATH_MAX, "%s", path);
        return (error == ENOENT && length < PATH_MAX) || fail(path, strerror(error));
    }
    if (!realpath(path, target) || stat(target, &status) != 0) {
        return fail(path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(path, "it is not a regular file");
    }
    const bool writable = (status.st_mode & 0222) && faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) == 0;
    return writable || fail(path, "it is read-only");
}

static bool write_all(int file, const char *bytes, size_t count)
{
    while (count) {
        const ssize_t written = write(file, bytes, count);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return fchmod(file, 0644) == 0 && fsync(file) == 0;
}

/* Writes the directory to disk, so that the rename survives a system crash. If a directory cannot be synchronised, the
 * rename still takes effect. */
static void synchronise_folder(const char *folder)
{
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

static bool replace(const char *path, const char *target, const char *bytes, size_t count)
{
    char temporary[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(target, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - target) + 1 : 2, slash ? target : "./");
    const int length = snprintf(temporary, sizeof temporary, "%s.%s.XXXXXX", folder, slash ? slash + 1 : target);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return fail(path, strerror(ENAMETOOLONG));
    }
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) {
        return fail(path, strerror(errno));
    }
    bool written = write_all(file, bytes, count);
    int reason = written ? 0 : errno;
    if (close(file) != 0 && !reason) { /* some file systems report a full disk only now */
        reason = errno;
    }
    if (!reason && rename(temporary, target) != 0) {
        reason = errno;
    }
    if (reason) {
        unlink(temporary);
        return fail(path, strerror(reason));
    }
    synchronise_folder(folder);
    return true;
}

bool gpuhal_probe_output_write(const char *path, const char *bytes, size_t count)
{
    char target[PATH_MAX];
    sigset_t ending, before;
    sigemptyset(&ending);
    for (size_t i = 0; i < 3; i++) {
        sigaddset(&ending, (const int[]){SIGINT, SIGTERM, SIGHUP}[i]);
    }
    /* Delay fatal signals until the temporary file is gone. */
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    const bool done = find_target(path, target) && replace(path, target, bytes, count);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}
