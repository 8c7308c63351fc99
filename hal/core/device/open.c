/* device/open.c: opens a device once. The device is either created by the plugin, or adopted from the caller.
 *
 * A device is opened without its lock, on a thread that is abandoned if the driver hangs (base/job.h). An adopted
 * device is opened on the caller's thread, whose current context may matter. So is the library's own CPU device. A
 * second caller waits on the condition until its own deadline. After the deadline of an opening, the device counts as
 * lost (hung), and must not be opened again before the abandoned thread has returned. That thread closes the device
 * that it opened.
 */
#include "device/snapshot.h"

#include "base/call.h"
#include "base/error.h"
#include "base/job.h"
#include "device/cached.h"
#include "device/trace.h"
#include "loader/candidates.h"
#include "loader/slot_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fact was checked earlier. A value that is not a power of two counts as 1. */
static uint64_t alignment_mask(const gpuhal_facts *facts, gpuhal_key key)
{
    uint64_t alignment = gpuhal_facts_u64(facts, key, 1);
    return alignment && (alignment & (alignment - 1)) == 0 ? alignment - 1 : 0;
}

static gpuhal_status another_identity(const gpuhal_device *device, const gpuhal_listed_device *there)
{
    static const struct {
        gpuhal_key key;
        const char *word;
    } names[] = {{GPUHAL_FACT_UUID, "UUID"},
                 {GPUHAL_FACT_PCI_ADDRESS, "PCI address"},
                 {GPUHAL_FACT_PARTITION, "partition"},
                 {GPUHAL_FACT_NAME, "name"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *then = gpuhal_facts_text(&device->listed->facts, names[i].key),
                   *now = gpuhal_facts_text(&there->facts, names[i].key);
        if (then && now && strcmp(then, now) != 0) {
            return gpuhal_error_set(
                GPUHAL_ERROR_NO_DEVICE,
                "%s: its %s was %s when the device was listed, but the driver in this process reports %s: another "
                "device has its number here, or the plugin does not state the same identity in every process",
                device->id, names[i].word, then, now);
        }
    }
    return gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE, "%s: the driver lists another device in this process", device->id);
}

/* Most drivers keep the list of devices made at their start, even if the driver in a later helper finds other
 * devices. */
static gpuhal_status not_in_this_process(const gpuhal_device *device, const gpuhal_listed_devices *devices)
{
    const gpuhal_listed_device *there = gpuhal_listed_devices_find(devices, device->listed->index);
    gpuhal_status status =
        there ? another_identity(device, there)
              : gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                                 "%s: the driver in this process does not list the device: it was removed after it was "
                                 "listed, or added after the driver had started (then restart the program)",
                                 device->id);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

/* Marks the device as lost (hung), and reports this once. Preserves the last error. */
static void opening_hangs(gpuhal_device *device)
{
    gpuhal_error_detail before;
    if (atomic_load(&device->lost) != GPUHAL_LOST_VANISHED && gpuhal_device_give_up(device)) {
        gpuhal_error_save(&before);
        gpuhal_device_report_hang(device);
        (void)gpuhal_error_restore(&before);
    }
}

/* Marks all devices of a plugin that hangs while starting or listing, because the call blocks them until it returns. */
static void backend_hangs(gpuhal_device *device)
{
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        gpuhal_device *other = gpuhal_device_at(device->gpu, d);
        if (strcmp(other->candidate->name, device->candidate->name) == 0) {
            opening_hangs(other);
        }
    }
}

gpuhal_status gpuhal_device_start_backend(gpuhal_device *device, gpuhal_backend **out_backend,
                                          const gpuhal_listed_device **out_listed)
{
    if (atomic_load(&device->lost) == GPUHAL_LOST_VANISHED) {
        return gpuhal_device_unusable(device);
    }
    gpuhal_status status =
        gpuhal_backend_start(device->candidate, device->gpu->settings.helper_deadline_ns, out_backend);
    if (status) {
        gpuhal_error_add_device(device->candidate->name, device->id);
        gpuhal_cached_failed(device, status);
        if (status == GPUHAL_ERROR_TIMEOUT) {
            backend_hangs(device);
        }
        return status;
    }
    *out_listed = gpuhal_listed_find_same(gpuhal_backend_devices(*out_backend), device->listed);
    if (!*out_listed) {
        /* The device may have appeared after the driver listed its devices. */
        uint64_t since_ns = gpuhal_device_snapshot_now(device->gpu)->begun_ns;
        status = gpuhal_backend_refresh(*out_backend, since_ns, device->gpu->settings.helper_deadline_ns);
        if (status == GPUHAL_ERROR_TIMEOUT) {
            backend_hangs(device);
            return status;
        }
        *out_listed = gpuhal_listed_find_same(gpuhal_backend_devices(*out_backend), device->listed);
    }
    atomic_store_explicit(&device->here, *out_listed, memory_order_release);
    gpuhal_cached_compare(device, *out_backend, *out_listed);
    return *out_listed ? GPUHAL_OK : not_in_this_process(device, gpuhal_backend_devices(*out_backend));
}

