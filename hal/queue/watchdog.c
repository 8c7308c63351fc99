/* queue/watchdog.c: see watchdog.h.
 *
 * A call that may wait for the device's work (GPUHAL_CALL_BLOCKS) does not count as a hang while a queue of the device has unfinished work
 * and the driver answers that this goes on. A thread is started to ask, which the driver may keep as well. No call counts as a hang while the
 * application has native access to a queue of the device, since it may hold the vendor's lock. */
#include "queue/watchdog.h"

#include "core/error.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#define PERIOD_MOST_NS UINT64_C(500000000)

static struct {
    gpuhal_mutex mutex;         /* protects what follows, and gpuhal_device.watched */
    gpuhal_condition condition; /* the list of devices changed; a device is to be reported on, or was */
    uint32_t generation;        /* fork generation of all that follows; 0: nothing was made yet */
    gpuhal_device *devices;
    gpuhal_device *reports;     /* given up; not in `devices` any more */
    const gpuhal_device *busy;  /* gpuhal-report works on it */
    bool watches, reporting;    /* the threads exist */
} dog = {.mutex = GPUHAL_MUTEX_INITIALIZER};

static void lock(void)
{
    gpuhal_mutex_lock(&dog.mutex);
    if (dog.generation == gpuhal_os_fork_generation()) {
        return;
    }
    if (dog.generation != 0) {
        gpuhal_call_slots_inherit();
    }
    dog.generation = gpuhal_os_fork_generation();
    gpuhal_condition_init(&dog.condition);
    dog.devices = dog.reports = NULL;
    dog.busy = NULL;
    dog.watches = dog.reporting = false;
}

/* Takes the device out of a list. With the mutex held. */
static bool take_out(gpuhal_device **link, const gpuhal_device *device)
{
    while (*link && *link != device) {
        link = &(*link)->watched.next;
    }
    bool found = *link != NULL;
    if (found) {
        *link = device->watched.next;
    }
    return found;
}

/* ---- the thread that watches; everything with the mutex held */

static uint64_t hang_ns(const gpuhal_device *device)
{
    return device->gpu->settings.hang_ns;
}

static uint64_t period_ns(void)
{
    uint64_t period = PERIOD_MOST_NS;
    for (const gpuhal_device *device = dog.devices; device; device = device->watched.next) {
        period = hang_ns(device) / 4 < period ? hang_ns(device) / 4 : period;
    }
    return period;
}

/* The device that a call is for, or the one with the shortest time of those of a plugin; NULL: none that is watched. */
static gpuhal_device *find(const void *subject)
{
    gpuhal_device *found = NULL;
    for (gpuhal_device *device = dog.devices; device && found != subject; device = device->watched.next) {
        bool shorter = !found || hang_ns(device) < hang_ns(found);
        if (device == subject || (device->watched.plugin == subject && shorter)) {
            found = device;
        }
    }
    return found;
}

/* False for an object whose last reference has gone: it is being destroyed. */
static bool reference(gpuhal *gpu)
{
    uint64_t references = atomic_load(&gpu->references);
    while (references > 0) {
        if (atomic_compare_exchange_weak(&gpu->references, &references, references + 1)) {
            return true;
        }
    }
    return false;
}

static void give_up(const void *subject)
{
    for (gpuhal_device *device = dog.devices, *next; device; device = next) {
        next = device->watched.next;
        if ((device == subject || device->watched.plugin == subject) && take_out(&dog.devices, device)) {
            if (gpuhal_device_give_up(device) && reference(device->gpu)) { /* for good: a stuck thread works on it */
                device->watched.kept = true;
                device->watched.next = dog.reports;
                dog.reports = device;
                gpuhal_condition_signal_all(&dog.condition);
            }
        }
    }
}

/* The next opening of the same device that has unfinished work, from `other` on: gpuhal objects of one process share the
 * device. */
static gpuhal_device *next_at_work(gpuhal_device *other, const gpuhal_device *device)
{
    while (other && (other->watched.plugin != device->watched.plugin || other->index != device->index ||
                     !gpuhal_service_has_unfinished(other))) {
        other = other->watched.next;
    }
    return other;
}

