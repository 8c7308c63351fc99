/* device/snapshot.c: see snapshot.h. Plugins' lists become entries, and entries are matched with device objects. An
 * entry without an object is a new device. An object without an entry is a device that is no longer listed. A snapshot
 * is complete before it is published, so a failure changes nothing. */
#include "device/snapshot.h"

#include "base/error.h"
#include "device/cached.h"
#include "device/link.h"
#include "device/selector.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpuhal_device_snapshot_free(gpuhal_device_snapshot *snapshot)
{
    if (snapshot) {
        gpuhal_identity_finish(&snapshot->identity);
        gpuhal_identity_evidence_finish(&snapshot->evidence);
        gpuhal_candidates_finish(&snapshot->candidates);
        free(snapshot->entries);
        free(snapshot->physicals);
        free(snapshot->interfaces);
        free(snapshot->devices);
        free(snapshot->places);
        free(snapshot);
    }
}

/* ---- entries */

/* If a plugin failed or did not run, the absence of a device from its list does not mean that the device has
 * vanished. */
static bool has_result(const gpuhal_candidates *candidates, const char *backend)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        bool complete = candidate->state == GPUHAL_PLUGIN_OK || candidate->state == GPUHAL_PLUGIN_NO_DEVICE;
        if (complete && candidate->name && strcmp(candidate->name, backend) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_found_again(const gpuhal_device_snapshot *snapshot, const gpuhal_entry *was)
{
    for (uint32_t i = 0; i < snapshot->fresh; i++) {
        const gpuhal_entry *entry = &snapshot->entries[i];
        if (strcmp(entry->candidate->name, was->candidate->name) == 0 &&
            gpuhal_listed_same(entry->listed, was->listed)) {
            return true;
        }
    }
    return false;
}

static void add_entry(gpuhal_device_snapshot *snapshot, const gpuhal_candidate *candidate,
                      const gpuhal_listed_device *listed)
{
    uint32_t number = snapshot->identity.count++;
    gpuhal_interface *iface = &snapshot->identity.interfaces[number];
    snapshot->entries[number].candidate = candidate;
    snapshot->entries[number].listed = listed;
    iface->backend = candidate->name;
    iface->index = listed->index;
    iface->facts = &listed->facts;
}

/* Collects all devices that the candidates list, and then the earlier entries of backends without a result in this
 * enumeration, including hidden entries. A kept entry points into the candidates of an older snapshot, so a published
 * snapshot is not freed before newer ones. gpuhal_devices_destroy() frees all of them. */
static gpuhal_status gather(const gpuhal_device_snapshot *before, gpuhal_device_snapshot *snapshot)
{
    size_t most = before ? before->identity.count : 0;
    for (size_t c = 0; c < snapshot->candidates.count; c++) {
        most += snapshot->candidates.list[c].devices.count;
    }
    snapshot->entries = calloc(most + 1, sizeof *snapshot->entries);
    snapshot->identity.interfaces = calloc(most + 1, sizeof *snapshot->identity.interfaces);
    if (!snapshot->entries || !snapshot->identity.interfaces) {
        return gpuhal_error_host_memory();
    }
    for (size_t c = 0; c < snapshot->candidates.count; c++) {
        const gpuhal_candidate *candidate = &snapshot->candidates.list[c];
        for (size_t i = 0; i < candidate->devices.count; i++) {
            if (gpuhal_listed_is_device(&candidate->devices.list[i])) {
                add_entry(snapshot, candidate, &candidate->devices.list[i]);
            }
        }
    }
    /* Later entries belong to backends without a result. Their devices stay, with their numbers. */
    snapshot->fresh = snapshot->identity.count;
    for (uint32_t i = 0; before && i < before->identity.count; i++) {
        const gpuhal_entry *was = &before->entries[i];
        if (!has_result(&snapshot->candidates, was->candidate->name) && !is_found_again(snapshot, was)) {
            add_entry(snapshot, was->candidate, was->listed);
            gpuhal_entry *entry = &snapshot->entries[snapshot->identity.count - 1];
            entry->physical_number = was->physical_number;
            entry->interface_number = was->interface_number;
        }
    }
    return GPUHAL_OK;
}

/* The earlier devices have no entry yet. */
static gpuhal_status make_room(const gpuhal_device_snapshot *before, gpuhal_device_snapshot *snapshot)
{
    uint32_t old = before ? before->device_count : 0;
    size_t most = (size_t)old + snapshot->identity.count + 1;
    snapshot->devices = calloc(most, sizeof(gpuhal_device *));
    snapshot->places = calloc(most, sizeof *snapshot->places);
    if (!snapshot->devices || !snapshot->places) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t d = 0; d < old; d++) {
        snapshot->devices[d] = before->devices[d];
        snapshot->places[d] = GPUHAL_NOWHERE;
    }
    snapshot->device_count = old;
    return GPUHAL_OK;
}

