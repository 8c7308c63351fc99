/* stream/registration.c: page-locks host memory of the caller, once for all users in this process.
 *
 * The driver has only one registration for an address, so users are counted here. A request that lies inside one of our
 * registrations shares it, and the last user unregisters it. Memory that the application itself registered or allocated
 * is refused. The plugin's page_lock.c documents what the vendor's driver does with a second registration, and when a
 * registration ends without an unregistering call.
 *
 * A device reset ends registrations. The driver numbers its registrations and never reuses a number, so the number
 * shows whether the driver still has the plugin's registration.
 */
#include "device.h"

#include <stdlib.h>

/* Protects the list and its members. Not held during driver calls, because registering many pages takes seconds. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gpuhal_stream_registration *first;

/* ---- the list */

/* Compares differences, so no expression can overflow for any address and size. */
static bool contains(const gpuhal_stream_registration *one, uintptr_t start, uint64_t bytes)
{
    return start >= one->start && start - one->start <= one->bytes && bytes <= one->bytes - (start - one->start);
}

/* Memory registered without flags may be read and written, so the registration can serve every request. A registration
 * in the caller's context ends with that context, so it can serve only the devices of that context. */
static bool serves(const gpuhal_stream_registration *one, const gpuhal_stream_registration *other)
{
    return contains(one, other->start, other->bytes) && (one->flags == 0 || one->flags == other->flags) &&
           (!one->adopted || one->context == other->context);
}

/* Requires the lock. Returns the registration that overlaps this range, after waiting until no thread is changing it.
 * Waiting releases the lock and the list may change, so the search restarts. A registration that a reset ended is
 * skipped. The driver no longer has it, so its pages can be registered again while its users are still counted. */
static gpuhal_stream_registration *find(uintptr_t start, uint64_t bytes)
{
    for (gpuhal_stream_registration *one = first; one;) {
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

/* Ends a change that share() or the last user began. When a waiting thread searches again, the registration is either
 * usable or no longer in the list. A removed registration is freed after the lock is released, because no thread can
 * find it any more. */
static void finish_change(gpuhal_stream_registration *own, bool stays)
{
    pthread_mutex_lock(&lock);
    own->changing = false;
    for (gpuhal_stream_registration **link = &first; *link && !stays; link = &(*link)->next) {
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

/* ---- pieces: the whole range is one piece, unless the driver could not lock it in one call */

/* Unlocks the locked pieces within the first @p bytes. The first piece is unlocked last, because its ID shows that the
 * other pieces still exist. */
static vendor_code unlock_pieces(gpuhal_plugin_device *device, const gpuhal_stream_registration *own, uint64_t bytes)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t left = bytes; left > 0;) {
        const uint64_t tail = (own->start + left - 1) % GPUHAL_LOCKED_PIECE + 1;
        left -= own->in_pieces && tail < left ? tail : left;
        const vendor_code one = GPUHAL_OWN(page_unlock)(device, own, own->start + left);
        code = code == GPUHAL_VENDOR_OK ? one : code;
    }
    return code;
}

static vendor_code lock_pieces(gpuhal_plugin_device *device, const gpuhal_stream_registration *own,
                               const char **out_call)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t done = 0; done < own->bytes;) {
        const uintptr_t at = own->start + done;
        const uint64_t left = own->bytes - done;
        const uint64_t bytes = own->in_pieces ? gpuhal_stream_piece((void *)at, left) : left;
        code = GPUHAL_OWN(page_lock)(own, at, bytes, out_call);
        if (code != GPUHAL_VENDOR_OK) {
            GPUHAL_OWN(ignore)(unlock_pieces(device, own, done));
            break;
        }
        done += bytes;
    }
    return code;
}

/* The driver returns the out-of-memory code for a registration above its size limit. */
static vendor_code lock_whole(gpuhal_plugin_device *device, gpuhal_stream_registration *own, const char **out_call)
{
    vendor_code code = lock_pieces(device, own, out_call);
    if (code == GPUHAL_VENDOR_OUT_OF_MEMORY && own->bytes > GPUHAL_LOCKED_PIECE) {
        GPUHAL_OWN(ignore)(code);
        own->in_pieces = true;
        code = lock_pieces(device, own, out_call);
    }
    own->id = code == GPUHAL_VENDOR_OK ? GPUHAL_OWN(id_at)(own->start) : 0;
    return code;
}

/* The last user's registration stays in the list until the driver has unregistered it. A request for the same pages
 * waits until then, because the driver would refuse to register them. The thread that set `gone` was a user at that
 * time, so the last user always sees the flag. */
vendor_code GPUHAL_OWN(unlock_pages)(gpuhal_plugin_device *device, gpuhal_stream_registration *registration)
{
    pthread_mutex_lock(&lock);
    const bool last = --registration->users == 0;
    /* Set under the same lock as the count. A thread that requests these pages therefore waits and never increments a
     * count of zero. */
    registration->changing = last || registration->changing;
    pthread_mutex_unlock(&lock);
    if (!last) {
        return GPUHAL_VENDOR_OK;
    }
    const vendor_code code = unlock_pieces(device, registration, registration->bytes);
    finish_change(registration, false);
    return code;
}

