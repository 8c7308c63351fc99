/* cuda/registration.c: host memory of the caller that is page-locked, once for all users in this process.
 *
 * CUDA takes memory once: cuMemHostRegister answers 712 for pages that any context has registered, even though a registration is
 * portable and serves every context. So registrations are counted here: one that lies inside another of ours shares it, and the
 * last user gives it back. Memory that the engine registered or allocated stays refused.
 *
 * A registration ends with the context in which it was made. So one that was made in a device's primary context keeps that
 * context, also after the device was closed, and one that was made in a context of the caller is shared in that context alone. A
 * reset of the primary context takes it: CUDA numbers what it knows and gives no number twice, so the number tells whether a
 * registration is still the one that was made here.
 */
#include "device.h"

#include <stdlib.h>

struct gpuhal_cuda_registration {
    gpuhal_cuda_registration *next;
    uintptr_t start;
    uint64_t bytes;
    unsigned int flags; /* beside those that all have */
    CUcontext context;  /* in which it was made */
    CUdevice device;
    bool adopted; /* the context is the caller's */
    uint32_t users;
    uint64_t id;   /* CUDA's number of it; 0: CUDA gives none */
    bool changing; /* a thread makes it or gives it back */
    bool gone;     /* a reset took it */
};

/* Protects the list and its members. Not held while CUDA is called: registering takes seconds where there are many pages. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gpuhal_cuda_registration *first;

/* ---- what CUDA knows */

static uint64_t id_at(uintptr_t address)
{
    unsigned long long id = 0;
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    return code == CUDA_SUCCESS ? id : 0;
}

static bool is_there(const gpuhal_cuda_registration *one)
{
    return one->id == 0 || id_at(one->start) == one->id;
}

/* Inside the context. Not for memory of devices (CU_MEMHOSTREGISTER_IOMEMORY): what the core hands over are ordinary pages. */
static CUresult page_lock(gpuhal_cuda_registration *own)
{
    CUcontext same = NULL;
    CUresult code = own->adopted ? CUDA_SUCCESS : gpuhal_cuda_api.cuDevicePrimaryCtxRetain(&same, own->device);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    code = gpuhal_cuda_api.cuMemHostRegister_v2((void *)own->start, (size_t)own->bytes,
                                                CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | own->flags);
    if (code != CUDA_SUCCESS && !own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    own->id = code == CUDA_SUCCESS ? id_at(own->start) : 0;
    return code;
}

static CUresult give_back(const gpuhal_cuda_registration *own)
{
    gpuhal_cuda_visit visit;
    CUresult code = CUDA_SUCCESS;
    if (!own->gone && is_there(own)) {
        code = gpuhal_cuda_enter_context(own->context, &visit);
        if (code == CUDA_SUCCESS) {
            code = gpuhal_cuda_api.cuMemHostUnregister((void *)own->start);
            gpuhal_cuda_leave(&visit);
        }
    }
    if (!own->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(own->device);
    }
    return code;
}

/* ---- the list */

static bool contains(const gpuhal_cuda_registration *one, uintptr_t start, uint64_t bytes)
{
    return start >= one->start && start - one->start <= one->bytes && bytes <= one->bytes - (start - one->start);
}

static bool serves(const gpuhal_cuda_registration *one, const gpuhal_cuda_registration *other)
{
    return contains(one, other->start, other->bytes) && (one->flags == 0 || one->flags == other->flags) &&
           (!one->adopted || one->context == other->context);
}

/* Under the lock. The registration that has bytes of these, once no thread is changing it. */
static gpuhal_cuda_registration *find(uintptr_t start, uint64_t bytes)
{
    for (gpuhal_cuda_registration *one = first; one;) {
        const bool touches = !one->gone && start < one->start + one->bytes && one->start < start + bytes;
        if (touches && !one->changing) {
            return one;
        }
        if (touches) {
            pthread_cond_wait(&changed, &lock);
        }
        one = touches ? first : one->next;
    }
    return NULL;
}

static void settle(gpuhal_cuda_registration *own, bool stays)
{
    pthread_mutex_lock(&lock);
    own->changing = false;
    for (gpuhal_cuda_registration **link = &first; *link && !stays; link = &(*link)->next) {
        if (*link == own) {
            *link = own->next;
            break;
        }
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!stays) {
        free(own);
    }
}

CUresult gpuhal_cuda_unlock_pages(gpuhal_cuda_registration *registration)
{
    pthread_mutex_lock(&lock);
    const bool last = --registration->users == 0;
    registration->changing = last || registration->changing;
    pthread_mutex_unlock(&lock);
    if (!last) {
        return CUDA_SUCCESS;
    }
    const CUresult code = give_back(registration);
    settle(registration, false);
    return code;
}

/* Takes a part in a registration of ours, or enters @p own into the list, for its caller to make. */
static CUresult share(gpuhal_cuda_registration *own, gpuhal_cuda_registration **out_shared)
{
    pthread_mutex_lock(&lock);
    gpuhal_cuda_registration *other = find(own->start, own->bytes);
    const bool whole = other && serves(other, own);
    if (whole) {
        other->users++;
    } else if (!other) {
        own->next = first;
        first = own;
    }
    pthread_mutex_unlock(&lock);
    *out_shared = whole ? other : NULL;
    return other && !whole ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
}

CUresult gpuhal_cuda_lock_pages(const gpuhal_plugin_device *device, void *memory, uint64_t bytes, unsigned int flags,
                                gpuhal_cuda_registration **out_registration)
{
    gpuhal_cuda_registration *own = calloc(1, sizeof *own), *shared = NULL;
    if (!own) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *own = (gpuhal_cuda_registration){.start = (uintptr_t)memory,
                                      .bytes = bytes,
                                      .flags = flags,
                                      .context = device->context,
                                      .device = device->entry->device,
                                      .adopted = device->adopted,
                                      .users = 1,
                                      .changing = true};
    CUresult code = share(own, &shared);
    while (shared && !is_there(shared)) {
        pthread_mutex_lock(&lock);
        shared->gone = true;
        pthread_mutex_unlock(&lock);
        (void)gpuhal_cuda_unlock_pages(shared);
        code = share(own, &shared);
    }
    if (code != CUDA_SUCCESS || shared) {
        free(own);
        *out_registration = shared;
        return code;
    }
    code = page_lock(own);
    *out_registration = code == CUDA_SUCCESS ? own : NULL;
    settle(own, code == CUDA_SUCCESS);
    return code;
}

void *gpuhal_cuda_registered(const gpuhal_cuda_registration *registration)
{
    return (void *)registration->start;
}

/* ---- the slots */

/* It is memory of the host that is missing then, not of the device. */
gpuhal_status gpuhal_cuda_lock_failed(gpuhal_plugin_device *device, const char *call, CUresult code)
{
    return code == CUDA_ERROR_OUT_OF_MEMORY ? gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code,
                                                                    "the system gives no more memory that stays in place")
                                            : gpuhal_cuda_result(device, call, code);
}

