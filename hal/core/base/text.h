/* base/text.h: a growing text. A failed allocation sets `failed` instead of being reported at each step: write
 * everything, then check once. */
#ifndef GPUHAL_BASE_TEXT_H
#define GPUHAL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised means empty. `data` is NULL or has a 0 after `length`. */
typedef struct gpuhal_text {
    char *data;
    size_t length, capacity;
    bool failed; /* an allocation failed; later calls do nothing */
} gpuhal_text;

void gpuhal_text_append(gpuhal_text *text, const char *bytes, size_t count);
void gpuhal_text_printf(gpuhal_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text, "" if it is empty; owned by `text`. */
const char *gpuhal_text_get(const gpuhal_text *text);
/* Returns the malloc'ed text (never NULL unless failed) and leaves `text` empty. */
char *gpuhal_text_take(gpuhal_text *text);
void gpuhal_text_finish(gpuhal_text *text);

/* Returns a malloc'ed copy; NULL for NULL or without memory. */
char *gpuhal_text_copy(const char *source);
char *gpuhal_text_copy_range(const char *begin, size_t count);
/* Returns a malloc'ed formatted text; NULL without memory. */
char *gpuhal_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Splits at `separator` into malloc'ed parts without blanks around them, ended by NULL. An empty text has no parts,
 * "a,,b" has an empty one. NULL without memory. Free with gpuhal_text_list_free. */
char **gpuhal_text_split(const char *text, char separator, size_t *out_count);
/* Splits a list of paths at the system's separator into unchanged parts: a directory's name may end in a blank. */
char **gpuhal_text_split_paths(const char *text, size_t *out_count);
void gpuhal_text_list_free(char **list);

#endif
