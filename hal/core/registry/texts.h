/* registry/texts.h: a growing list of strings. A failed allocation only sets `failed`, as in base/text.h. */
#ifndef GPUHAL_REGISTRY_TEXTS_H
#define GPUHAL_REGISTRY_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/* A zero-initialised list is empty. The strings are malloc'ed. */
typedef struct gpuhal_texts {
    char **list;
    size_t count, capacity;
    bool failed; /* an allocation failed, so the list is incomplete */
} gpuhal_texts;

void gpuhal_texts_add(gpuhal_texts *texts, const char *text);
/* Adds a malloc'ed string and takes ownership of it; NULL counts as a failed allocation. */
void gpuhal_texts_give(gpuhal_texts *texts, char *text);
bool gpuhal_texts_same(const gpuhal_texts *one, const gpuhal_texts *other);
void gpuhal_texts_finish(gpuhal_texts *texts);

#endif
