/* cuda/address.c: queries the driver about addresses. */
#include "device.h"

/* The addresses for host and device are equal, except on systems without unified addressing. The driver is queried only
 * for the start of an allocation or registration, because the documentation does not cover other addresses. */
CUresult gpuhal_cuda_show_host(void *host, uint64_t *out_address)
{
    CUdeviceptr address = 0;
    const CUresult code = gpuhal_cuda_api.cuMemHostGetDevicePointer_v2(&address, host, 0);
    *out_address = address;
    return code;
}

/* Called inside the context. Returns NULL if the address refers to this device's memory; *out_bytes is the number of
 * contiguous bytes from the address on. */
static const char *piece_fault(const gpuhal_plugin_device *device, CUdeviceptr address, uint64_t *out_bytes,
                               CUdeviceptr *out_range)
{
    CUmemorytype type = 0;
    int ordinal = -1;
    CUdeviceptr base = 0;
    size_t size = 0;
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    if (api->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE) {
        return "values[0] is not an address of device memory";
    }
    if (api->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS ||
        ordinal != (int)device->entry->ordinal) {
        return "the memory is that of another device";
    }
    if (api->cuMemGetAddressRange_v2(&base, &size, address) != CUDA_SUCCESS || address - base >= size) {
        return "the driver does not report the size of the allocation";
    }
    *out_bytes = size - (address - base);
    *out_range = base;
    (void)api->cuPointerGetAttribute(out_range, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    return NULL;
}

/* Called inside the context. The driver reports one piece of physical memory at a time, and allocators that grow in
 * place map many consecutive pieces. The next allocation may begin at the end of this allocation, but belongs to a
 * different range. */
const char *gpuhal_cuda_pointer_fault(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t piece = 0;
    CUdeviceptr first = 0, range = 0;
    const char *fault = piece_fault(device, address, &piece, &first);
    for (uint64_t covered = piece; !fault && covered < bytes; covered += piece) {
        const bool same = !piece_fault(device, address + covered, &piece, &range) && range == first;
        fault = same ? NULL : "the allocation has fewer bytes";
    }
    return fault;
}
