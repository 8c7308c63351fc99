/* checks_identity.c: a device's identity: in every process, next to identical devices, and when it is opened. */
#include "../common/subprocess.h"
#include "area.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The core recognises a device by these facts in another process, and after other devices have been added or
 * removed. */
static const gpuhal_key identities[] = {GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_UUID, GPUHAL_FACT_LUID,
                                        GPUHAL_FACT_DRM_RENDER_NODE, GPUHAL_FACT_PARTITION};
/* Facts that must be the same in two processes. The memory size is excluded, because it depends on other programs. */
static const gpuhal_key same[] = {
    GPUHAL_FACT_NAME,      GPUHAL_FACT_VENDOR,       GPUHAL_FACT_TYPE,         GPUHAL_FACT_SOFTWARE,
    GPUHAL_FACT_UUID,      GPUHAL_FACT_PCI_ADDRESS,  GPUHAL_FACT_LUID,         GPUHAL_FACT_DRM_RENDER_NODE,
    GPUHAL_FACT_PARTITION, GPUHAL_FACT_NATIVE_INDEX, GPUHAL_FACT_MEMORY_KINDS, GPUHAL_FACT_DRIVER_UUID};
enum { IDENTITIES = sizeof identities / sizeof *identities, SAME = sizeof same / sizeof *same };

/* Returns the facts that a process found, one line for each device and fact. */
static char *lines_of(const gpuhal_device_snapshot *listing)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = gpuhal_own(open_memstream(&text, &bytes));
    for (size_t d = 0; d < listing->count; d++) {
        for (size_t k = 0; k < SAME; k++) {
            char value[256];
            gpuhal_listed_format(gpuhal_listed_find(&listing->devices[d], same[k]), value, sizeof value);
            fprintf(stream, "device %u: %s is %s\n", listing->devices[d].index, gpuhal_listed_key(same[k]), value);
        }
    }
    fclose(stream);
    return gpuhal_own(text);
}

/* Runs in a child process that has not loaded the plugin before. */
static void list_for_parent(void *user, int answer)
{
    gpuhal_context own = {.options = ((const gpuhal_context *)user)->options};
    gpuhal_session_list(&own);
    char *lines = lines_of(&own.listing);
    gpuhal_tool_send(answer, lines, strlen(lines));
}

static char *lines_of_other_process(gpuhal_context *context)
{
    enum { ROOM = 1 << 20 };
    gpuhal_tool_child child;
    int status = -1;
    char *lines = gpuhal_own(calloc(1, ROOM));
    if (!gpuhal_tool_fork(list_for_parent, context, &child)) {
        gpuhal_fail("gpuhal-check cannot make a process");
    }
    (void)gpuhal_tool_hear(&child, GPUHAL_TOOL_FOREVER, lines, ROOM - 1); /* until the process ends */
    gpuhal_tool_end(&child, GPUHAL_TOOL_FOREVER, &status);
    if (status != 0) {
        _exit(0); /* if the process failed, it has already sent the result */
    }
    return lines;
}

/* The library lists devices in a subprocess and opens them in the application. */
void gpuhal_check_facts_process(gpuhal_context *context)
{
    char *theirs = lines_of_other_process(context);
    gpuhal_session_list(context);
    char *own = lines_of(&context->listing);
    char *rest_a = NULL, *rest_b = NULL;
    char *a = strtok_r(theirs, "\n", &rest_a), *b = strtok_r(own, "\n", &rest_b);
    while (a != NULL && b != NULL && strcmp(a, b) == 0) {
        a = strtok_r(NULL, "\n", &rest_a);
        b = strtok_r(NULL, "\n", &rest_b);
    }
    if (a != NULL || b != NULL) {
        gpuhal_fail("two processes find different facts: in one %s, in the other %s",
                    a != NULL ? a : "a device is missing", b != NULL ? b : "a device is missing");
    }
    free(theirs);
    free(own);
}

