/* registry/merge.h: changes, and how they come into what is known already. Pure: nothing here touches a file or a clock. */
#ifndef GPUHAL_REGISTRY_MERGE_H
#define GPUHAL_REGISTRY_MERGE_H

#include "registry/database.h"

/* A device that a backend lists now. Texts may be NULL. What several devices state alike, and so tells nothing, is left out. */
typedef struct gpuhal_sighting {
    uint32_t group; /* faces of one piece of hardware have one number, below the number of sightings */
    uint32_t host;  /* 1: the host's processor, or a program on it */
    uint32_t vendor_id;
    const char *pci, *uuid, *backend, *partition, *name, *driver_version;
    /* Found. */
    uint32_t physical, iface; /* their stable numbers; 0 for those beyond the 256th */
} gpuhal_sighting;

/* What is new. Zero-initialised is nothing; `now` in seconds since 1970. All that is given stays the caller's. */
typedef struct gpuhal_changes {
    uint64_t now;
    /* First: all else goes and this comes instead, empty content to forget everything. Numbers given before are not given again. */
    const gpuhal_database *replace;
    const char *forget_plugin; /* then verdicts and faults of the plugins of this name go */
    const char *proven; /* identity of a plugin whose device was opened: that it hung or crashed before does not count any more */
    const gpuhal_database_plugin *plugins; /* generation is filled in, likewise below */
    size_t plugin_count;
    gpuhal_sighting *sightings;
    size_t sighting_count;
    const char *const *listed; /* NULL-ended names of backends whose devices are all among the sightings: others are gone; or NULL */
    const gpuhal_database_link *links;
    size_t link_count;
    const gpuhal_database_write *writes;
    size_t write_count;
    const gpuhal_database_fault *faults; /* `count` more of each, at `now` */
    size_t fault_count;
    size_t left_out; /* found: records that are too long to be kept */
} gpuhal_changes;

/* Brings the changes in and raises the generation. Without memory false, and the content is good for nothing but to be finished. */
bool gpuhal_database_merge(gpuhal_database *database, gpuhal_changes *changes);

/* Whether the record keeps the plugin of this identity from being run. */
bool gpuhal_database_is_quarantine(const gpuhal_database_plugin *plugin, const char *identity);

/* Whether there is nothing in the changes that a reader would miss: then nothing need be written. Finds the numbers if so. */
bool gpuhal_database_has(const gpuhal_database *database, const gpuhal_changes *changes);

/* numbers.c: finds the numbers of what is seen, or gives new ones, and notes that it was seen. */
bool gpuhal_database_number(gpuhal_database *database, const gpuhal_changes *changes);
/* Whether all that is seen has its number and was noted lately, just as it is. */
bool gpuhal_database_has_noted(const gpuhal_database *database, const gpuhal_changes *changes);

#endif
