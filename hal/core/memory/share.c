/* memory/share.c: decides whether one device's memory can be shared with another device, chooses the kind of handle,
 * and shares the memory.
 *
 * The same function decides for the public query and for the sharing itself. The query has only the devices' facts; the
 * sharing also passes the buffer's address and the kinds requested at allocation. */
#include "memory/buffer.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct offer {
    const gpuhal_device *owner, *user;
    gpuhal_memory_kind kind;
    bool has_host;         /* the memory has a host address */
    uint32_t export_kinds; /* descriptor kinds for exporting the memory */
} offer;

/* Accumulated reasons why sharing is impossible. */
typedef struct reasons {
    char text[512];
    size_t length;
} reasons;

/* There are at most three reasons, and there is room for all even with the longest ids. */
static bool refuse(reasons *why, const char *format, const char *who, const char *what)
{
    size_t room = sizeof why->text - why->length;
    int used = snprintf(why->text + why->length, room, "%s", why->length ? "; " : "");
    used += snprintf(why->text + why->length + used, room - (size_t)used, format, who, what);
    why->length += (size_t)used < room ? (size_t)used : room - 1;
    return false;
}

static bool states(const gpuhal_device *device, gpuhal_key key, gpuhal_handle_kind kind)
{
    return gpuhal_facts_u64(&device->listed->facts, key, 0) >> kind & 1;
}

static bool is_software(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) != 0;
}

static bool can_point(const offer *o, reasons *why)
{
    if (o->kind == GPUHAL_MEMORY_MIGRATING) {
        return refuse(why, "the pages of memory of kind migrating of %s may move%s", o->owner->id, "");
    }
    if (!o->has_host) {
        return refuse(why, "the memory of %s%s", o->owner->id, " has no host address");
    }
    if (!states(o->user, GPUHAL_FACT_IMPORT_KINDS, GPUHAL_HANDLE_HOST_POINTER)) {
        return refuse(why, "%s cannot import host memory%s", o->user->id, "");
    }
    return true;
}

static bool can_export(const offer *o, reasons *why)
{
    char kinds[64];
    const uint32_t exportable = gpuhal_exportable_kinds(o->owner);
    if (o->export_kinds >> (GPUHAL_HANDLE_HOST_POINTER + 1) == 0 || exportable >> o->kind & 1) {
        return true; /* without any handles, can_pass() gives the reason */
    }
    gpuhal_format_kinds(exportable, kinds, sizeof kinds);
    return refuse(why, "the exportable_kinds of %s are %s", o->owner->id, kinds);
}

static bool can_pass(const offer *o, gpuhal_handle_kind kind, reasons *why)
{
    if (!(o->export_kinds >> kind & 1)) {
        return refuse(why, "the memory of %s cannot be exported as %s", o->owner->id, gpuhal_handle_kind_name(kind));
    }
    if (!states(o->user, GPUHAL_FACT_IMPORT_KINDS, kind)) {
        return refuse(why, "%s cannot import %s", o->user->id, gpuhal_handle_kind_name(kind));
    }
    return true;
}

/* Only the driver that created an opaque descriptor can import it, so both devices must report the same driver and the
 * same hardware. Software devices have no hardware to compare. */
static bool can_pass_opaque(const offer *o, reasons *why)
{
    if (!can_pass(o, GPUHAL_HANDLE_OPAQUE_FD, why)) {
        return false;
    }
    const gpuhal_device *devices[] = {o->owner, o->user};
    const char *drivers[2], *uuids[2];
    for (int i = 0; i < 2; i++) {
        drivers[i] = gpuhal_facts_text(&devices[i]->listed->facts, GPUHAL_FACT_DRIVER_UUID);
        uuids[i] = gpuhal_facts_text(&devices[i]->listed->facts, GPUHAL_FACT_UUID);
        if (!drivers[i]) {
            return refuse(why, "opaque_fd: %s does not state its %s", devices[i]->id, "driver_uuid");
        }
        if (!uuids[i] && !is_software(devices[i])) {
            return refuse(why, "opaque_fd: %s does not state its %s", devices[i]->id, "uuid");
        }
    }
    if (strcmp(drivers[0], drivers[1]) != 0) {
        return refuse(why, "opaque_fd: %s has another driver than %s", o->owner->id, o->user->id);
    }
    if ((uuids[0] != NULL) != (uuids[1] != NULL) || (uuids[0] && strcmp(uuids[0], uuids[1]) != 0)) {
        return refuse(why, "opaque_fd: %s is another physical device than %s", o->owner->id, o->user->id);
    }
    return true;
}

