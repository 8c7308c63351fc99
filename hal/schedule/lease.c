/* schedule/lease.c: the functions for leases: what is asked for, waiting, and the end. */
#include "schedule/leases.h"

#include "core/error.h"
#include "core/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often the first requests in the queue look for leases of dead processes. Those behind them look less often: a
 * thousand waiting processes must not keep the machine busy. */
#define LOOK_NS      UINT64_C(40000000)
#define LOOK_LAST_NS UINT64_C(2000000000)
#define CANCEL_NS    UINT64_C(250000000)
enum { LOOKERS = 4 };

/* ---- what is asked for */

static gpuhal_status invalid(const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_lease_acquire: %s", what);
}

static gpuhal_status take_desc(const gpuhal_lease_desc *given, gpuhal_lease_desc *out)
{
    *out = (gpuhal_lease_desc){.size = sizeof *out};
    if (!given || given->size == 0) {
        return invalid(given ? "desc.size is 0; set it to sizeof(gpuhal_lease_desc)" : "desc is NULL");
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->flags & ~(uint32_t)GPUHAL_LEASE_INHERIT) {
        return invalid("desc.flags has an unknown bit");
    }
    if (out->reserved != 0) {
        return invalid("desc.reserved is not 0");
    }
    if (out->priority < -GPUHAL_LEASE_PRIORITY_MAX || out->priority > GPUHAL_LEASE_PRIORITY_MAX) {
        return invalid("desc.priority is not from -3 to 3");
    }
    if ((out->part_count > 0 && !out->parts) || (out->part_count == 0 && out->device_count > 0 && !out->devices)) {
        return invalid("the list of devices is NULL");
    }
    if (out->label && strnlen(out->label, GPUHAL_LEASE_LABEL_MAX + 1) > GPUHAL_LEASE_LABEL_MAX) {
        return invalid("desc.label is longer than 47 bytes");
    }
    return GPUHAL_OK;
}

/* Adds a device; one interface of each part of a physical device is enough. */
static gpuhal_status add_device(gpuhal_lease *lease, gpuhal_device *device, uint64_t bytes, uint32_t slots,
                                bool certain)
{
    if (!device) {
        return invalid("a device is NULL");
    }
    if (bytes > GPUHAL_LEDGER_BYTES_MAX) {
        return invalid("more than 2^62 bytes of a device");
    }
    if (device->gpu != lease->gpu) {
        return gpuhal_two_objects("gpuhal_lease_acquire", "the devices", lease->gpu, device->gpu);
    }
    for (uint32_t i = 0; i < lease->device_count; i++) {
        if (gpuhal_devices_same_part(lease->devices[i].device, device)) {
            return certain ? invalid("two parts name one device") : GPUHAL_OK;
        }
    }
    if (lease->device_count == GPUHAL_LEDGER_DEVICES) {
        return invalid("more than 64 devices");
    }
    gpuhal_lease_device *own = &lease->devices[lease->device_count++];
    own->device = device;
    own->bytes = bytes;
    own->slots = slots ? slots : 1;
    gpuhal_lease_describe(device, &own->described);
    return GPUHAL_OK;
}

static gpuhal_status add_devices(gpuhal_lease *lease, const gpuhal_lease_desc *desc)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; !status && i < desc->part_count; i++) {
        const gpuhal_lease_part *part = &desc->parts[i];
        status = part->reserved ? invalid("reserved of a part is not 0")
                                : add_device(lease, part->device, part->bytes, part->slots, true);
    }
    if (desc->part_count > 0) {
        return status;
    }
    lease->record.count = desc->count ? desc->count : 1;
    lease->record.slots = desc->slots ? desc->slots : 1;
    lease->record.bytes = desc->bytes;
    for (uint32_t i = 0; !status && i < desc->device_count; i++) {
        status = add_device(lease, desc->devices[i], desc->bytes, desc->slots, false);
    }
    for (uint32_t d = 0; !status && desc->device_count == 0 && d < gpuhal_device_count(lease->gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(lease->gpu, d);
        if (gpuhal_lease_is_candidate(device)) {
            status = add_device(lease, device, desc->bytes, desc->slots, false);
        }
    }
    if (!status && lease->device_count < lease->record.count) {
        status = gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                                  "leases: %" PRIu32 " devices are asked for, and %" PRIu32 " may be leased",
                                  lease->record.count, lease->device_count);
    }
    return status;
}

