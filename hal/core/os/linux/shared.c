/* os/linux/shared.c: files that several processes use at once: locks on bytes, futex words, and process identities. */
#include "os/linux/descriptor.h"
#include "os/linux/size_limit.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define WORD_BYTES 4u
enum { STAT_BYTES = 1024 };

uint64_t gpuhal_os_boot_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* With O_NONBLOCK, opening a FIFO does not block. The mode of a new file is set again, since the umask may deny other
 * users access. */
int gpuhal_os_shared_open(const char *path, uint32_t mode, intptr_t *out_file)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    struct stat status;
    int file = mode == 0 ? open(path, flags) : open(path, flags | O_CREAT | O_EXCL, (mode_t)mode);
    if (file >= 0 && mode != 0) {
        (void)fchmod(file, (mode_t)mode);
    } else if (file < 0) {
        file = errno == EEXIST ? open(path, flags) : -1;
    }
    file = gpuhal_descriptor_move_up(file);
    if (file < 0) {
        return errno;
    }
    const int error = fstat(file, &status) ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
    if (error) {
        close(file);
        return error;
    }
    *out_file = file;
    return 0;
}

int gpuhal_os_shared_info(intptr_t file, gpuhal_file_info *out_info, bool *out_unlinked)
{
    struct stat status;
    if (fstat((int)file, &status)) {
        return errno;
    }
    *out_info = (gpuhal_file_info){
        .device = (uint64_t)status.st_dev,
        .inode = (uint64_t)status.st_ino,
        .bytes = (uint64_t)status.st_size,
        .owner = (uint32_t)status.st_uid,
        .regular = S_ISREG(status.st_mode),
        .directory = S_ISDIR(status.st_mode),
        .group_writable = (status.st_mode & S_IWGRP) != 0,
        .world_writable = (status.st_mode & S_IWOTH) != 0,
        .sticky = (status.st_mode & S_ISVTX) != 0,
    };
    *out_unlinked = status.st_nlink == 0;
    return 0;
}

/* The numbers are from linux/magic.h, or from the sources of file systems that this header lacks. */
const char *gpuhal_os_network_file_system(intptr_t file)
{
    static const struct {
        uint32_t number;
        const char *name;
    } known[] = {
        {0x6969, "NFS"},        {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"},    {0x517b, "SMB"},
        {0x00c36400, "Ceph"},   {0x5346414f, "AFS"},  {0x6b414653, "AFS"},    {0x73757245, "Coda"},
        {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x01021997, "9P"},
    };
    struct statfs about;
    if (fstatfs((int)file, &about)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((uint32_t)about.f_type == known[i].number) {
            return known[i].name;
        }
    }
    return NULL;
}

/* SIGXFSZ is blocked only if file sizes are limited, since blocking takes three more system calls. */
int gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count)
{
    struct rlimit limit;
    uint64_t done = 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY) {
        return gpuhal_os_file_write_piece(file, offset, bytes, count, &done);
    }
    const ssize_t put = pwrite((int)file, bytes, (size_t)count, (off_t)offset);
    if (put >= 0 && (uint64_t)put == count) {
        return 0;
    }
    if (put < 0 && errno != EINTR) {
        return errno;
    }
    done = put > 0 ? (uint64_t)put : 0;
    return gpuhal_os_file_write_piece(file, offset + done, (const char *)bytes + done, count - done, &done);
}

int gpuhal_os_shared_allocate(intptr_t file, uint64_t bytes)
{
    gpuhal_size_limit held;
    gpuhal_size_limit_begin(&held);
    int error = EINTR;
    while (error == EINTR) {
        error = fallocate((int)file, 0, 0, (off_t)bytes) ? errno : 0;
    }
    gpuhal_size_limit_end(&held, error);
    return error == EOPNOTSUPP || error == ENOSYS ? gpuhal_os_file_truncate(file, bytes) : error;
}

static struct flock range(short type, uint64_t offset, uint64_t count)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)count};
}

/* Uses F_OFD_SETLK (Linux 3.15). POSIX allows EACCES instead of EAGAIN. */
int gpuhal_os_byte_lock(intptr_t file, uint64_t offset)
{
    struct flock lock = range(F_WRLCK, offset, 1);
    while (fcntl((int)file, F_OFD_SETLK, &lock)) {
        if (errno != EINTR) {
            return errno == EACCES ? EAGAIN : errno;
        }
    }
    return 0;
}

int gpuhal_os_byte_unlock(intptr_t file, uint64_t offset)
{
    struct flock lock = range(F_UNLCK, offset, 1);
    return fcntl((int)file, F_OFD_SETLK, &lock) ? errno : 0;
}

int gpuhal_os_byte_is_locked(intptr_t file, uint64_t offset, uint64_t count, bool *out_locked)
{
    struct flock lock = range(F_WRLCK, offset, count);
    if (fcntl((int)file, F_OFD_GETLK, &lock)) {
        return errno;
    }
    *out_locked = lock.l_type != F_UNLCK;
    return 0;
}

int gpuhal_os_descriptor_keep_on_exec(intptr_t descriptor)
{
    const int flags = fcntl((int)descriptor, F_GETFD);
    return flags < 0 || fcntl((int)descriptor, F_SETFD, flags & ~FD_CLOEXEC) ? errno : 0;
}

