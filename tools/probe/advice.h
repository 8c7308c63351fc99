/* advice.h: a problem's `fix`: commands, a line each, and lines of words that begin with "#". A warning comes before
 * its command, and the meaning of the answers after a question. */
#ifndef PROBE_ADVICE_H
#define PROBE_ADVICE_H

#include "screen.h"

#include <stddef.h>

/* Prints each line unbroken, so that it can be copied, with the label at `indent`, in `width` columns, before the
 * first. */
void gpuhal_probe_advice_print(const gpuhal_probe_screen *screen, const char *label, size_t indent, size_t width,
                               const char *fix);
/* Joins the lines for output in one line: "WARNING: COMMAND && COMMAND   # answers". Returns `to`. */
const char *gpuhal_probe_advice_join(const char *fix, char *to, size_t bytes);

#endif
