/* option_values.h: checks the values of options while the command line is parsed. If a value is invalid, a function
 * returns false after a message on standard error. */
#ifndef PROBE_OPTION_VALUES_H
#define PROBE_OPTION_VALUES_H

#include "options.h"

#include <argp.h>

/* Stores the value of an option. The value must not be empty. The option must be given only once, because one of two
 * values would silently be lost. */
bool gpuhal_probe_keep_one(struct argp_state *state, const char **to, const char *option, const char *value,
                           const char *remedy);
/* Like gpuhal_probe_keep_one(), for an option whose value is a list. The message explains how to write lists. */
bool gpuhal_probe_keep_once(struct argp_state *state, const char **to, const char *option, const char *value);
/* Stores plugin names. Separators before the first name are skipped, so that a value without names counts as empty. */
bool gpuhal_probe_keep_names(struct argp_state *state, const char **to, const char *option, const char *value);
/* Stores a file name. Refuses "-", because other programs interpret it as a standard stream, and users would not expect
 * a file with this name. */
bool gpuhal_probe_keep_file(struct argp_state *state, const char **to, const char *option, const char *value);
bool gpuhal_probe_keep_seconds(struct argp_state *state, uint64_t *to, const char *value);
/* Stores a count from 1 to 1000. */
bool gpuhal_probe_keep_count(struct argp_state *state, uint32_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_period(struct argp_state *state, uint64_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_format(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Stores the format. `value` is the document version or NULL. */
bool gpuhal_probe_keep_json(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Accepts "healthy", the only value. */
bool gpuhal_probe_keep_check(struct argp_state *state, gpuhal_probe_options *options, const char *value);
bool gpuhal_probe_keep_color(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Returns the format's name on the command line: "csv". */
const char *gpuhal_probe_format_name(gpuhal_probe_format format);

#endif
