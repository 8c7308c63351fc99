/* visible.c: see visible.h. Devices are named by UUID, which does not depend on the order of a list.
 *
 * CUDA requires "GPU-" or "MIG-" before the UUID (CUDA C Programming Guide, CUDA Environment Variables). ROCm requires
 * "GPU-" before the chip's unique id of 16 digits (ROCm, "GPU isolation techniques"). HIP reports the characters of
 * this id as the bytes of the UUID. HIP reads CUDA_VISIBLE_DEVICES if HIP_VISIBLE_DEVICES is not set, so
 * HIP_VISIBLE_DEVICES is always set. Its value lists the indices, counted from 0, of the devices that
 * ROCR_VISIBLE_DEVICES leaves visible. An empty list is written as -1. An empty CUDA_VISIBLE_DEVICES hides all CUDA
 * devices. The effect of an empty ROCR_VISIBLE_DEVICES is undocumented, so the variable is removed. GPU_DEVICE_ORDINAL,
 * an older name for HIP's variable, would also take effect and is removed as well. */
#include "visible.h"

#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 8192, NAME_BYTES = 128, UNIQUE_ID_DIGITS = 16 };

typedef struct lists {
    char cuda[LIST_BYTES], rocm[LIST_BYTES], hip[LIST_BYTES], own[LIST_BYTES];
    uint32_t rocm_count;
} lists;

static const char *text_of(const gpuhal_device *device, gpuhal_key key)
{
    const char *text = NULL;
    return gpuhal_device_text(device, key, &text) == GPUHAL_OK ? text : NULL;
}

static bool is_of(const gpuhal_device *device, const char *backend)
{
    return strcmp(gpuhal_device_backend(device), backend) == 0;
}

/* Reads a UUID whose bytes are all ASCII hex digits: "31613262-…" is "1a2b…". Returns false for any other UUID. */
static bool read_unique_id(const char *uuid, char out[UNIQUE_ID_DIGITS + 1])
{
    size_t count = 0;
    while (count < UNIQUE_ID_DIGITS && uuid[0] && uuid[1]) {
        const char byte[] = {uuid[0], uuid[1], 0};
        const char digit = (char)strtoul(byte, NULL, 16);
        if (!digit || !strchr("0123456789abcdef", digit)) {
            return false;
        }
        out[count++] = digit;
        uuid += 2;
        uuid += *uuid == '-';
    }
    out[count] = 0;
    return count == UNIQUE_ID_DIGITS;
}

/* Writes a device's name for its vendor's library. The name is the UUID, or the vendor's index if the device has no
 * UUID of its own. Partitions of an AMD GPU share one UUID. */
static void name_for_vendor(const gpuhal_device *device, char out[NAME_BYTES])
{
    const char *uuid = text_of(device, GPUHAL_FACT_UUID);
    char unique_id[UNIQUE_ID_DIGITS + 1];
    uint64_t index = gpuhal_device_index(device);
    if (uuid && is_of(device, "cuda")) {
        snprintf(out, NAME_BYTES, "%s-%s", text_of(device, GPUHAL_FACT_PARTITION) ? "MIG" : "GPU", uuid);
    } else if (uuid && !text_of(device, GPUHAL_FACT_PARTITION) && read_unique_id(uuid, unique_id)) {
        snprintf(out, NAME_BYTES, "GPU-%s", unique_id);
    } else {
        (void)gpuhal_device_u64(device, GPUHAL_FACT_NATIVE_INDEX, &index);
        snprintf(out, NAME_BYTES, "%" PRIu64, index);
    }
}

static void add(char *list, const char *name)
{
    gpuhal_tool_append(list, LIST_BYTES, ",", "%s", name);
}

/* Adds a device and its share of memory to GPUHAL_DEVICES. Versions of the library without leases also keep to
 * this share. */
static void add_own(lists *out, const gpuhal_device *device, uint64_t bytes)
{
    const char *uuid = text_of(device, GPUHAL_FACT_UUID), *address = text_of(device, GPUHAL_FACT_PCI_ADDRESS);
    char name[NAME_BYTES], limit[32] = "";
    if (bytes > 0) {
        snprintf(limit, sizeof limit, "@%" PRIu64 "B", bytes);
    }
    if (uuid) {
        snprintf(name, sizeof name, "uuid=%s%s", uuid, limit);
    } else if (address) {
        snprintf(name, sizeof name, "pci=%s%s", address, limit);
    } else {
        snprintf(name, sizeof name, "%s%s", gpuhal_device_id(device), limit);
    }
    add(out->own, name);
}

static bool is_same_part(const gpuhal_device *one, const gpuhal_device *other)
{
    uint32_t first = 0, second = 0, preferred = 0;
    const char *here = text_of(one, GPUHAL_FACT_PARTITION), *there = text_of(other, GPUHAL_FACT_PARTITION);
    const bool same = gpuhal_device_physical(one, &first, &preferred) == GPUHAL_OK &&
                      gpuhal_device_physical(other, &second, &preferred) == GPUHAL_OK && first == second && first > 0;
    return one == other || (same && (here == there || (here && there && strcmp(here, there) == 0)));
}

static void add_device(gpuhal *gpu, const gpuhal_device *leased, uint64_t bytes, lists *out)
{
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, d);
        char name[NAME_BYTES];
        if (!is_same_part(leased, device)) {
            continue;
        }
        name_for_vendor(device, name);
        if (is_of(device, "cuda")) {
            add(out->cuda, name);
        } else if (is_of(device, "rocm")) {
            add(out->rocm, name);
            snprintf(name, sizeof name, "%" PRIu32, out->rocm_count++);
            add(out->hip, name);
        }
    }
    add_own(out, leased, bytes);
}

static bool set(const char *name, const char *value)
{
    return value ? setenv(name, value, 1) == 0 : unsetenv(name) == 0;
}

bool gpuhal_lease_set_visible(gpuhal *gpu, const gpuhal_lease *lease, uint64_t bytes)
{
    static lists all;
    char number[32];
    for (uint32_t i = 0; gpuhal_lease_device_at(lease, i); i++) {
        add_device(gpu, gpuhal_lease_device_at(lease, i), bytes, &all);
    }
    snprintf(number, sizeof number, "%" PRIu64, gpuhal_lease_number(lease));
    return set("CUDA_VISIBLE_DEVICES", all.cuda) && set("ROCR_VISIBLE_DEVICES", *all.rocm ? all.rocm : NULL) &&
           set("HIP_VISIBLE_DEVICES", *all.hip ? all.hip : "-1") && set("GPU_DEVICE_ORDINAL", NULL) &&
           set("GPUHAL_DEVICES", all.own) && set("GPUHAL_LEASE", number);
}
