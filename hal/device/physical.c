/* device/physical.c: pieces of hardware, and the preferred face of each: the answers of gpuhal/physical.h.
 *
 * The identity is found over all devices, before some are hidden, so that hiding changes no number and tears nothing apart. It
 * points into what the candidates list, which lives as long as the gpuhal object. */
#include "device/device.h"

#include "core/error.h"
#include "device/identity.h"
#include "device/known.h"

#include <gpuhal/physical.h>

#include <stdlib.h>
#include <string.h>

struct gpuhal_hardware {
    gpuhal_identity identity;               /* of all devices, also hidden ones */
    gpuhal_identity_evidence_list evidence; /* about visible ones */
    uint32_t *pieces;                       /* pieces with a visible face, in the order of their first visible one */
    uint32_t count;
};

gpuhal_status gpuhal_devices_identify(gpuhal *gpu)
{
    struct gpuhal_hardware *hardware = calloc(1, sizeof *hardware);
    if (!hardware) {
        return gpuhal_error_host_memory();
    }
    gpu->hardware = hardware;
    hardware->identity.faces = calloc(gpu->device_count + 1u, sizeof *hardware->identity.faces);
    if (!hardware->identity.faces) {
        return gpuhal_error_host_memory();
    }
    hardware->identity.count = gpu->device_count;
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        const gpuhal_device *device = gpu->devices[d];
        gpuhal_face *face = &hardware->identity.faces[d];
        face->backend = device->candidate->name;
        face->index = device->listed->index;
        face->facts = &device->listed->facts;
    }
    gpuhal_status status = gpuhal_identity_find(&hardware->identity);
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        gpu->devices[d]->face = d;
        gpu->devices[d]->piece = hardware->identity.faces[d].physical;
    }
    return status ? status : gpuhal_devices_know(gpu, &hardware->identity);
}

static const gpuhal_face *face_of(const gpuhal_device *device)
{
    return &device->gpu->hardware->identity.faces[device->face];
}

bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b)
{
    return face_of(a)->part == face_of(b)->part;
}

static bool states_text(const gpuhal_device *device, gpuhal_key key, const char *text)
{
    const char *stated = gpuhal_facts_text(&device->listed->facts, key);
    return stated && strcmp(stated, text) == 0;
}

/* What a program on the processor states as its address is that of a card which it draws for. */
bool gpuhal_device_at_pci(const gpuhal_device *device, const char *address)
{
    const gpuhal_identity *identity = &device->gpu->hardware->identity;
    char canonical[24];
    if (!face_of(device)->host && states_text(device, GPUHAL_FACT_PCI_ADDRESS, address)) {
        return true;
    }
    for (uint32_t i = 0; gpuhal_identity_pci(address, canonical) && i < identity->count; i++) {
        const gpuhal_face *face = &identity->faces[i];
        if (face->physical == device->piece && strcmp(face->pci, canonical) == 0) {
            return true;
        }
    }
    return false;
}

/* A UUID that several devices state, or a program on the processor, names none of them but by itself. */
bool gpuhal_device_has_uuid(const gpuhal_device *device, const char *uuid)
{
    const gpuhal_identity *identity = &device->gpu->hardware->identity;
    if (states_text(device, GPUHAL_FACT_UUID, uuid)) {
        return true;
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_face *face = &identity->faces[i];
        const char *value = face->values[GPUHAL_IDENTITY_UUID];
        if (face->part == face_of(device)->part && value && strcmp(value, uuid) == 0) {
            return true;
        }
    }
    return false;
}

/* `cpu` comes last in the order of backends and is yet the face to use: a software device never outranks it. */
static bool outranks(const gpuhal_device *later, const gpuhal_device *earlier)
{
    return strcmp(later->candidate->name, "cpu") == 0 && strcmp(earlier->candidate->name, "cpu") != 0;
}

/* Among the earlier faces of a part exactly one is preferred; the next face takes its place or stands back. */
static void mark_preferred(const gpuhal *gpu)
{
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        device->preferred = 1;
        for (uint32_t e = 0; e < d; e++) {
            gpuhal_device *earlier = gpu->devices[e];
            if (earlier->preferred && gpuhal_devices_same_part(device, earlier)) {
                earlier->preferred = outranks(device, earlier) ? 0 : 1;
                device->preferred = !earlier->preferred;
            }
        }
    }
}

static bool is_listed(const struct gpuhal_hardware *hardware, uint32_t piece)
{
    for (uint32_t i = 0; i < hardware->count; i++) {
        if (hardware->pieces[i] == piece) {
            return true;
        }
    }
    return false;
}

