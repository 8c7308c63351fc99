/* error.h: what went wrong before a document could be printed, as a document: programs that asked for JSON read no
 * sentences on standard error. */
#ifndef PROBE_ERROR_H
#define PROBE_ERROR_H

#include "options.h"

/* Whether the command line asks for JSON, be the rest of it right or wrong. */
bool gpuhal_probe_wants_json(int count, char *const *arguments);

/* Keeps what is written to standard error until release; -1 where that is not possible. */
int gpuhal_probe_error_catch(void);
/* Writes to standard error what was kept, and keeps its first line as the message. */
void gpuhal_probe_error_release(int caught);

/* {"schema": "gpuhal.probe/2", "error": {"code": "not_found", "message": "..."}}. The message is the last one that was
 * said. false without memory. */
bool gpuhal_probe_print_error(gpuhal_probe_exit code, FILE *out);

#endif
