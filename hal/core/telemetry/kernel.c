/* telemetry/kernel.c: see kernel.h. */
#include "telemetry/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices */

gpuhal_kernel_device *gpuhal_kernel_device_get(gpuhal_kernel_devices *devices, const char *path)
{
    gpuhal_kernel_device *found = NULL;
    gpuhal_mutex_lock(&devices->mutex);
    for (uint32_t i = 0; i < devices->count && !found; i++) {
        found = strcmp(devices->list[i]->path, path) == 0 ? devices->list[i] : NULL;
    }
    if (!found && (found = calloc(1, sizeof *found))) {
        snprintf(found->path, sizeof found->path, "%s", path);
        gpuhal_mutex_init(&found->mutex);
        if (devices->count < GPUHAL_KERNEL_DEVICES) {
            devices->list[devices->count++] = found;
            atomic_store(&found->references, 1);
        }
    }
    if (found) {
        atomic_fetch_add(&found->references, 1);
    }
    gpuhal_mutex_unlock(&devices->mutex);
    return found;
}

void gpuhal_kernel_device_release(gpuhal_kernel_device *device)
{
    if (device && atomic_fetch_sub(&device->references, 1) == 1) {
        gpuhal_mutex_finish(&device->mutex);
        free(device);
    }
}

/* ---- one reading */

struct gpuhal_kernel_reading {
    gpuhal_job job;
    gpuhal_kernel_device *device; /* with a reference */
    gpuhal_files files;
    bool may_wake;
    gpuhal_mutex mutex;          /* protects the members below */
    bool closed;                 /* the caller has read the values */
    bool looked, absent, asleep; /* the files were looked for; the device has no files; the device sleeps */
    bool returned, counted;      /* protected by the device's mutex */
    char driver[GPUHAL_DRIVER_BYTES];
    uint32_t count;
    gpuhal_value values[]; /* written by the job; until a value is read, all its members but the key are zero or "" */
};

/* Stores the value and returns true, or returns false if the caller no longer waits. */
static bool put(gpuhal_kernel_reading *own, uint32_t i, const gpuhal_value *value)
{
    gpuhal_mutex_lock(&own->mutex);
    const bool wanted = !own->closed;
    if (wanted) {
        own->values[i] = *value;
    }
    gpuhal_mutex_unlock(&own->mutex);
    return wanted;
}

static bool is_asleep(const gpuhal_files *files)
{
    char text[24];
    gpuhal_value ignored = {0};
    return gpuhal_files_line(files->device, "power/runtime_status", text, sizeof text, &ignored) &&
           strcmp(text, "suspended") == 0;
}

/* Reads the name from a link to ".../drivers/amdgpu". */
static void read_driver(gpuhal_files *files)
{
    char path[GPUHAL_PATH_BYTES], *target = NULL;
    gpuhal_file_info info;
    snprintf(path, sizeof path, "%s/driver", files->device);
    if (!gpuhal_os_link_info(path, &info, &target) && target) {
        const char *name = strrchr(target, '/');
        snprintf(files->driver, sizeof files->driver, "%s", name ? name + 1 : target);
    }
    free(target);
}

/* For a device without a power sensor, calculates the power from the growth of the energy counter. */
static void power_from_energy(gpuhal_kernel_reading *own, gpuhal_value *value)
{
    gpuhal_value energy = {.key = GPUHAL_VALUE_ENERGY_MICROJOULES};
    gpuhal_sensors_energy(&own->files, &energy);
    if (energy.missing) {
        gpuhal_value_improve(value, &energy);
        value->key = GPUHAL_VALUE_POWER_MICROWATTS;
        return;
    }
    uint64_t microwatts = 0;
    const uint64_t now = gpuhal_os_monotonic_ns();
    gpuhal_mutex_lock(&own->device->mutex);
    const gpuhal_rate_state state = gpuhal_rate_take(&own->device->energy, now, energy.u64, &microwatts);
    gpuhal_mutex_unlock(&own->device->mutex);
    if (state == GPUHAL_RATE_KNOWN) {
        gpuhal_value_set(value, microwatts, "hwmon");
    } else if (state == GPUHAL_RATE_FIRST) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_READ, "it needs two readings of the counter of energy");
    } else {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the counter of energy went back");
    }
}

static void read_one(gpuhal_kernel_reading *own, uint32_t number, gpuhal_value *value)
{
    gpuhal_kernel_value(number, &own->files, value);
    if (value->key == GPUHAL_VALUE_POWER_MICROWATTS && value->missing == GPUHAL_MISSING_NOT_SUPPORTED &&
        !gpuhal_files_are_of_bus(&own->files)) {
        power_from_energy(own, value);
    }
    if (own->files.is_part) {
        gpuhal_value_of_board(value);
    }
}

static void run(gpuhal_job *job)
{
    gpuhal_kernel_reading *own = (gpuhal_kernel_reading *)job;
    gpuhal_file_info info;
    const bool absent = gpuhal_os_file_info(own->files.device, &info) || !info.directory;
    const bool asleep = !absent && !own->may_wake && is_asleep(&own->files);
    bool wanted = !absent && !asleep;
    read_driver(&own->files);
    gpuhal_mutex_lock(&own->mutex);
    own->looked = true;
    own->absent = absent;
    own->asleep = asleep;
    memcpy(own->driver, own->files.driver, sizeof own->driver);
    gpuhal_mutex_unlock(&own->mutex);
    for (uint32_t number = 0; wanted && number < gpuhal_kernel_value_count(); number++) {
        for (uint32_t i = 0; wanted && i < own->count; i++) {
            gpuhal_value value = {.key = own->values[i].key};
            if (value.key == gpuhal_kernel_key(number)) {
                read_one(own, number, &value);
                wanted = put(own, i, &value);
            }
        }
    }
}

