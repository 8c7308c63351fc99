/* hotplug/change.h: device events and their delivery to listeners.
 *
 * Every event has a number. If the application requested events, they are added to the list behind gpuhal_next_change()
 * and delivered by the thread that makes callbacks. From the first listener on, gpuhal-watch (queue/watchdog.h) waits
 * for events from the kernel and from plugins, and for changes of the files that manifests name.
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
    bool closing; /* the object is being closed */

    gpuhal_change_fn *listener; /* NULL: none */
    void *user;
    uint64_t from; /* events with a later generation are delivered to it */
    bool calling;
    const void *caller; /* the thread that is calling the listener, by gpuhal_job_caller() */

    gpuhal_change *kept; /* a ring; NULL: not requested by the application */
    uint32_t first, count;
    intptr_t descriptor; /* readable while the ring has events; -1: not requested */

    uint64_t begun, ended; /* scans: the number of the newest, and of the last successful one */
    bool running;          /* a scan is in progress */
    const void *looker;    /* the scanning thread, by gpuhal_job_caller() */

    bool asked;   /* watching was started, or failed to start */
    bool watches; /* gpuhal-watch uses `heard` */
    gpuhal_heard heard;
    gpuhal_host_watcher announcements;
} gpuhal_notifier;

/* Called by gpuhal.c. Create returns NULL if host memory is short; destroy accepts NULL. */
gpuhal_notifier *gpuhal_notifier_create(void);
void gpuhal_notifier_destroy(gpuhal_notifier *notifier);
/* Called by gpuhal_close(). No listener is called and no scan begins afterwards; waits for a scan in progress. */
void gpuhal_notifier_end(gpuhal *gpu);

/* Numbers an event and delivers it. Calls no plugin, and preserves the last error. */
void gpuhal_change_notify(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence);
/* Implements gpuhal_layers.on_lost: fails the device's queues and reports the loss. */
void gpuhal_change_lost(gpuhal_device *device);
/* Implements gpuhal_layers.on_changed. */
void gpuhal_change_facts(gpuhal_device *device, const char *sentence);

/* Starts rescanning on events from the kernel, a plugin or a watched file (watch.c). If the kernel provides no events,
 * logs one line. */
void gpuhal_watch_kernel(gpuhal *gpu);
/* Watches this source instead of the kernel's (-1: none), unless a source is already watched. Takes ownership of
 * `source`. */
gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source);
/* Closes the sources, once no thread uses them. */
void gpuhal_watch_forget(gpuhal_notifier *notifier);
/* Stops watching, and waits for a rescan in progress. */
void gpuhal_watch_end(gpuhal *gpu);

#endif
