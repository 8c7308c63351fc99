/* device/cached.c: see cached.h. */
#include "device/cached.h"

#include "base/error.h"
#include "loader/probe_cache.h"
#include "registry/fields.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns NULL for a doubted value, because a value that several devices share identifies none of them. The identity
 * already omits values of software devices. */
static const char *stated(const gpuhal_interface *iface, gpuhal_identity_level level)
{
    return iface->doubted & 1u << level ? NULL : iface->values[level];
}

static gpuhal_sighting sighting_of(const gpuhal_interface *iface)
{
    return (gpuhal_sighting){
        .group = iface->physical,
        .host = iface->host,
        .vendor_id = iface->host ? 0 : (uint32_t)gpuhal_facts_u64(iface->facts, GPUHAL_FACT_VENDOR_ID, 0),
        .pci = stated(iface, GPUHAL_IDENTITY_PCI),
        .uuid = stated(iface, GPUHAL_IDENTITY_UUID),
        .backend = iface->backend,
        .partition = iface->partition_name,
        .name = gpuhal_facts_text(iface->facts, GPUHAL_FACT_NAME),
        .driver_version = gpuhal_facts_text(iface->facts, GPUHAL_FACT_DRIVER_VERSION),
    };
}

/* Returns the backends whose devices are completely known now, including backends without devices. No device
 * of the other backends is recorded as absent. The list ends with NULL. Returns NULL if out of memory. */
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

/* Returns HOST_MEMORY with its detail. Otherwise returns OK and preserves the error detail, because an unwritable
 * registry is only reported in the log. */
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

gpuhal_status gpuhal_devices_know(gpuhal *gpu, gpuhal_device_snapshot *snapshot)
{
    const gpuhal_identity *identity = &snapshot->identity;
    const char **listed = listed_backends(&snapshot->candidates);
    gpuhal_sighting *sightings = calloc(snapshot->fresh + 1u, sizeof *sightings);
    gpuhal_status status = listed && sightings ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_changes changes = {
            .now = gpuhal_os_wall_clock(),
            .sightings = sightings,
            .sighting_count = snapshot->fresh,
            .listed = listed,
            .plugins = snapshot->candidates.learned,
            .plugin_count = snapshot->candidates.learned_count,
            .faults = snapshot->candidates.faults,
            .fault_count = snapshot->candidates.fault_count,
        };
        for (uint32_t i = 0; i < snapshot->fresh; i++) {
            sightings[i] = sighting_of(&identity->interfaces[i]);
        }
        status = update(gpu->registry, &changes);
    }
    for (uint32_t i = 0; !status && i < snapshot->fresh; i++) {
        snapshot->entries[i].physical_number = sightings[i].physical;
        snapshot->entries[i].interface_number = sightings[i].iface;
    }
    free(sightings);
    free(listed);
    return status;
}

/* ---- differences after the plugin is loaded */

/* Two devices of one plugin find the same difference; this check makes the second skip the update. If another thread
 * stores the record between this check and the update, it is stored twice with the same contents. */
static bool is_kept(gpuhal_registry *registry, const gpuhal_database_plugin *record)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_plugin *kept = gpuhal_database_same(&snapshot->database, GPUHAL_DATABASE_PLUGIN, record);
    bool same = kept && gpuhal_probe_cache_same(kept, record);
    gpuhal_snapshot_release(snapshot);
    return same;
}

/* A result with another key must not replace the snapshot's record. */
static bool has_record(const gpuhal *gpu, const gpuhal_candidate *candidate)
{
    return candidate->identity && candidate->key.count > 0 && gpuhal_probe_cache_is_valid(&gpu->settings, candidate);
}

/* Replaces the cached result under the key of the newest snapshot. */
static void replace_record(gpuhal *gpu, const gpuhal_candidate *candidate, gpuhal_plugin_state state,
                           const char *reason, const gpuhal_listed_devices *devices)
{
    gpuhal_database_plugin record = {0};
    bool good = gpuhal_probe_cache_record(candidate, devices, &record);
    record.state = state;
    if (reason) {
        free(record.reason);
        record.reason = gpuhal_text_copy(reason);
    }
    gpuhal_changes changes = {.now = record.probed_at, .plugins = &record, .plugin_count = 1};
    gpuhal_status status = GPUHAL_OK;
    if (good && !is_kept(gpu->registry, &record)) {
        status = update(gpu->registry, &changes);
    }
    if (!good || status) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "%s: out of memory, the change is not cached", candidate->name);
    }
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &record);
}

/* A list made before the snapshot may have older information than the helper's, so it is not compared. */
void gpuhal_cached_compare(gpuhal_device *device, const gpuhal_backend *backend, const gpuhal_listed_device *now)
{
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(device->gpu);
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(snapshot, device);
    /* Set the flag last, because a device that cannot be compared with this snapshot may be with a later one. */
    if (!entry || gpuhal_backend_begun_ns(backend) < snapshot->begun_ns || atomic_exchange(&device->compared, true)) {
        return;
    }
    char sentence[GPUHAL_DIFFERENCE_BYTES];
    snprintf(sentence, sizeof sentence, "%s was listed, but is absent now", device->id);
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

void gpuhal_cached_failed(gpuhal_device *device, gpuhal_status status)
{
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(gpuhal_device_snapshot_now(device->gpu), device);
    bool of_the_plugin =
        status != GPUHAL_ERROR_FORKED && status != GPUHAL_ERROR_HOST_MEMORY && status != GPUHAL_ERROR_BUSY;
    if (!entry || !of_the_plugin || !has_record(device->gpu, entry->candidate) ||
        atomic_exchange(&device->compared, true)) {
        return;
    }
    gpuhal_error_detail before;
    const gpuhal_listed_devices none = {0};
    gpuhal_error_save(&before);
    replace_record(device->gpu, entry->candidate, GPUHAL_PLUGIN_FAILED, before.sentence, &none);
    gpuhal_error_restore(&before);
}

/* Another process may have recorded a quarantine since this process read the registry. */
static bool is_quarantined(gpuhal_registry *registry, const char *identity)
{
    gpuhal_registry_refresh(registry);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(&snapshot->database, &count);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = gpuhal_database_is_quarantine(&plugins[i], identity);
    }
    gpuhal_snapshot_release(snapshot);
    return found;
}

void gpuhal_cached_opened(gpuhal_device *device)
{
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(gpuhal_device_snapshot_now(device->gpu), device);
    const char *identity = entry ? entry->candidate->identity : NULL;
    if (!identity || !is_quarantined(device->gpu->registry, identity)) {
        return;
    }
    gpuhal_changes changes = {.now = gpuhal_os_wall_clock(), .proven = identity};
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    if (update(device->gpu->registry, &changes)) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s: out of memory, its quarantine goes on",
                        device->candidate->name);
    }
    (void)gpuhal_error_restore(&detail);
}
