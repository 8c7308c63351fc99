/* loader/backend.c: backends that were started in this process. They live for ever and are shared by all gpuhal objects.
 *
 * A backend is known by its file (device and inode), or by its query function where it is linked in. One thread starts it; others
 * wait for that thread's answer. No lock is held while the plugin's code runs. What a READY backend holds never changes.
 */
#include "loader/backend.h"

#include "core/error.h"
#include "core/text.h"
#include "loader/file_check.h"
#include "loader/load.h"
#include "loader/meet.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

typedef enum { BACKEND_FAILED, BACKEND_STARTING, BACKEND_READY } backend_progress;

struct gpuhal_backend {
    gpuhal_backend *next;
    gpuhal_builtin_fn *builtin;
    uint64_t device, inode;
    backend_progress progress;
    const void *starter;  /* the thread that starts it, by the address of its mark */
    uint32_t generation;  /* fork generation of the start */
    uint64_t begun_ns;    /* when the start began */
    gpuhal_plugin plugin; /* a copy: what the plugin's own structure lacks is zero */
    bool started;         /* its start() has succeeded */
    gpuhal_listed_devices devices;
    gpuhal_attempt outcome; /* of the last start: texts and verdict */
};

static gpuhal_mutex list_mutex = GPUHAL_MUTEX_INITIALIZER; /* protects the list and every backend that is not READY */
static gpuhal_condition list_changed = GPUHAL_CONDITION_INITIALIZER;
static gpuhal_backend *first;
static _Thread_local char thread_mark;

static gpuhal_backend *find(gpuhal_builtin_fn *builtin, uint64_t device, uint64_t inode)
{
    for (gpuhal_backend *backend = first; backend; backend = backend->next) {
        if (backend->builtin == builtin && backend->device == device && backend->inode == inode) {
            return backend;
        }
    }
    return NULL;
}

/* Backends are never removed: a vendor library cannot be unloaded, so there is nothing to be gained. */
static gpuhal_backend *find_or_add(gpuhal_builtin_fn *builtin, uint64_t device, uint64_t inode)
{
    gpuhal_backend *backend = find(builtin, device, inode);
    if (!backend) {
        backend = calloc(1, sizeof *backend);
        if (backend) {
            backend->builtin = builtin;
            backend->device = device;
            backend->inode = inode;
            backend->next = first;
            first = backend;
        }
    }
    return backend;
}

/* Gives a later caller the outcome that another thread had. Called with list_mutex held, or for a READY backend. */
static bool repeat_outcome(const gpuhal_backend *backend, gpuhal_attempt *attempt)
{
    const gpuhal_attempt *outcome = &backend->outcome;
    attempt->stage = outcome->stage;
    free(attempt->version);
    free(attempt->driver);
    attempt->version = gpuhal_text_copy(outcome->version);
    attempt->driver = gpuhal_text_copy(outcome->driver);
    if (backend->progress != BACKEND_READY) {
        return gpuhal_attempt_fail(attempt, outcome->state, outcome->status, "%s",
                                   outcome->reason ? outcome->reason : "it failed");
    }
    return !attempt->name || strcmp(attempt->name, backend->plugin.name) == 0 ||
           gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_DRIVER,
                               "the plugin calls itself \"%s\", its manifest says \"%s\"", backend->plugin.name, attempt->name);
}

/* For those who wait now, and for later callers of a READY backend. */
static void keep_outcome(gpuhal_backend *backend, const gpuhal_attempt *attempt)
{
    gpuhal_attempt_finish(&backend->outcome);
    backend->outcome = (gpuhal_attempt){
        .state = attempt->state,
        .stage = attempt->stage,
        .status = attempt->status,
        .reason = gpuhal_text_copy(attempt->reason),
        .driver = gpuhal_text_copy(attempt->driver),
        .version = gpuhal_text_copy(attempt->version),
    };
}

static bool start(gpuhal_attempt *attempt, gpuhal_backend *backend, const char *path)
{
    const gpuhal_plugin *original = NULL;
    bool good = backend->builtin ? gpuhal_plugin_shake_hands(attempt, backend->builtin, &original)
                                 : gpuhal_plugin_load(attempt, path, backend->device, backend->inode, &original);
    if (!good) {
        return false;
    }
    backend->plugin = (gpuhal_plugin){0};
    memcpy(&backend->plugin, original, original->size < sizeof backend->plugin ? original->size : sizeof backend->plugin);
    return gpuhal_plugin_meet(attempt, &backend->plugin, &backend->started, &backend->devices);
}

static bool refuse_forked(gpuhal_attempt *attempt)
{
    return gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_FORKED,
                               "it was started before this process was forked: fork before opening, or exec");
}

