/* device/evidence.c: why faces are one piece of hardware, or stay apart although something speaks for one; in words.
 *
 * The matches of one piece of hardware form a graph. Of it the evidence keeps a tree from the first visible face to all others,
 * strongest matches where there is a choice; hidden faces stay in it only as bridges. */
#include "device/identity.h"

#include "core/error.h"
#include "core/text.h"

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

static bool same_text(const gpuhal_face *a, const gpuhal_face *b, gpuhal_identity_level level)
{
    return a->values[level] && b->values[level] && strcmp(a->values[level], b->values[level]) == 0;
}

bool gpuhal_face_same_value(const gpuhal_face *a, const gpuhal_face *b, gpuhal_identity_level level)
{
    return same_text(a, b, level) && (level != GPUHAL_IDENTITY_UUID || (a->maker && a->maker == b->maker));
}

gpuhal_identity_level gpuhal_identity_direct(const gpuhal_face *a, const gpuhal_face *b)
{
    if (a->host || b->host) {
        return a->host && b->host ? GPUHAL_IDENTITY_HOST : GPUHAL_IDENTITY_LEVELS;
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
        bool doubted = (a->doubted | b->doubted) >> level & 1u;
        if (gpuhal_face_same_value(a, b, level) && !doubted) {
            return level;
        }
    }
    return GPUHAL_IDENTITY_LEVELS;
}

/* Parts of one GPU match by what the whole states; that they are not the same thing is said too. */
static char *word_match(const gpuhal_face *face, const gpuhal_face *other, gpuhal_identity_level level)
{
    if (level == GPUHAL_IDENTITY_HOST) {
        const gpuhal_face *cpu = strcmp(other->backend, "cpu") == 0 ? other : strcmp(face->backend, "cpu") == 0 ? face : NULL;
        const gpuhal_face *program = cpu == face ? other : face;
        return cpu ? gpuhal_text_format("%s runs on the host's processor, which is %s", program->id, cpu->id)
                   : gpuhal_text_format("%s and %s both run on the host's processor", face->id, other->id);
    }
    const char *words = levels[level].words, *value = face->values[level];
    if (face->part == other->part) {
        return gpuhal_text_format("%s and %s state the same %s, %s", face->id, other->id, words, value);
    }
    if (*face->part_name && *other->part_name) {
        return gpuhal_text_format("%s and %s state the same %s, %s; they are its parts %s and %s", face->id, other->id, words,
                                  value, face->part_name, other->part_name);
    }
    const gpuhal_face *part = *face->part_name ? face : other;
    return gpuhal_text_format("%s and %s state the same %s, %s; %s is its part %s", face->id, other->id, words, value, part->id,
                              part->part_name);
}

/* Names the two faces that contradict each other: those that are compared, where they do, else the pair that was found. */
static char *word_doubt(const gpuhal_identity *identity, const gpuhal_refusal *refusal, const gpuhal_face *face,
                        const gpuhal_face *other)
{
    const gpuhal_face *a = &identity->faces[refusal->witness[0]], *b = &identity->faces[refusal->witness[1]];
    const char *words = levels[refusal->level].words;
    if (refusal->doubt == GPUHAL_DOUBT_ONE_DRIVER && gpuhal_face_same_driver(face, other)) {
        return gpuhal_text_format(
            "%s and %s state the same %s, but that tells nothing: one driver lists both as devices of their own", face->id,
            other->id, words);
    }
    if (refusal->doubt == GPUHAL_DOUBT_ONE_DRIVER) {
        return gpuhal_text_format(
            "%s and %s state the same %s, but that tells nothing: one driver lists %s and %s as two devices", face->id, other->id,
            words, a->id, b->id);
    }
    gpuhal_identity_level by = refusal->doubt == GPUHAL_DOUBT_PCI ? GPUHAL_IDENTITY_PCI : GPUHAL_IDENTITY_DRM;
    if (face->values[by] && other->values[by] && !same_text(face, other, by)) {
        a = other;
        b = face;
    }
    return gpuhal_text_format("%s and %s state the same %s, but that tells nothing: %s is at %s %s and %s at %s", face->id,
                              other->id, words, a->id, levels[by].words, a->values[by], b->id, b->values[by]);
}

static char *word_vendors(const gpuhal_face *face, const gpuhal_face *other)
{
    const char *words = levels[GPUHAL_IDENTITY_UUID].words;
    if (face->maker && other->maker) {
        return gpuhal_text_format("%s and %s state the same %s, but their vendors differ: 0x%04" PRIx64 " and 0x%04" PRIx64,
                                  face->id, other->id, words, face->maker, other->maker);
    }
    return gpuhal_text_format("%s and %s state the same %s, but that counts within one vendor, and %s does not tell its vendor",
                              face->id, other->id, words, face->maker ? other->id : face->id);
}

/* Takes the sentence over; without memory nothing is added. */
static gpuhal_status add(gpuhal_identity_evidence_list *list, const gpuhal_face *face, const gpuhal_face *other,
                         gpuhal_identity_level level, bool same, char *sentence)
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
        .physical = face->physical,
        .sentence = sentence,
        .evidence =
            {
                .size = sizeof(gpuhal_evidence),
                .same = same,
                .device = face->id,
                .other = other->id,
                .matched_by = levels[level].name,
                .value = face->values[level] ? face->values[level] : "",
                .sentence = sentence,
            },
    };
    return GPUHAL_OK;
}

