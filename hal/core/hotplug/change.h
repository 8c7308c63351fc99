/* hotplug/change.h: device events and their delivery to listeners.
 *
 * Every event has a number. If the application requested a descriptor, each event is added to the list that
 * gpuhal_next_change() reads. If there is a listener, the callback thread delivers the event to it. Once there is a
 * listener or a descriptor, gpuhal-watch (queue/watchdog.h) waits for kernel events, plugin events and changes to the
 * files named in manifests.
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
    bool closing;

    gpuhal_change_fn *listener; /* NULL if none */
    void *user;
    uint64_t from; /* the listener receives events with a later generation */
    bool calling;
    const void *caller; /* the thread that is calling the listener, by gpuhal_job_caller() */

    gpuhal_change *kept; /* a ring; NULL if the application requested no descriptor */
    uint32_t first, count;
    intptr_t descriptor; /* readable while the ring contains events; -1 if not requested */

    uint64_t begun, ended; /* numbers of the newest scan and of the last successful scan */
    bool running;          /* a scan is in progress */
    const void *looker;    /* the scanning thread, by gpuhal_job_caller() */

    bool asked;   /* watching was begun, even if it failed to start */
    bool watches; /* gpuhal-watch uses `heard` */
    gpuhal_heard heard;
    gpuhal_host_watcher announcements;
} gpuhal_notifier;

/* Called by gpuhal.c. gpuhal_notifier_create() returns NULL if out of memory; gpuhal_notifier_destroy() accepts
 * NULL. */
gpuhal_notifier *gpuhal_notifier_create(void);
void gpuhal_notifier_destroy(gpuhal_notifier *notifier);
/* Called by gpuhal_close(). Waits for a scan in progress. Afterwards no listener is called and no scan begins. */
void gpuhal_notifier_end(gpuhal *gpu);

/* Numbers an event and delivers it. Calls no plugin, and preserves the last error. */
void gpuhal_change_notify(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence);
/* Implements gpuhal_layers.on_lost. */
void gpuhal_change_lost(gpuhal_device *device);
/* Implements gpuhal_layers.on_changed. */
void gpuhal_change_facts(gpuhal_device *device, const char *sentence);

/* Starts rescanning on events from the kernel, a plugin or a watched file (watch.c). If the kernel provides no events,
 * logs one line. */
void gpuhal_watch_kernel(gpuhal *gpu);
/* Watches `source` in place of the kernel's events, unless a source is already watched. -1 means that there is no
 * source. Takes ownership of `source`. */
gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source);
/* Closes the sources. No thread may be using them. */
void gpuhal_watch_forget(gpuhal_notifier *notifier);
/* Stops watching, and waits for a rescan in progress. */
void gpuhal_watch_end(gpuhal *gpu);

#endif
