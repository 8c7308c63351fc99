/* loader/backend.c: backends started in this process.
 *
 * A backend is identified by its file (device and inode), or by its query function if it is linked in, and by its
 * options. A single thread starts the backend; unless it is the caller's own, the caller abandons it at the deadline.
 * Concurrent callers wait for the same result, each until its own deadline. No lock is held while the plugin's code
 * runs. Of a READY backend, only the members about listings change.
 */
#include "loader/backend.h"

#include "base/error.h"
#include "base/job.h"
#include "base/text.h"
#include "loader/candidates.h"
#include "loader/driver_files.h"
#include "loader/file_check.h"
#include "loader/host.h"
#include "loader/load.h"
#include "loader/manifest.h"
#include "loader/probe.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

/* STUCK means that the start has exceeded the deadline of the caller that began it. If the start ends later, the
 * backend becomes READY or FAILED.
 */
typedef enum { BACKEND_FAILED, BACKEND_STARTING, BACKEND_STUCK, BACKEND_READY } backend_progress;

/* A list of devices that the plugin returned. Never changes, except for `asked_ns`. */
typedef struct backend_snapshot {
    struct backend_snapshot *older;
    uint64_t begun_ns;         /* start of the first call that returned this list */
    /* start of the last call that returned this list; most drivers always return the list made at their start */
    _Atomic uint64_t asked_ns;
    gpuhal_listed_devices devices;
} backend_snapshot;

struct gpuhal_backend {
    gpuhal_backend *next;
    gpuhal_builtin_fn *builtin;
    uint64_t device, inode;
    char *options; /* NULL if none */
    backend_progress progress;
    const void *starter;  /* gpuhal_job_caller() of the starting thread */
    gpuhal_job *job;      /* the job of the start; NULL if no start is in progress, or the start has no deadline */
    uint32_t generation;  /* fork generation of the start */
    bool calls_no_driver;    /* set for the library's own cpu plugin */
    bool ignore_environment; /* the program that started the backend forbids libraries named in the environment */
    gpuhal_plugin plugin; /* a copy; members that the plugin's own structure lacks are zero */
    bool started;         /* start() has returned OK */
    gpuhal_plugin_instance *instance; /* from start() */
    _Atomic(backend_snapshot *) snapshot; /* the newest list; older lists are kept because devices point into them */
    uint32_t lists;          /* fork generation of a listing in progress; 0 if none */
    bool hangs_enumerating;  /* a caller has abandoned the listing in progress */
    gpuhal_load_context outcome; /* strings and result of the last start */
    gpuhal_driver_files files;   /* unknown for the library's own cpu plugin, which has no driver */
};

/* protects the list, backends that are not READY, `lists` and `hangs_enumerating` */
static gpuhal_mutex list_mutex = GPUHAL_MUTEX_INITIALIZER;
static gpuhal_condition list_changed = GPUHAL_CONDITION_INITIALIZER;
static gpuhal_backend *first;
/* The fork generation if the library's own cpu plugin is being loaded on its caller's thread, otherwise 0. No driver is
 * loaded at the same time. */
static uint32_t loads_here;

static bool same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool is_starting(const gpuhal_backend *backend)
{
    return backend->progress == BACKEND_STARTING || backend->progress == BACKEND_STUCK;
}

static bool is_inherited(const gpuhal_backend *backend)
{
    return backend->generation != 0 && backend->generation != gpuhal_os_fork_generation();
}

/* Returns whether a parent process started the driver, and the plugin is not fork-safe. Such a driver does not work in
 * this process, even if it listed no devices. Only the library's own cpu plugin is known to be fork-safe during its
 * start. */
static bool is_forked(const gpuhal_backend *backend)
{
    if (!is_inherited(backend)) { /* another thread may be writing the members read below */
        return false;
    }
    bool safe = backend->calls_no_driver || (!is_starting(backend) && backend->plugin.flags & GPUHAL_PLUGIN_FORK_SAFE);
    return !safe && (backend->progress != BACKEND_FAILED || backend->started);
}

/* If a start of the own cpu plugin was in progress at the fork, this start never ends in the child. The child starts
 * the plugin again. */
static gpuhal_backend *find(const gpuhal_candidate *candidate, uint64_t device, uint64_t inode)
{
    for (gpuhal_backend *backend = first; backend; backend = backend->next) {
        bool abandoned = backend->calls_no_driver && is_starting(backend) && is_inherited(backend);
        if (!abandoned && backend->builtin == candidate->builtin && backend->device == device &&
            backend->inode == inode && same_text(backend->options, candidate->options)) {
            return backend;
        }
    }
    return NULL;
}

