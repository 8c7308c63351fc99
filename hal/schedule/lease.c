/* schedule/lease.c: waits until requests (lease_asked.c) are granted, and releases leases. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Minimum and maximum interval between checks of a waiting process for leases of dead processes, and the interval
 * between its checks for cancellation. Only the first processes in the queue check often, so that a thousand waiting
 * processes do not keep the machine busy. */
#define LOOK_NS      UINT64_C(40000000)
#define LOOK_LAST_NS UINT64_C(2000000000)
#define CANCEL_NS    UINT64_C(250000000)

/* ---- the list */

static gpuhal_status append(gpuhal_lease *lease)
{
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const bool closing = leases->closing;
    if (!closing) {
        lease->next = leases->list;
        leases->list = lease;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return closing ? gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "leases: the gpuhal object is being closed") : GPUHAL_OK;
}

/* The caller holds the mutex. */
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

/* Of the devices with requested bytes, finds one whose use by other programs is unknown because its driver is late. */
static const gpuhal_lease_device *find_late(const gpuhal_lease *lease)
{
    uint32_t i = 0;
    while (i < lease->device_count && !(lease->devices[i].sample.late && lease->devices[i].bytes > 0)) {
        i++;
    }
    return i < lease->device_count ? &lease->devices[i] : NULL;
}

/* Samples the devices' use and checks their health. Must be called before every decision. */
static gpuhal_status sample_all(gpuhal_lease *lease)
{
    const gpuhal_status status =
        gpuhal_lease_sample(lease->gpu, lease->devices, lease->device_count, lease->record.count > 0,
                            lease->waits_not ? 0 : lease->deadline_ns);
    const bool is_over = !lease->waits_not && gpuhal_os_monotonic_ns() >= lease->deadline_ns;
    const gpuhal_lease_device *late = status || !is_over ? NULL : find_late(lease);
    if (late) {
        return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "leases: the driver of %s did not report its free memory in time",
                                late->device->id);
    }
    return status ? status : gpuhal_lease_check_health(lease);
}

static gpuhal_status cancelled(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "leases: the request was withdrawn, or its object closed");
}

static uint64_t look_ns(uint32_t before)
{
    const uint64_t pause = before < GPUHAL_LEDGER_LOOKERS ? LOOK_NS : LOOK_NS * (before - GPUHAL_LEDGER_LOOKERS + 2);
    return pause < LOOK_LAST_NS ? pause : LOOK_LAST_NS;
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static void wait_for_word(const gpuhal_lease *lease, uint32_t word, uint64_t until_ns)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    while (now < until_ns && !atomic_load(&lease->cancelled) &&
           gpuhal_ledger_word(lease->file, lease->record.place) == word) {
        gpuhal_os_word_wait(lease->words, lease->record.place, word, earlier(until_ns - now, CANCEL_NS));
        now = gpuhal_os_monotonic_ns();
    }
}

static gpuhal_status not_in_time(const gpuhal_lease *lease)
{
    char taken[256];
    gpuhal_lease_name_taken(lease, taken, sizeof taken);
    return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "leases: request %" PRIu64 " was not granted in time%s",
                            lease->record.ticket, taken);
}

/* Retries while the ledger is locked by another process or gpuhal object, or full. */
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
        const uint64_t now = gpuhal_os_monotonic_ns();
        if (now >= lease->deadline_ns) {
            return not_in_time(lease);
        }
        if (status) {
            gpuhal_os_sleep(earlier(LOOK_NS, lease->deadline_ns - now));
        } else {
            wait_for_word(lease, word, earlier(now + look_ns(before), lease->deadline_ns));
        }
        status = sample_all(lease);
        if (status) {
            return status;
        }
    }
}

static gpuhal_status enter_once(gpuhal_lease *lease, bool *out_held)
{
    bool again = false;
    gpuhal_status status = sample_all(lease);
    status = status ? status : gpuhal_lease_enter(lease, out_held, &again);
    if (status || !again) {
        return status;
    }
    status = sample_all(lease);
    return status ? status : gpuhal_lease_enter(lease, out_held, NULL);
}

