/* device/identity.c: see identity.h. Levels are processed from the strongest to the weakest. At each level, interfaces
 * with the same value are joined, unless a stronger level contradicts. A contradicted value is doubted for all
 * interfaces that state it. Otherwise the order of the interfaces would determine the device of a third interface with
 * the same UUID. For the same reason, values are processed in the order of their text, and makers in numerical
 * order. */
#include "device/identity.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* vendor ids from this value on denote the author of a driver (Mesa, PoCL) or a chip, not the maker */
#define FIRST_KHRONOS 0x10000u

/* The sets found so far, as a disjoint-set forest. */
typedef struct joiner {
    gpuhal_identity *identity;
    uint32_t *parents;
    uint32_t *members; /* members of the group being processed */
    uint32_t count;
} joiner;

/* The loop terminates because unite() gives parents lower numbers than their children. */
static uint32_t root_of(const joiner *join, uint32_t iface)
{
    while (join->parents[iface] != iface) {
        iface = join->parents[iface];
    }
    return iface;
}

/* The lower number becomes the root, so the root is the set's first interface. */
static void unite(joiner *join, uint32_t a, uint32_t b)
{
    a = root_of(join, a);
    b = root_of(join, b);
    join->parents[a > b ? a : b] = a > b ? b : a;
}

static gpuhal_status refuse(joiner *join, gpuhal_refusal refusal)
{
    gpuhal_identity *identity = join->identity;
    if (identity->refusal_count == identity->refusal_capacity) {
        uint32_t capacity = identity->refusal_capacity ? 2 * identity->refusal_capacity : 8;
        gpuhal_refusal *list = realloc(identity->refusals, capacity * sizeof *list);
        if (!list) {
            return gpuhal_error_host_memory();
        }
        identity->refusals = list;
        identity->refusal_capacity = capacity;
    }
    identity->refusals[identity->refusal_count++] = refusal;
    return GPUHAL_OK;
}

/* Finds an interface in each set such that the two state different places at this level. If both sets state a common
 * place, there is no contradiction, because another level separated the sets. */
static bool find_two_places(const joiner *join, gpuhal_identity_level level, const uint32_t sets[2],
                            uint32_t out_witness[2])
{
    const gpuhal_interface *interfaces = join->identity->interfaces;
    bool found = false;
    for (uint32_t a = 0; a < join->identity->count; a++) {
        bool stated = interfaces[a].values[level] && root_of(join, a) == sets[0];
        for (uint32_t b = 0; stated && b < join->identity->count; b++) {
            if (!interfaces[b].values[level] || root_of(join, b) != sets[1]) {
                continue;
            }
            if (strcmp(interfaces[a].values[level], interfaces[b].values[level]) == 0) {
                return false;
            }
            out_witness[0] = found ? out_witness[0] : a;
            out_witness[1] = found ? out_witness[1] : b;
            found = true;
        }
    }
    return found;
}

/* Finds an interface in each set such that one driver lists both as separate devices. MoltenVK reports one UUID and no
 * address for two equal cards (KhronosGroup/MoltenVK#2683). */
static bool find_one_driver(const joiner *join, const uint32_t sets[2], uint32_t out_witness[2])
{
    const gpuhal_interface *interfaces = join->identity->interfaces;
    for (uint32_t a = 0; a < join->identity->count; a++) {
        for (uint32_t b = 0; root_of(join, a) == sets[0] && b < join->identity->count; b++) {
            bool partitions = *interfaces[a].partition_name && *interfaces[b].partition_name &&
                              strcmp(interfaces[a].partition_name, interfaces[b].partition_name) != 0;
            if (root_of(join, b) == sets[1] && !partitions &&
                gpuhal_interface_same_driver(&interfaces[a], &interfaces[b])) {
                out_witness[0] = a;
                out_witness[1] = b;
                return true;
            }
        }
    }
    return false;
}

static bool contradict(const joiner *join, gpuhal_identity_level level, const uint32_t sets[2],
                       gpuhal_refusal *out_refusal)
{
    for (gpuhal_identity_level stronger = GPUHAL_IDENTITY_PCI; stronger <= GPUHAL_IDENTITY_DRM && stronger < level;
         stronger++) {
        out_refusal->doubt = stronger == GPUHAL_IDENTITY_PCI ? GPUHAL_DOUBT_PCI : GPUHAL_DOUBT_DRM;
        if (find_two_places(join, stronger, sets, out_refusal->witness)) {
            return true;
        }
    }
    out_refusal->doubt = GPUHAL_DOUBT_ONE_DRIVER;
    return level > GPUHAL_IDENTITY_DRM && find_one_driver(join, sets, out_refusal->witness);
}