/* Returns whether a fact distinguishes the two devices. Partitions of one device differ only in PARTITION. */
static bool differ(const gpuhal_listed *one, const gpuhal_listed *other)
{
    for (size_t k = 0; k < IDENTITIES; k++) {
        const gpuhal_listed_fact *a = gpuhal_listed_find(one, identities[k]),
                                 *b = gpuhal_listed_find(other, identities[k]);
        if (a != NULL && b != NULL && a->kind == LISTED_TEXT && b->kind == LISTED_TEXT &&
            strcmp(a->text, b->text) != 0) {
            return true;
        }
    }
    return false;
}

static const char *name_of(const gpuhal_listed *listed)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(listed, GPUHAL_FACT_NAME);
    return fact != NULL && fact->kind == LISTED_TEXT && fact->text != NULL ? fact->text : "";
}

/* Returns whether the device runs in software on the CPU, or is the CPU. */
static bool is_software(const gpuhal_listed *listed)
{
    return gpuhal_listed_number(listed, GPUHAL_FACT_SOFTWARE, 0) != 0 ||
           gpuhal_listed_number(listed, GPUHAL_FACT_TYPE, 0) == GPUHAL_DEVICE_CPU;
}

/* Software devices are not added or removed one by one, so their identity does not matter. */
void gpuhal_check_identities(gpuhal_context *context)
{
    const gpuhal_device_snapshot *listing = &context->listing;
    unsigned compared = 0;
    for (size_t d = 0; d < listing->count; d++) {
        for (size_t other = 0; other < d; other++) {
            const gpuhal_listed *a = &listing->devices[other], *b = &listing->devices[d];
            if (is_software(a) || is_software(b) || strcmp(name_of(a), name_of(b)) != 0) {
                continue;
            }
            compared++;
            if (!differ(a, b)) {
                gpuhal_fail("devices %u and %u have one name and no identity that differs: if one is unplugged, "
                            "programs take the other one for it",
                            a->index, b->index);
            }
        }
    }
    if (compared == 0) {
        gpuhal_skip("no two devices of hardware have the same name");
    }
}

/* ---- opened devices */

/* Returns how many bytes a device lost between two samples; 0 if it has more than before. */
static uint64_t lost(uint64_t before, uint64_t after)
{
    return before > after ? before - after : 0;
}

/* Returns whether the devices may share memory. Partitions of one device share memory, and so do devices whose memory
 * is host memory. */
static bool may_share(const gpuhal_context *context, const gpuhal_listed *other)
{
    const gpuhal_listed *const both[] = {context->listed, other};
    const gpuhal_listed_fact *address[2];
    for (int i = 0; i < 2; i++) {
        address[i] = gpuhal_listed_find(both[i], GPUHAL_FACT_PCI_ADDRESS);
        const uint64_t type = gpuhal_listed_number(both[i], GPUHAL_FACT_TYPE, GPUHAL_DEVICE_INTEGRATED_GPU);
        if (is_software(both[i]) || address[i] == NULL || address[i]->kind != LISTED_TEXT ||
            type == GPUHAL_DEVICE_INTEGRATED_GPU || gpuhal_listed_number(both[i], GPUHAL_FACT_UNIFIED_MEMORY, 0) != 0) {
            return true;
        }
    }
    return strcmp(address[0]->text, address[1]->text) == 0;
}

/* Returns whether an allocation on this device reduced the other device's memory. If the devices may share memory, a
 * loss on both does not count. A single loss may come from another program. */
static bool takes_from(const gpuhal_context *context, uint32_t other, uint64_t bytes)
{
    uint64_t own_before, own_after, other_before, other_after;
    gpuhal_memory memory;
    if (!gpuhal_free_memory(context, context->index, &own_before) ||
        !gpuhal_free_memory(context, other, &other_before)) {
        return false;
    }
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory), "allocate");
    const bool known =
        gpuhal_free_memory(context, context->index, &own_after) && gpuhal_free_memory(context, other, &other_after);
    gpuhal_plain_release(&context->opened, &memory);
    const bool own = lost(own_before, own_after) >= bytes / 2;
    const bool shared = may_share(context, gpuhal_device_snapshot_find(&context->listing, other));
    return known && (!own || !shared) && lost(other_before, other_after) >= bytes / 2;
}

