/* option_rules.h: checks which options can be combined. */
#ifndef PROBE_OPTION_RULES_H
#define PROBE_OPTION_RULES_H

#include "options.h"

#include <argp.h>

/* Returns whether the given options can be combined and, for CSV, whether the requested columns exist. Returns false
 * after a message on standard error. */
bool gpuhal_probe_options_go_together(struct argp_state *state, const gpuhal_probe_options *options);

#endif
