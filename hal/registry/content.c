/* registry/content.c: see content.h. Lists are short, a few hundred records at most, so everything searches them from end to end. */
#include "registry/content.h"

#include "registry/fields.h"

#include <stdlib.h>
#include <string.h>

/* How often one plugin file is kept, under different circumstances: in containers, with other variables. */
#define CIRCUMSTANCES_MAX 8

size_t gpuhal_content_limit(gpuhal_record_kind kind)
{
    static const size_t limits[GPUHAL_RECORD_KINDS] = {64, 64, 256, 512, 256, 256};
    return limits[kind];
}

void *gpuhal_content_at(const gpuhal_content *content, gpuhal_record_kind kind, size_t index)
{
    return (char *)content->records[kind].list + index * gpuhal_record_size(kind);
}

void *gpuhal_content_add(gpuhal_content *content, gpuhal_record_kind kind)
{
    gpuhal_record_list *records = &content->records[kind];
    size_t size = gpuhal_record_size(kind);
    if (records->count == records->capacity) {
        size_t capacity = records->capacity ? 2 * records->capacity : 8;
        void *list = realloc(records->list, capacity * size);
        if (!list) {
            return NULL;
        }
        records->list = list;
        records->capacity = capacity;
    }
    void *record = gpuhal_content_at(content, kind, records->count++);
    memset(record, 0, size);
    return record;
}

void gpuhal_content_remove(gpuhal_content *content, gpuhal_record_kind kind, size_t index)
{
    gpuhal_record_list *records = &content->records[kind];
    char *record = gpuhal_content_at(content, kind, index);
    size_t size = gpuhal_record_size(kind);
    gpuhal_record_finish(kind, record);
    records->count--;
    memmove(record, record + size, (records->count - index) * size);
}

void gpuhal_content_finish(gpuhal_content *content)
{
    for (gpuhal_record_kind kind = 0; kind < GPUHAL_RECORD_KINDS; kind++) {
        for (size_t i = 0; i < content->records[kind].count; i++) {
            gpuhal_record_finish(kind, gpuhal_content_at(content, kind, i));
        }
        free(content->records[kind].list);
    }
    *content = GPUHAL_CONTENT_EMPTY;
}

static bool same_text(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool is_same(gpuhal_record_kind kind, const void *one, const void *other)
{
    switch (kind) {
    case GPUHAL_RECORD_PLUGIN: {
        const gpuhal_known_plugin *a = one, *b = other;
        return same_text(a->identity, b->identity) && gpuhal_texts_same(&a->key, &b->key);
    }
    case GPUHAL_RECORD_PHYSICAL:
        return ((const gpuhal_known_physical *)one)->number == ((const gpuhal_known_physical *)other)->number;
    case GPUHAL_RECORD_FACE:
        return ((const gpuhal_known_face *)one)->number == ((const gpuhal_known_face *)other)->number;
    case GPUHAL_RECORD_LINK: {
        const gpuhal_known_link *a = one, *b = other;
        return a->from == b->from && a->to == b->to && same_text(a->from_driver, b->from_driver) &&
               same_text(a->to_driver, b->to_driver);
    }
    case GPUHAL_RECORD_WRITE:
        return ((const gpuhal_known_write *)one)->face == ((const gpuhal_known_write *)other)->face;
    case GPUHAL_RECORD_FAULT: {
        const gpuhal_known_fault *a = one, *b = other;
        return a->kind == b->kind && a->face == b->face && same_text(a->plugin, b->plugin);
    }
    default:
        return false;
    }
}

void *gpuhal_content_same(const gpuhal_content *content, gpuhal_record_kind kind, const void *record)
{
    for (size_t i = 0; i < content->records[kind].count; i++) {
        void *other = gpuhal_content_at(content, kind, i);
        if (other != record && is_same(kind, other, record)) {
            return other;
        }
    }
    return NULL;
}

/* The generation is the first member of every record. */
static uint64_t generation_of(const void *record)
{
    uint64_t generation;
    memcpy(&generation, record, sizeof generation);
    return generation;
}

/* Hardware is there while one of its faces is, or when it was noted just now. What is no hardware is as good as absent. */
static bool is_present(const gpuhal_content *content, gpuhal_record_kind kind, const void *record)
{
    size_t count;
    const gpuhal_known_face *faces = gpuhal_content_faces(content, &count);
    if (kind == GPUHAL_RECORD_FACE) {
        return ((const gpuhal_known_face *)record)->present != 0;
    }
    if (kind == GPUHAL_RECORD_PHYSICAL && generation_of(record) == content->generation) {
        return true;
    }
    for (size_t f = 0; kind == GPUHAL_RECORD_PHYSICAL && f < count; f++) {
        if (faces[f].present && faces[f].physical == ((const gpuhal_known_physical *)record)->number) {
            return true;
        }
    }
    return false;
}

/* What is absent goes first, the oldest of it; of hardware that is there the last that came, since others may be known by their numbers. */
static void drop_one_of(gpuhal_content *content, gpuhal_record_kind kind)
{
    size_t victim = 0;
    bool present = is_present(content, kind, gpuhal_content_at(content, kind, 0));
    for (size_t i = 1; i < content->records[kind].count; i++) {
        const void *record = gpuhal_content_at(content, kind, i);
        bool is_here = is_present(content, kind, record);
        bool older = generation_of(record) < generation_of(gpuhal_content_at(content, kind, victim));
        if (is_here == present ? present || older : present) {
            victim = i;
            present = is_here;
        }
    }
    gpuhal_content_remove(content, kind, victim);
}

bool gpuhal_content_drop_oldest(gpuhal_content *content)
{
    /* Verdicts are found again by meeting the plugin, measurements by measuring; numbers come last, they cannot be found again. */
    static const gpuhal_record_kind order[] = {GPUHAL_RECORD_PLUGIN, GPUHAL_RECORD_LINK, GPUHAL_RECORD_WRITE,
                                               GPUHAL_RECORD_FAULT,  GPUHAL_RECORD_FACE, GPUHAL_RECORD_PHYSICAL};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (content->records[order[i]].count > 0) {
            drop_one_of(content, order[i]);
            return true;
        }
    }
    return false;
}

