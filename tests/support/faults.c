/* tests/support/faults.c: see faults.h. */
#include "support/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic gpuhal_fault fault_kind;
static _Atomic unsigned own_calls, *calls = &own_calls;
static unsigned fault_at;
static int fault_errno;
static _Atomic(const char *) failed;
static _Atomic int64_t held;

static bool is_hit(bool allocation, const char *name)
{
    gpuhal_fault kind = fault_kind;
    bool hit = kind != GPUHAL_FAULT_NOTHING && allocation == (kind == GPUHAL_FAULT_ALLOCATION) && ++*calls == fault_at;
    if (hit) {
        failed = name;
    }
    return hit;
}

/* The planned result of a system call. */
typedef struct fate {
    bool fails, dies_after, is_short;
    int error;
} fate;

static fate fate_of(const char *name, int error)
{
    bool hit = is_hit(false, name);
    if (hit && fault_kind == GPUHAL_FAULT_KILL_BEFORE) {
        kill(getpid(), SIGKILL);
    }
    return (fate){.fails = hit && fault_kind == GPUHAL_FAULT_FAIL,
                  .dies_after = hit && fault_kind == GPUHAL_FAULT_KILL_AFTER,
                  .is_short = hit && fault_kind == GPUHAL_FAULT_SHORT,
                  .error = fault_errno ? fault_errno : error};
}

static void die_if(bool dies)
{
    if (dies) {
        kill(getpid(), SIGKILL);
    }
}

void gpuhal_fault_begin(gpuhal_fault kind, unsigned at, int error)
{
    *calls = 0;
    failed = "";
    fault_at = at;
    fault_errno = error;
    fault_kind = kind;
}

bool gpuhal_fault_end(void)
{
    fault_kind = GPUHAL_FAULT_NOTHING;
    return *calls >= fault_at;
}

void gpuhal_fault_count_in(_Atomic unsigned *place)
{
    calls = place;
}

unsigned gpuhal_fault_calls(void)
{
    return *calls;
}

const char *gpuhal_fault_name(void)
{
    return failed ? failed : "";
}

int64_t gpuhal_fault_held(void)
{
    return held;
}

/* ---- system calls. Each wrapper either makes the real call, or returns the result of a failed call. */

#define ERRNO(answer) (errno = lot.error, answer)
#define WRAP(type, name, parameters, arguments, error, failure)                                                        \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        const fate lot = fate_of(#name, error);                                                                        \
        if (lot.fails) {                                                                                               \
            return failure;                                                                                            \
        }                                                                                                              \
        type answer = __real_##name arguments;                                                                         \
        die_if(lot.dies_after);                                                                                        \
        return answer;                                                                                                 \
    }

WRAP(int, fsync, (int file), (file), EIO, ERRNO(-1))
WRAP(int, fdatasync, (int file), (file), EIO, ERRNO(-1))
WRAP(int, rename, (const char *from, const char *to), (from, to), EIO, ERRNO(-1))
WRAP(int, link, (const char *from, const char *to), (from, to), EMLINK, ERRNO(-1))
WRAP(int, unlink, (const char *path), (path), EACCES, ERRNO(-1))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), EACCES, ERRNO(-1))
WRAP(int, flock, (int file, int operation), (file, operation), ENOLCK, ERRNO(-1))
WRAP(int, ftruncate, (int file, off_t bytes), (file, bytes), EIO, ERRNO(-1))
WRAP(off_t, lseek, (int file, off_t at, int whence), (file, at, whence), EIO, ERRNO(-1))
WRAP(ssize_t, read, (int file, void *to, size_t count), (file, to, count), EIO, ERRNO(-1))
WRAP(ssize_t, pread, (int file, void *to, size_t count, off_t at), (file, to, count, at), EIO, ERRNO(-1))
WRAP(ssize_t, pwrite, (int file, const void *from, size_t count, off_t at), (file, from, count, at), ENOSPC, ERRNO(-1))
WRAP(int, stat, (const char *path, struct stat *out), (path, out), EIO, ERRNO(-1))
WRAP(int, lstat, (const char *path, struct stat *out), (path, out), EIO, ERRNO(-1))
WRAP(int, fstat, (int file, struct stat *out), (file, out), EIO, ERRNO(-1))
WRAP(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *out), (at, path, flags, mask, out),
     ENOSYS, ERRNO(-1))
