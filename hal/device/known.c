/* device/known.c: see known.h. */
#include "device/known.h"

#include "core/error.h"
#include "loader/verdict.h"
#include "registry/fields.h"

#include <inttypes.h>
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

static bool same_fact(const gpuhal_fact *one, const gpuhal_fact *other)
{
    if (!one || !other || one->missing || other->missing) {
        return one && other && one->missing == other->missing;
    }
    bool text = one->text && other->text;
    return text ? strcmp(one->text, other->text) == 0 : one->text == other->text && one->u64 == other->u64;
}

static void word_fact(const gpuhal_fact *fact, gpuhal_text *to)
{
    if (!fact || fact->missing) {
        gpuhal_text_printf(to, "missing");
    } else if (fact->text) {
        gpuhal_text_printf(to, "\"%s\"", fact->text);
    } else {
        gpuhal_text_printf(to, "%" PRIu64, fact->u64);
    }
}

/* The first key of `facts` under which the other set has something else; what changes by the second does not count. 0: none. */
static gpuhal_key differing_key(const gpuhal_facts *facts, const gpuhal_facts *other)
{
    for (size_t i = 0; i < facts->count; i++) {
        gpuhal_key key = facts->list[i].key;
        if (key != GPUHAL_VALUE_MEMORY_FREE_BYTES && !same_fact(&facts->list[i], gpuhal_facts_find(other, key))) {
            return key;
        }
    }
    return 0;
}

/* In words, malloc'ed; NULL when nothing is different, and without memory. */
static char *difference(const gpuhal_device *device, const gpuhal_listed_device *now)
{
    const gpuhal_listed_device *then = device->listed;
    if (!now) {
        return gpuhal_text_format("%s was listed, and is not there now", device->id);
    }
    if (now->capabilities != then->capabilities) {
        return gpuhal_text_format("%s: its capabilities were 0x%" PRIx32 " when it was listed, and are 0x%" PRIx32 " now", device->id,
                                  then->capabilities, now->capabilities);
    }
    gpuhal_key key = differing_key(&then->facts, &now->facts);
    key = key ? key : differing_key(&now->facts, &then->facts);
    if (!key) {
        return NULL;
    }
    gpuhal_text text = {0};
    const char *name = gpuhal_key_name(key);
    gpuhal_text_printf(&text, "%s: %s was ", device->id, name ? name : "a fact of its vendor's");
    word_fact(gpuhal_facts_find(&then->facts, key), &text);
    gpuhal_text_printf(&text, " when it was listed, and is ");
    word_fact(gpuhal_facts_find(&now->facts, key), &text);
    gpuhal_text_printf(&text, " now");
    return gpuhal_text_take(&text);
}

/* Two devices of one plugin find the same difference: the record is written once. */
static bool is_kept(gpuhal_registry *registry, const gpuhal_known_plugin *record)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_known_plugin *kept = gpuhal_content_same(&snapshot->content, GPUHAL_RECORD_PLUGIN, record);
    bool same = kept && gpuhal_verdict_same(kept, record);
    gpuhal_snapshot_release(snapshot);
    return same;
}

/* Puts the record in the place of what was remembered under the same circumstances. */
static void replace_record(const gpuhal_device *device, gpuhal_plugin_state state, const char *reason, const gpuhal_listed_devices *devices)
{
    gpuhal_known_plugin record = {0};
    bool good = gpuhal_verdict_record(device->candidate, devices, &record);
    record.state = state;
    if (reason) {
        free(record.reason);
        record.reason = gpuhal_text_copy(reason);
    }
    gpuhal_changes changes = {.now = record.met, .plugins = &record, .plugin_count = 1};
    gpuhal_status status = GPUHAL_OK;
    if (good && !is_kept(device->gpu->registry, &record)) {
        status = update(device->gpu->registry, &changes);
    }
    if (!good || status) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s: there is no memory left to remember what changed", device->id);
    }
    gpuhal_record_finish(GPUHAL_RECORD_PLUGIN, &record);
}

/* What is learned under other circumstances than those of the listing is not put in its place. */
static bool has_record(const gpuhal_device *device)
{
    return device->candidate->identity && device->candidate->key.count > 0 &&
           gpuhal_verdict_holds(&device->gpu->settings, device->candidate);
}

void gpuhal_known_compare(gpuhal_device *device, const gpuhal_listed_device *now, const gpuhal_listed_devices *devices)
{
    if (atomic_exchange(&device->compared, true)) {
        return;
    }
    char *sentence = difference(device, now);
    if (sentence) {
        gpuhal_error_detail before;
        gpuhal_error_save(&before);
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s", sentence);
        if (has_record(device)) {
            replace_record(device, GPUHAL_PLUGIN_OK, NULL, devices);
        }
        if (device->gpu->on_changed) {
            device->gpu->on_changed(device, sentence);
        }
        gpuhal_error_restore(&before);
    }
    free(sentence);
}

void gpuhal_known_failed(gpuhal_device *device, gpuhal_status status)
{
    bool of_the_plugin = status != GPUHAL_ERROR_FORKED && status != GPUHAL_ERROR_HOST_MEMORY && status != GPUHAL_ERROR_BUSY;
    if (!of_the_plugin || !has_record(device) || atomic_exchange(&device->compared, true)) {
        return;
    }
    gpuhal_error_detail before;
    const gpuhal_listed_devices none = {0};
    gpuhal_error_save(&before);
    replace_record(device, GPUHAL_PLUGIN_BROKEN, before.sentence, &none);
    gpuhal_error_restore(&before);
}
