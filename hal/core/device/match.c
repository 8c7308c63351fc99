/* device/match.c: finds the device object of a listed device. The registry's stable number is used if the object and
 * the listed device have a number and no fact contradicts the match. Otherwise a UUID or an address is used. A device
 * without UUID and address is matched only by its index if the driver in this process lists it. Otherwise it is matched
 * by the number, or by backend, name and order, if it is known which of several identical devices remain. */
#include "device/snapshot.h"

#include "base/error.h"

#include <string.h>

static const char *text_of(const gpuhal_listed_device *listed, gpuhal_key key)
{
    const char *text = gpuhal_facts_text(&listed->facts, key);
    return text && *text ? text : NULL;
}

bool gpuhal_listed_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b)
{
    static const gpuhal_key identity[] = {GPUHAL_FACT_NAME, GPUHAL_FACT_UUID, GPUHAL_FACT_PCI_ADDRESS,
                                          GPUHAL_FACT_PARTITION};
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        const char *one = gpuhal_facts_text(&a->facts, identity[i]);
        const char *other = gpuhal_facts_text(&b->facts, identity[i]);
        if (one && other && strcmp(one, other) != 0) {
            return false;
        }
    }
    return true;
}

static bool state_the_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b, gpuhal_key key)
{
    const char *one = text_of(a, key), *other = text_of(b, key);
    return one && other && strcmp(one, other) == 0;
}

static bool is_nameless(const gpuhal_listed_device *listed)
{
    return !text_of(listed, GPUHAL_FACT_UUID) && !text_of(listed, GPUHAL_FACT_PCI_ADDRESS);
}

const gpuhal_listed_device *gpuhal_listed_find_same(const gpuhal_listed_devices *list,
                                                    const gpuhal_listed_device *wanted)
{
    const gpuhal_listed_device *there = gpuhal_listed_devices_find(list, wanted->index);
    if (there && gpuhal_listed_same(there, wanted)) {
        return there;
    }
    for (size_t i = 0; i < list->count; i++) {
        const gpuhal_listed_device *other = &list->list[i];
        bool named =
            state_the_same(other, wanted, GPUHAL_FACT_UUID) || state_the_same(other, wanted, GPUHAL_FACT_PCI_ADDRESS);
        if (named && gpuhal_listed_same(other, wanted)) {
            return other;
        }
    }
    return NULL;
}

/* The methods of matching, most certain first. */
enum { BY_INDEX, BY_NUMBER, BY_UUID, BY_ADDRESS, BY_ORDER, WAYS };

static bool is_of_this_process(const gpuhal_candidate *candidate)
{
    return !candidate->isolated && !candidate->cached;
}

/* Returns the device as listed by the driver in this process, which never reassigns an index; NULL if unknown. */
static const gpuhal_listed_device *listed_here(const gpuhal_device *device)
{
    const gpuhal_listed_device *here = atomic_load(&device->here);
    return here || !is_of_this_process(device->candidate) ? here : device->listed;
}

static bool is_it(const gpuhal_device *device, const gpuhal_entry *entry, int way)
{
    if (strcmp(device->candidate->name, entry->candidate->name) != 0 ||
        !gpuhal_listed_same(device->listed, entry->listed)) {
        return false;
    }
    /* An index is stable only within one process. */
    bool nameless = is_nameless(device->listed) && is_nameless(entry->listed);
    const gpuhal_listed_device *here = is_of_this_process(entry->candidate) ? listed_here(device) : NULL;
    if (nameless && here) {
        return way == BY_INDEX && here->index == entry->listed->index;
    }
    switch (way) {
    case BY_NUMBER:
        /* The registry numbers identical devices by order, so the numbers are meaningless while it is unknown which
         * devices remain. */
        return device->interface_number != 0 && device->interface_number == entry->interface_number && !device->unsure;
    case BY_UUID:
        return state_the_same(device->listed, entry->listed, GPUHAL_FACT_UUID);
    case BY_ADDRESS:
        return state_the_same(device->listed, entry->listed, GPUHAL_FACT_PCI_ADDRESS);
    case BY_ORDER:
        return nameless && !device->unsure;
    default:
        return false;
    }
}

/* ---- equal devices */

static bool are_alike(const gpuhal_device *device, const gpuhal_entry *entry)
{
    return is_nameless(device->listed) && is_nameless(entry->listed) &&
           strcmp(device->candidate->name, entry->candidate->name) == 0 &&
           gpuhal_listed_same(device->listed, entry->listed);
}

static uint32_t count_alike(const gpuhal_device *device, const gpuhal_device_snapshot *snapshot)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < snapshot->identity.count; e++) {
        count += are_alike(device, &snapshot->entries[e]);
    }
    return count;
}

/* Returns whether the device certainly remains although a process that counts from 0 lists fewer identical devices than
 * before. Only the driver in this process knows which devices remain, because it never reassigns an index. If this
 * driver is not loaded, all identical devices are treated as missing, so that no device is mistaken for another. */
static bool is_known_to_be_left(const gpuhal *gpu, const gpuhal_device_snapshot *snapshot, const gpuhal_device *device)
{
    const gpuhal_device_snapshot *before = gpuhal_device_snapshot_now(gpu);
    gpuhal_backend *backend = gpuhal_backend_started(device->candidate);
    if (!backend) {
        return false;
    }
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    (void)gpuhal_backend_refresh(backend, snapshot->begun_ns, gpu->settings.helper_deadline_ns);
    gpuhal_error_restore(&detail);
    const gpuhal_listed_devices *here = gpuhal_backend_devices(backend);
    uint32_t left = 0;
    for (uint32_t e = 0; e < before->identity.count; e++) {
        left += are_alike(device, &before->entries[e]) && gpuhal_listed_find_same(here, before->entries[e].listed);
    }
    return left == count_alike(device, snapshot) && gpuhal_listed_find_same(here, device->listed);
}

/* Marks a device if fewer identical devices are listed than before, unless the driver in this process knows that the
 * device remains. All devices are marked before any is matched, because is_it() reads the marks. */
static void find_unsure(const gpuhal *gpu, const gpuhal_device_snapshot *snapshot)
{
    const gpuhal_device_snapshot *before = gpuhal_device_snapshot_now(gpu);
    for (uint32_t d = 0; before && d < before->device_count; d++) {
        gpuhal_device *device = before->devices[d];
        uint32_t has = before->places[d] == GPUHAL_NOWHERE ? 0 : count_alike(device, snapshot);
        device->unsure = has > 0 && has < count_alike(device, before) && !is_known_to_be_left(gpu, snapshot, device);
    }
}

void gpuhal_entries_match(const gpuhal *gpu, gpuhal_device_snapshot *snapshot)
{
    const gpuhal_device_snapshot *before = gpuhal_device_snapshot_now(gpu);
    find_unsure(gpu, snapshot);
    /* Each method is tried for all devices before the next method, so that an uncertain match cannot take the entry of
     * a certain match. */
    for (int way = 0; way < WAYS; way++) {
        for (uint32_t d = 0; before && d < before->device_count; d++) {
            /* A vanished device never returns under the same handle, because its memory and queues are lost. */
            bool is_open = snapshot->places[d] == GPUHAL_NOWHERE && before->places[d] != GPUHAL_NOWHERE;
            for (uint32_t e = 0; is_open && e < snapshot->identity.count; e++) {
                gpuhal_entry *entry = &snapshot->entries[e];
                if (!entry->device && is_it(before->devices[d], entry, way)) {
                    entry->device = before->devices[d];
                    snapshot->places[d] = e;
                    is_open = false;
                }
            }
        }
    }
}
