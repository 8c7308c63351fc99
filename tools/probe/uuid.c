/* uuid.c: see uuid.h. */
#include "uuid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AMD = 0x1002, NVIDIA = 0x10de, AMD_DIGITS = 16 };

/* Reads a chip's unique id. Its characters are the 16 bytes of HIP's UUID: "31613262-…" is "1a2b…". */
static bool read_unique_id(const char *uuid, char digits[AMD_DIGITS + 1])
{
    size_t count = 0;
    for (; count < AMD_DIGITS && isxdigit((unsigned char)uuid[0]) && isxdigit((unsigned char)uuid[1]); uuid += 2) {
        const char byte[] = {uuid[0], uuid[1], 0};
        const unsigned long value = strtoul(byte, NULL, 16);
        if (value > 0x7f || !isxdigit((int)value)) {
            return false;
        }
        digits[count++] = (char)value;
        uuid += uuid[2] == '-';
    }
    digits[count] = 0;
    return count == AMD_DIGITS;
}

/* Returns whether NVIDIA's tools know the UUID. They do not know partition numbers. They also do not know the UUIDs
 * that Mesa's drivers create from the PCI ids of NVIDIA chips, which end with zeros (nv_device_uuid()). */
static bool is_of_nvidia(const char *uuid)
{
    enum { DIGITS_AND_DASHES = 36, ZEROS = 8 };
    return strlen(uuid) == DIGITS_AND_DASHES && strcmp(uuid + DIGITS_AND_DASHES - ZEROS, "00000000") != 0;
}

const char *gpuhal_probe_uuid(const char *uuid, uint64_t vendor_id, bool is_part, char space[PROBE_UUID_BYTES])
{
    char digits[AMD_DIGITS + 1];
    if (vendor_id == AMD && read_unique_id(uuid, digits)) {
        snprintf(space, PROBE_UUID_BYTES, "GPU-%s", digits);
    } else if (vendor_id == NVIDIA && is_of_nvidia(uuid)) {
        snprintf(space, PROBE_UUID_BYTES, "%s-%s", is_part ? "MIG" : "GPU", uuid);
    } else {
        return uuid;
    }
    return space;
}

const char *gpuhal_probe_device_uuid(const gpuhal_device *device, gpuhal_key key, char space[PROBE_UUID_BYTES])
{
    const char *uuid, *partition;
    uint64_t vendor_id = 0;
    if (gpuhal_device_text(device, key, &uuid) != GPUHAL_OK) {
        return "";
    }
    gpuhal_device_u64(device, GPUHAL_FACT_VENDOR_ID, &vendor_id);
    const bool is_part = gpuhal_device_text(device, GPUHAL_FACT_PARTITION, &partition) == GPUHAL_OK;
    return gpuhal_probe_uuid(uuid, vendor_id, is_part, space);
}

const char *gpuhal_probe_physical_uuid(const gpuhal_physical_info *physical, const gpuhal_device *device,
                                       char space[PROBE_UUID_BYTES])
{
    uint64_t vendor_id = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_VENDOR_ID, &vendor_id);
    return gpuhal_probe_uuid(physical->uuid, vendor_id, false, space);
}
