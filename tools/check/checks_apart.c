/* checks_apart.c: which device is which: in every process, beside its equals, and when it is opened. */
#include "../common/subprocess.h"
#include "area.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By these the core knows a device again: in another process, and after others have come or gone. */
static const gpuhal_key identities[] = {GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_UUID, GPUHAL_FACT_LUID, GPUHAL_FACT_DRM_RENDER_NODE,
                                        GPUHAL_FACT_PARTITION};
/* Facts that one process may state and another not state alike: how much memory there is depends on what else runs. */
static const gpuhal_key same[] = {GPUHAL_FACT_NAME,     GPUHAL_FACT_VENDOR,        GPUHAL_FACT_TYPE,         GPUHAL_FACT_SOFTWARE,
                                  GPUHAL_FACT_UUID,     GPUHAL_FACT_PCI_ADDRESS,   GPUHAL_FACT_LUID,         GPUHAL_FACT_DRM_RENDER_NODE,
                                  GPUHAL_FACT_PARTITION, GPUHAL_FACT_NATIVE_INDEX, GPUHAL_FACT_MEMORY_KINDS, GPUHAL_FACT_DRIVER_UUID};
enum { IDENTITIES = sizeof identities / sizeof *identities, SAME = sizeof same / sizeof *same };

/* What a process found: one line for each device and fact. */
static char *words_of(const gpuhal_device_snapshot *listing)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = gpuhal_own(open_memstream(&text, &bytes));
    for (size_t d = 0; d < listing->count; d++) {
        for (size_t k = 0; k < SAME; k++) {
            char words[256];
            gpuhal_listed_words(gpuhal_listed_find(&listing->devices[d], same[k]), words, sizeof words);
            fprintf(stream, "device %u: %s is %s\n", listing->devices[d].index, gpuhal_listed_key(same[k]), words);
        }
    }
    fclose(stream);
    return gpuhal_own(text);
}

static void list(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    gpuhal_session_start(trial);
    gpuhal_session_enumerate(trial);
}

/* The other process, which has not met the plugin before. */
static void list_apart(void *user, int answer)
{
    gpuhal_trial own = {.options = ((const gpuhal_trial *)user)->options};
    list(&own);
    char *words = words_of(&own.listing);
    gpuhal_tool_send(answer, words, strlen(words));
}

static char *words_of_other_process(gpuhal_trial *trial)
{
    enum { ROOM = 1 << 20 };
    gpuhal_tool_child child;
    int status = -1;
    char *words = gpuhal_own(calloc(1, ROOM));
    if (!gpuhal_tool_fork(list_apart, trial, &child)) {
        gpuhal_fail("gpuhal-check cannot make a process");
    }
    (void)gpuhal_tool_hear(&child, GPUHAL_TOOL_FOREVER, words, ROOM - 1); /* until it ends */
    gpuhal_tool_end(&child, GPUHAL_TOOL_FOREVER, &status);
    if (status != 0) {
        _exit(0); /* where that process failed it has given the verdict */
    }
    return words;
}

/* The library lists the devices in a helper process and opens them in another. */
void gpuhal_check_facts_process(gpuhal_trial *trial)
{
    char *theirs = words_of_other_process(trial);
    list(trial);
    char *ours = words_of(&trial->listing);
    char *rest_a = NULL, *rest_b = NULL;
    char *a = strtok_r(theirs, "\n", &rest_a), *b = strtok_r(ours, "\n", &rest_b);
    while (a != NULL && b != NULL && strcmp(a, b) == 0) {
        a = strtok_r(NULL, "\n", &rest_a);
        b = strtok_r(NULL, "\n", &rest_b);
    }
    if (a != NULL || b != NULL) {
        gpuhal_fail("two processes are given different facts: in one %s, in the other %s", a != NULL ? a : "a device is missing",
                    b != NULL ? b : "a device is missing");
    }
    free(theirs);
    free(ours);
}

/* @return the fact that tells two devices apart; PARTITION alone tells parts of one device from each other */
static bool differ(const gpuhal_listed *one, const gpuhal_listed *other)
{
    for (size_t k = 0; k < IDENTITIES; k++) {
        const gpuhal_listed_fact *a = gpuhal_listed_find(one, identities[k]), *b = gpuhal_listed_find(other, identities[k]);
        if (a != NULL && b != NULL && a->told == TOLD_TEXT && b->told == TOLD_TEXT && strcmp(a->text, b->text) != 0) {
            return true;
        }
    }
    return false;
}

static const char *name_of(const gpuhal_listed *listed)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(listed, GPUHAL_FACT_NAME);
    return fact != NULL && fact->told == TOLD_TEXT && fact->text != NULL ? fact->text : "";
}

/* A program on the host's processor, or that processor. */
static bool is_software(const gpuhal_listed *listed)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(listed, GPUHAL_FACT_SOFTWARE);
    const gpuhal_listed_fact *type = gpuhal_listed_find(listed, GPUHAL_FACT_TYPE);
    return (fact != NULL && fact->told == TOLD_NUMBER && fact->number != 0) ||
           (type != NULL && type->told == TOLD_NUMBER && type->number == GPUHAL_DEVICE_CPU);
}

