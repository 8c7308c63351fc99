/* scrub.h: removes the machine's identity from a text. */
#ifndef PROBE_SCRUB_H
#define PROBE_SCRUB_H

#include <stdio.h>

/* Writes the text to `out` with these replacements: HOST for the host name, USER for the user name, ~ for the home
 * directory (/home/USER for other users), ADDRESS for network addresses, and a short checksum for each UUID and serial
 * number. Equal numbers have equal checksums. */
void gpuhal_probe_scrub(const char *text, FILE *out);

#endif
