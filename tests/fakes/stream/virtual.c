/* tests/fakes/stream/virtual.c: virtual memory, and imported memory. Both vendors' constants for virtual memory have
 * the same numbers. */
#include "fake.h"

enum { PINNED = 1, ON_DEVICE = 1, DESCRIPTOR = 1, RECOMMENDED = 1 };

static bool is_good(const vendor_properties *properties)
{
    return properties->type == PINNED && properties->location.type == ON_DEVICE &&
           FAKE_HANDLE_TYPES(properties) <= DESCRIPTOR;
}

fake_code VENDOR(MemGetAllocationGranularity)(size_t *out_bytes, const vendor_properties *properties, unsigned which)
{
    fake_code code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    const bool good = is_good(properties) && which <= RECOMMENDED && fake_device_at(properties->location.id, &code);
    *out_bytes = FAKE_GRANULARITY;
    return fake_end(good || code ? code : FAKE_ERROR_INVALID_VALUE);
}

fake_code VENDOR(MemCreate)(vendor_allocation *out_handle, size_t bytes, const vendor_properties *properties,
                            unsigned long long flags)
{
    fake_code code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    if (!is_good(properties) || flags) {
        fake_report_violation("%s: properties that are none", __func__);
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    fake_physical *physical = NULL;
    const bool exported = FAKE_HANDLE_TYPES(properties) != 0;
    code = fake_physical_new(__func__, bytes, properties->location.id, exported, &physical);
    *out_handle = (vendor_allocation)(uintptr_t)physical;
    return fake_end(code);
}

fake_code VENDOR(MemRelease)(vendor_allocation handle)
{
    fake_code code = fake_enter_virtual(__func__);
    return code ? code : fake_end(fake_physical_release(__func__, (uintptr_t)handle));
}

/* Ignores the address that the caller requests. The real drivers may ignore it too. */
fake_code VENDOR(MemAddressReserve)(vendor_pointer *out_address, size_t bytes, size_t alignment, vendor_pointer wanted,
                                    unsigned long long flags)
{
    uintptr_t address = 0;
    fake_code code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    (void)wanted;
    const bool refused = flags || (!FAKE_KEEPS_ALIGNMENT && (alignment & (alignment - 1)));
    code = refused ? FAKE_ERROR_INVALID_VALUE
                   : fake_range_reserve(__func__, bytes, FAKE_KEEPS_ALIGNMENT ? alignment : 0, &address);
    *out_address = (vendor_pointer)address;
    return fake_end(code);
}

fake_code VENDOR(MemAddressFree)(vendor_pointer address, size_t bytes)
{
    fake_code code = fake_enter_virtual(__func__);
    return code ? code : fake_end(fake_range_free(__func__, (uintptr_t)address, bytes));
}

/* If nothing is mapped, HIP 6.1 to 6.3 dereference a null pointer (hip_vm.cpp, hipMemUnmap). fake_range_unmap()
 * reports this as a violation for every version. */
fake_code VENDOR(MemUnmap)(vendor_pointer address, size_t bytes)
{
    fake_code code = fake_enter_virtual(__func__);
    return code ? code : fake_end(fake_range_unmap(__func__, (uintptr_t)address, bytes));
}

fake_code fake_grant(const char *function, uintptr_t address, size_t bytes, const vendor_access *access, size_t count)
{
    fake_code code = FAKE_OK;
    for (size_t i = 0; !code && i < count; i++) {
        code = access[i].location.type != ON_DEVICE
                   ? FAKE_ERROR_INVALID_VALUE
                   : fake_range_access(function, address, bytes, access[i].location.id, access[i].flags != 0);
    }
    return code;
}

fake_code VENDOR(MemExportToShareableHandle)(void *out_handle, vendor_allocation handle, unsigned type,
                                             unsigned long long flags)
{
    fake_code code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    const bool good = type == DESCRIPTOR && !flags;
    return fake_end(good ? fake_physical_export((uintptr_t)handle, out_handle) : FAKE_ERROR_INVALID_VALUE);
}

/* Versions without virtual memory functions also support external memory. */
fake_code VENDOR(DestroyExternalMemory)(vendor_external memory)
{
    fake_code code = fake_enter_current(__func__);
    return code ? code : fake_end(fake_import_free(__func__, memory));
}

fake_code VENDOR(ExternalMemoryGetMappedBuffer)(vendor_pointer *out_address, vendor_external memory,
                                                const vendor_external_buffer *buffer)
{
    fake_context *context;
    uintptr_t address = 0;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = buffer->flags ? FAKE_ERROR_INVALID_VALUE
                         : fake_import_map(context, memory, buffer->offset, buffer->size, &address);
    *out_address = (vendor_pointer)address;
    return fake_end(code);
}
