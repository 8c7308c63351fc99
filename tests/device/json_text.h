/* tests/device/json_text.h: writes a text as JSON, for programs that print one object a line. */
#ifndef GPUHAL_TEST_DEVICE_JSON_TEXT_H
#define GPUHAL_TEST_DEVICE_JSON_TEXT_H

#include <stdio.h>

/* NULL becomes null. Only characters that JSON forbids are escaped; texts of the library are UTF-8. */
static inline void print_json_text(const char *text)
{
    if (text == NULL) {
        fputs("null", stdout);
        return;
    }
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            printf("\\%c", *c);
        } else if (*c < 0x20) {
            printf("\\u%04x", *c);
        } else {
            putchar(*c);
        }
    }
    putchar('"');
}

#endif
