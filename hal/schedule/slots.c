/* schedule/slots.c: implements the work slots of one gpuhal object's devices. The mutex of gpuhal_leases protects them.
 * Each waiting request has its own condition, so that a grant wakes only this request. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdlib.h>

struct gpuhal_work_slots {
    gpuhal_work_slots *next;
    const gpuhal_device *device; /* one interface of the device */
    uint32_t total, taken, waiting_count;
    gpuhal_work_slot *waiting, **waiting_end; /* in order of arrival */
    gpuhal_work_slot *all;                    /* unreleased slots */
};

typedef enum { WAITING = 0, GRANTED, CANCELLED } slot_state;

struct gpuhal_work_slot {
    gpuhal *gpu;
    gpuhal_work_slots *of;
    gpuhal_work_slot *next;
    gpuhal_work_slot *older, *newer; /* neighbours in the list `all` */
    int32_t priority;
    uint64_t asked_ns;
    slot_state state;
    gpuhal_condition condition;
    intptr_t notifier; /* -1 until requested */
    struct due *due;   /* pending callback, or NULL */
};

/* A callback, which may outlive the slot. */
typedef struct due {
    gpuhal_granted_fn *callback;
    void *user;
    gpuhal_status status;
} due;

static void call_back(void *user, gpuhal_status unused)
{
    due *own = user;
    (void)unused;
    own->callback(own->user, own->status);
    free(own);
}

/* ---- called with the mutex held */

static gpuhal_work_slots *find(gpuhal_leases *leases, gpuhal_device *device)
{
    for (gpuhal_work_slots *slots = leases->slots; slots; slots = slots->next) {
        if (gpuhal_devices_same_part(slots->device, device)) {
            return slots;
        }
    }
    gpuhal_work_slots *slots = calloc(1, sizeof *slots);
    if (slots) {
        slots->device = device;
        slots->total = gpuhal_lease_default_slots(device);
        slots->waiting_end = &slots->waiting;
        slots->next = leases->slots;
        leases->slots = slots;
    }
    return slots;
}

static int64_t priority_now(const gpuhal_work_slot *slot, uint64_t now_ns)
{
    return gpuhal_grant_priority(slot->priority, slot->asked_ns, now_ns);
}

static void take_out(gpuhal_work_slot *slot)
{
    gpuhal_work_slots *slots = slot->of;
    gpuhal_work_slot **link = &slots->waiting;
    while (*link && *link != slot) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = slot->next;
        slots->waiting_end = slot->next ? slots->waiting_end : link;
        slots->waiting_count--;
    }
}

static void end_wait(gpuhal_work_slot *slot, slot_state state)
{
    due *call = slot->due;
    slot->state = state;
    slot->due = NULL;
    gpuhal_condition_signal_all(&slot->condition);
    if (slot->notifier >= 0) {
        gpuhal_os_notifier_set(slot->notifier);
    }
    if (call) {
        call->status = state == GRANTED ? GPUHAL_OK : GPUHAL_ERROR_CANCELLED;
        if (!gpuhal_serve_call(slot->gpu, call_back, call)) {
            free(call); /* memory is short; the state and the descriptor still report the result */
        }
    }
}

static gpuhal_work_slot *first_of(const gpuhal_work_slots *slots)
{
    const uint64_t now_ns = gpuhal_os_monotonic_ns();
    gpuhal_work_slot *first = slots->waiting;
    for (gpuhal_work_slot *slot = first; slot; slot = slot->next) {
        first = priority_now(slot, now_ns) > priority_now(first, now_ns) ? slot : first;
    }
    return first;
}

static void grant(gpuhal_work_slots *slots)
{
    while (slots->waiting && slots->taken < slots->total) {
        gpuhal_work_slot *slot = first_of(slots);
        take_out(slot);
        slots->taken++;
        end_wait(slot, GRANTED);
    }
}

/* ---- the calls */

static gpuhal_status check(const gpuhal_device *device, const char *call)
{
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
    }
    return gpuhal_check(device->gpu);
}

