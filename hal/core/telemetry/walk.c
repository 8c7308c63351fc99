/* telemetry/walk.c: walks the processes, for clients.h. A file that disappears before it is read
 * is ignored: the process has ended, or has closed the descriptor. */
#include "telemetry/clients.h"

#include "base/config.h"
#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FDINFO_BYTES = 8192, PROC_PATH_BYTES = GPUHAL_SYSTEM_ROOT_BYTES + 64 };

/* ---- one process */

typedef struct visit {
    gpuhal_clients *clients;
    const char *path;
    uint32_t pid;
} visit;

static int compare(const void *one, const void *other)
{
    const gpuhal_client *a = one, *b = other;
    const int place = strcmp(a->place, b->place);
    return place ? place : a->id != b->id ? (a->id < b->id ? -1 : 1) : a->pid < b->pid ? -1 : a->pid > b->pid;
}

static bool add(gpuhal_clients *clients, const gpuhal_client *client)
{
    if (clients->count == clients->capacity) {
        const uint32_t capacity = clients->capacity ? 2 * clients->capacity : 16;
        gpuhal_client *list = capacity <= GPUHAL_CLIENTS_MAX ? realloc(clients->list, capacity * sizeof *list) : NULL;
        if (!list) {
            clients->partial = true;
            return false;
        }
        clients->list = list;
        clients->capacity = capacity;
    }
    clients->list[clients->count++] = *client;
    return true;
}

/* Returns whether this client of the process is already listed, because duplicated descriptors have the same client. */
static bool is_listed(const gpuhal_clients *clients, const gpuhal_client *client)
{
    for (uint32_t i = clients->count; i > 0 && clients->list[i - 1].pid == client->pid; i--) {
        const gpuhal_client *other = &clients->list[i - 1];
        if (other->id == client->id && strcmp(other->place, client->place) == 0) {
            return true;
        }
    }
    return false;
}

static bool look_at_descriptor(void *user, const char *name, const char *target)
{
    const visit *own = user;
    char path[PROC_PATH_BYTES], text[FDINFO_BYTES];
    size_t bytes = 0;
    gpuhal_client client;
    if (strncmp(target, "/dev/dri/", 9) != 0 && strncmp(target, "/dev/accel/", 11) != 0) {
        return true;
    }
    snprintf(path, sizeof path, "%s/fdinfo/%.20s", own->path, name);
    if (gpuhal_os_file_read_at(path, 0, text, sizeof text - 1, &bytes)) {
        return true;
    }
    text[bytes] = 0;
    if (!gpuhal_fdinfo_read(text, target, &client)) {
        return true;
    }
    client.pid = own->pid;
    return is_listed(own->clients, &client) || add(own->clients, &client);
}

int gpuhal_clients_of_process(gpuhal_clients *clients, const char *path, uint32_t pid)
{
    visit own = {.clients = clients, .path = path, .pid = pid};
    char directory[PROC_PATH_BYTES];
    const int length = snprintf(directory, sizeof directory, "%s/fd", path);
    if (length < 0 || (size_t)length >= sizeof directory) {
        return ENAMETOOLONG;
    }
    return gpuhal_os_directory_links(directory, look_at_descriptor, &own);
}

void gpuhal_clients_finish(gpuhal_clients *clients)
{
    free(clients->list);
    *clients = (gpuhal_clients){0};
}

/* ---- all processes */

typedef struct walk {
    gpuhal_job job;
    gpuhal_walks *walks; /* with a reference */
    uint64_t deadline_ns;
    bool returned, counted; /* protected by the mutex of `walks` */
    char root[GPUHAL_SYSTEM_ROOT_BYTES];
} walk;

/* A client may have been passed to other processes, so each client is kept only for the process with the lowest pid. */
static void sort(gpuhal_clients *clients)
{
    uint32_t kept = 0;
    if (clients->count > 1) {
        qsort(clients->list, clients->count, sizeof *clients->list, compare);
    }
    for (uint32_t i = 0; i < clients->count; i++) {
        const gpuhal_client *last = kept > 0 ? &clients->list[kept - 1] : NULL;
        if (!last || last->id != clients->list[i].id || strcmp(last->place, clients->list[i].place) != 0) {
            clients->list[kept++] = clients->list[i];
        }
    }
    clients->count = kept;
}

/* Stores the walk as the latest walk, unless another thread has already stored a newer or concurrent walk. */
static void keep(gpuhal_walks *walks, gpuhal_clients *clients)
{
    gpuhal_clients superfluous = *clients;
    gpuhal_mutex_lock(&walks->mutex);
    if (clients->time_ns >= walks->latest.time_ns + GPUHAL_WALK_MIN_NS || walks->latest.time_ns == 0) {
        superfluous = walks->before;
        walks->before = walks->latest;
        walks->latest = *clients;
    }
    gpuhal_mutex_unlock(&walks->mutex);
    gpuhal_clients_finish(&superfluous);
}

