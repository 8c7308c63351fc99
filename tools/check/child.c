/* child.c: the child process: opens the plugin and runs checks. */
#include "run.h"

#include "signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* If a plugin uses all memory, only this child must be killed, not the whole machine. Processes that outlive the child
 * must not keep the report's reader waiting. */
static void become_harmless(const gpuhal_runner *runner)
{
    const int output = runner->output;
    close(fileno(runner->options->out));
    signal(SIGPIPE, SIG_DFL);
    gpuhal_signals_release();
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        ssize_t written = write(score, "1000", 4);
        (void)written;
        close(score);
    }
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) {
        gpuhal_fail("gpuhal-check cannot redirect the standard streams");
    }
    close(nothing);
}

/* The plugin stays loaded for all checks of this child. Each device is opened for one check and closed after it, which
 * releases its resources. */
static void prepare(gpuhal_context *context, const gpuhal_job *job)
{
    gpuhal_needs needs = job->check->needs;
    context->index = job->index;
    if (needs == NEEDS_NOTHING || needs == NEEDS_FRESH) {
        return;
    }
    if (context->plugin == NULL) {
        gpuhal_session_list(context);
    }
    context->listed = gpuhal_device_snapshot_find(&context->listing, job->index);
    if (context->listed == NULL && needs != NEEDS_PLUGIN) {
        gpuhal_fail("enumerate lists device %u in one process and not in another", job->index);
    }
    if (needs == NEEDS_DEVICE) {
        gpuhal_session_open(context, &context->opened);
    }
}

/* The plugin's buffered output is flushed before the result is sent, so that it is attributed to the right check. */
static void run_one(gpuhal_context *context, const gpuhal_job *job)
{
    gpuhal_result_begin(job->check);
    prepare(context, job);
    job->check->run(context);
    if (context->opened.device != NULL) {
        gpuhal_session_close(context, &context->opened);
    }
    fflush(stdout);
    gpuhal_result_end();
}

void gpuhal_child_main(void *user, int pipe)
{
    const gpuhal_batch *batch = user;
    const gpuhal_runner *runner = batch->runner;
    gpuhal_result_open(pipe, runner->step);
    gpuhal_step("the preparations");
    become_harmless(runner);
    gpuhal_context context = {.options = runner->options, .printed_in = runner->printed_in};
    for (unsigned j = 0; j < batch->count; j++) {
        run_one(&context, &batch->jobs[j]);
    }
    _exit(0);
}