/* Returns the best kind, or 0 and all reasons. */
static gpuhal_handle_kind choose(const offer *o, reasons *why)
{
    return can_point(o, why)                           ? GPUHAL_HANDLE_HOST_POINTER
           : !can_export(o, why)                       ? 0
           : can_pass_opaque(o, why)                   ? GPUHAL_HANDLE_OPAQUE_FD
           : can_pass(o, GPUHAL_HANDLE_DMABUF_FD, why) ? GPUHAL_HANDLE_DMABUF_FD
                                                       : 0;
}

static gpuhal_status cannot(const gpuhal_device *user, const char *why)
{
    gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s cannot access that memory: %s", user->id, why);
    gpuhal_error_add_device(user->candidate->name, user->id);
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

gpuhal_status gpuhal_share_query(gpuhal_device *owner, gpuhal_memory_kind kind, gpuhal_device *user,
                                 gpuhal_handle_kind *out_kind, const char **out_why)
{
    static _Thread_local reasons why; /* *out_why points into `why` until this thread's next call */
    why = (reasons){.length = 0};
    if (out_kind) {
        *out_kind = 0;
    }
    if (out_why) {
        *out_why = why.text;
    }
    if (!owner || !user || !out_kind || kind > GPUHAL_MEMORY_MIGRATING || owner == user) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_share_query: an argument is NULL, kind is not a memory kind, or the two devices are the same");
    }
    gpuhal_status status = gpuhal_check(owner->gpu);
    status = status ? status : gpuhal_check(user->gpu);
    if (status) {
        return status;
    }
    const gpuhal_facts *facts = &owner->listed->facts;
    if (!(gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE) >> kind & 1)) {
        refuse(&why, "%s has no memory of that kind%s", owner->id, "");
        return cannot(user, why.text);
    }
    const offer o = {
        .owner = owner,
        .user = user,
        .kind = kind,
        .has_host = kind != GPUHAL_MEMORY_DEVICE || states(owner, GPUHAL_FACT_EXPORT_KINDS, GPUHAL_HANDLE_HOST_POINTER),
        .export_kinds = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_EXPORT_KINDS, 0),
    };
    *out_kind = choose(&o, &why);
    if (*out_kind == 0) {
        return cannot(user, why.text);
    }
    why = (reasons){.length = 0};
    return GPUHAL_OK;
}

/* Returns whether the user can import the host memory. Sizes are rounded up only if the extra bytes belong to the
 * allocation. */
static bool fits(const gpuhal_buffer *buffer, const gpuhal_device *user, uint64_t *out_bytes, reasons *why)
{
    uint64_t unit = gpuhal_import_unit(user);
    uint64_t rounded = (buffer->bytes + unit - 1) & ~(unit - 1);
    if (((uintptr_t)buffer->memory.host & (unit - 1)) == 0 && rounded >= buffer->bytes &&
        rounded <= buffer->memory.bytes) {
        *out_bytes = rounded;
        return true;
    }
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, unit);
    return refuse(
        why,
        "%s imports host memory only at multiples of %s bytes: create the buffer with host_pointer in its export_kinds",
        user->id, number);
}

/* The new buffer has a reference to the original, because the memory must not be freed while another driver uses its
 * pages. */
static gpuhal_status share_pointer(gpuhal_buffer *root, gpuhal_device *user, uint64_t bytes, gpuhal_buffer **out_shared)
{
    const gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = bytes,
        .handle = {.size = sizeof alloc.handle, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = root->memory.host},
        .flags = gpuhal_buffer_import_flags(root),
    };
    return gpuhal_buffer_of_import(user, &alloc, root->bytes, (gpuhal_origin){.original = root}, out_shared);
}

