/* listing.h: devices and facts as a plugin reports them, in the same order and with all duplicates. */
#ifndef GPUHAL_CHECK_LISTING_H
#define GPUHAL_CHECK_LISTING_H

#include <gpuhal/plugin.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum gpuhal_listed_kind { LISTED_NUMBER, LISTED_TEXT, LISTED_MISSING } gpuhal_listed_kind;

typedef struct gpuhal_listed_fact {
    gpuhal_key key;
    gpuhal_listed_kind kind;
    uint64_t number;       /* LISTED_NUMBER */
    gpuhal_missing reason; /* LISTED_MISSING */
    char *text;            /* the string, or the reason why it is missing; NULL if the plugin passed NULL */
} gpuhal_listed_fact;

typedef struct gpuhal_listed {
    uint32_t index;
    gpuhal_listed_fact *facts;
    size_t count;
} gpuhal_listed;

typedef struct gpuhal_device_snapshot {
    gpuhal_listed *devices;
    size_t count;
    bool stray; /* a fact was reported before any device */
} gpuhal_device_snapshot;

/* Calls enumerate(). @p out_listing must be empty. Devices with the fact UNLISTED are left out. */
gpuhal_status gpuhal_device_snapshot_enumerate(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                               gpuhal_device_snapshot *out_listing);
/* Calls sample(). The result is one device that contains only the values. */
gpuhal_status gpuhal_device_snapshot_sample(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                            uint32_t index, const gpuhal_key *keys, uint32_t count,
                                            gpuhal_device_snapshot *out_listing);
/* Calls link(). The result is one device that contains only the link's facts. */
gpuhal_status gpuhal_device_snapshot_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                          uint32_t to, gpuhal_device_snapshot *out_listing);
void gpuhal_device_snapshot_finish(gpuhal_device_snapshot *listing);

const gpuhal_listed *gpuhal_device_snapshot_find(const gpuhal_device_snapshot *listing, uint32_t index);
/* Returns the last fact with this key, or NULL if the plugin never reported it. */
const gpuhal_listed_fact *gpuhal_listed_find(const gpuhal_listed *listed, gpuhal_key key);
/* Returns a fact as a number, or `otherwise` if it is missing or a string. */
uint64_t gpuhal_listed_number(const gpuhal_listed *listed, gpuhal_key key, uint64_t otherwise);
/* Formats the value for a message: 12, 'PoCL', missing (not supported). */
void gpuhal_listed_format(const gpuhal_listed_fact *fact, char *out_text, size_t size);
/* Returns a key's name, even for an unknown key, in a buffer of the calling thread. */
const char *gpuhal_listed_key(gpuhal_key key);

#endif
