/* utf8.c: see utf8.h. */
#include "utf8.h"

size_t gpuhal_tool_utf8_next(const char *text, uint32_t *out_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length; a smaller number is an overlong form */
    const unsigned char *byte = (const unsigned char *)text;
    *out_character = byte[0];
    if (byte[0] < 0x80) {
        return byte[0] != 0;
    }
    size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc2 || byte[0] > 0xf4) {
        return 0;
    }
    uint32_t character = byte[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | (byte[i] & 0x3fu);
    }
    if (character < least[length] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) {
        return 0;
    }
    *out_character = character;
    return length;
}