WRAP(int, access, (const char *path, int mode), (path, mode), EACCES, ERRNO(-1))
WRAP(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags), EACCES, ERRNO(-1))
WRAP(ssize_t, readlink, (const char *path, char *to, size_t bytes), (path, to, bytes), EIO, ERRNO(-1))
WRAP(int, pipe2, (int ends[2], int flags), (ends, flags), EMFILE, ERRNO(-1))
WRAP(int, poll, (struct pollfd *list, nfds_t count, int timeout), (list, count, timeout), ENOMEM, ERRNO(-1))
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, ERRNO(-1))
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, ERRNO(-1))
WRAP(int, madvise, (void *address, size_t bytes, int advice), (address, bytes, advice), EINVAL, ERRNO(-1))
WRAP(int, msync, (void *address, size_t bytes, int flags), (address, bytes, flags), ENOMEM, ERRNO(-1))
WRAP(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), EINTR, ERRNO(-1))
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, ERRNO(NULL))
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, ERRNO(NULL))
WRAP(void *, dlopen, (const char *path, int flags), (path, flags), 0, NULL)
WRAP(void *, dlsym, (void *library, const char *name), (library, name), 0, NULL)
WRAP(int, pthread_create, (pthread_t * out, const pthread_attr_t *how, void *(*run)(void *), void *user),
     (out, how, run, user), EAGAIN, lot.error)
WRAP(int, posix_spawn,
     (pid_t * out, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
      char *const *arguments, char *const *environment),
     (out, path, actions, how, arguments, environment), EAGAIN, lot.error)
WRAP(ssize_t, preadv2, (int file, const struct iovec *parts, int count, off_t at, int flags),
     (file, parts, count, at, flags), ENOSYS, ERRNO(-1))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    const fate lot = fate_of("open", EMFILE);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;
    va_end(arguments);
    if (lot.fails) {
        return ERRNO(-1);
    }
    int answer = __real_open(path, flags, mode);
    die_if(lot.dies_after);
    return answer;
}

int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...)
{
    const fate lot = fate_of("fcntl", EMFILE);
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    if (lot.fails) {
        return ERRNO(-1);
    }
    return __real_fcntl(file, command, argument);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    const fate lot = fate_of("syscall", ENOSYS);
    va_list arguments;
    long argument[6];
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) {
        argument[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    if (lot.fails) {
        return ERRNO(-1);
    }
    return __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count)
{
    const fate lot = fate_of("write", ENOSPC);
    if (lot.fails) {
        return ERRNO(-1);
    }
    /* Writes only half of the bytes if the write must be short or the process is killed after the write. */
    ssize_t answer = __real_write(file, bytes, lot.dies_after || lot.is_short ? count / 2 : count);
    die_if(lot.dies_after);
    return answer;
}

/* As in Linux, even a failed close() releases the descriptor. */
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file)
{
    const fate lot = fate_of("close", EIO);
    int answer = __real_close(file);
    die_if(lot.dies_after);
    return lot.fails ? ERRNO(-1) : answer;
}

/* ---- memory */

static void *took(void *memory)
{
    held += memory != NULL;
    return memory;
}

void *__real_mmap(void *address, size_t bytes, int access, int flags, int file, off_t at);
void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int file, off_t at);
void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int file, off_t at)
{
    const fate lot = fate_of("mmap", ENOMEM);
    if (lot.fails) {
        return ERRNO(MAP_FAILED);
    }
    void *answer = __real_mmap(address, bytes, access, flags, file, at);
    held += answer != MAP_FAILED;
    return answer;
}

int __real_munmap(void *address, size_t bytes);
int __wrap_munmap(void *address, size_t bytes);
int __wrap_munmap(void *address, size_t bytes)
{
    int answer = __real_munmap(address, bytes);
    held -= answer == 0;
    return answer;
}

#define ALLOCATION(name, parameters, arguments)                                                                        \
    void *__real_##name parameters;                                                                                    \
    void *__wrap_##name parameters;                                                                                    \
    void *__wrap_##name parameters                                                                                     \
    {                                                                                                                  \
        return is_hit(true, #name) ? (errno = ENOMEM, NULL) : took(__real_##name arguments);                           \
    }
ALLOCATION(malloc, (size_t bytes), (bytes))
ALLOCATION(calloc, (size_t count, size_t bytes), (count, bytes))
ALLOCATION(strdup, (const char *text), (text))
ALLOCATION(strndup, (const char *text, size_t count), (text, count))

/* gpuhal passes NULL for `to`, so that realpath() allocates. */
char *__real_realpath(const char *path, char *to);
char *__wrap_realpath(const char *path, char *to);
char *__wrap_realpath(const char *path, char *to)
{
    return is_hit(true, "realpath") ? (errno = ENOMEM, NULL) : took(__real_realpath(path, to));
}

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    if (is_hit(true, "realloc")) {
        errno = ENOMEM;
        return NULL;
    }
    void *answer = __real_realloc(old, bytes);
    return old ? answer : took(answer);
}

int __real_posix_memalign(void **out_memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out_memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out_memory, size_t alignment, size_t bytes)
{
    int error = is_hit(true, "posix_memalign") ? ENOMEM : __real_posix_memalign(out_memory, alignment, bytes);
    held += error == 0;
    return error;
}

void *__real_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));
void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));
void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
    return is_hit(true, "tsearch") ? NULL : __real_tsearch(key, root, compare);
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    held -= memory != NULL;
    __real_free(memory);
}
