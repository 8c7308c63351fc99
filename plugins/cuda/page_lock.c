/* cuda/page_lock.c: page-locking memory of the caller.
 *
 * CUDA takes memory once: cuMemHostRegister returns 712 for pages that any context has registered, even though a
 * registration is portable and serves every context.
 *
 * A registration ends with the context in which it was made. So one that was made in a device's primary context keeps
 * that context, also after the device was closed, and one that was made in a context of the caller is shared in that
 * context alone. A reset of the primary context takes it.
 */
#include "device.h"

uint64_t gpuhal_cuda_id_at(uintptr_t address)
{
    unsigned long long id = 0;
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    return code == CUDA_SUCCESS ? id : 0;
}

/* Not for memory of devices (CU_MEMHOSTREGISTER_IOMEMORY): the core passes ordinary pages. */
CUresult gpuhal_cuda_page_lock(gpuhal_stream_registration *own)
{
    CUcontext same = NULL;
    CUresult code = own->adopted ? CUDA_SUCCESS : gpuhal_cuda_api.cuDevicePrimaryCtxRetain(&same, own->device);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    code =
        gpuhal_cuda_api.cuMemHostRegister_v2((void *)own->start, (size_t)own->bytes,
                                             CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | own->flags);
    if (code != CUDA_SUCCESS && !own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    own->id = code == CUDA_SUCCESS ? gpuhal_cuda_id_at(own->start) : 0;
    return code;
}

/* In the context of the registration, not of the opened device that happens to be its last user. Pages whose number
 * has changed belong to another registration, which must stay; the context is released in any case, once for
 * page_lock(). */
CUresult gpuhal_cuda_page_unlock(gpuhal_plugin_device *device, const gpuhal_stream_registration *own)
{
    (void)device;
    gpuhal_cuda_scope scope;
    CUresult code = CUDA_SUCCESS;
    if (!own->gone && gpuhal_cuda_is_there(own)) {
        code = gpuhal_cuda_enter_context(own->context, &scope);
        if (code == CUDA_SUCCESS) {
            code = gpuhal_cuda_api.cuMemHostUnregister((void *)own->start);
            gpuhal_cuda_leave(&scope);
        }
    }
    if (!own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    return code;
}

/* It is memory of the host that is missing then, not of the device. */
gpuhal_status gpuhal_cuda_lock_failed(gpuhal_plugin_device *device, const char *call, CUresult code)
{
    return code == CUDA_ERROR_OUT_OF_MEMORY
               ? gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code,
                                       "the system gives no more memory that stays in place")
               : gpuhal_cuda_result(device, call, code);
}

/* Files of weights are mapped without the right to write, which the driver must know. Which code it has for
 * memory that may not be written is not documented; those of other faults are. */
unsigned int gpuhal_cuda_flags_after(const gpuhal_plugin_device *device, CUresult code)
{
    const gpuhal_status status = gpuhal_cuda_status(code);
    const bool may_be_read_only =
        status == GPUHAL_ERROR_DRIVER || status == GPUHAL_ERROR_NO_PERMISSION || status == GPUHAL_ERROR_NOT_SUPPORTED;
    return device->entry->registers_read_only && may_be_read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0;
}
