/* error.h: what went wrong before a document could be printed, as a document: programs that asked for JSON read no
 * sentences on standard error. */
#ifndef PROBE_ERROR_H
#define PROBE_ERROR_H

#include "options.h"

/* Whether the command line asks for JSON, be the rest of it right or wrong. */
bool gpuhal_probe_wants_json(int count, char *const *arguments);

/* {"schema": "gpuhal.probe/2", "error": {"code": "not_found", "message": "..."}}. The message is the last one that was
 * said. false without memory. */
bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out);

#endif