/* Software devices do not come and go one by one, and what they state as identity does not count. */
void gpuhal_check_identities(gpuhal_trial *trial)
{
    const gpuhal_device_snapshot *listing = &trial->listing;
    unsigned compared = 0;
    for (size_t d = 0; d < listing->count; d++) {
        for (size_t other = 0; other < d; other++) {
            const gpuhal_listed *a = &listing->devices[other], *b = &listing->devices[d];
            if (is_software(a) || is_software(b) || strcmp(name_of(a), name_of(b)) != 0) {
                continue;
            }
            compared++;
            if (!differ(a, b)) {
                gpuhal_fail("devices %u and %u have one name and no identity in which they differ: when one is unplugged, the other "
                            "is taken for it", a->index, b->index);
            }
        }
    }
    if (compared == 0) {
        gpuhal_skip("no two devices of hardware have the same name");
    }
}

/* ---- openings */

static bool free_bytes(const gpuhal_trial *trial, uint32_t index, uint64_t *out_bytes)
{
    const gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    gpuhal_device_snapshot sample = {0};
    gpuhal_status status = gpuhal_device_snapshot_sample(trial->plugin, trial->instance, index, &key, 1, &sample);
    const gpuhal_listed_fact *fact = status == GPUHAL_OK ? gpuhal_listed_find(&sample.devices[0], key) : NULL;
    const bool known = fact != NULL && fact->told == TOLD_NUMBER;
    *out_bytes = known ? fact->number : 0;
    gpuhal_device_snapshot_finish(&sample);
    return known;
}

/* Bytes that a device lost between two samples; 0 when it has more than before. */
static uint64_t lost(uint64_t before, uint64_t after)
{
    return before > after ? before - after : 0;
}

/* Parts of one device, and devices in the host's memory, share what they allocate. */
static bool may_share(const gpuhal_trial *trial, const gpuhal_listed *other)
{
    const gpuhal_listed *const both[] = {trial->listed, other};
    const gpuhal_listed_fact *address[2];
    for (int i = 0; i < 2; i++) {
        const gpuhal_listed_fact *type = gpuhal_listed_find(both[i], GPUHAL_FACT_TYPE);
        const gpuhal_listed_fact *unified = gpuhal_listed_find(both[i], GPUHAL_FACT_UNIFIED_MEMORY);
        address[i] = gpuhal_listed_find(both[i], GPUHAL_FACT_PCI_ADDRESS);
        if (is_software(both[i]) || address[i] == NULL || address[i]->told != TOLD_TEXT || type == NULL ||
            type->number == GPUHAL_DEVICE_INTEGRATED_GPU || (unified != NULL && unified->told == TOLD_NUMBER && unified->number != 0)) {
            return true;
        }
    }
    return strcmp(address[0]->text, address[1]->text) == 0;
}

/* Whether the other device lost what was allocated on this one: once it may be another program. */
static bool takes_from(const gpuhal_trial *trial, uint32_t other, uint64_t bytes)
{
    uint64_t own_before, own_after, other_before, other_after;
    gpuhal_memory memory;
    if (!free_bytes(trial, trial->index, &own_before) || !free_bytes(trial, other, &other_before)) {
        return false;
    }
    gpuhal_expect_ok(gpuhal_plain_allocate(&trial->opening, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory), "allocate");
    const bool known = free_bytes(trial, trial->index, &own_after) && free_bytes(trial, other, &other_after);
    gpuhal_plain_release(&trial->opening, &memory);
    const bool own = lost(own_before, own_after) >= bytes / 2;
    const bool shared = may_share(trial, gpuhal_device_snapshot_find(&trial->listing, other));
    return known && (!own || !shared) && lost(other_before, other_after) >= bytes / 2;
}

/* All zero where the plugin gives no native device that values alone name. */
static gpuhal_native native_of(const gpuhal_opening *opening)
{
    gpuhal_native native = {.size = sizeof native};
    gpuhal_step("the slot native_device");
    const bool given = opening->slots.ops.native_device != NULL &&
                       opening->slots.ops.native_device(opening->device, &native) == GPUHAL_OK && native.typed == NULL;
    return given ? native : (gpuhal_native){0};
}

static void expect_apart(const gpuhal_trial *trial, uint32_t other, uint64_t bytes)
{
    enum { ROUNDS = 3 };
    unsigned rounds = 0;
    while (rounds < ROUNDS && takes_from(trial, other, bytes)) {
        rounds++;
    }
    if (rounds == ROUNDS) {
        gpuhal_fail("allocating %" PRIu64 " KiB on device %u took them from device %u, by what sample says", bytes >> 10, trial->index, other);
    }
    gpuhal_trial second = *trial;
    gpuhal_opening opening;
    second.index = other;
    gpuhal_session_open(&second, &opening);
    const gpuhal_native own = native_of(&trial->opening), theirs = native_of(&opening);
    if (own.type != 0 && memcmp(own.values, theirs.values, sizeof own.values) == 0) {
        gpuhal_fail("native_device gives the same values for devices %u and %u", trial->index, other);
    }
    gpuhal_session_close(&second, &opening);
}

/* A plugin that opens "the current device" works in every test with one device. */
void gpuhal_check_devices_apart(gpuhal_trial *trial)
{
    const uint64_t total = gpuhal_trial_fact(trial, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const uint64_t bytes = total / 8 < UINT64_C(64) << 20 ? total / 8 : UINT64_C(64) << 20;
    if (trial->listing.count < 2) {
        gpuhal_skip("there is one device only");
        return;
    }
    for (size_t d = 0; d < trial->listing.count; d++) {
        if (trial->listing.devices[d].index != trial->index) {
            expect_apart(trial, trial->listing.devices[d].index, bytes);
        }
    }
}
