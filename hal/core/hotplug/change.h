/* hotplug/change.h: events of devices, on their way to listeners.
 *
 * Every event gets a number. If the application wants events, they go into the list of gpuhal_next_change() and to the
 * thread that calls back. From the first listener on, gpuhal-watch (queue/watchdog.h) waits for news from the kernel,
 * from plugins and of the files that manifests name.
 */
#ifndef GPUHAL_HOTPLUG_CHANGE_H
#define GPUHAL_HOTPLUG_CHANGE_H

#include "device/snapshot.h"
#include "queue/watchdog.h"

#include <gpuhal/rescan.h>

enum { GPUHAL_CHANGES_KEPT = 256 };

typedef struct gpuhal_notifier {
    _Atomic uint64_t generation; /* written with the mutex held */
    gpuhal_mutex mutex;          /* protects the members below */
    gpuhal_condition condition;
    bool closing; /* the object's user is gone */

    gpuhal_change_fn *listener; /* NULL: none */
    void *user;
    uint64_t from; /* it wants events after this one */
    bool calling;
    const void *caller; /* the thread that calls it, by gpuhal_job_caller() */

    gpuhal_change *kept; /* a ring; NULL: the application has not asked for it */
    uint32_t first, count;
    intptr_t descriptor; /* readable while the ring has events; -1: the application has not asked for it */

    uint64_t begun, ended; /* looks at the machine: number begun, and number of the last successful one */
    bool running;          /* a look is in progress */
    const void *looker;    /* the thread that looks, by gpuhal_job_caller() */

    bool asked;   /* a listener came: events are waited for, or that is not possible */
    bool watches; /* gpuhal-watch has `heard` */
    gpuhal_heard heard;
    gpuhal_host_watcher announcements;
} gpuhal_notifier;

/* Made and freed by gpuhal.c. NULL without memory; NULL does nothing. */
gpuhal_notifier *gpuhal_notifier_create(void);
void gpuhal_notifier_destroy(gpuhal_notifier *notifier);
/* Called by gpuhal_close(): no listener is called any more, no look begins, and one in progress is waited for. */
void gpuhal_notifier_end(gpuhal *gpu);

/* Numbers an event and passes it on. Calls no plugin, and leaves the last error as it is. */
void gpuhal_change_notify(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence);
/* Serves gpuhal_layers.on_lost: fails the device's queues and reports the loss. */
void gpuhal_change_lost(gpuhal_device *device);
/* Serves gpuhal_layers.on_changed. */
void gpuhal_change_facts(gpuhal_device *device, const char *sentence);

/* Starts to look again whenever the kernel, a plugin or a watched file has news (watch.c). If the kernel gives none,
 * one line of the log says so. */
void gpuhal_watch_kernel(gpuhal *gpu);
/* Watches this source in place of the kernel's, -1 for none, unless something is watched already. Owns the source. */
gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source);
/* Closes the sources, once no thread uses them. */
void gpuhal_watch_forget(gpuhal_notifier *notifier);
/* Ends the watching, and waits for a rescan in progress. */
void gpuhal_watch_end(gpuhal *gpu);

#endif
