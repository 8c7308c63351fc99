/* os/linux/file.c: file attributes and contents. No function here may block on a FIFO or wake a device. The file's type
 * is therefore checked before opening, and again afterwards, since it may change in between. For files in /proc and
 * /sys the check afterwards suffices, because none of them is a device. */
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gpuhal_file_info info_of(const struct stat *status)
{
    return (gpuhal_file_info){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .bytes = (uint64_t)status->st_size,
        .owner = (uint32_t)status->st_uid,
        .regular = S_ISREG(status->st_mode),
        .directory = S_ISDIR(status->st_mode),
        .group_writable = (status->st_mode & S_IWGRP) != 0,
        .world_writable = (status->st_mode & S_IWOTH) != 0,
        .sticky = (status->st_mode & S_ISVTX) != 0,
    };
}

int gpuhal_os_file_info(const char *path, gpuhal_file_info *out_info)
{
    struct stat status;
    *out_info = (gpuhal_file_info){0};
    if (stat(path, &status)) {
        return errno;
    }
    *out_info = info_of(&status);
    return 0;
}

int gpuhal_os_link_info(const char *path, gpuhal_file_info *out_info, char **out_target)
{
    struct stat status;
    char target[PATH_MAX];
    *out_info = (gpuhal_file_info){0};
    *out_target = NULL;
    if (lstat(path, &status)) {
        return errno;
    }
    *out_info = info_of(&status);
    if (!S_ISLNK(status.st_mode)) {
        return 0;
    }
    ssize_t length = readlink(path, target, sizeof target);
    if (length < 0 || (size_t)length == sizeof target) {
        return length < 0 ? errno : ENAMETOOLONG;
    }
    *out_target = strndup(target, (size_t)length);
    return *out_target ? 0 : ENOMEM;
}

bool gpuhal_os_is_own_output(const gpuhal_file_info *file)
{
    const int outputs[] = {STDOUT_FILENO, STDERR_FILENO};
    struct stat status;
    bool own = false;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !own; i++) {
        own = fstat(outputs[i], &status) == 0 && (uint64_t)status.st_dev == file->device &&
              (uint64_t)status.st_ino == file->inode;
    }
    return own;
}

char *gpuhal_os_real_path(const char *path, int *out_errno)
{
    char *real = realpath(path, NULL);
    *out_errno = real ? 0 : errno;
    return real;
}

static int open_checked(int folder, const char *path, int *out_file, uint64_t *out_bytes)
{
    int file = openat(folder, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file < 0) {
        return errno;
    }
    struct stat status;
    int error = fstat(file, &status) ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
    if (error) {
        close(file);
        return error;
    }
    *out_file = file;
    *out_bytes = (uint64_t)status.st_size;
    return 0;
}

static int open_regular(const char *path, int *out_file, uint64_t *out_bytes)
{
    gpuhal_file_info info;
    int error = gpuhal_os_file_info(path, &info);
    error = !error && !info.regular ? EINVAL : error;
    return error ? error : open_checked(AT_FDCWD, path, out_file, out_bytes);
}

static int read_fully(int file, uint64_t offset, char *to, size_t bytes, size_t *out_bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file, to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    *out_bytes = done;
    return 0;
}

int gpuhal_os_file_read(const char *path, size_t limit, char **out_text, size_t *out_bytes)
{
    *out_text = NULL;
    *out_bytes = 0;
    int file = -1;
    uint64_t size = 0;
    int error = open_regular(path, &file, &size);
    if (error) {
        return error;
    }
    char *text = NULL;
    /* Files in /proc have size 0, those in /sys a page whatever they contain, and other files may grow in the meantime.
     * One extra byte is read to detect longer files. */
    for (size_t room = size > 0 && size <= limit ? (size_t)size : limit;; room = limit) {
        text = malloc(room + 2);
        error = text ? read_fully(file, 0, text, room + 1, out_bytes) : ENOMEM;
        if (error || *out_bytes <= room || room == limit) {
            break;
        }
        free(text);
    }
    if (!error && *out_bytes > limit) {
        error = EFBIG;
    }
    if (!error) {
        text[*out_bytes] = 0;
        *out_text = text;
        text = NULL;
    } else {
        *out_bytes = 0;
    }
    free(text);
    close(file);
    return error;
}

int gpuhal_os_file_read_at(const char *path, uint64_t offset, void *to, size_t bytes, size_t *out_bytes)
{
    *out_bytes = 0;
    int file = -1;
    uint64_t size = 0;
    int error = open_regular(path, &file, &size);
    if (error) {
        return error;
    }
    error = offset > (uint64_t)INT64_MAX - bytes ? EINVAL : read_fully(file, offset, to, bytes, out_bytes);
    close(file);
    return error;
}

int gpuhal_os_kernel_file_read(intptr_t folder, const char *path, void *to, size_t bytes, size_t *out_bytes)
{
    *out_bytes = 0;
    int file = -1;
    uint64_t size = 0;
    int error = open_checked(folder < 0 ? AT_FDCWD : (int)folder, path, &file, &size);
    if (error) {
        return error;
    }
    ssize_t got;
    while ((got = pread(file, to, bytes, 0)) < 0 && errno == EINTR) {
    }
    *out_bytes = got < 0 ? 0 : (size_t)got;
    error = got < 0 ? errno : 0;
    close(file);
    return error;
}

int gpuhal_os_link_read(intptr_t folder, const char *path, char *to, size_t bytes)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(folder < 0 ? AT_FDCWD : (int)folder, path, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = 0;
    snprintf(to, bytes, "%s", target);
    return length < 0 ? errno : 0;
}

intptr_t gpuhal_os_directory_open(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

int gpuhal_os_directory_names(const char *path, char ***out_names, size_t *out_count)
{
    *out_names = NULL;
    *out_count = 0;
    DIR *directory = opendir(path);
    if (!directory) {
        return errno;
    }
    char **names = NULL;
    size_t count = 0, capacity = 0;
    int error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            char **more = realloc(names, capacity * sizeof *more);
            if (!more) {
                error = ENOMEM;
                break;
            }
            names = more;
        }
        names[count] = strdup(entry->d_name);
        if (!names[count]) {
            error = ENOMEM;
            break;
        }
        count++;
    }
    closedir(directory);
    if (error) {
        gpuhal_os_names_free(names, count);
        return error;
    }
    if (count > 0) {
        qsort(names, count, sizeof *names, compare_names);
    }
    *out_names = names;
    *out_count = count;
    return 0;
}

void gpuhal_os_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

int gpuhal_os_directory_links(const char *path, bool (*visit)(void *user, const char *name, const char *target),
                              void *user)
{
    DIR *directory = opendir(path);
    if (!directory) {
        return errno;
    }
    bool more = true;
    int error = 0;
    while (more) {
        char target[PATH_MAX];
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            error = errno;
            break;
        }
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length >= 0) {
            target[length] = 0;
            more = visit(user, entry->d_name, target);
        }
    }
    closedir(directory);
    return error;
}

uint32_t gpuhal_os_user(void)
{
    return (uint32_t)geteuid();
}

bool gpuhal_os_is_descriptor(intptr_t descriptor)
{
    return descriptor >= 0 && descriptor <= INT_MAX && fcntl((int)descriptor, F_GETFD) >= 0;
}

void gpuhal_os_descriptor_close(intptr_t descriptor)
{
    close((int)descriptor);
}

intptr_t gpuhal_os_descriptor_copy(intptr_t descriptor)
{
    return fcntl((int)descriptor, F_DUPFD_CLOEXEC, 0);
}
