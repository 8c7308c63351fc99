/* registry/stable_ids.c: finds the stable numbers of the listed physical devices.
 *
 * The host's processor is recognised as such, any other physical device by the UUID of one of its interfaces. If no
 * UUID matches, its PCI address counts, if the vendor is the same and no interface contradicts. If an address is
 * unknown, backend and name count, in list order. An interface contradicts if its UUID has changed although its driver
 * has not, because this means that another device is in the slot. (Some drivers derive UUIDs from their version.) Each
 * number is assigned to at most one physical device. Stronger matches are assigned first.
 */
#include "registry/merge.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX    256u
#define FRESH_SECONDS     86400u /* an unchanged sighting is recorded again only after this time */
#define VERSIONS_KEPT_MAX 16u

typedef struct numbering {
    const gpuhal_database *database;
    gpuhal_sighting *sightings;
    size_t count;
    uint64_t now;
} numbering;

typedef bool match_fn(const numbering *at, uint32_t group, const gpuhal_database_physical *physical);

static bool is_said(const char *text)
{
    return text && *text;
}

static bool same_said(const char *one, const char *other)
{
    return is_said(one) && is_said(other) && strcmp(one, other) == 0;
}

static bool same(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool same_vendor(uint32_t one, uint32_t other)
{
    return one == 0 || other == 0 || one == other;
}

/* Names are compared as they are stored, that is, truncated. */
static size_t kept_bytes(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length > TEXT_BYTES_MAX) {
        length = TEXT_BYTES_MAX;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    return length;
}

static bool same_name(const char *kept, const char *seen)
{
    size_t length = kept_bytes(seen);
    return strlen(kept ? kept : "") == length && (length == 0 || memcmp(kept, seen, length) == 0);
}

static const char *last_driver(const gpuhal_database_interface *iface)
{
    return iface->drivers.count > 0 ? iface->drivers.list[iface->drivers.count - 1].version : NULL;
}

/* ---- physical devices */

static const char *group_pci(const numbering *at, uint32_t group)
{
    for (size_t i = 0; i < at->count; i++) {
        if (at->sightings[i].group == group && is_said(at->sightings[i].pci)) {
            return at->sightings[i].pci;
        }
    }
    return NULL;
}

static uint32_t group_vendor(const numbering *at, uint32_t group)
{
    for (size_t i = 0; i < at->count; i++) {
        if (at->sightings[i].group == group && at->sightings[i].vendor_id != 0) {
            return at->sightings[i].vendor_id;
        }
    }
    return 0;
}

static bool group_is_host(const numbering *at, uint32_t group)
{
    bool host = false;
    for (size_t i = 0; i < at->count; i++) {
        host = host || (at->sightings[i].group == group && at->sightings[i].host);
    }
    return host;
}

static bool any_pair(const numbering *at, uint32_t group, uint32_t physical,
                     bool (*related)(const gpuhal_sighting *seen, const gpuhal_database_interface *known))
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(at->database, &count);
    for (size_t f = 0; f < count; f++) {
        for (size_t i = 0; interfaces[f].physical == physical && i < at->count; i++) {
            if (at->sightings[i].group == group && related(&at->sightings[i], &interfaces[f])) {
                return true;
            }
        }
    }
    return false;
}

static bool states_same_uuid(const gpuhal_sighting *seen, const gpuhal_database_interface *known)
{
    return same_said(seen->uuid, known->uuid) && same(seen->partition, known->partition);
}

static bool denies(const gpuhal_sighting *seen, const gpuhal_database_interface *known)
{
    return same(seen->backend, known->backend) && same(seen->partition, known->partition) && is_said(seen->uuid) &&
           is_said(known->uuid) && !same(seen->uuid, known->uuid) &&
           same_said(seen->driver_version, last_driver(known));
}

static bool has_same_name(const gpuhal_sighting *seen, const gpuhal_database_interface *known)
{
    return same(seen->backend, known->backend) && same(seen->partition, known->partition) &&
           same_name(known->name, seen->name);
}

static bool match_host(const numbering *at, uint32_t group, const gpuhal_database_physical *physical)
{
    return physical->host && group_is_host(at, group);
}

static bool is_other_sort(const numbering *at, uint32_t group, const gpuhal_database_physical *physical)
{
    return physical->host || group_is_host(at, group) || !same_vendor(group_vendor(at, group), physical->vendor_id);
}

/* A UUID takes precedence over an address, so that a device keeps its number in another slot. */
static bool match_uuid(const numbering *at, uint32_t group, const gpuhal_database_physical *physical)
{
    return !is_other_sort(at, group, physical) && any_pair(at, group, physical->number, states_same_uuid);
}

