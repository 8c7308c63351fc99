/* registry/database.h: the registry's records in memory.
 *
 * There is one list for each kind of record. Strings are malloc'ed; NULL means unknown. Every record begins with the
 * generation of its last write. Records are ordered by generation, never by time, since clocks may be set back. Times
 * are for display; only is_fresh() in stable_ids.c compares them. Stable numbers of physical devices and interfaces
 * begin with 1 and are never reused.
 */
#ifndef GPUHAL_REGISTRY_DATABASE_H
#define GPUHAL_REGISTRY_DATABASE_H

#include "base/listed.h"
#include "registry/texts.h"

#include <gpuhal/report.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The result of probing a plugin. Probing the same file under another cache key makes another record. */
typedef struct gpuhal_database_plugin {
    uint64_t generation;
    char *identity;   /* the file's gpuhal_key_identity() */
    gpuhal_texts key; /* cache key (key.h) */
    char *name, *file, *version, *driver;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    int32_t status;
    uint32_t signal; /* signal that killed the helper; 0 if none */
    char *reason;
    gpuhal_texts output; /* last lines of the helper's output */
    uint64_t probed_at;        /* seconds since 1970, like all times here */
    uint64_t deadline_ns; /* deadline that the helper exceeded; 0 if none */
    gpuhal_listed_devices devices;
} gpuhal_database_plugin;

/* A physical device is present while at least one of its interfaces is present. */
typedef struct gpuhal_database_physical {
    uint64_t generation;
    uint32_t number;
    uint32_t host;      /* 1 for the host's processor */
    uint32_t vendor_id; /* 0 if unknown */
    char *pci, *name;
    uint64_t first_seen, last_seen;
} gpuhal_database_physical;

typedef struct gpuhal_database_version {
    uint64_t since;
    char *version;
} gpuhal_database_version;

typedef struct gpuhal_database_versions {
    gpuhal_database_version *list;
    size_t count, capacity;
} gpuhal_database_versions;

typedef struct gpuhal_database_interface {
    uint64_t generation;
    uint32_t number, physical;
    uint32_t present; /* 1 if the backend's last list contained the interface */
    char *backend, *partition, *name, *uuid;
    uint64_t first_seen, last_seen;
    gpuhal_database_versions drivers; /* newest last */
} gpuhal_database_interface;

/* The known state of the path from one interface to another with the given driver versions. */
typedef struct gpuhal_database_link {
    uint64_t generation;
    uint32_t from, to; /* stable numbers of interfaces */
    char *from_driver, *to_driver;
    uint32_t verified; /* 1 if the bytes arrived unchanged, else 0 */
    uint64_t path, bytes_per_second, latency_ns; /* 0 if not measured */
    char *reason;
    uint64_t tried;
} gpuhal_database_link;

typedef enum {
    GPUHAL_FAULT_CRASH = 1,
    GPUHAL_FAULT_HANG = 2,
    GPUHAL_FAULT_LOST = 3,
    GPUHAL_FAULT_OUT_OF_MEMORY = 4
} gpuhal_fault_kind;

/* The count of one kind of fault of an interface, or of a plugin if the interface is unknown. */
typedef struct gpuhal_database_fault {
    uint64_t generation;
    uint32_t kind; /* gpuhal_fault_kind */
    uint32_t iface; /* 0 if unknown */
    char *plugin;  /* identity; may be NULL */
    char *driver_version, *detail; /* of the last fault */
    uint64_t count, first, last;
} gpuhal_database_fault;

typedef enum {
    GPUHAL_DATABASE_PLUGIN,
    GPUHAL_DATABASE_PHYSICAL,
    GPUHAL_DATABASE_INTERFACE,
    GPUHAL_DATABASE_LINK,
    GPUHAL_DATABASE_FAULT,
    GPUHAL_DATABASE_KINDS
} gpuhal_database_kind;

typedef struct gpuhal_record_list {
    void *list;
    size_t count, capacity;
} gpuhal_record_list;

typedef struct gpuhal_database {
    uint64_t generation; /* incremented by every change */
    uint32_t next_physical, next_interface;
    gpuhal_record_list records[GPUHAL_DATABASE_KINDS];
} gpuhal_database;

#define GPUHAL_DATABASE_EMPTY ((gpuhal_database){.next_physical = 1, .next_interface = 1})

static inline gpuhal_database_plugin *gpuhal_database_plugins(const gpuhal_database *database, size_t *out_count)
{
    *out_count = database->records[GPUHAL_DATABASE_PLUGIN].count;
    return database->records[GPUHAL_DATABASE_PLUGIN].list;
}
static inline gpuhal_database_physical *gpuhal_database_physicals(const gpuhal_database *database, size_t *out_count)
{
    *out_count = database->records[GPUHAL_DATABASE_PHYSICAL].count;
    return database->records[GPUHAL_DATABASE_PHYSICAL].list;
}
static inline gpuhal_database_interface *gpuhal_database_interfaces(const gpuhal_database *database, size_t *out_count)
{
    *out_count = database->records[GPUHAL_DATABASE_INTERFACE].count;
    return database->records[GPUHAL_DATABASE_INTERFACE].list;
}
static inline gpuhal_database_link *gpuhal_database_links(const gpuhal_database *database, size_t *out_count)
{
    *out_count = database->records[GPUHAL_DATABASE_LINK].count;
    return database->records[GPUHAL_DATABASE_LINK].list;
}
static inline gpuhal_database_fault *gpuhal_database_faults(const gpuhal_database *database, size_t *out_count)
{
    *out_count = database->records[GPUHAL_DATABASE_FAULT].count;
    return database->records[GPUHAL_DATABASE_FAULT].list;
}

/* Appends a zeroed record to its list. Returns NULL if out of memory. */
void *gpuhal_database_add(gpuhal_database *database, gpuhal_database_kind kind);
void *gpuhal_database_at(const gpuhal_database *database, gpuhal_database_kind kind, size_t index);
void gpuhal_database_remove(gpuhal_database *database, gpuhal_database_kind kind, size_t index);
/* Returns another record of the object that `record` describes; NULL if there is none. */
void *gpuhal_database_same(const gpuhal_database *database, gpuhal_database_kind kind, const void *record);
bool gpuhal_database_lists(const gpuhal_database *database, uint32_t physical);
/* Drops records above the limits, and the records that refer to them. Interfaces and links of the backend with the most
 * records go first. Of these, and of the other kinds, the oldest record goes first. Of physical devices and interfaces,
 * the oldest absent record goes first, and if all are present, the record that was added last. */
void gpuhal_database_trim(gpuhal_database *database);
/* Returns whether a new physical device can be recorded: fewer devices than the limit are present. Trimming drops
 * absent devices to make room. */
bool gpuhal_database_has_room(const gpuhal_database *database);
/* Drops one record, chosen as for trimming, of the kind that is easiest to recreate. Returns false if no records are
 * left. */
bool gpuhal_database_drop_oldest(gpuhal_database *database);
void gpuhal_database_finish(gpuhal_database *database);

size_t gpuhal_database_limit(gpuhal_database_kind kind);

#endif
