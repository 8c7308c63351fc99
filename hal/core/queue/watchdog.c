/* queue/watchdog.c: see watchdog.h.
 *
 * A call that may wait for the device's work (GPUHAL_CALL_BLOCKS) is not a hang while a queue of the device has
 * unfinished work and the driver reports that this work is still executing. A worker queries the driver, because the
 * query may hang as well. No call is a hang while the application has native access to a queue of the device, because
 * the application may hold the vendor's lock. While the driver may be compiling, only a tenth of the time counts:
 * compilers are slow, and all calls of a driver may wait for the call that compiles. */
#include "queue/watchdog.h"

#include "queue/completion_service.h"
#include "queue/queue.h"

#define PERIOD_MOST_NS UINT64_C(500000000)
#define QUIET_NS       UINT64_C(300000000)
#define SETTLE_NS      UINT64_C(3000000000)

/* Number of seconds that count as one second while a driver may be compiling. */
#define COMPILING_PATIENCE 10u

static struct {
    gpuhal_mutex mutex;         /* protects the members below, and gpuhal_device.watched */
    gpuhal_condition condition; /* a list changed, or the thread stopped polling */
    uint32_t generation;        /* fork generation of all members below; 0 if not initialized */
    gpuhal_device *devices;
    gpuhal_device *reports;     /* abandoned devices that still need a worker to report them; no longer in `devices` */
    gpuhal_heard *heard;
    intptr_t poller, wake;      /* poller for the descriptors in `heard`, and a descriptor to wake it; -1 if none */
    bool watches, polls;        /* the thread exists; the thread is in the poller */
} dog = {.mutex = GPUHAL_MUTEX_INITIALIZER, .poller = -1, .wake = -1};

/* Locks the mutex. In a forked child, first resets all members. The child's copies of the parent's descriptors are not
 * closed, because the child may have closed them already and reused their numbers. */
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
    dog.heard = NULL;
    dog.poller = dog.wake = -1;
    dog.watches = dog.polls = false;
}

/* The caller holds the mutex. */
static void wake(void)
{
    gpuhal_condition_signal_all(&dog.condition);
    if (dog.polls) {
        gpuhal_os_notifier_set(dog.wake);
    }
}

/* The caller holds the mutex. */
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

/* ---- calls; all functions here need the mutex */

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

/* Returns the device of a call. For a call to a whole plugin, returns the plugin's device with the shortest limit.
 * Returns NULL if no such device is watched. */
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

static void give_up(const void *subject)
{
    for (gpuhal_device *device = dog.devices, *next; device; device = next) {
        next = device->watched.next;
        if ((device == subject || device->watched.plugin == subject) && take_out(&dog.devices, device)) {
            /* A stuck thread uses the object, so this reference is released only if the device is opened again. */
            if (gpuhal_device_give_up(device) && gpuhal_reference(device->gpu)) {
                device->watched.kept = true;
                device->watched.next = dog.reports;
                dog.reports = device;
            }
        }
    }
}

/* Starting at `other`, returns the next opened instance of the same device that has unfinished work. All gpuhal objects
 * of a process share the device. */
static gpuhal_device *next_at_work(gpuhal_device *other, const gpuhal_device *device)
{
    while (other && (other->watched.plugin != device->watched.plugin || other->index != device->index ||
                     !gpuhal_service_has_unfinished(other))) {
        other = other->watched.next;
    }
    return other;
}

/* Returns whether the call may be waiting for the device's work. The driver is queried several times within hang_ns,
 * and one report of progress is enough. */
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
    }
    slot->is_behind = true;
    return slot->silent_ns < hang_ns(device);
}

/* Adds `counted_ns`, and returns how long the call has been observed. A native access resets this time to 0. Of the
 * time during which the call waited for work, only the time of two checks counts, because it can take two checks to
 * notice that the work has ended. If the driver reports no progress for hang_ns, all of that time counts. */
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

static void take_answers(void)
{
    for (gpuhal_device *device = dog.devices; device; device = device->watched.next) {
        device->watched.answered = device->watched.goes_on;
        device->watched.goes_on = false;
    }
}

