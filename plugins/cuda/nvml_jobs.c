/* cuda/nvml_jobs.c: see nvml_jobs.h. */
#include "nvml_jobs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Without the persistence daemon the first question about a GPU initialises it, which takes seconds. The core gives a plugin 15 s
 * for all that it does while it is met. */
#define DEADLINE_S 5

gpuhal_cuda_nvml_functions gpuhal_cuda_nvml;

static bool opened;      /* written by the first start(), under open_lock */
static bool initialised; /* by jobs alone, of which one runs at a time */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const library_names[] = {
#if defined(_WIN32)
    "nvml.dll",
#else
    "libnvidia-ml.so.1",
#endif
    NULL,
};

void gpuhal_cuda_nvml_open(const gpuhal_host *host)
{
    gpuhal_cuda_nvml_functions found;
#define REQUIRED_SYMBOL(name, arguments) {#name, &found.name, 1},
#define OPTIONAL_SYMBOL(name, arguments) {#name, &found.name, 0},
    const gpuhal_symbol symbols[] = {GPUHAL_NVML_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    gpuhal_status status = host->library(host, "NVML", library_names, symbols, sizeof symbols / sizeof symbols[0]);
    if (status != GPUHAL_OK) {
        host->log(host, GPUHAL_LOG_INFO, "NVML cannot be used: what it alone tells of CUDA devices is missing");
        return;
    }
    pthread_mutex_lock(&open_lock);
    if (!opened) {
        gpuhal_cuda_nvml = found;
        opened = true;
    }
    pthread_mutex_unlock(&open_lock);
}

static bool is_open(void)
{
    pthread_mutex_lock(&open_lock);
    bool is = opened;
    pthread_mutex_unlock(&open_lock);
    return is;
}

static const char *result_name(nvmlReturn_t code)
{
#define NAMED_RESULT(name, value)                                                                                                \
    case value:                                                                                                                  \
        return #name;
    switch (code) {
        GPUHAL_NVML_RESULTS(NAMED_RESULT)
    default:
        return "unknown error code";
    }
}

gpuhal_cuda_why gpuhal_cuda_nvml_why(nvmlReturn_t code)
{
    gpuhal_cuda_why why = {.reason = GPUHAL_MISSING_FAILED};
    switch (code) {
    case NVML_SUCCESS:
        why.reason = 0;
        return why;
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_DEPRECATED:
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
        break;
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_OPERATING_SYSTEM: /* a control group keeps the device node from us */
        why.reason = GPUHAL_MISSING_NO_PERMISSION;
        break;
    case NVML_ERROR_TIMEOUT:
        why.reason = GPUHAL_MISSING_TIMED_OUT;
        break;
    default:
        break;
    }
    snprintf(why.text, sizeof why.text, "NVML answers %s (%u)", result_name(code), code);
    return why;
}

/* ---- jobs */

/* Shared by the caller and the job's thread; a caller that leaves leaves it to the thread. */
typedef struct job {
    void (*work)(void *request);
    nvmlReturn_t init_code;
    bool done, left; /* the thread has finished; the caller waits no more. Under job_lock */
    unsigned char *request;
} job;

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER; /* protects running, hung and the two flags of jobs */
static pthread_cond_t job_ended;
static pthread_once_t job_once = PTHREAD_ONCE_INIT;
static bool running; /* a job is under way */
static bool hung;    /* and its caller has left it */

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job_ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Initialising again costs nothing, and NVML counts it: once is enough, and nobody shuts down. */
static void *job_main(void *argument)
{
    job *own = argument;
    own->init_code = initialised ? NVML_SUCCESS : gpuhal_cuda_nvml.nvmlInit_v2();
    initialised = own->init_code == NVML_SUCCESS;
    if (initialised) {
        own->work(own->request);
    }
    pthread_mutex_lock(&job_lock);
    own->done = true;
    bool left = own->left;
    if (left) {
        running = false;
        hung = false;
    }
    pthread_cond_broadcast(&job_ended);
    pthread_mutex_unlock(&job_lock);
    if (left) {
        free(own->request);
        free(own);
    }
    return NULL;
}

/* The application's signal handlers have no business on this thread. */
static int start_thread(pthread_t *out_thread, job *own)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(out_thread, NULL, job_main, own);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Waits until no job runs, and makes it ours. False when the one that runs hangs. */
static bool take_turn(const struct timespec *deadline)
{
    pthread_mutex_lock(&job_lock);
    while (running && !hung && pthread_cond_timedwait(&job_ended, &job_lock, deadline) != ETIMEDOUT) {
    }
    bool ours = !running;
    running = true;
    pthread_mutex_unlock(&job_lock);
    return ours;
}

static void give_turn(void)
{
    pthread_mutex_lock(&job_lock);
    running = false;
    pthread_cond_broadcast(&job_ended);
    pthread_mutex_unlock(&job_lock);
}

/* False when the job overran the deadline: then it belongs to its thread, and may be gone already. */
static bool wait_for_end(job *own, const struct timespec *deadline)
{
    pthread_mutex_lock(&job_lock);
    while (!own->done && pthread_cond_timedwait(&job_ended, &job_lock, deadline) != ETIMEDOUT) {
    }
    bool ended = own->done;
    own->left = !ended;
    hung = !ended;
    pthread_cond_broadcast(&job_ended); /* those who wait for their turn need not wait for a hanging one */
    pthread_mutex_unlock(&job_lock);
    return ended;
}

static gpuhal_cuda_why failed(gpuhal_missing reason, const char *text)
{
    gpuhal_cuda_why why = {.reason = reason};
    snprintf(why.text, sizeof why.text, "%s", text);
    return why;
}

static struct timespec make_deadline(void)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += DEADLINE_S;
    return deadline;
}