gpuhal_status gpuhal_work_slots_set(gpuhal_device *device, uint32_t count)
{
    gpuhal_status status = check(device, "gpuhal_work_slots_set");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(device->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    gpuhal_work_slots *slots = find(leases, device);
    if (slots) {
        slots->total = count ? count : gpuhal_lease_default_slots(device);
        grant(slots);
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return slots ? GPUHAL_OK : gpuhal_error_host_memory();
}

gpuhal_status gpuhal_work_slots_count(gpuhal_device *device, uint32_t *out_total, uint32_t *out_taken,
                                      uint32_t *out_waiting)
{
    uint32_t unused;
    uint32_t *const outs[] = {out_total ? out_total : &unused, out_taken ? out_taken : &unused,
                              out_waiting ? out_waiting : &unused};
    *outs[0] = *outs[1] = *outs[2] = 0;
    gpuhal_status status = check(device, "gpuhal_work_slots_count");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(device->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const gpuhal_work_slots *slots = find(leases, device);
    if (slots) {
        *outs[0] = slots->total;
        *outs[1] = slots->taken;
        *outs[2] = slots->waiting_count;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return slots ? GPUHAL_OK : gpuhal_error_host_memory();
}

static void destroy(gpuhal_work_slot *slot)
{
    if (slot->notifier >= 0) {
        gpuhal_os_descriptor_close(slot->notifier);
    }
    gpuhal_condition_finish(&slot->condition);
    free(slot->due);
    free(slot);
}

static gpuhal_status make(gpuhal_device *device, int32_t priority, gpuhal_work_slot **out_slot)
{
    if (priority < -GPUHAL_LEASE_PRIORITY_MAX || priority > GPUHAL_LEASE_PRIORITY_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "work slots: priority %" PRId32 " is not from -3 to 3",
                                priority);
    }
    gpuhal_work_slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        return gpuhal_error_host_memory();
    }
    slot->gpu = device->gpu;
    slot->priority = priority;
    slot->asked_ns = gpuhal_os_monotonic_ns();
    slot->notifier = -1;
    gpuhal_condition_init(&slot->condition);
    *out_slot = slot;
    return GPUHAL_OK;
}

/* The caller holds the mutex. */
static void keep(gpuhal_work_slot *slot)
{
    slot->older = slot->of->all;
    if (slot->older) {
        slot->older->newer = slot;
    }
    slot->of->all = slot;
}

static void forget(gpuhal_work_slot *slot)
{
    if (slot->older) {
        slot->older->newer = slot->newer;
    }
    if (slot->newer) {
        slot->newer->older = slot->older;
    } else {
        slot->of->all = slot->older;
    }
}

/* The caller holds the mutex. Appends the request and grants it if a slot is free. Returns false if out of memory. */
static bool enter(gpuhal_work_slot *slot, gpuhal_device *device)
{
    slot->of = find(gpuhal_leases_of(device->gpu), device);
    if (slot->of) {
        keep(slot);
        *slot->of->waiting_end = slot;
        slot->of->waiting_end = &slot->next;
        slot->of->waiting_count++;
        grant(slot->of);
    }
    return slot->of != NULL;
}

/* The caller holds the mutex. */
static gpuhal_status wait_for(gpuhal_work_slot *slot, gpuhal_leases *leases, uint64_t timeout_ns)
{
    const uint64_t deadline = gpuhal_deadline(timeout_ns);
    while (slot->state == WAITING && gpuhal_os_monotonic_ns() < deadline) {
        if (deadline == UINT64_MAX) {
            gpuhal_condition_wait(&slot->condition, &leases->mutex);
        } else {
            gpuhal_condition_wait_until(&slot->condition, &leases->mutex, deadline);
        }
    }
    if (slot->state == WAITING) {
        take_out(slot);
        forget(slot);
        return gpuhal_error_set(timeout_ns == 0 ? GPUHAL_ERROR_BUSY : GPUHAL_ERROR_TIMEOUT,
                                "work slots: all %" PRIu32 " of %s are taken", slot->of->total, slot->of->device->id);
    }
    if (slot->state == GRANTED) {
        return GPUHAL_OK;
    }
    forget(slot);
    return gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "work slots: the gpuhal object is being closed");
}

gpuhal_status gpuhal_work_slot_acquire(gpuhal_device *device, int32_t priority, uint64_t timeout_ns,
                                       gpuhal_work_slot **out_slot)
{
    gpuhal_work_slot *slot = NULL;
    if (out_slot) {
        *out_slot = NULL;
    }
    gpuhal_status status = check(out_slot ? device : NULL, "gpuhal_work_slot_acquire");
    status = status ? status : make(device, priority, &slot);
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(device->gpu);
    const int cancel = gpuhal_os_cancel_defer();
    gpuhal_mutex_lock(&leases->mutex);
    status = enter(slot, device) ? wait_for(slot, leases, timeout_ns) : gpuhal_error_host_memory();
    gpuhal_mutex_unlock(&leases->mutex);
    gpuhal_os_cancel_restore(cancel);
    if (status) {
        destroy(slot);
        return status;
    }
    *out_slot = slot;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_work_slot_request(gpuhal_device *device, int32_t priority, gpuhal_granted_fn *callback, void *user,
                                       gpuhal_work_slot **out_slot)
{
    gpuhal_work_slot *slot = NULL;
    if (out_slot) {
        *out_slot = NULL;
    }
    gpuhal_status status = check(out_slot ? device : NULL, "gpuhal_work_slot_request");
    status = status ? status : make(device, priority, &slot);
    if (status) {
        return status;
    }
    const int error = callback ? gpuhal_serve(device->gpu) : 0;
    slot->due = callback && !error ? malloc(sizeof *slot->due) : NULL;
    if (callback && !slot->due) {
        destroy(slot);
        return error ? gpuhal_error_no_thread(error) : gpuhal_error_host_memory();
    }
    if (slot->due) {
        *slot->due = (due){.callback = callback, .user = user};
    }
    gpuhal_leases *leases = gpuhal_leases_of(device->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const bool entered = enter(slot, device);
    gpuhal_mutex_unlock(&leases->mutex);
    if (!entered) {
        destroy(slot);
        return gpuhal_error_host_memory();
    }
    *out_slot = slot;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_work_slot_state(gpuhal_work_slot *slot)
{
    gpuhal_status status = check(slot ? slot->of->device : NULL, "gpuhal_work_slot_state");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(slot->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const slot_state state = slot->state;
    gpuhal_mutex_unlock(&leases->mutex);
    return state == GRANTED   ? GPUHAL_OK
           : state == WAITING ? GPUHAL_NOT_READY
                              : gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "work slots: the gpuhal object was closed");
}

gpuhal_status gpuhal_work_slot_descriptor(gpuhal_work_slot *slot, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    gpuhal_status status = check(slot && out_descriptor ? slot->of->device : NULL, "gpuhal_work_slot_descriptor");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(slot->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const int error = slot->notifier < 0 ? gpuhal_os_notifier_create(&slot->notifier) : 0;
    if (!error && slot->state != WAITING) {
        gpuhal_os_notifier_set(slot->notifier);
    }
    *out_descriptor = error ? -1 : gpuhal_os_descriptor_copy(slot->notifier);
    gpuhal_mutex_unlock(&leases->mutex);
    return *out_descriptor >= 0 ? GPUHAL_OK
                                : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
}

void gpuhal_work_slot_release(gpuhal_work_slot *slot)
{
    if (!slot || gpuhal_is_inherited(slot->gpu)) {
        return;
    }
    gpuhal_leases *leases = gpuhal_leases_of(slot->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    if (slot->state == WAITING) {
        take_out(slot);
    } else if (slot->state == GRANTED) {
        slot->of->taken--;
        grant(slot->of);
    }
    forget(slot);
    gpuhal_mutex_unlock(&leases->mutex);
    destroy(slot);
}

/* ---- the end of the object */

void gpuhal_work_slots_end(gpuhal *gpu)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
    gpuhal_mutex_lock(&leases->mutex);
    for (gpuhal_work_slots *slots = leases->slots; slots; slots = slots->next) {
        while (slots->waiting) {
            gpuhal_work_slot *slot = slots->waiting;
            take_out(slot);
            end_wait(slot, CANCELLED);
        }
    }
    gpuhal_mutex_unlock(&leases->mutex);
}

void gpuhal_work_slots_destroy(gpuhal_leases *leases)
{
    while (leases->slots) {
        gpuhal_work_slots *slots = leases->slots;
        leases->slots = slots->next;
        while (slots->all) {
            gpuhal_work_slot *slot = slots->all;
            slots->all = slot->older;
            destroy(slot);
        }
        free(slots);
    }
}