/* Returns whether the driver may be compiling for any of its devices. */
static bool is_compiling(const gpuhal_device *device)
{
    const gpuhal_device *other = dog.devices;
    while (other && (other->watched.plugin != device->watched.plugin ||
                     atomic_load_explicit(&other->compiling, memory_order_relaxed) == 0)) {
        other = other->watched.next;
    }
    return other != NULL;
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
    counted_ns /= is_compiling(device) ? COMPILING_PATIENCE : 1;
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

/* ---- workers */

static void report(void *device)
{
    gpuhal_os_thread_name("gpuhal-report");
    gpuhal_device_report_hang(device);
}

static void ask(void *user)
{
    gpuhal_device *device = user;
    gpuhal_os_thread_name("gpuhal-ask");
    bool goes_on = gpuhal_queues_go_on(device);
    lock();
    device->watched.goes_on = device->watched.goes_on || goes_on;
    gpuhal_mutex_unlock(&dog.mutex);
}

/* If no thread can be started, the next check tries again. The caller holds the mutex. */
static void start_workers(void)
{
    while (dog.reports && !gpuhal_worker_request(&dog.reports->watched.report, dog.reports->gpu, report, dog.reports)) {
        dog.reports = dog.reports->watched.next;
    }
    for (gpuhal_device *device = dog.devices; device; device = device->watched.next) {
        gpuhal_watched *watched = &device->watched;
        watched->probe = watched->probe && gpuhal_worker_request(&watched->ask, device->gpu, ask, device);
    }
}

/* ---- descriptors; all functions here need the mutex */

static uint64_t due_ns(const gpuhal_heard *heard)
{
    uint64_t quiet = heard->last_ns + QUIET_NS, settled = heard->first_ns + SETTLE_NS;
    return heard->first_ns == 0 ? UINT64_MAX : quiet < settled ? quiet : settled;
}

static int begin_polling(const gpuhal_hotplug_sources *sources)
{
    int error = gpuhal_os_poller_add(dog.poller, sources->kernel);
    error = error ? error : gpuhal_os_poller_add(dog.poller, sources->announced);
    return error ? error : gpuhal_os_poller_add(dog.poller, gpuhal_os_file_watch_descriptor(sources->files));
}

static void end_polling(const gpuhal_hotplug_sources *sources)
{
    gpuhal_os_poller_remove(dog.poller, sources->kernel);
    gpuhal_os_poller_remove(dog.poller, sources->announced);
    gpuhal_os_poller_remove(dog.poller, gpuhal_os_file_watch_descriptor(sources->files));
}

static void take_all(void)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    (void)gpuhal_os_notifier_clear(dog.wake);
    for (gpuhal_heard *heard = dog.heard; heard; heard = heard->next) {
        unsigned found = gpuhal_os_hotplug_take(&heard->sources);
        if (found & GPUHAL_HOTPLUG_GONE) {
            gpuhal_os_poller_remove(dog.poller, heard->sources.kernel);
            gpuhal_os_descriptor_close(heard->sources.kernel);
            heard->sources.kernel = -1;
        }
        if (found) {
            heard->pending |= found;
            heard->last_ns = now;
            heard->first_ns = heard->first_ns ? heard->first_ns : now;
        }
    }
}

/* If no thread can be started, tries again later, as after a new event. */
static void start_rescans(uint64_t now)
{
    for (gpuhal_heard *heard = dog.heard; heard; heard = heard->next) {
        if (now >= due_ns(heard)) {
            atomic_fetch_or(&heard->found, heard->pending);
            bool started = gpuhal_worker_request(&heard->worker, heard->gpu, heard->run, heard->gpu) == 0;
            heard->pending = 0;
            heard->first_ns = heard->last_ns = started ? 0 : now;
        }
    }
}

/* ---- the thread */

/* Returns the time of the next check of the calls, or of the next rescan if that is earlier. The caller holds the
 * mutex. */
static uint64_t deadline_ns(uint64_t look_ns)
{
    uint64_t deadline = dog.devices || dog.reports ? look_ns : UINT64_MAX;
    for (const gpuhal_heard *heard = dog.heard; heard; heard = heard->next) {
        deadline = due_ns(heard) < deadline ? due_ns(heard) : deadline;
    }
    return deadline;
}

