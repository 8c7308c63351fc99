/* output.h: writes a whole file at once: a reader sees the former file or the new one, never a part. */
#ifndef PROBE_OUTPUT_H
#define PROBE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces the file, or makes it, with mode 0644. Returns false after a sentence on standard error; the former file is
 * unchanged then, and nothing else is left in its folder. */
bool gpuhal_probe_output_write(const char *path, const char *bytes, size_t count);

#endif
