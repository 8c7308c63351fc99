/* input.c: see input.h. */
#include "input.h"

#include "../common/utf8.h"

#include <stdarg.h>
#include <string.h>

bool gpuhal_input_fail(gpuhal_input *input, const char *format, ...)
{
    if (input->problem[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(input->problem, input->size, format, arguments);
        va_end(arguments);
    }
    return false;
}

void gpuhal_input_clean(char *text)
{
    while (*text != '\0') {
        uint32_t character = 0;
        size_t length = gpuhal_tool_utf8_next(text, &character);
        if (length == 0 || character < 0x20 || (character >= 0x7f && character < 0xa0)) {
            length = length > 0 ? length : 1;
            memset(text, '?', length);
        }
        text += length;
    }
}
