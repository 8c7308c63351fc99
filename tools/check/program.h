/* program.h: code for the device, and the steps of the checks of programs. Each fails the check if the plugin refuses
 * it, unless it returns a status. */
#ifndef GPUHAL_CHECK_PROGRAM_H
#define GPUHAL_CHECK_PROGRAM_H

#include "check.h"

enum { FORMAT_BYTES = 64 };

/* Passes each word of the fact program_formats to @p visit. */
void gpuhal_formats_visit(const gpuhal_context *context, void (*visit)(void *user, const char *format), void *user);

/* Returns whether a compiler of the driver reads it: that may take long, and print. */
bool gpuhal_format_is_text(const char *format);

/* Calls program_load with a copy of the code that cannot be read beyond its end. @p build may be NULL. */
gpuhal_status gpuhal_program_try(const gpuhal_opened *opened, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program);

/* Loads bytes in this format that are not one of its programs, as rubbish and as a beginning without an end; fails
 * unless each is refused with a status that lets the core try another form. */
void gpuhal_program_refused(const gpuhal_context *context, const char *format);

#endif
