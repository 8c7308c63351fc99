/* json.c: one object per line. Copies have a ratio and a bandwidth, amounts have a value and a unit, times have a ratio
 * and a unit. */
#include "json.h"

#include "../common/json.h"

#include <gpuhal/gpuhal.h>

#include <math.h>
#include <stdio.h>

#define SCHEMA "gpuhal.bench/2"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Takes ownership of the reference to @object, which may be NULL. Writes the whole line at once. */
static bool print_line(FILE *to, json_t *object)
{
    const bool printed = json_dumpf(object, to, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0 && putc('\n', to) != EOF;
    json_decref(object);
    return fflush(to) == 0 && printed;
}

void gpuhal_bench_json_error(int exit_code, const char *message)
{
    const char *code = exit_code == GPUHAL_BENCH_EXIT_USAGE       ? "usage"
                       : exit_code == GPUHAL_BENCH_EXIT_NO_DEVICE ? "no_device"
                       : exit_code == GPUHAL_BENCH_EXIT_NOT_FOUND ? "not_found"
                                                                  : "internal";
    (void)print_line(stdout, gpuhal_json_error(SCHEMA, "gpuhal-bench", code, message));
}

bool gpuhal_bench_json_header(FILE *to, const gpuhal_bench_options *options, const char *cpu_name)
{
    return print_line(to, json_pack("{s:s, s:s, s:o, s:o, s:{s:I, s:b, s:b}}", "schema", SCHEMA,
                                    "library_version", gpuhal_version(), "abi_version",
                                    gpuhal_json_abi(gpuhal_abi_version()), "host", gpuhal_json_host(cpu_name),
                                    "settings", "pairs", (json_int_t)options->pairs, "quick", (int)options->quick,
                                    "baseline", (int)options->baseline));
}

/* The keys are printed in the order in which they are set. */
bool gpuhal_bench_json_row(FILE *to, const gpuhal_bench_row *row)
{
    const bool amount = row->kind == GPUHAL_BENCH_AMOUNT;
    const bool side = row->kind == GPUHAL_BENCH_SLOWER_SIDE;
    const double per_ns = row->bytes > 0 ? (double)row->bytes * 1e9 : NAN;
    const int status = gpuhal_bench_row_status(row);
    const struct {
        const char *key;
        json_t *value;
    } members[] = {
        {"bytes", row->bytes > 0 ? json_integer((json_int_t)row->bytes) : json_null()},
        {"bytes_per_second", number(per_ns / row->gpuhal)},
        {"baseline_bytes_per_second", number(per_ns / row->baseline)},
        {"ratio", number(amount || side ? NAN : row->result.median)},
        {"ratio_low", number(amount ? NAN : row->result.low)},
        {"ratio_high", number(amount ? NAN : row->result.high)},
        {"ratio_of_slower_side", number(side ? row->result.median : NAN)},
        {"unit", gpuhal_json_text(row->unit)},
        {"gpuhal", number(row->unit != NULL ? row->gpuhal : NAN)},
        {"baseline", number(row->unit != NULL ? row->baseline : NAN)},
        {"value", number(amount ? row->result.median : NAN)},
        {"value_low", number(amount ? row->result.low : NAN)},
        {"value_high", number(amount ? row->result.high : NAN)},
        {"budget", number(row->budget)},
        {"ok", status < 0 ? json_null() : json_boolean(status)},
        {"software", row->error != NULL ? json_null() : json_boolean(row->software || row->peer_software)},
        {"error", gpuhal_json_text(row->error)},
    };
    json_t *object = json_pack("{s:s, s:s?, s:s, s:s?}", "device", row->device, "peer", row->peer, "test", row->test,
                               "path", row->path);
    bool whole = true;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        whole = json_object_set_new(object, members[i].key, members[i].value) == 0 && whole;
    }
    return print_line(to, object) && whole;
}

bool gpuhal_bench_json_totals(FILE *to, const gpuhal_bench_totals *totals)
{
    const bool passed = totals->missed == 0 && totals->errors == 0;
    return print_line(to, json_pack("{s:s, s:i, s:i, s:i}", "status", passed ? "passed" : "failed", "held",
                                    (int)totals->held, "missed", (int)totals->missed, "errors", (int)totals->errors));
}
