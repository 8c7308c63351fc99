/* utf8.h: reading UTF-8 one character at a time. */
#ifndef GPUHAL_TOOL_UTF8_H
#define GPUHAL_TOOL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the first character of a NUL-terminated string and returns its length in bytes. Returns 0 at the end of the
 * string and for invalid UTF-8, including overlong forms, surrogates and code points above 10FFFF. */
size_t gpuhal_tool_utf8_next(const char *text, uint32_t *out_character);

#endif
