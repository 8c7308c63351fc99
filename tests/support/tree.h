/* tests/support/tree.h: an invented machine's /sys, /dev and /proc for the library and its plugins. The files are below
 * a directory that is removed after the test. */
#ifndef GPUHAL_TEST_TREE_H
#define GPUHAL_TEST_TREE_H

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_root[64];

/* Builds the full path, and creates its parent directories. */
static inline void place_in_tree(const char *path, char whole[512])
{
    snprintf(whole, 512, "%s/%s", tree_root, path);
    for (char *at = strchr(whole + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(whole, 0755);
        *at = '/';
    }
}

static inline void put_bytes(const char *path, const void *bytes, size_t size)
{
    char whole[512];
    place_in_tree(path, whole);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static inline void put_directory(const char *path)
{
    char whole[512];
    place_in_tree(path, whole);
    assert_int_equal(mkdir(whole, 0755), 0);
}

static inline void put_link(const char *path, const char *target)
{
    char whole[512];
    place_in_tree(path, whole);
    assert_int_equal(symlink(target, whole), 0);
}

static inline int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void remove_tree(void)
{
    (void)nftw(tree_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void remove_part(const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", tree_root, path);
    assert_int_equal(nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Begins an empty machine. Call it after use_machine(). */
static inline void begin_tree(void)
{
    snprintf(tree_root, sizeof tree_root, "/tmp/gpuhal-machine-XXXXXX");
    assert_non_null(mkdtemp(tree_root));
    setenv("GPUHAL_SYSTEM_ROOT", tree_root, 1);
}

/* Returns the path of a kernel file that no process can open for writing, even as root. The file stands for a device
 * node without permission. */
static inline const char *forbidden_or_skip(void)
{
    static const char forbidden[] = "/proc/sys/kernel/osrelease";
    if (open(forbidden, O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES) {
        SKIP_TEST("/proc/sys/kernel/osrelease may be opened, or is not there");
    }
    return forbidden;
}

#endif
