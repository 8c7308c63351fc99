/* main.c: gpuhal-check, the conformance suite as a program that runs on a plugin binary.
 *
 * Read in this order: checks.inc (the checks), check.h (the contract of a check), this file, run.c, report.c,
 * session.c, then the checks_*.c.
 */
#include "../common/command_line.h"
#include "../common/errors.h"
#include "../common/standard_output.h"
#include "manifest.h"
#include "options.h"
#include "report.h"
#include "signals.h"

#include <gpuhal/instance.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_PASSED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_PLUGIN = 3, EXIT_INTERNAL = 4, EXIT_SIGNAL = -1 };

static bool is_named(const gpuhal_job *job, const char *const *names, unsigned count)
{
    bool named = false;
    for (unsigned n = 0; n < count; n++) {
        named = named || gpuhal_job_is(job, names[n]);
    }
    return named;
}

static bool wanted(const gpuhal_check_options *options, const gpuhal_job *job)
{
    return (options->only_count == 0 || is_named(job, options->only, options->only_count)) &&
           !is_named(job, options->except, options->except_count);
}

/* Plans every check except the first, in the order of the table. Checks that run once per device are repeated for each
 * device. */
static gpuhal_job *plan(const gpuhal_check_options *options, const gpuhal_runner *runner, unsigned *out_count)
{
    gpuhal_job *jobs = calloc((size_t)gpuhal_check_count * runner->device_count, sizeof *jobs);
    *out_count = 0;
    for (unsigned c = 1; jobs != NULL && c < gpuhal_check_count; c++) {
        const gpuhal_needs needs = gpuhal_checks[c].needs;
        const unsigned times = needs == NEEDS_NOTHING || needs == NEEDS_PLUGIN ? 1 : runner->device_count;
        for (unsigned d = 0; d < times; d++) {
            const gpuhal_job job = {&gpuhal_checks[c], runner->devices[d]};
            if (wanted(options, &job)) {
                jobs[(*out_count)++] = job;
            }
        }
    }
    return jobs;
}

static bool lists(const gpuhal_runner *runner, uint32_t device)
{
    for (unsigned d = 0; d < runner->device_count; d++) {
        if (runner->devices[d] == device) {
            return true;
        }
    }
    return false;
}

static void refuse_device(gpuhal_result *result, uint32_t device)
{
    result->status = CHECK_FAILED;
    snprintf(result->sentence, sizeof result->sentence, "the plugin lists no device %u", device);
    snprintf(result->hint, sizeof result->hint,
             "Give the index of one of its devices, as gpuhal-probe --all lists them.");
}

static void expect_listed(const gpuhal_runner *runner, const char *const *names, unsigned count, gpuhal_result *result)
{
    for (unsigned n = 0; n < count; n++) {
        const char *at = strchr(names[n], '@');
        if (at != NULL && !lists(runner, (uint32_t)strtoul(at + 1, NULL, 10))) {
            refuse_device(result, (uint32_t)strtoul(at + 1, NULL, 10));
        }
    }
}

/* Runs after the first check, because only this check lists the devices. A missing device is an error, because a run
 * that checks nothing would succeed. */
static void choose_device(gpuhal_runner *runner, gpuhal_result *result)
{
    const gpuhal_check_options *options = runner->options;
    expect_listed(runner, options->only, options->only_count, result);
    expect_listed(runner, options->except, options->except_count, result);
    if (options->one_device && lists(runner, options->device)) {
        runner->devices[0] = options->device;
        runner->device_count = 1;
    } else if (options->one_device) {
        refuse_device(result, options->device);
    }
}

static int broken(const gpuhal_check_options *options, const char *why)
{
    fprintf(stderr, "gpuhal-check: %s\n", why);
    options->form->error(options->out, "internal", why);
    return EXIT_INTERNAL;
}

static int give_up(gpuhal_report *report, const gpuhal_job *first, const gpuhal_result *result)
{
    report->options->form->begin(report, 1);
    gpuhal_report_result(report, first, result);
    report->options->form->end(report, ENDING_NO_PLUGIN);
    return EXIT_NO_PLUGIN;
}

