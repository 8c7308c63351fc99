/* scrub.h: removes from a text the identity of its machine. */
#ifndef PROBE_SCRUB_H
#define PROBE_SCRUB_H

#include <stdio.h>

/* Writes the text to `out`: the host's name as HOST, the user's as USER, the home directory as ~ (and others below
 * /home alike), network addresses as ADDRESS, and each UUID or serial number as a short checksum, equal for equal
 * ones. */
void gpuhal_probe_scrub(const char *text, FILE *out);

#endif
