/* run.c: the parent's side: makes a child, listens until it has told everything, died, or run out of time. A verdict comes from
 * the pipe; only a check that is without one when the child is gone is judged by how the child ended.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RULE_GUEST 27 /* no call may abort, exit or crash */
#define HANGS_MAX 3 /* After so many the rest is given up: a plugin that always hangs would cost a deadline for each check. */

bool gpuhal_runner_init(gpuhal_runner *runner, const gpuhal_check_options *options)
{
    void *page = mmap(NULL, sizeof *runner->step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int output = memfd_create("output of the plugin", MFD_CLOEXEC);
    *runner = (gpuhal_runner){.options = options, .output = output};
    if (page == MAP_FAILED || output < 0) {
        return false;
    }
    runner->step = page;
    /* A caller that ignores SIGCHLD hands that down, and then no exit status is to be had. */
    signal(SIGCHLD, SIG_DFL);
    return true;
}

/* A clock that nobody sets. */
static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes the end of what was printed since the last check: a sanitizer's or an assertion's last words matter most. */
static void take_printed(gpuhal_runner *runner, gpuhal_result *result)
{
    off_t end = lseek(runner->output, 0, SEEK_END);
    off_t start = runner->output_seen;
    if (end <= start) {
        return;
    }
    const off_t room = (off_t)sizeof result->printed - 1;
    start = end - start > room && result->verdict == VERDICT_FAILED ? end - room : start;
    size_t length = (size_t)(end - start > room ? room : end - start);
    ssize_t got = pread(runner->output, result->printed, length, start);
    result->printed[got > 0 ? got : 0] = '\0';
    runner->output_seen = end;
}

/* The first one is enough for the last check, which every child inherits. */
static void remember_printed(gpuhal_runner *runner, const gpuhal_job *job, const gpuhal_result *result)
{
    if (result->printed[0] != '\0' && runner->printed[0] == '\0') {
        snprintf(runner->printed, sizeof runner->printed, "in the check %s: %.400s", job->check->name, result->printed);
    }
}

/* Waits for a child that should be dead, since its end of the pipe is closed; one that has only closed the pipe is killed.
 * @return false when it had to be killed */
static bool reap(pid_t pid, bool kill_now, int *out_status)
{
    bool ended = false;
    for (int tries = 0; !kill_now && !ended && tries < 200; tries++) {
        siginfo_t info = {.si_pid = 0};
        ended = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
        if (!ended) {
            nanosleep(&(const struct timespec){.tv_nsec = 5000000}, NULL);
        }
    }
    kill(pid, SIGKILL);
    kill(-pid, SIGKILL); /* what the plugin started and left */
    while (waitpid(pid, out_status, 0) < 0 && errno == EINTR) {
    }
    return ended;
}

/* The verdict on a check whose child is gone without one. */
static void judge_end(const gpuhal_runner *runner, const gpuhal_check *check, bool reaped, bool timed_out, int status,
                      gpuhal_result *result)
{
    const char *step = atomic_load(runner->step);
    result->rule = timed_out ? check->rule : RULE_GUEST;
    char *sentence = result->sentence;
    const size_t size = sizeof result->sentence;
    result->verdict = VERDICT_FAILED;
    if (timed_out) {
        snprintf(sentence, size, "%s did not return within %u s", step, runner->options->deadline_s);
        snprintf(result->hint, sizeof result->hint, "Bound every wait of the driver; on a slow machine give more with --deadline.");
    } else if (!reaped) {
        snprintf(sentence, size, "%s closed a descriptor that is not its own", step);
    } else if (WIFSIGNALED(status)) {
        snprintf(sentence, size, "crashed with signal %d (%s) in %s", WTERMSIG(status), strsignal(WTERMSIG(status)), step);
    } else {
        snprintf(sentence, size, "%s ended the process with exit status %d", step, WEXITSTATUS(status));
    }
}

static void add_note(gpuhal_result *result, const char *text)
{
    size_t used = strlen(result->notes);
    snprintf(result->notes + used, sizeof result->notes - used, "%s\n", text);
}

/* @return false when there will be no more records */
static bool next_record(int pipe, int64_t until_ms, gpuhal_record *out_record, bool *out_timed_out)
{
    size_t have = 0;
    while (have < sizeof *out_record) {
        int64_t left = until_ms - now_ms();
        struct pollfd ready = {.fd = pipe, .events = POLLIN};
        int answer = left > 0 ? poll(&ready, 1, (int)left) : 0;
        if (answer < 0 && errno == EINTR) {
            continue;
        }
        *out_timed_out = answer == 0;
        ssize_t got = answer > 0 ? read(pipe, (char *)out_record + have, sizeof *out_record - have) : 0;
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

/* The parent's own output is flushed first: otherwise the child would inherit a copy of it. */
static bool make_child(gpuhal_runner *runner, const gpuhal_job *jobs, unsigned count, pid_t *out_pid, int *out_pipe)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0); /* a plugin that kills its process group kills no more than this child */
        close(ends[0]);
        gpuhal_child_main(runner, jobs, count, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    setpgid(pid, pid); /* as the child does: either may run first */
    *out_pid = pid;
    *out_pipe = ends[0];
    return true;
}

/* How many of the jobs one child may run. */
static unsigned batch(const gpuhal_job *jobs, unsigned count)
{
    for (unsigned j = 0; j < count; j++) {
        if (jobs[j].check->needs == NEEDS_NOTHING || jobs[j].check->needs == NEEDS_FRESH) {
            return j == 0 ? 1 : j;
        }
    }
    return count;
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
        result.verdict = VERDICT_FAILED;
        snprintf(result.sentence, sizeof result.sentence, "not run: %d checks before it did not return in time", HANGS_MAX);
        settled(user, jobs, &result);
        return 1;
    }
    pid_t pid = 0;
    int pipe = -1;
    count = batch(jobs, count);
    if (!make_child(runner, jobs, count, &pid, &pipe)) {
        return 0;
    }
    const int64_t deadline_ms = (int64_t)runner->options->deadline_s * 1000;
    unsigned done = 0;
    bool timed_out = false;
    int64_t until_ms = now_ms() + deadline_ms;
    for (gpuhal_record record; done < count && next_record(pipe, until_ms, &record, &timed_out);) {
        record.text[sizeof record.text - 1] = '\0';
        if (record.kind == RECORD_BEGIN) {
            until_ms = now_ms() + deadline_ms;
        } else if (record.kind == RECORD_NOTE) {
            add_note(&result, record.text);
        } else if (record.kind == RECORD_DEVICE) {
            take_device(runner, record.index);
        } else {
            result.verdict = record.verdict;
            result.rule = record.rule;
            memcpy(result.hint, record.hint, sizeof result.hint);
            memcpy(result.sentence, record.text, sizeof result.sentence);
            take_printed(runner, &result);
            remember_printed(runner, &jobs[done], &result);
            settled(user, &jobs[done++], &result);
            result = (gpuhal_result){0};
            if (record.verdict == VERDICT_FAILED) {
                count = done;
            }
        }
    }
    close(pipe);
    /* Once every verdict is in, nothing that the child's threads still do belongs to a check. */
    int status = 0;
    bool reaped = reap(pid, timed_out || done == count, &status);
    if (done < count) {
        judge_end(runner, jobs[done].check, reaped, timed_out, status, &result);
        runner->hangs += timed_out;
        take_printed(runner, &result);
        settled(user, &jobs[done++], &result);
    }
    return done;
}
