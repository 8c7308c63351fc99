/* scrub.h: takes out of a text what says whose machine it is about. */
#ifndef PROBE_SCRUB_H
#define PROBE_SCRUB_H

#include <stdio.h>

/* Writes the text to `out`: the host's name as HOST, the user's as USER, the home directory as ~ (and others below
 * /home alike), network addresses as ADDRESS, and each UUID or serial number as a short checksum, the same for the same
 * one. */
void gpuhal_probe_scrub(const char *text, FILE *out);

#endif
