/* tests/fakes/rocm/device.c: the visible devices, the runtime's facts about them, and access between them. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device that the runtime below HIP makes visible. Each partition of a device is a separate entry. */
typedef struct seen {
    unsigned physical, partition;
} seen;

enum { SEEN_AT_MOST = 2 * FAKE_DEVICES };

static unsigned uuid_text(const fake_plan *plan, char out[17])
{
    if (plan->no_uuid) {
        return (unsigned)snprintf(out, 17, "XX");
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(out + 2 * i, 3, "%02x", plan->uuid.bytes[i]);
    }
    return 16;
}

/* Returns the index of the device that a list entry names, or -1 if there is none. An entry is a number or
 * GPU-<uuid>. */
static int named(const char *word, size_t length, const seen *from, unsigned count)
{
    char uuid[17];
    if (isdigit((unsigned char)word[0])) {
        const unsigned long index = strtoul(word, NULL, 10);
        return index < count ? (int)index : -1;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned digits = uuid_text(&fake_script_get()->devices[from[i].physical], uuid);
        if (length == digits + 4 && strncmp(word, "GPU-", 4) == 0 && strncmp(word + 4, uuid, digits) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Keeps the listed devices in the list's order. The first entry that names no device ends the list. Without a list
 * all devices remain. */
static unsigned keep_listed(const char *list, seen *all, unsigned count)
{
    seen kept[SEEN_AT_MOST];
    unsigned used = 0;
    if (!list) {
        return count;
    }
    for (const char *at = list; *at && used < SEEN_AT_MOST;) {
        const size_t length = strcspn(at, ",");
        const int index = named(at, length, all, count);
        if (index < 0) {
            break;
        }
        kept[used++] = all[index];
        at += length + (at[length] == ',');
    }
    memcpy(all, kept, used * sizeof *all);
    return used;
}

void fake_devices_find(void)
{
    const fake_script *script = fake_script_get();
    seen all[SEEN_AT_MOST];
    unsigned count = 0;
    for (unsigned i = 0; i < script->device_count; i++) {
        const unsigned parts = script->devices[i].partitions ? script->devices[i].partitions : 1;
        for (unsigned p = 0; p < parts && count < SEEN_AT_MOST; p++) {
            all[count++] = (seen){i, p};
        }
    }
    const char *visible = getenv("HIP_VISIBLE_DEVICES");
    count = keep_listed(getenv("ROCR_VISIBLE_DEVICES"), all, count);
    count = keep_listed(visible ? visible : getenv("CUDA_VISIBLE_DEVICES"), all, count);
    fake.device_count = 0;
    for (unsigned i = 0; i < count; i++) {
        fake_device_see(all[i].physical, NULL, all[i].partition);
    }
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = 0;
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *count = (int)fake.device_count;
    return fake_end(fake.device_count ? hipSuccess : hipErrorNoDevice);
}

/* HIP's UUID consists of sixteen characters. All partitions of a device have the same UUID. */
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t ordinal)
{
    fake_device *device;
    char text[17] = "";
    hipError_t code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    uuid_text(device->plan, text);
    memcpy(uuid->bytes, text, sizeof uuid->bytes);
    return fake_end(hipSuccess);
}

/* The partitions of a device appear as its PCI functions. */
hipError_t hipDeviceGetPCIBusId(char *address, int length, int ordinal)
{
    fake_device *device;
    hipError_t code = fake_enter_device(__func__, ordinal, &device);
    if (code || length < 13) {
        return code ? code : fake_end(hipErrorInvalidValue);
    }
    const fake_plan *plan = device->plan;
    snprintf(address, (size_t)length, "%04x:%02x:%02x.%01x", plan->pci_domain, plan->pci_bus, plan->pci_device,
             device->partition);
    return fake_end(hipSuccess);
}

/* Values of an MI300X, by AMD's attribute numbers. A version that is older than an attribute does not know it. */
static const struct {
    unsigned number;
    int since; /* version in the format of hipRuntimeGetVersion */
    int value;
} attributes[] = {
    {0, 0, 1},                /* EccEnabled */
    {2, 0, 8},                /* AsyncEngineCount */
    {3, 0, 1},                /* CanMapHostMemory */
    {4, 0, 1},                /* CanUseHostPointerForRegisteredMem */
    {5, 0, 2100000},          /* ClockRate */
    {9, 0, 1},                /* ConcurrentManagedAccess */
    {16, 0, 0},               /* Integrated */
    {23, 0, 9},               /* ComputeCapabilityMajor */
    {24, 0, 1},               /* ManagedMemory */
    {26, 0, 1024},            /* MaxBlockDimX */
    {27, 0, 1024},            /* MaxBlockDimY */
    {28, 0, 1024},            /* MaxBlockDimZ */
    {29, 0, 2147483647},      /* MaxGridDimX */
    {30, 0, 65536},           /* MaxGridDimY */
    {31, 0, 65536},           /* MaxGridDimZ */
    {56, 0, 1024},            /* MaxThreadsPerBlock */
    {58, 0, 2147483647},      /* MaxPitch */
    {59, 0, 8192},            /* MemoryBusWidth */
    {60, 0, 1300000},         /* MemoryClockRate */
    {61, 0, 4},               /* ComputeCapabilityMinor */
    {63, 0, 304},             /* MultiprocessorCount */
    {65, 0, 0},               /* PageableMemoryAccess */
    {74, 0, 65536},           /* MaxSharedMemoryPerBlock */
    {87, 0, 64},              /* WarpSize */
    {88, 0, 0},               /* MemoryPoolsSupported */
    {89, 50300000, 1},        /* VirtualMemoryManagementSupported */
    {90, 60000000, 1},        /* HostRegisterSupported */
    {10017, 50400000, 100000} /* WallClockRate */
};

/* A program must not query an attribute number that does not exist in this version, or has another meaning in it. */
bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value)
{
    if (number == 6) { /* ComputeMode */
        *out_value = plan->compute_mode;
        return true;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].number == number && attributes[i].since <= fake_script_get()->driver_version) {
            *out_value = attributes[i].value;
            return true;
        }
    }
    fake_report_violation("hipDeviceGetAttribute: HIP %u has no attribute %u", fake_hip_major(), number);
    return false;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (flags || !fake_device_at(peer, &code)) {
        return fake_end(flags ? hipErrorInvalidValue : code);
    }
    if ((unsigned)peer == context->device) {
        fake_report_violation("%s: to the device itself", __func__);
        return fake_end(hipErrorInvalidDevice);
    }
    return fake_end(fake_peer_enable(context, (unsigned)peer));
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    return fake_end(fake_device_at(peer, &code) ? fake_peer_disable(context, (unsigned)peer) : code);
}

/* HSA's link types: 2 PCIe, 4 XGMI. */
hipError_t hipExtGetLinkTypeAndHopCount(int ordinal, int peer, uint32_t *type, uint32_t *hops)
{
    fake_device *from, *to;
    hipError_t code = fake_enter_device(__func__, ordinal, &from);
    if (code) {
        return code;
    }
    to = fake_device_at(peer, &code);
    if (!to || to == from) {
        return fake_end(to ? hipErrorInvalidDevice : code);
    }
    const fake_link *link = &fake_script_get()->links[from->physical][to->physical];
    *type = link->kind == FAKE_LINK_XGMI ? 4 : 2;
    *hops = link->kind == FAKE_LINK_XGMI ? link->lanes : link->kind == FAKE_LINK_SYSTEM ? 3 : 2;
    return fake_end(hipSuccess);
}