static void unreference(gpuhal_lease *lease)
{
    if (atomic_fetch_sub(&lease->references, 1) == 1) {
        if (lease->notifier >= 0) {
            gpuhal_os_descriptor_close(lease->notifier);
        }
        free(lease->devices);
        free(lease);
    }
}

static gpuhal_status make(gpuhal *gpu, const gpuhal_lease_desc *given, uint64_t timeout_ns, gpuhal_lease **out_lease)
{
    gpuhal_lease_desc desc;
    gpuhal_status status = take_desc(given, &desc);
    status = status ? status : gpuhal_leases_open(gpu);
    if (status) {
        return status;
    }
    gpuhal_lease *lease = calloc(1, sizeof *lease);
    const uint32_t listed = desc.part_count > desc.device_count ? desc.part_count : desc.device_count;
    const uint32_t most = listed == 0 ? gpuhal_device_count(gpu) : listed;
    const uint32_t room = most < GPUHAL_LEDGER_DEVICES ? most : GPUHAL_LEDGER_DEVICES;
    gpuhal_lease_device *devices = calloc(room + 1u, sizeof *devices);
    if (!lease || !devices) {
        free(lease);
        free(devices);
        return gpuhal_error_host_memory();
    }
    lease->gpu = gpu;
    lease->devices = devices;
    lease->file = lease->notifier = -1;
    atomic_init(&lease->references, 1);
    lease->deadline_ns = gpuhal_deadline(timeout_ns);
    lease->waits_not = timeout_ns == 0;
    lease->record.flags = desc.flags;
    lease->record.priority = desc.priority;
    lease->record.expires_ns = desc.duration_ns;
    snprintf(lease->record.label, sizeof lease->record.label, "%s", desc.label ? desc.label : "");
    gpuhal_records_clean(lease->record.label); /* it reaches the terminals of others */
    status = add_devices(lease, &desc);
    if (status) {
        unreference(lease);
        return status;
    }
    *out_lease = lease;
    return GPUHAL_OK;
}

/* ---- the list */

static gpuhal_status append(gpuhal_lease *lease)
{
    gpuhal_leases *leases = lease->gpu->layers.leases;
    gpuhal_mutex_lock(&leases->mutex);
    const bool closing = leases->closing;
    if (!closing) {
        lease->next = leases->list;
        leases->list = lease;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return closing ? gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "leases: the gpuhal object is being closed") : GPUHAL_OK;
}

/* With the mutex held. */
static void take_out(gpuhal_leases *leases, const gpuhal_lease *lease)
{
    gpuhal_lease **link = &leases->list;
    while (*link && *link != lease) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = lease->next;
    }
}

/* ---- waiting */

static void sample_all(gpuhal_lease *lease)
{
    for (uint32_t i = 0; i < lease->device_count; i++) {
        if (lease->devices[i].bytes > 0) {
            gpuhal_lease_sample(lease->gpu, &lease->devices[i]);
        }
    }
}

static gpuhal_status cancelled(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "leases: the request was withdrawn, or its object closed");
}

static uint64_t look_ns(uint32_t before)
{
    const uint64_t pause = before < LOOKERS ? LOOK_NS : LOOK_NS * (before - LOOKERS + 2);
    return pause < LOOK_LAST_NS ? pause : LOOK_LAST_NS;
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* Returns when the request's word has changed, or it is time. */
static void wait_for_word(const gpuhal_lease *lease, uint32_t word, uint64_t until_ns)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    while (now < until_ns && !atomic_load(&lease->cancelled) &&
           gpuhal_ledger_word(lease->file, lease->record.place) == word) {
        gpuhal_os_word_wait(lease->words, lease->record.place, word, earlier(until_ns - now, CANCEL_NS));
        now = gpuhal_os_monotonic_ns();
    }
}

/* A ledger that another process keeps locked is looked at again. */
static gpuhal_status wait_until_held(gpuhal_lease *lease, bool *out_held)
{
    uint32_t before = 0, word = 0;
    for (;;) {
        gpuhal_status status = gpuhal_lease_look(lease, out_held, &before, &word);
        if (*out_held || (status && status != GPUHAL_ERROR_BUSY)) {
            return status;
        }
        if (atomic_load(&lease->cancelled)) {
            return cancelled();
        }
        if (gpuhal_os_monotonic_ns() >= lease->deadline_ns) {
            return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "leases: request %" PRIu64 " was not granted in time",
                                    lease->record.ticket);
        }
        if (status) {
            gpuhal_os_sleep(LOOK_NS);
        } else {
            wait_for_word(lease, word, earlier(gpuhal_os_monotonic_ns() + look_ns(before), lease->deadline_ns));
        }
        sample_all(lease);
    }
}

