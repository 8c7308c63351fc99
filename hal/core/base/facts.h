/* base/facts.h: a set of facts, each a key with a value or a reason; the table of all keys; and the format of facts in
 * records. */
#ifndef GPUHAL_BASE_FACTS_H
#define GPUHAL_BASE_FACTS_H

#include "base/text.h"

#include <gpuhal/types.h>

#include <stdbool.h>

enum { GPUHAL_SOURCE_BYTES = 16 };

typedef struct gpuhal_fact {
    gpuhal_key key;
    gpuhal_missing missing; /* 0: the fact has a value */
    uint64_t u64;
    char *text; /* the value of a text, or the reason if missing; else NULL */
    char source[GPUHAL_SOURCE_BYTES]; /* the source of a value; "": the backend's own API */
} gpuhal_fact;

/* Zero-initialised is empty; sorted by key. */
typedef struct gpuhal_facts {
    gpuhal_fact *list;
    size_t count, capacity;
    bool failed; /* an allocation failed: the set is incomplete */
} gpuhal_facts;

/* A later fact of the same key replaces the earlier one. */
void gpuhal_facts_set_u64(gpuhal_facts *facts, gpuhal_key key, uint64_t value);
void gpuhal_facts_set_text(gpuhal_facts *facts, gpuhal_key key, const char *value);
void gpuhal_facts_set_missing(gpuhal_facts *facts, gpuhal_key key, gpuhal_missing reason, const char *why);
/* Names the source of the fact with this key, if there is one. */
void gpuhal_facts_set_source(gpuhal_facts *facts, gpuhal_key key, const char *source);
const gpuhal_fact *gpuhal_facts_find(const gpuhal_facts *facts, gpuhal_key key);
/* Returns the number; `otherwise` if it is missing. */
uint64_t gpuhal_facts_u64(const gpuhal_facts *facts, gpuhal_key key, uint64_t otherwise);
/* Returns the text; NULL if it is missing. */
const char *gpuhal_facts_text(const gpuhal_facts *facts, gpuhal_key key);
void gpuhal_facts_finish(gpuhal_facts *facts);
/* Frees a malloc'ed set. NULL does nothing. */
void gpuhal_facts_free(gpuhal_facts *facts);

/* Writes a key for a sentence: its name, else "key 0x8001". */
enum { GPUHAL_KEY_WORD_BYTES = 64 };
void gpuhal_key_word(gpuhal_key key, char out_word[GPUHAL_KEY_WORD_BYTES]);

/* Writes records: `u64.<key> = 5`, `text.<key> = …`, `missing.<key> = <reason number> why`. <key> is the name, or 0x…
 * if there is none. */
void gpuhal_facts_write(const gpuhal_facts *facts, gpuhal_text *to);
/* Reads one such pair. Returns false for a pair that is not a fact, or has an invalid value. */
bool gpuhal_facts_read_pair(gpuhal_facts *facts, const char *name, const char *value);

#endif
