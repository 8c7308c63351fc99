/* json.c: one object for each row. Copies have a ratio and a bandwidth, amounts have a value and a unit, times a ratio and a
 * unit. */
#include "json.h"

#include <math.h>
#include <sys/utsname.h>
#include <unistd.h>

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

json_t *gpuhal_bench_json_document(const gpuhal_bench_options *options, const char *cpu_name)
{
    struct utsname system;
    if (uname(&system) != 0) {
        return NULL;
    }
    return json_pack("{s:s, s:s, s:i, s:{s:s, s:s, s:s, s:o, s:I}, s:{s:I, s:b}, s:[]}", "schema", "gpuhal.bench/1",
                     "library_version", gpuhal_version(), "abi_version", (int)gpuhal_abi_version(), "host", "name",
                     system.nodename, "os", system.sysname, "kernel", system.release, "cpu", text(cpu_name), "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "settings", "pairs", (json_int_t)options->pairs, "quick",
                     (int)options->quick, "results");
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
        {"error", json_null()},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_object_set_new(object, members[i].key, members[i].value);
    }
    return object;
}

json_t *gpuhal_bench_json_error(const char *device, const char *test, const char *why)
{
    json_t *object = json_pack("{s:s, s:s, s:b, s:s}", "device", device, "test", test, "ok", 0, "error", why);
    static const char *const absent[] = {"peer",
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
                                         "software"};
    for (size_t i = 0; object != NULL && i < sizeof absent / sizeof *absent; i++) {
        json_object_set_new(object, absent[i], json_null());
    }
    return object;
}