/* ---- new devices */

static bool is_taken(const gpuhal_device_snapshot *snapshot, const char *backend, uint32_t index, bool also_gone)
{
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        const gpuhal_device *device = snapshot->devices[d];
        bool counts = also_gone || snapshot->places[d] != GPUHAL_NOWHERE;
        if (counts && device->index == index && strcmp(device->candidate->name, backend) == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; also_gone && i < snapshot->identity.count; i++) {
        if (snapshot->entries[i].listed->index == index && strcmp(snapshot->entries[i].candidate->name, backend) == 0) {
            return true;
        }
    }
    return false;
}

/* A driver that counts from 0 again may use an index that is already in another device's id. Two listed devices never
 * have the same id. */
static uint32_t index_for(const gpuhal_device_snapshot *snapshot, const gpuhal_entry *entry)
{
    uint32_t index = entry->listed->index;
    if (is_taken(snapshot, entry->candidate->name, index, false)) {
        for (index = 0; is_taken(snapshot, entry->candidate->name, index, true);) {
            index++;
        }
    }
    return index;
}

/* Until the snapshot is published, no other thread can have found a new device, so drop_devices() may destroy it. */
static gpuhal_status make_devices(gpuhal *gpu, gpuhal_device_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        gpuhal_entry *entry = &snapshot->entries[i];
        if (entry->device) {
            continue;
        }
        gpuhal_device *device = gpuhal_device_create(gpu, entry->candidate, entry->listed, index_for(snapshot, entry));
        if (!device) {
            return gpuhal_error_host_memory();
        }
        device->physical_number = entry->physical_number;
        device->interface_number = entry->interface_number;
        device->position = snapshot->device_count;
        entry->device = device;
        entry->is_new = true;
        snapshot->places[snapshot->device_count] = i;
        snapshot->devices[snapshot->device_count++] = device;
    }
    return GPUHAL_OK;
}

/* The lowest limit applies, so the lists can only lower memory_limit_bytes. */
static void limit_memory(gpuhal_device *device, const uint64_t limits[2])
{
    uint64_t lowest = atomic_load(&device->limit_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        lowest = limits[i] > 0 && (lowest == 0 || limits[i] < lowest) ? limits[i] : lowest;
    }
    atomic_store(&device->limit_bytes, lowest);
}

/* Removes the hidden devices from position `old` on, or all of them if `kept` is NULL. Devices below `old` are from an
 * earlier snapshot and may be in use, so they are never destroyed here. The remaining devices are moved to close the
 * gaps, so that position and index in the list stay equal. Links are found by position. */
static void drop_devices(gpuhal_device_snapshot *snapshot, uint32_t old, const gpuhal_visibility *kept)
{
    uint32_t left = old;
    for (uint32_t d = old; d < snapshot->device_count; d++) {
        gpuhal_device *device = snapshot->devices[d];
        if (kept && gpuhal_is_visible(&kept[d])) {
            limit_memory(device, kept[d].limits);
            device->position = left;
            snapshot->places[left] = snapshot->places[d];
            snapshot->devices[left++] = device;
        } else {
            snapshot->entries[snapshot->places[d]].device = NULL;
            gpuhal_device_destroy(device);
        }
    }
    snapshot->device_count = left;
}

static gpuhal_status hide_devices(const gpuhal *gpu, gpuhal_device_snapshot *snapshot, uint32_t old)
{
    if (!gpu->settings.devices && !gpu->settings.environment_devices) {
        return GPUHAL_OK;
    }
    gpuhal_device_snapshot_mark_preferred(snapshot); /* numbers refer to the list before hiding */
    gpuhal_visibility *kept = calloc(snapshot->device_count + 1u, sizeof *kept);
    gpuhal_status status = kept ? gpuhal_devices_filter(gpu, snapshot, kept) : gpuhal_error_host_memory();
    if (!status) {
        drop_devices(snapshot, old, kept);
    }
    free(kept);
    return status;
}

