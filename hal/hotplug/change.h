/* hotplug/change.h: news of devices, on its way to whoever listens, and who looks for it.
 *
 * Every change gets a number and, where somebody wants it, goes into the list behind gpuhal_take_change() and to the thread that calls back.
 * A thread of its own waits for news of the kernel, of plugins and of
 * the files that manifests tell to watch, from the first listener on. In the child of a fork nobody listens any more. */
#ifndef GPUHAL_HOTPLUG_CHANGE_H
#define GPUHAL_HOTPLUG_CHANGE_H

#include "device/listing.h"

#include <gpuhal/rescan.h>

enum { GPUHAL_CHANGES_KEPT = 256 };

typedef struct gpuhal_herald {
    _Atomic uint64_t generation; /* written with the mutex held */
    gpuhal_mutex mutex;          /* protects what follows */
    gpuhal_condition condition;
    uint32_t fork_generation;
    bool closing; /* the object's user is gone */

    gpuhal_change_fn *listener; /* NULL: none */
    void *user;
    uint64_t from; /* it wants changes after this one */
    bool calling;
    const void *caller; /* the thread that calls it, by gpuhal_job_caller() */

    gpuhal_change *kept; /* a ring; NULL: nobody asked for it */
    uint32_t first, count;
    intptr_t notifier; /* readable while there is something in the ring; -1: nobody asked for it */

    uint64_t begun, ended; /* looks at the machine: begun so far, and the last one that went well */
    bool running;          /* a look is under way */
    const void *looker;    /* the thread that looks, by gpuhal_job_caller() */

    bool asked;   /* somebody listens: news of devices are waited for, or cannot be */
    bool watches; /* the thread is there */
    gpuhal_thread watch;
    gpuhal_hotplug_sources sources;
    gpuhal_host_watcher announcements;
} gpuhal_herald;

/* Made and freed by gpuhal.c. NULL without memory; NULL does nothing. */
gpuhal_herald *gpuhal_herald_create(void);
void gpuhal_herald_destroy(gpuhal_herald *herald);
/* With gpuhal_close(): nobody is called any more, no look begins, and the one under way is waited for. */
void gpuhal_herald_end(gpuhal *gpu);
void gpuhal_herald_lock(gpuhal_herald *herald);

/* Numbers it and hands it on. Calls no plugin, and leaves the last error as it is. */
void gpuhal_change_tell(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence);
/* For gpuhal.on_lost: its queues fail, and it is told. */
void gpuhal_change_lost(gpuhal_device *device);
/* For gpuhal.on_changed. */
void gpuhal_change_facts(gpuhal_device *device, const char *sentence);

/* watch.c: from now on looks again when the kernel, a plugin or a watched file has news; where the kernel tells none, one line of the log
 * says so. */
void gpuhal_watch_kernel(gpuhal *gpu);
/* The same with this source in the place of the kernel's, -1 for none, unless something is watched already. It is taken over. */
gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source);
/* Gives the sources back, once no thread waits for them. */
void gpuhal_watch_forget(gpuhal_herald *herald);
/* Ends the thread, and waits for it. */
void gpuhal_watch_end(gpuhal_herald *herald);

#endif
