/* option_values.h: the values of single options, checked while the command line is read. Each returns false after a
 * sentence on standard error. */
#ifndef PROBE_OPTION_VALUES_H
#define PROBE_OPTION_VALUES_H

#include "options.h"

#include <argp.h>

/* Keeps the value of an option that may be given once and not be empty: of two values one would silently be lost. */
bool gpuhal_probe_keep_one(struct argp_state *state, const char **to, const char *option, const char *value,
                           const char *remedy);
/* Does the same for a list, with the remedy of lists. */
bool gpuhal_probe_keep_once(struct argp_state *state, const char **to, const char *option, const char *value);
/* Keeps names of plugins; separators before the first name are skipped, so that a value without a name is empty. */
bool gpuhal_probe_keep_names(struct argp_state *state, const char **to, const char *option, const char *value);
/* Keeps a file's name, but not "-": other programs take it for the standard streams, and a file of that name would
 * surprise. */
bool gpuhal_probe_keep_file(struct argp_state *state, const char **to, const char *option, const char *value);
bool gpuhal_probe_keep_seconds(struct argp_state *state, uint64_t *to, const char *value);
/* Keeps a count from 1 on. */
bool gpuhal_probe_keep_count(struct argp_state *state, uint32_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_period(struct argp_state *state, uint64_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_format(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Keeps the format. `value` is the version of the document, or NULL. */
bool gpuhal_probe_keep_json(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Accepts "healthy", the only value. */
bool gpuhal_probe_keep_check(struct argp_state *state, gpuhal_probe_options *options, const char *value);
bool gpuhal_probe_keep_color(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* Returns the format as it is given: "csv". */
const char *gpuhal_probe_format_name(gpuhal_probe_format format);

#endif