/* Enters the request and waits. When this returns OK, the lease is held. */
static gpuhal_status obtain(gpuhal_lease *lease)
{
    bool held = false;
    sample_all(lease);
    bool again = false;
    gpuhal_status status = gpuhal_lease_enter(lease, &held, &again);
    if (!status && again) {
        sample_all(lease);
        status = gpuhal_lease_enter(lease, &held, NULL);
    }
    if (!status && !held) {
        status = wait_until_held(lease, &held);
    }
    if (!status && (lease->record.flags & GPUHAL_LEASE_INHERIT)) {
        const int error = gpuhal_os_descriptor_keep_on_exec(lease->file);
        status = error ? gpuhal_ledger_files_failed("the lease", "inherited", error) : GPUHAL_OK;
    }
    if (status) {
        gpuhal_error_detail why;
        gpuhal_error_save(&why);
        /* What was granted at the last moment is taken, unless it is not wanted any more. */
        (void)gpuhal_lease_leave(lease, status == GPUHAL_ERROR_TIMEOUT, &held);
        status = held ? GPUHAL_OK : gpuhal_error_restore(&why);
    }
    return status;
}

/* Ends the wait. A request that was withdrawn meanwhile is given back. */
static gpuhal_status conclude(gpuhal_lease *lease, gpuhal_status status)
{
    gpuhal_leases *leases = lease->gpu->layers.leases;
    bool unused;
    gpuhal_mutex_lock(&leases->mutex);
    const bool unwanted = !status && (lease->released || leases->closing);
    status = unwanted ? GPUHAL_ERROR_CANCELLED : status;
    lease->phase = status ? GPUHAL_LEASE_IS_OVER : GPUHAL_LEASE_IS_HELD;
    lease->status = status;
    if (lease->notifier >= 0) {
        gpuhal_os_notifier_set(lease->notifier);
    }
    gpuhal_mutex_unlock(&leases->mutex);
    if (unwanted) {
        (void)gpuhal_lease_leave(lease, false, &unused);
        return cancelled();
    }
    if (!status) {
        gpuhal_leases_limit(lease->gpu);
    }
    return status;
}

