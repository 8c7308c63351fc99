/* plain.h: texts of drivers and file names in data for programs: always one line of characters, for any
 * content. */
#ifndef PROBE_PLAIN_H
#define PROBE_PLAIN_H

#include <stdio.h>

/* Prints the text; control characters and bytes that are no UTF-8 become `?`, and each of the characters in `special`
 * gets `escape` before it. */
void gpuhal_probe_put_plain(const char *text, const char *special, char escape, FILE *out);

#endif
