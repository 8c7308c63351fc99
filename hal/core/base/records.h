/* base/records.h: the text format of manifests, the helper's stream and the registry.
 *
 *     # a comment to the end of the line
 *     [plugin]
 *     name = opencl
 *     library = gpuhal-opencl.so
 *
 * `[kind]` begins a record; the `key = value` lines after it belong to it. Kinds and keys consist of
 * [a-z0-9_.-], at most 63 characters. A value extends to the end of the line, without leading and trailing blanks. As
 * written, a value is UTF-8 without control characters. `\` begins an escape: `\n` `\r` `\t` `\\`, `\s` (a leading or
 * trailing blank), and `\xe9` (any byte but 0, for names of files and variables that are not UTF-8 or contain control
 * characters). `#` needs no escape, because it starts a comment only at the beginning of a line. Blank lines are
 * skipped. Anything else is an error; `line` and `error` describe it, and the reader stops there.
 */
#ifndef GPUHAL_BASE_RECORDS_H
#define GPUHAL_BASE_RECORDS_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a whole text or single lines. */
typedef struct gpuhal_records_reader {
    const char *next, *end;
    uint32_t line;     /* line number of the last item, from 1 */
    char name[64];     /* kind or key of the last item */
    gpuhal_text value; /* value of the last item, unescaped */
    char error[128];
} gpuhal_records_reader;

typedef enum { GPUHAL_RECORDS_END, GPUHAL_RECORDS_KIND, GPUHAL_RECORDS_PAIR, GPUHAL_RECORDS_ERROR } gpuhal_records_item;

void gpuhal_records_begin(gpuhal_records_reader *reader, const char *text, size_t bytes);
gpuhal_records_item gpuhal_records_next(gpuhal_records_reader *reader);
void gpuhal_records_finish(gpuhal_records_reader *reader);

/* The writing functions. Values may contain any bytes; reading returns the same bytes. */
void gpuhal_records_write_kind(gpuhal_text *to, const char *kind);
void gpuhal_records_write(gpuhal_text *to, const char *key, const char *value);
void gpuhal_records_write_u64(gpuhal_text *to, const char *key, uint64_t value);

/* Parses a string as a decimal number. Returns false for any other string, and on overflow. */
bool gpuhal_records_u64(const char *text, uint64_t *out_value);
/* Like gpuhal_records_u64, but signed. */
bool gpuhal_records_i32(const char *text, int32_t *out_value);
/* Returns whether `bytes` are well-formed UTF-8 without control characters. */
bool gpuhal_records_is_clean(const char *text, size_t bytes);
/* Makes the text printable in place. Line ends and tabs become blanks. Other characters that a terminal would interpret
 * or cannot show become `?`. These include Unicode line separators and direction overrides, which could make a message
 * look like another. */
void gpuhal_records_clean(char *text);

#endif
