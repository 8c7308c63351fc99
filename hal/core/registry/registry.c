/* registry/registry.c: see registry.h. `updating` is locked during file access. `mutex` is locked only while the
 * pointer to the newest snapshot is read or replaced, so that readers never wait for a disk. */
#include "registry/registry.h"

#include "base/error.h"
#include "os/os.h"
#include "registry/outdated.h"
#include "registry/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_registry {
    char *directory; /* may be NULL */
    uint64_t lock_timeout_ns;
    gpuhal_log *log;
    gpuhal_mutex updating; /* protects the next five members; locked before `mutex` */
    bool memory_only;             /* changes cannot be saved, so they stay in this object */
    bool reported_memory_only;    /* `memory_only` was logged */
    bool reported_damage;
    char why_memory_only[160];
    gpuhal_file_state seen; /* state of the snapshot's file; zero if none */
    gpuhal_mutex mutex;     /* protects `newest` */
    gpuhal_snapshot *newest;
};

/* ---- snapshots */

/* Takes ownership of the database. If out of memory, returns NULL, and the caller keeps the ownership. */
static gpuhal_snapshot *snapshot_of(const gpuhal_database *database)
{
    gpuhal_snapshot *snapshot = malloc(sizeof *snapshot);
    if (snapshot) {
        atomic_init(&snapshot->references, 1);
        snapshot->database = *database;
    }
    return snapshot;
}

void gpuhal_snapshot_release(gpuhal_snapshot *snapshot)
{
    if (snapshot && atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) == 1) {
        gpuhal_database_finish(&snapshot->database);
        free(snapshot);
    }
}

/* The reference must be added under the mutex, because before that only the registry's own reference prevents the
 * snapshot from being freed. */
gpuhal_snapshot *gpuhal_registry_snapshot(gpuhal_registry *registry)
{
    gpuhal_mutex_lock(&registry->mutex);
    gpuhal_snapshot *snapshot = registry->newest;
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    gpuhal_mutex_unlock(&registry->mutex);
    return snapshot;
}

/* Makes the database the newest snapshot. Returns false if out of memory. The reference to the older snapshot
 * is released outside the mutex, since freeing takes time. */
static bool publish(gpuhal_registry *registry, const gpuhal_database *database)
{
    gpuhal_snapshot *snapshot = snapshot_of(database);
    if (!snapshot) {
        return false;
    }
    gpuhal_mutex_lock(&registry->mutex);
    gpuhal_snapshot *older = registry->newest;
    registry->newest = snapshot;
    gpuhal_mutex_unlock(&registry->mutex);
    gpuhal_snapshot_release(older);
    return true;
}

/* ---- log */

/* Messages that are logged after `updating` is unlocked, because a log listener may call the library. */
typedef struct log_lines {
    const char *memory_only; /* reason why changes cannot be saved; may be NULL */
    const char *damaged;     /* how the damage was handled; may be NULL */
} log_lines;

static void keep_in_memory(gpuhal_registry *registry, const char *why, log_lines *lines)
{
    lines->memory_only = registry->reported_memory_only ? lines->memory_only : why;
    registry->memory_only = registry->reported_memory_only = true;
    snprintf(registry->why_memory_only, sizeof registry->why_memory_only, "%s", why);
}

static void note_damage(gpuhal_registry *registry, const gpuhal_store_reading *reading, log_lines *lines)
{
    if (reading->damaged && !registry->reported_damage) {
        registry->reported_damage = true;
        lines->damaged = reading->report.headless ? "it is ignored, and will be replaced"
                                                    : "the undamaged records are used, the others are dropped";
    }
}

static void write_log(const gpuhal_registry *registry, const log_lines *lines)
{
    if (lines->damaged) {
        gpuhal_log_line(registry->log, GPUHAL_LEVEL_WARNING, "the registry in %s is damaged: %s", registry->directory,
                        lines->damaged);
    }
    if (lines->memory_only) {
        gpuhal_log_line(registry->log, GPUHAL_LEVEL_WARNING, "results are not cached in the registry in %s: %s",
                        registry->directory, lines->memory_only);
    }
}

static const char *words_of(int error)
{
    return error == ETIMEDOUT ? "another process has locked it" : strerror(error);
}

/* Returns the reason why the file must not be replaced, or NULL. */
static const char *stands_in_the_way(const gpuhal_store_reading *reading)
{
    if (reading->error) {
        return strerror(reading->error);
    }
    return reading->report.newer ? "a newer version of the library wrote it" : NULL;
}

/* ---- reading */