/* Clears a loss that a failed attempt to open the device may have left. A vanished device stays vanished. */
static void begin_anew(gpuhal_device *device)
{
    uint32_t lost = atomic_load(&device->lost);
    while (lost != GPUHAL_LOST_VANISHED &&
           !atomic_compare_exchange_weak(&device->lost, &lost, (uint32_t)GPUHAL_NOT_LOST)) {
    }
}

/* Keeps the plugin's report after a success, because it explains which features an adopted device lacks. */
static void keep_what_it_lacks(gpuhal_device *device)
{
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    bool lacks = detail.report_status != GPUHAL_OK;
    snprintf(device->lacks, sizeof device->lacks, "%.159s", lacks ? detail.report_text : "");
}

gpuhal_status gpuhal_device_lacks(gpuhal_device *device, const char *what)
{
    gpuhal_error_forget_report();
    if (device->lacks[0]) {
        (void)gpuhal_error_report(GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, device->lacks);
    }
    return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED, "%s", what);
}

/* ---- one attempt to open */

typedef struct opening {
    gpuhal_job job;
    const gpuhal_plugin *plugin; /* valid until the process exits, like the plugin's backend */
    gpuhal_plugin_instance *instance;
    uint32_t index;
    const gpuhal_native *adopt; /* owned by the caller, valid until the call ends; NULL if none */
    /* The watchdog's subject: the device or, in a job, the attempt itself, which has its own deadline. */
    const void *subject;
    gpuhal_status status;
    const char *failed; /* the action that failed */
    gpuhal_plugin_device *handle;
    gpuhal_slots slots;
    gpuhal_slots_text text;
    char broken[160]; /* the text of `failed` if the slots break a rule */
} opening;

/* The device is not opened if its slots break a rule. */
static void read_slots(opening *own, const gpuhal_ops *ops)
{
    if (gpuhal_slots_read(ops, &own->slots, &own->text)) {
        return;
    }
    const gpuhal_call call = gpuhal_call_blocking(own->subject, 0);
    own->plugin->close(own->handle);
    gpuhal_call_end(call);
    gpuhal_error_forget_report();
    snprintf(own->broken, sizeof own->broken, "the opened device: %s", own->text.problem);
    own->status = GPUHAL_ERROR_DRIVER;
    own->failed = own->broken;
}

static void run_opening(gpuhal_job *job)
{
    opening *own = (opening *)job;
    gpuhal_ops ops = {.size = sizeof ops};
    own->failed = "describing the device";
    gpuhal_call call = gpuhal_call_prompt(own->subject);
    own->status = own->plugin->describe(gpuhal_host_table(), own->instance, own->index, &ops);
    gpuhal_call_end(call);
    if (own->status) {
        return;
    }
    own->failed = own->adopt ? "adopting the caller's device" : "opening the device";
    call = gpuhal_call_blocking(own->subject, 0);
    own->status = own->plugin->open(gpuhal_host_table(), own->instance, own->index, own->adopt, &own->handle, &ops);
    gpuhal_call_end(call);
    if (!own->status) {
        read_slots(own, &ops);
    }
}

static void close_opening(gpuhal_job *job)
{
    opening *own = (opening *)job;
    if (!own->status) {
        const gpuhal_call call = gpuhal_call_blocking(own, 0);
        own->plugin->close(own->handle);
        gpuhal_call_end(call);
    }
}

static void free_opening(gpuhal_job *job)
{
    free(job);
}

