/* base/listed.c: see listed.h. */
#include "base/listed.h"

#include <stdlib.h>
#include <string.h>

gpuhal_listed_device *gpuhal_listed_devices_add(gpuhal_listed_devices *devices, uint32_t index)
{
    if (devices->count == devices->capacity) {
        size_t capacity = devices->capacity ? 2 * devices->capacity : 8;
        gpuhal_listed_device *list = realloc(devices->list, capacity * sizeof *list);
        if (!list) {
            return NULL;
        }
        devices->list = list;
        devices->capacity = capacity;
    }
    devices->list[devices->count] = (gpuhal_listed_device){.index = index};
    return &devices->list[devices->count++];
}

bool gpuhal_listed_is_device(const gpuhal_listed_device *listed)
{
    return !gpuhal_facts_text(&listed->facts, GPUHAL_FACT_UNLISTED);
}

size_t gpuhal_listed_devices_usable(const gpuhal_listed_devices *devices)
{
    size_t count = 0;
    for (size_t i = 0; i < devices->count; i++) {
        count += gpuhal_listed_is_device(&devices->list[i]);
    }
    return count;
}

const gpuhal_listed_device *gpuhal_listed_devices_find(const gpuhal_listed_devices *devices, uint32_t index)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (devices->list[i].index == index) {
            return &devices->list[i];
        }
    }
    return NULL;
}

static bool copy_facts(const gpuhal_facts *from, gpuhal_facts *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const gpuhal_fact *fact = &from->list[i];
        if (fact->missing) {
            gpuhal_facts_set_missing(to, fact->key, fact->missing, fact->text);
        } else if (fact->text) {
            gpuhal_facts_set_text(to, fact->key, fact->text);
        } else {
            gpuhal_facts_set_u64(to, fact->key, fact->u64);
        }
    }
    return !to->failed;
}

bool gpuhal_listed_devices_copy(const gpuhal_listed_devices *from, gpuhal_listed_devices *to)
{
    *to = (gpuhal_listed_devices){0};
    for (size_t i = 0; i < from->count; i++) {
        gpuhal_listed_device *device = gpuhal_listed_devices_add(to, from->list[i].index);
        if (!device || !copy_facts(&from->list[i].facts, &device->facts)) {
            gpuhal_listed_devices_finish(to);
            return false;
        }
        device->capabilities = from->list[i].capabilities;
    }
    return true;
}

/* Returns whether `other` contains each fact of `one`, except free memory. */
static bool holds_facts(const gpuhal_facts *one, const gpuhal_facts *other)
{
    for (size_t i = 0; i < one->count; i++) {
        const gpuhal_fact *fact = &one->list[i], *there = gpuhal_facts_find(other, fact->key);
        if (fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            continue;
        }
        bool same_text =
            there && (fact->text == there->text || (fact->text && there->text && strcmp(fact->text, there->text) == 0));
        if (!there || !same_text || fact->missing != there->missing ||
            (!fact->missing && !fact->text && fact->u64 != there->u64)) {
            return false;
        }
    }
    return true;
}

bool gpuhal_listed_devices_same(const gpuhal_listed_devices *one, const gpuhal_listed_devices *other)
{
    bool same = one->count == other->count;
    for (size_t i = 0; same && i < one->count; i++) {
        const gpuhal_listed_device *a = &one->list[i], *b = &other->list[i];
        same = a->index == b->index && a->capabilities == b->capabilities && holds_facts(&a->facts, &b->facts) &&
               holds_facts(&b->facts, &a->facts);
    }
    return same;
}

void gpuhal_listed_devices_finish(gpuhal_listed_devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        gpuhal_facts_finish(&devices->list[i].facts);
    }
    free(devices->list);
    *devices = (gpuhal_listed_devices){0};
}
