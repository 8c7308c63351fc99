/* plain.c: see plain.h. */
#include "plain.h"

#include "../common/utf8.h"

#include <string.h>

void gpuhal_probe_put_plain(const char *text, const char *special, char escape, FILE *out)
{
    while (*text) {
        uint32_t character;
        const size_t length = gpuhal_tool_utf8_next(text, &character);
        if (!length || character < 0x20 || (character >= 0x7f && character < 0xa0)) {
            fputc('?', out);
        } else {
            if (strchr(special, *text)) {
                fputc(escape, out);
            }
            fwrite(text, 1, length, out);
        }
        text += length ? length : 1;
    }
}
