/* loader/isolation.c: see isolation.h.
 *
 * The verdict comes from what the helper sent; how the process ended only makes the sentence richer. Devices count only with a
 * good end, and what came of it goes to the registry. Where no helper can be started, and where one never says its hello, the plugin is not
 * probed: to load it into this process instead is for the configuration to say, never for a shortage of descriptors.
 */
#include "loader/isolation.h"

#include "core/error.h"
#include "core/text.h"
#include "loader/candidates.h"
#include "loader/helper_program.h"
#include "loader/output.h"
#include "loader/stream.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_NS    1000000000u /* for an orderly process to leave, on a busy machine too */
#define TERM_NS     100000000u  /* for one that hangs, to end when asked to */
#define SLICE_NS    500000000u  /* the longest wait, and what one counts for at most: a host may be stopped meanwhile */
#define READ_BYTES  16384
#define READ_BLOCKS 8
#define PRINTED_MAX (4u << 20) /* of what a plugin may print while it is met */

/* One helper at work. */
typedef struct helper_visit {
    gpuhal_candidate *candidate;
    gpuhal_attempt attempt;
    gpuhal_process process;
    gpuhal_stream stream;
    gpuhal_output output;
    bool unruly;    /* it did not end as a helper does */
    bool doubtful;  /* maybe because of others */
    bool hungry;    /* memory ran out, which says nothing of the plugin */
    uint32_t fault; /* gpuhal_fault_kind */
    uint64_t begun_ns;
    uint64_t looked_ns;  /* up to when its time was counted */
    uint64_t used_ns;    /* of its deadline */
    uint64_t starved_ns; /* of that, for want of a processor, as far as it was asked for */
    uint64_t starved_before_ns; /* until its stream ended */
    uint64_t printed;    /* bytes */
    bool flooding;       /* too many of them */
    bool silent;         /* its stream ended without a last word: what is waited for now is its end */
} helper_visit;

/* The helpers at work: visits[0] to visits[count - 1]. */
typedef struct round_of_visits {
    gpuhal_verdicts *verdicts;
    const gpuhal_settings *settings; /* of the verdicts, like the next two */
    gpuhal_log *log;
    gpuhal_candidates *candidates;
    const char *helper;
    char *block; /* READ_BYTES to read into: more than a thread with a small stack has */
    bool said;   /* that plugins were not probed */
    size_t most; /* how many helpers the system lets run at once, as far as is known */
    helper_visit *visits[GPUHAL_PROCESSES_MAX];
    size_t count;
} round_of_visits;

/* One remark is enough: the others are mostly the same again. */
static void leave_out(round_of_visits *round, gpuhal_candidate *candidate, const char *reason)
{
    if (gpuhal_candidate_is_own_cpu(candidate)) {
        return;
    }
    if (!round->said) {
        gpuhal_candidates_remark(round->candidates, round->log, "plugins are not probed: %s", reason);
        round->said = true;
    }
    gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_STAGE_SPAWN, "%s", reason);
}

/* Without a listener the helper need not send what nobody hears. */
static uint32_t level_wanted(const gpuhal_settings *settings)
{
    return settings->log || settings->log_to_stderr ? settings->log_level : 0;
}

