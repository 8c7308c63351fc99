/* device/known.c: see known.h. */
#include "device/known.h"

#include "core/error.h"

#include <stdlib.h>

/* What several devices state alike names none of them, and a program on the processor states what is not its own: the identity leaves
 * the latter out, and doubts the former. */
static const char *stated(const gpuhal_face *face, gpuhal_identity_level level)
{
    return face->doubted & 1u << level ? NULL : face->values[level];
}

static gpuhal_sighting sighting_of(const gpuhal_face *face)
{
    return (gpuhal_sighting){
        .group = face->physical,
        .host = face->host,
        .vendor_id = face->host ? 0 : (uint32_t)gpuhal_facts_u64(face->facts, GPUHAL_FACT_VENDOR_ID, 0),
        .pci = stated(face, GPUHAL_IDENTITY_PCI),
        .uuid = stated(face, GPUHAL_IDENTITY_UUID),
        .backend = face->backend,
        .part = face->part_name,
        .name = gpuhal_facts_text(face->facts, GPUHAL_FACT_NAME),
        .driver_version = gpuhal_facts_text(face->facts, GPUHAL_FACT_DRIVER_VERSION),
    };
}

/* Backends whose devices are all known now, be it that there are none. Of the others nothing is learned. Ends with NULL; NULL without
 * memory. */
static const char **listed_backends(const gpuhal_candidates *candidates)
{
    const char **names = calloc(candidates->count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; names && i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        if (candidate->state == GPUHAL_PLUGIN_OK || candidate->state == GPUHAL_PLUGIN_NO_DEVICE) {
            names[count++] = candidate->name;
        }
    }
    return names;
}

/* The error detail stays as it was: that something is not remembered is the log's business. */
static gpuhal_status update(gpuhal_registry *registry, gpuhal_changes *changes)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_status status = gpuhal_registry_update(registry, changes);
    if (status == GPUHAL_ERROR_HOST_MEMORY) {
        return status;
    }
    gpuhal_error_restore(&before);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_devices_know(gpuhal *gpu, const gpuhal_identity *identity)
{
    const char **listed = listed_backends(&gpu->candidates);
    gpuhal_sighting *sightings = calloc(identity->count + 1u, sizeof *sightings);
    gpuhal_status status = listed && sightings ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_changes changes = {
            .now = gpuhal_os_wall_clock(),
            .sightings = sightings,
            .sighting_count = identity->count,
            .listed = listed,
            .plugins = gpu->candidates.learned,
            .plugin_count = gpu->candidates.learned_count,
            .faults = gpu->candidates.faults,
            .fault_count = gpu->candidates.fault_count,
        };
        for (uint32_t i = 0; i < identity->count; i++) {
            sightings[i] = sighting_of(&identity->faces[i]);
        }
        status = update(gpu->registry, &changes);
    }
    for (uint32_t i = 0; !status && i < identity->count; i++) {
        gpu->devices[i]->known_physical = sightings[i].physical;
        gpu->devices[i]->known_face = sightings[i].face;
    }
    free(sightings);
    free(listed);
    return status;
}