/* Called only by the opening thread. Other threads read the members after `state` has changed. */
static void take_opening(gpuhal_device *device, const opening *own, const gpuhal_facts *facts)
{
    device->slots = own->slots;
    device->handle = own->handle;
    if (own->text.unknown[0]) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s: %s", device->id, own->text.unknown);
    }
    gpuhal_trace_slots(device);
    device->memory_kinds = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    device->copy_mask = alignment_mask(facts, GPUHAL_FACT_COPY_ALIGNMENT_BYTES);
    device->fill_mask = alignment_mask(facts, GPUHAL_FACT_FILL_ALIGNMENT_BYTES);
    device->allocation_max_bytes = gpuhal_facts_u64(facts, GPUHAL_FACT_ALLOCATION_MAX_BYTES, UINT64_MAX);
}

/* An adopted device has no deadline. */
static gpuhal_status run_in_time(gpuhal_device *device, opening *own)
{
    if (own->adopt) {
        gpuhal_error_forget_report();
        run_opening(&own->job);
        if (own->status) {
            return gpuhal_device_failed(device, own->status, "%s", own->failed);
        }
        keep_what_it_lacks(device);
        return GPUHAL_OK;
    }
    gpuhal_job_state state = gpuhal_job_run(&own->job, device->gpu->settings.hang_ns);
    if (state == GPUHAL_JOB_NO_THREAD) {
        gpuhal_error_add_device(device->candidate->name, device->id);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    if (state == GPUHAL_JOB_ABANDONED) {
        gpuhal_job_retain(&own->job);
        device->abandoned = &own->job;
        opening_hangs(device);
        return gpuhal_device_unusable(device);
    }
    if (own->status) {
        gpuhal_error_restore(&own->job.detail);
        return gpuhal_device_failed(device, own->status, "%s", own->failed);
    }
    return GPUHAL_OK;
}

static bool is_still_opening(gpuhal_device *device)
{
    if (device->abandoned && atomic_load(&device->abandoned->ended)) {
        gpuhal_job_release(device->abandoned);
        device->abandoned = NULL;
    }
    return device->abandoned != NULL;
}

static gpuhal_status open_now(gpuhal_device *device, const gpuhal_native *adopt)
{
    const gpuhal_listed_device *listed = NULL;
    if (is_still_opening(device)) {
        return gpuhal_device_unusable(device);
    }
    gpuhal_status status = gpuhal_device_start_backend(device, &device->backend, &listed);
    opening *own = status ? NULL : calloc(1, sizeof *own);
    if (!own) {
        return status ? status : gpuhal_error_host_memory();
    }
    begin_anew(device);
    device->plugin = gpuhal_backend_plugin(device->backend);
    device->gpu->layers.watch(device);
    gpuhal_job_init(&own->job, run_opening, close_opening, free_opening);
    own->job.calls_no_driver = own->job.at_once = gpuhal_candidate_is_own_cpu(device->candidate);
    own->plugin = device->plugin;
    own->instance = gpuhal_backend_instance(device->backend);
    own->index = listed->index;
    own->adopt = adopt;
    own->subject = adopt ? (const void *)device : own;
    status = run_in_time(device, own);
    if (!status) {
        take_opening(device, own, &listed->facts);
        begin_anew(device); /* another caller, or the watchdog, may have marked the device as lost */
        device->gpu->layers.watch(device);
        gpuhal_cached_opened(device);
    }
    gpuhal_job_release(&own->job);
    return status;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* *out_state is CLOSED for the one thread that must open the device. It is OPENING after the deadline, if the device
 * hangs, and for the opening thread itself. The deadline is long enough for a start, a second listing and an opening
 * within their own deadlines. */
static void claim_opening(gpuhal_device *device, int *out_state, bool *out_by_itself)
{
    const gpuhal_settings *settings = &device->gpu->settings;
    uint64_t waited = 0,
             deadline_ns = sum(sum(settings->helper_deadline_ns, settings->helper_deadline_ns), settings->hang_ns);
    gpuhal_mutex_lock(&device->mutex);
    bool by_itself = atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && device->opener == gpuhal_job_caller();
    while (atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && !by_itself && waited < deadline_ns &&
           atomic_load(&device->lost) != GPUHAL_LOST_HUNG) {
        waited += gpuhal_job_wait(&device->condition, &device->mutex, deadline_ns - waited);
    }
    *out_state = atomic_load(&device->state);
    if (*out_state == GPUHAL_DEVICE_CLOSED) {
        atomic_store(&device->state, GPUHAL_DEVICE_OPENING);
        device->opener = gpuhal_job_caller();
    }
    gpuhal_mutex_unlock(&device->mutex);
    *out_by_itself = by_itself;
}

/* Fails because the device is already being opened, either by this thread or by a thread that hangs. */
static gpuhal_status stuck_opening(gpuhal_device *device, bool by_itself)
{
    if (by_itself) {
        return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s is being opened by this thread already", device->id);
    }
    opening_hangs(device);
    return gpuhal_device_unusable(device);
}

static gpuhal_status open_once(gpuhal_device *device, const gpuhal_native *adopt, bool *out_opened)
{
    int state = GPUHAL_DEVICE_CLOSED;
    bool by_itself = false;
    *out_opened = false;
    if (gpuhal_is_inherited(device->gpu)) {
        return gpuhal_device_unusable(device);
    }
    claim_opening(device, &state, &by_itself);
    if (state == GPUHAL_DEVICE_OPENING) {
        return stuck_opening(device, by_itself);
    }
    if (state == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    gpuhal_status status = open_now(device, adopt);
    if (status) {
        device->gpu->layers.unwatch(device);
    }
    gpuhal_mutex_lock(&device->mutex);
    atomic_store_explicit(&device->state, status ? GPUHAL_DEVICE_CLOSED : GPUHAL_DEVICE_IS_OPEN, memory_order_release);
    device->opener = NULL;
    gpuhal_condition_signal_all(&device->condition);
    gpuhal_mutex_unlock(&device->mutex);
    *out_opened = !status;
    if (!status) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_DEBUG, "opened %s%s", device->id,
                        adopt ? " over the caller's device" : "");
    }
    return status;
}

gpuhal_status gpuhal_device_open(gpuhal_device *device)
{
    bool opened = false;
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_open: device is NULL");
    }
    if (atomic_load_explicit(&device->state, memory_order_acquire) == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    return open_once(device, NULL, &opened);
}

/* Checks only the type, which must be in the fact that lists the types for open and wrap_memory. The plugin checks the
 * objects. */
gpuhal_status gpuhal_device_takes(const gpuhal_device *device, const gpuhal_native *native)
{
    uint64_t kinds = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_ADOPT_KINDS, 0);
    gpuhal_status status = GPUHAL_OK;
    if (kinds == 0) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s cannot adopt objects of the caller", device->id);
    } else if (native->type >= 64 || !(kinds >> native->type & 1)) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s does not accept native objects of type %s", device->id,
                             gpuhal_native_type_name(native->type));
    }
    if (status) {
        gpuhal_error_add_device(device->candidate->name, device->id);
    }
    return status;
}