static bool match_pci(const numbering *at, uint32_t group, const gpuhal_database_physical *physical)
{
    return !is_other_sort(at, group, physical) && same_said(group_pci(at, group), physical->pci) &&
           !any_pair(at, group, physical->number, denies);
}

/* The weakest match is valid only if an address is unknown, because the comparison of two known addresses has already
 * decided. */
static bool match_name(const numbering *at, uint32_t group, const gpuhal_database_physical *physical)
{
    return !is_other_sort(at, group, physical) && !(is_said(group_pci(at, group)) && is_said(physical->pci)) &&
           any_pair(at, group, physical->number, has_same_name) && !any_pair(at, group, physical->number, denies);
}

static uint32_t number_of(const numbering *at, uint32_t group)
{
    for (size_t i = 0; i < at->count; i++) {
        if (at->sightings[i].group == group) {
            return at->sightings[i].physical;
        }
    }
    return 0;
}

static void set_number(const numbering *at, uint32_t group, uint32_t number)
{
    for (size_t i = 0; i < at->count; i++) {
        if (at->sightings[i].group == group) {
            at->sightings[i].physical = number;
        }
    }
}

static bool is_taken(const numbering *at, uint32_t number)
{
    bool taken = false;
    for (size_t i = 0; i < at->count; i++) {
        taken = taken || at->sightings[i].physical == number;
    }
    return taken;
}

/* Tries groups in the order of their first sighting and physical devices in the order of their numbers, so that the
 * result is deterministic. An earlier match is never revoked. */
static void match_all(const numbering *at, match_fn *matches)
{
    size_t count;
    const gpuhal_database_physical *physicals = gpuhal_database_physicals(at->database, &count);
    for (size_t i = 0; i < at->count; i++) {
        uint32_t group = at->sightings[i].group;
        for (size_t p = 0; p < count && number_of(at, group) == 0; p++) {
            if (!is_taken(at, physicals[p].number) && matches(at, group, &physicals[p])) {
                set_number(at, group, physicals[p].number);
            }
        }
    }
}

/* Copies at most TEXT_BYTES_MAX bytes; an empty string keeps the old value. */
static bool keep(char **to, const char *text)
{
    if (!is_said(text)) {
        return true;
    }
    char *copy = gpuhal_text_copy_range(text, kept_bytes(text));
    if (copy) {
        free(*to);
        *to = copy;
    }
    return copy != NULL;
}

/* Returns the physical device with a group's number; adds a device if the group has no number. Returns NULL if out of
 * memory. */
static gpuhal_database_physical *physical_of(const numbering *at, gpuhal_database *to, uint32_t group)
{
    gpuhal_database_physical wanted = {.number = number_of(at, group)};
    gpuhal_database_physical *physical = gpuhal_database_same(to, GPUHAL_DATABASE_PHYSICAL, &wanted);
    if (wanted.number == 0) {
        physical = gpuhal_database_add(to, GPUHAL_DATABASE_PHYSICAL);
        if (physical) {
            physical->number = to->next_physical++;
            physical->first_seen = at->now;
            set_number(at, group, physical->number);
        }
    }
    return physical;
}

/* If more physical devices are present than the limit allows, the last get no number, so that the others keep
 * theirs. */
static bool is_beyond(const gpuhal_database *database, uint32_t number)
{
    return number == 0 && !gpuhal_database_has_room(database);
}

/* Returns whether the device has its name from this sighting. A program on the host's processor has another name. */
static bool names_physical(const numbering *at, const gpuhal_sighting *seen)
{
    bool first = true;
    if (group_is_host(at, seen->group)) {
        return same(seen->backend, "cpu");
    }
    for (const gpuhal_sighting *before = at->sightings; before < seen; before++) {
        first = first && before->group != seen->group;
    }
    return first;
}

static bool note_physical(const numbering *at, gpuhal_database *to, const gpuhal_sighting *seen)
{
    if (is_beyond(to, number_of(at, seen->group))) {
        return true;
    }
    gpuhal_database_physical *physical = physical_of(at, to, seen->group);
    if (!physical) {
        return false;
    }
    physical->generation = to->generation;
    physical->last_seen = at->now;
    physical->host = group_is_host(at, seen->group);
    uint32_t vendor = group_vendor(at, seen->group);
    physical->vendor_id = vendor ? vendor : physical->vendor_id;
    return keep(&physical->pci, group_pci(at, seen->group)) &&
           (!names_physical(at, seen) || keep(&physical->name, seen->name));
}

/* ---- interfaces */

