/* cuda/calls.c: functions for plugins/stream whose CUDA calls differ from HIP's. */
#include "device.h"

#include <stdio.h>
#include <string.h>

/* CUDA's lowest priority is 0. */
CUresult gpuhal_cuda_create_stream(CUstream *out_stream, CUevent *out_event, const char **out_call)
{
    *out_call = "cuStreamCreateWithPriority";
    CUresult code = gpuhal_cuda_api.cuStreamCreateWithPriority(out_stream, CU_STREAM_NON_BLOCKING, 0);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    *out_call = "cuEventCreate";
    code = gpuhal_cuda_api.cuEventCreate(out_event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuStreamDestroy_v2(*out_stream);
    }
    return code;
}

void gpuhal_cuda_destroy_stream(CUstream stream, CUevent event)
{
    (void)gpuhal_cuda_api.cuEventDestroy_v2(event);
    (void)gpuhal_cuda_api.cuStreamDestroy_v2(stream);
}

const char *gpuhal_cuda_copy_call(const gpuhal_stream_place *to, const gpuhal_stream_place *from)
{
    if (to->host) {
        return from->host ? "cuMemcpyAsync" : "cuMemcpyDtoHAsync";
    }
    return from->host ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoDAsync";
}

CUresult gpuhal_cuda_copy_anywhere(CUstream stream, uint64_t to, uint64_t from, uint64_t bytes)
{
    return gpuhal_cuda_api.cuMemcpyAsync(to, from, (size_t)bytes, stream);
}

CUresult gpuhal_cuda_copy_bytes(CUstream stream, const gpuhal_stream_place *to, const gpuhal_stream_place *from,
                                uint64_t bytes)
{
    if (to->host && from->host) {
        return gpuhal_cuda_copy_anywhere(stream, (uintptr_t)to->host, (uintptr_t)from->host, bytes);
    }
    if (to->host) {
        return gpuhal_cuda_api.cuMemcpyDtoHAsync_v2(to->host, from->device, (size_t)bytes, stream);
    }
    if (from->host) {
        return gpuhal_cuda_api.cuMemcpyHtoDAsync_v2(to->device, from->host, (size_t)bytes, stream);
    }
    return gpuhal_cuda_api.cuMemcpyDtoDAsync_v2(to->device, from->device, (size_t)bytes, stream);
}

CUresult gpuhal_cuda_copy_between(CUstream stream, uint64_t to, CUcontext to_device, uint64_t from,
                                  CUcontext from_device, uint64_t bytes)
{
    return gpuhal_cuda_api.cuMemcpyPeerAsync(to, to_device, from, from_device, (size_t)bytes, stream);
}

CUresult gpuhal_cuda_copy_rows(CUstream stream, const gpuhal_stream_place *to, uint64_t to_pitch,
                               const gpuhal_stream_place *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows)
{
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = from->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from->host,
        .srcDevice = from->device,
        .srcPitch = (size_t)from_pitch,
        .dstMemoryType = to->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to->host,
        .dstDevice = to->device,
        .dstPitch = (size_t)to_pitch,
        .WidthInBytes = (size_t)bytes,
        .Height = (size_t)rows,
    };
    return gpuhal_cuda_api.cuMemcpy2DAsync_v2(&copy, stream);
}

CUresult gpuhal_cuda_fill_whole(CUstream stream, uint64_t at, const unsigned char *pattern, uint32_t pattern_bytes,
                                uint64_t bytes)
{
    /* Use memcpy, because @p pattern may be rotated (transfer.c) and need not be aligned. */
    uint32_t word;
    uint16_t half;
    switch (pattern_bytes) {
    case 4:
        memcpy(&word, pattern, sizeof word);
        return gpuhal_cuda_api.cuMemsetD32Async(at, word, (size_t)(bytes / 4), stream);
    case 2:
        memcpy(&half, pattern, sizeof half);
        return gpuhal_cuda_api.cuMemsetD16Async(at, half, (size_t)(bytes / 2), stream);
    default:
        return gpuhal_cuda_api.cuMemsetD8Async(at, pattern[0], (size_t)bytes, stream);
    }
}

/* INVALID_VALUE means that the driver does not know the memory. Other codes are reported by the copy itself. */
static bool is_unknown(const void *address)
{
    CUmemorytype type = 0;
    const CUdeviceptr at = (uintptr_t)address;
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && type == 0);
}

/* Only the two ends are checked. Memory that was registered or allocated in one call is page-locked from its first to
 * its last byte. If there is a gap in the middle, the only effect is that an enqueued copy blocks. */
bool gpuhal_cuda_is_pageable(const void *host, uint64_t bytes)
{
    return is_unknown(host) || is_unknown((const char *)host + (bytes - 1));
}

bool gpuhal_cuda_api_version(char *out_text, size_t size)
{
    int version = 0;
    if (gpuhal_cuda_api.cuDriverGetVersion(&version) != CUDA_SUCCESS || version <= 0) {
        return false;
    }
    snprintf(out_text, size, "%d.%d", version / 1000, version % 1000 / 10);
    return true;
}

CUresult gpuhal_cuda_reserve(uint64_t bytes, uint64_t alignment, gpuhal_stream_reservation *out_reserved)
{
    CUdeviceptr address = 0;
    const CUresult code = gpuhal_cuda_api.cuMemAddressReserve(&address, (size_t)bytes, (size_t)alignment, 0, 0);
    *out_reserved =
        (gpuhal_stream_reservation){.start = address, .whole_bytes = bytes, .address = address, .bytes = bytes};
    return code;
}

void gpuhal_cuda_unmap(uint64_t address, uint64_t bytes)
{
    (void)gpuhal_cuda_api.cuMemUnmap(address, (size_t)bytes);
}

CUresult gpuhal_cuda_import_handle(int descriptor, CUmemGenericAllocationHandle *out_handle)
{
    return gpuhal_cuda_api.cuMemImportFromShareableHandle(out_handle, (void *)(intptr_t)descriptor,
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}
