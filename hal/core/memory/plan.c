/* memory/plan.c: turns the application's request into a request to the plugin. It checks descriptions, and rounds sizes
 * and alignments so that aligned accesses and importers fit. */
#include "memory/buffer.h"

#include "base/error.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *gpuhal_memory_kind_name(gpuhal_memory_kind kind)
{
    static const char *const names[] = {"device", "upload", "readback", "device_mapped", "migrating"};
    const bool vendors = kind >= GPUHAL_VENDOR_KIND_FIRST && kind < 32;
    return kind < sizeof names / sizeof *names ? names[kind] : vendors ? "vendor" : "unknown";
}

gpuhal_status gpuhal_buffer_take_desc(const char *call, const gpuhal_buffer_desc *given, gpuhal_buffer_desc *out)
{
    *out = (gpuhal_buffer_desc){0};
    if (!given || given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: desc is NULL or its size is 0", call);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (given->size <= offsetof(gpuhal_buffer_desc, timeout_ns)) {
        out->flags = 0; /* in a description of this size these bytes were undefined padding */
    }
    if (out->bytes == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: a buffer has at least 1 byte", call);
    }
    if (out->flags & ~(uint32_t)GPUHAL_ALLOCATE_NO_EVICT) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: flags has bits that are not for buffers", call);
    }
    if (out->alignment & (out->alignment - 1)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the alignment %" PRIu64 " is not a power of two",
                                call, out->alignment);
    }
    if (out->kind > GPUHAL_MEMORY_MIGRATING && (out->kind < GPUHAL_VENDOR_KIND_FIRST || out->kind > 31)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %u is not a memory kind", call, out->kind);
    }
    return GPUHAL_OK;
}

/* Returns the unit for host memory. Address and size must be multiples of the unit so that every visible device can
 * import the memory. Considers all devices of the gpuhal object, opened or not, because the importer is not known at
 * allocation. Units are powers of two, so the largest is a multiple of all. */
static uint64_t share_unit(const gpuhal *gpu)
{
    uint64_t most = 4096;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        const gpuhal_facts *facts = &gpuhal_device_at(gpu, d)->listed->facts;
        bool imports = gpuhal_facts_u64(facts, GPUHAL_FACT_IMPORT_KINDS, 0) >> GPUHAL_HANDLE_HOST_POINTER & 1;
        uint64_t unit = imports ? gpuhal_facts_u64(facts, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 1) : 1;
        most = unit > most ? unit : most;
    }
    return most;
}

uint64_t gpuhal_import_unit(const gpuhal_device *device)
{
    uint64_t unit = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 4096);
    return unit > device->copy_mask ? unit : device->copy_mask + 1;
}

static gpuhal_status too_large(const gpuhal_device *device, uint64_t bytes)
{
    gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE,
                     "%s: %" PRIu64 " bytes requested in one allocation, the largest is %" PRIu64, device->id, bytes,
                     device->allocation_max_bytes);
    gpuhal_error_add_device(device->candidate->name, device->id);
    gpuhal_error_add_bytes(bytes, UINT64_MAX, device->allocation_max_bytes);
    return GPUHAL_ERROR_TOO_LARGE;
}

uint32_t gpuhal_exportable_kinds(const gpuhal_device *device)
{
    return (uint32_t)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_EXPORTABLE_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
}

void gpuhal_format_kinds(uint32_t kinds, char *out, size_t bytes)
{
    size_t length = (size_t)snprintf(out, bytes, "%s", kinds ? "" : "none");
    for (gpuhal_memory_kind kind = 0; kind <= GPUHAL_VENDOR_KIND_FIRST && length < bytes; kind++) {
        const bool has = kind < GPUHAL_VENDOR_KIND_FIRST ? (kinds >> kind & 1) != 0 : kinds >> kind != 0;
        if (has) {
            length += (size_t)snprintf(out + length, bytes - length, "%s%s", length ? ", " : "",
                                       gpuhal_memory_kind_name(kind));
        }
    }
}

/* A host pointer needs no allocation for export, so the fact EXPORTABLE_KINDS does not apply to it. */
static gpuhal_status check_export_kinds(gpuhal_device *device, const gpuhal_buffer_desc *desc)
{
    const uint32_t pointer = 1u << GPUHAL_HANDLE_HOST_POINTER, exportable = gpuhal_exportable_kinds(device);
    const uint32_t handles = (uint32_t)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_EXPORT_KINDS, 0);
    const uint32_t by_kind = desc->kind == GPUHAL_MEMORY_DEVICE      ? handles & pointer
                             : desc->kind == GPUHAL_MEMORY_MIGRATING ? 0
                                                                     : pointer;
    const uint32_t offered = by_kind | (exportable >> desc->kind & 1 ? handles & ~pointer : 0);
    const uint32_t lacking = desc->export_kinds & ~offered;
    if (lacking == 0) {
        return GPUHAL_OK;
    }
    gpuhal_handle_kind kind = (gpuhal_handle_kind)__builtin_ctz(lacking);
    char kinds[64], why[96] = "";
    if (kind == GPUHAL_HANDLE_HOST_POINTER) {
        snprintf(why, sizeof why, "%s",
                 desc->kind == GPUHAL_MEMORY_MIGRATING ? ": its pages may move" : ": it has no host address");
    } else if (handles >> kind & 1) {
        gpuhal_format_kinds(exportable, kinds, sizeof kinds);
        snprintf(why, sizeof why, ": the exportable_kinds are %s", kinds);
    }
    gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: memory of kind %s cannot be shared as %s%s", device->id,
                     gpuhal_memory_kind_name(desc->kind), gpuhal_handle_kind_name(kind), why);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

gpuhal_status gpuhal_buffer_plan(gpuhal_device *device, const gpuhal_buffer_desc *desc, gpuhal_alloc *out_alloc)
{
    const uint32_t host_pointer = 1u << GPUHAL_HANDLE_HOST_POINTER;
    uint64_t mask = device->copy_mask;
    *out_alloc = (gpuhal_alloc){.size = sizeof *out_alloc,
                                .kind = desc->kind,
                                .alignment = desc->alignment,
                                .export_kinds = desc->export_kinds & ~host_pointer};
    /* Round up, so that every device can import the memory, and no importer can access bytes of another allocation. */
    if (__builtin_expect((desc->export_kinds & host_pointer) != 0, 0)) {
        uint64_t unit = share_unit(device->gpu);
        mask |= unit - 1;
        out_alloc->alignment = desc->alignment > unit ? desc->alignment : unit;
    }
    /* The second comparison prevents overflow when rounding up, even if the device states no limit. */
    if (desc->bytes > device->allocation_max_bytes || desc->bytes > UINT64_MAX - mask) {
        return too_large(device, desc->bytes);
    }
    if (!(device->memory_kinds & 1u << desc->kind)) {
        return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED, "allocating memory of kind %s",
                                    gpuhal_memory_kind_name(desc->kind));
    }
    out_alloc->bytes = (desc->bytes + mask) & ~mask;
    return desc->export_kinds ? check_export_kinds(device, desc) : GPUHAL_OK;
}

const char *gpuhal_handle_kind_name(gpuhal_handle_kind kind)
{
    static const char names[][13] = {"unknown", "host_pointer", "opaque_fd", "dmabuf_fd", "win32", "ipc"};
    return gpuhal_is_vendor_kind(kind) ? "vendor" : names[kind < sizeof names / sizeof *names ? kind : 0];
}