static bool interface_is_taken(const numbering *at, uint32_t number)
{
    bool taken = false;
    for (size_t i = 0; i < at->count; i++) {
        taken = taken || at->sightings[i].iface == number;
    }
    return taken;
}

static void match_interface(const numbering *at, gpuhal_sighting *seen, bool by_name)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(at->database, &count);
    for (size_t f = 0; f < count && seen->iface == 0; f++) {
        if (interfaces[f].physical == seen->physical && same(interfaces[f].backend, seen->backend) &&
            same(interfaces[f].partition, seen->partition) && (!by_name || same_name(interfaces[f].name, seen->name)) &&
            !interface_is_taken(at, interfaces[f].number)) {
            seen->iface = interfaces[f].number;
        }
    }
}

static bool note_driver(gpuhal_database_versions *drivers, const char *version, uint64_t now)
{
    if (!is_said(version) || (drivers->count > 0 && same_name(drivers->list[drivers->count - 1].version, version))) {
        return true;
    }
    char *copy = gpuhal_text_copy_range(version, kept_bytes(version));
    gpuhal_database_version *list = copy ? realloc(drivers->list, (drivers->count + 1) * sizeof *list) : NULL;
    if (!list) {
        free(copy);
        return false;
    }
    list[drivers->count] = (gpuhal_database_version){.since = now, .version = copy};
    drivers->list = list;
    drivers->capacity = ++drivers->count;
    if (drivers->count > VERSIONS_KEPT_MAX) {
        free(list[0].version);
        memmove(list, list + 1, --drivers->count * sizeof *list);
    }
    return true;
}

static bool note_interface(const numbering *at, gpuhal_database *to, gpuhal_sighting *seen)
{
    if (seen->physical == 0) {
        return true;
    }
    const gpuhal_database_interface wanted = {.number = seen->iface};
    gpuhal_database_interface *iface = gpuhal_database_same(to, GPUHAL_DATABASE_INTERFACE, &wanted);
    if (seen->iface == 0) {
        iface = gpuhal_database_add(to, GPUHAL_DATABASE_INTERFACE);
        char *backend = gpuhal_text_copy_range(seen->backend ? seen->backend : "", kept_bytes(seen->backend));
        if (!iface || !backend) {
            free(backend);
            return false;
        }
        iface->backend = backend;
        iface->number = to->next_interface++;
        iface->physical = seen->physical;
        iface->first_seen = at->now;
        seen->iface = iface->number;
    }
    iface->generation = to->generation;
    iface->last_seen = at->now;
    iface->present = 1;
    return keep(&iface->partition, seen->partition) && keep(&iface->name, seen->name) &&
           keep(&iface->uuid, seen->uuid) && note_driver(&iface->drivers, seen->driver_version, at->now);
}

/* Must run before any sighting is recorded as present. */
static void note_absence(gpuhal_database *database, const char *const *listed)
{
    size_t count;
    gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    for (size_t f = 0; f < count; f++) {
        for (const char *const *backend = listed; backend && *backend; backend++) {
            if (same(interfaces[f].backend, *backend)) {
                interfaces[f].present = 0;
            }
        }
    }
}

/* Sightings above the limit are ignored, so that a plugin that lists thousands of devices does not delay every
 * start. */
static numbering begin_numbering(const gpuhal_database *database, const gpuhal_changes *changes)
{
    static match_fn *const reasons[] = {match_host, match_uuid, match_pci, match_name};
    size_t most = gpuhal_database_limit(GPUHAL_DATABASE_INTERFACE), count = changes->sighting_count;
    const numbering at = {database, changes->sightings, count < most ? count : most, changes->now};
    for (size_t i = 0; i < count; i++) {
        changes->sightings[i].physical = changes->sightings[i].iface = 0;
    }
    for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
        match_all(&at, reasons[r]);
    }
    return at;
}

/* Runs after the physical devices have numbers. The first pass over the sightings matches names, which distinguish
 * interfaces of one backend. The second pass matches renamed interfaces with the remaining records. */
static void match_interfaces(const numbering *at)
{
    for (size_t i = 0; i < 2 * at->count; i++) {
        match_interface(at, &at->sightings[i % at->count], i < at->count);
    }
}

bool gpuhal_database_number(gpuhal_database *database, const gpuhal_changes *changes)
{
    note_absence(database, changes->listed);
    const numbering at = begin_numbering(database, changes);
    /* Known devices are handled first, because the room for new devices is known only after that. */
    for (size_t i = 0; i < 2 * at.count; i++) {
        const gpuhal_sighting *seen = &at.sightings[i % at.count];
        bool known = number_of(&at, seen->group) != 0;
        if ((known || i >= at.count) && !note_physical(&at, database, seen)) {
            return false;
        }
    }
    match_interfaces(&at);
    for (size_t i = 0; i < at.count; i++) {
        if (!note_interface(&at, database, &at.sightings[i])) {
            return false;
        }
    }
    return true;
}