/* Size, alignment and kinds must be the same as in the exporting allocation, because Vulkan imports an opaque
 * descriptor only with the same values (plugin.h). The descriptor is always closed, because the plugin has its own copy
 * (vendor.c). */
static gpuhal_status share_descriptor(gpuhal_buffer *root, gpuhal_device *user, gpuhal_handle_kind kind,
                                      gpuhal_buffer **out_shared)
{
    gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .kind = root->kind,
        .bytes = root->allocated,
        .alignment = root->alignment,
        .export_kinds = root->export_kinds & ~(1u << GPUHAL_HANDLE_HOST_POINTER),
    };
    gpuhal_status status = gpuhal_buffer_give_out(root, kind, &alloc.handle, &alloc.import_offset);
    if (status) {
        return status;
    }
    status = gpuhal_buffer_of_import(user, &alloc, root->bytes, (gpuhal_origin){.original = root}, out_shared);
    gpuhal_os_descriptor_close(alloc.handle.as.os);
    return status;
}

static gpuhal_status share_now(gpuhal_buffer *root, gpuhal_device *user, gpuhal_buffer **out_shared)
{
    reasons why = {.length = 0};
    uint64_t bytes = 0;
    /* If device memory has an address but the device does not report that it can be shared, the address may be a window
     * onto a bus. */
    bool host_memory = root->kind == GPUHAL_MEMORY_UPLOAD || root->kind == GPUHAL_MEMORY_READBACK;
    bool of_pages = root->origin.memory || host_memory || root->kind == GPUHAL_MEMORY_DEVICE_MAPPED ||
                    states(root->device, GPUHAL_FACT_EXPORT_KINDS, GPUHAL_HANDLE_HOST_POINTER);
    const offer o = {.owner = root->device,
                     .user = user,
                     .kind = root->kind,
                     .has_host = root->memory.host && of_pages,
                     .export_kinds = root->export_kinds};
    gpuhal_handle_kind kind = choose(&o, &why);
    if (kind == GPUHAL_HANDLE_HOST_POINTER && !fits(root, user, &bytes, &why)) {
        kind = can_pass_opaque(&o, &why)                     ? GPUHAL_HANDLE_OPAQUE_FD
               : can_pass(&o, GPUHAL_HANDLE_DMABUF_FD, &why) ? GPUHAL_HANDLE_DMABUF_FD
                                                             : 0;
    }
    if (kind == 0) {
        return cannot(user, why.text);
    }
    return kind == GPUHAL_HANDLE_HOST_POINTER ? share_pointer(root, user, bytes, out_shared)
                                              : share_descriptor(root, user, kind, out_shared);
}

gpuhal_status gpuhal_buffer_share(gpuhal_buffer *buffer, gpuhal_device *device, gpuhal_buffer **out_shared)
{
    if (out_shared) {
        *out_shared = NULL;
    }
    if (!buffer || !device || !out_shared) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_share: an argument is NULL");
    }
    gpuhal_buffer *root = buffer->origin.original ? buffer->origin.original : buffer;
    if (root->device == device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_share: the memory is on %s already",
                                device->id);
    }
    if (root->device->gpu != device->gpu) {
        return gpuhal_two_objects("gpuhal_buffer_share", "buffer and device", root->device->gpu, device->gpu);
    }
    gpuhal_status status = gpuhal_device_check(root->device);
    status = status ? status : gpuhal_buffer_check_separate(root, "sharing it");
    status = status ? status : gpuhal_device_open(device);
    return status ? status : share_now(root, device, out_shared);
}

gpuhal_status gpuhal_buffer_synchronize(gpuhal_buffer *buffer)
{
    if (!buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_synchronize: buffer is NULL");
    }
    gpuhal_status status = gpuhal_device_check(buffer->device);
    gpuhal_buffer *whole = buffer->whole;
    status = status ? status : gpuhal_buffer_enter(whole, true);
    if (status) {
        return status;
    }
    status = whole->needs_clean ? gpuhal_buffer_clean(whole, buffer->begin, buffer->bytes, false) : GPUHAL_OK;
    gpuhal_buffer_leave(whole, true);
    return status;
}