/* Joins one of our registrations, or adds @p own to the list for the caller to lock. @p own is `changing`, so other
 * threads wait for the driver's result. */
static vendor_code share(gpuhal_stream_registration *own, gpuhal_stream_registration **out_shared)
{
    pthread_mutex_lock(&lock);
    gpuhal_stream_registration *other = find(own->start, own->bytes);
    const bool whole = other && serves(other, own);
    if (whole) {
        other->users++;
    } else if (!other) {
        own->next = first;
        first = own;
    }
    pthread_mutex_unlock(&lock);
    *out_shared = whole ? other : NULL;
    return other && !whole ? GPUHAL_VENDOR_IS_REGISTERED : GPUHAL_VENDOR_OK;
}

static vendor_code lock_with(gpuhal_plugin_device *device, void *memory, uint64_t bytes, unsigned int flags,
                             gpuhal_stream_registration **out_registration, const char **out_call)
{
    gpuhal_stream_registration *own = calloc(1, sizeof *own), *shared = NULL;
    *out_call = NULL; /* no driver call has been made if the list refuses the request */
    if (!own) {
        return GPUHAL_VENDOR_OUT_OF_MEMORY;
    }
    *own = (gpuhal_stream_registration){.start = (uintptr_t)memory,
                                        .bytes = bytes,
                                        .flags = flags,
                                        .context = GPUHAL_VENDOR_CONTEXT(device),
                                        .device = device->entry->device,
                                        .adopted = GPUHAL_VENDOR_ADOPTED(device),
                                        .users = 1,
                                        .changing = true};
    vendor_code code = share(own, &shared);
    /* A registration that a reset ended is useless. Mark it for its other users and search again. The loop terminates,
     * because each iteration marks one registration, and share() never returns a marked registration. */
    while (shared && !GPUHAL_OWN(is_there)(shared)) {
        pthread_mutex_lock(&lock);
        shared->gone = true;
        pthread_mutex_unlock(&lock);
        GPUHAL_OWN(ignore)(GPUHAL_OWN(unlock_pages)(device, shared));
        code = share(own, &shared);
    }
    if (code != GPUHAL_VENDOR_OK || shared) {
        free(own);
        *out_registration = shared;
        return code;
    }
    /* From here on other threads wait for `own`; finish_change() must follow on every path. */
    code = lock_whole(device, own, out_call);
    *out_registration = code == GPUHAL_VENDOR_OK ? own : NULL;
    finish_change(own, code == GPUHAL_VENDOR_OK);
    return code;
}

vendor_code GPUHAL_OWN(lock_pages)(gpuhal_plugin_device *device, void *memory, uint64_t bytes,
                                   const unsigned int flags[2], gpuhal_stream_registration **out_registration,
                                   const char **out_call)
{
    vendor_code code = lock_with(device, memory, bytes, flags[0], out_registration, out_call);
    if (flags[0] != flags[1] && GPUHAL_OWN(flags_matter)(code)) {
        GPUHAL_OWN(ignore)(code);
        code = lock_with(device, memory, bytes, flags[1], out_registration, out_call);
    }
    return code;
}

/* ---- the slots. No public function calls them yet; imports of host memory use only the list. */

static gpuhal_status register_host(gpuhal_plugin_device *device, void *memory, uint64_t bytes)
{
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    /* Try flags 0 first, since such a registration serves every later request. The pointer is not kept: the unregister
     * slot receives only the address. */
    const unsigned int flags[] = {0, GPUHAL_OWN(read_only_flags)(device)};
    const char *call;
    gpuhal_stream_registration *registration = NULL;
    const vendor_code code = GPUHAL_OWN(lock_pages)(device, memory, bytes, flags, &registration, &call);
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(lock_failed)(device, call, code, false);
}

/* Opened devices whose registrations were ended by a reset still count as users. The returned registration stays valid
 * without the lock, since the caller is one of its users. */
static gpuhal_stream_registration *find_made(uintptr_t address, bool gone)
{
    pthread_mutex_lock(&lock);
    gpuhal_stream_registration *one = first;
    while (one && (one->gone != gone || one->changing || !contains(one, address, 1))) {
        one = one->next;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

static gpuhal_status unregister_host(gpuhal_plugin_device *device, void *memory)
{
    const uintptr_t address = (uintptr_t)memory;
    gpuhal_stream_registration *one = GPUHAL_OWN(is_gone)(device) ? find_made(address, true) : NULL;
    one = one ? one : find_made(address, false);
    const vendor_code code = one ? GPUHAL_OWN(unlock_pages)(device, one) : GPUHAL_VENDOR_IS_NOT_REGISTERED;
    return GPUHAL_OWN(result)(device, one ? GPUHAL_VENDOR_UNREGISTER_CALL : NULL, code);
}

void GPUHAL_OWN(describe_registration)(const gpuhal_stream_entry *entry, gpuhal_ops *ops)
{
    if (entry->registers_host) {
        ops->register_host = register_host;
        ops->unregister_host = unregister_host;
    }
}
