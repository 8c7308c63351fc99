/* tests/support/child.h: a forked child, which exits if it hangs. */
#ifndef GPUHAL_TEST_CHILD_H
#define GPUHAL_TEST_CHILD_H

#include "test.h"

#include <unistd.h>

static inline pid_t begin_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(50);
    }
    return child;
}

#endif