/* Whether the call may be waiting for work of the device. The driver is made to answer that several times within
 * hang_ns. */
static bool is_behind_work(gpuhal_device *device, gpuhal_call_slot *slot, uint64_t counted_ns)
{
    gpuhal_device *first = next_at_work(dog.devices, device);
    if (!first) {
        return false;
    }
    bool answered = false;
    for (gpuhal_device *other = first; other; other = next_at_work(other->watched.next, device)) {
        answered = answered || other->watched.answered;
    }
    slot->silent_ns = slot->is_behind && !answered ? slot->silent_ns + counted_ns : 0;
    for (gpuhal_device *other = slot->silent_ns > 0 ? first : NULL; other;
         other = next_at_work(other->watched.next, device)) {
        other->watched.probe = true;
        gpuhal_condition_signal_all(&dog.condition);
    }
    slot->is_behind = true;
    return slot->silent_ns < hang_ns(device);
}

/* How long the call has been seen, after another `counted_ns`; what it spent behind other work is left out but for two looks, which it may
 * take to learn that the work has ended. */
static uint64_t waited_ns(gpuhal_device *device, gpuhal_call_slot *slot, uintptr_t call, uint64_t counted_ns)
{
    slot->waited_ns += counted_ns;
    if (atomic_load(&device->native_accesses) > 0) {
        slot->waited_ns = 0;
    } else if ((call & GPUHAL_CALL_BLOCKS) && is_behind_work(device, slot, counted_ns)) {
        return 0;
    } else if (slot->is_behind && slot->silent_ns < hang_ns(device)) {
        slot->is_behind = false;
        slot->waited_ns = slot->waited_ns < 2 * counted_ns ? slot->waited_ns : 2 * counted_ns;
    }
    return slot->waited_ns;
}

/* Which drivers have answered since the last look. */
static void take_answers(void)
{
    for (gpuhal_device *device = dog.devices; device; device = device->watched.next) {
        device->watched.answered = device->watched.goes_on;
        device->watched.goes_on = false;
    }
}

static void look_at(gpuhal_call_slot *slot, uint64_t counted_ns)
{
    uintptr_t call = atomic_load_explicit(&slot->call, memory_order_acquire);
    gpuhal_device *device = call ? find((const void *)(call & ~(uintptr_t)GPUHAL_CALL_BITS)) : NULL;
    if (!device) {
        return;
    }
    if (!(call & GPUHAL_CALL_MARKED)) {
        slot->waited_ns = slot->silent_ns = 0;
        slot->is_behind = false;
        (void)atomic_compare_exchange_strong(&slot->call, &call, call | GPUHAL_CALL_MARKED);
        return;
    }
    uint64_t extra = call & GPUHAL_CALL_EXTRA ? atomic_load_explicit(&slot->extra_ns, memory_order_relaxed) : 0;
    uint64_t allowed = extra < UINT64_MAX - hang_ns(device) ? extra + hang_ns(device) : UINT64_MAX;
    if (allowed == UINT64_MAX || waited_ns(device, slot, call, counted_ns) < allowed) {
        return;
    }
    if (gpuhal_call_slot_is_alive(slot)) {
        give_up((const void *)(call & ~(uintptr_t)GPUHAL_CALL_BITS));
    } else {
        (void)atomic_compare_exchange_strong(&slot->call, &call, 0);
    }
}

/* Time counts only while this thread runs: a process that was stopped for a minute has not waited for a minute. */
static void *watch(void *unused)
{
    (void)unused;
    gpuhal_os_thread_name("gpuhal-watch");
    lock();
    uint64_t last = gpuhal_os_monotonic_ns();
    while (dog.devices) {
        uint64_t period = period_ns();
        gpuhal_condition_wait_until(&dog.condition, &dog.mutex, last + period);
        uint64_t now = gpuhal_os_monotonic_ns(), passed = now - last;
        if (passed < period) {
            continue;
        }
        last = now;
        take_answers();
        for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
            look_at(slot, passed < 2 * period ? passed : period);
        }
    }
    dog.watches = false;
    gpuhal_mutex_unlock(&dog.mutex);
    return NULL;
}

