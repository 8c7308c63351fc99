/* options.h: the command line. */
#ifndef GPUHAL_CHECK_OPTIONS_H
#define GPUHAL_CHECK_OPTIONS_H

#include "check.h"

/* What to do after the command line was read. */
typedef enum gpuhal_errand { ERRAND_CHECK, ERRAND_HELP, ERRAND_VERSION, ERRAND_LIST, ERRAND_USAGE } gpuhal_errand;

/* ERRAND_USAGE: a sentence that names the mistake is in @p out_problem. */
gpuhal_errand gpuhal_options_parse(int argc, char **argv, gpuhal_check_options *out_options, char *out_problem, size_t size);
void gpuhal_options_help(void);

#endif
