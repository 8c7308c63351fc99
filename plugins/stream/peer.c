/* stream/peer.c: enables access between the memories of devices.
 *
 * Access belongs to a pair of contexts (CUDA) or of the process's devices (HIP). Several opened devices share this
 * access, so users are counted for each pair. Access that the application had already enabled stays enabled when the
 * last of these users disables its access.
 */
#include "device.h"

#include <stdlib.h>

/* @p from can access memory of @p to. */
typedef struct access {
    struct access *next;
    vendor_context from, to;
    uint32_t users;
    bool ours;
} access;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static access *first;

static access **find(vendor_context from, vendor_context to)
{
    access **link = &first;
    while (*link && ((*link)->from != from || (*link)->to != to)) {
        link = &(*link)->next;
    }
    return link;
}

/* Requires the lock. Returns NULL if host memory is exhausted. */
static access *find_or_add(vendor_context from, vendor_context to)
{
    access **link = find(from, to);
    if (!*link) {
        *link = calloc(1, sizeof **link);
        if (*link) {
            **link = (access){.from = from, .to = to};
        }
    }
    return *link;
}

static void drop_unused(vendor_context from, vendor_context to)
{
    access **link = find(from, to), *own = *link;
    if (own && own->users == 0) {
        *link = own->next;
        free(own);
    }
}

/* Requires the lock and the context of @p device. Calls the driver each time, because a context or device that the
 * application has reset keeps its handle but loses its access. If the driver reports "already enabled" while `ours` is
 * false, the application enabled the access, and peer_disable() must leave the access enabled. `ours` is never cleared
 * here, because the driver also reports "already enabled" for the plugin's own access. */
static gpuhal_status switch_on(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    const vendor_context from = GPUHAL_VENDOR_CONTEXT(device), to = GPUHAL_VENDOR_CONTEXT(other);
    access *own = find_or_add(from, to);
    if (!own) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    const vendor_code code = GPUHAL_VENDOR_ENABLE_PEER(to, 0);
    if (code == GPUHAL_VENDOR_PEER_IS_ENABLED) {
        GPUHAL_OWN(ignore)(code);
    } else if (code != GPUHAL_VENDOR_OK) {
        drop_unused(from, to);
        return GPUHAL_OWN(result_of_two)(device, other, GPUHAL_VENDOR_ENABLE_PEER_CALL, code);
    }
    own->ours = own->ours || code == GPUHAL_VENDOR_OK;
    own->users++;
    return GPUHAL_OK;
}

static gpuhal_status can_reach(gpuhal_plugin_device *device, const gpuhal_plugin_device *other)
{
    static const char name[] = GPUHAL_VENDOR_CALL(DeviceCanAccessPeer);
    int can = 0;
    const vendor_code code = GPUHAL_VENDOR(DeviceCanAccessPeer)(&can, device->entry->device, other->entry->device);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result_of_lookup)(device, name, code);
    }
    return can ? GPUHAL_OK
               : device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, name, 0,
                                      "the driver reports that this device cannot access the other device's memory");
}

static gpuhal_status peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    if (GPUHAL_VENDOR_CONTEXT(device) == GPUHAL_VENDOR_CONTEXT(other)) {
        return GPUHAL_OK;
    }
    gpuhal_status status = can_reach(device, other);
    gpuhal_stream_scope scope;
    status = status == GPUHAL_OK ? GPUHAL_OWN(enter_or_report)(device, &scope) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    status = switch_on(device, other);
    pthread_mutex_unlock(&lock);
    GPUHAL_OWN(leave)(&scope);
    return status;
}

/* Hold the lock during the driver call: otherwise a thread that enables the same pair could get "already enabled" while
 * the driver is disabling the access. */
static void peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    const vendor_context from = GPUHAL_VENDOR_CONTEXT(device), to = GPUHAL_VENDOR_CONTEXT(other);
    pthread_mutex_lock(&lock);
    access *own = *find(from, to);
    gpuhal_stream_scope scope;
    if (own && --own->users == 0) {
        if (own->ours && GPUHAL_OWN(enter_to_release)(device, &scope) == GPUHAL_VENDOR_OK) {
            GPUHAL_OWN(ignore)(GPUHAL_VENDOR_DISABLE_PEER(to));
            GPUHAL_OWN(leave)(&scope);
        }
        drop_unused(from, to);
    }
    pthread_mutex_unlock(&lock);
}

/* Host memory has an address on every device. */
static vendor_code copy_host(vendor_stream stream, const gpuhal_memory *to, uint64_t to_offset,
                             const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t done = 0; done < bytes && code == GPUHAL_VENDOR_OK;) {
        const gpuhal_stream_place there = gpuhal_stream_place_in(to, to_offset + done),
                                  here = gpuhal_stream_place_in(from, from_offset + done);
        const uint64_t piece = gpuhal_stream_piece(here.host, gpuhal_stream_piece(there.host, bytes - done));
        code = GPUHAL_OWN(copy_anywhere)(stream, to->address + to_offset + done, from->address + from_offset + done,
                                         piece);
        done += piece;
    }
    return code;
}

/* Every device can access host memory. If there is no access between the two devices, the driver stages the copy.
 * Entering checks only the device whose stream runs the copy, so the other device is checked here. */
static gpuhal_status peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                               uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                               uint64_t from_offset, uint64_t bytes)
{
    gpuhal_plugin_device *runner = queue ? queue->device : to_device;
    gpuhal_plugin_device *other = runner == to_device ? from_device : to_device;
    gpuhal_stream_call call;
    vendor_code code = GPUHAL_VENDOR_LOST(other);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result)(other, NULL, code);
    }
    const gpuhal_status status = GPUHAL_OWN(begin)(runner, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const bool with_host = to->host || from->host;
    const char *name = with_host ? GPUHAL_VENDOR_CALL(MemcpyAsync) : GPUHAL_VENDOR_CALL(MemcpyPeerAsync);
    code = with_host ? copy_host(call.stream, to, to_offset, from, from_offset, bytes)
                     : GPUHAL_OWN(copy_between)(call.stream, to->address + to_offset, GPUHAL_VENDOR_CONTEXT(to_device),
                                                from->address + from_offset, GPUHAL_VENDOR_CONTEXT(from_device),
                                                bytes);
    code = GPUHAL_OWN(end)(&call, code, bytes, &name);
    return GPUHAL_OWN(result_of_two)(runner, other, name, code);
}

void GPUHAL_OWN(describe_peer)(gpuhal_ops *ops)
{
    static const gpuhal_peer_ops peers = {
        .size = sizeof peers,
        .version = GPUHAL_PEERS_VERSION,
        .peer_enable = peer_enable,
        .peer_disable = peer_disable,
        .peer_copy = peer_copy,
    };
    ops->peers = &peers;
}
