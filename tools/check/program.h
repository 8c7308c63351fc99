/* program.h: code for the device, and the steps that the checks of programs are made of. Each fails the check when the
 * plugin refuses it, unless it returns a status. */
#ifndef GPUHAL_CHECK_PROGRAM_H
#define GPUHAL_CHECK_PROGRAM_H

#include "check.h"

enum { FORMAT_BYTES = 64 };

/* Passes each word of the fact program_formats to @p visit. */
void gpuhal_formats_visit(const gpuhal_context *context, void (*visit)(void *user, const char *format), void *user);

/* Whether a compiler of the driver reads it: that may take long, and print. */
bool gpuhal_format_is_text(const char *format);

/* Calls program_load with a copy of the code behind which nothing can be read. @p build may be NULL. */
gpuhal_status gpuhal_program_try(const gpuhal_opened *opened, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program);

/* Loads bytes in this format that are none of its programs, as rubbish and as a beginning without an end; fails unless
 * each is refused with a status that lets the core try another form. */
void gpuhal_program_refused(const gpuhal_context *context, const char *format);

#endif
