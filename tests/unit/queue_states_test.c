/* The state table of a queue must allow the transitions in the diagram, and no others. */
#include "queue/states.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static bool passes(gpuhal_queue_state from, gpuhal_queue_state to)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGILL, SIG_DFL); /* prevents a sanitizer's report */
        signal(SIGTRAP, SIG_DFL);
        gpuhal_queue_check_change(from, to);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(a_change_that_is_drawn_passes_and_any_other_stops_the_process)
{
    assert_true(passes(GPUHAL_QUEUE_OPEN, GPUHAL_QUEUE_CLOSING));
    assert_true(passes(GPUHAL_QUEUE_RESETTING, GPUHAL_QUEUE_USABLE));
    assert_true(passes(GPUHAL_QUEUE_NATIVE, GPUHAL_QUEUE_CALLED));
    assert_false(passes(GPUHAL_QUEUE_OPEN, GPUHAL_QUEUE_CLOSED));
    assert_false(passes(GPUHAL_QUEUE_FINISHED, GPUHAL_QUEUE_OPEN));
    assert_false(passes(GPUHAL_QUEUE_RESETTING, GPUHAL_QUEUE_RESETTING));
    assert_false(passes(GPUHAL_QUEUE_FREE, GPUHAL_QUEUE_NATIVE));
    assert_false(passes(GPUHAL_QUEUE_UNATTENDED, GPUHAL_QUEUE_RUNNING));
    assert_false(passes(GPUHAL_QUEUE_OPEN, GPUHAL_QUEUE_FAILED));
}

#include "test_main.h"
