/* device/fault_log.c: see fault_log.h. Faults are recorded in devices and links without a lock. `writing` is locked
 * while the faults are collected and written. */
#include "device/fault_log.h"

#include "base/error.h"
#include "device/link.h"
#include "device/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_fault_log {
    gpuhal_mutex writing;
    _Atomic(const void *) writer; /* thread that holds `writing`, identified by the address of its mark */
    gpuhal_worker worker;
};

static _Thread_local char thread_mark;

/* States of gpuhal_fault_note.words. NO_WORDS means that `detail` is empty. WORDS_BUSY means that the thread that set
 * this state is using `detail`. WORDS_NEW means that `detail` is new, and WORDS_KEPT means that a write has collected
 * it. */
enum { NO_WORDS, WORDS_BUSY, WORDS_NEW, WORDS_KEPT };
#define DETAIL_BYTES sizeof(((gpuhal_fault_note *)0)->detail)

static bool take_words(gpuhal_fault_note *note, int from, int other)
{
    int state = from;
    if (atomic_compare_exchange_strong(&note->words, &state, WORDS_BUSY)) {
        return true;
    }
    state = other;
    return atomic_compare_exchange_strong(&note->words, &state, WORDS_BUSY);
}

gpuhal_fault_log *gpuhal_fault_log_create(void)
{
    gpuhal_fault_log *log = calloc(1, sizeof *log);
    if (log) {
        gpuhal_mutex_init(&log->writing);
    }
    return log;
}

static const char *driver_of(const gpuhal_device *device)
{
    const char *version = gpuhal_facts_text(&gpuhal_device_current(device)->facts, GPUHAL_FACT_DRIVER_VERSION);
    return version ? version : "";
}

static const char *stated(const gpuhal_interface *iface, gpuhal_identity_level level)
{
    return iface && !(iface->doubted & 1u << level) ? iface->values[level] : NULL;
}

/* Sets the values that identify the device in a record that may have other numbers; cached.c records the same values.
 * The PCI address and UUID of a device that is no longer listed are NULL. */
static void set_sighting(const gpuhal_device *device, gpuhal_sighting *out_sighting)
{
    const gpuhal_interface *iface = gpuhal_device_snapshot_interface(gpuhal_device_snapshot_now(device->gpu), device);
    const gpuhal_facts *facts = &device->listed->facts;
    *out_sighting = (gpuhal_sighting){
        .known = device->interface_number,
        .backend = device->candidate->name,
        .pci = stated(iface, GPUHAL_IDENTITY_PCI),
        .uuid = stated(iface, GPUHAL_IDENTITY_UUID),
        .partition = iface ? iface->partition_name : gpuhal_facts_text(facts, GPUHAL_FACT_PARTITION),
        .name = gpuhal_facts_text(facts, GPUHAL_FACT_NAME),
    };
}

/* ---- gathering */

typedef struct gathered {
    gpuhal_database_fault *faults;
    gpuhal_fault_note **notes; /* source of each fault */
    char (*details)[DETAIL_BYTES];
    gpuhal_database_link *links;
    gpuhal_link **of_links;
    gpuhal_sighting *about; /* the devices, by position */
    size_t fault_count, link_count;
} gathered;

static void count_notes(const gpuhal *gpu, size_t *out_faults, size_t *out_links)
{
    *out_faults = *out_links = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, d);
        for (size_t i = 0; i < GPUHAL_FAULT_NOTES; i++) {
            *out_faults += atomic_load(&device->faults[i].count) > 0;
        }
        const gpuhal_link *link;
        for (uint32_t other = 0; (link = gpuhal_link_to(device, other)) != NULL; other++) {
            *out_links += atomic_load(&link->unwritten) != 0;
        }
    }
}

