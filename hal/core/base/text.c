/* base/text.c: see text.h. */
#include "base/text.h"

#include "os/os.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length is limited to half of the address space, so that neither the sum nor doubling the capacity overflows.
 * `failed` stays set, because a gap in the middle of the text must not stay undetected. */
static bool reserve(gpuhal_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 2 - text->length) {
        text->failed = true;
        return false;
    }
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity < needed) {
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void gpuhal_text_append(gpuhal_text *text, const char *bytes, size_t count)
{
    if (!reserve(text, count)) {
        return;
    }
    if (count > 0) {
        memcpy(text->data + text->length, bytes, count);
    }
    text->length += count;
    text->data[text->length] = 0;
}

/* Never truncates. */
static void append_formatted(gpuhal_text *text, const char *format, va_list arguments)
{
    if (!reserve(text, 0)) {
        return;
    }
    va_list again;
    va_copy(again, arguments);
    const size_t room = text->capacity - text->length;
    int length = vsnprintf(text->data + text->length, room, format, arguments);
    if (length >= 0 && (size_t)length >= room && reserve(text, (size_t)length)) {
        length = vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    text->failed = text->failed || length < 0;
    text->length += text->failed ? 0 : (size_t)length;
    if (text->data) {
        text->data[text->length] = 0;
    }
}

void gpuhal_text_printf(gpuhal_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append_formatted(text, format, arguments);
    va_end(arguments);
}

const char *gpuhal_text_get(const gpuhal_text *text)
{
    return text->data ? text->data : "";
}

char *gpuhal_text_take(gpuhal_text *text)
{
    /* An empty text may have no memory yet. This call makes it "". */
    gpuhal_text_append(text, "", 0);
    char *data = text->failed ? NULL : text->data;
    if (!data) {
        free(text->data);
    }
    *text = (gpuhal_text){.failed = !data};
    return data;
}

void gpuhal_text_finish(gpuhal_text *text)
{
    free(text->data);
    *text = (gpuhal_text){0};
}

char *gpuhal_text_copy_range(const char *begin, size_t count)
{
    char *copy = malloc(count + 1);
    if (copy) {
        memcpy(copy, begin, count);
        copy[count] = 0;
    }
    return copy;
}

char *gpuhal_text_copy(const char *source)
{
    return source ? gpuhal_text_copy_range(source, strlen(source)) : NULL;
}

char *gpuhal_text_format(const char *format, ...)
{
    gpuhal_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    append_formatted(&text, format, arguments);
    va_end(arguments);
    return gpuhal_text_take(&text);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char **split(const char *text, char separator, bool trims, size_t *out_count)
{
    size_t pieces = *text ? 1 : 0;
    for (const char *p = text; *p; p++) {
        pieces += *p == separator;
    }
    /* The extra entry stays NULL and terminates the list, even while the list is being filled. */
    char **list = calloc(pieces + 1, sizeof *list);
    const char *begin = text;
    for (size_t i = 0; list && i < pieces; i++) {
        const char *end = begin;
        while (*end && *end != separator) {
            end++;
        }
        const char *first = begin, *last = end;
        while (trims && first < last && is_blank(*first)) {
            first++;
        }
        while (trims && last > first && is_blank(last[-1])) {
            last--;
        }
        list[i] = gpuhal_text_copy_range(first, (size_t)(last - first));
        if (!list[i]) {
            gpuhal_text_list_free(list);
            list = NULL;
        }
        begin = end + 1;
    }
    if (out_count) {
        *out_count = list ? pieces : 0;
    }
    return list;
}

char **gpuhal_text_split(const char *text, char separator, size_t *out_count)
{
    return split(text, separator, true, out_count);
}

char **gpuhal_text_split_paths(const char *text, size_t *out_count)
{
    return split(text, gpuhal_os_path_separator(), false, out_count);
}

void gpuhal_text_list_free(char **list)
{
    for (char **piece = list; piece && *piece; piece++) {
        free(*piece);
    }
    free(list);
}
