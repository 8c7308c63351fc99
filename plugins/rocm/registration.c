/* rocm/registration.c: host memory of the caller that is page-locked, once for all users in this process.
 *
 * HIP keeps one registration for an address, whoever asks how often: hipHostRegister succeeds again, and the first
 * hipHostUnregister ends it for all (hip_memory.cpp, ihipHostRegister; the code 712 is never answered). So registrations are
 * counted here: one that lies inside another of ours shares it, and the last user gives it back. Memory that HIP knows and that
 * is none of ours, because the engine registered or allocated it, is refused: our release would end the engine's registration.
 * So is memory with some of the engine's in its middle, where HIP numbers what it knows. HIP would take it, and give back the right one of the two
 * later; but it looks an address up by the last piece that begins before it (device.cpp, MemObjMap::FindMemObj), so
 * what lies behind the engine's piece would be unknown to it, and a copy that begins inside too long.
 *
 * On a machine with one GPU a reset of the device takes registrations too. HIP numbers what it knows and gives no number twice,
 * so the number tells whether a registration is still the one that was made here.
 */
#include "device.h"

#include <stdlib.h>

struct gpuhal_rocm_registration {
    gpuhal_rocm_registration *next;
    uintptr_t start;
    uint64_t bytes;
    unsigned int flags; /* beside those that all have */
    uint32_t users;
    uint32_t id;   /* HIP's number of it; 0: HIP gives none */
    bool changing; /* a thread makes it or gives it back */
    bool gone;     /* a reset took it */
};

/* Protects the list and its members. Not held while HIP is called: registering takes seconds where there are many pages. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gpuhal_rocm_registration *first;

/* ---- what HIP knows */

static uint32_t id_at(uintptr_t address)
{
    uint32_t id = 0;
    const hipError_t code = gpuhal_rocm_api.hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (void *)address);
    gpuhal_rocm_ignore(code);
    return code == hipSuccess ? id : 0;
}

static bool is_there(const gpuhal_rocm_registration *one)
{
    return one->id == 0 || id_at(one->start) == one->id;
}

static hipError_t page_lock(gpuhal_rocm_registration *own)
{
    uint64_t bytes;
    if (gpuhal_rocm_is_known(own->start, &bytes) || gpuhal_rocm_is_known(own->start + own->bytes - 1, &bytes)) {
        return hipErrorHostMemoryAlreadyRegistered;
    }
    const hipError_t code = gpuhal_rocm_api.hipHostRegister((void *)own->start, (size_t)own->bytes,
                                                            hipHostRegisterPortable | hipHostRegisterMapped | own->flags);
    own->id = code == hipSuccess ? id_at(own->start) : 0;
    if (own->id != 0 && id_at(own->start + own->bytes - 1) != own->id) {
        (void)gpuhal_rocm_api.hipHostUnregister((void *)own->start);
        return hipErrorHostMemoryAlreadyRegistered;
    }
    return code;
}

/* ---- the list */

static bool contains(const gpuhal_rocm_registration *one, uintptr_t start, uint64_t bytes)
{
    return start >= one->start && start - one->start <= one->bytes && bytes <= one->bytes - (start - one->start);
}

