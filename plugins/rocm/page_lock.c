/* rocm/page_lock.c: page-locks memory of the caller.
 *
 * HIP keeps one registration for an address, however often it is made: hipHostRegister succeeds again, and the first
 * hipHostUnregister ends it for all (hip_memory.cpp, ihipHostRegister; the code 712 is never returned). Memory that HIP
 * knows and that is not ours, because the engine registered or allocated it, is refused: our release would end the
 * engine's registration. Memory with some of the engine's in its middle is refused too, if HIP numbers registrations.
 * HIP would take it, and later release the right one of the two. But it looks an address up by the last piece that
 * begins before it (device.cpp, MemObjMap::FindMemObj). So the bytes after the engine's piece would be unknown to it,
 * and a copy that begins inside the piece would be too long.
 *
 * On a machine with one GPU a reset of the device takes registrations too.
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
    /* The engine's memory is found at the two ends before HIP is called, since HIP would take it, and our release would
     * end the engine's registration. */
    uint64_t known;
    *out_call = NULL;
    if (gpuhal_rocm_is_known(start, &known) || gpuhal_rocm_is_known(start + bytes - 1, &known)) {
        return hipErrorHostMemoryAlreadyRegistered;
    }
    *out_call = "hipHostRegister";
    const hipError_t code = gpuhal_rocm_api.hipHostRegister(
        (void *)start, (size_t)bytes, hipHostRegisterPortable | hipHostRegisterMapped | own->flags);
    const uint64_t id = code == hipSuccess ? gpuhal_rocm_id_at(start) : 0;
    /* The engine's memory in the middle shows only now, by the number at the end. */
    if (id != 0 && gpuhal_rocm_id_at(start + (uintptr_t)bytes - 1) != id) {
        (void)gpuhal_rocm_api.hipHostUnregister((void *)start);
        *out_call = NULL;
        return hipErrorHostMemoryAlreadyRegistered;
    }
    return code;
}

/* Also works with a lost device: pages are given back even if it cannot be entered. A registration that a reset took is
 * not given back: its address may be another's registration by now. */
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

/* For pages that it cannot lock HIP 5 returns "out of memory", and HIP 6 "invalid value", for any reason. */
gpuhal_status gpuhal_rocm_lock_failed(gpuhal_plugin_device *device, const char *call, hipError_t code, bool read_only)
{
    (void)read_only;
    const char *sentence = code == hipErrorOutOfMemory ? "the system gives no more memory that stays in place"
                           : code == hipErrorInvalidValue
                               ? "the system does not lock these pages: no more memory may stay in "
                                 "place (ulimit -l), or the memory may not be written"
                               : NULL;
    if (code == hipErrorHostMemoryAlreadyRegistered) {
        return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_BUSY, call, code,
                                     "the program has allocated or registered this memory with HIP itself");
    }
    return sentence ? gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code, sentence)
                    : gpuhal_rocm_result(device, call, code);
}

/* 8 is two flags in hip_runtime_api.h: hipHostRegisterReadOnly, which AMD ignores, and coarse-grained memory, which is
 * harmless for memory that is only read. */
unsigned int gpuhal_rocm_read_only_flags(const gpuhal_plugin_device *device)
{
    (void)device;
    return hipExtHostRegisterCoarseGrained;
}

/* AMD ignores that memory is only read. */
bool gpuhal_rocm_flags_matter(hipError_t code)
{
    (void)code;
    return false;
}
