/* device/snapshot.h: the devices of the machine as of one enumeration: the data behind the list of devices, selectors
 * and views.
 *
 * A snapshot never changes once it is published, and lives as long as the gpuhal object, because handed-out devices and
 * texts point into it. So readers need no lock: they load gpu->snapshot once and use that snapshot. The list of devices
 * only grows: a device keeps its position in all later snapshots, also when it is no longer listed. A rescan that finds
 * no change publishes nothing.
 */
#ifndef GPUHAL_DEVICE_SNAPSHOT_H
#define GPUHAL_DEVICE_SNAPSHOT_H

#include "device/device.h"
#include "device/identity.h"

#include <gpuhal/rescan.h>

#define GPUHAL_NOWHERE UINT32_MAX

/* A device that a plugin lists. Entries are in the order of the plugins' priority: one for each interface of the
 * identity, with the same index. */
typedef struct gpuhal_entry {
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    uint32_t physical_number, interface_number; /* stable numbers of the registry */
    gpuhal_device *device;               /* NULL: hidden */
    bool is_new;                         /* added by this snapshot */
    bool preferred;                      /* among the visible interfaces of its partition */
} gpuhal_entry;

typedef struct gpuhal_device_snapshot {
    struct gpuhal_device_snapshot *older;
    uint64_t begun_ns; /* when the enumeration began, by the monotonic clock */
    gpuhal_candidates candidates;
    gpuhal_entry *entries;
    uint32_t fresh; /* entries that the candidates list; later ones are of backends without a result this time */
    /* of all entries: hiding a device must not change numbers or break groups */
    gpuhal_identity identity;
    /* physical devices with a visible interface, in the order of their first visible one; the visible interfaces of
     * each, and the evidence about these, in the same order. `size` is 0 in both kinds of info */
    gpuhal_physical_info *physicals;
    gpuhal_interface_info *interfaces;
    gpuhal_identity_evidence_list evidence;
    uint32_t physical_count, interface_count;
    gpuhal_device **devices; /* visible ones, also those that are gone, by position */
    uint32_t *places;        /* the entry of each device; GPUHAL_NOWHERE: no longer listed */
    uint32_t device_count;
} gpuhal_device_snapshot;

static inline const gpuhal_device_snapshot *gpuhal_device_snapshot_now(const gpuhal *gpu)
{
    return atomic_load_explicit(&gpu->snapshot, memory_order_acquire);
}
/* Returns the device's entry; NULL for a device that is no longer listed. */
static inline const gpuhal_entry *gpuhal_device_snapshot_entry(const gpuhal_device_snapshot *snapshot,
                                                               const gpuhal_device *device)
{
    uint32_t place = snapshot->places[device->position];
    return place == GPUHAL_NOWHERE ? NULL : &snapshot->entries[place];
}
/* Returns the device's interface; NULL for a device that is no longer listed. */
const gpuhal_interface *gpuhal_device_snapshot_interface(const gpuhal_device_snapshot *snapshot,
                                                         const gpuhal_device *device);
/* Frees the snapshot and not its devices. NULL does nothing. */
void gpuhal_device_snapshot_free(gpuhal_device_snapshot *snapshot);

/* Changes of the devices since the snapshot before. */
typedef struct gpuhal_device_events {
    gpuhal_change *list; /* malloc'ed; generations are 0 */
    uint32_t count;
} gpuhal_device_events;

/* Runs the loader, compares the plugins' lists with the existing devices, creates new devices, marks missing ones as
 * vanished, and publishes the snapshot. Fails as the loader does, without memory, and the first time if
 * `settings.devices` names an absent device; then nothing has changed. One thread at a time. BLOCKS. */
gpuhal_status gpuhal_devices_list(gpuhal *gpu, gpuhal_device_events *out_events);

/* Finds the existing device of each entry (match.c). */
void gpuhal_entries_match(const gpuhal *gpu, gpuhal_device_snapshot *snapshot);
/* Returns whether no identifying fact differs. */
bool gpuhal_listed_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b);
/* Returns the device of the list that is the wanted one, at any index; NULL: there is none. */
const gpuhal_listed_device *gpuhal_listed_find_same(const gpuhal_listed_devices *list,
                                                    const gpuhal_listed_device *wanted);

/* Describes the first difference between the two, except for `except` and for values that drift; returns false when
 * there is none (difference.c). */
enum { GPUHAL_DIFFERENCE_BYTES = 240 };
bool gpuhal_listed_differ(const char *id, const gpuhal_listed_device *then, const gpuhal_listed_device *now,
                          gpuhal_key except, char sentence[GPUHAL_DIFFERENCE_BYTES]);
/* Returns whether the memory sizes of a software device differ. They follow the free memory of the host, so the device
 * has not changed. */
bool gpuhal_listed_drifted(const gpuhal_listed_device *then, const gpuhal_listed_device *now);

/* Marks the preferred interface among the visible ones of each partition. */
void gpuhal_device_snapshot_mark_preferred(gpuhal_device_snapshot *snapshot);
/* Finds preferred interfaces, physical devices and evidence, once the visible entries have their devices (physical.c).
 * After a failure its partial results are freed with the snapshot. */
gpuhal_status gpuhal_device_snapshot_prefer(gpuhal_device_snapshot *snapshot);

#endif
