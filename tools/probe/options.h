/* options.h: the command line of gpuhal-probe, and its exit codes. */
#ifndef PROBE_OPTIONS_H
#define PROBE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The exit status. Scripts rely on these numbers. */
typedef enum gpuhal_probe_exit {
    PROBE_COMPLETE = 0,  /* everything is listed, and everything listed works */
    PROBE_INTERNAL = 1,  /* no memory, or a file or the output cannot be read or written */
    PROBE_USAGE = 2,     /* a bad option, or a bad value in an option or environment variable */
    PROBE_NO_DEVICE = 3, /* there is no device at all, or with --strict or as CDI no GPU */
    PROBE_PARTIAL = 4,   /* a GPU, plugin, or with --verify a device or link fails; too few GPUs; damaged registry */
    PROBE_NOT_FOUND = 5, /* no such device, backend or plugin */
    PROBE_NO_PERMISSION = 6, /* this user may not use the requested device */
    PROBE_DIFFERS = 7,       /* the machine differs from the record */
    PROBE_GO_ON = -1         /* not an exit code: carry on */
} gpuhal_probe_exit;

/* The form of the listing. */
typedef enum gpuhal_probe_format {
    PROBE_FORMAT_TABLE,
    PROBE_FORMAT_WIDE, /* the table with all its columns */
    PROBE_FORMAT_JSON,
    PROBE_FORMAT_JSON_LINES,
    PROBE_FORMAT_CSV,
    PROBE_FORMAT_OPENMETRICS,
    PROBE_FORMAT_PROMETHEUS, /* the same in the older text format */
    PROBE_FORMAT_GRES,
    PROBE_FORMAT_CDI
} gpuhal_probe_format;

static inline bool gpuhal_probe_has_metrics(gpuhal_probe_format format)
{
    return format == PROBE_FORMAT_OPENMETRICS || format == PROBE_FORMAT_PROMETHEUS;
}

#define GPUHAL_PROBE_WATCH_NS 1000000000u /* period of --watch without one */

typedef enum gpuhal_probe_color { PROBE_COLOR_AUTO, PROBE_COLOR_ALWAYS, PROBE_COLOR_NEVER } gpuhal_probe_color;

/* Texts belong to the argument vector; NULL: not given. */
typedef struct gpuhal_probe_options {
    bool explain, verify, timings, environment, all, links;
    bool registry, diff, accept;
    bool strict;    /* warnings and notes count as problems do */
    bool processes; /* all processes, on the screen */
    bool check;     /* one line about the health */
    bool cached;    /* no values are read from drivers */
    bool refresh;
    gpuhal_probe_format format;
    bool format_given;
    uint32_t json_version; /* of the document: 1, or 2 */
    gpuhal_probe_color color;
    const char *columns; /* names, with commas */
    const char *device, *backends, *retry, *forget, *export_to, *import_from;
    const char *report;    /* a new file, or - */
    const char *target;    /* the object of --explain */
    const char *run_again; /* for --diff, in the place of retry: with the plugins whose results are cached */
    const char *output;    /* the file for the listing; NULL: standard output */
    uint32_t expected;     /* the number of GPUs that must be ready; 0: not given */
    uint64_t timeout_ns;   /* 0: not given */
    uint64_t every_ns;     /* the listing is printed again and again; 0: once */
    uint64_t watch_ns;     /* period of the live view; 0: no live view */
} gpuhal_probe_options;

/* Reads the command line. Returns PROBE_GO_ON, or the exit code when there is nothing more to do: --help and --version
 * were printed to `out`, or a mistake was named on standard error. */
gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options);

/* Returns whether the options are about the record, in the place of a listing. */
bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options);

#endif
