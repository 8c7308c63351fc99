/* error.h: an error from before a document could be printed, as a document: callers that asked for JSON read no
 * sentences on standard error. */
#ifndef PROBE_ERROR_H
#define PROBE_ERROR_H

#include "options.h"

/* Returns whether the command line asks for JSON, whether the rest of it is right or wrong. */
bool gpuhal_probe_wants_json(int count, char *const *arguments);

/* Prints {"schema": "gpuhal.probe/2", "error": {"code": "not_found", "message": "..."}}. The message is the last one on
 * standard error. Returns false without memory. */
bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out);

#endif
