/* rocm/page_lock.c: page-locks the caller's memory.
 *
 * HIP has only one registration per address. Registering the address again succeeds, but the first hipHostUnregister
 * ends the registration for all users (hip_memory.cpp, ihipHostRegister; code 712 is never returned). If HIP already
 * knows the memory because the application registered or allocated it, the plugin rejects it, because the plugin's
 * release would end the application's registration. If HIP numbers registrations, memory that contains such application
 * memory in its middle is also rejected. HIP would accept this memory, and later release the correct registration.
 * However, HIP looks up an address by the last registration that begins at or before the address (device.cpp,
 * MemObjMap::FindMemObj). So HIP would not know the bytes after the application's memory, and a copy that begins inside
 * the application's memory would be too long for it.
 *
 * On a machine with one GPU a device reset also ends registrations.
 */
#include "device.h"

uint64_t gpuhal_rocm_id_at(uintptr_t address)
{
    uint32_t id = 0;
    const hipError_t code =
        gpuhal_rocm_api.hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (void *)address);
    gpuhal_rocm_ignore(code);
    return code == hipSuccess ? id : 0;
}

hipError_t gpuhal_rocm_page_lock(const gpuhal_stream_registration *own, uintptr_t start, uint64_t bytes,
                                 const char **out_call)
{
    /* Check first that the application has registered neither end of the range. */
    uint64_t known;
    *out_call = NULL;
    if (gpuhal_rocm_is_known(start, &known) || gpuhal_rocm_is_known(start + bytes - 1, &known)) {
        return hipErrorHostMemoryAlreadyRegistered;
    }
    *out_call = "hipHostRegister";
    const hipError_t code = gpuhal_rocm_api.hipHostRegister(
        (void *)start, (size_t)bytes, hipHostRegisterPortable | hipHostRegisterMapped | own->flags);
    const uint64_t id = code == hipSuccess ? gpuhal_rocm_id_at(start) : 0;
    /* Application memory in the middle can be detected only after the call, because the last byte has another id. */
    if (id != 0 && gpuhal_rocm_id_at(start + (uintptr_t)bytes - 1) != id) {
        (void)gpuhal_rocm_api.hipHostUnregister((void *)start);
        *out_call = NULL;
        return hipErrorHostMemoryAlreadyRegistered;
    }
    return code;
}

/* Also works on a lost device: the pages are unlocked even if the device cannot be entered. A registration that a reset
 * ended is not released, because its address may already have a new registration. */
hipError_t gpuhal_rocm_page_unlock(gpuhal_plugin_device *device, const gpuhal_stream_registration *own,
                                   uintptr_t start)
{
    gpuhal_rocm_scope scope;
    const hipError_t entered = gpuhal_rocm_enter_to_release(device, &scope);
    const hipError_t code =
        !own->gone && gpuhal_rocm_is_there(own) ? gpuhal_rocm_api.hipHostUnregister((void *)start) : hipSuccess;
    if (entered == hipSuccess) {
        gpuhal_rocm_leave(&scope);
    }
    return code;
}

/* If pages cannot be locked for any reason, HIP 5 returns "out of memory" and HIP 6 "invalid value". */
gpuhal_status gpuhal_rocm_lock_failed(gpuhal_plugin_device *device, const char *call, hipError_t code, bool read_only)
{
    (void)read_only;
    const char *sentence = code == hipErrorOutOfMemory    ? "the system locks no more memory in place"
                           : code == hipErrorInvalidValue ? "the system does not lock these pages: the limit of locked "
                                                            "memory is reached (ulimit -l), or the memory is read-only"
                                                          : NULL;
    if (code == hipErrorHostMemoryAlreadyRegistered) {
        return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_BUSY, call, code,
                                     "the program has allocated or registered this memory with HIP itself");
    }
    return sentence ? gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code, sentence)
                    : gpuhal_rocm_result(device, call, code);
}

/* In hip_runtime_api.h the value 8 is used for two flags: hipHostRegisterReadOnly, which AMD ignores, and
 * coarse-grained memory, which is harmless for read-only memory. */
unsigned int gpuhal_rocm_read_only_flags(const gpuhal_plugin_device *device)
{
    (void)device;
    return hipExtHostRegisterCoarseGrained;
}

/* Returns false, because AMD ignores the read-only flag. */
bool gpuhal_rocm_flags_matter(hipError_t code)
{
    (void)code;
    return false;
}
