/* registry/merge.c: see merge.h. Records are copied by writing and reading them as text, so that records in memory
 * never contain more than the file can store. */
#include "registry/merge.h"

#include "registry/serial.h"

#include <stdlib.h>
#include <string.h>

/* Size limit of every kind of record except plugins, whose records contain the plugin's devices. */
#define SMALL_RECORD_BYTES_MAX 8192u

static size_t most_bytes(gpuhal_database_kind kind)
{
    return kind == GPUHAL_DATABASE_PLUGIN ? GPUHAL_RECORD_BYTES_MAX : SMALL_RECORD_BYTES_MAX;
}

/* Adds a copy; *out_copy is NULL if the record is too long or invalid. Returns false if out of memory. */
static bool add_copy(gpuhal_database *database, gpuhal_database_kind kind, const void *record, void **out_copy)
{
    gpuhal_text text = {0};
    gpuhal_read_result result = GPUHAL_READ_NO_MEMORY;
    *out_copy = NULL;
    gpuhal_record_write(kind, record, &text);
    /* The record is added first, since the text is read into it, and removed if reading fails. */
    void *copy = text.failed ? NULL : gpuhal_database_add(database, kind);
    if (copy) {
        result = text.length > most_bytes(kind) ? GPUHAL_READ_DAMAGED
                                                : gpuhal_record_read(kind, text.data, text.length, copy);
        if (result != GPUHAL_READ_OK) {
            gpuhal_database_remove(database, kind, database->records[kind].count - 1);
        }
    }
    gpuhal_text_finish(&text);
    *out_copy = result == GPUHAL_READ_OK ? copy : NULL;
    return result != GPUHAL_READ_NO_MEMORY;
}

static size_t index_of(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    return (size_t)((const char *)record - (const char *)database->records[kind].list) / gpuhal_record_size(kind);
}

static void remove_older(gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    const void *older = gpuhal_database_same(database, kind, record);
    if (older) {
        gpuhal_database_remove(database, kind, index_of(database, kind, older));
    }
}

/* *iface is 1 + an index in changes->about. Sets it to the number that the device has in the database. Returns false if
 * the device has no number. Without `about`, or if *iface is 0, *iface stays the same. */
static bool find_number(const gpuhal_database *database, const gpuhal_changes *changes, uint32_t *iface)
{
    if (changes->about && *iface) {
        *iface = gpuhal_database_find(database, &changes->about[*iface - 1]);
        return *iface != 0;
    }
    return true;
}

static bool put_newest(gpuhal_database *database, gpuhal_database_kind kind, const void *records, size_t count,
                       gpuhal_changes *changes)
{
    for (size_t i = 0; i < count; i++) {
        const void *record = (const char *)records + i * gpuhal_record_size(kind);
        gpuhal_database_link link;
        void *copy = NULL;
        bool known = true;
        if (kind == GPUHAL_DATABASE_LINK) {
            link = *(const gpuhal_database_link *)record;
            record = &link;
            known = find_number(database, changes, &link.from) && find_number(database, changes, &link.to);
        }
        if (known && !add_copy(database, kind, record, &copy)) {
            return false;
        }
        changes->left_out += !copy;
        if (copy) {
            memcpy(copy, &database->generation, sizeof database->generation); /* `generation`, the first member */
            remove_older(database, kind, copy);
        }
    }
    return true;
}

/* Counts are added up, because each process reports the faults that it observed. */
static bool put_faults(gpuhal_database *database, gpuhal_changes *changes)
{
    for (size_t i = 0; i < changes->fault_count; i++) {
        gpuhal_database_fault named = changes->faults[i];
        void *copy = NULL;
        if (find_number(database, changes, &named.iface) && !add_copy(database, GPUHAL_DATABASE_FAULT, &named, &copy)) {
            return false;
        }
        changes->left_out += !copy;
        if (!copy) {
            continue;
        }
        gpuhal_database_fault *fault = copy;
        const gpuhal_database_fault *older = gpuhal_database_same(database, GPUHAL_DATABASE_FAULT, fault);
        fault->generation = database->generation;
        fault->first = older ? older->first : changes->now;
        fault->last = changes->now;
        if (older && __builtin_add_overflow(fault->count, older->count, &fault->count)) {
            fault->count = UINT64_MAX;
        }
        remove_older(database, GPUHAL_DATABASE_FAULT, fault);
    }
    return true;
}

