/* base/facts.h: sets of facts, the table of all keys, and the text format of facts. A fact is a key with a value, or
 * with the reason why the value is missing. */
#ifndef GPUHAL_BASE_FACTS_H
#define GPUHAL_BASE_FACTS_H

#include "base/text.h"

#include <gpuhal/types.h>

#include <stdbool.h>

enum { GPUHAL_SOURCE_BYTES = 16 };

typedef struct gpuhal_fact {
    gpuhal_key key;
    gpuhal_missing missing; /* 0 if the fact has a value */
    uint64_t u64;
    char *text; /* a string value, or the reason if missing; else NULL */
    char source[GPUHAL_SOURCE_BYTES]; /* source of the value; "" for the backend's own API */
} gpuhal_fact;

/* Sorted by key. A zero-initialised set is empty. */
typedef struct gpuhal_facts {
    gpuhal_fact *list;
    size_t count, capacity;
    bool failed; /* an allocation failed, so the set is incomplete */
} gpuhal_facts;

/* These functions replace an earlier fact with the same key. */
void gpuhal_facts_set_u64(gpuhal_facts *facts, gpuhal_key key, uint64_t value);
void gpuhal_facts_set_text(gpuhal_facts *facts, gpuhal_key key, const char *value);
void gpuhal_facts_set_missing(gpuhal_facts *facts, gpuhal_key key, gpuhal_missing reason, const char *why);
/* Sets the source of the fact with this key, if it exists. */
void gpuhal_facts_set_source(gpuhal_facts *facts, gpuhal_key key, const char *source);
const gpuhal_fact *gpuhal_facts_find(const gpuhal_facts *facts, gpuhal_key key);
uint64_t gpuhal_facts_u64(const gpuhal_facts *facts, gpuhal_key key, uint64_t otherwise);
/* Returns NULL if the string is missing. */
const char *gpuhal_facts_text(const gpuhal_facts *facts, gpuhal_key key);
void gpuhal_facts_finish(gpuhal_facts *facts);
void gpuhal_facts_free(gpuhal_facts *facts);

/* Writes the key's name, or e.g. "key 0x8001" if it has none. */
enum { GPUHAL_KEY_WORD_BYTES = 64 };
void gpuhal_key_word(gpuhal_key key, char out_word[GPUHAL_KEY_WORD_BYTES]);

/* Writes pairs: `u64.<key> = 5`, `text.<key> = …`, `missing.<key> = <reason number> why`. <key> is the key's name, or
 * 0x… if it has none. */
void gpuhal_facts_write(const gpuhal_facts *facts, gpuhal_text *to);
/* Reads a pair that gpuhal_facts_write() wrote. Returns false if the pair is not a fact or its value is invalid. */
bool gpuhal_facts_read_pair(gpuhal_facts *facts, const char *name, const char *value);

#endif
