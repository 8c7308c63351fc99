/* tests/support/folder.h: a temporary folder for a test. The folder is removed after the test, even if the test
 * crashes. A separate process waits for the test's end and removes the folder, since drivers replace signal handlers
 * and some signals cannot be handled. */
#ifndef GPUHAL_TEST_FOLDER_H
#define GPUHAL_TEST_FOLDER_H

#include "test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static char test_folder[64];       /* "" if there is no folder */
static int test_folder_kept = -1; /* the folder stays while this end of a pipe is open */

/* The process that waits must not be a child of the test, because the test may count its children. */
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

/* Called by tests that remove the folder themselves. */
static inline void forget_test_folder(void)
{
    close(test_folder_kept);
    test_folder_kept = -1;
    test_folder[0] = '\0';
}

#endif
