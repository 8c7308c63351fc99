/* registry/texts.h: a growing list of texts. A failed allocation sets `failed` instead of being reported at each step,
 * as in base/text.h. */
#ifndef GPUHAL_REGISTRY_TEXTS_H
#define GPUHAL_REGISTRY_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised means empty. The texts are malloc'ed. */
typedef struct gpuhal_texts {
    char **list;
    size_t count, capacity;
    bool failed; /* an allocation failed: the list is incomplete */
} gpuhal_texts;

/* Adds a copy. */
void gpuhal_texts_add(gpuhal_texts *texts, const char *text);
/* Adds the malloc'ed text and owns it; NULL counts as a failed allocation. */
void gpuhal_texts_give(gpuhal_texts *texts, char *text);
bool gpuhal_texts_same(const gpuhal_texts *one, const gpuhal_texts *other);
void gpuhal_texts_finish(gpuhal_texts *texts);

#endif
