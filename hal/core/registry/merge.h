/* registry/merge.h: merges changes into the database. These functions must not access files or clocks. */
#ifndef GPUHAL_REGISTRY_MERGE_H
#define GPUHAL_REGISTRY_MERGE_H

#include "registry/database.h"

/* A device that a backend lists now. Strings may be NULL. A value that several devices share does not identify any of
 * them, and must be left out. */
typedef struct gpuhal_sighting {
    uint32_t group; /* equal for all interfaces of one physical device; less than the number of sightings */
    uint32_t host;  /* 1 for the host's processor or a software device */
    uint32_t vendor_id;
    const char *pci, *uuid, *backend, *partition, *name, *driver_version;
    uint32_t known; /* the interface's number when it was listed, for gpuhal_database_find() */
    /* Results: */
    uint32_t physical, iface; /* stable numbers; 0 after the 256th sighting, and if there is no room for the device */
} gpuhal_sighting;

/* Zero-initialised means no changes; `now` is in seconds since 1970. The caller owns all data passed here. */
typedef struct gpuhal_changes {
    uint64_t now;
    /* Applied first: replaces the whole database. An empty database erases everything. Stable numbers that were in use
     * are not reused. */
    const gpuhal_database *replace;
    const char *forget_plugin; /* applied next: removes the results and faults of plugins with this name */
    uint32_t forget_physical;  /* also removes this physical device with all its records; 0 for none */
    /* identity of a plugin whose device was opened, so that its earlier hangs and crashes no longer count */
    const char *proven;
    const gpuhal_database_plugin *plugins; /* `generation` is set by the merge, here and below */
    size_t plugin_count;
    gpuhal_sighting *sightings;
    size_t sighting_count;
    /* NULL-terminated names of backends whose devices are all among the sightings; recorded interfaces of these
     * backends that are not among the sightings are absent; may be NULL */
    const char *const *listed;
    /* The devices of the links and faults below; NULL if none. Links and faults contain 1 + an index in this list in
     * place of an interface's number, because the database may have been replaced after this process learned the
     * numbers. */
    const gpuhal_sighting *about;
    const gpuhal_database_link *links;
    size_t link_count;
    const gpuhal_database_fault *faults; /* each entry adds `count` faults of its kind at `now` */
    size_t fault_count;
    size_t left_out; /* result: number of records that were too long or invalid, or whose device has no number */
} gpuhal_changes;

/* Merges the changes and increments the generation. Returns false if out of memory. After that the database may only be
 * finished. */
bool gpuhal_database_merge(gpuhal_database *database, gpuhal_changes *changes);

/* Returns whether the record forbids running the plugin with this identity. */
bool gpuhal_database_is_quarantine(const gpuhal_database_plugin *plugin, const char *identity);

/* Returns whether the changes are only sightings that the database has noted, so that nothing needs to be written. If
 * so, sets the stable numbers. */
bool gpuhal_database_has(const gpuhal_database *database, const gpuhal_changes *changes);

/* Finds or assigns the stable numbers of the sightings and records them as seen (stable_ids.c). */
bool gpuhal_database_number(gpuhal_database *database, const gpuhal_changes *changes);
/* Returns the interface's number in this database, or 0 if no interface matches or several match equally well. */
uint32_t gpuhal_database_find(const gpuhal_database *database, const gpuhal_sighting *seen);
/* Returns whether every sighting has a number, or no room for one, and was recorded recently with the same values, and
 * every absent interface of the backends in `listed` is recorded as absent. */
bool gpuhal_database_has_noted(const gpuhal_database *database, const gpuhal_changes *changes);

#endif
