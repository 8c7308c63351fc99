/* loader/isolation.c: see isolation.h.
 *
 * The result comes from the helper's stream; the exit status only explains why the stream has no result. Devices are
 * accepted only after a complete [end]. The result is stored in the registry. If a helper cannot be started, or ends
 * without its hello, its plugin is not probed. Except for the library's own cpu plugin, the plugin is loaded into this
 * process only if the configuration requests that, never because of a shortage of descriptors.
 */
#include "loader/isolation.h"

#include "base/error.h"
#include "base/text.h"
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

#define GRACE_NS    1000000000u /* time for a process to exit normally, even on a busy machine */
#define TERM_NS     100000000u  /* time for a hung process to exit after SIGTERM */
/* maximum duration of a wait, and maximum time counted towards deadlines per wait; the host may be suspended during a
 * wait */
#define SLICE_NS    500000000u
#define READ_BYTES  16384
#define READ_BLOCKS 8
#define PRINTED_MAX (4u << 20) /* maximum bytes of a plugin's output during a probe */

typedef struct helper_run {
    gpuhal_candidate *candidate;
    gpuhal_load_context load;
    gpuhal_child process;
    gpuhal_stream stream;
    gpuhal_output output;
    bool unruly;    /* the process did not end like a helper */
    bool doubtful;  /* another process may be the cause of the fault */
    bool hungry;    /* the helper ran out of memory, which is not a result of the plugin */
    uint32_t fault; /* a gpuhal_fault_kind */
    uint64_t begun_ns;
    uint64_t looked_ns;  /* end of the time counted in `used_ns` */
    uint64_t used_ns;    /* elapsed part of the run's deadline */
    uint64_t starved_ns; /* time spent waiting for a processor, as last read */
    uint64_t starved_before_ns; /* the process's time without a processor until its stream ended; not in `starved_ns` */
    uint64_t printed;    /* number of bytes */
    bool flooding;       /* more bytes than the limit were printed */
    bool silent;         /* the stream ended without [end] or [crash]; waiting for the process to exit */
} helper_run;

/* The running helpers: runs[0] to runs[count - 1]. */
typedef struct round_of_runs {
    gpuhal_probe_cache *cache;
    const gpuhal_settings *settings; /* from the loader, like the next two members */
    gpuhal_log *log;
    gpuhal_candidates *candidates;
    const char *helper;
    char *block; /* buffer of READ_BYTES, too large for a small stack */
    bool said;   /* the note about unprobed plugins was added */
    size_t most; /* estimated number of helpers that the system can run at once */
    helper_run *runs[GPUHAL_PROCESSES_MAX];
    size_t count;
} round_of_runs;

/* Adds only one note, because the reasons for other plugins are usually the same. */
static void leave_out(round_of_runs *round, gpuhal_candidate *candidate, const char *reason)
{
    if (gpuhal_candidate_is_own_cpu(candidate)) {
        return;
    }
    if (!round->said) {
        gpuhal_candidates_add_note(round->candidates, round->log, "plugins are not probed: %s", reason);
        round->said = true;
    }
    gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_STAGE_SPAWN, "%s", reason);
}

static uint32_t level_wanted(const gpuhal_settings *settings)
{
    return settings->log || settings->log_to_stderr ? settings->log_level : 0;
}

/* Returns whether the error is a shortage of resources that other helpers free when they end. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
}

/* Starts a helper for the candidate, or calls leave_out(). Returns false if the start has to be retried after another
 * helper has ended. */
