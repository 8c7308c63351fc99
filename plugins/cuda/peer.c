/* cuda/peer.c: devices that reach each other's memory.
 *
 * Access is a matter of two contexts, and openings of one device share one: who switched it on is counted for each pair. What the
 * engine switched on before us stays on when we have done.
 */
#include "device.h"

#include <stdlib.h>

/* The context @p from reaches memory of @p to. */
typedef struct access {
    struct access *next;
    CUcontext from, to;
    uint32_t users;
    bool ours;
} access;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static access *first;

static access **find(CUcontext from, CUcontext to)
{
    access **link = &first;
    while (*link && ((*link)->from != from || (*link)->to != to)) {
        link = &(*link)->next;
    }
    return link;
}

/* Under the lock. NULL without memory. */
static access *find_or_add(CUcontext from, CUcontext to)
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

static void drop_unused(CUcontext from, CUcontext to)
{
    access **link = find(from, to), *own = *link;
    if (own && own->users == 0) {
        *link = own->next;
        free(own);
    }
}

/* Under the lock, inside the context of @p device. The driver is asked each time: a primary context that the engine has reset is
 * the same one afterwards, without access. */
static gpuhal_status switch_on(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    access *own = find_or_add(device->context, other->context);
    if (!own) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    const CUresult code = gpuhal_cuda_api.cuCtxEnablePeerAccess(other->context, 0);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        drop_unused(device->context, other->context);
        return gpuhal_cuda_result_of_two(device, other, "cuCtxEnablePeerAccess", code);
    }
    own->ours = own->ours || code == CUDA_SUCCESS;
    own->users++;
    return GPUHAL_OK;
}

static gpuhal_status can_reach(gpuhal_plugin_device *device, const gpuhal_plugin_device *other)
{
    int can = 0;
    const CUresult code = gpuhal_cuda_api.cuDeviceCanAccessPeer(&can, device->entry->device, other->entry->device);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_result(device, "cuDeviceCanAccessPeer", code);
    }
    return can ? GPUHAL_OK
               : device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, "cuDeviceCanAccessPeer", 0,
                                      "the driver says that this device does not reach the other's memory");
}

static gpuhal_status cuda_peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    if (device->context == other->context) {
        return GPUHAL_OK;
    }
    gpuhal_status status = can_reach(device, other);
    gpuhal_cuda_visit visit;
    if (status == GPUHAL_OK) {
        status = gpuhal_cuda_result(device, "cuCtxPushCurrent", gpuhal_cuda_enter(device, &visit));
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    status = switch_on(device, other);
    pthread_mutex_unlock(&lock);
    gpuhal_cuda_leave(&visit);
    return status;
}

static void cuda_peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    pthread_mutex_lock(&lock);
    access *own = *find(device->context, other->context);
    gpuhal_cuda_visit visit;
    if (own && --own->users == 0) {
        if (own->ours && gpuhal_cuda_enter_anyway(device, &visit) == CUDA_SUCCESS) {
            (void)gpuhal_cuda_api.cuCtxDisablePeerAccess(other->context);
            gpuhal_cuda_leave(&visit);
        }
        drop_unused(device->context, other->context);
    }
    pthread_mutex_unlock(&lock);
}

/* Host memory is every device's. Without access between the two the driver stages by itself. */
static gpuhal_status cuda_peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                                    uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                                    uint64_t from_offset, uint64_t bytes)
{
    gpuhal_plugin_device *runner = queue ? queue->device : to_device;
    gpuhal_plugin_device *other = runner == to_device ? from_device : to_device;
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_lost_code(other);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_result(other, "cuMemcpyPeerAsync", code);
    }
    code = gpuhal_cuda_begin(runner, queue, &call);
    if (code == CUDA_SUCCESS && (to->host || from->host)) {
        code = gpuhal_cuda_api.cuMemcpyAsync(to->address + to_offset, from->address + from_offset, (size_t)bytes, call.stream);
        code = gpuhal_cuda_end(&call, code, bytes);
    } else if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuMemcpyPeerAsync(to->address + to_offset, to_device->context, from->address + from_offset,
                                                 from_device->context, (size_t)bytes, call.stream);
        code = gpuhal_cuda_end(&call, code, bytes);
    }
    return gpuhal_cuda_result_of_two(runner, other, "cuMemcpyPeerAsync", code);
}

void gpuhal_cuda_describe_peer(gpuhal_ops *ops)
{
    ops->peer_enable = cuda_peer_enable;
    ops->peer_disable = cuda_peer_disable;
    ops->peer_copy = cuda_peer_copy;
}
