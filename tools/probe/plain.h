/* plain.h: prints strings from drivers and file names into data for programs, always on one line. */
#ifndef PROBE_PLAIN_H
#define PROBE_PLAIN_H

#include <stdio.h>

/* Prints the text. Control characters and bytes that are not UTF-8 are replaced by `?`; the characters in `special` are
 * preceded by `escape`. */
void gpuhal_probe_put_plain(const char *text, const char *special, char escape, FILE *out);

#endif
