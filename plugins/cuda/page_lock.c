/* cuda/page_lock.c: page-locks the caller's memory.
 *
 * CUDA registers memory only once: cuMemHostRegister returns 712 for pages that any context has registered, although a
 * portable registration is valid in every context.
 *
 * A registration ends with its context. A registration in a device's primary context therefore retains that context,
 * even after the device has been closed. A registration in the caller's context is shared only within that context.
 * Resetting the primary context ends its registrations.
 */
#include "device.h"

uint64_t gpuhal_cuda_id_at(uintptr_t address)
{
    unsigned long long id = 0;
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    return code == CUDA_SUCCESS ? id : 0;
}

/* Does not support device memory (CU_MEMHOSTREGISTER_IOMEMORY), because the core passes only ordinary pages. */
CUresult gpuhal_cuda_page_lock(const gpuhal_stream_registration *own, uintptr_t start, uint64_t bytes,
                               const char **out_call)
{
    CUcontext same = NULL;
    *out_call = "cuDevicePrimaryCtxRetain";
    CUresult code = own->adopted ? CUDA_SUCCESS : gpuhal_cuda_api.cuDevicePrimaryCtxRetain(&same, own->device);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    *out_call = "cuMemHostRegister";
    code = gpuhal_cuda_api.cuMemHostRegister_v2((void *)start, (size_t)bytes,
                                                CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                                    own->flags);
    if (code != CUDA_SUCCESS && !own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    return code;
}

/* Works in the registration's context, because the last user may be an opened device with another context. If the
 * pages' ID has changed, the pages belong to another registration, which must not be ended. The context is released in
 * any case, to balance page_lock(). */
CUresult gpuhal_cuda_page_unlock(gpuhal_plugin_device *device, const gpuhal_stream_registration *own,
                                 uintptr_t start)
{
    (void)device;
    gpuhal_cuda_scope scope;
    CUresult code = CUDA_SUCCESS;
    if (!own->gone && gpuhal_cuda_is_there(own)) {
        code = gpuhal_cuda_enter_context(own->context, &scope);
        if (code == CUDA_SUCCESS) {
            code = gpuhal_cuda_api.cuMemHostUnregister((void *)start);
            gpuhal_cuda_leave(&scope);
        }
    }
    if (!own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    return code;
}

/* Applications map files such as model weights read-only. Pass the flag for read-only memory if the device supports it.
 * Devices without the attribute refuse the flag for all memory (B300 with driver 610). Without the flag the driver pins
 * the pages for writing (os_lock_user_pages in os-mlock.c of its kernel modules). For a private mapping the system then
 * copies the pages. */
unsigned int gpuhal_cuda_read_only_flags(const gpuhal_plugin_device *device)
{
    return device->entry->registers_read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0;
}

/* CUDA does not document the error code for read-only memory, but it documents those of other errors. */
bool gpuhal_cuda_flags_matter(CUresult code)
{
    const gpuhal_status status = gpuhal_cuda_status(code);
    return status == GPUHAL_ERROR_DRIVER || status == GPUHAL_ERROR_NO_PERMISSION ||
           status == GPUHAL_ERROR_NOT_SUPPORTED;
}

/* CUDA_ERROR_OUT_OF_MEMORY means here that host memory, not device memory, is exhausted. */
gpuhal_status gpuhal_cuda_lock_failed(gpuhal_plugin_device *device, const char *call, CUresult code, bool read_only)
{
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code,
                                     "the system locks no more memory in place");
    }
    if (read_only && gpuhal_cuda_flags_matter(code) && !device->entry->registers_read_only) {
        return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_NOT_SUPPORTED, call, code,
                                     "the device cannot read read-only memory in place: map it MAP_PRIVATE with "
                                     "PROT_WRITE, and the system makes a copy");
    }
    return gpuhal_cuda_result(device, call, code);
}