static bool begin_run(round_of_runs *round, gpuhal_candidate *candidate)
{
    char level[16], protocol[16], parent[24], reason[512];
    snprintf(parent, sizeof parent, "%" PRId64, gpuhal_os_process_own());
    snprintf(level, sizeof level, "%" PRIu32, level_wanted(round->settings));
    snprintf(protocol, sizeof protocol, "%u", GPUHAL_HELPER_PROTOCOL);
    const char *const arguments[] = {round->helper,   protocol, candidate->name,
                                     candidate->file, level,    candidate->ignore_environment ? "1" : "0",
                                     parent,          candidate->options ? candidate->options : "",
                                     candidate->settings ? candidate->settings : "", NULL};
    helper_run *run = calloc(1, sizeof *run);
    int error = run ? gpuhal_os_process_start(arguments, &run->process) : ENOMEM;
    if (error) {
        free(run);
        if (is_shortage(error) && round->count > 0) {
            round->most = round->count;
            return false;
        }
        snprintf(reason, sizeof reason, "%.400s cannot be started: %s", round->helper, strerror(error));
        leave_out(round, candidate, reason);
        return true;
    }
    run->candidate = candidate;
    run->load = (gpuhal_load_context){.name = candidate->name, .log = round->log, .stage = GPUHAL_STAGE_SPAWN};
    run->stream.load = &run->load;
    run->begun_ns = run->looked_ns = gpuhal_os_monotonic_ns();
    gpuhal_log_line(round->log, GPUHAL_LEVEL_DEBUG, "%s: process %" PRId64 " probes %s", candidate->name,
                    run->process.pid, candidate->file);
    round->runs[round->count++] = run;
    return true;
}

static void format_deadline(uint64_t ns, char *out, size_t bytes)
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

static void describe_silence(gpuhal_load_context *load, gpuhal_ended ended, int value, bool doubtful)
{
    const char *when = gpuhal_load_while(load->stage);
    if (ended == GPUHAL_ENDED_SIGNAL) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "it crashed with signal %d (%s) %s%s", value,
                            gpuhal_os_signal_name(value), when, doubtful ? ", which others may have sent" : "");
    } else if (ended == GPUHAL_ENDED_EXIT && value != GPUHAL_HELPER_EXIT_UNHEARD) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "the process exited with code %d %s", value,
                            when);
    } else if (ended == GPUHAL_ENDED_EXIT) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "it closed the helper's stream %s", when);
    } else {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "it sent no result: the stream ended %s",
                         when);
    }
}

/* Devices sent before a failure are not a valid list, so only the message names them. */
static void describe_partial(const gpuhal_stream *stream, gpuhal_load_context *load)
{
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "%s; before that it had listed %zu device%s:", load->reason ? load->reason : "",
                       stream->whole, stream->whole == 1 ? "" : "s");
    for (size_t i = 0; i < stream->whole; i++) {
        const char *name = gpuhal_facts_text(&stream->devices.list[i].facts, GPUHAL_FACT_NAME);
        gpuhal_text_printf(&text, "%s %s:%" PRIu32 " %s", i > 0 ? "," : "", load->name, stream->devices.list[i].index,
                           name ? name : "");
    }
    char *reason = text.failed || stream->whole == 0 ? NULL : gpuhal_text_take(&text);
    if (reason) {
        free(load->reason);
        load->reason = reason;
    }
    gpuhal_text_finish(&text);
}

static void describe_late(helper_run *run, uint64_t deadline_ns)
{
    char time[32];
    gpuhal_load_context *load = &run->load;
    format_deadline(deadline_ns, time, sizeof time);
    if (!run->stream.hello) {
        load->stage = GPUHAL_STAGE_SPAWN;
        gpuhal_load_fail(load, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT,
                         "its helper process sent nothing within %s", time);
        return;
    }
    gpuhal_load_fail(load, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT, "the driver hung %s (%s timeout)",
                     gpuhal_load_while(load->stage), time);
    describe_partial(&run->stream, load);
    run->fault = GPUHAL_FAULT_HANG;
}

/* Judges a helper that ended or was terminated without a complete [end]. The order of the tests matters. Running out of
 * memory or printing too much is not a crash, although the process ends in the same way. A crash reported by the helper
 * itself takes precedence over the deadline. */