/* Called with `updating` locked, or before the object is published. */
static bool load(gpuhal_registry *registry, uint64_t generation_least, log_lines *lines)
{
    gpuhal_database database;
    gpuhal_store_reading reading;
    gpuhal_store_read_database(registry->directory, &database, &reading);
    if (reading.error == ENOMEM) {
        gpuhal_database_finish(&database);
        return false;
    }
    note_damage(registry, &reading, lines);
    const char *why = stands_in_the_way(&reading);
    if (why) {
        keep_in_memory(registry, why, lines);
    }
    /* An object's generations never decrease, even if the file was deleted or restored from an older export, because
     * readers compare generations. */
    if (database.generation < generation_least) {
        database.generation = generation_least;
    }
    if (!publish(registry, &database)) {
        gpuhal_database_finish(&database);
        return false;
    }
    registry->seen = reading.state;
    return true;
}

gpuhal_registry *gpuhal_registry_create(const char *directory, uint64_t lock_timeout_ns, gpuhal_log *log)
{
    gpuhal_registry *registry = calloc(1, sizeof *registry);
    if (!registry) {
        return NULL;
    }
    gpuhal_mutex_init(&registry->mutex);
    gpuhal_mutex_init(&registry->updating);
    registry->lock_timeout_ns = lock_timeout_ns;
    registry->log = log;
    bool good = true;
    log_lines lines = {0};
    if (directory && !gpuhal_os_privileged()) {
        registry->directory = gpuhal_text_copy(directory);
        good = registry->directory && load(registry, 0, &lines);
    } else {
        /* Running without a directory needs no message. */
        registry->memory_only = registry->reported_memory_only = true;
        snprintf(registry->why_memory_only, sizeof registry->why_memory_only, "%s", "no registry is kept");
        good = publish(registry, &GPUHAL_DATABASE_EMPTY);
    }
    if (!good) {
        gpuhal_registry_destroy(registry);
        return NULL;
    }
    write_log(registry, &lines);
    return registry;
}

void gpuhal_registry_destroy(gpuhal_registry *registry)
{
    if (!registry) {
        return;
    }
    gpuhal_snapshot_release(registry->newest);
    gpuhal_mutex_finish(&registry->mutex);
    gpuhal_mutex_finish(&registry->updating);
    free(registry->directory);
    free(registry);
}

const char *gpuhal_registry_directory(const gpuhal_registry *registry)
{
    return registry->directory;
}

static uint64_t newest_generation(gpuhal_registry *registry)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    uint64_t generation = snapshot->database.generation;
    gpuhal_snapshot_release(snapshot);
    return generation;
}

static bool same_state(const gpuhal_file_state *one, const gpuhal_file_state *other)
{
    return one->device == other->device && one->inode == other->inode && one->bytes == other->bytes &&
           one->modified_ns == other->modified_ns && one->changed_ns == other->changed_ns;
}

bool gpuhal_registry_refresh(gpuhal_registry *registry)
{
    bool changed = false;
    log_lines lines = {0};
    if (!registry->directory) {
        return false;
    }
    char *path = gpuhal_text_format("%s/registry", registry->directory);
    gpuhal_file_state state;
    gpuhal_mutex_lock(&registry->updating);
    int error = path ? gpuhal_os_file_state(path, &state) : ENOMEM;
    bool same = (!error || error == ENOENT) && same_state(&state, &registry->seen);
    if (error != ENOMEM && (!same || registry->memory_only)) {
        /* The obstacle may no longer exist (for example, the disk was full), so the next update tries to write
         * again. */
        registry->memory_only = false;
        changed = load(registry, newest_generation(registry) + 1, &lines);
    }
    gpuhal_mutex_unlock(&registry->updating);
    write_log(registry, &lines);
    free(path);
    return changed;
}

/* ---- writing */

/* While the text is too long, drops the oldest records. Trims after each drop, so that records that refer to a dropped
 * object are dropped as well. Returns false if out of memory. */
static bool merge_and_write(gpuhal_database *database, gpuhal_changes *changes, gpuhal_text *out_text)
{
    if (!gpuhal_database_merge(database, changes)) {
        return false;
    }
    gpuhal_serial_write(database, out_text);
    /* The loop terminates, because each iteration drops a record, and the text of an empty database is not too long. */
    while (!out_text->failed && out_text->length > GPUHAL_REGISTRY_BYTES_MAX && gpuhal_database_drop_oldest(database)) {
        gpuhal_database_trim(database);
        gpuhal_text_finish(out_text);
        gpuhal_serial_write(database, out_text);
    }
    return !out_text->failed;
}

static bool publish_text(gpuhal_registry *registry, const gpuhal_text *text)
{
    gpuhal_database database;
    gpuhal_serial_report report;
    bool good = gpuhal_serial_read(text->data, text->length, &database, &report) == GPUHAL_READ_OK &&
                publish(registry, &database);
    if (!good) {
        gpuhal_database_finish(&database);
    }
    return good;
}

