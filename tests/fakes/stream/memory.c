/* tests/fakes/stream/memory.c: allocations of device memory and page-locked memory, and fills. */
#include "fake.h"

fake_code VENDOR(MemGetInfo)(size_t *out_free, size_t *out_total)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    *out_free = fake_free_bytes(context->device);
    *out_total = fake.devices[context->device].memory;
    return fake_end(FAKE_OK);
}

fake_code VENDOR(MemAlloc)(vendor_pointer *out_address, size_t bytes)
{
    fake_context *context;
    uintptr_t address = 0;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = bytes || FAKE_WANTS_BYTES ? fake_memory_new(context, bytes, &address) : FAKE_OK;
    *out_address = (vendor_pointer)address;
    return fake_end(code);
}

static fake_code give_back(const char *function, uintptr_t address, bool of_host)
{
    fake_code code = fake_enter_current(function);
    if (code) {
        return code;
    }
    if (FAKE_FREES_NULL && !address) {
        return fake_end(FAKE_OK);
    }
    const fake_region *region = fake_region_find(address, 1);
    const bool managed = region && region->kind == FAKE_MANAGED_MEMORY; /* freed like device memory */
    const fake_region_kind kind = of_host ? FAKE_HOST_MEMORY : managed ? FAKE_MANAGED_MEMORY : FAKE_DEVICE_MEMORY;
    const fake_region_kind other = of_host ? FAKE_HOST_MEMORY : FAKE_IMPORTED;
    return fake_end(fake_memory_free(function, address, kind, other, FAKE_ERROR_INVALID_VALUE));
}

fake_code VENDOR(MemFree)(vendor_pointer address)
{
    return give_back(__func__, (uintptr_t)address, false);
}

fake_code VENDOR(HostAlloc)(void **out_memory, size_t bytes, unsigned flags)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    return fake_end(flags > 7 ? FAKE_ERROR_INVALID_VALUE
                              : fake_host_memory_new(context, FAKE_HOST_MEMORY, bytes, out_memory));
}

/* HIP reports managed memory as host memory (hip_memory.cpp: CL_MEM_SVM_FINE_GRAIN_BUFFER), CUDA as device memory. Both
 * copy it like device memory. */
fake_code VENDOR(MemAllocManaged)(vendor_pointer *out_address, size_t bytes, unsigned flags)
{
    fake_context *context;
    void *memory = NULL;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = flags != 1 ? FAKE_ERROR_INVALID_VALUE : fake_host_memory_new(context, FAKE_MANAGED_MEMORY, bytes, &memory);
    *out_address = (vendor_pointer)memory;
    return fake_end(code);
}

fake_code VENDOR(HostFree)(void *memory)
{
    return give_back(__func__, (uintptr_t)memory, true);
}

/* Each mapping in an address range counts as a separate allocation. Addresses of the range without a mapping are
 * unknown. */
fake_code VENDOR(MemGetAddressRange)(vendor_pointer *out_base, size_t *out_bytes, vendor_pointer address)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)address, 1);
    uintptr_t start = region ? region->address : 0;
    size_t size = region ? region->size : 0;
    if (!region || (region->kind == FAKE_RANGE && !fake_range_piece(region, (uintptr_t)address, &start, &size))) {
        return fake_end(FAKE_ERROR_NOT_FOUND);
    }
    if (out_base) {
        *out_base = (vendor_pointer)start;
    }
    if (out_bytes) {
        *out_bytes = size;
    }
    return fake_end(FAKE_OK);
}

static fake_code fill(const char *function, vendor_pointer to, unsigned value, unsigned value_bytes, size_t count,
                      vendor_stream stream)
{
    fake_context *context;
    fake_code code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(function, context, stream, true);
    if (!known) {
        return fake_end(fake_stream_refused(function, stream));
    }
    if (!fake_fill_fits((uintptr_t)to, value_bytes * count)) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    return fake_end(fake_submit_fill(function, context, known, (uintptr_t)to, value, value_bytes, count));
}

fake_code VENDOR(MemsetD8Async)(vendor_pointer to, unsigned char value, size_t count, vendor_stream stream)
{
    return fill(__func__, to, value, 1, count, stream);
}

fake_code VENDOR(MemsetD16Async)(vendor_pointer to, unsigned short value, size_t count, vendor_stream stream)
{
    return fill(__func__, to, value, 2, count, stream);
}

fake_code VENDOR(MemsetD32Async)(vendor_pointer to, vendor_word value, size_t count, vendor_stream stream)
{
    return fill(__func__, to, (unsigned)value, 4, count, stream);
}
