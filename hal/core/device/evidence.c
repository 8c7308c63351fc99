/* device/evidence.c: explains why interfaces belong to one physical device, or to two although they share a value.
 *
 * The matches within a physical device form a graph. The evidence is a spanning tree from the first visible interface
 * to all others. Each interface is added with its strongest match to the tree. Hidden interfaces stay in the tree only
 * as bridges.
 */
#include "device/identity.h"

#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

static const struct {
    const char *name, *words;
} levels[GPUHAL_IDENTITY_LEVELS] = {
    [GPUHAL_IDENTITY_PCI] = {"pci_address", "PCI address"},
    [GPUHAL_IDENTITY_DRM] = {"drm_render_node", "DRM render node"},
    [GPUHAL_IDENTITY_UUID] = {"uuid", "UUID"},
    [GPUHAL_IDENTITY_LUID] = {"luid", "LUID"},
    [GPUHAL_IDENTITY_HOST] = {"host_processor", "host's processor"},
};

static bool same_text(const gpuhal_interface *a, const gpuhal_interface *b, gpuhal_identity_level level)
{
    return a->values[level] && b->values[level] && strcmp(a->values[level], b->values[level]) == 0;
}

static bool same_value(const gpuhal_interface *a, const gpuhal_interface *b, gpuhal_identity_level level)
{
    return same_text(a, b, level) && (level != GPUHAL_IDENTITY_UUID || (a->maker && a->maker == b->maker));
}

static gpuhal_identity_level match_directly(const gpuhal_interface *a, const gpuhal_interface *b)
{
    if (a->host || b->host) {
        return a->host && b->host ? GPUHAL_IDENTITY_HOST : GPUHAL_IDENTITY_LEVELS;
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
        bool doubted = (a->doubted | b->doubted) >> level & 1u;
        if (same_value(a, b, level) && !doubted) {
            return level;
        }
    }
    return GPUHAL_IDENTITY_LEVELS;
}

/* Partitions of one GPU match by values of the whole GPU. For them, the sentence names the partitions. */
static char *describe_match(const gpuhal_interface *iface, const gpuhal_interface *other, gpuhal_identity_level level)
{
    if (level == GPUHAL_IDENTITY_HOST) {
        const gpuhal_interface *cpu = strcmp(other->backend, "cpu") == 0   ? other
                                      : strcmp(iface->backend, "cpu") == 0 ? iface
                                                                           : NULL;
        const gpuhal_interface *program = cpu == iface ? other : iface;
        return cpu ? gpuhal_text_format("%s runs on the host's processor, which is %s", program->id, cpu->id)
                   : gpuhal_text_format("%s and %s both run on the host's processor", iface->id, other->id);
    }
    const char *words = levels[level].words, *value = iface->values[level];
    if (iface->partition == other->partition) {
        return gpuhal_text_format("%s and %s state the same %s, %s", iface->id, other->id, words, value);
    }
    if (*iface->partition_name && *other->partition_name) {
        return gpuhal_text_format("%s and %s state the same %s, %s; they are its partitions %s and %s", iface->id,
                                  other->id, words, value, iface->partition_name, other->partition_name);
    }
    const gpuhal_interface *partition = *iface->partition_name ? iface : other;
    return gpuhal_text_format("%s and %s state the same %s, %s; %s is its partition %s", iface->id, other->id, words,
                              value, partition->id, partition->partition_name);
}

/* Names two interfaces that contradict each other: the compared interfaces if they do, otherwise the refusal's
 * witnesses. */
static char *describe_doubt(const gpuhal_identity *identity, const gpuhal_refusal *refusal,
                            const gpuhal_interface *iface, const gpuhal_interface *other)
{
    const gpuhal_interface *a = &identity->interfaces[refusal->witness[0]],
                           *b = &identity->interfaces[refusal->witness[1]];
    const char *words = levels[refusal->level].words;
    if (refusal->doubt == GPUHAL_DOUBT_ONE_DRIVER && gpuhal_interface_same_driver(iface, other)) {
        return gpuhal_text_format(
            "%s and %s state the same %s, but that identifies neither: one driver lists both as separate devices",
            iface->id, other->id, words);
    }
    if (refusal->doubt == GPUHAL_DOUBT_ONE_DRIVER) {
        return gpuhal_text_format(
            "%s and %s state the same %s, but that identifies neither: one driver lists %s and %s as two devices",
            iface->id, other->id, words, a->id, b->id);
    }
    gpuhal_identity_level by = refusal->doubt == GPUHAL_DOUBT_PCI ? GPUHAL_IDENTITY_PCI : GPUHAL_IDENTITY_DRM;
    if (iface->values[by] && other->values[by] && !same_text(iface, other, by)) {
        a = other;
        b = iface;
    }
    return gpuhal_text_format("%s and %s state the same %s, but that identifies neither: %s is at %s %s and %s at %s",
                              iface->id, other->id, words, a->id, levels[by].words, a->values[by], b->id,
                              b->values[by]);
}