/* Returns false if out of memory. */
static bool copy_newest(gpuhal_registry *registry, gpuhal_database *out_content)
{
    gpuhal_text text = {0};
    gpuhal_serial_report report;
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    gpuhal_serial_write(&snapshot->database, &text);
    gpuhal_snapshot_release(snapshot);
    bool good = !text.failed && gpuhal_serial_read(text.data, text.length, out_content, &report) == GPUHAL_READ_OK;
    gpuhal_text_finish(&text);
    return good;
}

static gpuhal_status update_here(gpuhal_registry *registry, gpuhal_changes *changes)
{
    gpuhal_database database = GPUHAL_DATABASE_EMPTY;
    gpuhal_text text = {0};
    bool good =
        copy_newest(registry, &database) && merge_and_write(&database, changes, &text) && publish_text(registry, &text);
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&database);
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* Called with the lock between processes. If the file cannot be written, sets *out_why and publishes nothing. Returns
 * an error only if out of memory. */
static gpuhal_status update_file(gpuhal_registry *registry, gpuhal_changes *changes, const char **out_why,
                                 log_lines *lines)
{
    gpuhal_database database;
    gpuhal_store_reading reading;
    gpuhal_text text = {0};
    gpuhal_status status = GPUHAL_OK;
    gpuhal_store_read_database(registry->directory, &database, &reading);
    *out_why = reading.error == ENOMEM ? NULL : stands_in_the_way(&reading);
    if (reading.error == ENOMEM) {
        status = gpuhal_error_host_memory();
    }
    if (status || *out_why) {
        goto end;
    }
    note_damage(registry, &reading, lines);
    uint64_t generation = newest_generation(registry);
    database.generation = generation > database.generation ? generation : database.generation;
    gpuhal_outdated_drop(&database, changes);
    if (!merge_and_write(&database, changes, &text)) {
        status = gpuhal_error_host_memory();
        goto end;
    }
    int error = gpuhal_store_replace(registry->directory, text.data, text.length, reading.damaged);
    *out_why = error ? strerror(error) : NULL;
    /* The new file's state is unknown here. This value matches no file, so the next refresh reads the file again. */
    registry->seen = (gpuhal_file_state){.bytes = UINT64_MAX};
    if (!error && !publish_text(registry, &text)) {
        status = gpuhal_error_host_memory();
    }
end:
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&database);
    return status;
}

/* Because of this check, opening the library on an unchanged machine writes at most once a day (FRESH_SECONDS), and
 * otherwise does not wait for other processes. */
static bool has_already(gpuhal_registry *registry, const gpuhal_changes *changes)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    bool has = gpuhal_database_has(&snapshot->database, changes);
    gpuhal_snapshot_release(snapshot);
    return has;
}

/* `updating` excludes other threads that use this object. The file lock excludes all other objects and processes. It is
 * acquired after `updating`, with a timeout, since its owner may be stopped. If the file cannot be written, the
 * changes are kept in this object, and FILE is returned. */
static gpuhal_status update(gpuhal_registry *registry, gpuhal_changes *changes)
{
    gpuhal_status status = GPUHAL_OK;
    const char *why = NULL;
    log_lines lines = {0};
    intptr_t lock = -1;
    gpuhal_mutex_lock(&registry->updating);
    if (!registry->memory_only && has_already(registry, changes)) {
        gpuhal_mutex_unlock(&registry->updating);
        return GPUHAL_OK;
    }
    if (!registry->memory_only && gpuhal_store_is_foreign(registry->directory)) {
        why = "its directory belongs to another user";
    } else if (!registry->memory_only) {
        int error = gpuhal_store_lock(registry->directory, registry->lock_timeout_ns, &lock);
        why = error ? words_of(error) : NULL;
    }
    if (lock >= 0) {
        status = update_file(registry, changes, &why, &lines);
        gpuhal_os_lock_give(lock);
    }
    if (why) {
        keep_in_memory(registry, why, &lines);
    }
    if (!status && registry->memory_only) {
        status = update_here(registry, changes);
        status = status ? status
                        : gpuhal_error_set(GPUHAL_ERROR_FILE, "the registry%s%s cannot be written: %s",
                                           registry->directory ? " in " : "",
                                           registry->directory ? registry->directory : "", registry->why_memory_only);
    }
    gpuhal_mutex_unlock(&registry->updating);
    write_log(registry, &lines);
    return status;
}

gpuhal_status gpuhal_registry_update(gpuhal_registry *registry, gpuhal_changes *changes)
{
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = update(registry, changes);
    gpuhal_os_cancel_restore(cancel);
    return status;
}
