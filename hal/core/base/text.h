/* base/text.h: a growing string. A failed allocation only sets `failed`. Append everything, then check `failed`
 * once. */
#ifndef GPUHAL_BASE_TEXT_H
#define GPUHAL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* A zero-initialised text is empty. `data` is NULL or null-terminated. */
typedef struct gpuhal_text {
    char *data;
    size_t length, capacity;
    bool failed; /* later appends do nothing */
} gpuhal_text;

void gpuhal_text_append(gpuhal_text *text, const char *bytes, size_t count);
void gpuhal_text_printf(gpuhal_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the string ("" if empty), owned by `text`. */
const char *gpuhal_text_get(const gpuhal_text *text);
/* Returns the malloc'ed string (NULL only if failed) and empties `text`. */
char *gpuhal_text_take(gpuhal_text *text);
void gpuhal_text_finish(gpuhal_text *text);

/* Returns a malloc'ed copy; NULL if `source` is NULL or if out of memory. */
char *gpuhal_text_copy(const char *source);
char *gpuhal_text_copy_range(const char *begin, size_t count);
/* Returns a malloc'ed formatted string; NULL if out of memory. */
char *gpuhal_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Splits at `separator` into malloc'ed parts without surrounding blanks, terminated by NULL. An empty string has no
 * parts. The second part of "a,,b" is empty. Returns NULL if out of memory. Free with gpuhal_text_list_free. */
char **gpuhal_text_split(const char *text, char separator, size_t *out_count);
/* Like gpuhal_text_split, but for a list of paths: splits at the system's separator, and keeps blanks, because a
 * directory's name may end with a blank. */
char **gpuhal_text_split_paths(const char *text, size_t *out_count);
void gpuhal_text_list_free(char **list);

#endif