static bool is_first_of_set(const joiner *join, uint32_t member)
{
    for (uint32_t k = 0; k < member; k++) {
        if (root_of(join, join->members[k]) == root_of(join, join->members[member])) {
            return false;
        }
    }
    return true;
}

/* The order of the members may affect which contradiction is found, but not whether there is one. */
static bool find_contradiction(const joiner *join, gpuhal_identity_level level, gpuhal_refusal *out_refusal)
{
    for (uint32_t i = 0; i < join->count; i++) {
        for (uint32_t k = 0; k < i && is_first_of_set(join, i); k++) {
            const uint32_t sets[] = {root_of(join, join->members[k]), root_of(join, join->members[i])};
            if (is_first_of_set(join, k) && contradict(join, level, sets, out_refusal)) {
                return true;
            }
        }
    }
    return false;
}

/* Joins all members, which state the same value. If two of them contradict each other, joins none. */
static gpuhal_status join_members(joiner *join, gpuhal_identity_level level)
{
    /* Check all pairs before joining any. A join cannot be undone, so otherwise the order would affect the result. */
    gpuhal_refusal refusal = {.level = level, .iface = join->members[0]};
    bool doubted = find_contradiction(join, level, &refusal);
    for (uint32_t i = 0; i < join->count; i++) {
        if (doubted) {
            join->identity->interfaces[join->members[i]].doubted |= 1u << level;
        } else {
            unite(join, join->members[i], join->members[0]);
        }
    }
    return doubted ? refuse(join, refusal) : GPUHAL_OK;
}

static bool states(const gpuhal_interface *iface, gpuhal_identity_level level, const char *value)
{
    return iface->values[level] && strcmp(iface->values[level], value) == 0;
}

/* Among the interfaces with this UUID, replaces vendor ids that do not denote a maker by the maker that the others
 * state, if they state only one. */
static void settle_makers(gpuhal_identity *identity, const char *uuid)
{
    uint64_t only = 0;
    bool several = false;
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_interface *iface = &identity->interfaces[i];
        if (states(iface, GPUHAL_IDENTITY_UUID, uuid) && iface->maker && iface->maker < FIRST_KHRONOS) {
            several = several || (only && only != iface->maker);
            only = iface->maker;
        }
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        gpuhal_interface *iface = &identity->interfaces[i];
        if (states(iface, GPUHAL_IDENTITY_UUID, uuid) && iface->maker >= FIRST_KHRONOS && only && !several) {
            iface->maker = only;
        }
    }
}

static uint64_t next_maker(const gpuhal_identity *identity, const char *uuid, uint64_t maker)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_interface *iface = &identity->interfaces[i];
        if (states(iface, GPUHAL_IDENTITY_UUID, uuid) && iface->maker > maker && (!next || iface->maker < next)) {
            next = iface->maker;
        }
    }
    return next;
}