/* What other helpers give back when they end. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
}

/* Starts a helper for the candidate, or leaves the candidate out; or returns false: its turn comes when another helper has ended. */
static bool begin_visit(round_of_visits *round, gpuhal_candidate *candidate)
{
    char level[16], protocol[16], parent[24], reason[512];
    snprintf(parent, sizeof parent, "%" PRId64, gpuhal_os_process_own());
    snprintf(level, sizeof level, "%" PRIu32, level_wanted(round->settings));
    snprintf(protocol, sizeof protocol, "%u", GPUHAL_HELPER_PROTOCOL);
    const char *const arguments[] = {round->helper,   protocol, candidate->name,
                                     candidate->file, level,    candidate->ignore_environment ? "1" : "0",
                                     parent,          candidate->options ? candidate->options : "",
                                     NULL};
    helper_visit *visit = calloc(1, sizeof *visit);
    int error = visit ? gpuhal_os_process_start(arguments, &visit->process) : ENOMEM;
    if (error) {
        free(visit);
        if (is_shortage(error) && round->count > 0) {
            round->most = round->count;
            return false;
        }
        snprintf(reason, sizeof reason, "%.400s cannot be started: %s", round->helper, strerror(error));
        leave_out(round, candidate, reason);
        return true;
    }
    visit->candidate = candidate;
    visit->attempt = (gpuhal_attempt){.name = candidate->name, .log = round->log, .stage = GPUHAL_STAGE_SPAWN};
    visit->stream.attempt = &visit->attempt;
    visit->begun_ns = visit->looked_ns = gpuhal_os_monotonic_ns();
    gpuhal_log_line(round->log, GPUHAL_LEVEL_DEBUG, "%s: process %" PRId64 " meets %s", candidate->name, visit->process.pid,
                    candidate->file);
    round->visits[round->count++] = visit;
    return true;
}

static void word_deadline(uint64_t ns, char *out, size_t bytes)
{
    if (ns < 1000u) {
        snprintf(out, bytes, "%" PRIu64 " ns", ns);
    } else if (ns < 1000000u) {
        snprintf(out, bytes, "%" PRIu64 " µs", ns / 1000u);
    } else if (ns % 1000000000u == 0) {
        snprintf(out, bytes, "%" PRIu64 " s", ns / 1000000000u);
    } else {
        snprintf(out, bytes, "%" PRIu64 " ms", ns / 1000000u);
    }
}

/* The stream stopped without an end. */
static void word_silence(gpuhal_attempt *attempt, gpuhal_ended ended, int value, bool doubtful)
{
    const char *when = gpuhal_attempt_while(attempt->stage);
    if (ended == GPUHAL_ENDED_SIGNAL) {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "it crashed with signal %d (%s) %s%s", value,
                            gpuhal_os_signal_name(value), when, doubtful ? ", which others may have sent" : "");
    } else if (ended == GPUHAL_ENDED_EXIT && value != GPUHAL_HELPER_EXIT_UNHEARD) {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "the process exited with code %d %s", value,
                            when);
    } else if (ended == GPUHAL_ENDED_EXIT) {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "it closed the helper's stream %s", when);
    } else {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "it sent no end: the stream stopped %s", when);
    }
}

/* What it had told of completely is no listing; the sentence names it. */
static void word_partial(const gpuhal_stream *stream, gpuhal_attempt *attempt)
{
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "%s; until then it had told of %zu device%s:", attempt->reason ? attempt->reason : "", stream->whole,
                       stream->whole == 1 ? "" : "s");
    for (size_t i = 0; i < stream->whole; i++) {
        const char *name = gpuhal_facts_text(&stream->devices.list[i].facts, GPUHAL_FACT_NAME);
        gpuhal_text_printf(&text, "%s %s:%" PRIu32 " %s", i > 0 ? "," : "", attempt->name, stream->devices.list[i].index, name ? name : "");
    }
    char *reason = text.failed || stream->whole == 0 ? NULL : gpuhal_text_take(&text);
    if (reason) {
        free(attempt->reason);
        attempt->reason = reason;
    }
    gpuhal_text_finish(&text);
}

static void word_late(helper_visit *visit, uint64_t deadline_ns)
{
    char time[32];
    gpuhal_attempt *attempt = &visit->attempt;
    word_deadline(deadline_ns, time, sizeof time);
    if (!visit->stream.hello) {
        attempt->stage = GPUHAL_STAGE_SPAWN;
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT, "its helper process said nothing within %s", time);
        return;
    }
    gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT, "it did not answer within %s, stuck %s", time,
                        gpuhal_attempt_while(attempt->stage));
    word_partial(&visit->stream, attempt);
    visit->fault = GPUHAL_FAULT_HANG;
}

