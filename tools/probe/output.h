/* output.h: writes a file atomically: readers see either the old file or the complete new file. */
#ifndef PROBE_OUTPUT_H
#define PROBE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Creates or replaces the file, with mode 0644. On error, returns false after a message on standard error; the old file
 * is unchanged, and no temporary file remains. */
bool gpuhal_probe_output_write(const char *path, const char *bytes, size_t count);

#endif
