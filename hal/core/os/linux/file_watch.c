/* os/linux/file_watch.c: reports created, removed and changed files and folders with inotify.
 *
 * A path is watched through its folder, so that the removal and re-creation of a file is detected. If the folder is
 * missing, its nearest existing ancestor is watched for the next component of the path. Other changes in the ancestor
 * are ignored.
 *
 * Names are only added to the list, at its front. The thread that reads events therefore never waits for the thread
 * that adds paths and accesses the file system.
 */
#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* IN_CLOSE_WRITE is not included, because a driver that closes its device node has changed nothing. */
#define EVENTS                                                                                                         \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

typedef struct watched_name {
    struct watched_name *next;
    int folder; /* inotify watch descriptor */
    char *name; /* name in the folder; NULL for all entries */
} watched_name;

struct gpuhal_file_watch {
    int descriptor;
    _Atomic(watched_name *) names;
    size_t count; /* accessed only by the thread that adds paths */
};

int gpuhal_os_file_watch_create(gpuhal_file_watch **out_watch)
{
    gpuhal_file_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        return ENOMEM;
    }
    watch->descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->descriptor < 0) {
        int error = errno;
        free(watch);
        return error;
    }
    *out_watch = watch;
    return 0;
}

void gpuhal_os_file_watch_destroy(gpuhal_file_watch *watch)
{
    if (watch) {
        for (watched_name *one = atomic_load(&watch->names), *next; one; one = next) {
            next = one->next;
            free(one->name);
            free(one);
        }
        close(watch->descriptor);
        free(watch);
    }
}

size_t gpuhal_os_file_watch_count(const gpuhal_file_watch *watch)
{
    return watch->count;
}

intptr_t gpuhal_os_file_watch_descriptor(const gpuhal_file_watch *watch)
{
    return watch ? watch->descriptor : -1;
}

/* A NULL `name` watches all entries. */
static int add(gpuhal_file_watch *watch, const char *folder, const char *name)
{
    int number = inotify_add_watch(watch->descriptor, folder, EVENTS | IN_ONLYDIR);
    if (number < 0) {
        return errno;
    }
    for (const watched_name *known = atomic_load(&watch->names); known; known = known->next) {
        if (known->folder == number && (known->name && name ? strcmp(known->name, name) == 0 : known->name == name)) {
            return 0;
        }
    }
    watched_name *added = calloc(1, sizeof *added);
    char *copy = added && name ? strdup(name) : NULL;
    if (!added || (name && !copy)) {
        free(added);
        return ENOMEM;
    }
    *added = (watched_name){atomic_load(&watch->names), number, copy};
    atomic_store(&watch->names, added);
    watch->count++;
    return 0;
}

int gpuhal_os_file_watch_add(gpuhal_file_watch *watch, const char *path)
{
    struct stat info;
    char *parts = strdup(path);
    if (!parts) {
        return ENOMEM;
    }
    int error = ENOENT;
    for (char *slash = strrchr(parts, '/'); slash && error == ENOENT; slash = strrchr(parts, '/')) {
        *slash = 0;
        error = slash[1] ? add(watch, *parts ? parts : "/", slash + 1) : ENOENT;
    }
    free(parts);
    if (!error && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        error = add(watch, path, NULL);
    }
    return error;
}

static bool concerns(gpuhal_file_watch *watch, const struct inotify_event *event)
{
    bool found = event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW);
    for (const watched_name *one = atomic_load(&watch->names); one && !found && event->len > 0; one = one->next) {
        found = one->folder == event->wd && (!one->name || strcmp(one->name, event->name) == 0);
    }
    return found;
}

bool gpuhal_os_file_watch_take(gpuhal_file_watch *watch)
{
    _Alignas(struct inotify_event) char events[4096];
    bool found = false;
    ssize_t bytes = read(watch->descriptor, events, sizeof events);
    for (ssize_t at = 0; at < bytes;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
        found = found || concerns(watch, event);
        at += (ssize_t)(sizeof *event + event->len);
    }
    return found;
}
