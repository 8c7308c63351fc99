/* rocm/address.c: queries HIP about addresses. */
#include "device.h"

bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes)
{
    void *base = NULL;
    size_t size = 0;
    const hipError_t code = gpuhal_rocm_api.hipMemGetAddressRange(&base, &size, gpuhal_rocm_at(address));
    const uint64_t before = address - (uintptr_t)base;
    gpuhal_rocm_ignore(code);
    *out_bytes = code == hipSuccess && before < size ? size - before : 0;
    return code == hipSuccess;
}

/* The addresses for host and device are equal, except on systems without unified addressing. */
hipError_t gpuhal_rocm_show_host(void *host, uint64_t *out_address)
{
    void *address = NULL;
    const hipError_t code = gpuhal_rocm_api.hipHostGetDevicePointer(&address, host, 0);
    *out_address = (uintptr_t)address;
    return code;
}

/* *out_value must be zero before the call, because HIP writes 8 bits for some attributes and 32 bits for others. */
static bool attribute(hipPointer_attribute which, uint64_t address, uint32_t *out_value)
{
    const hipError_t code = gpuhal_rocm_api.hipPointerGetAttribute(out_value, which, gpuhal_rocm_at(address));
    gpuhal_rocm_ignore(code);
    return code == hipSuccess;
}

/* Requires the device to be current. Returns the fault, or NULL if the address is in memory that this device can
 * access. *out_bytes is the number of bytes from the address to the end of its piece. Managed memory has the host's
 * memory type (hip_memory.cpp), and every device can access it. The type is queried only for memory that HIP knows.
 */
static const char *piece_fault(const gpuhal_plugin_device *device, uint64_t address, uint64_t *out_bytes)
{
    uint32_t type = 0, managed = 0, ordinal = 0;
    if (!gpuhal_rocm_is_known(address, out_bytes)) {
        return "values[0] is not an address of device memory";
    }
    const char *unknown_size = *out_bytes > 0 ? NULL : "HIP does not report the size of the allocation";
    if (attribute(HIP_POINTER_ATTRIBUTE_IS_MANAGED, address, &managed) && managed) {
        return unknown_size;
    }
    if (!attribute(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, address, &type) ||
        type != gpuhal_rocm_runtime.memory_type_device) {
        return "values[0] is not an address of device memory";
    }
    if (!attribute(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, &ordinal) || ordinal != device->entry->ordinal) {
        return "the memory is that of another device";
    }
    return unknown_size;
}

/* Requires the device to be current. HIP reports one piece of physical memory at a time, and allocators that grow in
 * place map many consecutive pieces. */
const char *gpuhal_rocm_pointer_fault(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t piece = 0;
    const char *fault = piece_fault(device, address, &piece);
    for (uint64_t covered = piece; !fault && covered < bytes; covered += piece) {
        fault = piece_fault(device, address + covered, &piece) ? "the allocation has fewer bytes" : NULL;
    }
    return fault;
}
