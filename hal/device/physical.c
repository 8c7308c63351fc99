/* device/physical.c: pieces of hardware, and the preferred face of each: the answers of gpuhal/physical.h, as of the newest listing. */
#include "device/listing.h"

#include "core/error.h"

#include <gpuhal/physical.h>

#include <stdlib.h>
#include <string.h>

const gpuhal_face *gpuhal_listing_face(const gpuhal_listing *listing, const gpuhal_device *device)
{
    const gpuhal_entry *entry = gpuhal_listing_entry(listing, device);
    return entry ? &listing->identity.faces[entry - listing->entries] : NULL;
}

bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b)
{
    const gpuhal_listing *listing = gpuhal_listing_now(a->gpu);
    const gpuhal_face *one = gpuhal_listing_face(listing, a), *other = gpuhal_listing_face(listing, b);
    return a == b || (one && other && one->part == other->part);
}

bool gpuhal_devices_same_piece(const gpuhal_device *a, const gpuhal_device *b)
{
    const gpuhal_listing *listing = gpuhal_listing_now(a->gpu);
    const gpuhal_face *one = gpuhal_listing_face(listing, a), *other = gpuhal_listing_face(listing, b);
    return a == b || (one && other && one->physical == other->physical);
}

static bool states_text(const gpuhal_device *device, gpuhal_key key, const char *text)
{
    const char *stated = gpuhal_facts_text(&device->listed->facts, key);
    return stated && strcmp(stated, text) == 0;
}

/* What a program on the processor states as its address is that of a card which it draws for. */
bool gpuhal_device_at_pci(const gpuhal_listing *listing, const gpuhal_device *device, const char *address)
{
    const gpuhal_identity *identity = &listing->identity;
    const gpuhal_face *own = gpuhal_listing_face(listing, device);
    char canonical[24];
    if (!own->host && states_text(device, GPUHAL_FACT_PCI_ADDRESS, address)) {
        return true;
    }
    for (uint32_t i = 0; gpuhal_identity_pci(address, canonical) && i < identity->count; i++) {
        const gpuhal_face *face = &identity->faces[i];
        if (face->physical == own->physical && strcmp(face->pci, canonical) == 0) {
            return true;
        }
    }
    return false;
}

/* A UUID that several devices state, or a program on the processor, names none of them but by itself. */
bool gpuhal_device_has_uuid(const gpuhal_listing *listing, const gpuhal_device *device, const char *uuid)
{
    const gpuhal_identity *identity = &listing->identity;
    const gpuhal_face *own = gpuhal_listing_face(listing, device);
    if (states_text(device, GPUHAL_FACT_UUID, uuid)) {
        return true;
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_face *face = &identity->faces[i];
        const char *value = face->values[GPUHAL_IDENTITY_UUID];
        if (face->part == own->part && value && strcmp(value, uuid) == 0) {
            return true;
        }
    }
    return false;
}

/* `cpu` comes last in the order of backends and is yet the face to use: a software device never outranks it. */
static bool outranks(const gpuhal_entry *later, const gpuhal_entry *earlier)
{
    return strcmp(later->candidate->name, "cpu") == 0 && strcmp(earlier->candidate->name, "cpu") != 0;
}

/* Among the earlier faces of a part exactly one is preferred; the next face takes its place or stands back. */
static void mark_preferred(gpuhal_listing *listing)
{
    const gpuhal_face *faces = listing->identity.faces;
    for (uint32_t i = 0; i < listing->identity.count; i++) {
        gpuhal_entry *entry = &listing->entries[i];
        entry->preferred = entry->device != NULL;
        for (uint32_t e = 0; entry->device && e < i; e++) {
            gpuhal_entry *earlier = &listing->entries[e];
            if (earlier->preferred && faces[i].part == faces[e].part) {
                earlier->preferred = !outranks(entry, earlier);
                entry->preferred = !earlier->preferred;
            }
        }
    }
}

static bool is_listed(const gpuhal_listing *listing, uint32_t piece)
{
    for (uint32_t i = 0; i < listing->piece_count; i++) {
        if (listing->pieces[i] == piece) {
            return true;
        }
    }
    return false;
}

gpuhal_status gpuhal_listing_prefer(gpuhal_listing *listing)
{
    const gpuhal_identity *identity = &listing->identity;
    mark_preferred(listing);
    bool *visible = calloc(identity->count + 1u, sizeof *visible);
    listing->pieces = calloc(identity->count + 1u, sizeof *listing->pieces);
    gpuhal_status status = visible && listing->pieces ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint32_t i = 0; !status && i < identity->count; i++) {
        visible[i] = listing->entries[i].device != NULL;
        if (visible[i] && !is_listed(listing, identity->faces[i].physical)) {
            listing->pieces[listing->piece_count++] = identity->faces[i].physical;
        }
    }
    status = status ? status : gpuhal_identity_tell(identity, visible, &listing->evidence);
    free(visible);
    return status;
}

