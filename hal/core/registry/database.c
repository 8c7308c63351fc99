/* registry/database.c: see database.h. Lists have a few hundred records at most, so searches are linear. */
#include "registry/database.h"

#include "registry/fields.h"

#include <stdlib.h>
#include <string.h>

/* The maximum number of results of one plugin file under different keys, for example in containers or with other
 * variables. */
#define RESULTS_PER_PLUGIN_MAX 8

size_t gpuhal_database_limit(gpuhal_database_kind kind)
{
    static const size_t limits[GPUHAL_DATABASE_KINDS] = {64, 64, 256, 512, 256};
    return limits[kind];
}

void *gpuhal_database_at(const gpuhal_database *database, gpuhal_database_kind kind, size_t index)
{
    return (char *)database->records[kind].list + index * gpuhal_record_size(kind);
}

void *gpuhal_database_add(gpuhal_database *database, gpuhal_database_kind kind)
{
    gpuhal_record_list *records = &database->records[kind];
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
    void *record = gpuhal_database_at(database, kind, records->count++);
    memset(record, 0, size);
    return record;
}

void gpuhal_database_remove(gpuhal_database *database, gpuhal_database_kind kind, size_t index)
{
    gpuhal_record_list *records = &database->records[kind];
    char *record = gpuhal_database_at(database, kind, index);
    size_t size = gpuhal_record_size(kind);
    gpuhal_record_finish(kind, record);
    records->count--;
    memmove(record, record + size, (records->count - index) * size);
}

void gpuhal_database_finish(gpuhal_database *database)
{
    for (gpuhal_database_kind kind = 0; kind < GPUHAL_DATABASE_KINDS; kind++) {
        for (size_t i = 0; i < database->records[kind].count; i++) {
            gpuhal_record_finish(kind, gpuhal_database_at(database, kind, i));
        }
        free(database->records[kind].list);
    }
    *database = GPUHAL_DATABASE_EMPTY;
}

static bool same_text(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool is_same(gpuhal_database_kind kind, const void *one, const void *other)
{
    switch (kind) {
    case GPUHAL_DATABASE_PLUGIN: {
        const gpuhal_database_plugin *a = one, *b = other;
        return same_text(a->identity, b->identity) && gpuhal_texts_same(&a->key, &b->key);
    }
    case GPUHAL_DATABASE_PHYSICAL:
        return ((const gpuhal_database_physical *)one)->number == ((const gpuhal_database_physical *)other)->number;
    case GPUHAL_DATABASE_INTERFACE:
        return ((const gpuhal_database_interface *)one)->number == ((const gpuhal_database_interface *)other)->number;
    case GPUHAL_DATABASE_LINK: {
        const gpuhal_database_link *a = one, *b = other;
        return a->from == b->from && a->to == b->to && same_text(a->from_driver, b->from_driver) &&
               same_text(a->to_driver, b->to_driver);
    }
    case GPUHAL_DATABASE_FAULT: {
        const gpuhal_database_fault *a = one, *b = other;
        return a->kind == b->kind && a->iface == b->iface && same_text(a->plugin, b->plugin);
    }
    default:
        return false;
    }
}

void *gpuhal_database_same(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    for (size_t i = 0; i < database->records[kind].count; i++) {
        void *other = gpuhal_database_at(database, kind, i);
        if (other != record && is_same(kind, other, record)) {
            return other;
        }
    }
    return NULL;
}

static uint64_t generation_of(const void *record)
{
    uint64_t generation;
    memcpy(&generation, record, sizeof generation);
    return generation;
}

bool gpuhal_database_lists(const gpuhal_database *database, uint32_t physical)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    bool listed = false;
    for (size_t i = 0; i < count; i++) {
        listed = listed || (interfaces[i].physical == physical && interfaces[i].present);
    }
    return listed;
}

/* A physical device is present if one of its interfaces is present, or if the device was just recorded. Records
 * other than devices and interfaces count as absent. */
static bool is_present(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    if (kind == GPUHAL_DATABASE_INTERFACE) {
        return ((const gpuhal_database_interface *)record)->present != 0;
    }
    return kind == GPUHAL_DATABASE_PHYSICAL &&
           (generation_of(record) == database->generation ||
            gpuhal_database_lists(database, ((const gpuhal_database_physical *)record)->number));
}

static const char *owner_of(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    const uint32_t number = kind == GPUHAL_DATABASE_LINK ? ((const gpuhal_database_link *)record)->from : 0;
    const gpuhal_database_interface wanted = {.number = number};
    const gpuhal_database_interface *found = kind == GPUHAL_DATABASE_INTERFACE ? record
                                             : number == 0
                                                 ? NULL
                                                 : gpuhal_database_same(database, GPUHAL_DATABASE_INTERFACE, &wanted);
    return found && found->backend ? found->backend : "";
}

/* Returns the backend with the most records of the kind. On a tie, returns the backend that reaches the count first in
 * the list. Backends after the first OWNERS_MOST are not considered. */
