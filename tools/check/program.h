/* program.h: device code, and steps for checks of programs. Each step fails the check if the plugin refuses it, unless
 * it returns a status. */
#ifndef GPUHAL_CHECK_PROGRAM_H
#define GPUHAL_CHECK_PROGRAM_H

#include "check.h"

enum { FORMAT_BYTES = 64 };

void gpuhal_formats_visit(const gpuhal_context *context, void (*visit)(void *user, const char *format), void *user);

/* Returns whether the driver compiles this format. Compiling may take long and print output. */
bool gpuhal_format_is_text(const char *format);

/* Calls program_load with a copy of the code that cannot be read beyond its end, except for up to 15 bytes of padding.
 * @p build may be NULL. */
gpuhal_status gpuhal_program_try(const gpuhal_opened *opened, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program);

/* Tries to load bytes in this format that are not a valid program: meaningless bytes, and the beginning of a program if
 * it is known. Fails unless each is refused with a status that lets the core try another format. */
void gpuhal_program_refused(const gpuhal_context *context, const char *format);

#endif
