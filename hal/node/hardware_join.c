/* node/hardware_join.c: matches listed devices with hardware by PCI address, render node, another interface of the same
 * physical device, or else in order, and adds the record's entries for hardware that is not listed.
 *
 * Devices that draw or compute on the host's CPU are not hardware. Hidden devices are also matched. Otherwise, their
 * hardware would seem broken.
 */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

static uint32_t number_of(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one)
{
    return one ? (uint32_t)(one - survey->list) : NONE;
}

static const gpuhal_hardware *at_render_node(const gpuhal_hardware_survey *survey, const char *number)
{
    for (uint32_t i = 0; number && i < survey->count; i++) {
        if (strcmp(survey->list[i].render_number, number) == 0) {
            return &survey->list[i];
        }
    }
    return NULL;
}

static uint32_t find(const gpuhal_hardware_survey *survey, const gpuhal_interface *iface)
{
    const uint32_t found = number_of(survey, gpuhal_hardware_at_address(survey, iface->pci));
    return found != NONE ? found : number_of(survey, at_render_node(survey, iface->values[GPUHAL_IDENTITY_DRM]));
}

/* Another interface of the physical device may report the address or the render node. */
static uint32_t find_by_others(const gpuhal_identity *identity, const uint32_t *numbers, uint32_t physical)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        if (identity->interfaces[i].physical == physical && numbers[i] != NONE) {
            return numbers[i];
        }
    }
    return NONE;
}

/* On a system on a chip, a device may report nothing that identifies its GPU. Under WSL, a device reports its address
 * in Windows. Such a device is matched with the next unmatched hardware. Except under WSL, the hardware must have no
 * PCI address, and the vendors must be equal if both are known. */
static uint32_t find_without_address(const gpuhal_hardware_survey *survey, const gpuhal_entry *entry)
{
    const uint64_t vendor = gpuhal_facts_u64(&entry->listed->facts, GPUHAL_FACT_VENDOR_ID, 0);
    for (uint32_t i = 0; i < survey->count; i++) {
        const gpuhal_hardware *one = &survey->list[i];
        const bool is_windows = strcmp(one->kernel_driver, "dxgkrnl") == 0;
        const bool fits = is_windows || !one->info.vendor_id || !vendor || vendor == one->info.vendor_id;
        if (!one->is_seen && fits && (is_windows || !one->address[0])) {
            return i;
        }
    }
    return NONE;
}

/* Uses a device's facts to add hardware that the system does not show. */
static uint32_t add_stated(gpuhal_hardware_survey *survey, const gpuhal_entry *entry, const gpuhal_interface *iface)
{
    const gpuhal_facts *facts = &entry->listed->facts;
    gpuhal_hardware *one = gpuhal_hardware_add(survey);
    if (one) {
        gpuhal_hardware_text(one->address, sizeof one->address, "%s", gpuhal_text_or_empty(iface->pci));
        gpuhal_hardware_text(one->name, sizeof one->name, "%s",
                             gpuhal_text_or_empty(gpuhal_facts_text(facts, GPUHAL_FACT_NAME)));
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%s",
                             gpuhal_text_or_empty(gpuhal_facts_text(facts, GPUHAL_FACT_VENDOR)));
        one->info.vendor_id = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_VENDOR_ID, 0);
        one->info.numa_node = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_NUMA_NODE, UINT32_MAX);
    }
    return number_of(survey, one);
}

static void mark(gpuhal_hardware_survey *survey, uint32_t number, const gpuhal_entry *entry)
{
    gpuhal_hardware *one = number != NONE ? &survey->list[number] : NULL;
    if (one) {
        one->is_seen = true;
        one->is_hidden = one->is_hidden || !entry->device;
        one->is_seen_by_vendor = one->is_seen_by_vendor || strcmp(entry->candidate->name, "cuda") == 0 ||
                                 strcmp(entry->candidate->name, "rocm") == 0;
        one->info.device_count += entry->device != NULL;
        one->info.physical = one->info.physical ? one->info.physical : entry->physical_number;
    }
}

static void join_devices(gpuhal_hardware_survey *survey, const gpuhal_device_snapshot *snapshot)
{
    const gpuhal_identity *identity = &snapshot->identity;
    uint32_t *numbers = malloc((identity->count + 1u) * sizeof *numbers);
    if (!numbers) {
        survey->error = survey->error ? survey->error : ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        numbers[i] = identity->interfaces[i].host ? NONE : find(survey, &identity->interfaces[i]);
        mark(survey, numbers[i], &snapshot->entries[i]);
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_entry *entry = &snapshot->entries[i];
        if (numbers[i] != NONE || identity->interfaces[i].host) {
            continue;
        }
        uint32_t number = find_by_others(identity, numbers, identity->interfaces[i].physical);
        number = number != NONE ? number : find_without_address(survey, entry);
        number = number != NONE || !entry->device ? number : add_stated(survey, entry, &identity->interfaces[i]);
        numbers[i] = number;
        mark(survey, number, entry);
    }
    free(numbers);
}

