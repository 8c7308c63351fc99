/* registry/texts.c: see texts.h. */
#include "registry/texts.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_texts_give(gpuhal_texts *texts, char *text)
{
    if (text && texts->count == texts->capacity) {
        size_t capacity = texts->capacity ? 2 * texts->capacity : 8;
        char **list = realloc(texts->list, capacity * sizeof *list);
        if (!list) {
            free(text);
            text = NULL;
        } else {
            texts->list = list;
            texts->capacity = capacity;
        }
    }
    if (!text) {
        texts->failed = true;
        return;
    }
    texts->list[texts->count++] = text;
}

void gpuhal_texts_add(gpuhal_texts *texts, const char *text)
{
    gpuhal_texts_give(texts, gpuhal_text_copy(text));
}

bool gpuhal_texts_same(const gpuhal_texts *one, const gpuhal_texts *other)
{
    bool same = one->count == other->count;
    for (size_t i = 0; same && i < one->count; i++) {
        same = strcmp(one->list[i], other->list[i]) == 0;
    }
    return same;
}

void gpuhal_texts_finish(gpuhal_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->list[i]);
    }
    free(texts->list);
    *texts = (gpuhal_texts){0};
}