/* ---- the thread that reports */

static void *ask(void *user)
{
    gpuhal_device *device = user;
    gpuhal *gpu = device->gpu;
    gpuhal_os_thread_name("gpuhal-ask");
    bool goes_on = gpuhal_queues_go_on(device);
    lock();
    device->watched.goes_on = device->watched.goes_on || goes_on;
    device->watched.asking = false;
    gpuhal_mutex_unlock(&dog.mutex);
    gpuhal_service_worker_ends(gpu);
    return NULL;
}

/* With the mutex held, which is let go meanwhile; the device is the one that this thread works on until then. */
static void begin_to_ask(gpuhal_device *device)
{
    gpuhal *gpu = device->gpu;
    bool alive = !device->watched.asking && reference(gpu);
    device->watched.asking = device->watched.asking || alive;
    gpuhal_mutex_unlock(&dog.mutex);
    if (alive) {
        gpuhal_service_worker_begins(gpu);
        gpuhal_unreference(gpu); /* not the last: workers have one */
    }
    bool fails = alive && gpuhal_thread_start_detached(ask, device) != 0;
    lock();
    device->watched.asking = device->watched.asking && !fails;
    dog.busy = NULL;
    gpuhal_condition_signal_all(&dog.condition);
    gpuhal_mutex_unlock(&dog.mutex);
    if (fails) {
        gpuhal_service_worker_ends(gpu);
    }
    lock();
}

/* With the mutex held. *out_probe: only its queues are to be asked. */
static gpuhal_device *take_report(bool *out_probe)
{
    gpuhal_device *device = dog.reports;
    *out_probe = !device;
    if (device) {
        dog.reports = device->watched.next;
        return device;
    }
    for (device = dog.devices; device && !device->watched.probe; device = device->watched.next) {
    }
    if (device) {
        device->watched.probe = false;
    }
    return device;
}

static void *report(void *unused)
{
    (void)unused;
    gpuhal_os_thread_name("gpuhal-report");
    lock();
    while (dog.devices || dog.reports) {
        bool probe = false;
        gpuhal_device *device = take_report(&probe);
        if (!device) {
            gpuhal_condition_wait(&dog.condition, &dog.mutex);
            continue;
        }
        dog.busy = device;
        if (probe) {
            begin_to_ask(device);
            continue;
        }
        gpuhal_mutex_unlock(&dog.mutex);
        gpuhal_device_report_hang(device);
        lock();
        dog.busy = NULL;
        gpuhal_condition_signal_all(&dog.condition);
    }
    dog.reporting = false;
    gpuhal_mutex_unlock(&dog.mutex);
    return NULL;
}

/* ---- which devices */

void gpuhal_watchdog_add(gpuhal_device *device)
{
    lock();
    (void)take_out(&dog.devices, device);
    (void)take_out(&dog.reports, device);
    bool kept = device->watched.kept; /* an opening that was given up has come back */
    device->watched = (gpuhal_watched){.next = dog.devices, .plugin = device->plugin};
    dog.devices = device;
    dog.watches = dog.watches || gpuhal_thread_start_detached(watch, NULL) == 0;
    dog.reporting = dog.reporting || gpuhal_thread_start_detached(report, NULL) == 0;
    bool watched = dog.watches && dog.reporting;
    gpuhal_condition_signal_all(&dog.condition);
    gpuhal_mutex_unlock(&dog.mutex);
    if (kept) {
        gpuhal_unreference(device->gpu); /* not the last: the caller has one */
    }
    if (!watched) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING,
                        "%s: hangs of its driver are not detected: the system gives no further thread", device->id);
    }
}

void gpuhal_watchdog_remove(gpuhal_device *device)
{
    lock();
    (void)take_out(&dog.devices, device);
    (void)take_out(&dog.reports, device);
    while (dog.busy == device) {
        gpuhal_condition_wait(&dog.condition, &dog.mutex);
    }
    gpuhal_condition_signal_all(&dog.condition);
    gpuhal_mutex_unlock(&dog.mutex);
}