/* UUIDs are unique only within one vendor, so each maker's interfaces are processed separately. */
static gpuhal_status join_uuid(joiner *join, const char *uuid)
{
    gpuhal_identity *identity = join->identity;
    settle_makers(identity, uuid);
    /* A device without a vendor has maker 0 and is skipped, so its UUID joins no interfaces. */
    for (uint64_t maker = next_maker(identity, uuid, 0); maker; maker = next_maker(identity, uuid, maker)) {
        join->count = 0;
        for (uint32_t i = 0; i < identity->count; i++) {
            if (states(&identity->interfaces[i], GPUHAL_IDENTITY_UUID, uuid) &&
                identity->interfaces[i].maker == maker) {
                join->members[join->count++] = i;
            }
        }
        gpuhal_status status = join_members(join, GPUHAL_IDENTITY_UUID);
        if (status) {
            return status;
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status join_value(joiner *join, gpuhal_identity_level level, const char *value)
{
    if (level == GPUHAL_IDENTITY_UUID) {
        return join_uuid(join, value);
    }
    join->count = 0;
    for (uint32_t i = 0; i < join->identity->count; i++) {
        if (states(&join->identity->interfaces[i], level, value)) {
            join->members[join->count++] = i;
        }
    }
    return join_members(join, level);
}

static gpuhal_status join_level(joiner *join, gpuhal_identity_level level)
{
    const char *done = NULL;
    for (;;) {
        const char *next = NULL;
        for (uint32_t i = 0; i < join->identity->count; i++) {
            const char *value = join->identity->interfaces[i].values[level];
            if (value && (!done || strcmp(value, done) > 0) && (!next || strcmp(value, next) < 0)) {
                next = value;
            }
        }
        if (!next) {
            return GPUHAL_OK;
        }
        gpuhal_status status = join_value(join, level, next);
        if (status) {
            return status;
        }
        done = next;
    }
}

/* Interfaces of the CPU have no values, so the levels do not affect them. Sets are numbered by their first
 * interface. */
static gpuhal_status join_all(joiner *join)
{
    gpuhal_identity *identity = join->identity;
    uint32_t host = UINT32_MAX;
    for (uint32_t i = 0; i < identity->count; i++) {
        join->parents[i] = i;
        if (identity->interfaces[i].host) {
            host = host == UINT32_MAX ? i : host;
            unite(join, i, host);
        }
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
        gpuhal_status status = join_level(join, level);
        if (status) {
            return status;
        }
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < identity->count; i++) {
        uint32_t root = root_of(join, i);
        identity->interfaces[i].physical = root == i ? next++ : identity->interfaces[root].physical;
    }
    return GPUHAL_OK;
}

/* A driver that lists a physical device several times lists its partitions (tiles), even if it does not name them. Only
 * equal UUIDs show that the driver itself is present twice and lists one device twice. In doubt, the interfaces count
 * as partitions, so that none is ignored. */
static bool has_unnamed_sibling(const gpuhal_identity *identity, uint32_t index)
{
    const gpuhal_interface *iface = &identity->interfaces[index];
    const char *uuid = iface->values[GPUHAL_IDENTITY_UUID];
    for (uint32_t i = 0; i < identity->count && !iface->host && !*iface->partition_name; i++) {
        const gpuhal_interface *other = &identity->interfaces[i];
        bool twice = uuid && states(other, GPUHAL_IDENTITY_UUID, uuid);
        if (i != index && other->physical == iface->physical && !*other->partition_name && !twice &&
            gpuhal_interface_same_driver(iface, other)) {
            return true;
        }
    }
    return false;
}

static const char *partition_by_value(const gpuhal_identity *identity, const gpuhal_interface *iface)
{
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_DRM; level < GPUHAL_IDENTITY_HOST && !*iface->partition_name;
         level++) {
        const char *name = NULL;
        bool several = false;
        for (uint32_t i = 0; i < identity->count && iface->values[level]; i++) {
            const gpuhal_interface *other = &identity->interfaces[i];
            if (other->physical == iface->physical && *other->partition_name &&
                states(other, level, iface->values[level])) {
                several = several || (name && strcmp(name, other->partition_name) != 0);
                name = other->partition_name;
            }
        }
        if (name && !several) {
            return name;
        }
    }
    return NULL;
}

/* `numbers` has one element for each interface. Each loop reads only results of earlier loops and writes no data that
 * it reads itself, so the order of the interfaces does not matter. For this reason all siblings are found before the
 * first is named, and all names that follow from values before the first is set. */
static void find_parts(gpuhal_identity *identity, uint32_t *numbers)
{
    gpuhal_interface *interfaces = identity->interfaces;
    for (uint32_t i = 0; i < identity->count; i++) {
        numbers[i] = has_unnamed_sibling(identity, i);
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const char *uuid = interfaces[i].values[GPUHAL_IDENTITY_UUID];
        if (numbers[i]) {
            snprintf(interfaces[i].partition_space, sizeof interfaces[i].partition_space, "number %" PRIu32,
                     interfaces[i].index);
            interfaces[i].partition_name = uuid ? uuid : interfaces[i].partition_space;
        }
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const char *name = partition_by_value(identity, &interfaces[i]);
        numbers[i] = UINT32_MAX;
        for (uint32_t k = 0; name && numbers[i] == UINT32_MAX; k++) {
            numbers[i] =
                interfaces[k].physical == interfaces[i].physical && strcmp(interfaces[k].partition_name, name) == 0
                    ? k
                    : UINT32_MAX;
        }
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        if (numbers[i] != UINT32_MAX) {
            interfaces[i].partition_name = interfaces[numbers[i]].partition_name;
        }
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        interfaces[i].partition = 0;
        /* The loop ends at the interface itself at the latest. */
        while (interfaces[interfaces[i].partition].physical != interfaces[i].physical ||
               strcmp(interfaces[interfaces[i].partition].partition_name, interfaces[i].partition_name) != 0) {
            interfaces[i].partition++;
        }
    }
}

gpuhal_status gpuhal_identity_find(gpuhal_identity *identity)
{
    joiner join = {
        .identity = identity,
        .parents = calloc(identity->count + 1u, sizeof *join.parents),
        .members = calloc(identity->count + 1u, sizeof *join.members),
    };
    gpuhal_status status = join.parents && join.members ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_interfaces_read(identity);
        status = join_all(&join);
    }
    if (!status) {
        find_parts(identity, join.members);
    }
    free(join.parents);
    free(join.members);
    return status;
}

void gpuhal_identity_finish(gpuhal_identity *identity)
{
    free(identity->interfaces);
    free(identity->refusals);
    *identity = (gpuhal_identity){0};
}