static const char *largest_owner(const gpuhal_database *database, gpuhal_database_kind kind)
{
    enum { OWNERS_MOST = 32 };
    const char *owners[OWNERS_MOST];
    size_t counts[OWNERS_MOST] = {0}, count = 0, largest = 0;
    for (size_t i = 0; i < database->records[kind].count; i++) {
        const char *owner = owner_of(database, kind, gpuhal_database_at(database, kind, i));
        size_t o = 0;
        while (o < count && strcmp(owners[o], owner) != 0) {
            o++;
        }
        if (o == count && count < OWNERS_MOST) {
            owners[count++] = owner;
        }
        if (o < count) {
            counts[o]++;
            largest = counts[o] > counts[largest] ? o : largest;
        }
    }
    return owners[largest];
}

/* Drops one record of the backend with the most records, so that a backend with many devices does not displace others.
 * Drops the oldest absent record. If all are present, drops the record that was added last, since numbers of older
 * records may be in use. */
static void drop_one_of(gpuhal_database *database, gpuhal_database_kind kind)
{
    const char *owner = largest_owner(database, kind);
    size_t victim = database->records[kind].count;
    bool present = false;
    for (size_t i = 0; i < database->records[kind].count; i++) {
        const void *record = gpuhal_database_at(database, kind, i);
        if (strcmp(owner_of(database, kind, record), owner) != 0) {
            continue;
        }
        const bool none = victim == database->records[kind].count, is_here = is_present(database, kind, record);
        const bool older = !none && generation_of(record) < generation_of(gpuhal_database_at(database, kind, victim));
        if (none || (is_here == present ? present || older : present)) {
            victim = i;
            present = is_here;
        }
    }
    gpuhal_database_remove(database, kind, victim);
}

bool gpuhal_database_drop_oldest(gpuhal_database *database)
{
    /* Unlike results and measurements, stable numbers cannot be recreated, so they are dropped last. */
    static const gpuhal_database_kind order[] = {GPUHAL_DATABASE_PLUGIN, GPUHAL_DATABASE_LINK, GPUHAL_DATABASE_FAULT,
                                                 GPUHAL_DATABASE_INTERFACE, GPUHAL_DATABASE_PHYSICAL};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (database->records[order[i]].count > 0) {
            drop_one_of(database, order[i]);
            return true;
        }
    }
    return false;
}

/* Drops results above the limit for each identity, the oldest first. After each drop the same index is checked again,
 * since later records have moved up; i-- at 0 wraps, and i++ returns it to 0. */
static void trim_results(gpuhal_database *database)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    for (size_t i = 0; i < count; i++) {
        size_t same = 0, oldest = i;
        for (size_t j = i; j < count; j++) {
            if (same_text(plugins[j].identity, plugins[i].identity)) {
                same++;
                oldest = plugins[j].generation < plugins[oldest].generation ? j : oldest;
            }
        }
        if (same > RESULTS_PER_PLUGIN_MAX) {
            gpuhal_database_remove(database, GPUHAL_DATABASE_PLUGIN, oldest);
            plugins = gpuhal_database_plugins(database, &count);
            i--;
        }
    }
}

static bool has_physical(const gpuhal_database *database, uint32_t number)
{
    const gpuhal_database_physical wanted = {.number = number};
    return gpuhal_database_same(database, GPUHAL_DATABASE_PHYSICAL, &wanted) != NULL;
}

static bool has_interface(const gpuhal_database *database, uint32_t number)
{
    const gpuhal_database_interface wanted = {.number = number};
    return gpuhal_database_same(database, GPUHAL_DATABASE_INTERFACE, &wanted) != NULL;
}

static bool belongs(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    if (kind == GPUHAL_DATABASE_INTERFACE) {
        return has_physical(database, ((const gpuhal_database_interface *)record)->physical);
    }
    if (kind == GPUHAL_DATABASE_LINK) {
        const gpuhal_database_link *link = record;
        return has_interface(database, link->from) && has_interface(database, link->to);
    }
    if (kind == GPUHAL_DATABASE_FAULT) {
        const gpuhal_database_fault *fault = record;
        return fault->iface == 0 || has_interface(database, fault->iface);
    }
    return true;
}

bool gpuhal_database_has_room(const gpuhal_database *database)
{
    size_t count = database->records[GPUHAL_DATABASE_PHYSICAL].count, present = 0;
    for (size_t i = 0; i < count; i++) {
        present +=
            is_present(database, GPUHAL_DATABASE_PHYSICAL, gpuhal_database_at(database, GPUHAL_DATABASE_PHYSICAL, i));
    }
    return present < gpuhal_database_limit(GPUHAL_DATABASE_PHYSICAL);
}

void gpuhal_database_trim(gpuhal_database *database)
{
    trim_results(database);
    for (gpuhal_database_kind kind = 0; kind < GPUHAL_DATABASE_KINDS; kind++) {
        for (size_t i = database->records[kind].count; i > 0; i--) {
            if (!belongs(database, kind, gpuhal_database_at(database, kind, i - 1))) {
                gpuhal_database_remove(database, kind, i - 1);
            }
        }
        while (database->records[kind].count > gpuhal_database_limit(kind)) {
            drop_one_of(database, kind);
        }
    }
}
