/* tests/support/folder.h: a temporary folder for a test. It is removed after the test, however the test ends. A
 * separate process waits for the end, since drivers replace signal handlers and some signals cannot be handled. */
#ifndef GPUHAL_TEST_FOLDER_H
#define GPUHAL_TEST_FOLDER_H

#include "test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static char test_folder[64];       /* "": no folder */
static int test_folder_kept = -1; /* the folder stays while this end of a pipe is open */

/* The waiting process is not a child of the test, because the test may count its children. */
static inline void remove_test_folder_later(int when)
{
    static const char script[] = "exec >/dev/null 2>&1; cat; rm -rf \"$1\"";
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            setsid();
            dup2(when, STDIN_FILENO);
            execl("/bin/sh", "sh", "-c", script, "sh", test_folder, NULL);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static inline void make_test_folder(const char *name)
{
    int ends[2];
    snprintf(test_folder, sizeof test_folder, "/tmp/gpuhal-%s-XXXXXX", name);
    assert_non_null(mkdtemp(test_folder));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    remove_test_folder_later(ends[0]);
    close(ends[0]);
    test_folder_kept = ends[1];
}

/* For tests that remove the folder themselves. */
static inline void forget_test_folder(void)
{
    close(test_folder_kept);
    test_folder_kept = -1;
    test_folder[0] = '\0';
}

#endif