/* Of the faces that are reached already, the best one to match `face` with: a visible one before a hidden one, a strong match
 * before a weak one, the root before others. */
static uint32_t best_parent(const gpuhal_identity *identity, const uint32_t *parents, uint32_t face)
{
    uint32_t best = NONE, best_cost = NONE;
    for (uint32_t i = 0; i < identity->count; i++) {
        gpuhal_identity_level level = gpuhal_identity_direct(&identity->faces[face], &identity->faces[i]);
        if (parents[i] == NONE || identity->faces[i].physical != identity->faces[face].physical ||
            level == GPUHAL_IDENTITY_LEVELS) {
            continue;
        }
        uint32_t cost = 2u * level + (parents[i] != i);
        best = cost < best_cost ? i : best;
        best_cost = cost < best_cost ? cost : best_cost;
    }
    return best;
}

/* The next face to reach: a visible one if any, else a hidden one that may be a bridge. */
static uint32_t next_face(const gpuhal_identity *identity, const bool *visible, const uint32_t *parents, uint32_t *out_parent)
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

/* Where the tree of a piece of hardware starts: at the first visible face, for the host's processor at `cpu`, which is it. */
static bool is_root(const gpuhal_identity *identity, const bool *visible, uint32_t face)
{
    const gpuhal_face *faces = identity->faces;
    bool is_cpu = strcmp(faces[face].backend, "cpu") == 0;
    for (uint32_t i = 0; i < identity->count; i++) {
        bool other_is_cpu = strcmp(faces[i].backend, "cpu") == 0;
        bool before = other_is_cpu == is_cpu ? i < face : other_is_cpu;
        if (visible[i] && before && faces[i].physical == faces[face].physical) {
            return false;
        }
    }
    return visible[face];
}

/* Reaches every face from the root of its hardware. parents[i] is i for roots, NONE for what nothing visible needs. */
static void grow_trees(const gpuhal_identity *identity, const bool *visible, uint32_t *parents)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        parents[i] = is_root(identity, visible, i) ? i : NONE;
    }
    uint32_t parent = NONE;
    for (uint32_t i = next_face(identity, visible, parents, &parent); i != NONE;
         i = next_face(identity, visible, parents, &parent)) {
        parents[i] = parent;
    }
    /* Hidden leaves fall, until none is left. */
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

/* The earlier visible face to compare this one with at a level at which both state the same: the first of the same maker, else
 * the first. NONE where there is none, and where one of the same hardware has told all there is to tell. */
static uint32_t find_rival(const gpuhal_identity *identity, const bool *visible, uint32_t face, gpuhal_identity_level level)
{
    const gpuhal_face *faces = identity->faces;
    uint32_t first = NONE, first_of_maker = NONE;
    for (uint32_t i = 0; i < face; i++) {
        if (!visible[i] || !same_text(&faces[i], &faces[face], level)) {
            continue;
        }
        if (faces[i].physical == faces[face].physical) {
            return NONE;
        }
        first = first == NONE ? i : first;
        bool of_maker = first_of_maker == NONE && gpuhal_face_same_value(&faces[i], &faces[face], level);
        first_of_maker = of_maker ? i : first_of_maker;
    }
    return first_of_maker == NONE ? first : first_of_maker;
}

/* Why a face is not one with an earlier one that states the same. */
static gpuhal_status tell_apart(const gpuhal_identity *identity, const bool *visible, uint32_t index, gpuhal_identity_level level,
                                gpuhal_identity_evidence_list *out_list)
{
    uint32_t rival = visible[index] ? find_rival(identity, visible, index, level) : NONE;
    if (rival == NONE) {
        return GPUHAL_OK;
    }
    const gpuhal_face *face = &identity->faces[index], *other = &identity->faces[rival];
    if (!gpuhal_face_same_value(face, other, level)) {
        return add(out_list, face, other, level, false, word_vendors(face, other));
    }
    for (uint32_t i = 0; i < identity->refusal_count; i++) {
        const gpuhal_refusal *refusal = &identity->refusals[i];
        if (refusal->level == level && gpuhal_face_same_value(face, &identity->faces[refusal->face], level)) {
            return add(out_list, face, other, level, false, word_doubt(identity, refusal, face, other));
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_identity_tell(const gpuhal_identity *identity, const bool *visible, gpuhal_identity_evidence_list *out_list)
{
    const gpuhal_face *faces = identity->faces;
    uint32_t *parents = calloc(identity->count + 1u, sizeof *parents);
    if (!parents) {
        return gpuhal_error_host_memory();
    }
    grow_trees(identity, visible, parents);
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; !status && i < identity->count; i++) {
        if (parents[i] != NONE && parents[i] != i) {
            const gpuhal_face *other = &faces[parents[i]];
            gpuhal_identity_level level = gpuhal_identity_direct(&faces[i], other);
            status = add(out_list, &faces[i], other, level, true, word_match(&faces[i], other, level));
        }
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_DRM; level < GPUHAL_IDENTITY_HOST; level++) {
        for (uint32_t i = 0; !status && i < identity->count; i++) {
            status = tell_apart(identity, visible, i, level, out_list);
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
