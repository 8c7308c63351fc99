/* tests/support/msan.c: wrappers of glibc functions that fill in a structure but are unknown to clang 14's
 * MemorySanitizer. Builds with MemorySanitizer link this file into every program. A runtime that knows the functions
 * uses its own wrappers. */
#undef _FILE_OFFSET_BITS /* this macro makes glibc's headers rename stat to stat64 */

#include <fcntl.h>
#include <sanitizer/msan_interface.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILLS_IN(name, parameters, out, ...)                                                                           \
    __attribute__((weak, visibility("default"))) int name parameters                                                   \
    {                                                                                                                  \
        const int answer = (int)syscall(__VA_ARGS__);                                                                  \
        if (answer == 0) {                                                                                             \
            __msan_unpoison(out, sizeof *out);                                                                         \
        }                                                                                                              \
        return answer;                                                                                                 \
    }

#define LOOKS_AT SYS_newfstatat, AT_FDCWD, path, out
FILLS_IN(stat, (const char *path, struct stat *out), out, LOOKS_AT, 0)
FILLS_IN(stat64, (const char *path, struct stat64 *out), out, LOOKS_AT, 0)
FILLS_IN(lstat, (const char *path, struct stat *out), out, LOOKS_AT, AT_SYMLINK_NOFOLLOW)
FILLS_IN(lstat64, (const char *path, struct stat64 *out), out, LOOKS_AT, AT_SYMLINK_NOFOLLOW)
FILLS_IN(fstat, (int file, struct stat *out), out, SYS_fstat, file, out)
FILLS_IN(fstat64, (int file, struct stat64 *out), out, SYS_fstat, file, out)
FILLS_IN(fstatat, (int at, const char *path, struct stat *out, int flags), out, SYS_newfstatat, at, path, out, flags)
FILLS_IN(fstatat64, (int at, const char *path, struct stat64 *out, int flags), out, SYS_newfstatat, at, path, out,
         flags)
FILLS_IN(statx, (int at, const char *path, int flags, unsigned mask, struct statx *out), out, SYS_statx, at, path,
         flags, mask, out)