/* It ended, or was ended, without a last word. */
static void judge_unruly(helper_visit *visit, uint64_t deadline_ns, bool late, gpuhal_ended ended, int value)
{
    gpuhal_attempt *attempt = &visit->attempt;
    const gpuhal_stream *stream = &visit->stream;
    bool crashed = stream->state == GPUHAL_STREAM_CRASHED;
    /* An [end] that was begun and did not get complete has no say. */
    free(attempt->reason);
    attempt->reason = NULL;
    if (stream->state == GPUHAL_STREAM_MORE && !late && ended == GPUHAL_ENDED_EXIT && value == GPUHAL_HELPER_EXIT_HUNGRY) {
        visit->hungry = true;
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_HOST_MEMORY, "its helper process had no memory left %s",
                            gpuhal_attempt_while(attempt->stage));
        return;
    }
    if (visit->flooding) {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "it printed more than %u MiB %s", PRINTED_MAX >> 20,
                            gpuhal_attempt_while(attempt->stage));
        return;
    }
    visit->unruly = true;
    if (crashed || (stream->state != GPUHAL_STREAM_RUBBISH && !late)) {
        visit->fault = GPUHAL_FAULT_CRASH;
        ended = crashed ? GPUHAL_ENDED_SIGNAL : ended;
        value = crashed ? stream->signal : value;
        visit->candidate->signal = ended == GPUHAL_ENDED_SIGNAL ? (uint32_t)value : 0;
        visit->doubtful = !crashed && ended == GPUHAL_ENDED_SIGNAL && gpuhal_os_signal_is_from_outside(value);
        word_silence(attempt, ended, value, visit->doubtful);
    } else if (late && stream->state != GPUHAL_STREAM_RUBBISH) {
        word_late(visit, deadline_ns);
    } else {
        gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER, "it sent rubbish in line %" PRIu32 ": %s, %s",
                            stream->line, stream->problem, gpuhal_attempt_while(attempt->stage));
    }
}

/* Once the process has ended nothing more comes; one that is being ended prints nothing more of interest. */
static void read_output(const round_of_visits *round, helper_visit *visit)
{
    size_t got = READ_BYTES;
    for (int block = 0; block < READ_BLOCKS && got > 0; block++) {
        got = gpuhal_os_process_read_output(&visit->process, round->block, READ_BYTES);
        gpuhal_output_add(&visit->output, round->block, got);
        visit->printed += got;
    }
}

/* Puts the outcome into the attempt. `late`: the deadline has passed. Returns whether the plugin lists devices. */
static bool judge(round_of_visits *round, helper_visit *visit, bool late)
{
    int value = 0;
    int64_t process = visit->process.pid;
    read_output(round, visit);
    gpuhal_ended ended = gpuhal_os_process_finish(&visit->process, 0, late ? TERM_NS : 0, &value);
    if (ended == GPUHAL_ENDED_NOT) {
        gpuhal_candidates_remark(round->candidates, round->log, "%s: the helper process %" PRId64 " cannot be ended, and was left behind",
                                 visit->candidate->name, process);
    }
    if (visit->stream.state != GPUHAL_STREAM_ENDED && (visit->stream.hello || late)) {
        judge_unruly(visit, round->settings->helper_deadline_ns, late, ended, value);
    }
    return visit->stream.state == GPUHAL_STREAM_ENDED && visit->stream.good;
}

/* Of an answer it is known which files it came from, unless the helper could not find out. A helper that is no helper, says nothing, or had
 * no memory, tells nothing of the plugin. */
static bool is_worth_remembering(const helper_visit *visit)
{
    return visit->stream.hello && !visit->hungry && (visit->unruly || visit->stream.mapped.count > 0);
}