/* Waits until nobody is starting the backend. Called with list_mutex held. */
static bool wait_for_starter(gpuhal_attempt *attempt, const gpuhal_backend *backend)
{
    while (backend->progress == BACKEND_STARTING) {
        if (backend->generation != gpuhal_os_fork_generation()) {
            return refuse_forked(attempt);
        }
        if (backend->starter == &thread_mark) {
            return gpuhal_attempt_fail(attempt, GPUHAL_PLUGIN_BROKEN, GPUHAL_ERROR_BUSY,
                                       "the plugin opens itself while it starts");
        }
        gpuhal_condition_wait(&list_changed, &list_mutex);
    }
    return true;
}

/* Called with list_mutex held, which is given up meanwhile. */
static bool start_unlocked(gpuhal_attempt *attempt, gpuhal_backend *backend, const char *path)
{
    backend->progress = BACKEND_STARTING;
    backend->starter = &thread_mark;
    backend->generation = gpuhal_os_fork_generation();
    backend->begun_ns = gpuhal_os_monotonic_ns();
    gpuhal_mutex_unlock(&list_mutex);
    bool good = start(attempt, backend, path);
    gpuhal_mutex_lock(&list_mutex);
    keep_outcome(backend, attempt);
    backend->progress = good ? BACKEND_READY : BACKEND_FAILED;
    gpuhal_condition_signal_all(&list_changed);
    return good;
}

/* Called with list_mutex held. */
static bool use(gpuhal_attempt *attempt, gpuhal_backend *backend, const char *path)
{
    /* Who waited takes the answer as it is, also a failure; only who comes later tries again. */
    bool waited = backend->progress == BACKEND_STARTING;
    if (waited && !wait_for_starter(attempt, backend)) {
        return false;
    }
    /* Also a driver that was started and then listed nothing does not live on in a child. */
    if ((backend->progress == BACKEND_READY || backend->started) && gpuhal_backend_generation(backend) != 0 &&
        backend->generation != gpuhal_os_fork_generation()) {
        attempt->stage = GPUHAL_STAGE_START;
        return refuse_forked(attempt);
    }
    if (backend->progress == BACKEND_FAILED && !waited) {
        return start_unlocked(attempt, backend, path);
    }
    return repeat_outcome(backend, attempt);
}

bool gpuhal_backend_obtain(gpuhal_attempt *attempt, const gpuhal_candidate *candidate, gpuhal_backend **out_backend)
{
    gpuhal_checked_file file = {.device = candidate->device, .inode = candidate->inode};
    gpuhal_mutex_lock(&list_mutex);
    gpuhal_backend *backend = find(candidate->builtin, file.device, file.inode);
    if (!candidate->builtin && (!backend || backend->progress == BACKEND_FAILED)) {
        /* The file may have been replaced since it was listed: then its successor is another backend. */
        gpuhal_mutex_unlock(&list_mutex);
        gpuhal_attempt_enter(attempt, GPUHAL_STAGE_FILE);
        if (!gpuhal_file_check(attempt, candidate->file, false, &file)) {
            return false;
        }
        gpuhal_mutex_lock(&list_mutex);
    }
    backend = find_or_add(candidate->builtin, file.device, file.inode);
    bool good = backend ? use(attempt, backend, file.path) : gpuhal_attempt_no_memory(attempt);
    gpuhal_mutex_unlock(&list_mutex);
    gpuhal_checked_file_finish(&file);
    *out_backend = good ? backend : NULL;
    return good;
}

gpuhal_status gpuhal_backend_start(const gpuhal_candidate *candidate, gpuhal_backend **out_backend)
{
    *out_backend = NULL;
    gpuhal_attempt attempt = {.name = candidate->name, .ignore_environment = candidate->ignore_environment};
    gpuhal_status status = gpuhal_backend_obtain(&attempt, candidate, out_backend) ? GPUHAL_OK : gpuhal_attempt_tell(&attempt);
    gpuhal_attempt_finish(&attempt);
    return status;
}

const gpuhal_plugin *gpuhal_backend_plugin(const gpuhal_backend *backend)
{
    return &backend->plugin;
}

const gpuhal_listed_devices *gpuhal_backend_devices(const gpuhal_backend *backend)
{
    return &backend->devices;
}

uint64_t gpuhal_backend_begun_ns(const gpuhal_backend *backend)
{
    return backend->begun_ns;
}

uint32_t gpuhal_backend_generation(const gpuhal_backend *backend)
{
    return backend->plugin.flags & GPUHAL_PLUGIN_FORK_SAFE ? 0 : backend->generation;
}
