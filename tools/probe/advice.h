/* advice.h: formats a problem's `fix`, which has one command per line, and lines of explanation that begin with "#". A
 * warning precedes its command. A query command is followed by the meaning of its possible results. */
#ifndef PROBE_ADVICE_H
#define PROBE_ADVICE_H

#include "screen.h"

#include <stddef.h>

/* Prints the label at column `indent`, `width` columns wide, and the lines to the right of the label. Lines are not
 * wrapped, so that they can be copied. */
void gpuhal_probe_advice_print(const gpuhal_probe_screen *screen, const char *label, size_t indent, size_t width,
                               const char *fix);
/* Joins the lines into one: "WARNING: COMMAND && COMMAND   # answers". Returns `to`. */
const char *gpuhal_probe_advice_join(const char *fix, char *to, size_t bytes);

#endif