/* Reports why the runner completed no job. The exit status for a signal is set after all clean-up. */
static int stop(gpuhal_report *report)
{
    if (gpuhal_signals_caught() == 0) {
        return broken(report->options, "no child process can be made");
    }
    fprintf(stderr, "gpuhal-check: ended by %s\n", gpuhal_signals_name());
    report->options->form->end(report, ENDING_STOPPED);
    return EXIT_SIGNAL;
}

static const gpuhal_result *refused_manifest(const gpuhal_check_options *options, gpuhal_result *result)
{
    gpuhal_manifest manifest;
    *result = (gpuhal_result){.status = CHECK_FAILED};
    if (gpuhal_manifest_read(options->manifest, &manifest, result->sentence, sizeof result->sentence)) {
        result->rule = 30;
        snprintf(result->sentence, sizeof result->sentence, "the manifest %s names no library", options->manifest);
    } else {
        snprintf(result->hint, sizeof result->hint, "%s", GPUHAL_HINT_FILE);
    }
    gpuhal_manifest_finish(&manifest);
    return result;
}

static void keep(void *user, const gpuhal_job *job, const gpuhal_result *result)
{
    (void)job;
    *(gpuhal_result *)user = *result;
}

static void report_one(void *user, const gpuhal_job *job, const gpuhal_result *result)
{
    gpuhal_report_result(user, job, result);
}

static int run_jobs(gpuhal_runner *runner, gpuhal_report *report, const gpuhal_job *first,
                    const gpuhal_result *first_result)
{
    unsigned count = 0;
    gpuhal_job *jobs = plan(runner->options, runner, &count);
    if (jobs == NULL) {
        return broken(report->options, "out of memory");
    }
    report->options->form->begin(report, count + 1);
    gpuhal_report_result(report, first, first_result);
    for (unsigned done = 0; done < count && gpuhal_tool_output_error() == 0;) {
        unsigned settled = gpuhal_runner_run(runner, jobs + done, count - done, report_one, report);
        if (settled == 0) {
            free(jobs);
            return stop(report);
        }
        done += settled;
    }
    free(jobs);
    report->options->form->end(report, ENDING_COMPLETE);
    return report->failed ? EXIT_FAILED : EXIT_PASSED;
}

/* The first check runs before the report begins, because it provides the plugin's description and the number of
 * results. */
static int check(const gpuhal_check_options *options, const gpuhal_expectations *expectations)
{
    gpuhal_runner runner = {0};
    gpuhal_report report = {.options = options, .expectations = expectations, .self = &runner.self};
    const gpuhal_job first = {.check = &gpuhal_checks[0]};
    gpuhal_result result = {0};
    if (options->file == NULL) { /* the manifest names no library */
        return give_up(&report, &first, refused_manifest(options, &result));
    }
    if (!gpuhal_runner_init(&runner, options) || gpuhal_runner_run(&runner, &first, 1, keep, &result) == 0) {
        options->form->begin(&report, 0);
        return stop(&report);
    }
    if (result.status == CHECK_PASSED) {
        choose_device(&runner, &result);
    }
    return result.status == CHECK_PASSED ? run_jobs(&runner, &report, &first, &result)
                                         : give_up(&report, &first, &result);
}

/* Reads the list of expected failures beside the plugin, unless the user specified another list. */
static bool read_expectations(const gpuhal_check_options *options, gpuhal_expectations *out_expectations)
{
    char beside[PATH_MAX + 8];
    char problem[PATH_MAX + 640];
    snprintf(beside, sizeof beside, "%s.expect", options->file != NULL ? options->file : options->manifest);
    const char *file = options->expect != NULL ? options->expect : beside;
    if (options->expect == NULL && access(beside, F_OK) != 0) {
        return true;
    }
    if (gpuhal_expectations_read(file, out_expectations, problem, sizeof problem)) {
        return true;
    }
    fprintf(stderr, "gpuhal-check: %s\n", problem);
    return false;
}