static char *describe_vendors(const gpuhal_interface *iface, const gpuhal_interface *other)
{
    const char *words = levels[GPUHAL_IDENTITY_UUID].words;
    if (iface->maker && other->maker) {
        return gpuhal_text_format("%s and %s state the same %s, but their vendors differ: 0x%04" PRIx64
                                  " and 0x%04" PRIx64,
                                  iface->id, other->id, words, iface->maker, other->maker);
    }
    return gpuhal_text_format(
        "%s and %s state the same %s, but that is unique only within one vendor, and %s does not state its vendor",
        iface->id, other->id, words, iface->maker ? other->id : iface->id);
}

/* Takes ownership of the sentence. Adds nothing if out of memory. */
static gpuhal_status add(gpuhal_identity_evidence_list *list, const gpuhal_interface *iface,
                         const gpuhal_interface *other, gpuhal_identity_level level, bool same, char *sentence)
{
    if (sentence && list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 16;
        gpuhal_identity_evidence *grown = realloc(list->list, capacity * sizeof *grown);
        if (!grown) {
            free(sentence);
            return gpuhal_error_host_memory();
        }
        list->list = grown;
        list->capacity = capacity;
    }
    if (!sentence) {
        return gpuhal_error_host_memory();
    }
    list->list[list->count++] = (gpuhal_identity_evidence){
        .physical = iface->physical,
        .sentence = sentence,
        .evidence =
            {
                .size = sizeof(gpuhal_evidence),
                .same = same,
                .device = iface->id,
                .other = other->id,
                .matched_by = levels[level].name,
                .value = iface->values[level] ? iface->values[level] : "",
                .sentence = sentence,
            },
    };
    return GPUHAL_OK;
}

/* If several matches are equally strong, the root is preferred. */
static uint32_t best_parent(const gpuhal_identity *identity, const uint32_t *parents, uint32_t iface)
{
    uint32_t best = NONE, best_cost = NONE;
    for (uint32_t i = 0; i < identity->count; i++) {
        gpuhal_identity_level level = match_directly(&identity->interfaces[iface], &identity->interfaces[i]);
        if (parents[i] == NONE || identity->interfaces[i].physical != identity->interfaces[iface].physical ||
            level == GPUHAL_IDENTITY_LEVELS) {
            continue;
        }
        uint32_t cost = 2u * level + (parents[i] != i);
        best = cost < best_cost ? i : best;
        best_cost = cost < best_cost ? cost : best_cost;
    }
    return best;
}

/* Prefers a visible interface to a hidden interface that may be a bridge. */
static uint32_t next_interface(const gpuhal_identity *identity, const bool *visible, const uint32_t *parents,
                               uint32_t *out_parent)
{
    for (int hidden = 0; hidden < 2; hidden++) {
        for (uint32_t i = 0; i < identity->count; i++) {
            if (parents[i] != NONE || visible[i] == (hidden == 1)) {
                continue;
            }
            *out_parent = best_parent(identity, parents, i);
            if (*out_parent != NONE) {
                return i;
            }
        }
    }
    return NONE;
}

/* The tree of the host's CPU starts at `cpu` if `cpu` is visible. */
static bool is_root(const gpuhal_identity *identity, const bool *visible, uint32_t iface)
{
    const gpuhal_interface *interfaces = identity->interfaces;
    bool is_cpu = strcmp(interfaces[iface].backend, "cpu") == 0;
    for (uint32_t i = 0; i < identity->count; i++) {
        bool other_is_cpu = strcmp(interfaces[i].backend, "cpu") == 0;
        bool before = other_is_cpu == is_cpu ? i < iface : other_is_cpu;
        if (visible[i] && before && interfaces[i].physical == interfaces[iface].physical) {
            return false;
        }
    }
    return visible[iface];
}