bool gpuhal_pids_are_contained(const char *root)
{
    char path[PROC_PATH_BYTES], *target = NULL;
    gpuhal_file_info info;
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    (void)gpuhal_os_link_info(path, &info, &target);
    const bool contained = target && strcmp(target, GPUHAL_FIRST_PID_NAMESPACE) != 0;
    free(target);
    return contained;
}

/* Returns whether some of the machine's processes are invisible, either in a container or because /proc hides other
 * users' processes. */
static bool is_blinkered(const char *root, char *const *names, size_t count)
{
    bool has_first = false;
    for (size_t i = 0; i < count && !has_first; i++) {
        has_first = strcmp(names[i], "1") == 0;
    }
    return !has_first || gpuhal_pids_are_contained(root);
}

static void run(gpuhal_job *job)
{
    walk *own = (walk *)job;
    char path[PROC_PATH_BYTES];
    char **names = NULL;
    size_t count = 0;
    gpuhal_clients clients = {.time_ns = gpuhal_os_monotonic_ns()};
    snprintf(path, sizeof path, "%s/proc", own->root);
    clients.partial = gpuhal_os_directory_names(path, &names, &count) != 0;
    clients.hidden = is_blinkered(own->root, names, count);
    for (size_t i = 0; i < count && !clients.partial; i++) {
        if (strspn(names[i], "0123456789") != strlen(names[i])) {
            continue;
        }
        snprintf(path, sizeof path, "%s/proc/%.10s", own->root, names[i]);
        const int error = gpuhal_clients_of_process(&clients, path, (uint32_t)strtoul(names[i], NULL, 10));
        clients.hidden = clients.hidden || error == EACCES || error == EPERM;
        clients.partial = clients.partial || gpuhal_os_monotonic_ns() > own->deadline_ns;
    }
    gpuhal_os_names_free(names, count);
    sort(&clients);
    keep(own->walks, &clients);
}

static void leave(gpuhal_job *job)
{
    walk *own = (walk *)job;
    gpuhal_mutex_lock(&own->walks->mutex);
    own->walks->abandoned -= own->counted;
    own->returned = true;
    gpuhal_mutex_unlock(&own->walks->mutex);
}

static void destroy(gpuhal_job *job)
{
    gpuhal_walks_release(((walk *)job)->walks);
    free(job);
}

gpuhal_walks *gpuhal_walks_create(void)
{
    gpuhal_walks *own = calloc(1, sizeof *own);
    if (own) {
        atomic_store(&own->references, 1);
        gpuhal_mutex_init(&own->mutex);
    }
    return own;
}

void gpuhal_walks_release(gpuhal_walks *walks)
{
    if (walks && atomic_fetch_sub(&walks->references, 1) == 1) {
        gpuhal_clients_finish(&walks->before);
        gpuhal_clients_finish(&walks->latest);
        gpuhal_mutex_finish(&walks->mutex);
        free(walks);
    }
}

static bool is_recent(const gpuhal_walks *walks, uint64_t now)
{
    return walks->latest.time_ns != 0 && now < walks->latest.time_ns + GPUHAL_WALK_MIN_NS;
}

bool gpuhal_walks_are_recent(gpuhal_walks *walks)
{
    gpuhal_mutex_lock(&walks->mutex);
    const bool recent = is_recent(walks, gpuhal_os_monotonic_ns());
    gpuhal_mutex_unlock(&walks->mutex);
    return recent;
}

bool gpuhal_walks_update(gpuhal_walks *walks, const char *root, uint64_t *left_ns)
{
    const uint64_t now = gpuhal_os_monotonic_ns();
    gpuhal_mutex_lock(&walks->mutex);
    const bool recent = is_recent(walks, now);
    const bool stuck = walks->abandoned > 0;
    gpuhal_mutex_unlock(&walks->mutex);
    walk *own = recent || stuck ? NULL : calloc(1, sizeof *own);
    if (!own) {
        return recent;
    }
    gpuhal_job_init(&own->job, run, leave, destroy);
    own->job.calls_no_driver = true;
    atomic_fetch_add(&walks->references, 1);
    own->walks = walks;
    own->deadline_ns = now + *left_ns / 2;
    snprintf(own->root, sizeof own->root, "%s", root);
    gpuhal_job_state state = gpuhal_job_begin(&own->job);
    if (state == GPUHAL_JOB_RUNNING && (state = gpuhal_job_await(&own->job, left_ns)) == GPUHAL_JOB_ABANDONED) {
        gpuhal_mutex_lock(&walks->mutex);
        own->counted = !own->returned;
        walks->abandoned += own->counted;
        gpuhal_mutex_unlock(&walks->mutex);
    }
    gpuhal_job_release(&own->job);
    return state == GPUHAL_JOB_DONE;
}