/* Backends are never removed, because vendor libraries cannot be unloaded. */
static gpuhal_backend *find_or_add(const gpuhal_candidate *candidate, uint64_t device, uint64_t inode)
{
    gpuhal_backend *backend = find(candidate, device, inode);
    if (!backend) {
        char *options = gpuhal_text_copy(candidate->options);
        backend = options || !candidate->options ? calloc(1, sizeof *backend) : NULL;
        if (backend) {
            backend->options = options;
            backend->builtin = candidate->builtin;
            backend->device = device;
            backend->inode = inode;
            backend->calls_no_driver = gpuhal_candidate_is_own_cpu(candidate);
            backend->next = first;
            first = backend;
        } else {
            free(options);
        }
    }
    return backend;
}

/* Requires list_mutex or a READY backend. */
static bool repeat_outcome(const gpuhal_backend *backend, gpuhal_load_context *load)
{
    const gpuhal_load_context *outcome = &backend->outcome;
    load->stage = outcome->stage;
    free(load->version);
    free(load->driver);
    free(load->note);
    load->version = gpuhal_text_copy(outcome->version);
    load->driver = gpuhal_text_copy(outcome->driver);
    load->note = gpuhal_text_copy(outcome->note);
    if (backend->progress != BACKEND_READY) {
        if (!gpuhal_listed_devices_copy(&outcome->unlisted, &load->unlisted)) {
            return gpuhal_load_no_memory(load);
        }
        gpuhal_load_fail(load, outcome->state, outcome->status, "%s", outcome->reason ? outcome->reason : "it failed");
        load->code = outcome->code;
        return false;
    }
    return !load->name || strcmp(load->name, backend->plugin.name) == 0 ||
           gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                            "the plugin's name is \"%s\", its manifest has \"%s\"", backend->plugin.name, load->name);
}

static void keep_outcome(gpuhal_backend *backend, const gpuhal_load_context *load)
{
    gpuhal_load_finish(&backend->outcome);
    backend->outcome = (gpuhal_load_context){
        .state = load->state,
        .stage = load->stage,
        .status = load->status,
        .code = load->code,
        .reason = gpuhal_text_copy(load->reason),
        .note = gpuhal_text_copy(load->note),
        .driver = gpuhal_text_copy(load->driver),
        .version = gpuhal_text_copy(load->version),
    };
    if (!gpuhal_listed_devices_copy(&load->unlisted, &backend->outcome.unlisted)) {
        gpuhal_load_finish(&backend->outcome);
        gpuhal_load_no_memory(&backend->outcome);
    }
}

/* Starts the plugin if necessary, and makes it list its devices. A list that equals the newest list is discarded. */
static bool list(gpuhal_load_context *load, gpuhal_backend *backend)
{
    backend_snapshot *newest = atomic_load(&backend->snapshot), *snapshot = calloc(1, sizeof *snapshot);
    uint64_t begun_ns = gpuhal_os_monotonic_ns();
    if (!snapshot) {
        return gpuhal_load_no_memory(load);
    }
    bool good = gpuhal_plugin_probe(load, &backend->plugin, &backend->started, &backend->instance, &snapshot->devices);
    bool is_answer = good || load->state == GPUHAL_PLUGIN_NO_DEVICE;
    if (is_answer && newest && gpuhal_listed_devices_same(&newest->devices, &snapshot->devices)) {
        atomic_store(&newest->asked_ns, begun_ns);
        is_answer = false;
    }
    if (is_answer && (good || newest)) {
        snapshot->begun_ns = begun_ns;
        atomic_init(&snapshot->asked_ns, begun_ns);
        snapshot->older = newest;
        atomic_store(&backend->snapshot, snapshot);
        return good;
    }
    gpuhal_listed_devices_finish(&snapshot->devices);
    free(snapshot);
    return good;
}

static bool load_and_list(gpuhal_load_context *load, gpuhal_backend *backend, const char *path)
{
    const gpuhal_plugin *original = NULL;
    load->options = backend->options;
    bool good = backend->builtin ? gpuhal_plugin_negotiate(load, backend->builtin, &original)
                                 : gpuhal_plugin_load(load, path, backend->device, backend->inode, &original);
    if (!good) {
        return false;
    }
    backend->plugin = (gpuhal_plugin){0};
    memcpy(&backend->plugin, original,
           original->size < sizeof backend->plugin ? original->size : sizeof backend->plugin);
    return list(load, backend);
}