/* ---- driver devices that the API does not list */

static void set_text(const gpuhal_facts *facts, gpuhal_key key, char *to, size_t bytes)
{
    gpuhal_hardware_text(to, bytes, "%s", gpuhal_text_or_empty(gpuhal_facts_text(facts, key)));
}

/* Adds an entry for a partition of a GPU. For a whole GPU, only stores the reason in its entry. */
static void join_unlisted(gpuhal_hardware_survey *survey, const gpuhal_facts *facts)
{
    const char *address = gpuhal_text_or_empty(gpuhal_facts_text(facts, GPUHAL_FACT_PCI_ADDRESS));
    gpuhal_hardware *one = gpuhal_hardware_at_address(survey, address);
    const char *partition = gpuhal_facts_text(facts, GPUHAL_FACT_PARTITION);
    if (partition) {
        gpuhal_hardware *part = gpuhal_hardware_add(survey);
        one = gpuhal_hardware_at_address(survey, address); /* the entries may have moved */
        if (!part) {
            return;
        }
        if (one) {
            *part = *one;
            part->info.physical = 0;
        }
        part->is_seen = part->is_hidden = false;
        part->info.device_count = 0;
        gpuhal_hardware_text(part->address, sizeof part->address, "%s", address);
        set_text(facts, GPUHAL_FACT_NAME, part->name, sizeof part->name);
        set_text(facts, GPUHAL_FACT_PARTITION, part->partition, sizeof part->partition);
        set_text(facts, GPUHAL_FACT_PARTITION_NUMBERS, part->partition_numbers, sizeof part->partition_numbers);
        one = part;
    }
    if (one) {
        set_text(facts, GPUHAL_FACT_UNLISTED, one->unlisted, sizeof one->unlisted);
    }
}

static void join_all_unlisted(gpuhal_hardware_survey *survey, const gpuhal_candidates *candidates)
{
    for (size_t c = 0; c < candidates->count; c++) {
        const gpuhal_listed_devices *devices = &candidates->list[c].devices;
        for (size_t i = 0; i < devices->count; i++) {
            if (!gpuhal_listed_is_device(&devices->list[i])) {
                join_unlisted(survey, &devices->list[i].facts);
            }
        }
    }
}

/* ---- the machine's record */

/* Under WSL, the bus never shows GPUs at the addresses that Windows uses. */
static bool bus_shows_everything(const gpuhal_hardware_survey *survey)
{
    bool shows = survey->bus_is_known;
    for (uint32_t i = 0; i < survey->count; i++) {
        shows = shows && strcmp(survey->list[i].kernel_driver, "dxgkrnl") != 0;
    }
    return shows;
}

/* If the record has several devices at this address, uses the one that was seen last. */
static void set_gone(gpuhal_hardware *one, const gpuhal_database_physical *known)
{
    if (one && known->last_seen >= one->info.last_seen) {
        gpuhal_hardware_text(one->address, sizeof one->address, "%s", gpuhal_text_or_empty(known->pci));
        gpuhal_hardware_text(one->name, sizeof one->name, "%s", gpuhal_text_or_empty(known->name));
        one->info.vendor_id = known->vendor_id;
        one->vendor[0] = '\0';
        if (known->vendor_id) {
            gpuhal_hardware_name_vendor(one);
        }
        one->info.physical = known->number;
        one->info.state = GPUHAL_HARDWARE_GONE;
        one->info.last_seen = known->last_seen;
    }
}

static void join_record(gpuhal_hardware_survey *survey, const gpuhal_database *database)
{
    size_t count;
    const gpuhal_database_physical *physicals = gpuhal_database_physicals(database, &count);
    const bool whole = bus_shows_everything(survey);
    for (size_t i = 0; i < count; i++) {
        const gpuhal_database_physical *known = &physicals[i];
        if (known->host || !known->pci) {
            continue;
        }
        gpuhal_hardware *one = gpuhal_hardware_at_address(survey, known->pci);
        const bool fits = one && (!known->vendor_id || known->vendor_id == one->info.vendor_id);
        /* If a plugin did not run or the bus is not readable, a device that is not listed may still exist. */
        const bool gone =
            one ? one->info.state == GPUHAL_HARDWARE_GONE : whole || !gpuhal_database_lists(database, known->number);
        if (gone) {
            set_gone(one ? one : gpuhal_hardware_add(survey), known);
        } else if (fits && !one->is_seen && known->last_seen > one->info.last_seen) {
            one->info.last_seen = known->last_seen;
            one->info.physical = known->number;
        }
    }
}

void gpuhal_hardware_join(gpuhal_hardware_survey *survey)
{
    join_devices(survey, survey->devices);
    join_record(survey, survey->record);
    join_all_unlisted(survey, &survey->devices->candidates);
}
