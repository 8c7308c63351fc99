/* tests/device/json_text.h: prints a string as JSON, for programs that print one object per line. */
#ifndef GPUHAL_TEST_DEVICE_JSON_TEXT_H
#define GPUHAL_TEST_DEVICE_JSON_TEXT_H

#include <stdio.h>

/* Prints null for NULL. Escapes only the characters that JSON requires, because the library's strings are UTF-8. */
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