static bool start(gpuhal_load_context *load, gpuhal_backend *backend, const char *path)
{
    if (backend->calls_no_driver) {
        return load_and_list(load, backend, path);
    }
    gpuhal_driver_files_begin(&backend->files);
    const bool good = load_and_list(load, backend, path);
    if (good) {
        gpuhal_driver_files_end(&backend->files, load->driver);
    }
    return good;
}

static bool has_name(const gpuhal_backend *backend, const char *name)
{
    return backend->started && name && strcmp(backend->plugin.name, name) == 0;
}

/* Backends with different options, or with copies of the same file, share one driver. Called with list_mutex held. */
static bool has_forked_driver(const gpuhal_candidate *candidate, uint64_t device, uint64_t inode)
{
    bool forked = false;
    for (const gpuhal_backend *backend = first; backend && !forked; backend = backend->next) {
        bool same_file = backend->builtin == candidate->builtin && backend->device == device && backend->inode == inode;
        forked = is_forked(backend) && (same_file || has_name(backend, candidate->name));
    }
    return forked;
}

bool gpuhal_backend_is_forked(const gpuhal_candidate *candidate)
{
    gpuhal_mutex_lock(&list_mutex);
    bool forked = has_forked_driver(candidate, candidate->device, candidate->inode);
    gpuhal_mutex_unlock(&list_mutex);
    return forked;
}

/* ---- starting */

/* A start with a deadline, run as a job. Has copies of all data that its caller may free; the backend is never
 * freed. */
typedef struct start_job {
    gpuhal_job job;
    gpuhal_backend *backend;
    gpuhal_load_context load;
    char *name, *path;
    _Atomic uint32_t stage; /* gpuhal_plugin_stage, for the error message of a caller that abandons the start */
} start_job;

static void end_start(gpuhal_backend *backend, const gpuhal_load_context *load, bool good)
{
    gpuhal_mutex_lock(&list_mutex);
    keep_outcome(backend, load);
    backend->progress = good ? BACKEND_READY : BACKEND_FAILED;
    backend->job = NULL;
    gpuhal_condition_signal_all(&list_changed);
    gpuhal_mutex_unlock(&list_mutex);
}

static void run_start(gpuhal_job *job)
{
    start_job *own = (start_job *)job;
    bool good = start(&own->load, own->backend, own->path);
    end_start(own->backend, &own->load, good);
}

static void destroy_start(gpuhal_job *job)
{
    start_job *own = (start_job *)job;
    gpuhal_load_finish(&own->load);
    free(own->name);
    free(own->path);
    free(own);
}

static void note_stage(void *user, gpuhal_plugin_stage stage)
{
    start_job *own = user;
    atomic_store(&own->stage, stage);
}

static start_job *make_start(const gpuhal_load_context *load, gpuhal_backend *backend, const char *path)
{
    start_job *own = calloc(1, sizeof *own);
    if (!own) {
        return NULL;
    }
    gpuhal_job_init(&own->job, run_start, NULL, destroy_start);
    own->backend = backend;
    own->name = gpuhal_text_copy(load->name);
    own->path = gpuhal_text_copy(path);
    own->load = (gpuhal_load_context){.name = own->name,
                                    .ignore_environment = load->ignore_environment,
                                    .sample_ns = load->deadline_ns / 3,
                                    .on_stage = note_stage,
                                    .user = own};
    if ((load->name && !own->name) || (path && !own->path)) {
        gpuhal_job_release(&own->job);
        return NULL;
    }
    return own;
}

static bool stuck(gpuhal_load_context *load, gpuhal_backend *backend)
{
    const start_job *job = (const start_job *)backend->job;
    load->stage = job ? (gpuhal_plugin_stage)atomic_load(&job->stage) : load->stage;
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT, "the driver hung %s (%.3g s timeout)",
                               gpuhal_load_while(load->stage), (double)load->deadline_ns / 1e9);
}

/* Called with list_mutex held. */
static bool wait_for_start(gpuhal_load_context *load, gpuhal_backend *backend)
{
    uint64_t waited = 0, deadline_ns = load->deadline_ns ? load->deadline_ns : UINT64_MAX;
    while (backend->progress == BACKEND_STARTING && waited < deadline_ns) {
        if (backend->starter == gpuhal_job_caller()) {
            return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_BUSY,
                                       "the plugin opens itself while it starts");
        }
        waited += gpuhal_job_wait(&list_changed, &list_mutex, deadline_ns - waited);
    }
    return backend->progress != BACKEND_STARTING || stuck(load, backend);
}