/* Plugins of this identity beyond the limit. */
static void trim_circumstances(gpuhal_content *content)
{
    size_t count;
    const gpuhal_known_plugin *plugins = gpuhal_content_plugins(content, &count);
    for (size_t i = 0; i < count; i++) {
        size_t same = 0, oldest = i;
        for (size_t j = i; j < count; j++) {
            if (same_text(plugins[j].identity, plugins[i].identity)) {
                same++;
                oldest = plugins[j].generation < plugins[oldest].generation ? j : oldest;
            }
        }
        if (same > CIRCUMSTANCES_MAX) {
            gpuhal_content_remove(content, GPUHAL_RECORD_PLUGIN, oldest);
            plugins = gpuhal_content_plugins(content, &count);
            i--;
        }
    }
}

static bool has_physical(const gpuhal_content *content, uint32_t number)
{
    const gpuhal_known_physical wanted = {.number = number};
    return gpuhal_content_same(content, GPUHAL_RECORD_PHYSICAL, &wanted) != NULL;
}

static bool has_face(const gpuhal_content *content, uint32_t number)
{
    const gpuhal_known_face wanted = {.number = number};
    return gpuhal_content_same(content, GPUHAL_RECORD_FACE, &wanted) != NULL;
}

/* Whether what the record belongs to is still there. */
static bool belongs(const gpuhal_content *content, gpuhal_record_kind kind, const void *record)
{
    if (kind == GPUHAL_RECORD_FACE) {
        return has_physical(content, ((const gpuhal_known_face *)record)->physical);
    }
    if (kind == GPUHAL_RECORD_LINK) {
        const gpuhal_known_link *link = record;
        return has_face(content, link->from) && has_face(content, link->to);
    }
    if (kind == GPUHAL_RECORD_WRITE) {
        return has_face(content, ((const gpuhal_known_write *)record)->face);
    }
    if (kind == GPUHAL_RECORD_FAULT) {
        const gpuhal_known_fault *fault = record;
        return fault->face == 0 || has_face(content, fault->face);
    }
    return true;
}

bool gpuhal_content_has_room(const gpuhal_content *content)
{
    size_t count = content->records[GPUHAL_RECORD_PHYSICAL].count, present = 0;
    for (size_t i = 0; i < count; i++) {
        present += is_present(content, GPUHAL_RECORD_PHYSICAL, gpuhal_content_at(content, GPUHAL_RECORD_PHYSICAL, i));
    }
    return present < gpuhal_content_limit(GPUHAL_RECORD_PHYSICAL);
}

void gpuhal_content_trim(gpuhal_content *content)
{
    trim_circumstances(content);
    for (gpuhal_record_kind kind = 0; kind < GPUHAL_RECORD_KINDS; kind++) {
        for (size_t i = content->records[kind].count; i > 0; i--) {
            if (!belongs(content, kind, gpuhal_content_at(content, kind, i - 1))) {
                gpuhal_content_remove(content, kind, i - 1);
            }
        }
        while (content->records[kind].count > gpuhal_content_limit(kind)) {
            drop_one_of(content, kind);
        }
    }
}