/* Gives every device, including older ones, links to all devices, itself included. If a later step fails, the new links
 * stay unused until the next rescan. */
static gpuhal_status grow_links(const gpuhal_device_snapshot *snapshot)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t d = 0; d < snapshot->device_count && !status; d++) {
        status = gpuhal_links_grow(snapshot->devices[d], snapshot->device_count);
    }
    return status;
}

/* ---- changes */

__attribute__((format(printf, 4, 5))) static void add_event(gpuhal_device_events *events, gpuhal_device *device,
                                                            gpuhal_change_kind kind, const char *format, ...)
{
    gpuhal_change *change = &events->list[events->count++];
    *change = (gpuhal_change){.size = sizeof *change, .kind = kind, .device = device};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(change->sentence, sizeof change->sentence, format, arguments);
    va_end(arguments);
}

static const char *text_or(const gpuhal_listed_device *listed, gpuhal_key key, const char *instead)
{
    const char *text = gpuhal_facts_text(&listed->facts, key);
    return text && *text ? text : instead;
}

static void compare(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *snapshot,
                    gpuhal_device_events *events)
{
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        gpuhal_device *device = snapshot->devices[d];
        const gpuhal_entry *entry = gpuhal_device_snapshot_entry(snapshot, device);
        if (entry && entry->is_new) {
            add_event(events, device, GPUHAL_CHANGE_APPEARED, "%s appeared: %s", device->id,
                      text_or(entry->listed, GPUHAL_FACT_NAME, "no name"));
            continue;
        }
        const gpuhal_entry *was = gpuhal_device_snapshot_entry(before, device);
        if (!entry && was) {
            add_event(events, device, GPUHAL_CHANGE_VANISHED, "%s is not listed any more", device->id);
        }
        /* If only the index in the driver differs, the device has not changed. */
        char sentence[GPUHAL_DIFFERENCE_BYTES];
        if (entry && gpuhal_listed_differ(device->id, was->listed, entry->listed, GPUHAL_FACT_NATIVE_INDEX, sentence)) {
            add_event(events, device, GPUHAL_CHANGE_CHANGED, "%s", sentence);
        }
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_report(const gpuhal_candidate *a, const gpuhal_candidate *b)
{
    return a->state == b->state && a->stage == b->stage && a->priority == b->priority && a->isolated == b->isolated &&
           a->devices.count == b->devices.count && same_text(a->name, b->name) && same_text(a->version, b->version) &&
           same_text(a->file, b->file) && same_text(a->reason, b->reason) && same_text(a->driver, b->driver) &&
           gpuhal_texts_same(&a->key, &b->key);
}

static bool is_the_same(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *snapshot,
                        const gpuhal_device_events *events)
{
    const gpuhal_candidates *old = &before->candidates, *new = &snapshot->candidates;
    bool same = events->count == 0 && before->identity.count == snapshot->identity.count && old->count == new->count &&
                old->note_count == new->note_count;
    for (uint32_t i = 0; same && i < snapshot->identity.count; i++) {
        same = before->entries[i].device == snapshot->entries[i].device;
    }
    for (size_t i = 0; same && i < new->count; i++) {
        same = same_report(&old->list[i], &new->list[i]);
    }
    for (size_t i = 0; same && i < new->note_count; i++) {
        same = same_text(old->notes[i], new->notes[i]);
    }
    return same;
}

/* ---- enumeration */

/* All steps that can fail are done before another thread can see the snapshot. The registry's numbers are read before
 * devices are created, because a new device takes its numbers from its entry. Devices are hidden before the preferred
 * interfaces are chosen, because a hidden device must not be preferred. */
static gpuhal_status prepare(gpuhal *gpu, gpuhal_device_snapshot *snapshot)
{
    const gpuhal_device_snapshot *before = gpuhal_device_snapshot_now(gpu);
    gpuhal_status status = gather(before, snapshot);
    status = status ? status : gpuhal_identity_find(&snapshot->identity);
    status = status ? status : gpuhal_devices_know(gpu, snapshot);
    status = status ? status : make_room(before, snapshot);
    if (status) {
        return status;
    }
    gpuhal_entries_match(gpu, snapshot);
    uint32_t old = snapshot->device_count;
    status = make_devices(gpu, snapshot);
    status = status ? status : hide_devices(gpu, snapshot, old);
    status = status ? status : gpuhal_device_snapshot_prefer(snapshot);
    status = status ? status : grow_links(snapshot);
    if (status) {
        drop_devices(snapshot, old, NULL);
    }
    return status;
}

/* Links must exist for every device before the device can be found. Only one thread at a time runs this function. The
 * atomic store makes the whole snapshot visible. Older snapshots are kept, because readers take no lock and no
 * reference. */
static void publish(gpuhal *gpu, gpuhal_device_snapshot *snapshot)
{
    uint64_t now = gpuhal_os_wall_clock();
    snapshot->older = atomic_load(&gpu->snapshot);
    atomic_store(&gpu->snapshot, snapshot);
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        gpuhal_device *device = snapshot->devices[d];
        /* A device without an entry is not new, so it has the same position in the older snapshot. */
        if (snapshot->places[d] == GPUHAL_NOWHERE && snapshot->older->places[d] != GPUHAL_NOWHERE) {
            /* Write the time before the state, because the time is read only after the state is set. HUNG is never
             * replaced, because it forbids all plugin calls, whereas VANISHED still allows the plugin to release
             * objects of the device. */
            uint32_t lost = atomic_load(&device->lost);
            device->vanished = now;
            while (lost != GPUHAL_LOST_HUNG &&
                   !atomic_compare_exchange_weak(&device->lost, &lost, (uint32_t)GPUHAL_LOST_VANISHED)) {
            }
        }
    }
}