/* For the report, and for later starts. */
static void remember(round_of_visits *round, helper_visit *visit)
{
    gpuhal_candidate *candidate = visit->candidate;
    gpuhal_texts lines;
    gpuhal_output_lines(&visit->output, &lines);
    gpuhal_text joined = {0};
    for (size_t i = 0; i < lines.count; i++) {
        gpuhal_text_printf(&joined, "%s%s", i > 0 ? "\n" : "", lines.list[i]);
    }
    free(candidate->output);
    candidate->output = lines.count > 0 ? gpuhal_text_take(&joined) : NULL;
    candidate->met = gpuhal_os_wall_clock();
    /* The last one may not have come to its end. */
    gpuhal_listed_devices told = visit->stream.devices;
    told.count = visit->stream.whole;
    const gpuhal_meeting meeting = {.unruly = visit->unruly, .doubtful = visit->doubtful, .fault = visit->fault, .status = visit->attempt.status,
                                    .mapped = &visit->stream.mapped, .output = &lines, .devices = &told};
    if (is_worth_remembering(visit)) {
        gpuhal_verdict_learn(round->verdicts, candidate, &meeting);
    }
    gpuhal_text_finish(&joined);
    gpuhal_texts_finish(&lines);
}

/* Ends a visit and takes it off the list. */
static void end_visit(round_of_visits *round, size_t place, bool late)
{
    helper_visit *visit = round->visits[place];
    gpuhal_candidate *candidate = visit->candidate;
    bool good = judge(round, visit, late);
    /* A helper that said nothing and ended is no helper. */
    if (visit->stream.hello || late) {
        candidate->time_ns = gpuhal_os_monotonic_ns() - visit->begun_ns;
        candidate->isolated = true;
        gpuhal_candidate_take(candidate, &visit->attempt, good);
        if (good) {
            gpuhal_candidate_accept(candidate);
        }
        remember(round, visit);
    } else {
        char reason[512];
        snprintf(reason, sizeof reason,
                 "%.350s said nothing: it is no helper of this version, or in another PID namespace than this process",
                 round->helper);
        leave_out(round, candidate, reason);
    }
    if (good) {
        candidate->devices = visit->stream.devices;
        visit->stream.devices = (gpuhal_listed_devices){0};
    }
    gpuhal_attempt_finish(&visit->attempt);
    gpuhal_stream_finish(&visit->stream);
    free(visit);
    round->visits[place] = round->visits[--round->count];
}

/* Reads what is there, yet not for ever: others wait, and the deadline. Returns whether the visit is over. */
static bool read_visit(const round_of_visits *round, helper_visit *visit)
{
    if (visit->silent) {
        return true; /* the process has ended */
    }
    read_output(round, visit);
    visit->flooding = visit->stream.hello && visit->printed > PRINTED_MAX;
    if (visit->flooding) {
        return true;
    }
    for (int block = 0; block < READ_BLOCKS; block++) {
        int64_t got = gpuhal_os_process_read(&visit->process, round->block, READ_BYTES);
        if (got == -1) {
            return false;
        }
        if (got <= 0) {
            /* How the process ends is all that is left to learn. It gets a moment, in which the others go on. */
            gpuhal_os_process_close_stream(&visit->process);
            visit->silent = true;
            visit->used_ns = visit->starved_ns = 0;
            visit->starved_before_ns = gpuhal_os_process_starved_ns(&visit->process);
            return false;
        }
        if (gpuhal_stream_feed(&visit->stream, round->block, (size_t)got) != GPUHAL_STREAM_MORE) {
            return true;
        }
    }
    return false;
}

static uint64_t time_left(const round_of_visits *round, const helper_visit *visit)
{
    uint64_t deadline = (visit->silent ? GRACE_NS : round->settings->helper_deadline_ns) + visit->starved_ns;
    return visit->used_ns < deadline ? deadline - visit->used_ns : 0;
}

/* All the time that has passed, also that in which others were looked at: one that prints without end would else stretch it for all. */
static void count_time(helper_visit *visit)
{
    uint64_t now = gpuhal_os_monotonic_ns(), passed = now - visit->looked_ns;
    visit->used_ns += passed < SLICE_NS ? passed : SLICE_NS;
    visit->looked_ns = now;
}