static void judge_unruly(helper_run *run, uint64_t deadline_ns, bool late, gpuhal_ended ended, int value)
{
    gpuhal_load_context *load = &run->load;
    const gpuhal_stream *stream = &run->stream;
    bool crashed = stream->state == GPUHAL_STREAM_CRASHED;
    /* Discards an incomplete [end]. */
    free(load->reason);
    load->reason = NULL;
    load->code = 0;
    if (stream->state == GPUHAL_STREAM_MORE && !late && ended == GPUHAL_ENDED_EXIT &&
        value == GPUHAL_HELPER_EXIT_HUNGRY) {
        run->hungry = true;
        gpuhal_load_fail(load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_HOST_MEMORY,
                         "its helper process ran out of memory %s", gpuhal_load_while(load->stage));
        return;
    }
    if (run->flooding) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "it printed more than %u MiB %s",
                         PRINTED_MAX >> 20, gpuhal_load_while(load->stage));
        return;
    }
    run->unruly = true;
    if (crashed || (stream->state != GPUHAL_STREAM_RUBBISH && !late)) {
        run->fault = GPUHAL_FAULT_CRASH;
        ended = crashed ? GPUHAL_ENDED_SIGNAL : ended;
        value = crashed ? stream->signal : value;
        run->candidate->signal = ended == GPUHAL_ENDED_SIGNAL ? (uint32_t)value : 0;
        run->doubtful = !crashed && ended == GPUHAL_ENDED_SIGNAL && gpuhal_os_signal_is_from_outside(value);
        describe_silence(load, ended, value, run->doubtful);
    } else if (late && stream->state != GPUHAL_STREAM_RUBBISH) {
        describe_late(run, deadline_ns);
    } else {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                         "it sent invalid data in line %" PRIu32 ": %s, %s", stream->line, stream->problem,
                         gpuhal_load_while(load->stage));
    }
}

/* Reads what the plugin has printed. Output of a process that is being terminated is ignored. */
static void read_output(const round_of_runs *round, helper_run *run)
{
    size_t got = READ_BYTES;
    for (int block = 0; block < READ_BLOCKS && got > 0; block++) {
        got = gpuhal_os_process_read_output(&run->process, round->block, READ_BYTES);
        gpuhal_output_add(&run->output, round->block, got);
        run->printed += got;
    }
}

/* `late` means that the deadline has passed. Returns whether the plugin lists devices.
 *
 * Reads the output first, because finishing the process closes its descriptors. */
static bool judge(round_of_runs *round, helper_run *run, bool late)
{
    int value = 0;
    int64_t process = run->process.pid;
    read_output(round, run);
    gpuhal_ended ended = gpuhal_os_process_finish(&run->process, 0, late ? TERM_NS : 0, &value);
    if (ended == GPUHAL_ENDED_NOT) {
        gpuhal_candidates_add_note(round->candidates, round->log,
                                   "%s: the helper process %" PRId64 " cannot be ended, and was left behind",
                                   run->candidate->name, process);
    }
    if (run->stream.state != GPUHAL_STREAM_ENDED && (run->stream.hello || late)) {
        judge_unruly(run, round->settings->helper_deadline_ns, late, ended, value);
    }
    return run->stream.state == GPUHAL_STREAM_ENDED && run->stream.good;
}

/* A result in [end] can be cached only if the files that it depends on are known. There is no result if the process is
 * not a helper, sent nothing or ran out of memory. */
static bool is_cacheable(const helper_run *run)
{
    return run->stream.hello && !run->hungry && (run->unruly || run->stream.mapped.count > 0);
}

