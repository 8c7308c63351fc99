/* text.h: builds texts in buffers, and reads numbers of command lines. */
#ifndef GPUHAL_TOOL_TEXT_H
#define GPUHAL_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends to the text in @to, which has room for @bytes, and puts @between before it unless the text was empty. Text
 * that does not fit is cut off. */
void gpuhal_tool_append(char *to, size_t bytes, const char *between, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Copies the library's sentence to @space, of @bytes, and returns @space. Each member of the configuration is named
 * after the option that filled it; @devices is the option of config.devices. */
const char *gpuhal_tool_in_options(const char *sentence, const char *devices, char *space, size_t bytes);

/* Returns the bytes in the largest binary unit that is not greater: 61.0 and "GiB". */
double gpuhal_tool_scale_bytes(uint64_t bytes, const char **out_unit);

/* Removes the blanks around a line, in its buffer. */
char *gpuhal_tool_trimmed(char *text);

/* Reads digits alone: strtoull() would accept a sign, blanks, and an empty text. @out_rest: the text after the digits;
 * NULL: there must be none. Returns false unless the number is between @low and @high. */
bool gpuhal_tool_read_number(const char *text, uint64_t low, uint64_t high, uint64_t *out_number,
                             const char **out_rest);

/* Reads bytes, with a unit or without: 512MiB, 80G (both binary), 448GB (decimal). Returns false above @high. */
bool gpuhal_tool_read_size(const char *text, uint64_t high, uint64_t *out_bytes);

/* Reads seconds, with a fraction or without, as nanoseconds. */
bool gpuhal_tool_read_seconds(const char *text, double low, double high, uint64_t *out_ns);

#endif
