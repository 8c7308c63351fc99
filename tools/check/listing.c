/* listing.c: see listing.h. If the tool runs out of memory, the check fails. */
#include "check.h"

#include <gpuhal/device.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *list, size_t count, size_t item)
{
    return gpuhal_own(realloc(list, (count + 1) * item));
}

static void add_device(void *user, uint32_t index)
{
    gpuhal_device_snapshot *listing = user;
    listing->devices = grown(listing->devices, listing->count, sizeof *listing->devices);
    listing->devices[listing->count++] = (gpuhal_listed){.index = index};
}

/* Keeps duplicates, because the checks decide whether a plugin may report a fact twice. */
static void add_fact(gpuhal_device_snapshot *listing, gpuhal_listed_fact fact, const char *text)
{
    if (listing->count == 0) {
        listing->stray = true;
        return;
    }
    gpuhal_listed *listed = &listing->devices[listing->count - 1];
    listed->facts = grown(listed->facts, listed->count, sizeof *listed->facts);
    fact.text = text != NULL ? strdup(text) : NULL;
    listed->facts[listed->count++] = fact;
}

static void add_number(void *user, gpuhal_key key, uint64_t value)
{
    add_fact(user, (gpuhal_listed_fact){.key = key, .kind = LISTED_NUMBER, .number = value}, NULL);
}

static void add_text(void *user, gpuhal_key key, const char *value)
{
    add_fact(user, (gpuhal_listed_fact){.key = key, .kind = LISTED_TEXT}, value);
}

static void add_missing(void *user, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    add_fact(user, (gpuhal_listed_fact){.key = key, .kind = LISTED_MISSING, .reason = reason}, why);
}

static gpuhal_direct_listener listener_into(gpuhal_device_snapshot *listing)
{
    return (gpuhal_direct_listener){
        .user = listing, .device = add_device, .u64 = add_number, .text = add_text, .missing = add_missing};
}

static void finish_one(gpuhal_listed *listed)
{
    for (size_t f = 0; f < listed->count; f++) {
        free(listed->facts[f].text);
    }
    free(listed->facts);
}

/* The core treats entries with the fact UNLISTED as hardware, not as devices. */
static void leave_out_unlisted(gpuhal_device_snapshot *listing)
{
    size_t left = 0;
    for (size_t d = 0; d < listing->count; d++) {
        const gpuhal_listed_fact *why = gpuhal_listed_find(&listing->devices[d], GPUHAL_FACT_UNLISTED);
        if (why != NULL && why->kind == LISTED_TEXT) {
            finish_one(&listing->devices[d]);
        } else {
            listing->devices[left++] = listing->devices[d];
        }
    }
    listing->count = left;
}

gpuhal_status gpuhal_device_snapshot_enumerate(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                               gpuhal_device_snapshot *out_listing)
{
    const gpuhal_direct_listener listener = listener_into(out_listing);
    gpuhal_step("enumerate");
    const gpuhal_status status = gpuhal_direct_enumerate(plugin, instance, &listener);
    leave_out_unlisted(out_listing);
    return status;
}

gpuhal_status gpuhal_device_snapshot_sample(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                            uint32_t index, const gpuhal_key *keys, uint32_t count,
                                            gpuhal_device_snapshot *out_listing)
{
    const gpuhal_direct_listener listener = listener_into(out_listing);
    add_device(out_listing, index);
    gpuhal_step("sample");
    return gpuhal_direct_sample(plugin, instance, index, keys, count, 0, &listener);
}

gpuhal_status gpuhal_device_snapshot_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                          uint32_t to, gpuhal_device_snapshot *out_listing)
{
    const gpuhal_direct_listener listener = listener_into(out_listing);
    add_device(out_listing, from);
    gpuhal_step("link");
    return gpuhal_direct_link(plugin, instance, from, to, &listener);
}

void gpuhal_device_snapshot_finish(gpuhal_device_snapshot *listing)
{
    for (size_t d = 0; d < listing->count; d++) {
        finish_one(&listing->devices[d]);
    }
    free(listing->devices);
    *listing = (gpuhal_device_snapshot){0};
}

const gpuhal_listed *gpuhal_device_snapshot_find(const gpuhal_device_snapshot *listing, uint32_t index)
{
    for (size_t d = 0; d < listing->count; d++) {
        if (listing->devices[d].index == index) {
            return &listing->devices[d];
        }
    }
    return NULL;
}

/* Searches from the end, since a later fact replaces an earlier fact with the same key. */
const gpuhal_listed_fact *gpuhal_listed_find(const gpuhal_listed *listed, gpuhal_key key)
{
    for (size_t f = listed->count; f > 0; f--) {
        if (listed->facts[f - 1].key == key) {
            return &listed->facts[f - 1];
        }
    }
    return NULL;
}

void gpuhal_listed_format(const gpuhal_listed_fact *fact, char *out_text, size_t size)
{
    if (fact == NULL) {
        snprintf(out_text, size, "not reported");
    } else if (fact->kind == LISTED_NUMBER) {
        snprintf(out_text, size, "%" PRIu64, fact->number);
    } else if (fact->kind == LISTED_TEXT) {
        snprintf(out_text, size, fact->text != NULL ? "'%s'" : "a NULL text", fact->text);
    } else {
        snprintf(out_text, size, "missing (%s)", gpuhal_missing_name(fact->reason));
    }
}

const char *gpuhal_listed_key(gpuhal_key key)
{
    static _Thread_local char unknown[24];
    const char *name = gpuhal_key_name(key);
    if (name != NULL) {
        return name;
    }
    snprintf(unknown, sizeof unknown, "key 0x%" PRIx32, key);
    return unknown;
}

uint64_t gpuhal_listed_number(const gpuhal_listed *listed, gpuhal_key key, uint64_t otherwise)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(listed, key);
    return fact != NULL && fact->kind == LISTED_NUMBER ? fact->number : otherwise;
}

uint64_t gpuhal_device_fact(const gpuhal_context *context, gpuhal_key key, uint64_t otherwise)
{
    return gpuhal_listed_number(context->listed, key, otherwise);
}

bool gpuhal_free_memory(const gpuhal_context *context, uint32_t index, uint64_t *out_bytes)
{
    const gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    gpuhal_device_snapshot sample = {0};
    gpuhal_status status = gpuhal_device_snapshot_sample(context->plugin, context->instance, index, &key, 1, &sample);
    *out_bytes = status == GPUHAL_OK ? gpuhal_listed_number(&sample.devices[0], key, UINT64_MAX) : UINT64_MAX;
    gpuhal_device_snapshot_finish(&sample);
    return *out_bytes != UINT64_MAX;
}