static void store_result(round_of_runs *round, helper_run *run)
{
    gpuhal_candidate *candidate = run->candidate;
    gpuhal_texts lines;
    gpuhal_output_lines(&run->output, &lines);
    gpuhal_text joined = {0};
    for (size_t i = 0; i < lines.count; i++) {
        gpuhal_text_printf(&joined, "%s%s", i > 0 ? "\n" : "", lines.list[i]);
    }
    free(candidate->output);
    candidate->output = lines.count > 0 ? gpuhal_text_take(&joined) : NULL;
    candidate->probed_at = gpuhal_os_wall_clock();
    /* The last device may be incomplete. */
    gpuhal_listed_devices complete = run->stream.devices;
    complete.count = run->stream.whole;
    const gpuhal_probe_result result = {.unruly = run->unruly,
                                        .doubtful = run->doubtful,
                                        .fault = run->fault,
                                        .status = run->load.status,
                                        .mapped = &run->stream.mapped,
                                        .output = &lines,
                                        .devices = &complete};
    if (is_cacheable(run)) {
        gpuhal_probe_cache_learn(round->cache, candidate, &result);
    }
    gpuhal_text_finish(&joined);
    gpuhal_texts_finish(&lines);
}

/* Storing the result copies the devices. After that the devices are moved to the candidate, and the stream is freed
 * without them. */
static void end_run(round_of_runs *round, size_t place, bool late)
{
    helper_run *run = round->runs[place];
    gpuhal_candidate *candidate = run->candidate;
    const int64_t process = run->process.pid;
    bool good = judge(round, run, late);
    gpuhal_log_line(round->log, GPUHAL_LEVEL_DEBUG, "%s: process %" PRId64 " ended", candidate->name, process);
    /* A program that is not a helper sends nothing and exits. */
    if (run->stream.hello || late) {
        candidate->time_ns = gpuhal_os_monotonic_ns() - run->begun_ns;
        candidate->isolated = true;
        gpuhal_candidate_take(candidate, &run->load, good);
        if (good) {
            gpuhal_candidate_accept(candidate);
        }
        store_result(round, run);
    } else {
        char reason[512];
        snprintf(
            reason, sizeof reason,
            "%.350s sent nothing: it is not a helper of this version, or is in another PID namespace than this process",
            round->helper);
        leave_out(round, candidate, reason);
    }
    if (gpuhal_candidate_may_have(candidate->state, &run->stream.devices)) {
        candidate->devices = run->stream.devices;
        run->stream.devices = (gpuhal_listed_devices){0};
    }
    gpuhal_load_finish(&run->load);
    gpuhal_stream_finish(&run->stream);
    free(run);
    round->runs[place] = round->runs[--round->count];
}

/* Reads available bytes up to a limit, because other helpers and deadlines are pending. Returns whether the run is
 * over. */
static bool read_run(const round_of_runs *round, helper_run *run)
{
    if (run->silent) {
        return true; /* the process has ended */
    }
    read_output(round, run);
    run->flooding = run->stream.hello && run->printed > PRINTED_MAX;
    if (run->flooding) {
        return true;
    }
    for (int block = 0; block < READ_BLOCKS; block++) {
        int64_t got = gpuhal_os_process_read(&run->process, round->block, READ_BYTES);
        if (got == -1) {
            return false;
        }
        if (got <= 0) {
            /* Only the exit status is missing. Give the process some time to exit, while the other helpers continue. */
            gpuhal_os_process_close_stream(&run->process);
            run->silent = true;
            run->used_ns = run->starved_ns = 0;
            run->starved_before_ns = gpuhal_os_process_starved_ns(&run->process);
            return false;
        }
        if (gpuhal_stream_feed(&run->stream, round->block, (size_t)got) != GPUHAL_STREAM_MORE) {
            return true;
        }
    }
    return false;
}

static uint64_t time_left(const round_of_runs *round, const helper_run *run)
{
    uint64_t deadline = (run->silent ? GRACE_NS : round->settings->helper_deadline_ns) + run->starved_ns;
    return run->used_ns < deadline ? deadline - run->used_ns : 0;
}