/* Under the lock. The registration that has bytes of these, once no thread is changing it. */
static gpuhal_rocm_registration *find(uintptr_t start, uint64_t bytes)
{
    for (gpuhal_rocm_registration *one = first; one;) {
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

static void settle(gpuhal_rocm_registration *own, bool stays)
{
    pthread_mutex_lock(&lock);
    own->changing = false;
    for (gpuhal_rocm_registration **link = &first; *link && !stays; link = &(*link)->next) {
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

static hipError_t drop(gpuhal_rocm_registration *one)
{
    pthread_mutex_lock(&lock);
    const bool last = --one->users == 0;
    one->changing = last || one->changing;
    pthread_mutex_unlock(&lock);
    if (!last) {
        return hipSuccess;
    }
    const hipError_t code = !one->gone && is_there(one) ? gpuhal_rocm_api.hipHostUnregister((void *)one->start) : hipSuccess;
    settle(one, false);
    return code;
}

/* Takes a part in a registration of ours, or enters @p own into the list, for its caller to make. */
static hipError_t share(gpuhal_rocm_registration *own, gpuhal_rocm_registration **out_shared)
{
    pthread_mutex_lock(&lock);
    gpuhal_rocm_registration *other = find(own->start, own->bytes);
    const bool whole = other && contains(other, own->start, own->bytes) && (other->flags == 0 || other->flags == own->flags);
    if (whole) {
        other->users++;
    } else if (!other) {
        own->next = first;
        first = own;
    }
    pthread_mutex_unlock(&lock);
    *out_shared = whole ? other : NULL;
    return other && !whole ? hipErrorHostMemoryAlreadyRegistered : hipSuccess;
}

hipError_t gpuhal_rocm_lock_pages(void *memory, uint64_t bytes, unsigned int flags, gpuhal_rocm_registration **out_registration)
{
    gpuhal_rocm_registration *own = calloc(1, sizeof *own), *shared = NULL;
    if (!own) {
        return hipErrorOutOfMemory;
    }
    *own = (gpuhal_rocm_registration){.start = (uintptr_t)memory, .bytes = bytes, .flags = flags, .users = 1, .changing = true};
    hipError_t code = share(own, &shared);
    while (shared && !is_there(shared)) {
        pthread_mutex_lock(&lock);
        shared->gone = true;
        pthread_mutex_unlock(&lock);
        (void)drop(shared);
        code = share(own, &shared);
    }
    if (code != hipSuccess || shared) {
        free(own);
        *out_registration = shared;
        return code;
    }
    code = page_lock(own);
    *out_registration = code == hipSuccess ? own : NULL;
    settle(own, code == hipSuccess);
    return code;
}

hipError_t gpuhal_rocm_unlock_pages(gpuhal_plugin_device *device, gpuhal_rocm_registration *registration)
{
    gpuhal_rocm_visit visit;
    const hipError_t entered = gpuhal_rocm_enter_anyway(device, &visit);
    const hipError_t code = drop(registration);
    if (entered == hipSuccess) {
        gpuhal_rocm_leave(&visit);
    }
    return code;
}

/* ---- the slots */

/* Of pages that it cannot lock HIP 5 says that it is out of memory, and HIP 6 that they are no valid value, whatever the reason.
 */
gpuhal_status gpuhal_rocm_lock_failed(gpuhal_plugin_device *device, const char *call, hipError_t code)
{
    const char *sentence = code == hipErrorOutOfMemory    ? "the system gives no more memory that stays in place"
                           : code == hipErrorInvalidValue ? "the system does not lock these pages: no more memory may stay in "
                                                            "place (ulimit -l), or the memory may not be written"
                                                          : NULL;
    if (code == hipErrorHostMemoryAlreadyRegistered) {
        return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_BUSY, call, code,
                                     "the program has allocated or registered this memory with HIP itself");
    }
    return sentence ? gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_HOST_MEMORY, call, code, sentence)
                    : gpuhal_rocm_result(device, call, code);
}

static gpuhal_status rocm_register_host(gpuhal_plugin_device *device, void *memory, uint64_t bytes)
{
    gpuhal_rocm_visit visit;
    gpuhal_rocm_registration *registration = NULL;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = gpuhal_rocm_lock_pages(memory, bytes, 0, &registration);
        gpuhal_rocm_leave(&visit);
    }
    return gpuhal_rocm_lock_failed(device, "hipHostRegister", code);
}

/* A registration that a reset took is still counted by the openings that it ended. */
static gpuhal_rocm_registration *find_made(uintptr_t address, bool gone)
{
    pthread_mutex_lock(&lock);
    gpuhal_rocm_registration *one = first;
    while (one && (one->gone != gone || one->changing || !contains(one, address, 1))) {
        one = one->next;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

static gpuhal_status rocm_unregister_host(gpuhal_plugin_device *device, void *memory)
{
    const uintptr_t address = (uintptr_t)memory;
    gpuhal_rocm_registration *one = gpuhal_rocm_is_gone(device) ? find_made(address, true) : NULL;
    one = one ? one : find_made(address, false);
    const hipError_t code = one ? gpuhal_rocm_unlock_pages(device, one) : hipErrorHostMemoryNotRegistered;
    return gpuhal_rocm_result(device, "hipHostUnregister", code);
}

void gpuhal_rocm_describe_registration(const gpuhal_rocm_entry *entry, gpuhal_ops *ops)
{
    if (entry->registers_host) {
        ops->register_host = rocm_register_host;
        ops->unregister_host = rocm_unregister_host;
    }
}