/* Checks the arguments of a public call, and makes a lease that is in no list yet. */
static gpuhal_status start(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns, gpuhal_lease **out_lease,
                           gpuhal_lease **out_made)
{
    if (out_lease) {
        *out_lease = NULL;
    }
    if (!gpu || !out_lease) {
        return invalid("an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    return status ? status : make(gpu, desc, timeout_ns, out_made);
}

gpuhal_status gpuhal_lease_acquire(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns,
                                   gpuhal_lease **out_lease)
{
    gpuhal_lease *lease = NULL;
    gpuhal_status status = start(gpu, desc, timeout_ns, out_lease, &lease);
    if (status) {
        return status;
    }
    const int cancel = gpuhal_os_cancel_defer();
    status = append(lease);
    if (!status) {
        status = conclude(lease, obtain(lease));
        if (status) {
            gpuhal_mutex_lock(&gpu->layers.leases->mutex);
            take_out(gpu->layers.leases, lease);
            gpuhal_mutex_unlock(&gpu->layers.leases->mutex);
        }
    }
    gpuhal_os_cancel_restore(cancel);
    if (status) {
        unreference(lease);
        return status;
    }
    *out_lease = lease;
    return GPUHAL_OK;
}

/* ---- requests */

typedef struct gpuhal_lease_call {
    gpuhal_granted_fn *callback;
    void *user;
    gpuhal_status status;
} call;

static void call_back(void *user, gpuhal_status unused)
{
    call *due = user;
    (void)unused;
    due->callback(due->user, due->status);
    free(due);
}

static void *wait_as_worker(void *user)
{
    gpuhal_lease *lease = user;
    gpuhal *gpu = lease->gpu;
    call *due = lease->due;
    gpuhal_os_thread_name("gpuhal-lease");
    gpuhal_worker_is_this(gpu);
    const gpuhal_status status = conclude(lease, obtain(lease));
    if (due) {
        due->status = status;
        if (!gpu->layers.serve_call(gpu, call_back, due)) {
            call_back(due, status); /* without memory for the other thread */
        }
    }
    unreference(lease);
    gpuhal_worker_ends(gpu);
    return NULL;
}

static gpuhal_status begin_request(gpuhal_lease *lease, gpuhal_granted_fn *callback, void *user)
{
    gpuhal *gpu = lease->gpu;
    call *due = callback ? malloc(sizeof *due) : NULL;
    if (callback && !due) {
        return gpuhal_error_host_memory();
    }
    if (due) {
        *due = (call){.callback = callback, .user = user};
    }
    lease->due = due;
    atomic_fetch_add(&lease->references, 1);
    int error = callback ? gpu->layers.serve(gpu) : 0;
    error = error ? error : gpuhal_worker_start(gpu, wait_as_worker, lease);
    if (error) {
        unreference(lease);
        free(due);
        return gpuhal_error_no_thread(error);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_lease_request(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns,
                                   gpuhal_granted_fn *callback, void *user, gpuhal_lease **out_lease)
{
    gpuhal_lease *lease = NULL;
    gpuhal_status status = start(gpu, desc, timeout_ns, out_lease, &lease);
    if (status) {
        return status;
    }
    status = append(lease);
    if (!status) {
        status = begin_request(lease, callback, user);
        if (status) {
            gpuhal_mutex_lock(&gpu->layers.leases->mutex);
            take_out(gpu->layers.leases, lease);
            gpuhal_mutex_unlock(&gpu->layers.leases->mutex);
        }
    }
    if (status) {
        unreference(lease);
        return status;
    }
    *out_lease = lease;
    return GPUHAL_OK;
}

/* ---- the end */

void gpuhal_lease_release(gpuhal_lease *lease)
{
    if (!lease || gpuhal_is_inherited(lease->gpu)) {
        return;
    }
    gpuhal *gpu = lease->gpu;
    gpuhal_leases *leases = gpu->layers.leases;
    bool unused;
    const int cancel = gpuhal_os_cancel_defer();
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&leases->mutex);
    const bool held = lease->phase == GPUHAL_LEASE_IS_HELD;
    take_out(leases, lease);
    lease->released = true;
    lease->phase = held ? GPUHAL_LEASE_IS_OVER : lease->phase;
    atomic_store(&lease->cancelled, true);
    gpuhal_mutex_unlock(&leases->mutex);
    if (held) {
        (void)gpuhal_lease_leave(lease, false, &unused);
        gpuhal_leases_limit(gpu);
    }
    gpuhal_error_restore(&before);
    gpuhal_os_cancel_restore(cancel);
    unreference(lease);
}

gpuhal_leases *gpuhal_leases_create(void)
{
    gpuhal_leases *leases = calloc(1, sizeof *leases);
    if (leases) {
        gpuhal_mutex_init(&leases->mutex);
    }
    return leases;
}

/* Those that wait are withdrawn by their workers, which gpuhal_close() waits for. */
void gpuhal_leases_end(gpuhal *gpu)
{
    gpuhal_leases *leases = gpu->layers.leases;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&leases->mutex);
    leases->closing = true;
    for (gpuhal_lease *lease = leases->list; lease;) {
        bool unused;
        const bool held = lease->phase == GPUHAL_LEASE_IS_HELD;
        atomic_store(&lease->cancelled, true);
        if (held) {
            lease->phase = GPUHAL_LEASE_IS_OVER;
            lease->status = GPUHAL_ERROR_CANCELLED;
            gpuhal_mutex_unlock(&leases->mutex);
            (void)gpuhal_lease_leave(lease, false, &unused);
            gpuhal_mutex_lock(&leases->mutex);
        }
        lease = held ? leases->list : lease->next;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    gpuhal_work_slots_end(gpu);
    gpuhal_error_restore(&before);
}

void gpuhal_leases_destroy(gpuhal_leases *leases)
{
    while (leases && leases->list) {
        gpuhal_lease *lease = leases->list;
        leases->list = lease->next;
        unreference(lease);
    }
    if (leases) {
        gpuhal_work_slots_destroy(leases);
        if (leases->opened) {
            gpuhal_ledger_finish(&leases->ledger);
        }
        gpuhal_mutex_finish(&leases->mutex);
        free(leases);
    }
}
