/* device/interface.c: makes the facts of a listed device comparable. Drops values that do not identify a device, and
 * removes partition numbers from PCI addresses. */
#include "device/identity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_AMD    0x1002u
#define VENDOR_NVIDIA 0x10deu

static const char *fact(const gpuhal_interface *iface, gpuhal_key key)
{
    const char *text = gpuhal_facts_text(iface->facts, key);
    return text && *text ? text : NULL;
}

static bool differ(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

bool gpuhal_interface_same_driver(const gpuhal_interface *a, const gpuhal_interface *b)
{
    return strcmp(a->backend, b->backend) == 0 &&
           !differ(fact(a, GPUHAL_FACT_DRIVER_UUID), fact(b, GPUHAL_FACT_DRIVER_UUID)) &&
           !differ(fact(a, GPUHAL_FACT_DRIVER_VERSION), fact(b, GPUHAL_FACT_DRIVER_VERSION));
}

/* Parses domain:bus:device.function, with a domain of up to eight digits. */
static bool parse_pci(const char *text, uint32_t out_address[4])
{
    static const char ends[] = {':', ':', '.', 0};
    static const uint32_t limits[] = {UINT32_MAX, 0xff, 0x1f, 7};
    for (size_t i = 0; i < 4; i++) {
        size_t digits = strspn(text, "0123456789abcdefABCDEF");
        if (digits == 0 || digits > 8 || text[digits] != ends[i]) {
            return false;
        }
        uint64_t value = strtoull(text, NULL, 16);
        if (value > limits[i]) {
            return false;
        }
        out_address[i] = (uint32_t)value;
        text += digits + 1;
    }
    return true;
}

/* Some drivers report this address if they do not know the device's address. */
static bool is_root_bridge(const uint32_t address[4])
{
    return (address[0] | address[1] | address[2] | address[3]) == 0;
}

static void write_pci(const uint32_t address[4], char out[24])
{
    snprintf(out, 24, "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".%" PRIx32, address[0], address[1], address[2],
             address[3]);
}

bool gpuhal_identity_pci(const char *text, char out[24])
{
    uint32_t address[4];
    if (!parse_pci(text, address)) {
        return false;
    }
    write_pci(address, out);
    return true;
}

/* NVML does not report the function number, so it is set to 0 for NVIDIA devices. AMD's runtimes report the partition
 * number as the function number, although no such function exists on the bus (ROCm/rocm_smi_lib#208). */
static void read_pci(gpuhal_interface *iface, uint64_t vendor)
{
    uint32_t address[4];
    const char *text = fact(iface, GPUHAL_FACT_PCI_ADDRESS);
    if (!text || !parse_pci(text, address) || is_root_bridge(address)) {
        return;
    }
    if (vendor == VENDOR_AMD && address[3] && !*iface->partition_name) {
        snprintf(iface->partition_space, sizeof iface->partition_space, "%" PRIu32, address[3]);
        iface->partition_name = iface->partition_space;
    }
    if (vendor == VENDOR_AMD || vendor == VENDOR_NVIDIA) {
        address[3] = 0;
    }
    write_pci(address, iface->pci);
    iface->values[GPUHAL_IDENTITY_PCI] = iface->pci;
}

/* Returns NULL for a value that does not identify a device: zeros, ones, and the "XX" that HIP returns for a chip
 * without a unique id. */
static const char *identifying(const char *text)
{
    bool zeros = text && text[strspn(text, "0:-")] == 0;
    bool ones = text && text[strspn(text, "f-")] == 0;
    return !text || zeros || ones || strcmp(text, "58580000-0000-0000-0000-000000000000") == 0 ? NULL : text;
}

static void read_interface(gpuhal_interface *iface)
{
    uint64_t vendor = gpuhal_facts_u64(iface->facts, GPUHAL_FACT_VENDOR_ID, 0);
    snprintf(iface->id, sizeof iface->id, "%s:%" PRIu32, iface->backend, iface->index);
    /* A software device that renders for a card may state the card's address, but does not run on the card. */
    iface->host = gpuhal_facts_u64(iface->facts, GPUHAL_FACT_SOFTWARE, 0) == 1 ||
                 gpuhal_facts_u64(iface->facts, GPUHAL_FACT_TYPE, 0) == GPUHAL_DEVICE_CPU;
    iface->partition_name = "";
    if (iface->host) {
        return;
    }
    const char *partition = fact(iface, GPUHAL_FACT_PARTITION);
    iface->partition_name = partition ? partition : "";
    read_pci(iface, vendor);
    iface->values[GPUHAL_IDENTITY_DRM] = identifying(fact(iface, GPUHAL_FACT_DRM_RENDER_NODE));
    iface->values[GPUHAL_IDENTITY_UUID] = identifying(fact(iface, GPUHAL_FACT_UUID));
    iface->values[GPUHAL_IDENTITY_LUID] = identifying(fact(iface, GPUHAL_FACT_LUID));
    iface->maker = vendor;
}

/* The first partition has function 0, like an undivided card. Only its siblings in the same driver show that it is a
 * partition. */
static void name_first_partitions(gpuhal_identity *identity)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        gpuhal_interface *iface = &identity->interfaces[i];
        for (uint32_t k = 0;
             k < identity->count && *iface->pci && !*iface->partition_name && iface->maker == VENDOR_AMD; k++) {
            const gpuhal_interface *sibling = &identity->interfaces[k];
            bool divided = *sibling->partition_space != 0; /* depends only on the sibling's facts, never on names set
                                                            * here */
            if (divided && strcmp(iface->pci, sibling->pci) == 0 && gpuhal_interface_same_driver(iface, sibling)) {
                iface->partition_name = "0";
            }
        }
    }
}

void gpuhal_interfaces_read(gpuhal_identity *identity)
{
    for (uint32_t i = 0; i < identity->count; i++) {
        read_interface(&identity->interfaces[i]);
    }
    name_first_partitions(identity);
}

bool gpuhal_interface_unique_id(const char *uuid, char out[17])
{
    size_t count = 0;
    for (; *uuid && count < 16; uuid += 2) {
        uuid += *uuid == '-';
        const char pair[3] = {uuid[0], uuid[0] ? uuid[1] : 0, 0};
        unsigned long value = strtoul(pair, NULL, 16);
        if (!pair[1] || value > 0x7f || !isxdigit((int)value)) {
            return false;
        }
        out[count++] = (char)tolower((int)value);
    }
    out[count] = 0;
    return count == 16;
}
