/* options.h: the command line of gpuhal-probe, and its exit codes. */
#ifndef PROBE_OPTIONS_H
#define PROBE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The exit status. Scripts rely on these numbers. */
typedef enum gpuhal_probe_exit {
    PROBE_COMPLETE = 0,      /* everything is listed; a missing driver is complete */
    PROBE_INTERNAL = 1,      /* no memory, or a file or the output cannot be read or written */
    PROBE_USAGE = 2,         /* a bad option, or a bad value in an option or environment variable */
    PROBE_NO_DEVICE = 3,     /* there is no device at all */
    PROBE_PARTIAL = 4,       /* a plugin failed, a device or a link did not pass --verify, or the registry is damaged */
    PROBE_NOT_FOUND = 5,     /* no such device, backend or plugin */
    PROBE_NO_PERMISSION = 6, /* the device that was asked for may not be used by this user */
    PROBE_DIFFERS = 7,       /* the machine differs from the record */
    PROBE_GO_ON = -1         /* not an exit code: carry on */
} gpuhal_probe_exit;

/* Texts belong to the argument vector; NULL: not given. */
typedef struct gpuhal_probe_options {
    bool json, explain, verify, timings, environment, all, links;
    bool registry, diff, accept;
    const char *device, *backends, *retry, *forget, *export_to, *import_from;
    const char *run_again; /* --diff's own, in the place of retry: with the plugins whose results are cached */
    uint64_t timeout_ns;   /* 0: not given */
} gpuhal_probe_options;

/* Reads the command line. PROBE_GO_ON, or the exit code when there is nothing more to do: --help and --version were
 * printed to `out`, or a mistake was named on standard error. */
gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options);

/* Whether the options are about the record, in the place of a listing. */
bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options);

#endif
