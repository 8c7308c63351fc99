/* json.c: one object for each row, and the same as a line of CSV. Copies have a ratio and a bandwidth, amounts have a value and a
 * unit, times a ratio and a unit. */
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Every key of a result, in the order in which they are shown. */
static const char *const keys[] = {
    "device",
    "peer",
    "test",
    "path",
    "bytes",
    "gib_per_s",
    "baseline_gib_per_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_of_slower_half",
    "unit",
    "ours",
    "baseline",
    "value",
    "value_low",
    "value_high",
    "budget",
    "ok",
    "software",
    "error",
};
enum { KEYS = sizeof keys / sizeof *keys };

static const double gib = 1024.0 * 1024.0 * 1024.0;

int gpuhal_bench_verdict(const gpuhal_bench_row *row)
{
    if (isnan(row->budget)) {
        return -1;
    }
    return row->kind == GPUHAL_BENCH_AMOUNT ? row->result.low <= row->budget : row->result.high >= row->budget;
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value)
{
    return value != NULL ? json_string(value) : json_null();
}

/* The document as if it had an end, which is left out. */
bool gpuhal_bench_json_begin(FILE *to, const gpuhal_bench_options *options, const char *cpu_name)
{
    struct utsname system;
    if (uname(&system) != 0) {
        return false;
    }
    json_t *document = json_pack("{s:s, s:s, s:i, s:{s:s, s:s, s:s, s:o, s:I}, s:{s:I, s:b, s:b}}", "schema", "gpuhal.bench/1",
                                 "library_version", gpuhal_version(), "abi_version", (int)gpuhal_abi_version(), "host", "name",
                                 system.nodename, "os", system.sysname, "kernel", system.release, "cpu", text(cpu_name),
                                 "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "settings", "pairs",
                                 (json_int_t)options->pairs, "quick", (int)options->quick, "baseline", (int)options->baseline);
    char *whole = json_dumps(document, JSON_INDENT(2));
    json_decref(document);
    if (whole == NULL) {
        return false;
    }
    fprintf(to, "%.*s,\n  \"results\": [", (int)(strlen(whole) - strlen("\n}")), whole);
    free(whole);
    return true;
}

void gpuhal_bench_json_result(FILE *to, const json_t *result, bool is_first)
{
    fputs(is_first ? "\n    {" : ",\n    {", to);
    for (size_t i = 0; i < KEYS; i++) {
        fprintf(to, "%s\n      \"%s\": ", i > 0 ? "," : "", keys[i]);
        json_dumpf(json_object_get(result, keys[i]), to, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    }
    fputs("\n    }", to);
    fflush(to);
}

void gpuhal_bench_json_end(FILE *to)
{
    fputs("\n  ]\n}\n", to);
}

static json_t *nulls(void)
{
    json_t *object = json_object();
    for (size_t i = 0; i < KEYS; i++) {
        json_object_set_new(object, keys[i], json_null());
    }
    return object;
}

json_t *gpuhal_bench_json_row(const gpuhal_bench_row *row)
{
    const bool amount = row->kind == GPUHAL_BENCH_AMOUNT;
    const bool half = row->kind == GPUHAL_BENCH_SLOWER_HALF;
    const double per_ns = row->bytes > 0 ? (double)row->bytes / gib * 1e9 : NAN;
    const int verdict = gpuhal_bench_verdict(row);
    const struct {
        const char *key;
        json_t *value;
    } members[] = {
        {"device", text(row->device)},
        {"peer", text(row->peer)},
        {"test", text(row->test)},
        {"path", text(row->path)},
        {"bytes", row->bytes > 0 ? json_integer((json_int_t)row->bytes) : json_null()},
        {"gib_per_s", number(per_ns / row->ours)},
        {"baseline_gib_per_s", number(per_ns / row->baseline)},
        {"ratio", number(amount || half ? NAN : row->result.median)},
        {"ratio_low", number(amount ? NAN : row->result.low)},
        {"ratio_high", number(amount ? NAN : row->result.high)},
        {"ratio_of_slower_half", number(half ? row->result.median : NAN)},
        {"unit", text(row->unit)},
        {"ours", number(row->unit != NULL ? row->ours : NAN)},
        {"baseline", number(row->unit != NULL ? row->baseline : NAN)},
        {"value", number(amount ? row->result.median : NAN)},
        {"value_low", number(amount ? row->result.low : NAN)},
        {"value_high", number(amount ? row->result.high : NAN)},
        {"budget", number(row->budget)},
        {"ok", verdict < 0 ? json_null() : json_boolean(verdict)},
        {"software", json_boolean(row->software || row->peer_software)},
    };
    json_t *object = nulls();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_object_set_new(object, members[i].key, members[i].value);
    }
    return object;
}

json_t *gpuhal_bench_json_error(const char *device, const char *test, const char *why)
{
    json_t *object = nulls();
    json_object_set_new(object, "device", json_string(device));
    json_object_set_new(object, "test", json_string(test));
    json_object_set_new(object, "ok", json_false());
    json_object_set_new(object, "error", json_string(why));
    return object;
}

void gpuhal_bench_csv_header(FILE *to)
{
    for (size_t i = 0; i < KEYS; i++) {
        fprintf(to, "%s%s", i > 0 ? "," : "", keys[i]);
    }
    fputc('\n', to);
}

/* In quotes where a comma, a quote or the end of a line would be misread; quotes inside are doubled. */
static void csv_text(FILE *to, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (const char *at = text; *at != '\0'; at++) {
        fputs(*at == '"' ? "\"\"" : (const char[]){*at, '\0'}, to);
    }
    fputc('"', to);
}

void gpuhal_bench_csv_row(FILE *to, const json_t *row)
{
    for (size_t i = 0; i < KEYS; i++) {
        const json_t *value = json_object_get(row, keys[i]);
        fputs(i > 0 ? "," : "", to);
        if (json_is_string(value)) {
            csv_text(to, json_string_value(value));
        } else if (json_is_integer(value)) {
            fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        } else if (json_is_real(value)) {
            fprintf(to, "%.6g", json_real_value(value));
        } else if (json_is_boolean(value)) {
            fputs(json_is_true(value) ? "true" : "false", to);
        }
    }
    fputc('\n', to);
    fflush(to);
}