/* Retries until the deadline if the ledger is locked or full. */
static gpuhal_status enter_in_time(gpuhal_lease *lease, bool *out_held)
{
    for (;;) {
        const gpuhal_status status = enter_once(lease, out_held);
        const uint64_t now = gpuhal_os_monotonic_ns();
        if (status != GPUHAL_ERROR_BUSY || now >= lease->deadline_ns) {
            return status;
        }
        if (atomic_load(&lease->cancelled)) {
            return cancelled();
        }
        gpuhal_os_sleep(earlier(LOOK_NS, lease->deadline_ns - now));
    }
}

static gpuhal_status obtain(gpuhal_lease *lease)
{
    bool held = false;
    gpuhal_status status = enter_in_time(lease, &held);
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
        /* After a timeout, keep a lease that was granted at the last moment. */
        (void)gpuhal_lease_leave(lease, status == GPUHAL_ERROR_TIMEOUT, &held);
        status = held ? GPUHAL_OK : gpuhal_error_restore(&why);
    }
    return status;
}

/* Ends the wait. If the request was cancelled, or the gpuhal object is being closed, releases a granted lease and
 * returns CANCELLED. */
static gpuhal_status conclude(gpuhal_lease *lease, gpuhal_status status)
{
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
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

/* Checks the arguments of a public call and creates a lease that is not in any list yet. */
static gpuhal_status start(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns, gpuhal_lease **out_lease,
                           gpuhal_lease **out_made)
{
    if (out_lease) {
        *out_lease = NULL;
    }
    if (!gpu || !out_lease) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_lease_acquire: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    return status ? status : gpuhal_lease_make(gpu, desc, timeout_ns, out_made);
}

/* Ends a public call: passes the lease to the caller or frees it. */
static gpuhal_status finish(gpuhal_lease *lease, gpuhal_status status, gpuhal_lease **out_lease)
{
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    if (status) {
        gpuhal_mutex_lock(&leases->mutex);
        take_out(leases, lease);
        gpuhal_mutex_unlock(&leases->mutex);
        gpuhal_lease_unreference(lease);
        return status;
    }
    *out_lease = lease;
    return GPUHAL_OK;
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
    status = status ? status : conclude(lease, obtain(lease));
    status = finish(lease, status, out_lease);
    gpuhal_os_cancel_restore(cancel);
    return status;
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
        if (!gpuhal_serve_call(gpu, call_back, due)) {
            call_back(due, status); /* memory is short, so the callback runs on this thread */
        }
    }
    gpuhal_lease_unreference(lease);
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
    int error = callback ? gpuhal_serve(gpu) : 0;
    error = error ? error : gpuhal_worker_start(gpu, wait_as_worker, lease);
    if (error) {
        gpuhal_lease_unreference(lease);
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
    status = status ? status : begin_request(lease, callback, user);
    return finish(lease, status, out_lease);
}

/* ---- the end */

static void end(gpuhal_lease *lease, bool to_others)
{
    if (!lease || gpuhal_is_inherited(lease->gpu)) {
        return;
    }
    gpuhal *gpu = lease->gpu;
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
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
    if (held && to_others && (lease->record.flags & GPUHAL_LEASE_INHERIT)) {
        (void)gpuhal_lease_leave_to_others(lease);
    } else if (held) {
        (void)gpuhal_lease_leave(lease, false, &unused);
    }
    if (held) {
        gpuhal_leases_limit(gpu);
    }
    gpuhal_error_restore(&before);
    gpuhal_os_cancel_restore(cancel);
    gpuhal_lease_unreference(lease);
}

void gpuhal_lease_release(gpuhal_lease *lease)
{
    end(lease, false);
}

void gpuhal_lease_hand_down(gpuhal_lease *lease)
{
    end(lease, true);
}

gpuhal_leases *gpuhal_leases_create(void)
{
    gpuhal_leases *leases = malloc(sizeof *leases);
    if (leases) {
        memset(leases, 0, offsetof(gpuhal_leases, known)); /* entries of the device table are initialised on use */
        gpuhal_mutex_init(&leases->mutex);
    }
    return leases;
}

/* The workers cancel waiting requests. gpuhal_close() waits for the workers. A callback on another thread may release a
 * lease at the same time. */
void gpuhal_leases_end(gpuhal *gpu)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
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
            atomic_fetch_add(&lease->references, 1);
            gpuhal_mutex_unlock(&leases->mutex);
            (void)gpuhal_lease_leave(lease, false, &unused);
            gpuhal_lease_unreference(lease);
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
        gpuhal_lease_unreference(lease);
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