/* Returns all zeros if the plugin has no native device, or if the native values do not fully identify the device. */
static gpuhal_native native_of(const gpuhal_opened *opened)
{
    gpuhal_native native = {.size = sizeof native};
    gpuhal_step("the slot native_device");
    const bool given = opened->slots.native.native_device != NULL &&
                       opened->slots.native.native_device(opened->device, &native) == GPUHAL_OK && native.typed == NULL;
    return given ? native : (gpuhal_native){0};
}

/* Determines whether an allocation on the opened device lowers the free memory of both devices, or of neither. */
static void lowers(const gpuhal_context *context, const gpuhal_opened *opened, uint32_t other, uint64_t bytes,
                   bool *out_both, bool *out_none)
{
    uint64_t before[2] = {0}, after[2] = {0};
    gpuhal_memory memory;
    *out_both = *out_none = false;
    if (!gpuhal_free_memory(context, context->index, &before[0]) || !gpuhal_free_memory(context, other, &before[1]) ||
        gpuhal_plain_allocate(opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory) != GPUHAL_OK) {
        return;
    }
    const bool known =
        gpuhal_free_memory(context, context->index, &after[0]) && gpuhal_free_memory(context, other, &after[1]);
    gpuhal_plain_release(opened, &memory);
    const bool fell[2] = {lost(before[0], after[0]) >= bytes / 2, lost(before[1], after[1]) >= bytes / 2};
    *out_both = known && fell[0] && fell[1];
    *out_none = known && !fell[0] && !fell[1];
}

/* If memory is shared, the values of both devices decrease, whichever device allocates. If both values decrease when
 * the first device allocates, and neither decreases when the second device allocates, both values belong to the first
 * device. */
static void expect_own_values(const gpuhal_context *context, const gpuhal_opened *opened, uint32_t other,
                              uint64_t bytes)
{
    enum { ROUNDS = 3 };
    unsigned rounds = 0;
    for (bool both = true, none = true; both && none && rounds < ROUNDS; rounds += both && none) {
        bool unused = false;
        lowers(context, &context->opened, other, bytes, &both, &unused);
        lowers(context, opened, other, bytes, &unused, &none);
    }
    if (rounds == ROUNDS) {
        gpuhal_fail("sample gives the free memory of device %u for device %u, too", context->index, other);
    }
}

static void expect_separate(const gpuhal_context *context, uint32_t other, uint64_t bytes)
{
    enum { ROUNDS = 3 };
    unsigned rounds = 0;
    while (rounds < ROUNDS && takes_from(context, other, bytes)) {
        rounds++;
    }
    if (rounds == ROUNDS) {
        gpuhal_fail("allocating %" PRIu64 " KiB on device %u took them from device %u, according to sample",
                    bytes >> 10, context->index, other);
    }
    gpuhal_context second = *context;
    gpuhal_opened opened;
    second.index = other;
    gpuhal_session_open(&second, &opened);
    const gpuhal_native own = native_of(&context->opened), theirs = native_of(&opened);
    if (own.type != 0 && memcmp(own.values, theirs.values, sizeof own.values) == 0) {
        gpuhal_fail("native_device gives the same values for devices %u and %u", context->index, other);
    }
    expect_own_values(context, &opened, other, bytes);
    gpuhal_session_close(&second, &opened);
}

/* A plugin that opens "the current device" passes every test with one device. */
void gpuhal_check_devices_apart(gpuhal_context *context)
{
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const uint64_t bytes = total / 8 < UINT64_C(64) << 20 ? total / 8 : UINT64_C(64) << 20;
    if (context->listing.count < 2) {
        gpuhal_skip("there is one device only");
        return;
    }
    for (size_t d = 0; d < context->listing.count; d++) {
        if (context->listing.devices[d].index != context->index) {
            expect_separate(context, context->listing.devices[d].index, bytes);
        }
    }
}
