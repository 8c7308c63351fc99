/* text.h: formats strings in buffers, and parses numbers on command lines. */
#ifndef GPUHAL_TOOL_TEXT_H
#define GPUHAL_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends to the string in @to, a buffer of @bytes, with the separator @between unless the string was empty. Truncates
 * output that does not fit. */
void gpuhal_tool_append(char *to, size_t bytes, const char *between, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Copies a sentence of the library to the buffer @space, whose size is @bytes, and returns @space. Replaces the names
 * of configuration members with the options that set them; @devices is the option for config.devices. */
const char *gpuhal_tool_in_options(const char *sentence, const char *devices, char *space, size_t bytes);

/* Converts bytes to the largest binary unit that is not greater than the value: 61.0 and "GiB". */
double gpuhal_tool_scale_bytes(uint64_t bytes, const char **out_unit);

/* Removes trailing blanks and line ends in place, skips leading blanks, and returns the rest. */
char *gpuhal_tool_trimmed(char *text);

/* Reads only digits, whereas strtoull() would also accept a sign, blanks and an empty string. @out_rest receives the
 * text after the digits; if @out_rest is NULL, there must be no such text. Returns false unless the number is between
 * @low and @high. */
bool gpuhal_tool_read_number(const char *text, uint64_t low, uint64_t high, uint64_t *out_number,
                             const char **out_rest);

/* Reads a size with an optional unit: 512MiB, 80G (both binary), 448GB (decimal). Returns false above @high. */
bool gpuhal_tool_read_size(const char *text, uint64_t high, uint64_t *out_bytes);

/* Reads seconds, with an optional fraction, and converts them to nanoseconds. */
bool gpuhal_tool_read_seconds(const char *text, double low, double high, uint64_t *out_ns);

#endif
