/* error.h: prints an error as JSON if there is no document yet, because callers that asked for JSON do not read
 * standard error. */
#ifndef PROBE_ERROR_H
#define PROBE_ERROR_H

#include "options.h"

/* Returns whether the command line requests JSON, even if it is otherwise invalid. */
bool gpuhal_probe_wants_json(int count, char *const *arguments);

/* Prints {"schema": "gpuhal.probe/2", "error": {"code": "not_found", "message": "..."}}. The message is the last
 * message that was printed to standard error. Returns false if out of memory. */
bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out);

#endif
