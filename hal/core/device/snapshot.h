/* device/snapshot.h: the devices of the machine at the time of one enumeration. The device list, selectors and views
 * are based on this data.
 *
 * A published snapshot never changes and exists as long as the gpuhal object, because devices and strings that were
 * returned to callers point into it. Readers therefore need no lock. They load gpu->snapshot once and use that. The
 * list of devices only grows. A device keeps its position in all later snapshots, even when no longer listed. A rescan
 * that finds no changes publishes nothing.
 */
#ifndef GPUHAL_DEVICE_SNAPSHOT_H
#define GPUHAL_DEVICE_SNAPSHOT_H

#include "device/device.h"
#include "device/identity.h"

#include <gpuhal/rescan.h>

#define GPUHAL_NOWHERE UINT32_MAX

/* A device listed by a plugin. Entries are in order of the plugins' priority up to `fresh`. Each entry has the same
 * index as its interface in `identity`. */
typedef struct gpuhal_entry {
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    uint32_t physical_number, interface_number; /* the registry's stable numbers */
    gpuhal_device *device;               /* NULL if hidden */
    bool is_new;                         /* added by this snapshot */
    bool preferred;                      /* the preferred visible interface of its partition */
} gpuhal_entry;

typedef struct gpuhal_device_snapshot {
    struct gpuhal_device_snapshot *older;
    uint64_t begun_ns; /* when the enumeration began, monotonic clock */
    gpuhal_candidates candidates;
    gpuhal_entry *entries;
    uint32_t fresh; /* number of entries from the candidates; the remaining entries belong to backends without a result
                     * in this enumeration */
    /* Includes all entries, because hiding a device must not change numbers or split groups. */
    gpuhal_identity identity;
    /* Physical devices with a visible interface, in the order of their first visible interfaces. Then the visible
     * interfaces of each physical device and the evidence about them, in the same order. `size` is 0 in both kinds of
     * info. */
    gpuhal_physical_info *physicals;
    gpuhal_interface_info *interfaces;
    gpuhal_identity_evidence_list evidence;
    uint32_t physical_count, interface_count;
    gpuhal_device **devices; /* visible devices by position, including vanished devices */
    uint32_t *places;        /* index of each device's entry; GPUHAL_NOWHERE if no longer listed */
    uint32_t device_count;
} gpuhal_device_snapshot;

static inline const gpuhal_device_snapshot *gpuhal_device_snapshot_now(const gpuhal *gpu)
{
    return atomic_load_explicit(&gpu->snapshot, memory_order_acquire);
}
/* Returns the device's entry; NULL if the device is no longer listed. */
static inline const gpuhal_entry *gpuhal_device_snapshot_entry(const gpuhal_device_snapshot *snapshot,
                                                               const gpuhal_device *device)
{
    uint32_t place = snapshot->places[device->position];
    return place == GPUHAL_NOWHERE ? NULL : &snapshot->entries[place];
}
/* Returns the device's interface; NULL if the device is no longer listed. */
const gpuhal_interface *gpuhal_device_snapshot_interface(const gpuhal_device_snapshot *snapshot,
                                                         const gpuhal_device *device);
/* Frees the snapshot but not its devices. Accepts NULL. */
void gpuhal_device_snapshot_free(gpuhal_device_snapshot *snapshot);

/* Changes since the previous snapshot. */
typedef struct gpuhal_device_events {
    gpuhal_change *list; /* malloc'ed; generations are 0 */
    uint32_t count;
} gpuhal_device_events;

/* Runs the loader, compares the plugins' lists with the existing devices, creates new devices, marks missing devices as
 * vanished, and publishes the snapshot. Fails if the loader fails, if out of memory, or, on the first call, if
 * gpuhal_config.devices or GPUHAL_DEVICES is malformed, names an absent device or leaves no device. After a failure
 * nothing has changed. Only one thread may call this function at a time. BLOCKS. */
gpuhal_status gpuhal_devices_list(gpuhal *gpu, gpuhal_device_events *out_events);

/* Finds the existing device for each entry (match.c). */
void gpuhal_entries_match(const gpuhal *gpu, gpuhal_device_snapshot *snapshot);
/* Returns whether the two devices agree in each identifying fact that both state. */
bool gpuhal_listed_same(const gpuhal_listed_device *a, const gpuhal_listed_device *b);
/* Returns the list's entry for the wanted device: the entry with its index, otherwise an entry with its UUID or PCI
 * address, if no identifying fact differs; NULL if there is none. */
const gpuhal_listed_device *gpuhal_listed_find_same(const gpuhal_listed_devices *list,
                                                    const gpuhal_listed_device *wanted);

/* Describes the first difference between the two devices, ignoring `except` and values that drift. Returns false if
 * there is none (difference.c). */
enum { GPUHAL_DIFFERENCE_BYTES = 240 };
bool gpuhal_listed_differ(const char *id, const gpuhal_listed_device *then, const gpuhal_listed_device *now,
                          gpuhal_key except, char sentence[GPUHAL_DIFFERENCE_BYTES]);
/* Returns whether the memory sizes of a software device differ. They depend on the host's free memory, so a difference
 * does not mean that the device has changed. */
bool gpuhal_listed_drifted(const gpuhal_listed_device *then, const gpuhal_listed_device *now);

void gpuhal_device_snapshot_mark_preferred(gpuhal_device_snapshot *snapshot);
/* Determines preferred interfaces, physical devices and evidence. The visible entries must have their devices. After a
 * failure, partial results are freed with the snapshot (physical.c). */
gpuhal_status gpuhal_device_snapshot_prefer(gpuhal_device_snapshot *snapshot);

#endif
