/* tests/fakes/cuda/device.c: the visible devices, and the driver's facts about them. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A GPU with MIG partitions is visible as the first of them. */
static void see_whole(unsigned physical)
{
    const fake_plan *plan = &fake_script_get()->devices[physical];
    fake_device_see(physical, plan->mig_count ? &plan->migs[0] : NULL, 0);
}

/* A prefix of a UUID suffices, in upper or lower case. */
static bool uuid_begins(const fake_uuid *uuid, const char *wanted, size_t length)
{
    char text[37];
    fake_uuid_text(uuid, text);
    return length > 0 && length <= 36 && strncasecmp(text, wanted, length) == 0;
}

static bool see_by_uuid(const char *name, size_t length)
{
    const fake_script *script = fake_script_get();
    bool part = strncmp(name, "MIG-", 4) == 0;
    if (length <= 4 || (!part && strncmp(name, "GPU-", 4) != 0)) {
        return false;
    }
    for (unsigned i = 0; i < script->device_count; i++) {
        const fake_plan *plan = &script->devices[i];
        if (!part && uuid_begins(&plan->uuid, name + 4, length - 4)) {
            see_whole(i);
            return true;
        }
        for (unsigned m = 0; part && m < plan->mig_count; m++) {
            if (uuid_begins(&plan->migs[m].uuid, name + 4, length - 4)) {
                fake_device_see(i, &plan->migs[m], 0);
                return true;
            }
        }
    }
    return false;
}

/* The first entry that matches no device ends the list. */
static void see_listed(const char *list, const unsigned *order)
{
    const unsigned count = fake_script_get()->listed_count;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        if (isdigit((unsigned char)*at)) {
            unsigned long index = strtoul(at, NULL, 10);
            if (index >= count) {
                return;
            }
            see_whole(order[index]);
        } else if (!see_by_uuid(at, length)) {
            return;
        }
        at += length + (at[length] == ',');
    }
}

void fake_devices_find(void)
{
    const fake_script *script = fake_script_get();
    unsigned order[FAKE_DEVICES] = {0};
    const char *sorted = getenv("CUDA_DEVICE_ORDER"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (sorted && strcmp(sorted, "PCI_BUS_ID") == 0) {
        fake_script_pci_order(script, order);
    } else {
        for (unsigned i = 0; i < script->device_count; i++) {
            order[i] = i;
        }
    }
    fake.device_count = 0;
    if (visible) {
        see_listed(visible, order);
        return;
    }
    for (unsigned i = 0; i < script->device_count; i++) {
        const fake_plan *plan = &script->devices[order[i]];
        const bool is_empty = plan->mig_mode && plan->mig_count == 0;
        if (order[i] < script->listed_count && !is_empty) {
            see_whole(order[i]);
        }
    }
}

CUresult cuDeviceGetCount(int *out_count)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *out_count = (int)fake.device_count;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *out_uuid, CUdevice ordinal)
{
    fake_device *device;
    CUresult code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    memcpy(out_uuid->bytes, device->plan->uuid.bytes, sizeof out_uuid->bytes);
    return fake_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid *out_uuid, CUdevice ordinal)
{
    fake_device *device;
    CUresult code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    memcpy(out_uuid->bytes, device->mig ? device->mig->uuid.bytes : device->plan->uuid.bytes, sizeof out_uuid->bytes);
    return fake_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice ordinal)
{
    fake_device *device;
    CUresult code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    const fake_plan *plan = device->plan;
    snprintf(address, (size_t)length, "%04X:%02X:%02X.0", plan->pci_domain, plan->pci_bus, plan->pci_device);
    return fake_end(CUDA_SUCCESS);
}

/* Values of an H100 for the attributes that callers query. */
static const struct {
    CUdevice_attribute number;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
};

bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value)
{
    if (number == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) {
        *out_value = plan->compute_mode;
        return true;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].number == number) {
            *out_value = attributes[i].value;
            return true;
        }
    }
    return false;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (!fake_context_alive(peer) || flags) {
        fake_report_violation("%s: no context, or flags", __func__);
        return fake_end(fake_context_alive(peer) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT);
    }
    return fake_end(fake_peer_enable(context, peer->device));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (!fake_context_alive(peer)) {
        fake_report_violation("%s: no context", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    return fake_end(fake_peer_disable(context, peer->device));
}
