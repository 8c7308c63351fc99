/* json.c: writes JSON Lines in the schema "gpuhal.check/2", described in docs/gpuhal.check-2.schema.json. All keys are
 * always present, in this order; values that are unknown or do not apply are null. */
#include "report.h"

#include "../common/host.h"
#include "signals.h"

#include <gpuhal/gpuhal.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SCHEMA "{\"schema\":\"gpuhal.check/2\""

static const char *const outcomes[OUTCOMES] = {"passed", "failed", "expected", "skipped"};

/* Writes a string, or null for NULL and "". @p before is the key with all separators. */
static void put(FILE *out, const char *before, const char *text)
{
    fputs(before, out);
    if (text != NULL && text[0] != '\0') {
        gpuhal_print_quoted(out, text);
    } else {
        fputs("null", out);
    }
}

static void put_rule(FILE *out, unsigned rule)
{
    char text[16] = "";
    if (rule != 0) {
        snprintf(text, sizeof text, "M-%02u", rule);
    }
    put(out, ",\"rule\":", text);
}

static void put_abi(FILE *out, uint32_t version)
{
    char text[24] = "";
    if (version != 0) {
        snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32, version >> 16, version & 0xffffu);
    }
    put(out, ",\"abi_version\":", text);
}

static void put_notes(FILE *out, const char *notes)
{
    fputs(",\"notes\":[", out);
    for (const char *separator = ""; *notes != '\0'; separator = ",") {
        char note[sizeof(((gpuhal_result *)0)->notes)];
        const size_t length = strcspn(notes, "\n");
        snprintf(note, sizeof note, "%.*s", (int)length, notes);
        fputs(separator, out);
        gpuhal_print_quoted(out, note);
        notes += length + (notes[length] == '\n');
    }
    putc(']', out);
}

typedef struct gpuhal_cpu {
    char name[256];
} gpuhal_cpu;

/* Sends the CPU model, which the plugin cpu reports, as in gpuhal-probe and gpuhal-bench. This plugin starts no
 * driver. */
static void send_cpu(void *user, int to)
{
    (void)user;
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .backends = "cpu",
                                  .registry = "none"};
    gpuhal *gpu = NULL;
    const char *name = "";
    gpuhal_cpu cpu;
    if (gpuhal_open(&config, &gpu) == GPUHAL_OK && gpuhal_device_count(gpu) > 0) {
        gpuhal_device_text(gpuhal_device_at(gpu, 0), GPUHAL_FACT_NAME, &name);
    }
    snprintf(cpu.name, sizeof cpu.name, "%s", name);
    gpuhal_tool_send(to, &cpu, sizeof cpu);
}

/* Reads the model in a child process, because no plugin may be loaded when the checks' children are forked. The model
 * is "" if unknown. */
static gpuhal_cpu read_cpu(void)
{
    const uint64_t patience_ns = 10000000000u;
    gpuhal_cpu cpu = {""};
    gpuhal_tool_child child;
    int status = 0;
    if (gpuhal_tool_fork(send_cpu, NULL, &child)) {
        gpuhal_tool_hear(&child, gpuhal_tool_now_ns() + patience_ns, &cpu, sizeof cpu);
        gpuhal_tool_end(&child, 0, &status);
    }
    return cpu;
}

/* Writes the same object as gpuhal_json_host() does in the programs that use jansson. */
static void put_host(FILE *out)
{
    const gpuhal_cpu cpu = read_cpu();
    gpuhal_tool_host host;
    gpuhal_tool_host_read(&host);
    put(out, ",\"host\":{\"name\":", host.name);
    put(out, ",\"os\":", host.os);
    put(out, ",\"kernel\":", host.kernel);
    put(out, ",\"architecture\":", host.architecture);
    put(out, ",\"cpu\":", cpu.name);
    fprintf(out, ",\"processors\":%" PRIu32 "}", host.processors);
}

static void put_header(const gpuhal_report *report, unsigned count)
{
    (void)count;
    FILE *out = report->options->out;
    char stamp[40];
    struct tm parts;
    const time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    put(out, SCHEMA ",\"generated_at\":", stamp);
    put(out, ",\"library_version\":", gpuhal_version());
    put_abi(out, gpuhal_abi_version());
    put_host(out);
    put(out, ",\"plugin\":{\"file\":", report->options->file);
    put(out, ",\"manifest\":", report->options->manifest);
    put(out, ",\"name\":", report->self->name);
    put(out, ",\"version\":", report->self->version);
    put_abi(out, report->self->abi);
    fputs("}}\n", out);
}

static void put_check(const gpuhal_report *report, const gpuhal_finding *finding)
{
    const gpuhal_job *job = finding->job;
    const uint64_t time_us = finding->result->time_ns / 1000;
    FILE *out = report->options->out;
    put(out, "{\"name\":", job->check->name);
    if (gpuhal_job_has_device(job)) {
        fprintf(out, ",\"device\":%" PRIu32, job->index);
    } else {
        fputs(",\"device\":null", out);
    }
    put(out, ",\"result\":", outcomes[finding->outcome]);
    put(out, ",\"sentence\":", job->check->sentence);
    put(out, ",\"message\":", finding->message);
    put_rule(out, finding->rule);
    put(out, ",\"hint\":", finding->hint);
    put(out, ",\"expected\":", finding->expected);
    put(out, ",\"printed\":", finding->printed);
    put_notes(out, finding->result->notes);
    fprintf(out, ",\"time_ms\":%" PRIu64 ".%03u}\n", time_us / 1000, (unsigned)(time_us % 1000));
}

static void put_totals(const gpuhal_report *report, gpuhal_ending ending)
{
    FILE *out = report->options->out;
    const bool stopped = ending == ENDING_STOPPED;
    const char *status = stopped                      ? "stopped"
                         : ending == ENDING_NO_PLUGIN ? "no_plugin"
                         : report->failed             ? "failed"
                                                      : "passed";
    put(out, "{\"status\":", status);
    put(out, ",\"signal\":", stopped ? gpuhal_signals_name() : NULL);
    for (unsigned o = 0; o < OUTCOMES; o++) {
        fprintf(out, ",\"%s\":%u", outcomes[o], report->counts[o]);
    }
    fputs("}\n", out);
}

static void put_list(FILE *out)
{
    for (unsigned c = 0; c < gpuhal_check_count; c++) {
        const gpuhal_job job = {.check = &gpuhal_checks[c]};
        put(out, SCHEMA ",\"name\":", job.check->name);
        put(out, ",\"sentence\":", job.check->sentence);
        put_rule(out, job.check->rule);
        fprintf(out, ",\"per_device\":%s}\n", gpuhal_job_has_device(&job) ? "true" : "false");
    }
}

static void put_error(FILE *out, const char *code, const char *message)
{
    const char program[] = "gpuhal-check: ";
    const size_t length = sizeof program - 1;
    put(out, SCHEMA ",\"error\":{\"code\":", code);
    put(out, ",\"message\":", strncmp(message, program, length) == 0 ? message + length : message);
    fputs("}}\n", out);
}

const gpuhal_form gpuhal_form_json = {put_list, put_header, put_check, put_totals, put_error};