/* Load is no hang: the time in which the helper wanted to run and could not is the machine's. It is asked for only in the end, and adds one
 * deadline at most: what runs without end shall end on a busy machine, too. */
static bool is_late(const round_of_visits *round, helper_visit *visit)
{
    if (time_left(round, visit) == 0) {
        uint64_t starved = gpuhal_os_process_starved_ns(&visit->process), deadline = round->settings->helper_deadline_ns;
        starved = starved > visit->starved_before_ns ? starved - visit->starved_before_ns : 0;
        visit->starved_ns = starved < deadline ? starved : deadline;
    }
    return time_left(round, visit) == 0;
}

/* Waits for something to happen, until the nearest deadline at most, and deals with it. */
static gpuhal_status attend(round_of_visits *round)
{
    gpuhal_process *processes[GPUHAL_PROCESSES_MAX];
    bool ready[GPUHAL_PROCESSES_MAX];
    uint64_t nearest = SLICE_NS;
    for (size_t i = 0; i < round->count; i++) {
        uint64_t left = time_left(round, round->visits[i]);
        nearest = left < nearest ? left : nearest;
        processes[i] = &round->visits[i]->process;
    }
    int error = gpuhal_os_process_wait(processes, round->count, nearest, ready);
    if (error) {
        return gpuhal_error_set(GPUHAL_ERROR_HOST_MEMORY, "the host cannot wait for helper processes: %s", strerror(error));
    }
    /* Backwards: an ended visit's place is taken by the last one, which was looked at already. */
    for (size_t i = round->count; i-- > 0;) {
        count_time(round->visits[i]);
        bool over = ready[i] && read_visit(round, round->visits[i]);
        if (over || is_late(round, round->visits[i])) {
            end_visit(round, i, !over && !round->visits[i]->silent);
        }
    }
    return GPUHAL_OK;
}

/* As many helpers at once as the wait takes, and the system; the next is started when one is done, and its time counts from then. */
static gpuhal_status visit_all(round_of_visits *round)
{
    gpuhal_status status = GPUHAL_OK;
    size_t next = 0;
    while (!status && (round->count > 0 || next < round->candidates->count)) {
        while (next < round->candidates->count && round->count < round->most) {
            gpuhal_candidate *candidate = &round->candidates->list[next];
            bool open = gpuhal_candidate_is_open(candidate) && !candidate->builtin;
            next += !open || begin_visit(round, candidate);
        }
        status = round->count > 0 ? attend(round) : GPUHAL_OK;
    }
    while (round->count > 0) {
        end_visit(round, round->count - 1, true);
    }
    return status;
}

static bool is_needed(const gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (gpuhal_candidate_is_open(&candidates->list[i]) && !candidates->list[i].builtin) {
            return true;
        }
    }
    return false;
}

gpuhal_status gpuhal_isolation_run(gpuhal_verdicts *verdicts)
{
    gpuhal_candidates *candidates = verdicts->candidates;
    if (!is_needed(candidates)) {
        return GPUHAL_OK;
    }
    round_of_visits round = {.verdicts = verdicts,
                             .settings = verdicts->settings,
                             .log = verdicts->log,
                             .candidates = candidates,
                             .most = GPUHAL_PROCESSES_MAX,
                             .block = malloc(READ_BYTES)};
    char *reason = NULL;
    char *helper = gpuhal_helper_find(verdicts->settings, verdicts->log, &reason);
    gpuhal_status status = round.block ? GPUHAL_OK : gpuhal_error_host_memory();
    round.helper = helper;
    if (helper && !status) {
        status = visit_all(&round);
    }
    for (size_t i = 0; !helper && i < candidates->count; i++) {
        if (gpuhal_candidate_is_open(&candidates->list[i]) && !candidates->list[i].builtin) {
            leave_out(&round, &candidates->list[i], reason ? reason : "no helper program was found");
        }
    }
    free(reason);
    free(helper);
    free(round.block);
    return status;
}
