/* device/known.c: see known.h. */
#include "device/known.h"

#include "core/error.h"
#include "loader/verdict.h"
#include "registry/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

gpuhal_status gpuhal_devices_know(gpuhal *gpu, gpuhal_listing *listing)
{
    const gpuhal_identity *identity = &listing->identity;
    const char **listed = listed_backends(&listing->candidates);
    gpuhal_sighting *sightings = calloc(listing->fresh + 1u, sizeof *sightings);
    gpuhal_status status = listed && sightings ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_changes changes = {
            .now = gpuhal_os_wall_clock(),
            .sightings = sightings,
            .sighting_count = listing->fresh,
            .listed = listed,
            .plugins = listing->candidates.learned,
            .plugin_count = listing->candidates.learned_count,
            .faults = listing->candidates.faults,
            .fault_count = listing->candidates.fault_count,
        };
        for (uint32_t i = 0; i < listing->fresh; i++) {
            sightings[i] = sighting_of(&identity->faces[i]);
        }
        status = update(gpu->registry, &changes);
    }
    for (uint32_t i = 0; !status && i < listing->fresh; i++) {
        listing->entries[i].known_physical = sightings[i].physical;
        listing->entries[i].known_face = sightings[i].face;
    }
    free(sightings);
    free(listed);
    return status;
}

/* ---- what is different once the plugin is loaded */

/* Two devices of one plugin find the same difference: the record is written once. */
static bool is_kept(gpuhal_registry *registry, const gpuhal_known_plugin *record)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_known_plugin *kept = gpuhal_content_same(&snapshot->content, GPUHAL_RECORD_PLUGIN, record);
    bool same = kept && gpuhal_verdict_same(kept, record);
    gpuhal_snapshot_release(snapshot);
    return same;
}

/* What is learned under other circumstances than those of the listing is not put in its place. */
static bool has_record(const gpuhal *gpu, const gpuhal_candidate *candidate)
{
    return candidate->identity && candidate->key.count > 0 && gpuhal_verdict_holds(&gpu->settings, candidate);
}

/* Puts the record in the place of what was remembered under the circumstances of the newest listing. */
static void replace_record(gpuhal *gpu, const gpuhal_candidate *candidate, gpuhal_plugin_state state, const char *reason,
                           const gpuhal_listed_devices *devices)
{
    gpuhal_known_plugin record = {0};
    bool good = gpuhal_verdict_record(candidate, devices, &record);
    record.state = state;
    if (reason) {
        free(record.reason);
        record.reason = gpuhal_text_copy(reason);
    }
    gpuhal_changes changes = {.now = record.met, .plugins = &record, .plugin_count = 1};
    gpuhal_status status = GPUHAL_OK;
    if (good && !is_kept(gpu->registry, &record)) {
        status = update(gpu->registry, &changes);
    }
    if (!good || status) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "%s: there is no memory left to remember what changed", candidate->name);
    }
    gpuhal_record_finish(GPUHAL_RECORD_PLUGIN, &record);
}

/* A driver that was started before the look knows less of the machine than the helper that looked: it has nothing to tell. */
void gpuhal_known_compare(gpuhal_device *device, const gpuhal_backend *backend, const gpuhal_listed_device *now)
{
    const gpuhal_listing *listing = gpuhal_listing_now(device->gpu);
    const gpuhal_entry *entry = gpuhal_listing_entry(listing, device);
    if (!entry || gpuhal_backend_begun_ns(backend) < listing->begun_ns || atomic_exchange(&device->compared, true)) {
        return;
    }
    char sentence[GPUHAL_DIFFERENCE_BYTES];
    snprintf(sentence, sizeof sentence, "%s was listed, and is not there now", device->id);
    bool differs = !now || gpuhal_listed_differ(device->id, entry->listed, now, 0, sentence);
    if (!differs && !gpuhal_listed_drifted(entry->listed, now)) {
        return;
    }
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    if (differs) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s", sentence);
    }
    if (has_record(device->gpu, entry->candidate)) {
        replace_record(device->gpu, entry->candidate, GPUHAL_PLUGIN_OK, NULL, gpuhal_backend_devices(backend));
    }
    if (differs && device->gpu->layers.on_changed) {
        device->gpu->layers.on_changed(device, sentence);
    }
    gpuhal_error_restore(&before);
}

void gpuhal_known_failed(gpuhal_device *device, gpuhal_status status)
{
    const gpuhal_entry *entry = gpuhal_listing_entry(gpuhal_listing_now(device->gpu), device);
    bool of_the_plugin = status != GPUHAL_ERROR_FORKED && status != GPUHAL_ERROR_HOST_MEMORY && status != GPUHAL_ERROR_BUSY;
    if (!entry || !of_the_plugin || !has_record(device->gpu, entry->candidate) || atomic_exchange(&device->compared, true)) {
        return;
    }
    gpuhal_error_detail before;
    const gpuhal_listed_devices none = {0};
    gpuhal_error_save(&before);
    replace_record(device->gpu, entry->candidate, GPUHAL_PLUGIN_BROKEN, before.sentence, &none);
    gpuhal_error_restore(&before);
}

/* Another process may have recorded it since the registry was read here. */
static bool is_quarantined(gpuhal_registry *registry, const char *identity)
{
    gpuhal_registry_refresh(registry);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    size_t count;
    const gpuhal_known_plugin *plugins = gpuhal_content_plugins(&snapshot->content, &count);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = gpuhal_known_is_quarantine(&plugins[i], identity);
    }
    gpuhal_snapshot_release(snapshot);
    return found;
}

void gpuhal_known_opened(gpuhal_device *device)
{
    const gpuhal_entry *entry = gpuhal_listing_entry(gpuhal_listing_now(device->gpu), device);
    const char *identity = entry ? entry->candidate->identity : NULL;
    if (!identity || !is_quarantined(device->gpu->registry, identity)) {
        return;
    }
    gpuhal_changes changes = {.now = gpuhal_os_wall_clock(), .proven = identity};
    if (update(device->gpu->registry, &changes)) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s: there is no memory left to end its quarantine", device->candidate->name);
    }
}