gpuhal_status gpuhal_device_adopt(gpuhal_device *device, const gpuhal_native *given)
{
    bool opened = false;
    if (!device || !given || given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_device_adopt: an argument is NULL, or the size of native is 0");
    }
    gpuhal_native native = {0};
    memcpy(&native, given, given->size < sizeof native ? given->size : sizeof native);
    native.size = sizeof native;
    gpuhal_status status = gpuhal_check(device->gpu);
    status = status ? status : gpuhal_device_takes(device, &native);
    status = status ? status : open_once(device, &native, &opened);
    if (!status && !opened) {
        status = gpuhal_error_set(
            GPUHAL_ERROR_BUSY, "%s is open already: call gpuhal_device_adopt() before any other code opens the device",
            device->id);
        gpuhal_error_add_device(device->candidate->name, device->id);
    }
    return status;
}

const char *gpuhal_native_type_name(uint32_t type)
{
    static const char names[][17] = {
        "unknown",      "opencl_device",    "opencl_buffer", "opencl_queue", "vulkan_device", "vulkan_buffer",
        "vulkan_queue", "vulkan_semaphore", "cuda_device",   "cuda_memory",  "cuda_stream",   "cuda_event",
        "hip_device",   "hip_memory",       "hip_stream",    "hip_event",    "opencl_event"};
    return type >= GPUHAL_VENDOR_NATIVE_FIRST && type < 64 ? "vendor"
                                                           : names[type < sizeof names / sizeof *names ? type : 0];
}
