/* base/records.h: the grammar of manifests, of the helper's stream and of the registry.
 *
 *     # a comment to the end of the line
 *     [plugin]
 *     name = opencl
 *     library = gpuhal-opencl.so
 *
 * `[kind]` opens a record; `key = value` lines belong to it. Kinds and keys are [a-z0-9_.-], at most 63 characters. A
 * value runs to the end of the line, without blanks around it; in it `\` escapes: `\n` `\r` `\t` `\\` `\s` (a blank at
 * either end) and `\xe9`, any byte but 0, for names of files and variables that are not UTF-8, or have control
 * characters. `\#` is not needed: `#` starts a comment only at the beginning of a line. As written a value is UTF-8
 * without control characters. Anything else is an error, whose message names the line; the reader stops there.
 */
#ifndef GPUHAL_BASE_RECORDS_H
#define GPUHAL_BASE_RECORDS_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a text as a whole or line by line. */
typedef struct gpuhal_records_reader {
    const char *next, *end;
    uint32_t line;     /* of the last item, counted from 1 */
    char name[64];     /* kind or key of the last item */
    gpuhal_text value; /* of the last item, escapes resolved */
    char error[128];   /* the fault of the line */
} gpuhal_records_reader;

typedef enum { GPUHAL_RECORDS_END, GPUHAL_RECORDS_KIND, GPUHAL_RECORDS_PAIR, GPUHAL_RECORDS_ERROR } gpuhal_records_item;

void gpuhal_records_begin(gpuhal_records_reader *reader, const char *text, size_t bytes);
gpuhal_records_item gpuhal_records_next(gpuhal_records_reader *reader);
void gpuhal_records_finish(gpuhal_records_reader *reader);

/* Writing. Values may hold any bytes, and are read back unchanged. */
void gpuhal_records_write_kind(gpuhal_text *to, const char *kind);
void gpuhal_records_write(gpuhal_text *to, const char *key, const char *value);
void gpuhal_records_write_u64(gpuhal_text *to, const char *key, uint64_t value);

/* Parses a whole text as a decimal number; returns false for anything else, overflow included. */
bool gpuhal_records_u64(const char *text, uint64_t *out_value);
/* Like gpuhal_records_u64, with a sign. */
bool gpuhal_records_i32(const char *text, int32_t *out_value);
/* Returns whether `bytes` are well-formed UTF-8 without control characters. */
bool gpuhal_records_is_clean(const char *text, size_t bytes);
/* Makes the text printable, in place: line ends and tabs become blanks. Other characters that a terminal would
 * interpret or cannot show become `?`, including Unicode's line ends and changes of direction: a sentence must not be
 * shown as another one. */
void gpuhal_records_clean(char *text);

#endif