static void forget_faults_of(gpuhal_database *database, const char *identity)
{
    size_t count;
    const gpuhal_database_fault *faults = gpuhal_database_faults(database, &count);
    for (size_t i = count; i > 0; i--) {
        if (faults[i - 1].plugin && strcmp(faults[i - 1].plugin, identity) == 0) {
            gpuhal_database_remove(database, GPUHAL_DATABASE_FAULT, i - 1);
        }
    }
}

static void forget_plugin(gpuhal_database *database, const char *name)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    for (size_t i = count; i > 0; i--) {
        if (strcmp(plugins[i - 1].name, name) == 0) {
            forget_faults_of(database, plugins[i - 1].identity);
            gpuhal_database_remove(database, GPUHAL_DATABASE_PLUGIN, i - 1);
        }
    }
}

/* The device's interfaces, and the records about them, are removed later by trimming. */
static void forget_physical(gpuhal_database *database, uint32_t number)
{
    const gpuhal_database_physical wanted = {.number = number};
    const void *found = gpuhal_database_same(database, GPUHAL_DATABASE_PHYSICAL, &wanted);
    if (found) {
        gpuhal_database_remove(database, GPUHAL_DATABASE_PHYSICAL, index_of(database, GPUHAL_DATABASE_PHYSICAL, found));
    }
}

bool gpuhal_database_is_quarantine(const gpuhal_database_plugin *plugin, const char *identity)
{
    return (plugin->state == GPUHAL_PLUGIN_TIMED_OUT || plugin->state == GPUHAL_PLUGIN_QUARANTINED) &&
           strcmp(plugin->identity, identity) == 0;
}

static void end_quarantine(gpuhal_database *database, const char *identity)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    for (size_t i = count; i > 0; i--) {
        if (gpuhal_database_is_quarantine(&plugins[i - 1], identity)) {
            gpuhal_database_remove(database, GPUHAL_DATABASE_PLUGIN, i - 1);
        }
    }
}

static bool replace(gpuhal_database *database, const gpuhal_database *with)
{
    gpuhal_database old = *database;
    gpuhal_text text = {0};
    gpuhal_serial_report report;
    gpuhal_serial_write(with, &text);
    bool good = !text.failed && gpuhal_serial_read(text.data, text.length, database, &report) == GPUHAL_READ_OK;
    gpuhal_text_finish(&text);
    if (!good) {
        *database = old;
        return false;
    }
    database->generation = old.generation > database->generation ? old.generation : database->generation;
    database->next_physical = old.next_physical > database->next_physical ? old.next_physical : database->next_physical;
    database->next_interface =
        old.next_interface > database->next_interface ? old.next_interface : database->next_interface;
    gpuhal_database_finish(&old);
    return true;
}

/* Replacing and forgetting come first, so that they do not affect new records. Numbers are assigned before links and
 * faults are added, because these refer to numbers. Trimming comes last, when all references exist. */
bool gpuhal_database_merge(gpuhal_database *database, gpuhal_changes *changes)
{
    changes->left_out = 0;
    if (changes->replace && !replace(database, changes->replace)) {
        return false;
    }
    database->generation++;
    if (changes->forget_plugin) {
        forget_plugin(database, changes->forget_plugin);
    }
    if (changes->forget_physical) {
        forget_physical(database, changes->forget_physical);
    }
    if (changes->proven) {
        end_quarantine(database, changes->proven);
    }
    bool good = put_newest(database, GPUHAL_DATABASE_PLUGIN, changes->plugins, changes->plugin_count, changes) &&
                gpuhal_database_number(database, changes) &&
                put_newest(database, GPUHAL_DATABASE_LINK, changes->links, changes->link_count, changes) &&
                put_faults(database, changes);
    gpuhal_database_trim(database);
    return good;
}

bool gpuhal_database_has(const gpuhal_database *database, const gpuhal_changes *changes)
{
    bool more = changes->replace || changes->forget_plugin || changes->forget_physical || changes->proven ||
                changes->plugin_count || changes->link_count || changes->fault_count;
    return !more && gpuhal_database_has_noted(database, changes);
}
