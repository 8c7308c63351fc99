/* registry/merge.h: changes, and how they are merged into the database. Nothing here may touch a file or a clock. */
#ifndef GPUHAL_REGISTRY_MERGE_H
#define GPUHAL_REGISTRY_MERGE_H

#include "registry/database.h"

/* A device that a backend lists now. Texts may be NULL. Values that several devices share identify none of them and
 * must be left out. */
typedef struct gpuhal_sighting {
    uint32_t group; /* interfaces of one physical device have the same number, below the number of sightings */
    uint32_t host;  /* 1: the host's processor, or a program on it */
    uint32_t vendor_id;
    const char *pci, *uuid, *backend, *partition, *name, *driver_version;
    /* Result. */
    uint32_t physical, iface; /* their stable numbers; 0 for those beyond the 256th */
} gpuhal_sighting;

/* The changes. Zero-initialised: none; `now` in seconds since 1970. The caller keeps all data that it passes. */
typedef struct gpuhal_changes {
    uint64_t now;
    /* Done first: replaces the whole database; an empty one forgets everything. Stable numbers given before are never
     * given again. */
    const gpuhal_database *replace;
    const char *forget_plugin; /* then removes the results and faults of plugins with this name */
    uint32_t forget_physical;  /* and a physical device with all its records; 0: none */
    /* identity of a plugin whose device was opened: its earlier hangs and crashes no longer count */
    const char *proven;
    const gpuhal_database_plugin *plugins; /* `generation` is filled in, here and below */
    size_t plugin_count;
    gpuhal_sighting *sightings;
    size_t sighting_count;
    /* NULL-ended names of backends whose devices are all among the sightings: their other interfaces are absent; or
     * NULL */
    const char *const *listed;
    const gpuhal_database_link *links;
    size_t link_count;
    const gpuhal_database_fault *faults; /* `count` more of each kind, at `now` */
    size_t fault_count;
    size_t left_out; /* result: records that are too long to be saved */
} gpuhal_changes;

/* Merges the changes and increments the generation. Returns false without memory; the database must then only be
 * finished. */
bool gpuhal_database_merge(gpuhal_database *database, gpuhal_changes *changes);

/* Returns whether the record keeps the plugin of this identity from being run. */
bool gpuhal_database_is_quarantine(const gpuhal_database_plugin *plugin, const char *identity);

/* Returns whether a reader would miss none of the changes, so that nothing needs to be written. Sets the stable numbers
 * if so. */
bool gpuhal_database_has(const gpuhal_database *database, const gpuhal_changes *changes);

/* Finds the stable numbers of the sightings, or gives new ones, and records them as seen (stable_ids.c). */
bool gpuhal_database_number(gpuhal_database *database, const gpuhal_changes *changes);
/* Returns whether every sighting has its number and was recorded lately with the same values. */
bool gpuhal_database_has_noted(const gpuhal_database *database, const gpuhal_changes *changes);

#endif
