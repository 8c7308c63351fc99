/* utf8.h: reading UTF-8 one character at a time. */
#ifndef GPUHAL_TOOL_UTF8_H
#define GPUHAL_TOOL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number of bytes of the well-formed character at `text`, which ends with a 0, and the character; 0 if
 * there is none: at the end, and if the bytes are not UTF-8 (overlong forms, surrogates and numbers above 10FFFF
 * included). */
size_t gpuhal_tool_utf8_next(const char *text, uint32_t *out_character);

#endif
