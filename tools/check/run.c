/* run.c: the parent's side: creates a child and reads its reports until the child has finished, has died, or has timed
 * out. Results are read from the pipe. The child's exit status matters only if there is no result. */
#include "run.h"

#include "../common/text.h"
#include "signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RULE_GUEST 27 /* a plugin must not abort, exit or crash */
#define HANGS_MAX  3  /* skip the remaining checks after this many time-outs, because each may last a full deadline */

static const uint64_t second_ns = 1000000000u;

bool gpuhal_runner_init(gpuhal_runner *runner, const gpuhal_check_options *options)
{
    void *page = mmap(NULL, sizeof *runner->step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int output = memfd_create("output of the plugin", MFD_CLOEXEC);
    *runner = (gpuhal_runner){.options = options, .output = output};
    if (page == MAP_FAILED || output < 0) {
        return false;
    }
    runner->step = page;
    /* If this program's parent ignores SIGCHLD, this program inherits the setting and would lose exit statuses. */
    signal(SIGCHLD, SIG_DFL);
    return true;
}

/* Reads the output since the last check. If the output of a failed check does not fit, reads its end, because the last
 * lines of a sanitizer or an assertion matter most. */
static void take_printed(gpuhal_runner *runner, gpuhal_result *result)
{
    off_t end = lseek(runner->output, 0, SEEK_END);
    off_t start = runner->output_seen;
    if (end <= start) {
        return;
    }
    const off_t room = (off_t)sizeof result->printed - 1;
    start = end - start > room && result->status == CHECK_FAILED ? end - room : start;
    size_t length = (size_t)(end - start > room ? room : end - start);
    ssize_t got = pread(runner->output, result->printed, length, start);
    result->printed[got > 0 ? got : 0] = '\0';
    runner->output_seen = end;
}

/* Keeps the first output for the last check, and the name of the check with this output, which every later child
 * receives. */
static void keep_printed(gpuhal_runner *runner, const gpuhal_job *job, const gpuhal_result *result)
{
    if (result->printed[0] != '\0' && runner->printed_in == NULL) {
        memcpy(runner->printed, result->printed, sizeof runner->printed);
        runner->printed_in = job->check->name;
    }
}

/* The last check fails if an earlier check printed something. Its result then shows the first output. */
static void take_kept(const gpuhal_runner *runner, const gpuhal_job *job, gpuhal_result *result)
{
    if (job->check == &gpuhal_checks[gpuhal_check_count - 1] && result->printed[0] == '\0') {
        memcpy(result->printed, runner->printed, sizeof result->printed);
    }
}

typedef enum child_end { END_BY_ITSELF, END_CLOSED, END_GARBLED, END_TIMED_OUT } child_end;

/* Reports a check whose child ended without a result. */
static void judge_end(const gpuhal_runner *runner, const gpuhal_check *check, child_end end, int status,
                      gpuhal_result *result)
{
    const char *step = atomic_load(runner->step);
    result->rule = end == END_TIMED_OUT ? check->rule : RULE_GUEST;
    char *sentence = result->sentence;
    const size_t size = sizeof result->sentence;
    result->status = CHECK_FAILED;
    if (end == END_TIMED_OUT) {
        snprintf(sentence, size, "%s did not return within %u s", step, runner->options->deadline_s);
        if (!gpuhal_busy_hint(result->hint, sizeof result->hint)) {
            snprintf(result->hint, sizeof result->hint,
                     "Bound every wait of the driver; on a slow machine give more with --deadline.");
        }
    } else if (end == END_CLOSED) {
        snprintf(sentence, size, "%s closed a descriptor that is not its own", step);
    } else if (end == END_GARBLED) {
        snprintf(sentence, size, "the plugin wrote to a descriptor that is not its own, in %s or before", step);
    } else if (status == -1) {
        snprintf(sentence, size, "the process ended in %s, and its exit status is not known", step);
    } else if (WIFSIGNALED(status)) {
        snprintf(sentence, size, "crashed with signal %d (%s) in %s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                 step);
    } else {
        snprintf(sentence, size, "%s ended the process with exit status %d", step, WEXITSTATUS(status));
    }
}

static unsigned batch_of(const gpuhal_job *jobs, unsigned count)
{
    for (unsigned j = 0; j < count; j++) {
        if (jobs[j].check->needs == NEEDS_NOTHING || jobs[j].check->needs == NEEDS_FRESH) {
            return j == 0 ? 1 : j;
        }
    }
    return count;
}

static void take_self(gpuhal_runner *runner, const gpuhal_record *record)
{
    snprintf(runner->self.name, sizeof runner->self.name, "%.63s", record->text);
    snprintf(runner->self.version, sizeof runner->self.version, "%.63s", record->hint);
    runner->self.abi = record->index;
}

static void take_device(gpuhal_runner *runner, uint32_t index)
{
    if (runner->device_count < DEVICES_MAX) {
        runner->devices[runner->device_count++] = index;
    }
}

unsigned gpuhal_runner_run(gpuhal_runner *runner, const gpuhal_job *jobs, unsigned count,
                           void (*settled)(void *user, const gpuhal_job *job, const gpuhal_result *result), void *user)
{
    gpuhal_result result = {0};
    if (runner->hangs >= HANGS_MAX) {
        result.status = CHECK_SKIPPED;
        result.not_run = true;
        snprintf(result.sentence, sizeof result.sentence, "not run: %d checks before it did not return in time",
                 HANGS_MAX);
        settled(user, jobs, &result);
        return 1;
    }
    gpuhal_tool_child child;
    gpuhal_batch batch = {runner, jobs, batch_of(jobs, count)};
    count = batch.count;
    if (!gpuhal_tool_fork(gpuhal_child_main, &batch, &child)) {
        return 0;
    }
    gpuhal_signals_set_child(child.pid);
    const uint64_t deadline_ns = runner->options->deadline_s * second_ns;
    unsigned done = 0;
    gpuhal_tool_heard heard = GPUHAL_TOOL_HEARD;
    bool garbled = false;
    uint64_t begin_ns = gpuhal_tool_now_ns(), until_ns = begin_ns + deadline_ns;
    for (gpuhal_record record;
         done < count && !garbled &&
         (heard = gpuhal_tool_hear(&child, until_ns, &record, sizeof record)) == GPUHAL_TOOL_HEARD;) {
        record.text[sizeof record.text - 1] = record.hint[sizeof record.hint - 1] = '\0';
        if (record.kind == RECORD_BEGIN) {
            begin_ns = gpuhal_tool_now_ns();
            until_ns = begin_ns + deadline_ns;
        } else if (record.kind == RECORD_NOTE) {
            gpuhal_tool_append(result.notes, sizeof result.notes, "\n", "%s", record.text);
        } else if (record.kind == RECORD_PLUGIN) {
            take_self(runner, &record);
        } else if (record.kind == RECORD_DEVICE) {
            take_device(runner, record.index);
        } else if (record.kind != RECORD_RESULT || (unsigned)record.status > CHECK_SKIPPED) {
            garbled = true;
        } else {
            result.status = record.status;
            result.time_ns = gpuhal_tool_now_ns() - begin_ns;
            result.rule = record.rule;
            memcpy(result.hint, record.hint, sizeof result.hint);
            memcpy(result.sentence, record.text, sizeof result.sentence);
            take_printed(runner, &result);
            keep_printed(runner, &jobs[done], &result);
            take_kept(runner, &jobs[done], &result);
            settled(user, &jobs[done++], &result);
            result = (gpuhal_result){0};
            if (record.status == CHECK_FAILED) {
                count = done;
            }
        }
    }
    /* A child that has closed the pipe should exit soon. Once every result has arrived, the child's threads no longer
     * work for a check. */
    int status = -1;
    const bool timed_out = heard == GPUHAL_TOOL_TIMED_OUT;
    gpuhal_signals_set_child(0); /* the pid may soon be reused */
    const bool by_itself = gpuhal_tool_end(&child, heard == GPUHAL_TOOL_ENDED ? second_ns : 0, &status);
    if (done < count && gpuhal_signals_caught() == 0) {
        result.time_ns = gpuhal_tool_now_ns() - begin_ns;
        judge_end(runner, jobs[done].check,
                  timed_out   ? END_TIMED_OUT
                  : garbled   ? END_GARBLED
                  : by_itself ? END_BY_ITSELF
                              : END_CLOSED,
                  status, &result);
        runner->hangs += timed_out;
        take_printed(runner, &result);
        settled(user, &jobs[done++], &result);
    }
    return done;
}