static void gather_faults(gpuhal_device *device, size_t most, gathered *to)
{
    for (size_t i = 0; i < GPUHAL_FAULT_NOTES && to->fault_count < most; i++) {
        gpuhal_fault_note *note = &device->faults[i];
        /* A fault whose detail is being written is left for the next write. */
        if (atomic_load(&note->count) > 0 && take_words(note, WORDS_NEW, WORDS_KEPT)) {
            memcpy(to->details[to->fault_count], note->detail, DETAIL_BYTES);
            uint64_t count = atomic_exchange(&note->count, 0);
            atomic_store(&note->words, WORDS_KEPT);
            to->notes[to->fault_count] = note;
            to->faults[to->fault_count] = (gpuhal_database_fault){
                .kind = GPUHAL_FAULT_HANG + (uint32_t)i,
                .iface = device->position + 1,
                .driver_version = (char *)driver_of(device),
                .detail = to->details[to->fault_count],
                .count = count,
            };
            to->fault_count++;
        }
    }
}

static void gather_links(gpuhal_device *from, uint32_t devices, size_t most, gathered *to)
{
    for (uint32_t other = 0; other < devices && to->link_count < most; other++) {
        gpuhal_link *link = gpuhal_link_to(from, other);
        if (!atomic_exchange(&link->unwritten, 0)) {
            continue;
        }
        /* If a copy failed and nothing was measured, only the state "unverified" is known. */
        bool verified = atomic_load(&link->tried) && atomic_load(&link->verified);
        const char *why = atomic_load(&link->why_broken), *reason = why ? why : "bytes arrived wrong";
        to->of_links[to->link_count] = link;
        to->links[to->link_count++] = (gpuhal_database_link){
            .from = from->position + 1,
            .to = other + 1,
            .from_driver = (char *)driver_of(from),
            .to_driver = (char *)driver_of(gpuhal_device_at(from->gpu, other)),
            .verified = verified,
            .path = atomic_load(&link->path),
            .bytes_per_second = atomic_load(&link->bytes_per_second),
            .latency_ns = atomic_load(&link->latency_ns),
            .reason = verified ? NULL : (char *)reason,
            .tried = atomic_load(&link->tried_seconds),
        };
    }
}

static bool gather(gpuhal *gpu, gathered *out)
{
    size_t faults, links;
    const uint32_t count = gpuhal_device_count(gpu);
    count_notes(gpu, &faults, &links);
    *out = (gathered){
        .faults = calloc(faults + 1, sizeof *out->faults),
        .notes = calloc(faults + 1, sizeof *out->notes),
        .details = calloc(faults + 1, sizeof *out->details),
        .links = calloc(links + 1, sizeof *out->links),
        .of_links = calloc(links + 1, sizeof *out->of_links),
        .about = calloc(count + 1u, sizeof *out->about),
    };
    if (!out->faults || !out->notes || !out->details || !out->links || !out->of_links || !out->about) {
        return false;
    }
    for (uint32_t d = 0; d < count; d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        set_sighting(device, &out->about[d]);
        gather_faults(device, faults, out);
        gather_links(device, count, links, out);
    }
    return true;
}

/* Restores the faults and links that could not be merged for lack of memory. */
static void put_back(const gathered *own)
{
    for (size_t i = 0; i < own->fault_count; i++) {
        atomic_fetch_add(&own->notes[i]->count, own->faults[i].count);
    }
    for (size_t i = 0; i < own->link_count; i++) {
        atomic_store(&own->of_links[i]->unwritten, 1);
    }
}

static gpuhal_status write_notes(gpuhal *gpu)
{
    gathered own = {0};
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&gpu->fault_log->writing);
    atomic_store(&gpu->fault_log->writer, &thread_mark);
    if (!gather(gpu, &own)) {
        status = gpuhal_error_host_memory();
    } else if (own.fault_count + own.link_count > 0) {
        gpuhal_changes changes = {
            .now = gpuhal_os_wall_clock(),
            .about = own.about,
            .links = own.links,
            .link_count = own.link_count,
            .faults = own.faults,
            .fault_count = own.fault_count,
        };
        status = gpuhal_registry_update(gpu->registry, &changes);
        if (status == GPUHAL_ERROR_HOST_MEMORY) {
            put_back(&own);
        }
        if (!status && changes.left_out > 0) {
            status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND,
                                      "%zu results are not recorded: the registry has no record of their device",
                                      changes.left_out);
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "%s", gpuhal_last_error()->sentence);
        }
    }
    atomic_store(&gpu->fault_log->writer, NULL);
    gpuhal_mutex_unlock(&gpu->fault_log->writing);
    free(own.faults);
    free(own.notes);
    free(own.details);
    free(own.links);
    free(own.of_links);
    free(own.about);
    return status;
}

