/* json.c: the document gpuhal.check/1; docs/gpuhal.check-1.schema.json describes it. Keys are always there and in this
 * order; what is unknown or does not apply is null. */
#include "report.h"

#include "../common/json.h"
#include "signals.h"

#include <gpuhal/gpuhal.h>

#include <math.h>
#include <string.h>
#include <time.h>

#define SCHEMA "gpuhal.check/1"

const bool gpuhal_document_built = true;

static const char *const outcomes[OUTCOMES] = {"passed", "failed", "expected", "skipped"};

bool gpuhal_document_begin(gpuhal_report *report)
{
    report->checks = json_array();
    return report->checks != NULL;
}

static json_t *make_rule(unsigned rule)
{
    return rule != 0 ? json_sprintf("M-%02u", rule) : json_null();
}

/* One a line. */
static json_t *make_notes(const char *notes)
{
    json_t *array = json_array();
    while (*notes != '\0') {
        char note[sizeof(((gpuhal_result *)0)->notes)];
        const size_t length = strcspn(notes, "\n");
        memcpy(note, notes, length);
        note[length] = '\0';
        json_array_append_new(array, gpuhal_json_any_text(note));
        notes += length + (notes[length] == '\n');
    }
    return array;
}

void gpuhal_document_result(gpuhal_report *report, const gpuhal_finding *finding)
{
    const gpuhal_job *job = finding->job;
    json_t *check = json_pack(
        "{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "name", job->check->name, "device",
        gpuhal_job_has_device(job) ? json_integer(job->index) : json_null(), "result", outcomes[finding->outcome],
        "sentence", job->check->sentence, "message", gpuhal_json_text(finding->message), "rule",
        make_rule(finding->rule), "hint", gpuhal_json_text(finding->hint), "expected",
        gpuhal_json_text(finding->expected), "printed", gpuhal_json_text(finding->printed), "notes",
        make_notes(finding->result->notes), "time_ms", round((double)finding->result->time_ns / 1e3) / 1e3);
    if (json_array_append_new(report->checks, check) != 0) {
        json_decref(report->checks);
        report->checks = NULL;
    }
}

/* The model of the processor, as gpuhal-probe and gpuhal-bench have it: from the plugin cpu, which starts no driver. In
 * this process all checks are over. */
static json_t *make_host(void)
{
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .backends = "cpu",
                                  .registry = "none"};
    gpuhal *gpu = NULL;
    const char *cpu = NULL;
    if (gpuhal_open(&config, &gpu) == GPUHAL_OK && gpuhal_device_count(gpu) > 0) {
        gpuhal_device_text(gpuhal_device_at(gpu, 0), GPUHAL_FACT_NAME, &cpu);
    }
    json_t *host = gpuhal_json_host(cpu);
    gpuhal_close(gpu);
    return host;
}

static json_t *make_plugin(const gpuhal_check_options *options, const gpuhal_self *self)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "file", gpuhal_json_text(options->file), "manifest",
                     gpuhal_json_text(options->manifest), "name", gpuhal_json_text(self->name), "version",
                     gpuhal_json_text(self->version), "abi_version",
                     self->abi != 0 ? gpuhal_json_abi(self->abi) : json_null());
}

static json_t *make_counts(const unsigned *counts)
{
    json_t *object = json_object();
    for (unsigned o = 0; o < OUTCOMES; o++) {
        json_object_set_new(object, outcomes[o], json_integer(counts[o]));
    }
    return object;
}

/* Takes the reference to @document. False without memory; what cannot be written is noticed when the output is
 * closed. */
static bool print(FILE *out, json_t *document)
{
    if (document == NULL) {
        return false;
    }
    const bool printed = json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0;
    json_decref(document);
    fputc('\n', out);
    return printed || ferror(out) != 0;
}

bool gpuhal_document_end(gpuhal_report *report, const gpuhal_self *self, gpuhal_ending ending)
{
    const bool stopped = ending == ENDING_STOPPED;
    const char *status = stopped                      ? "stopped"
                         : ending == ENDING_NO_PLUGIN ? "no_plugin"
                         : report->failed             ? "failed"
                                                      : "passed";
    json_t *checks = report->checks;
    report->checks = NULL;
    return print(report->options->out,
                 json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "schema", SCHEMA, "generated_at",
                           gpuhal_json_time((uint64_t)time(NULL)), "library_version", gpuhal_version(), "abi_version",
                           gpuhal_json_abi(gpuhal_abi_version()), "host", make_host(), "plugin",
                           make_plugin(report->options, self), "status", status, "signal",
                           gpuhal_json_text(stopped ? gpuhal_signals_name() : NULL), "counts",
                           make_counts(report->counts), "checks", checks));
}

bool gpuhal_document_print_list(FILE *out)
{
    json_t *list = json_array();
    for (unsigned c = 0; c < gpuhal_check_count; c++) {
        const gpuhal_job job = {.check = &gpuhal_checks[c]};
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:b}", "name", job.check->name, "sentence",
                                              job.check->sentence, "rule", make_rule(job.check->rule), "per_device",
                                              gpuhal_job_has_device(&job)));
    }
    const bool whole = json_array_size(list) == gpuhal_check_count;
    json_t *document = json_pack("{s:s, s:s, s:o, s:o}", "schema", SCHEMA, "library_version", gpuhal_version(),
                                 "abi_version", gpuhal_json_abi(gpuhal_abi_version()), "list", list);
    return print(out, document) && whole;
}

bool gpuhal_document_print_error(FILE *out, const char *code, const char *message)
{
    return print(out, gpuhal_json_error(SCHEMA, "gpuhal-check", code, message));
}