/* Counts the time since the last call, including the time spent on other runs, but at most SLICE_NS, because the host
 * may have been suspended. If the time spent on other runs did not count, a helper with endless output would extend
 * every deadline. */
static void count_time(helper_run *run)
{
    uint64_t now = gpuhal_os_monotonic_ns(), passed = now - run->looked_ns;
    run->used_ns += passed < SLICE_NS ? passed : SLICE_NS;
    run->looked_ns = now;
}

/* Time that the helper spent runnable but without a processor is not counted, so that a busy machine is not mistaken
 * for a hang. This time is read only at the deadline, and adds at most one helper_deadline_ns, so that even an endless
 * loop is terminated. */
static bool is_late(const round_of_runs *round, helper_run *run)
{
    if (time_left(round, run) == 0) {
        uint64_t starved = gpuhal_os_process_starved_ns(&run->process), deadline = round->settings->helper_deadline_ns;
        starved = starved > run->starved_before_ns ? starved - run->starved_before_ns : 0;
        run->starved_ns = starved < deadline ? starved : deadline;
    }
    return time_left(round, run) == 0;
}

static gpuhal_status attend(round_of_runs *round)
{
    gpuhal_child *processes[GPUHAL_PROCESSES_MAX];
    bool ready[GPUHAL_PROCESSES_MAX];
    /* Waits are limited to one slice, so that suspending the host costs a helper at most one slice. */
    uint64_t nearest = SLICE_NS;
    for (size_t i = 0; i < round->count; i++) {
        uint64_t left = time_left(round, round->runs[i]);
        nearest = left < nearest ? left : nearest;
        processes[i] = &round->runs[i]->process;
    }
    int error = gpuhal_os_process_wait(processes, round->count, nearest, ready);
    if (error) {
        return gpuhal_error_set(GPUHAL_ERROR_HOST_MEMORY, "the host cannot wait for helper processes: %s",
                                strerror(error));
    }
    /* Iterates backwards, because a run that ends is replaced in the list by the last run, which was already served. */
    for (size_t i = round->count; i-- > 0;) {
        count_time(round->runs[i]);
        bool over = ready[i] && read_run(round, round->runs[i]);
        if (over || is_late(round, round->runs[i])) {
            end_run(round, i, !over && !round->runs[i]->silent);
        }
    }
    return GPUHAL_OK;
}

/* Runs as many helpers at once as poll and the system allow. The time of each helper counts from its start. */
static gpuhal_status run_all(round_of_runs *round)
{
    gpuhal_status status = GPUHAL_OK;
    size_t next = 0;
    while (!status && (round->count > 0 || next < round->candidates->count)) {
        while (next < round->candidates->count && round->count < round->most) {
            gpuhal_candidate *candidate = &round->candidates->list[next];
            bool open = gpuhal_candidate_is_open(candidate) && !candidate->builtin;
            next += !open || begin_run(round, candidate);
        }
        status = round->count > 0 ? attend(round) : GPUHAL_OK;
    }
    /* After an error the other helpers must not continue. They are terminated and judged as late. */
    while (round->count > 0) {
        end_run(round, round->count - 1, true);
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

gpuhal_status gpuhal_isolation_run(gpuhal_probe_cache *cache)
{
    gpuhal_candidates *candidates = cache->candidates;
    if (!is_needed(candidates)) {
        return GPUHAL_OK;
    }
    round_of_runs round = {.cache = cache,
                             .settings = cache->settings,
                             .log = cache->log,
                             .candidates = candidates,
                             .most = GPUHAL_PROCESSES_MAX,
                             .block = malloc(READ_BYTES)};
    char *reason = NULL;
    char *helper = gpuhal_helper_find(cache->settings, cache->log, &reason);
    gpuhal_status status = round.block ? GPUHAL_OK : gpuhal_error_host_memory();
    round.helper = helper;
    if (helper && !status) {
        status = run_all(&round);
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