/* Evidence and the list of pieces are about visible devices, so they come once it is known which are. */
gpuhal_status gpuhal_devices_prefer(gpuhal *gpu)
{
    struct gpuhal_hardware *hardware = gpu->hardware;
    mark_preferred(gpu);
    bool *visible = calloc(hardware->identity.count + 1u, sizeof *visible);
    hardware->pieces = calloc(gpu->device_count + 1u, sizeof *hardware->pieces);
    gpuhal_status status = visible && hardware->pieces ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint32_t d = 0; !status && d < gpu->device_count; d++) {
        visible[gpu->devices[d]->face] = true;
        if (!is_listed(hardware, gpu->devices[d]->piece)) {
            hardware->pieces[hardware->count++] = gpu->devices[d]->piece;
        }
    }
    if (!status) {
        status = gpuhal_identity_tell(&hardware->identity, visible, &hardware->evidence);
    }
    free(visible);
    return status;
}

void gpuhal_hardware_destroy(struct gpuhal_hardware *hardware)
{
    if (hardware) {
        gpuhal_identity_finish(&hardware->identity);
        gpuhal_identity_evidence_finish(&hardware->evidence);
        free(hardware->pieces);
        free(hardware);
    }
}

uint32_t gpuhal_physical_count(const gpuhal *gpu)
{
    return gpu ? gpu->hardware->count : 0;
}

/* The `index`-th visible face of a piece; NULL past the last. */
static gpuhal_device *nth_face(const gpuhal *gpu, uint32_t piece, uint32_t index)
{
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        if (gpu->devices[d]->piece == piece && index-- == 0) {
            return gpu->devices[d];
        }
    }
    return NULL;
}

/* The `index`-th item about a piece; NULL past the last. */
static const gpuhal_evidence *nth_evidence(const gpuhal *gpu, uint32_t piece, uint32_t index)
{
    const gpuhal_identity_evidence_list *list = &gpu->hardware->evidence;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->list[i].physical == piece && index-- == 0) {
            return &list->list[i].evidence;
        }
    }
    return NULL;
}

/* The first that a face of the whole states. What a program on the processor states is not the processor's. */
static const char *first_value(const gpuhal *gpu, uint32_t piece, gpuhal_identity_level level)
{
    const gpuhal_identity *identity = &gpu->hardware->identity;
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
    const char *address = first_value(device->gpu, device->piece, GPUHAL_IDENTITY_PCI);
    return *address ? address : NULL;
}

/* Places are counted through without gaps; numbers are those of the registry. */
static gpuhal_status past_the_last(const gpuhal *gpu, uint32_t index)
{
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there are %u physical devices, none has the place %u", gpu->hardware->count,
                            index);
}

gpuhal_status gpuhal_physical_get(const gpuhal *gpu, uint32_t index, gpuhal_physical_device *out_physical)
{
    if (!gpu || !out_physical || out_physical->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_physical_get: an argument is NULL, or the size is 0");
    }
    if (index >= gpu->hardware->count) {
        return past_the_last(gpu, index);
    }
    uint32_t size = out_physical->size, piece = gpu->hardware->pieces[index];
    gpuhal_physical_device physical = {
        .size = size,
        .number = nth_face(gpu, piece, 0)->known_physical,
        .pci_address = first_value(gpu, piece, GPUHAL_IDENTITY_PCI),
        .uuid = first_value(gpu, piece, GPUHAL_IDENTITY_UUID),
    };
    while (nth_face(gpu, piece, physical.face_count)) {
        physical.face_count++;
    }
    while (nth_evidence(gpu, piece, physical.evidence_count)) {
        physical.evidence_count++;
    }
    memcpy(out_physical, &physical, size < sizeof physical ? size : sizeof physical);
    return GPUHAL_OK;
}

gpuhal_device *gpuhal_physical_face(const gpuhal *gpu, uint32_t index, uint32_t face)
{
    return gpu && index < gpu->hardware->count ? nth_face(gpu, gpu->hardware->pieces[index], face) : NULL;
}

gpuhal_status gpuhal_physical_evidence(const gpuhal *gpu, uint32_t index, uint32_t evidence, gpuhal_evidence *out_evidence)
{
    if (!gpu || !out_evidence || out_evidence->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_physical_evidence: an argument is NULL, or the size is 0");
    }
    if (index >= gpu->hardware->count) {
        return past_the_last(gpu, index);
    }
    uint32_t size = out_evidence->size;
    const gpuhal_evidence *found = nth_evidence(gpu, gpu->hardware->pieces[index], evidence);
    if (!found) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "physical device %u has no evidence number %u",
                                nth_face(gpu, gpu->hardware->pieces[index], 0)->known_physical, evidence);
    }
    memcpy(out_evidence, found, size < sizeof *found ? size : sizeof *found);
    out_evidence->size = size;
    return GPUHAL_OK;
}