/* Which code the driver has for memory that may not be written is not documented; those of other faults are. */
static bool may_be_read_only(CUresult code)
{
    const gpuhal_status status = gpuhal_cuda_status(code);
    return status == GPUHAL_ERROR_DRIVER || status == GPUHAL_ERROR_NO_PERMISSION || status == GPUHAL_ERROR_NOT_SUPPORTED;
}

static gpuhal_status cuda_register_host(gpuhal_plugin_device *device, void *memory, uint64_t bytes)
{
    gpuhal_cuda_visit visit;
    gpuhal_cuda_registration *registration = NULL;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_lock_pages(device, memory, bytes, 0, &registration);
        if (device->entry->registers_read_only && may_be_read_only(code)) {
            /* Files of weights are mapped without the right to write, which the driver has to be told. */
            code = gpuhal_cuda_lock_pages(device, memory, bytes, CU_MEMHOSTREGISTER_READ_ONLY, &registration);
        }
        gpuhal_cuda_leave(&visit);
    }
    return gpuhal_cuda_lock_failed(device, "cuMemHostRegister", code);
}

/* A registration that a reset took is still counted by the openings that it ended. */
static gpuhal_cuda_registration *find_made(uintptr_t address, bool gone)
{
    pthread_mutex_lock(&lock);
    gpuhal_cuda_registration *one = first;
    while (one && (one->gone != gone || one->changing || !contains(one, address, 1))) {
        one = one->next;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

static gpuhal_status cuda_unregister_host(gpuhal_plugin_device *device, void *memory)
{
    const uintptr_t address = (uintptr_t)memory;
    gpuhal_cuda_registration *one = gpuhal_cuda_is_gone(device) ? find_made(address, true) : NULL;
    one = one ? one : find_made(address, false);
    const CUresult code = one ? gpuhal_cuda_unlock_pages(one) : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return gpuhal_cuda_result(device, "cuMemHostUnregister", code);
}

void gpuhal_cuda_describe_registration(const gpuhal_cuda_entry *entry, gpuhal_ops *ops)
{
    if (entry->registers_host) {
        ops->register_host = cuda_register_host;
        ops->unregister_host = cuda_unregister_host;
    }
}
