/* device/difference.c: describes in one sentence how a device differs between two snapshots. */
#include "device/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longer values are truncated, so that two values fit into a sentence. */
enum { WORD_BYTES = 72 };

static bool same_fact(const gpuhal_fact *one, const gpuhal_fact *other)
{
    if (!one || !other || one->missing || other->missing) {
        return one && other && one->missing == other->missing;
    }
    bool text = one->text && other->text;
    return text ? strcmp(one->text, other->text) == 0 : one->text == other->text && one->u64 == other->u64;
}

static void describe_fact(const gpuhal_fact *fact, char word[WORD_BYTES])
{
    if (!fact || fact->missing) {
        snprintf(word, WORD_BYTES, "missing");
    } else if (fact->text) {
        snprintf(word, WORD_BYTES, "\"%.*s\"", WORD_BYTES - 3, fact->text);
    } else {
        snprintf(word, WORD_BYTES, "%" PRIu64, fact->u64);
    }
}

static bool differs(const gpuhal_facts *facts, const gpuhal_facts *other, gpuhal_key key)
{
    const gpuhal_fact *one = gpuhal_facts_find(facts, key), *two = gpuhal_facts_find(other, key);
    return (one || two) && !same_fact(one, two);
}

/* Software devices report the host's memory, and drivers such as PoCL read the number of free bytes when they start. */
static bool is_of_the_moment(const gpuhal_facts *facts, gpuhal_key key)
{
    bool size = key == GPUHAL_FACT_MEMORY_TOTAL_BYTES || key == GPUHAL_FACT_ALLOCATION_MAX_BYTES ||
                key == GPUHAL_FACT_BINDING_MAX_BYTES;
    return size && gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0) != 0;
}

static gpuhal_key differing_key(const gpuhal_facts *facts, const gpuhal_facts *other, gpuhal_key except)
{
    for (size_t i = 0; i < facts->count; i++) {
        gpuhal_key key = facts->list[i].key;
        bool counts = key != GPUHAL_VALUE_MEMORY_FREE_BYTES && key != except && !is_of_the_moment(facts, key);
        if (counts && differs(facts, other, key)) {
            return key;
        }
    }
    return 0;
}

bool gpuhal_listed_drifted(const gpuhal_listed_device *then, const gpuhal_listed_device *now)
{
    for (size_t i = 0; i < now->facts.count; i++) {
        gpuhal_key key = now->facts.list[i].key;
        if (is_of_the_moment(&now->facts, key) && differs(&now->facts, &then->facts, key)) {
            return true;
        }
    }
    return false;
}

bool gpuhal_listed_differ(const char *id, const gpuhal_listed_device *then, const gpuhal_listed_device *now,
                          gpuhal_key except, char sentence[GPUHAL_DIFFERENCE_BYTES])
{
    /* A new driver changes many facts, and its version explains them. */
    gpuhal_key key = differs(&then->facts, &now->facts, GPUHAL_FACT_DRIVER_VERSION) ? GPUHAL_FACT_DRIVER_VERSION : 0;
    key = key ? key : differing_key(&then->facts, &now->facts, except);
    key = key ? key : differing_key(&now->facts, &then->facts, except);
    if (key) {
        const char *name = gpuhal_key_name(key);
        char was[WORD_BYTES], is[WORD_BYTES];
        describe_fact(gpuhal_facts_find(&then->facts, key), was);
        describe_fact(gpuhal_facts_find(&now->facts, key), is);
        snprintf(sentence, GPUHAL_DIFFERENCE_BYTES, "%s: %s was %s when it was listed, and is %s now", id,
                 name ? name : "a fact of its vendor", was, is);
    } else if (now->capabilities != then->capabilities) {
        snprintf(sentence, GPUHAL_DIFFERENCE_BYTES,
                 "%s: its capabilities were 0x%" PRIx32 " when it was listed, and are 0x%" PRIx32 " now", id,
                 then->capabilities, now->capabilities);
    }
    return key || now->capabilities != then->capabilities;
}