/* Rates how well a recorded interface matches, 0 for not at all. A UUID that differs, as after a driver update,
 * excludes only interfaces with another number. */
static int likeness(const gpuhal_database *database, const gpuhal_sighting *seen,
                    const gpuhal_database_interface *known)
{
    const gpuhal_database_physical wanted = {.number = known->physical};
    const gpuhal_database_physical *physical = gpuhal_database_same(database, GPUHAL_DATABASE_PHYSICAL, &wanted);
    const char *pci = physical ? physical->pci : NULL;
    const bool is_known = known->number == seen->known, has_uuid = states_same_uuid(seen, known),
               has_pci = same_said(seen->pci, pci), has_name = has_same_name(seen, known);
    if (!same(seen->backend, known->backend) || !same(seen->partition, known->partition) ||
        (!has_uuid && !has_pci && is_said(seen->pci) && is_said(pci))) {
        return 0;
    }
    const bool may_be =
        has_uuid || (is_known ? has_name || has_pci : has_name && !(is_said(seen->uuid) && is_said(known->uuid)));
    return may_be ? 8 * has_uuid + 4 * has_pci + 2 * has_name + is_known : 0;
}

uint32_t gpuhal_database_find(const gpuhal_database *database, const gpuhal_sighting *seen)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    uint32_t number = 0;
    int best = 0;
    for (size_t f = 0; f < count; f++) {
        const int now = likeness(database, seen, &interfaces[f]);
        if (now > 0 && now >= best) {
            number = now > best ? interfaces[f].number : 0; /* equal matches are ambiguous */
            best = now;
        }
    }
    return number;
}

/* ---- no change */

static bool would_keep(const char *kept, const char *seen)
{
    return !is_said(seen) || same_name(kept, seen);
}

static bool is_fresh(uint64_t last_seen, uint64_t now)
{
    return now < last_seen || now - last_seen < FRESH_SECONDS;
}

static bool physical_is_noted(const numbering *at, size_t index)
{
    const gpuhal_sighting *seen = &at->sightings[index];
    const gpuhal_database_physical wanted = {.number = seen->physical};
    const gpuhal_database_physical *physical = gpuhal_database_same(at->database, GPUHAL_DATABASE_PHYSICAL, &wanted);
    uint32_t vendor = group_vendor(at, seen->group);
    if (is_beyond(at->database, seen->physical)) {
        return true;
    }
    return physical && is_fresh(physical->last_seen, at->now) && physical->host == group_is_host(at, seen->group) &&
           (vendor == 0 || vendor == physical->vendor_id) && would_keep(physical->pci, group_pci(at, seen->group)) &&
           (!names_physical(at, seen) || would_keep(physical->name, seen->name));
}

static bool interface_is_noted(const numbering *at, const gpuhal_sighting *seen)
{
    const gpuhal_database_interface wanted = {.number = seen->iface};
    const gpuhal_database_interface *iface = gpuhal_database_same(at->database, GPUHAL_DATABASE_INTERFACE, &wanted);
    if (seen->physical == 0) {
        return true;
    }
    return iface && iface->present && is_fresh(iface->last_seen, at->now) &&
           would_keep(iface->partition, seen->partition) && would_keep(iface->name, seen->name) &&
           would_keep(iface->uuid, seen->uuid) && would_keep(last_driver(iface), seen->driver_version);
}

static bool absence_is_noted(const numbering *at, const char *const *listed)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(at->database, &count);
    for (size_t f = 0; f < count; f++) {
        for (const char *const *backend = listed; interfaces[f].present && backend && *backend; backend++) {
            if (same(interfaces[f].backend, *backend) && !interface_is_taken(at, interfaces[f].number)) {
                return false;
            }
        }
    }
    return true;
}

bool gpuhal_database_has_noted(const gpuhal_database *database, const gpuhal_changes *changes)
{
    const numbering at = begin_numbering(database, changes);
    bool noted = true;
    for (size_t i = 0; i < at.count && noted; i++) {
        noted = physical_is_noted(&at, i);
    }
    if (noted) {
        match_interfaces(&at);
    }
    for (size_t i = 0; i < at.count && noted; i++) {
        noted = interface_is_noted(&at, &at.sightings[i]);
    }
    return noted && absence_is_noted(&at, changes->listed);
}
