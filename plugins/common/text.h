/* common/text.h: cleans up strings from drivers and formats UUIDs. */
#ifndef GPUHAL_PLUGIN_TEXT_H
#define GPUHAL_PLUGIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Returns the length of the well-formed UTF-8 sequence at @p text, or 0 if it is malformed or an ASCII control
 * character. */
static inline size_t gpuhal_plugin_sequence_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, second_low, second_high;
        size_t bytes;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (text[0] >= 0x20 && text[0] < 0x7f) {
        return 1;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last) {
            continue;
        }
        bool good = text[1] >= forms[i].second_low && text[1] <= forms[i].second_high;
        for (size_t k = 2; good && k < forms[i].bytes; k++) {
            good = (text[k] & 0xc0) == 0x80;
        }
        return good ? forms[i].bytes : 0;
    }
    return 0;
}

/* Replaces each invalid byte or ASCII control character by a question mark, and trims blanks, because drivers pad names
 * or copy them from firmware. Returns false if the resulting string is empty. */
static inline bool gpuhal_plugin_clean_text(char *text)
{
    unsigned char *at = (unsigned char *)text;
    while (*at) {
        size_t bytes = gpuhal_plugin_sequence_bytes(at);
        if (bytes == 0) {
            *at = '?';
        }
        at += bytes > 0 ? bytes : 1;
    }
    size_t start = strspn(text, " "), length = strlen(text);
    while (length > start && text[length - 1] == ' ') {
        length--;
    }
    memmove(text, text + start, length - start);
    text[length - start] = '\0';
    return length > start;
}

/* Writes 16 bytes as a canonical UUID string. */
static inline void gpuhal_plugin_write_uuid(const void *uuid, char out_text[37])
{
    const unsigned char *bytes = uuid;
    size_t used = 0;
    for (size_t i = 0; i < 16; i++) {
        const bool group = i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(out_text + used, 37 - used, "%s%02x", group ? "-" : "", (unsigned)bytes[i]);
    }
}

#endif
