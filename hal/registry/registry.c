/* registry/registry.c: see registry.h. `updating` is held while files are read and written, `mutex` only while the pointer to the newest
 * snapshot is read or replaced, so that readers never wait for a disk. */
#include "registry/registry.h"

#include "core/error.h"
#include "os/os.h"
#include "registry/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_registry {
    char *directory; /* NULL: none */
    uint64_t lock_timeout_ns;
    gpuhal_log *log;
    gpuhal_mutex updating; /* protects `apart`, `told` and `seen`, and is held before `mutex` */
    bool apart;            /* something could not be kept: from then on everything is, here alone */
    bool told;             /* that it is so */
    bool reported_damage;
    char why_apart[160];
    gpuhal_file_state seen; /* the file that the snapshot was read from; all zero for none */
    gpuhal_mutex mutex;     /* protects `newest` */
    gpuhal_snapshot *newest;
};

/* ---- snapshots */

/* Takes the content over. NULL without memory, then the content stays the caller's. */
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

gpuhal_snapshot *gpuhal_registry_snapshot(gpuhal_registry *registry)
{
    gpuhal_mutex_lock(&registry->mutex);
    gpuhal_snapshot *snapshot = registry->newest;
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    gpuhal_mutex_unlock(&registry->mutex);
    return snapshot;
}

/* Makes the content the newest snapshot; false without memory. */
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

/* ---- what is said */

/* Sentences for the log, which are told once `updating` is free: a listener may call the library. */
typedef struct news {
    const char *apart;   /* why; NULL: nothing to say */
    const char *damaged; /* what is done about it */
} news;

static void go_apart(gpuhal_registry *registry, const char *why, news *to_tell)
{
    to_tell->apart = registry->told ? to_tell->apart : why;
    registry->apart = registry->told = true;
    snprintf(registry->why_apart, sizeof registry->why_apart, "%s", why);
}

static void note_damage(gpuhal_registry *registry, const gpuhal_store_reading *reading, news *to_tell)
{
    if (reading->damaged && !registry->reported_damage) {
        registry->reported_damage = true;
        to_tell->damaged = reading->report.headless ? "it is not used, and will be made anew"
                                                    : "the records that are whole are used, the others are left out";
    }
}

static void tell(const gpuhal_registry *registry, const news *to_tell)
{
    if (to_tell->damaged) {
        gpuhal_log_line(registry->log, GPUHAL_LEVEL_WARNING, "the registry in %s is damaged: %s", registry->directory, to_tell->damaged);
    }
    if (to_tell->apart) {
        gpuhal_log_line(registry->log, GPUHAL_LEVEL_WARNING, "nothing new is remembered in the registry in %s: %s",
                        registry->directory, to_tell->apart);
    }
}

static const char *words_of(int error)
{
    return error == ETIMEDOUT ? "another process keeps it locked" : strerror(error);
}

/* Why what was read may not be replaced; NULL when it may. */
static const char *stands_in_the_way(const gpuhal_store_reading *reading)
{
    if (reading->error) {
        return strerror(reading->error);
    }
    return reading->report.newer ? "a newer version of the library wrote it" : NULL;
}

/* ---- reading */

/* Called with `updating` held, or before anybody knows the object. */
static bool load(gpuhal_registry *registry, uint64_t generation_least, news *to_tell)
{
    gpuhal_database database;
    gpuhal_store_reading reading;
    gpuhal_store_read(registry->directory, &database, &reading);
    if (reading.error == ENOMEM) {
        gpuhal_database_finish(&database);
        return false;
    }
    note_damage(registry, &reading, to_tell);
    const char *why = stands_in_the_way(&reading);
    if (why) {
        go_apart(registry, why, to_tell);
    }
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
    news to_tell = {0};
    if (directory && !gpuhal_os_privileged()) {
        registry->directory = gpuhal_text_copy(directory);
        good = registry->directory && load(registry, 0, &to_tell);
    } else {
        /* Nobody expects to be remembered. */
        registry->apart = registry->told = true;
        snprintf(registry->why_apart, sizeof registry->why_apart, "%s", "none is kept");
        good = publish(registry, &GPUHAL_DATABASE_EMPTY);
    }
    if (!good) {
        gpuhal_registry_destroy(registry);
        return NULL;
    }
    tell(registry, &to_tell);
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
    news to_tell = {0};
    if (!registry->directory) {
        return false;
    }
    char *path = gpuhal_text_format("%s/registry", registry->directory);
    gpuhal_file_state state;
    gpuhal_mutex_lock(&registry->updating);
    int error = path ? gpuhal_os_file_state(path, &state) : ENOMEM;
    bool same = !error && same_state(&state, &registry->seen);
    if (error != ENOMEM && (!same || registry->apart)) {
        registry->apart = false;
        changed = load(registry, newest_generation(registry) + 1, &to_tell);
    }
    gpuhal_mutex_unlock(&registry->updating);
    tell(registry, &to_tell);
    free(path);
    return changed;
}

