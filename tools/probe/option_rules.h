/* option_rules.h: checks which options can be combined. */
#ifndef PROBE_OPTION_RULES_H
#define PROBE_OPTION_RULES_H

#include "options.h"

#include <argp.h>

/* Returns whether every given option has an effect together with the other options. Returns false after a message on
 * standard error. */
bool gpuhal_probe_options_go_together(struct argp_state *state, const gpuhal_probe_options *options);

#endif