/* parents[i] is i for roots, and NONE for hidden interfaces that are not needed as bridges. */
static void grow_trees(const gpuhal_identity *identity, const bool *visible, uint32_t *parents)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        parents[i] = is_root(identity, visible, i) ? i : NONE;
    }
    uint32_t parent = NONE;
    for (uint32_t i = next_interface(identity, visible, parents, &parent); i != NONE;
         i = next_interface(identity, visible, parents, &parent)) {
        parents[i] = parent;
    }
    /* Remove hidden leaves until none is left. */
    for (bool fallen = true; fallen;) {
        fallen = false;
        for (uint32_t i = 0; i < identity->count; i++) {
            bool leaf = parents[i] != NONE && !visible[i];
            for (uint32_t k = 0; k < identity->count; k++) {
                leaf = leaf && (k == i || parents[k] != i);
            }
            fallen = fallen || leaf;
            parents[i] = leaf ? NONE : parents[i];
        }
    }
}

/* Returns an earlier visible interface that states the same value at this level. Returns the first of the same maker,
 * otherwise the first; NONE if there is none, or if an interface of the same physical device was explained already. */
static uint32_t find_rival(const gpuhal_identity *identity, const bool *visible, uint32_t iface,
                           gpuhal_identity_level level)
{
    const gpuhal_interface *interfaces = identity->interfaces;
    uint32_t first = NONE, first_of_maker = NONE;
    for (uint32_t i = 0; i < iface; i++) {
        if (!visible[i] || !same_text(&interfaces[i], &interfaces[iface], level)) {
            continue;
        }
        if (interfaces[i].physical == interfaces[iface].physical) {
            return NONE;
        }
        first = first == NONE ? i : first;
        bool of_maker = first_of_maker == NONE && same_value(&interfaces[i], &interfaces[iface], level);
        first_of_maker = of_maker ? i : first_of_maker;
    }
    return first_of_maker == NONE ? first : first_of_maker;
}

static gpuhal_status explain_difference(const gpuhal_identity *identity, const bool *visible, uint32_t index,
                                        gpuhal_identity_level level, gpuhal_identity_evidence_list *out_list)
{
    uint32_t rival = visible[index] ? find_rival(identity, visible, index, level) : NONE;
    if (rival == NONE) {
        return GPUHAL_OK;
    }
    const gpuhal_interface *iface = &identity->interfaces[index], *other = &identity->interfaces[rival];
    if (!same_value(iface, other, level)) {
        return add(out_list, iface, other, level, false, describe_vendors(iface, other));
    }
    for (uint32_t i = 0; i < identity->refusal_count; i++) {
        const gpuhal_refusal *refusal = &identity->refusals[i];
        if (refusal->level == level && same_value(iface, &identity->interfaces[refusal->iface], level)) {
            return add(out_list, iface, other, level, false, describe_doubt(identity, refusal, iface, other));
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_identity_explain(const gpuhal_identity *identity, const bool *visible,
                                      gpuhal_identity_evidence_list *out_list)
{
    const gpuhal_interface *interfaces = identity->interfaces;
    uint32_t *parents = calloc(identity->count + 1u, sizeof *parents);
    if (!parents) {
        return gpuhal_error_host_memory();
    }
    grow_trees(identity, visible, parents);
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; !status && i < identity->count; i++) {
        if (parents[i] != NONE && parents[i] != i) {
            const gpuhal_interface *other = &interfaces[parents[i]];
            gpuhal_identity_level level = match_directly(&interfaces[i], other);
            status = add(out_list, &interfaces[i], other, level, true, describe_match(&interfaces[i], other, level));
        }
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_DRM; level < GPUHAL_IDENTITY_HOST; level++) {
        for (uint32_t i = 0; !status && i < identity->count; i++) {
            status = explain_difference(identity, visible, i, level, out_list);
        }
    }
    free(parents);
    return status;
}

void gpuhal_identity_evidence_finish(gpuhal_identity_evidence_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->list[i].sentence);
    }
    free(list->list);
    *list = (gpuhal_identity_evidence_list){0};
}