/* ---- writing */

/* The changes merged into `content`, and the text of that; the oldest goes where it is too long. false without memory. */
static bool merge_and_write(gpuhal_database *database, gpuhal_changes *changes, gpuhal_text *out_text)
{
    if (!gpuhal_database_merge(database, changes)) {
        return false;
    }
    gpuhal_serial_write(database, out_text);
    while (!out_text->failed && out_text->length > GPUHAL_REGISTRY_BYTES_MAX && gpuhal_database_drop_oldest(database)) {
        gpuhal_database_trim(database);
        gpuhal_text_finish(out_text);
        gpuhal_serial_write(database, out_text);
    }
    return !out_text->failed;
}

/* What is published is what a reader of the file would see. */
static bool publish_text(gpuhal_registry *registry, const gpuhal_text *text)
{
    gpuhal_database database;
    gpuhal_serial_report report;
    bool good = gpuhal_serial_read(text->data, text->length, &database, &report) == GPUHAL_READ_OK && publish(registry, &database);
    if (!good) {
        gpuhal_database_finish(&database);
    }
    return good;
}

/* A copy of what this object has, by way of the text. false without memory. */
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

/* Changes that this object keeps for itself: OK, or HOST_MEMORY. */
static gpuhal_status update_here(gpuhal_registry *registry, gpuhal_changes *changes)
{
    gpuhal_database database = GPUHAL_DATABASE_EMPTY;
    gpuhal_text text = {0};
    bool good = copy_newest(registry, &database) && merge_and_write(&database, changes, &text) && publish_text(registry, &text);
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&database);
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* With the lock between processes held. *out_why is set when nothing was written; then nothing was published either. */
static gpuhal_status update_file(gpuhal_registry *registry, gpuhal_changes *changes, const char **out_why, news *to_tell)
{
    gpuhal_database database;
    gpuhal_store_reading reading;
    gpuhal_text text = {0};
    gpuhal_status status = GPUHAL_OK;
    gpuhal_store_read(registry->directory, &database, &reading);
    *out_why = reading.error == ENOMEM ? NULL : stands_in_the_way(&reading);
    if (reading.error == ENOMEM) {
        status = gpuhal_error_host_memory();
    }
    if (status || *out_why) {
        goto end;
    }
    note_damage(registry, &reading, to_tell);
    uint64_t generation = newest_generation(registry);
    database.generation = generation > database.generation ? generation : database.generation;
    if (!merge_and_write(&database, changes, &text)) {
        status = gpuhal_error_host_memory();
        goto end;
    }
    int error = gpuhal_store_replace(registry->directory, text.data, text.length, reading.damaged);
    *out_why = error ? strerror(error) : NULL;
    registry->seen = (gpuhal_file_state){0};
    if (!error && !publish_text(registry, &text)) {
        status = gpuhal_error_host_memory();
    }
end:
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&database);
    return status;
}

/* On a machine where nothing changes a start writes nothing, and waits for nobody. */
static bool has_already(gpuhal_registry *registry, const gpuhal_changes *changes)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    bool has = gpuhal_database_has(&snapshot->database, changes);
    gpuhal_snapshot_release(snapshot);
    return has;
}

static gpuhal_status update(gpuhal_registry *registry, gpuhal_changes *changes)
{
    gpuhal_status status = GPUHAL_OK;
    const char *why = NULL;
    news to_tell = {0};
    intptr_t lock = -1;
    gpuhal_mutex_lock(&registry->updating);
    if (!registry->apart && has_already(registry, changes)) {
        gpuhal_mutex_unlock(&registry->updating);
        return GPUHAL_OK;
    }
    if (!registry->apart && gpuhal_store_is_foreign(registry->directory)) {
        why = "its directory belongs to another user";
    } else if (!registry->apart) {
        int error = gpuhal_store_lock(registry->directory, registry->lock_timeout_ns, &lock);
        why = error ? words_of(error) : NULL;
    }
    if (lock >= 0) {
        status = update_file(registry, changes, &why, &to_tell);
        gpuhal_os_lock_give(lock);
    }
    if (why) {
        go_apart(registry, why, &to_tell);
    }
    if (!status && registry->apart) {
        status = update_here(registry, changes);
        status = status ? status : gpuhal_error_set(GPUHAL_ERROR_FILE, "the registry%s%s cannot be written: %s", registry->directory ? " in " : "",
                                                    registry->directory ? registry->directory : "", registry->why_apart);
    }
    gpuhal_mutex_unlock(&registry->updating);
    tell(registry, &to_tell);
    return status;
}

gpuhal_status gpuhal_registry_update(gpuhal_registry *registry, gpuhal_changes *changes)
{
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = update(registry, changes);
    gpuhal_os_cancel_restore(cancel);
    return status;
}
