/* device/match.c: which device a listed one is. The registry's number tells where both have one and no fact speaks against it; else what
 * names hardware by itself; what states nothing of the kind is told apart by backend, name and order. */
#include "device/listing.h"

#include <string.h>

static const char *text_of(const gpuhal_listed_device *listed, gpuhal_key key)
{
    const char *text = gpuhal_facts_text(&listed->facts, key);
    return text && *text ? text : NULL;
}

bool gpuhal_listed_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b)
{
    static const gpuhal_key identity[] = {GPUHAL_FACT_NAME, GPUHAL_FACT_UUID, GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_PARTITION};
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        const char *one = gpuhal_facts_text(&a->facts, identity[i]);
        const char *other = gpuhal_facts_text(&b->facts, identity[i]);
        if (one && other && strcmp(one, other) != 0) {
            return false;
        }
    }
    return true;
}

static bool state_the_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b, gpuhal_key key)
{
    const char *one = text_of(a, key), *other = text_of(b, key);
    return one && other && strcmp(one, other) == 0;
}

static bool is_nameless(const gpuhal_listed_device *listed)
{
    return !text_of(listed, GPUHAL_FACT_UUID) && !text_of(listed, GPUHAL_FACT_PCI_ADDRESS);
}

const gpuhal_listed_device *gpuhal_listed_find_same(const gpuhal_listed_devices *list, const gpuhal_listed_device *wanted)
{
    const gpuhal_listed_device *there = gpuhal_listed_devices_find(list, wanted->index);
    if (there && gpuhal_listed_same(there, wanted)) {
        return there;
    }
    for (size_t i = 0; i < list->count; i++) {
        const gpuhal_listed_device *other = &list->list[i];
        bool named = state_the_same(other, wanted, GPUHAL_FACT_UUID) || state_the_same(other, wanted, GPUHAL_FACT_PCI_ADDRESS);
        if (named && gpuhal_listed_same(other, wanted)) {
            return other;
        }
    }
    return NULL;
}

/* How sure two listings are of one device; the surer ones are joined first. */
enum { BY_NUMBER, BY_UUID, BY_ADDRESS, BY_ORDER, WAYS };

static bool is_it(const gpuhal_device *device, const gpuhal_entry *entry, int way)
{
    if (strcmp(device->candidate->name, entry->candidate->name) != 0 || !gpuhal_listed_same(device->listed, entry->listed)) {
        return false;
    }
    switch (way) {
    case BY_NUMBER:
        return device->known_face != 0 && device->known_face == entry->known_face;
    case BY_UUID:
        return state_the_same(device->listed, entry->listed, GPUHAL_FACT_UUID);
    case BY_ADDRESS:
        return state_the_same(device->listed, entry->listed, GPUHAL_FACT_PCI_ADDRESS);
    default:
        return is_nameless(device->listed) && is_nameless(entry->listed);
    }
}

void gpuhal_entries_match(const gpuhal *gpu, gpuhal_listing *listing)
{
    const gpuhal_listing *before = gpuhal_listing_now(gpu);
    for (int way = 0; way < WAYS; way++) {
        for (uint32_t d = 0; before && d < before->device_count; d++) {
            /* Who is gone does not come back under the same handle: its memory and queues are lost. */
            bool is_open = listing->places[d] == GPUHAL_NOWHERE && before->places[d] != GPUHAL_NOWHERE;
            for (uint32_t e = 0; is_open && e < listing->identity.count; e++) {
                gpuhal_entry *entry = &listing->entries[e];
                if (!entry->device && is_it(before->devices[d], entry, way)) {
                    entry->device = before->devices[d];
                    listing->places[d] = e;
                    is_open = false;
                }
            }
        }
    }
}