/* Programs without listeners have no descriptors, so they wait on the condition. The caller holds the mutex. */
static void wait_until_unlocks(uint64_t deadline)
{
    if (!dog.heard) {
        gpuhal_condition_wait_until(&dog.condition, &dog.mutex, deadline);
        return;
    }
    uint64_t now = gpuhal_os_monotonic_ns();
    const intptr_t poller = dog.poller;
    dog.polls = true;
    gpuhal_mutex_unlock(&dog.mutex);
    bool readable = gpuhal_os_poller_wait(poller, deadline > now ? deadline - now : 0);
    lock();
    dog.polls = false;
    gpuhal_condition_signal_all(&dog.condition);
    if (readable) {
        take_all();
    }
}

/* Time counts only while this thread runs: a process that was suspended for a minute has not waited for a minute. */
static void *watch(void *unused)
{
    (void)unused;
    gpuhal_os_thread_name("gpuhal-watch");
    lock();
    uint64_t last = gpuhal_os_monotonic_ns();
    while (dog.devices || dog.reports || dog.heard) {
        uint64_t period = period_ns();
        wait_until_unlocks(deadline_ns(last + period));
        uint64_t now = gpuhal_os_monotonic_ns(), passed = now - last;
        start_rescans(now);
        if (passed < period) {
            continue;
        }
        last = now;
        take_answers();
        for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
            look_at(slot, passed < 2 * period ? passed : period);
        }
        start_workers();
    }
    dog.watches = false;
    gpuhal_mutex_unlock(&dog.mutex);
    return NULL;
}

/* Returns 0 or errno. The caller holds the mutex. */
static int need_thread(void)
{
    const int error = dog.watches ? 0 : gpuhal_thread_start_detached(watch, NULL);
    dog.watches = error == 0;
    wake();
    return error;
}

/* ---- the watched devices */

void gpuhal_watchdog_add(gpuhal_device *device)
{
    lock();
    (void)take_out(&dog.devices, device);
    (void)take_out(&dog.reports, device);
    gpuhal_watched *watched = &device->watched;
    bool kept = watched->kept; /* set if an abandoned device was opened again */
    watched->next = dog.devices;
    watched->plugin = device->plugin;
    watched->goes_on = watched->answered = watched->kept = watched->probe = false;
    dog.devices = device;
    bool works = need_thread() == 0;
    gpuhal_mutex_unlock(&dog.mutex);
    if (kept) {
        gpuhal_unreference(device->gpu); /* not the last reference, because the caller has one */
    }
    if (!works) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING,
                        "%s: hangs of its driver are not detected: the system gives no further thread", device->id);
    }
}

void gpuhal_watchdog_remove(gpuhal_device *device)
{
    lock();
    (void)take_out(&dog.devices, device);
    (void)take_out(&dog.reports, device);
    wake();
    gpuhal_mutex_unlock(&dog.mutex);
    gpuhal_worker_await(device->gpu, &device->watched.report);
}

/* This function and the next two are called with the mutex held. */
static void end_poller(void)
{
    intptr_t *const both[] = {&dog.poller, &dog.wake};
    for (size_t i = 0; i < 2; i++) {
        if (*both[i] >= 0) {
            gpuhal_os_descriptor_close(*both[i]);
            *both[i] = -1;
        }
    }
}

static int need_poller(void)
{
    if (dog.poller >= 0) {
        return 0;
    }
    int error = gpuhal_os_notifier_create(&dog.wake);
    error = error ? error : gpuhal_os_poller_create(&dog.poller);
    return error ? error : gpuhal_os_poller_add(dog.poller, dog.wake);
}

/* After the last entry, closes the poller once the thread has left it. */
static void forget(gpuhal_heard *heard)
{
    gpuhal_heard **link = &dog.heard;
    while (*link && *link != heard) {
        link = &(*link)->next;
    }
    *link = heard->next;
    end_polling(&heard->sources);
    wake();
    while (!dog.heard && dog.polls) {
        gpuhal_condition_wait(&dog.condition, &dog.mutex);
    }
    if (!dog.heard) {
        end_poller();
    }
}

int gpuhal_watchdog_listen(gpuhal_heard *heard)
{
    lock();
    int error = need_poller();
    heard->next = dog.heard;
    dog.heard = heard;
    error = error ? error : begin_polling(&heard->sources);
    error = error ? error : need_thread();
    if (error) {
        forget(heard);
    }
    gpuhal_mutex_unlock(&dog.mutex);
    return error;
}

void gpuhal_watchdog_unlisten(gpuhal_heard *heard)
{
    lock();
    forget(heard);
    gpuhal_mutex_unlock(&dog.mutex);
}
