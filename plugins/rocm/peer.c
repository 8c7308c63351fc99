/* rocm/peer.c: devices that reach each other's memory.
 *
 * Access is a matter of two devices of the process, which all openings share: who switched it on is counted for each pair. What
 * the engine switched on before us stays on when we have done.
 */
#include "device.h"

#include <stdlib.h>

/* The device @p from reaches memory of @p to. */
typedef struct access {
    struct access *next;
    int from, to; /* ordinals */
    uint32_t users;
    bool ours;
} access;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static access *first;

static access **find(int from, int to)
{
    access **link = &first;
    while (*link && ((*link)->from != from || (*link)->to != to)) {
        link = &(*link)->next;
    }
    return link;
}

/* Under the lock. NULL without memory. */
static access *find_or_add(int from, int to)
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

static void drop_unused(int from, int to)
{
    access **link = find(from, to), *own = *link;
    if (own && own->users == 0) {
        *link = own->next;
        free(own);
    }
}

/* Under the lock, with @p device current. HIP is asked each time: a device that the engine has reset is without access. */
static gpuhal_status switch_on(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    access *own = find_or_add(device->entry->device, other->entry->device);
    if (!own) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    const hipError_t code = gpuhal_rocm_api.hipDeviceEnablePeerAccess(other->entry->device, 0);
    if (code == hipErrorPeerAccessAlreadyEnabled) {
        (void)gpuhal_rocm_forget(code);
    } else if (code != hipSuccess) {
        drop_unused(device->entry->device, other->entry->device);
        return gpuhal_rocm_result_of_two(device, other, "hipDeviceEnablePeerAccess", code);
    }
    own->ours = own->ours || code == hipSuccess;
    own->users++;
    return GPUHAL_OK;
}

static gpuhal_status can_reach(gpuhal_plugin_device *device, const gpuhal_plugin_device *other)
{
    int can = 0;
    const hipError_t code = gpuhal_rocm_api.hipDeviceCanAccessPeer(&can, device->entry->device, other->entry->device);
    if (code != hipSuccess) {
        return gpuhal_rocm_result(device, "hipDeviceCanAccessPeer", code);
    }
    return can ? GPUHAL_OK
               : device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, "hipDeviceCanAccessPeer", 0,
                                      "the driver says that this device does not reach the other's memory");
}

static gpuhal_status rocm_peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    if (device->entry->device == other->entry->device) {
        return GPUHAL_OK;
    }
    gpuhal_status status = can_reach(device, other);
    gpuhal_rocm_visit visit;
    if (status == GPUHAL_OK) {
        status = gpuhal_rocm_result(device, "hipSetDevice", gpuhal_rocm_enter(device, &visit));
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    status = switch_on(device, other);
    pthread_mutex_unlock(&lock);
    gpuhal_rocm_leave(&visit);
    return status;
}

static void rocm_peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    pthread_mutex_lock(&lock);
    access *own = *find(device->entry->device, other->entry->device);
    gpuhal_rocm_visit visit;
    if (own && --own->users == 0) {
        if (own->ours && gpuhal_rocm_enter_anyway(device, &visit) == hipSuccess) {
            gpuhal_rocm_ignore(gpuhal_rocm_api.hipDeviceDisablePeerAccess(other->entry->device));
            gpuhal_rocm_leave(&visit);
        }
        drop_unused(device->entry->device, other->entry->device);
    }
    pthread_mutex_unlock(&lock);
}

/* Host memory is every device's. Without access between the two the driver stages by itself. */
static gpuhal_status rocm_peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                                    uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                                    uint64_t from_offset, uint64_t bytes)
{
    gpuhal_plugin_device *runner = queue ? queue->device : to_device;
    gpuhal_plugin_device *other = runner == to_device ? from_device : to_device;
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_look(other);
    if (code != hipSuccess) {
        return gpuhal_rocm_result(other, "hipMemcpyPeerAsync", code);
    }
    void *target = gpuhal_rocm_at(to->address + to_offset), *source = gpuhal_rocm_at(from->address + from_offset);
    code = gpuhal_rocm_begin(runner, queue, &call);
    if (code == hipSuccess) {
        code = to->host || from->host ? gpuhal_rocm_copy_bytes(call.stream, target, source, bytes, hipMemcpyDefault)
                                      : gpuhal_rocm_copy_between(call.stream, target, to_device->entry->device, source,
                                                                 from_device->entry->device, bytes);
        code = gpuhal_rocm_end(&call, code, bytes);
    }
    return gpuhal_rocm_result_of_two(runner, other, "hipMemcpyPeerAsync", code);
}

void gpuhal_rocm_describe_peer(gpuhal_ops *ops)
{
    ops->peer_enable = rocm_peer_enable;
    ops->peer_disable = rocm_peer_disable;
    ops->peer_copy = rocm_peer_copy;
}