/* Called after an abandoned reading has returned. */
static void leave(gpuhal_job *job)
{
    gpuhal_kernel_reading *own = (gpuhal_kernel_reading *)job;
    gpuhal_mutex_lock(&own->device->mutex);
    own->device->abandoned -= own->counted;
    own->returned = true;
    gpuhal_mutex_unlock(&own->device->mutex);
}

static void destroy(gpuhal_job *job)
{
    gpuhal_kernel_reading *own = (gpuhal_kernel_reading *)job;
    gpuhal_mutex_finish(&own->mutex);
    gpuhal_kernel_device_release(own->device);
    free(own);
}

static bool is_stuck(gpuhal_kernel_device *device)
{
    gpuhal_mutex_lock(&device->mutex);
    const bool stuck = device->abandoned > 0;
    gpuhal_mutex_unlock(&device->mutex);
    return stuck;
}

static void miss_all(gpuhal_value *values, uint32_t count, const bool *wanted, gpuhal_missing reason, const char *why)
{
    for (uint32_t i = 0; i < count; i++) {
        if (wanted[i] && gpuhal_kernel_has(values[i].key)) {
            gpuhal_value_miss(&values[i], reason, "%s", why);
        }
    }
}

static gpuhal_kernel_reading *make(const gpuhal_kernel_request *request, const gpuhal_value *values, uint32_t count,
                                   const bool *wanted)
{
    gpuhal_kernel_reading *own = calloc(1, sizeof *own + count * sizeof *own->values);
    if (!own) {
        return NULL;
    }
    gpuhal_job_init(&own->job, run, leave, destroy);
    own->job.calls_no_driver = true;
    atomic_fetch_add(&request->device->references, 1);
    own->device = request->device;
    memcpy(own->files.device, request->device->path, sizeof own->files.device);
    own->files.match = request->match;
    snprintf(own->files.root, sizeof own->files.root, "%s", request->root);
    own->files.memory_total = request->memory_total;
    own->files.is_part = request->is_part;
    own->files.left_ns = request->left_ns;
    own->may_wake = request->may_wake;
    gpuhal_mutex_init(&own->mutex);
    for (uint32_t i = 0; i < count; i++) {
        if (wanted[i] && gpuhal_kernel_has(values[i].key)) {
            own->values[own->count++].key = values[i].key;
        }
    }
    return own;
}

gpuhal_kernel_reading *gpuhal_kernel_begin(const gpuhal_kernel_request *request, gpuhal_value *values, uint32_t count,
                                           const bool *wanted)
{
    if (is_stuck(request->device)) {
        miss_all(values, count, wanted, GPUHAL_MISSING_TIMED_OUT, "an earlier reading of its files has not returned");
        return NULL;
    }
    gpuhal_kernel_reading *own = make(request, values, count, wanted);
    if (!own) {
        miss_all(values, count, wanted, GPUHAL_MISSING_FAILED, "out of host memory");
        return NULL;
    }
    (void)gpuhal_job_begin(&own->job);
    return own;
}

static void say_unread(const gpuhal_kernel_reading *own, gpuhal_value *value)
{
    if (own->absent) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "%s", ""); /* no reason, so that another source's reason
                                                                           * is used */
    } else if (own->asleep) {
        gpuhal_value_miss(value, GPUHAL_MISSING_ASLEEP, GPUHAL_SLEEPS);
    } else {
        gpuhal_value_miss(value, GPUHAL_MISSING_TIMED_OUT, "the system's file was not read in time");
    }
}

gpuhal_power gpuhal_kernel_end(gpuhal_kernel_reading *own, uint64_t *left_ns, gpuhal_value *values, uint32_t count,
                               const bool *wanted, char out_driver[GPUHAL_DRIVER_BYTES])
{
    if (!own) {
        return GPUHAL_POWER_UNKNOWN;
    }
    if (own->job.worker && gpuhal_job_await(&own->job, left_ns) == GPUHAL_JOB_ABANDONED) {
        gpuhal_mutex_lock(&own->device->mutex);
        own->counted = !own->returned;
        own->device->abandoned += own->counted;
        gpuhal_mutex_unlock(&own->device->mutex);
    }
    gpuhal_mutex_lock(&own->mutex);
    own->closed = true;
    const gpuhal_power power = !own->looked || own->absent ? GPUHAL_POWER_UNKNOWN
                               : own->asleep               ? GPUHAL_POWER_ASLEEP
                                                           : GPUHAL_POWER_AWAKE;
    memcpy(out_driver, own->driver, sizeof own->driver);
    for (uint32_t i = 0, k = 0; i < count; i++) {
        if (!wanted[i] || !gpuhal_kernel_has(values[i].key)) {
            continue;
        }
        const gpuhal_value *value = &own->values[k++];
        if (value->missing || value->source[0]) {
            values[i] = *value;
        } else {
            say_unread(own, &values[i]);
        }
    }
    gpuhal_mutex_unlock(&own->mutex);
    gpuhal_job_release(&own->job);
    return power;
}