/* The loader resolves links and dots and reports missing files. */
static void make_absolute(const char *file, char *out_file, size_t size)
{
    char directory[PATH_MAX];
    if (file[0] == '/' || getcwd(directory, sizeof directory) == NULL) {
        snprintf(out_file, size, "%s", file);
    } else {
        snprintf(out_file, size, "%s/%s", directory, file);
    }
}

/* Replaces NAME.gpuhal by the library that the manifest names, or by NULL if it names no library. */
static void take_manifest(gpuhal_check_options *options, char *out_library, size_t size)
{
    gpuhal_manifest manifest;
    char problem[512];
    const size_t length = strlen(options->file);
    if (length < 7 || strcmp(options->file + length - 7, ".gpuhal") != 0) {
        return;
    }
    options->manifest = options->file;
    options->file = NULL;
    if (gpuhal_manifest_read(options->manifest, &manifest, problem, sizeof problem) &&
        gpuhal_manifest_library(&manifest, options->manifest, out_library, size)) {
        options->file = out_library;
    }
    gpuhal_manifest_finish(&manifest);
}

/* The parent owns the folder, so it is removed even if a child crashes. */
static int check_in_folder(gpuhal_check_options *options, const gpuhal_expectations *expectations)
{
    char folder[] = "/tmp/gpuhal-check-XXXXXX", manifest[64];
    if (mkdtemp(folder) == NULL) {
        return broken(options, "no folder can be made in /tmp");
    }
    options->folder = folder;
    gpuhal_signals_catch();
    int exit_status = check(options, expectations);
    snprintf(manifest, sizeof manifest, "%s/plugin.gpuhal", folder);
    unlink(manifest);
    rmdir(folder);
    return exit_status;
}

/* Reads all user input. Returns GPUHAL_TOOL_GO_ON, or the exit code. */
static int read_everything(int argc, char **argv, FILE *out, gpuhal_check_options *out_options,
                           gpuhal_expectations *out_expectations)
{
    static char absolute[2 * PATH_MAX], library[2 * PATH_MAX];
    const int exit_code = gpuhal_options_read(argc, argv, out, out_options);
    if (exit_code != GPUHAL_TOOL_GO_ON || out_options->list) {
        return exit_code;
    }
    make_absolute(out_options->file, absolute, sizeof absolute);
    out_options->file = absolute;
    take_manifest(out_options, library, sizeof library);
    return read_expectations(out_options, out_expectations) ? GPUHAL_TOOL_GO_ON : EXIT_USAGE;
}

static int close_output(FILE *out, int exit_status)
{
    if (gpuhal_tool_output_close(&out)) {
        return exit_status;
    }
    fprintf(stderr, "gpuhal-check: standard output cannot be written%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return EXIT_INTERNAL;
}

int main(int argc, char **argv)
{
    FILE *out = gpuhal_tool_output_take();
    if (out == NULL) {
        fprintf(stderr, "gpuhal-check: standard output cannot be written: %s\n", strerror(errno));
        return EXIT_INTERNAL;
    }
    gpuhal_check_options options = {0};
    gpuhal_expectations expectations = {0};
    char said[1024];
    const bool json = gpuhal_tool_wants_json(argc, argv);
    const int caught = json ? gpuhal_tool_errors_catch() : -1;
    int exit_status = read_everything(argc, argv, out, &options, &expectations);
    gpuhal_tool_errors_release(caught, said, sizeof said);
    if (exit_status == GPUHAL_TOOL_GO_ON && options.list) {
        options.form->list(out);
        exit_status = EXIT_PASSED;
    } else if (exit_status == GPUHAL_TOOL_GO_ON) {
        exit_status = check_in_folder(&options, &expectations);
    } else if (exit_status == EXIT_USAGE && json) {
        gpuhal_form_json.error(out, "usage", said);
    }
    gpuhal_expectations_finish(&expectations);
    free(options.given.code);
    exit_status = close_output(out, exit_status);
    if (exit_status == EXIT_SIGNAL) {
        gpuhal_signals_release();
        raise(gpuhal_signals_caught());
    }
    return exit_status;
}
