/* options.h: gpuhal-probe's command line and exit codes. */
#ifndef PROBE_OPTIONS_H
#define PROBE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The exit status. Scripts rely on these numbers. */
typedef enum gpuhal_probe_exit {
    PROBE_COMPLETE = 0,  /* everything is listed and works */
    PROBE_INTERNAL = 1,  /* out of memory, or a file or the output cannot be read or written */
    PROBE_USAGE = 2,     /* invalid option, option value or environment variable */
    PROBE_NO_DEVICE = 3, /* no device at all; with --strict, --check or for CDI, no GPU */
    PROBE_PARTIAL = 4,   /* a GPU, plugin, link or verified device failed; too few GPUs; damaged registry */
    PROBE_NOT_FOUND = 5, /* no such device, backend or plugin */
    PROBE_NO_PERMISSION = 6, /* this user may not use the requested device */
    PROBE_DIFFERS = 7,       /* the machine differs from the baseline of --diff */
    PROBE_GO_ON = -1         /* not an exit code: continue */
} gpuhal_probe_exit;

typedef enum gpuhal_probe_format {
    PROBE_FORMAT_TABLE,
    PROBE_FORMAT_WIDE, /* the table with the columns for wide screens */
    PROBE_FORMAT_JSON,
    PROBE_FORMAT_JSON_LINES,
    PROBE_FORMAT_CSV,
    PROBE_FORMAT_OPENMETRICS,
    PROBE_FORMAT_PROMETHEUS, /* metrics in Prometheus' older text format */
    PROBE_FORMAT_GRES,
    PROBE_FORMAT_CDI
} gpuhal_probe_format;

static inline bool gpuhal_probe_has_metrics(gpuhal_probe_format format)
{
    return format == PROBE_FORMAT_OPENMETRICS || format == PROBE_FORMAT_PROMETHEUS;
}

#define GPUHAL_PROBE_WATCH_NS 1000000000u /* default period of --watch */

typedef enum gpuhal_probe_color { PROBE_COLOR_AUTO, PROBE_COLOR_ALWAYS, PROBE_COLOR_NEVER } gpuhal_probe_color;

/* Strings belong to the argument vector, and are NULL if their option was not given. With --refresh, `retry` is "all".
 * `run_again` belongs to --diff (diff.c). */
typedef struct gpuhal_probe_options {
    bool explain, verify, timings, environment, all, links;
    bool registry, diff, accept;
    bool strict;    /* warnings and notes count as problems */
    bool processes; /* print all processes */
    bool check;     /* print one line about the health */
    bool cached;    /* read no values from drivers */
    bool refresh;
    gpuhal_probe_format format;
    bool format_given;
    uint32_t json_version; /* document version: 1 or 2 */
    gpuhal_probe_color color;
    const char *columns; /* comma-separated names */
    const char *device, *backends, *retry, *forget, *export_to, *import_from;
    const char *report;    /* a new file, or "-" */
    const char *target;    /* argument of --explain */
    const char *run_again; /* replaces `retry` for --diff; also includes plugins with valid cached results */
    const char *output;    /* file for the listing; NULL for standard output */
    uint32_t expected;     /* required number of ready or taken GPUs (print.h); 0 if not given */
    uint64_t timeout_ns;   /* 0 if not given */
    uint64_t every_ns;     /* period of --every; 0 if not given */
    uint64_t watch_ns;     /* period of --watch (the live view, or lines of JSON); 0 if not given */
} gpuhal_probe_options;

/* Parses the command line. Returns PROBE_GO_ON, or an exit code if the program is done: it printed --help or --version
 * to `out`, or a usage error to standard error. */
gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options);

/* Returns whether the options are about the record instead of a listing. */
bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options);

#endif