static gpuhal_status list(gpuhal *gpu, gpuhal_device_events *out_events)
{
    const gpuhal_device_snapshot *before = gpuhal_device_snapshot_now(gpu);
    *out_events = (gpuhal_device_events){0};
    gpuhal_device_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) {
        return gpuhal_error_host_memory();
    }
    /* Without a registry, results are neither looked up nor stored. */
    snapshot->begun_ns = gpuhal_os_monotonic_ns();
    if (before) {
        gpuhal_registry_refresh(gpu->registry); /* another process may have ended a quarantine */
    }
    gpuhal_snapshot *known = gpu->settings.registry ? gpuhal_registry_snapshot(gpu->registry) : NULL;
    gpuhal_status status = gpuhal_loader_run(&gpu->settings, gpu->log, known ? &known->database : NULL, before != NULL,
                                             &snapshot->candidates);
    gpuhal_snapshot_release(known);
    status = status ? status : prepare(gpu, snapshot);
    if (status) {
        gpuhal_device_snapshot_free(snapshot);
        return status;
    }
    out_events->list = calloc(snapshot->device_count + 1u, sizeof *out_events->list);
    if (!out_events->list) {
        /* prepare() succeeded, so the new devices still exist. */
        drop_devices(snapshot, before ? before->device_count : 0, NULL);
        gpuhal_device_snapshot_free(snapshot);
        return gpuhal_error_host_memory();
    }
    compare(before, snapshot, out_events);
    if (before && is_the_same(before, snapshot, out_events)) {
        gpuhal_device_snapshot_free(snapshot);
    } else {
        publish(gpu, snapshot);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_devices_list(gpuhal *gpu, gpuhal_device_events *out_events)
{
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = list(gpu, out_events);
    gpuhal_os_cancel_restore(cancel);
    return status;
}

uint32_t gpuhal_device_count(const gpuhal *gpu)
{
    const gpuhal_device_snapshot *snapshot = gpu ? gpuhal_device_snapshot_now(gpu) : NULL;
    return snapshot ? snapshot->device_count : 0;
}

gpuhal_device *gpuhal_device_at(const gpuhal *gpu, uint32_t index)
{
    const gpuhal_device_snapshot *snapshot = gpu ? gpuhal_device_snapshot_now(gpu) : NULL;
    return snapshot && index < snapshot->device_count ? snapshot->devices[index] : NULL;
}