/* Called without locks. Returns false if the deadline passed. */
static bool start_in_time(gpuhal_load_context *load, gpuhal_backend *backend, start_job *own)
{
    gpuhal_job_state state = gpuhal_job_run(&own->job, load->deadline_ns);
    if (state == GPUHAL_JOB_NO_THREAD) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_HOST_MEMORY, "%s", gpuhal_last_error()->sentence);
        end_start(backend, load, false);
    }
    if (state == GPUHAL_JOB_DONE && own->load.reason) {
        gpuhal_error_restore(&own->job.detail);
    }
    return state != GPUHAL_JOB_ABANDONED;
}

/* Loading a library acquires the dynamic loader's lock, which a hung driver in this process may hold. Called with
 * list_mutex held. */
static bool is_first_of_process(const gpuhal_backend *backend)
{
    for (const gpuhal_backend *other = first; other; other = other->next) {
        /* A backend's starting thread writes `started` without the lock, so check the progress first. */
        if (other != backend && (other->progress != BACKEND_FAILED || other->started)) {
            return false;
        }
    }
    return true;
}

static bool start_unlocks(gpuhal_load_context *load, gpuhal_backend *backend, const char *path)
{
    while (loads_here == gpuhal_os_fork_generation()) {
        gpuhal_condition_wait(&list_changed, &list_mutex);
    }
    start_job *own = load->deadline_ns ? make_start(load, backend, path) : NULL;
    if (load->deadline_ns && !own) {
        return gpuhal_load_no_memory(load);
    }
    if (own) {
        own->job.calls_no_driver = backend->calls_no_driver;
        own->job.at_once = backend->calls_no_driver && (backend->builtin || is_first_of_process(backend));
    }
    const bool here = own && own->job.at_once && !backend->builtin;
    loads_here = here ? gpuhal_os_fork_generation() : 0;
    backend->progress = BACKEND_STARTING;
    backend->starter = gpuhal_job_caller();
    backend->job = own ? &own->job : NULL;
    backend->generation = gpuhal_os_fork_generation();
    backend->ignore_environment = load->ignore_environment;
    gpuhal_mutex_unlock(&list_mutex);
    bool ended = true, good = true;
    if (own) {
        ended = start_in_time(load, backend, own);
    } else {
        good = start(load, backend, path);
        end_start(backend, load, good);
    }
    gpuhal_mutex_lock(&list_mutex);
    if (!ended && backend->progress == BACKEND_STARTING) {
        backend->progress = BACKEND_STUCK;
        gpuhal_condition_signal_all(&list_changed);
    }
    if (here) {
        loads_here = 0;
        gpuhal_condition_signal_all(&list_changed);
    }
    good = own ? backend->progress == BACKEND_STUCK ? stuck(load, backend) : repeat_outcome(backend, load) : good;
    if (own) {
        gpuhal_job_release(&own->job);
    }
    return good;
}

/* A call that hangs inside dlopen holds, until it returns, a lock that every dlopen in this process needs. Called with
 * list_mutex held. */
static bool loader_is_free(gpuhal_load_context *load)
{
    if (gpuhal_dlopen_is_forked()) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_FORKED, "%s",
                                "not loaded: " GPUHAL_DLOPEN_IS_FORKED);
    }
    for (const gpuhal_backend *backend = first; backend; backend = backend->next) {
        bool hangs = backend->progress == BACKEND_STUCK && !is_inherited(backend);
        if (hangs && backend->job && atomic_load(&backend->job->in_dynamic_loader)) {
            const start_job *own = (const start_job *)backend->job;
            return gpuhal_load_fail(
                load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_BUSY,
                "not loaded: %s hangs inside the dynamic loader, which loads nothing else meanwhile",
                own->name ? own->name : "another plugin");
        }
    }
    return true;
}

/* Called with list_mutex held. */
static bool use(gpuhal_load_context *load, gpuhal_backend *backend, const char *path)
{
    /* A caller that waited accepts the result, even if it is a failure. Only a later caller tries again. */
    bool waited = backend->progress == BACKEND_STARTING;
    if (waited && !wait_for_start(load, backend)) {
        return false;
    }
    if (backend->progress == BACKEND_STUCK) {
        return stuck(load, backend);
    }
    if (backend->progress == BACKEND_FAILED && !waited) {
        return (backend->builtin || loader_is_free(load)) && start_unlocks(load, backend, path);
    }
    return repeat_outcome(backend, load);
}

