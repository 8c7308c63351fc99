/* registry/store.c: see store.h. At every moment, even if a process is killed, `registry` is a complete text or does
 * not exist. */
#include "registry/store.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "registry"
#define NEW_PREFIX FILE_NAME ".new-"

static char *path_of(const char *directory, const char *name)
{
    return gpuhal_text_format("%s/%s", directory, name);
}

/* If root runs with a user's HOME (sudo -E), it must not create the user's .local. A directory may be created below a
 * directory that root owns, such as /tmp. */
static bool would_be_foreign(const char *directory)
{
    gpuhal_file_info info = {0};
    char *parent = gpuhal_text_copy(directory);
    bool found = false;
    for (char *cut = parent ? strrchr(parent, '/') : NULL; cut && cut > parent && !found; cut = strrchr(parent, '/')) {
        *cut = 0;
        found = gpuhal_os_file_info(parent, &info) == 0;
    }
    free(parent);
    return found && info.owner != 0 && info.owner != gpuhal_os_user();
}

bool gpuhal_store_is_foreign(const char *directory)
{
    gpuhal_file_info info;
    return gpuhal_os_file_info(directory, &info) == 0 ? info.owner != gpuhal_os_user() : would_be_foreign(directory);
}

static void read_text(const char *path, gpuhal_database *database, gpuhal_store_reading *reading)
{
    char *text = NULL;
    size_t bytes = 0;
    /* The state is read before the text, so that a change in between is detected next time. */
    reading->error = gpuhal_os_file_state(path, &reading->state);
    if (!reading->error) {
        reading->error = gpuhal_os_file_read(path, GPUHAL_REGISTRY_BYTES_MAX, &text, &bytes);
    }
    if (reading->error == ENOENT) {
        *reading = (gpuhal_store_reading){.absent = true};
    } else if (reading->error == EFBIG) {
        /* The library never writes a file of this size. */
        reading->error = 0;
        reading->report.headless = true;
    } else if (!reading->error &&
               gpuhal_serial_read(text, bytes, database, &reading->report) == GPUHAL_READ_NO_MEMORY) {
        reading->error = ENOMEM;
    }
    reading->damaged = gpuhal_serial_is_damaged(&reading->report);
    free(text);
}

void gpuhal_store_read_database(const char *directory, gpuhal_database *out_content, gpuhal_store_reading *out_reading)
{
    char *path = path_of(directory, FILE_NAME);
    *out_content = GPUHAL_DATABASE_EMPTY;
    *out_reading = (gpuhal_store_reading){.error = ENOMEM};
    if (path) {
        *out_reading = (gpuhal_store_reading){0};
        read_text(path, out_content, out_reading);
    }
    free(path);
}

int gpuhal_store_lock(const char *directory, uint64_t timeout_ns, intptr_t *out_lock)
{
    char *path = path_of(directory, FILE_NAME ".lock");
    int error = path ? gpuhal_os_directory_make(directory) : ENOMEM;
    if (!error) {
        error = gpuhal_os_lock_take(path, timeout_ns, out_lock);
    }
    free(path);
    return error;
}

/* Removes files of killed writers. No other writer can be running, since it would have the lock. */
static void sweep(const char *directory)
{
    char **names;
    size_t count;
    if (gpuhal_os_directory_names(directory, &names, &count)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], NEW_PREFIX, strlen(NEW_PREFIX)) == 0) {
            char *path = path_of(directory, names[i]);
            if (path) {
                gpuhal_os_file_remove(path);
            }
            free(path);
        }
    }
    gpuhal_os_names_free(names, count);
}

static char *damaged_path(const char *directory, uint32_t number)
{
    return gpuhal_text_format("%s/" FILE_NAME ".damaged-%" PRIu32, directory, number);
}

/* Renumbers the damaged files, so that number 1 is free. The oldest file is overwritten. */
static int age_damaged(const char *directory)
{
    int error = 0;
    for (uint32_t number = GPUHAL_STORE_DAMAGED_MAX; number > 1 && !error; number--) {
        char *from = damaged_path(directory, number - 1), *to = damaged_path(directory, number);
        error = from && to ? gpuhal_os_file_rename(from, to) : ENOMEM;
        error = error == ENOENT ? 0 : error;
        if (!error) {
            /* Needed if both names refer to the same file, because renaming then does nothing. */
            gpuhal_os_file_remove(from);
        }
        free(from);
        free(to);
    }
    return error;
}

/* Adds a second name, so that the file stays readable until the new file replaces it. Renames the file if hard links
 * are not supported. */
static int set_aside(const char *directory, const char *path)
{
    char *aside = damaged_path(directory, 1);
    int error = aside ? age_damaged(directory) : ENOMEM;
    if (!error) {
        error = gpuhal_os_file_link(path, aside);
        if (error == EPERM || error == ENOTSUP || error == EXDEV || error == EMLINK) {
            error = gpuhal_os_file_rename(path, aside);
        }
    }
    free(aside);
    return error;
}

/* The text is written to a new file, which is synced and renamed. After that the directory is synced. A damaged file is
 * kept under another name only after the new file is on disk. */
int gpuhal_store_replace(const char *directory, const char *text, size_t bytes, bool damaged)
{
    char *path = path_of(directory, FILE_NAME);
    char *made = gpuhal_text_format("%s/" NEW_PREFIX "%" PRId64 "-%" PRIu64, directory, gpuhal_os_process_own(),
                                    gpuhal_os_monotonic_ns());
    int error = path && made ? 0 : ENOMEM;
    if (!error) {
        sweep(directory);
        error = gpuhal_os_file_write_new(made, text, bytes);
    }
    if (!error) {
        error = damaged ? set_aside(directory, path) : 0;
        error = error ? error : gpuhal_os_file_rename(made, path);
        if (error) {
            gpuhal_os_file_remove(made);
        }
    }
    error = error ? error : gpuhal_os_directory_sync(directory);
    free(made);
    free(path);
    return error;
}