const void *gpuhal_os_words_map(intptr_t file, uint32_t count)
{
    void *words = mmap(NULL, (size_t)count * WORD_BYTES, PROT_READ, MAP_SHARED, (int)file, 0);
    return words == MAP_FAILED ? NULL : words;
}

void gpuhal_os_words_unmap(const void *words, uint32_t count)
{
    if (words) {
        munmap((void *)(uintptr_t)words, (size_t)count * WORD_BYTES);
    }
}

/* If time_t is wider than long, the older futex system call would misread the timeout. */
static long futex(const char *word, int operation, uint32_t value, const struct timespec *timeout)
{
#ifdef SYS_futex_time64
    if (sizeof(time_t) > sizeof(long)) {
        return syscall(SYS_futex_time64, word, operation, value, timeout, NULL, 0);
    }
#endif
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* The kernel returns EFAULT if the word lies beyond the end of the file. Then the function sleeps. */
void gpuhal_os_word_wait(const void *words, uint32_t index, uint32_t seen, uint64_t timeout_ns)
{
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                     .tv_nsec = (long)(timeout_ns % 1000000000u)};
    const char *word = (const char *)words + (size_t)index * WORD_BYTES;
    if (!words ||
        (futex(word, FUTEX_WAIT, seen, &timeout) && errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)) {
        gpuhal_os_sleep(timeout_ns < 2000000u ? timeout_ns : 2000000u);
    }
}

void gpuhal_os_word_wake(const void *words, uint32_t index)
{
    if (words) {
        (void)futex((const char *)words + (size_t)index * WORD_BYTES, FUTEX_WAKE, 1, NULL);
    }
}

/* If /proc hides other users' processes, kill() still detects them. */
static uint64_t hidden_or_ended(int64_t pid, int error)
{
    const bool ended = (error == ENOENT || error == ESRCH) && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    return ended ? 0 : UINT64_MAX;
}

static const char *find_field(const char *state, int field)
{
    enum { STATE = 3 };
    for (int at = STATE; at < field && state; at++) {
        state = strchr(state, ' ');
        state = state ? state + 1 : NULL;
    }
    return state;
}

/* Reads /proc/PID/stat, "4711 (name) S 1 …", and returns its fields from the third on. The name may contain any bytes,
 * so the last parenthesis is searched. On failure returns NULL, and *out_error is an errno, or 0 if the format is
 * unknown. */
static const char *read_fields(int64_t pid, char text[STAT_BYTES], int *out_error)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    *out_error = file < 0 ? errno : 0;
    if (file < 0) {
        return NULL;
    }
    const ssize_t got = read(file, text, STAT_BYTES - 1);
    *out_error = got < 0 ? errno : got == 0 ? ESRCH : 0;
    close(file);
    text[got > 0 ? got : 0] = 0;
    const char *at = strrchr(text, ')');
    return at && at[1] == ' ' ? at + 2 : NULL;
}

/* A zombie without other threads counts as ended. A process whose main thread has ended is also listed as a zombie
 * while other threads run. */
uint64_t gpuhal_os_process_started(int64_t pid)
{
    enum { THREADS = 20, STARTED = 22 };
    char text[STAT_BYTES];
    int error = 0;
    const char *fields = read_fields(pid, text, &error);
    if (error) {
        return hidden_or_ended(pid, error);
    }
    const char *threads = fields ? find_field(fields, THREADS) : NULL;
    const char *started = fields ? find_field(fields, STARTED) : NULL;
    if (!threads || !started) {
        return UINT64_MAX;
    }
    if (fields[0] == 'X' || (fields[0] == 'Z' && strtoull(threads, NULL, 10) <= 1)) {
        return 0;
    }
    return strtoull(started, NULL, 10) + 1;
}

int64_t gpuhal_os_process_parent(int64_t pid)
{
    enum { PARENT = 4 };
    char text[STAT_BYTES];
    int error = 0;
    const char *fields = read_fields(pid, text, &error);
    const char *parent = fields ? find_field(fields, PARENT) : NULL;
    return parent ? strtoll(parent, NULL, 10) : 0;
}

uint64_t gpuhal_os_process_space(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) ? 0 : (uint64_t)status.st_ino;
}

static bool is_own_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* An XDG_RUNTIME_DIR that belongs to another user (sudo -E) is ignored. If the user has no runtime folder, shared
 * memory (/dev/shm) is preferred to the folder for temporary files, which may be on a disk. */
bool gpuhal_os_runtime_folder(char *out_path, size_t bytes, bool *out_own)
{
    static const char *const shared[] = {"/dev/shm", "/tmp"};
    const char *named = gpuhal_os_environment("XDG_RUNTIME_DIR");
    *out_own = true;
    if (named && named[0] == '/' && is_own_folder(named)) {
        return snprintf(out_path, bytes, "%s", named) < (int)bytes;
    }
    snprintf(out_path, bytes, "/run/user/%u", (unsigned)geteuid());
    if (is_own_folder(out_path)) {
        return true;
    }
    *out_own = false;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (access(shared[i], W_OK | X_OK) == 0) {
            return snprintf(out_path, bytes, "%s", shared[i]) < (int)bytes;
        }
    }
    return false;
}