/* The environment of this process is the application's, so the library never changes it. */
static void name_unset(void *user, const char *name, const char *value)
{
    gpuhal_load_context *load = user;
    if (gpuhal_os_environment(name)) {
        return;
    }
    char *sentence = gpuhal_text_format("the driver needs %s=%s in the environment of this process: set it before the "
                                        "program starts",
                                        name, value);
    char *line = sentence ? gpuhal_text_format("%s: %s", load->name, sentence) : NULL;
    if (line) {
        gpuhal_log_to_all(GPUHAL_LEVEL_WARNING, line);
    }
    if (!load->note) {
        load->note = sentence;
        sentence = NULL;
    }
    free(line);
    free(sentence);
}

bool gpuhal_backend_obtain(gpuhal_load_context *load, const gpuhal_candidate *candidate, gpuhal_backend **out_backend)
{
    gpuhal_checked_file file = {.device = candidate->device, .inode = candidate->inode};
    gpuhal_mutex_lock(&list_mutex);
    gpuhal_backend *backend = find(candidate, file.device, file.inode);
    if (!candidate->builtin && (!backend || backend->progress == BACKEND_FAILED)) {
        /* The file may have been replaced since it was listed. The new file belongs to a different backend. */
        gpuhal_mutex_unlock(&list_mutex);
        gpuhal_load_enter(load, GPUHAL_STAGE_FILE);
        if (!gpuhal_file_check(load, candidate->file, false, &file)) {
            return false;
        }
        gpuhal_mutex_lock(&list_mutex);
    }
    bool forked = has_forked_driver(candidate, file.device, file.inode);
    backend = forked ? NULL : find_or_add(candidate, file.device, file.inode);
    const bool begins = backend && backend->progress == BACKEND_FAILED;
    bool good = forked    ? gpuhal_load_fail(load, GPUHAL_PLUGIN_FORKED, GPUHAL_ERROR_FORKED, GPUHAL_BACKEND_IS_FORKED)
                : backend ? use(load, backend, file.path)
                          : gpuhal_load_no_memory(load);
    gpuhal_mutex_unlock(&list_mutex);
    gpuhal_checked_file_finish(&file);
    *out_backend = good ? backend : NULL;
    if (begins) {
        (void)gpuhal_manifest_each_setting(candidate->settings, name_unset, load);
    }
    return good;
}

gpuhal_status gpuhal_backend_start(const gpuhal_candidate *candidate, uint64_t deadline_ns,
                                   gpuhal_backend **out_backend)
{
    *out_backend = NULL;
    gpuhal_load_context load = {
        .name = candidate->name, .ignore_environment = candidate->ignore_environment, .deadline_ns = deadline_ns};
    gpuhal_status status =
        gpuhal_backend_obtain(&load, candidate, out_backend) ? GPUHAL_OK : gpuhal_load_set_error(&load);
    gpuhal_load_finish(&load);
    return status;
}

/* ---- listing again */

typedef struct list_job {
    gpuhal_job job;
    gpuhal_backend *backend;
    gpuhal_load_context load;
    bool good;
} list_job;

static void run_list(gpuhal_job *job)
{
    list_job *own = (list_job *)job;
    own->good = list(&own->load, own->backend);
    gpuhal_mutex_lock(&list_mutex);
    own->backend->lists = 0;
    own->backend->hangs_enumerating = false;
    gpuhal_condition_signal_all(&list_changed);
    gpuhal_mutex_unlock(&list_mutex);
}

static void destroy_list(gpuhal_job *job)
{
    gpuhal_load_finish(&((list_job *)job)->load);
    free(job);
}

static bool hangs_enumerating(gpuhal_load_context *load)
{
    load->stage = GPUHAL_STAGE_ENUMERATE;
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_ERROR_TIMEOUT, "the driver hung %s (%.3g s timeout)",
                               gpuhal_load_while(load->stage), (double)load->deadline_ns / 1e9);
}

static bool is_listing(const gpuhal_backend *backend)
{
    return backend->lists == gpuhal_os_fork_generation();
}

/* Returns whether this caller must list the devices. A backend's calls of `enumerate` never overlap. Called with
 * list_mutex held. */
static bool claim_enumeration(const gpuhal_load_context *load, const gpuhal_backend *backend, uint64_t since_ns)
{
    for (uint64_t waited = 0; is_listing(backend) && !backend->hangs_enumerating && waited < load->deadline_ns;) {
        waited += gpuhal_job_wait(&list_changed, &list_mutex, load->deadline_ns - waited);
    }
    return !is_listing(backend) && atomic_load(&atomic_load(&backend->snapshot)->asked_ns) < since_ns;
}

