/* device/snapshot.h: which devices there are, as of one look at the machine: the answers of the list, of selectors and of gpuhal/physical.h.
 *
 * A listing never changes once it is published, and lives as long as the gpuhal object, since devices and texts that were handed out point
 * into it. So readers need no lock: they load gpu->listing once and work with that. The list of devices only grows: a device keeps its
 * position in all later listings, also when it is not listed any more. A look that finds nothing new leaves no listing behind.
 */
#ifndef GPUHAL_DEVICE_SNAPSHOT_H
#define GPUHAL_DEVICE_SNAPSHOT_H

#include "device/device.h"
#include "device/identity.h"

#include <gpuhal/rescan.h>

#define GPUHAL_NOWHERE UINT32_MAX

/* What the plugins list, in the order of their priority: one for each face of the identity, with the same number. */
typedef struct gpuhal_entry {
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    uint32_t physical_number, interface_number; /* of the registry */
    gpuhal_device *device;               /* NULL: hidden */
    bool is_new;                         /* the device was not there before */
    bool preferred;                      /* among the faces of its part that are not hidden */
} gpuhal_entry;

typedef struct gpuhal_device_snapshot {
    struct gpuhal_device_snapshot *older;
    uint64_t begun_ns; /* when the look began, by the monotonic clock */
    gpuhal_candidates candidates;
    gpuhal_entry *entries;
    uint32_t fresh; /* entries that the candidates list; those behind them are of backends that told nothing this time */
    gpuhal_identity identity;               /* of all entries, so that hiding changes no number and tears nothing apart */
    gpuhal_identity_evidence_list evidence; /* about visible ones */
    uint32_t *physicals;                       /* pieces with a visible face, in the order of their first visible one */
    uint32_t physical_count;
    gpuhal_device **devices; /* visible ones, also those that are gone, by position */
    uint32_t *places;        /* of each of them, its entry; GPUHAL_NOWHERE: it is not listed any more */
    uint32_t device_count;
} gpuhal_device_snapshot;

static inline const gpuhal_device_snapshot *gpuhal_device_snapshot_now(const gpuhal *gpu)
{
    return atomic_load_explicit(&gpu->snapshot, memory_order_acquire);
}
/* What the device is in it; NULL for one that is not listed any more. */
static inline const gpuhal_entry *gpuhal_device_snapshot_entry(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device)
{
    uint32_t place = snapshot->places[device->position];
    return place == GPUHAL_NOWHERE ? NULL : &snapshot->entries[place];
}
/* The face that the device is; NULL for one that is not listed any more. */
const gpuhal_interface *gpuhal_device_snapshot_interface(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device);
/* Frees it; its devices stay. NULL does nothing. */
void gpuhal_device_snapshot_free(gpuhal_device_snapshot *snapshot);

/* What became of the devices since the listing before. */
typedef struct gpuhal_device_events {
    gpuhal_change *list; /* malloc'ed; generations are 0 */
    uint32_t count;
} gpuhal_device_events;

/* Runs the loader, compares what the plugins list with the devices that are there, makes devices for what is new, marks what is gone, and
 * publishes. Fails as the loader does, without memory, and the first time when `settings.devices` names what is not there; then nothing
 * has changed. One thread at a time. BLOCKS. */
gpuhal_status gpuhal_devices_list(gpuhal *gpu, gpuhal_device_events *out_news);

/* match.c: finds for each entry the device that it is, if it was there before. */
void gpuhal_entries_match(const gpuhal *gpu, gpuhal_device_snapshot *snapshot);
/* Whether no fact that tells devices apart differs. */
bool gpuhal_listed_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b);
/* The one of the list that is this device, wherever it stands; NULL when none is. */
const gpuhal_listed_device *gpuhal_listed_find_same(const gpuhal_listed_devices *list, const gpuhal_listed_device *wanted);

/* difference.c: the first that the two tell differently, but for `except` and for what drifts, as a sentence; false when
 * there is nothing. */
enum { GPUHAL_DIFFERENCE_BYTES = 240 };
bool gpuhal_listed_differ(const char *id, const gpuhal_listed_device *then, const gpuhal_listed_device *now, gpuhal_key except,
                          char sentence[GPUHAL_DIFFERENCE_BYTES]);
/* Whether the sizes of a software device's memory differ, which follow the free memory of the host: no change of the
 * device. */
bool gpuhal_listed_drifted(const gpuhal_listed_device *then, const gpuhal_listed_device *now);

/* physical.c: once the visible entries have their devices: preferred faces, pieces and evidence. */
gpuhal_status gpuhal_device_snapshot_prefer(gpuhal_device_snapshot *snapshot);

#endif
