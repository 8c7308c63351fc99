/* option_values.h: the values of single options, checked while the command line is read. Each returns false after a
 * sentence on standard error. */
#ifndef PROBE_OPTION_VALUES_H
#define PROBE_OPTION_VALUES_H

#include "options.h"

#include <argp.h>

/* Keeps the value of an option that may be given once and not be empty: of two values one would silently be lost. */
bool gpuhal_probe_keep_one(struct argp_state *state, const char **to, const char *option, const char *value,
                           const char *remedy);
/* The same for a list, with the remedy of lists. */
bool gpuhal_probe_keep_once(struct argp_state *state, const char **to, const char *option, const char *value);
/* The value names plugins; separators before the first name are skipped, so that a value without a name is empty. */
bool gpuhal_probe_keep_names(struct argp_state *state, const char **to, const char *option, const char *value);
/* Other programs take "-" for the standard streams; a file of that name would come as a surprise. */
bool gpuhal_probe_keep_file(struct argp_state *state, const char **to, const char *option, const char *value);
bool gpuhal_probe_keep_seconds(struct argp_state *state, uint64_t *to, const char *value);
/* From 1 on. */
bool gpuhal_probe_keep_count(struct argp_state *state, uint32_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_period(struct argp_state *state, uint64_t *to, const char *option, const char *value);
bool gpuhal_probe_keep_format(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* `value` is the version of the document, or NULL. */
bool gpuhal_probe_keep_json(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* There is one value now. */
bool gpuhal_probe_keep_check(struct argp_state *state, gpuhal_probe_options *options, const char *value);
bool gpuhal_probe_keep_color(struct argp_state *state, gpuhal_probe_options *options, const char *value);
/* The format as it is given: "csv". */
const char *gpuhal_probe_format_name(gpuhal_probe_format format);

#endif