static void take_attempt(gpuhal_load_context *to, gpuhal_load_context *from)
{
    to->stage = from->stage;
    if (from->reason) {
        gpuhal_load_fail(to, from->state, from->status, "%s", from->reason);
        to->code = from->code;
        to->unlisted = from->unlisted;
        from->unlisted = (gpuhal_listed_devices){0};
    }
    free(to->note);
    to->note = from->note;
    from->note = NULL;
}

static bool run_enumeration(gpuhal_load_context *load, list_job *own)
{
    gpuhal_job_state state = gpuhal_job_run(&own->job, load->deadline_ns);
    if (state == GPUHAL_JOB_DONE) {
        take_attempt(load, &own->load);
        return own->good;
    }
    gpuhal_mutex_lock(&list_mutex);
    own->backend->hangs_enumerating = state == GPUHAL_JOB_ABANDONED && is_listing(own->backend);
    own->backend->lists = own->backend->hangs_enumerating ? own->backend->lists : 0;
    gpuhal_condition_signal_all(&list_changed);
    gpuhal_mutex_unlock(&list_mutex);
    return state == GPUHAL_JOB_ABANDONED ? hangs_enumerating(load)
                                         : gpuhal_load_fail(load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_HOST_MEMORY,
                                                            "%s", gpuhal_last_error()->sentence);
}

bool gpuhal_backend_list_again(gpuhal_load_context *load, gpuhal_backend *backend, uint64_t since_ns)
{
    list_job *own = calloc(1, sizeof *own);
    if (!own) {
        return gpuhal_load_no_memory(load);
    }
    gpuhal_job_init(&own->job, run_list, NULL, destroy_list);
    own->job.calls_no_driver = own->job.at_once = backend->calls_no_driver;
    own->backend = backend;
    own->load = (gpuhal_load_context){.name = backend->plugin.name,
                                      .ignore_environment = backend->ignore_environment,
                                      .sample_ns = load->deadline_ns / 3};
    gpuhal_mutex_lock(&list_mutex);
    bool ours = claim_enumeration(load, backend, since_ns), stuck = !ours && is_listing(backend);
    backend->lists = ours ? gpuhal_os_fork_generation() : backend->lists;
    backend->hangs_enumerating = backend->hangs_enumerating && !ours;
    gpuhal_mutex_unlock(&list_mutex);
    bool good = ours ? run_enumeration(load, own) : !stuck || hangs_enumerating(load);
    gpuhal_job_release(&own->job);
    return good;
}

gpuhal_backend *gpuhal_backend_started(const gpuhal_candidate *candidate)
{
    gpuhal_mutex_lock(&list_mutex);
    gpuhal_backend *backend = find(candidate, candidate->device, candidate->inode);
    bool usable = backend && backend->progress == BACKEND_READY && !is_forked(backend);
    gpuhal_mutex_unlock(&list_mutex);
    return usable ? backend : NULL;
}

gpuhal_status gpuhal_backend_refresh(gpuhal_backend *backend, uint64_t since_ns, uint64_t deadline_ns)
{
    gpuhal_load_context load = {.name = backend->plugin.name, .deadline_ns = deadline_ns};
    bool good = gpuhal_backend_list_again(&load, backend, since_ns);
    gpuhal_status status = good || load.state == GPUHAL_PLUGIN_NO_DEVICE ? GPUHAL_OK : gpuhal_load_set_error(&load);
    gpuhal_load_finish(&load);
    return status;
}

const gpuhal_plugin *gpuhal_backend_plugin(const gpuhal_backend *backend)
{
    return &backend->plugin;
}

gpuhal_plugin_instance *gpuhal_backend_instance(const gpuhal_backend *backend)
{
    return backend->instance;
}

const gpuhal_listed_devices *gpuhal_backend_devices(const gpuhal_backend *backend)
{
    return &atomic_load(&backend->snapshot)->devices;
}

uint64_t gpuhal_backend_begun_ns(const gpuhal_backend *backend)
{
    return atomic_load(&backend->snapshot)->begun_ns;
}

const char *gpuhal_backend_driver(const gpuhal_backend *backend)
{
    return backend->outcome.driver;
}

const gpuhal_driver_files *gpuhal_backend_files(const gpuhal_backend *backend)
{
    return &backend->files;
}