/* ---- the worker */

static void write_in_background(void *gpu)
{
    gpuhal_os_thread_name("gpuhal-faults");
    (void)write_notes(gpu); /* the registry has logged a failed write */
}

/* If no thread can be started, the recorded faults are written later. */
static void wake(gpuhal *gpu)
{
    (void)gpuhal_worker_request(&gpu->fault_log->worker, gpu, write_in_background, gpu);
}

/* Does nothing in a nested call, because a log listener may call this function during a write. */
gpuhal_status gpuhal_fault_log_write(gpuhal *gpu)
{
    return atomic_load(&gpu->fault_log->writer) == &thread_mark ? GPUHAL_OK : write_notes(gpu);
}

void gpuhal_fault_log_destroy(gpuhal *gpu)
{
    gpuhal_fault_log *log = gpu->fault_log;
    if (!log) {
        return;
    }
    (void)gpuhal_fault_log_write(gpu);
    gpuhal_mutex_finish(&log->writing);
    free(log);
    gpu->fault_log = NULL;
}

/* ---- recording */

static bool is_kept(const gpuhal_device *device)
{
    return device->interface_number != 0 && gpuhal_registry_directory(device->gpu->registry) != NULL;
}

void gpuhal_fault_log_fault(gpuhal_device *device, gpuhal_fault_kind kind)
{
    gpuhal_fault_note *note = &device->faults[kind - GPUHAL_FAULT_HANG];
    if (!is_kept(device)) {
        return;
    }
    if (take_words(note, NO_WORDS, WORDS_KEPT)) {
        snprintf(note->detail, sizeof note->detail, "%s", gpuhal_last_error()->sentence);
        atomic_store(&note->words, WORDS_NEW);
    }
    atomic_fetch_add(&note->count, 1);
    if (!atomic_exchange(&note->reported, true)) {
        wake(device->gpu);
    }
}

void gpuhal_fault_log_link(gpuhal_device *from, gpuhal_device *to, bool at_once)
{
    gpuhal_link *link = gpuhal_link_between(from, to);
    if (!is_kept(from) || !is_kept(to)) {
        return;
    }
    atomic_store(&link->tried_seconds, gpuhal_os_wall_clock());
    atomic_store(&link->unwritten, 1);
    if (at_once) {
        wake(from->gpu);
    }
}

/* ---- reading */

static bool same(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

static uint32_t number_of(const gpuhal_snapshot *snapshot, const gpuhal_device *device)
{
    gpuhal_sighting seen;
    set_sighting(device, &seen);
    return gpuhal_database_find(&snapshot->database, &seen);
}

bool gpuhal_fault_log_recall(const gpuhal_device *from, const gpuhal_device *to, gpuhal_recalled_link *out_link)
{
    bool found = false;
    if (from->interface_number == 0 || to->interface_number == 0) {
        return false;
    }
    size_t count;
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(from->gpu->registry);
    const gpuhal_database_link *links = gpuhal_database_links(&snapshot->database, &count);
    const uint32_t from_number = number_of(snapshot, from), to_number = number_of(snapshot, to);
    for (size_t i = 0; i < count && !found; i++) {
        const gpuhal_database_link *link = &links[i];
        found = link->from == from_number && link->to == to_number && same(link->from_driver, driver_of(from)) &&
                same(link->to_driver, driver_of(to));
        if (found) {
            *out_link = (gpuhal_recalled_link){
                .verified = link->verified,
                .path = link->path,
                .bytes_per_second = link->bytes_per_second,
                .latency_ns = link->latency_ns,
                .tried_seconds = link->tried,
            };
            snprintf(out_link->reason, sizeof out_link->reason, "%s", link->reason ? link->reason : "");
        }
    }
    gpuhal_snapshot_release(snapshot);
    return found;
}
