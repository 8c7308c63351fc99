/* core/facts.h: a set of facts: key, and value or reason. Also the table of all keys, and their form in records. */
#ifndef GPUHAL_CORE_FACTS_H
#define GPUHAL_CORE_FACTS_H

#include "core/text.h"

#include <gpuhal/types.h>

#include <stdbool.h>

typedef struct gpuhal_fact {
    gpuhal_key key;
    gpuhal_missing missing; /* 0: there is a value */
    uint64_t u64;
    char *text; /* the value of a text, the reason why when missing; else NULL */
} gpuhal_fact;

/* Zero-initialised is empty; sorted by key. */
typedef struct gpuhal_facts {
    gpuhal_fact *list;
    size_t count, capacity;
    bool failed; /* an allocation failed: the set is not complete */
} gpuhal_facts;

/* A later fact of the same key replaces the earlier one. */
void gpuhal_facts_set_u64(gpuhal_facts *facts, gpuhal_key key, uint64_t value);
void gpuhal_facts_set_text(gpuhal_facts *facts, gpuhal_key key, const char *value);
void gpuhal_facts_set_missing(gpuhal_facts *facts, gpuhal_key key, gpuhal_missing reason, const char *why);
const gpuhal_fact *gpuhal_facts_find(const gpuhal_facts *facts, gpuhal_key key);
/* The number, or `otherwise` when it is missing. */
uint64_t gpuhal_facts_u64(const gpuhal_facts *facts, gpuhal_key key, uint64_t otherwise);
/* The text, or NULL when it is missing. */
const char *gpuhal_facts_text(const gpuhal_facts *facts, gpuhal_key key);
void gpuhal_facts_finish(gpuhal_facts *facts);
/* The same for one that was malloc'ed. NULL does nothing. */
void gpuhal_facts_free(gpuhal_facts *facts);

/* How a sentence calls a key: by its name, else "key 0x8001". */
enum { GPUHAL_KEY_WORD_BYTES = 64 };
void gpuhal_key_word(gpuhal_key key, char out_word[GPUHAL_KEY_WORD_BYTES]);

/* In records: `u64.<key> = 5`, `text.<key> = …`, `missing.<key> = <reason number> why`. <key> is the name, or 0x… when there is none. */
void gpuhal_facts_write(const gpuhal_facts *facts, gpuhal_text *to);
/* Takes one such pair. false: the pair is no fact, or its value is rubbish. */
bool gpuhal_facts_read_pair(gpuhal_facts *facts, const char *name, const char *value);

#endif