/* @p out_left: the job is not the caller's any more. */
static gpuhal_cuda_why run(job *own, bool *out_left)
{
    struct timespec deadline = make_deadline();
    *out_left = false;
    if (!take_turn(&deadline)) {
        return failed(GPUHAL_MISSING_TIMED_OUT, "an earlier call of NVML hangs, so NVML is not asked");
    }
    pthread_t thread;
    deadline = make_deadline(); /* of our own job: the one before it may have been slow */
    if (start_thread(&thread, own) != 0) {
        give_turn();
        return failed(GPUHAL_MISSING_FAILED, "no thread could be started to ask NVML");
    }
    if (!wait_for_end(own, &deadline)) {
        pthread_detach(thread);
        *out_left = true;
        return failed(GPUHAL_MISSING_TIMED_OUT, "NVML did not answer in time");
    }
    give_turn();
    pthread_join(thread, NULL);
    return gpuhal_cuda_nvml_why(own->init_code);
}

gpuhal_cuda_why gpuhal_cuda_nvml_run(void (*work)(void *request), void *request, size_t bytes)
{
    if (!is_open()) {
        return failed(GPUHAL_MISSING_NOT_SUPPORTED, "NVML (libnvidia-ml.so.1) cannot be opened");
    }
    pthread_once(&job_once, make_condition);
    job *own = calloc(1, sizeof *own);
    unsigned char *copy = malloc(bytes);
    if (!own || !copy) {
        free(own);
        free(copy);
        return failed(GPUHAL_MISSING_FAILED, "no memory to ask NVML");
    }
    memcpy(copy, request, bytes);
    own->work = work;
    own->request = copy;
    bool left;
    gpuhal_cuda_why why = run(own, &left);
    if (why.reason == 0) {
        memcpy(request, copy, bytes);
    }
    if (!left) {
        free(copy);
        free(own);
    }
    return why;
}

/* ---- devices */

static bool has_uuid(nvmlDevice_t device, const char *wanted)
{
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    return gpuhal_cuda_nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS && strcmp(uuid, wanted) == 0;
}

/* By address. Inside a virtual machine NVML and CUDA may see other addresses, so the UUID has to be the same where it is known.
 */
static nvmlReturn_t find_by_address(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device)
{
    if (entry->pci[0] == '\0' || entry->is_mig) {
        return NVML_ERROR_NOT_FOUND;
    }
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetHandleByPciBusId_v2(entry->pci, out_device);
    if (code == NVML_SUCCESS && entry->nvml_uuid[0] != '\0' && !has_uuid(*out_device, entry->nvml_uuid)) {
        return NVML_ERROR_NOT_FOUND;
    }
    return code;
}

nvmlReturn_t gpuhal_cuda_nvml_find(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device, nvmlDevice_t *out_board)
{
    nvmlReturn_t code = NVML_ERROR_NOT_FOUND;
    if (entry->nvml_uuid[0] != '\0' && gpuhal_cuda_nvml.nvmlDeviceGetHandleByUUID) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetHandleByUUID(entry->nvml_uuid, out_device);
    }
    if (code == NVML_ERROR_NOT_FOUND || code == NVML_ERROR_INVALID_ARGUMENT) {
        code = find_by_address(entry, out_device);
    }
    *out_board = *out_device;
    if (code == NVML_SUCCESS && entry->is_mig && gpuhal_cuda_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle) {
        (void)gpuhal_cuda_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(*out_device, out_board);
    }
    return code;
}
