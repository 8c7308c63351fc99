/* os/linux/state.c: files that are replaced atomically, and locks between processes. Files created here are accessible
 * only by their owner. Writes return after the data is on disk. */
#include "os/linux/descriptor.h"
#include "os/linux/size_limit.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_PAUSE_NS 2000000u

uint64_t gpuhal_os_wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > 0 ? (uint64_t)now.tv_sec : 0;
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int gpuhal_os_file_state(const char *path, gpuhal_file_state *out_state)
{
    struct stat status;
    *out_state = (gpuhal_file_state){0};
    if (stat(path, &status)) {
        return errno;
    }
    *out_state = (gpuhal_file_state){
        .device = (uint64_t)status.st_dev,
        .inode = (uint64_t)status.st_ino,
        .bytes = (uint64_t)status.st_size,
        .node = (uint64_t)status.st_rdev,
        .modified_ns = nanoseconds(status.st_mtim),
        .changed_ns = nanoseconds(status.st_ctim),
        .mode = (uint32_t)status.st_mode,
        .owner = (uint32_t)status.st_uid,
        .group = (uint32_t)status.st_gid,
        .directory = S_ISDIR(status.st_mode),
    };
    return 0;
}

int gpuhal_os_file_touch(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0) ? errno : 0;
}

int gpuhal_os_may_use(const char *path)
{
    return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) ? errno : 0;
}

/* Syncs the parent, so that the new directory survives a crash. */
static int make_one(const char *path, size_t parent_length)
{
    char parent[PATH_MAX];
    if (mkdir(path, 0700)) {
        return errno;
    }
    memcpy(parent, path, parent_length);
    parent[parent_length] = 0;
    return gpuhal_os_directory_sync(parent_length > 0 ? parent : "/");
}

int gpuhal_os_directory_make(const char *path)
{
    char some[PATH_MAX];
    size_t length = strlen(path), parent_length = 0;
    int error = 0;
    if (length >= sizeof some) {
        return ENAMETOOLONG;
    }
    if (access(path, F_OK) == 0) {
        return 0;
    }
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != 0) {
            continue;
        }
        memcpy(some, path, end);
        some[end] = 0;
        error = make_one(some, parent_length);
        /* The error of mkdir does not show whether the directory exists. For an existing one it may be EEXIST, EROFS or
         * EACCES. */
        if (error && access(some, F_OK)) {
            return error;
        }
        parent_length = end;
    }
    return 0;
}

static ssize_t write_quietly(int file, const char *bytes, size_t count)
{
    gpuhal_size_limit held;
    gpuhal_size_limit_begin(&held);
    ssize_t done = write(file, bytes, count);
    gpuhal_size_limit_end(&held, done < 0 ? errno : 0);
    return done;
}

static int write_fully(int file, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write_quietly(file, bytes, count);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done == 0) {
            return ENOSPC;
        }
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* O_EXCL and O_NOFOLLOW prevent writing to an existing file or through another user's link. The file is synced, because
 * the caller then renames it over the old file, and a crash could otherwise leave an empty file. */
int gpuhal_os_file_write_new(const char *path, const void *bytes, size_t count)
{
    int file = gpuhal_descriptor_move_up(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file < 0) {
        return errno;
    }
    int error = write_fully(file, bytes, count);
    if (!error && fsync(file)) {
        error = errno;
    }
    if (close(file) && !error) {
        error = errno;
    }
    if (error) {
        unlink(path);
    }
    return error;
}

int gpuhal_os_file_rename(const char *from, const char *to)
{
    return rename(from, to) ? errno : 0;
}

int gpuhal_os_file_link(const char *from, const char *to)
{
    return link(from, to) ? errno : 0;
}

int gpuhal_os_file_remove(const char *path)
{
    return unlink(path) ? errno : 0;
}

int gpuhal_os_directory_sync(const char *path)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return errno;
    }
    /* EINVAL means that the file system does not store directories on a disk, so no sync is needed. */
    int error = fsync(directory) && errno != EINVAL ? errno : 0;
    close(directory);
    return error;
}

int gpuhal_os_lock_take(const char *path, uint64_t timeout_ns, intptr_t *out_lock)
{
    uint64_t begin = gpuhal_os_monotonic_ns();
    int file = gpuhal_descriptor_move_up(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (file < 0) {
        return errno;
    }
    /* flock has no timeout, so the lock is polled. */
    while (flock(file, LOCK_EX | LOCK_NB)) {
        int error = errno;
        bool busy = error == EWOULDBLOCK || error == EINTR;
        if (!busy || gpuhal_os_monotonic_ns() - begin >= timeout_ns) {
            close(file);
            return busy ? ETIMEDOUT : error;
        }
        gpuhal_os_sleep(LOCK_PAUSE_NS);
    }
    *out_lock = file;
    return 0;
}

void gpuhal_os_lock_give(intptr_t lock)
{
    /* A child forked in the meantime shares the lock, so close() alone would not release it. */
    flock((int)lock, LOCK_UN);
    close((int)lock);
}