uint32_t gpuhal_physical_count(const gpuhal *gpu)
{
    return gpu ? gpuhal_listing_now(gpu)->piece_count : 0;
}

/* The `index`-th visible face of a piece; NULL past the last. */
static gpuhal_device *nth_face(const gpuhal_listing *listing, uint32_t piece, uint32_t index)
{
    for (uint32_t i = 0; i < listing->identity.count; i++) {
        if (listing->entries[i].device && listing->identity.faces[i].physical == piece && index-- == 0) {
            return listing->entries[i].device;
        }
    }
    return NULL;
}

/* The `index`-th item about a piece; NULL past the last. */
static const gpuhal_evidence *nth_evidence(const gpuhal_listing *listing, uint32_t piece, uint32_t index)
{
    const gpuhal_identity_evidence_list *list = &listing->evidence;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->list[i].physical == piece && index-- == 0) {
            return &list->list[i].evidence;
        }
    }
    return NULL;
}

/* The first that a face of the whole states. What a program on the processor states is not the processor's. */
static const char *first_value(const gpuhal_listing *listing, uint32_t piece, gpuhal_identity_level level)
{
    const gpuhal_identity *identity = &listing->identity;
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_face *face = &identity->faces[i];
        bool whole = level == GPUHAL_IDENTITY_PCI || !*face->part_name;
        if (face->physical == piece && whole && face->values[level]) {
            return face->values[level];
        }
    }
    return "";
}

const char *gpuhal_device_hardware_address(const gpuhal_device *device)
{
    const gpuhal_listing *listing = gpuhal_listing_now(device->gpu);
    const gpuhal_face *face = gpuhal_listing_face(listing, device);
    const char *address = face ? first_value(listing, face->physical, GPUHAL_IDENTITY_PCI) : "";
    return *address ? address : NULL;
}

/* Places are counted through without gaps; numbers are those of the registry. */
static gpuhal_status past_the_last(const gpuhal_listing *listing, uint32_t index)
{
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there are %u physical devices, none has the place %u", listing->piece_count,
                            index);
}

gpuhal_status gpuhal_physical_get(const gpuhal *gpu, uint32_t index, gpuhal_physical_device *out_physical)
{
    if (!gpu || !out_physical || out_physical->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_physical_get: an argument is NULL, or the size is 0");
    }
    const gpuhal_listing *listing = gpuhal_listing_now(gpu);
    if (index >= listing->piece_count) {
        return past_the_last(listing, index);
    }
    uint32_t size = out_physical->size, piece = listing->pieces[index];
    gpuhal_physical_device physical = {
        .size = size,
        .number = nth_face(listing, piece, 0)->known_physical,
        .pci_address = first_value(listing, piece, GPUHAL_IDENTITY_PCI),
        .uuid = first_value(listing, piece, GPUHAL_IDENTITY_UUID),
    };
    while (nth_face(listing, piece, physical.face_count)) {
        physical.face_count++;
    }
    while (nth_evidence(listing, piece, physical.evidence_count)) {
        physical.evidence_count++;
    }
    memcpy(out_physical, &physical, size < sizeof physical ? size : sizeof physical);
    return GPUHAL_OK;
}

gpuhal_device *gpuhal_physical_face(const gpuhal *gpu, uint32_t index, uint32_t face)
{
    const gpuhal_listing *listing = gpu ? gpuhal_listing_now(gpu) : NULL;
    return listing && index < listing->piece_count ? nth_face(listing, listing->pieces[index], face) : NULL;
}

gpuhal_status gpuhal_physical_evidence(const gpuhal *gpu, uint32_t index, uint32_t evidence, gpuhal_evidence *out_evidence)
{
    if (!gpu || !out_evidence || out_evidence->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_physical_evidence: an argument is NULL, or the size is 0");
    }
    const gpuhal_listing *listing = gpuhal_listing_now(gpu);
    if (index >= listing->piece_count) {
        return past_the_last(listing, index);
    }
    uint32_t size = out_evidence->size;
    const gpuhal_evidence *found = nth_evidence(listing, listing->pieces[index], evidence);
    if (!found) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "physical device %u has no evidence number %u",
                                nth_face(listing, listing->pieces[index], 0)->known_physical, evidence);
    }
    memcpy(out_evidence, found, size < sizeof *found ? size : sizeof *found);
    out_evidence->size = size;
    return GPUHAL_OK;
}
