/* transfer/peer.c: see peer.h. One thread at a time changes a link's state from UNKNOWN to TRYING, and owns the link
 * until it stores the result, so no lock is needed. For each ordered pair of devices, access is enabled in both
 * directions, because either device may run a copy: the destination's by reading over the link, the source's by
 * writing. Both cases are tested. */
#include "transfer/peer.h"

#include "base/error.h"
#include "base/text.h"
#include "device/fault_log.h"
#include "transfer/move.h"
#include "transfer/plugin_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many pages, because a driver may map only some pages of peer memory wrongly. */
#define PROOF_BYTES (512u << 10)

/* Time limit for copying half a MiB: a slower link is useless. */
#define PATIENCE_NS UINT64_C(5000000000)

enum { ENABLED_READING = 1, ENABLED_WRITING = 2 }; /* gpuhal_link.enabled */

typedef struct proof {
    gpuhal_device *to_device, *from_device;
    gpuhal_memory to, from;
    uint64_t to_offset, from_offset, bytes; /* the copy's range; the offsets are odd and different if the devices allow
                                             * it */
    unsigned char *sent, *got;
    bool stuck; /* the driver still uses both memories */
    char how[512]; /* description of the link's fault; "" if no fault was found */
} proof;

bool gpuhal_peer_suits(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    const gpuhal_buffer *both[] = {to, from};
    for (size_t i = 0; i < 2; i++) {
        const gpuhal_buffer *b = both[i];
        bool on_device = !b->memory.host || (b->memory.flags & GPUHAL_MEMORY_DEVICE_LOCAL);
        bool shared = b->charged == 0 || (b->export_kinds & ~(1u << GPUHAL_HANDLE_HOST_POINTER));
        if (!on_device || shared || b->range) { /* peer access does not cover the memory of a range */
            return false;
        }
    }
    return true;
}

static bool is_offered(const gpuhal_device *to, const gpuhal_device *from)
{
    return to->backend == from->backend && to->peers.peer_copy && from->peers.peer_copy &&
           !gpuhal_devices_same_part(to, from);
}

/* ---- access */

static gpuhal_status enable_one(gpuhal_device *device, gpuhal_device *other)
{
    const gpuhal_call call = gpuhal_call_blocking(device, 0);
    return gpuhal_device_result(device, call, device->peers.peer_enable(device->handle, other->handle));
}

static void disable_one(gpuhal_device *device, gpuhal_device *other)
{
    const gpuhal_call call = gpuhal_call_blocking(device, 0);
    device->peers.peer_disable(device->handle, other->handle);
    gpuhal_call_end(call);
}

/* Succeeds even if the source's device cannot access the destination, because a driver that runs the copy on the
 * source's device then finds another path. */
static gpuhal_status enable(gpuhal_link *link, gpuhal_device *to, gpuhal_device *from)
{
    gpuhal_status status = enable_one(to, from);
    if (status) {
        return status;
    }
    link->enabled = ENABLED_READING;
    if (enable_one(from, to) == GPUHAL_OK) {
        link->enabled |= ENABLED_WRITING;
    }
    gpuhal_error_forget_report();
    return GPUHAL_OK;
}

static void disable(gpuhal_link *link, gpuhal_device *to, gpuhal_device *from)
{
    if (link->enabled & ENABLED_WRITING) {
        disable_one(from, to);
    }
    if (link->enabled & ENABLED_READING) {
        disable_one(to, from);
    }
    link->enabled = 0;
}

void gpuhal_peers_destroy(gpuhal *gpu)
{
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *from = gpuhal_device_at(gpu, i);
        for (uint32_t k = 0; k < gpuhal_device_count(gpu); k++) {
            if (gpuhal_device_is_reachable(from) && gpuhal_device_is_reachable(gpuhal_device_at(gpu, k))) {
                disable(gpuhal_link_between(from, gpuhal_device_at(gpu, k)), gpuhal_device_at(gpu, k), from);
            }
        }
    }
}

/* ---- copying */

static gpuhal_status health(gpuhal_device *device)
{
    const gpuhal_call call = gpuhal_call_aside(device);
    return gpuhal_device_result(device, call, device->ops.query_health(device->handle));
}

/* Returns the device that was lost if the plugin returned DEVICE_LOST. If neither device hangs and both devices offer
 * query_health, queries the destination's device and, if it is healthy, the source's device. Unless the queries show
 * that only the source's device failed, returns the destination's device. */
static gpuhal_device *culprit(gpuhal_status status, gpuhal_device *to, gpuhal_device *from)
{
    bool asked = status == GPUHAL_ERROR_DEVICE_LOST && to->ops.query_health && from->ops.query_health &&
                 gpuhal_device_is_reachable(to) && gpuhal_device_is_reachable(from);
    return asked && health(to) == GPUHAL_OK && health(from) != GPUHAL_OK ? from : to;
}

static gpuhal_status peer_copy(gpuhal_plugin_queue *queue, gpuhal_device *to_device, const gpuhal_memory *to,
                               uint64_t to_offset, gpuhal_device *from_device, const gpuhal_memory *from,
                               uint64_t from_offset, uint64_t bytes)
{
    const gpuhal_call call = gpuhal_call_blocking(to_device, bytes);
    return gpuhal_device_result(to_device, call,
                                to_device->peers.peer_copy(queue, to_device->handle, to, to_offset, from_device->handle,
                                                         from, from_offset, bytes));
}

gpuhal_status gpuhal_peer_copy_blocking(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                        gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                        uint64_t bytes)
{
    gpuhal_status status = peer_copy(NULL, to_device, to, to_offset, from_device, from, from_offset, bytes);
    if (!status || status == GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    return gpuhal_device_failed(culprit(status, to_device, from_device), status,
                                "copying %" PRIu64 " bytes from %s to %s", bytes, from_device->id, to_device->id);
}

/* Polls with increasing pauses, which is fast enough because no other work waits for the event. */
static gpuhal_status wait_for(gpuhal_device *runner, gpuhal_plugin_event *event)
{
    uint64_t end = gpuhal_os_monotonic_ns() + PATIENCE_NS, pause = 20000;
    gpuhal_status status = gpuhal_plugin_event_query(runner, event);
    while (status == GPUHAL_NOT_READY && gpuhal_os_monotonic_ns() < end) {
        gpuhal_os_sleep(pause);
        pause = pause < 2000000 ? 2 * pause : pause;
        status = gpuhal_plugin_event_query(runner, event);
    }
    return status == GPUHAL_NOT_READY ? GPUHAL_ERROR_TIMEOUT : status;
}

static gpuhal_status copy_pattern(const proof *p, gpuhal_plugin_queue *queue)
{
    return peer_copy(queue, p->to_device, &p->to, p->to_offset, p->from_device, &p->from, p->from_offset, p->bytes);
}

/* Objects that a stuck driver uses cannot be released and are leaked. The event is recorded and awaited even after a
 * failed copy: part of the copy may still be accessing both memories, which are released next. Returns the first
 * failure. */
static gpuhal_status copy_on_queue(proof *p, gpuhal_device *runner)
{
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *event = NULL;
    gpuhal_error_detail detail;
    const gpuhal_plugin_queue_desc desc = {.size = sizeof desc};
    gpuhal_call call = gpuhal_call_prompt(runner);
    gpuhal_status status =
        gpuhal_device_result(runner, call, runner->queues.queue_create(runner->handle, &desc, &queue));
    if (status) {
        return status;
    }
    status = gpuhal_plugin_event_create(runner, 0, &event);
    if (!status) {
        status = copy_pattern(p, queue);
        gpuhal_error_save(&detail);
        gpuhal_status recorded = gpuhal_plugin_event_record_blocking(runner, queue, event);
        gpuhal_status ended = recorded ? recorded : wait_for(runner, event);
        p->stuck = ended == GPUHAL_ERROR_TIMEOUT && !recorded;
        if (!status) {
            status = ended;
            gpuhal_error_save(&detail);
        }
    } else {
        gpuhal_error_save(&detail);
    }
    if (!p->stuck) {
        if (event) {
            gpuhal_plugin_event_destroy(runner, event);
        }
        call = gpuhal_call_blocking(runner, 0);
        runner->queues.queue_destroy(queue);
        gpuhal_call_end(call);
    }
    (void)gpuhal_error_restore(&detail); /* the detail contains the plugin's description of the failure */
    return status;
}

/* Copies on a new queue if possible, so that a copy that never ends does not block the caller forever. */
static gpuhal_status copy_in_time(proof *p, gpuhal_device *runner)
{
    gpuhal_status status = runner->queues.queue_create ? copy_on_queue(p, runner) : GPUHAL_ERROR_NOT_SUPPORTED;
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? copy_pattern(p, NULL) : status;
}

/* ---- proving */

/* Writes a pattern to the source and a different pattern to the destination. Each run uses new patterns, so that an
 * earlier run's bytes are not mistaken for this run's bytes. */
static gpuhal_status lay_out(proof *p, uint32_t seed)
{
    for (size_t i = 0; i < PROOF_BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        p->sent[i] = (unsigned char)(seed >> 24);
        p->got[i] = (unsigned char)~p->sent[i];
    }
    gpuhal_status status = gpuhal_move(GPUHAL_TO_DEVICE, p->from_device, &p->from, 0, p->sent, PROOF_BYTES);
    return status ? status : gpuhal_move(GPUHAL_TO_DEVICE, p->to_device, &p->to, 0, p->got, PROOF_BYTES);
}

/* `got` contains the destination's bytes before the copy; the copy is repeated in it. `sent` is overwritten. */
static gpuhal_status compare(proof *p, const gpuhal_device *runner)
{
    memcpy(p->got + p->to_offset, p->sent + p->from_offset, (size_t)p->bytes);
    gpuhal_status status = gpuhal_move(GPUHAL_FROM_DEVICE, p->to_device, &p->to, 0, p->sent, PROOF_BYTES);
    size_t wrong = 0, first = PROOF_BYTES;
    for (size_t i = PROOF_BYTES; !status && i > 0; i--) {
        bool differs = p->sent[i - 1] != p->got[i - 1];
        wrong += differs;
        first = differs ? i - 1 : first;
    }
    if (wrong > 0) {
        snprintf(p->how, sizeof p->how,
                 "the driver reports that %s can access memory of %s, but after a copy by %s %zu of %u bytes are "
                 "wrong, the first at offset %zu",
                 p->to_device->id, p->from_device->id, runner->id, wrong, PROOF_BYTES, first);
    }
    return status;
}

/* A link failure is not returned as an error, because the caller's copy can use other paths; its description is
 * saved. */
static gpuhal_status prove(proof *p, gpuhal_device *runner)
{
    gpuhal_status status = lay_out(p, runner == p->to_device ? 1 : 2);
    if (status) {
        return status;
    }
    status = copy_in_time(p, runner);
    if (status == GPUHAL_ERROR_TIMEOUT) {
        snprintf(p->how, sizeof p->how,
                 "the driver reports that %s can access memory of %s, but a copy by %s did not end within %u s",
                 p->to_device->id, p->from_device->id, runner->id, (unsigned)(PATIENCE_NS / 1000000000));
        return GPUHAL_OK;
    }
    if (status) {
        status = gpuhal_device_failed(culprit(status, p->to_device, p->from_device), status,
                                      "copying over the link to the other device");
        snprintf(p->how, sizeof p->how, "the driver reports that %s can access memory of %s, but a copy failed: %s",
                 p->to_device->id, p->from_device->id, gpuhal_last_error()->sentence);
        bool other = status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_HOST_MEMORY ||
                     status == GPUHAL_ERROR_DEVICE_LOST || status == GPUHAL_ERROR_NOT_SUPPORTED;
        return other ? status : GPUHAL_OK;
    }
    return compare(p, runner);
}

static gpuhal_status take_memory(proof *p)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = PROOF_BYTES};
    gpuhal_status status = gpuhal_memory_allocate(p->from_device, &alloc, PROOF_BYTES, &p->from);
    if (!status) {
        status = gpuhal_memory_allocate(p->to_device, &alloc, PROOF_BYTES, &p->to);
        if (status) {
            gpuhal_memory_release(p->from_device, &p->from);
        }
    }
    return status;
}

/* Tests the destination's device as the runner of the copy. If that finds no fault and the source's device has queues,
 * also tests the source's device as the runner. A returned error is not a fault of the link. Memory that the driver
 * still uses is leaked: if it were released, it could belong to another buffer when the copy arrives. */
static gpuhal_status prove_both(proof *p)
{
    p->sent = malloc(PROOF_BYTES);
    p->got = malloc(PROOF_BYTES);
    gpuhal_status status = p->sent && p->got ? take_memory(p) : gpuhal_error_host_memory();
    if (!status) {
        status = prove(p, p->to_device);
        if (!status && !p->how[0] && p->from_device->queues.queue_create) {
            status = prove(p, p->from_device);
        }
        if (!p->stuck) {
            gpuhal_memory_release(p->to_device, &p->to);
            gpuhal_memory_release(p->from_device, &p->from);
        }
    }
    free(p->sent);
    free(p->got);
    return status;
}

/* ---- finding out */

static void warn(const gpuhal_device *to, const gpuhal_device *from, const char *how)
{
    gpuhal_log_line(to->gpu->log, GPUHAL_LEVEL_WARNING, "%s: copies from %s to %s take another path", how, from->id,
                    to->id);
}

static gpuhal_peer_state try_link(gpuhal_link *link, gpuhal_device *to, gpuhal_device *from)
{
    gpuhal_status status = enable(link, to, from);
    if (status) {
        status = gpuhal_error_from_plugin(status, to->candidate->name, to->id, "accessing memory of another device");
        gpuhal_log_line(to->gpu->log, status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_LEVEL_DEBUG : GPUHAL_LEVEL_WARNING,
                        "%s: copies from %s to %s take another path", gpuhal_last_error()->sentence, from->id, to->id);
        return GPUHAL_PEER_NONE;
    }
    uint64_t unit = (to->copy_mask | from->copy_mask) + 1;
    /* Each memory has some unused units before and after the range, to detect bytes that a copy writes outside its
     * range. */
    proof p = {.to_device = to,
               .from_device = from,
               .to_offset = 3 * unit,
               .from_offset = 5 * unit,
               .bytes = PROOF_BYTES - 7 * unit};
    status = prove_both(&p);
    if (!status && !p.how[0]) {
        gpuhal_log_line(to->gpu->log, GPUHAL_LEVEL_DEBUG, "copies from %s to %s use a link between them", from->id,
                        to->id);
        return GPUHAL_PEER_USABLE;
    }
    if (p.stuck) {
        link->enabled = 0; /* prevents further calls for this link */
        atomic_store(&to->stuck, true);
        atomic_store(&from->stuck, true);
    } else {
        disable(link, to, from);
    }
    if (status) {
        gpuhal_log_line(to->gpu->log, GPUHAL_LEVEL_DEBUG, "the link from %s to %s could not be tested: %s", from->id,
                        to->id, gpuhal_last_error()->sentence);
        return status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_PEER_NONE : GPUHAL_PEER_UNKNOWN;
    }
    link->why_broken = gpuhal_text_copy(p.how);
    warn(to, from, p.how);
    return GPUHAL_PEER_BROKEN;
}

/* Returns whether the link failed before and no new test was requested, so that a link that hangs or corrupts data is
 * not tried again in every process. */
static bool was_broken(const gpuhal_link *link, const gpuhal_device *to, const gpuhal_device *from)
{
    gpuhal_recalled_link known;
    if (atomic_load(&link->refresh) || !gpuhal_fault_log_recall(from, to, &known) || known.verified) {
        return false;
    }
    char how[640];
    snprintf(how, sizeof how, "the link failed before, with the same drivers: %s", known.reason);
    warn(to, from, how);
    return true;
}

/* Does not wait if another thread is testing the link: TRYING is not usable, so the copy takes another path. The state
 * is stored last, with release order, so that a thread that reads it with acquire order sees `enabled` and
 * `why_broken`. */
void gpuhal_peer_find_out(gpuhal_device *to_device, gpuhal_device *from_device)
{
    gpuhal_link *link = gpuhal_link_between(from_device, to_device);
    uint32_t state = GPUHAL_PEER_UNKNOWN;
    if (atomic_load_explicit(&link->peer, memory_order_acquire) != GPUHAL_PEER_UNKNOWN ||
        !atomic_compare_exchange_strong(&link->peer, &state, GPUHAL_PEER_TRYING)) {
        return;
    }
    if (!is_offered(to_device, from_device)) {
        state = GPUHAL_PEER_NONE;
    } else if (was_broken(link, to_device, from_device)) {
        state = GPUHAL_PEER_RECALLED;
    } else {
        state = try_link(link, to_device, from_device);
    }
    atomic_store_explicit(&link->peer, state, memory_order_release);
    if (state == GPUHAL_PEER_BROKEN) {
        gpuhal_fault_log_link(from_device, to_device, true);
    }
}

void gpuhal_peer_forget(gpuhal_device *to_device, gpuhal_device *from_device)
{
    gpuhal_link *link = gpuhal_link_between(from_device, to_device);
    uint32_t state = GPUHAL_PEER_RECALLED;
    atomic_store(&link->refresh, 1);
    atomic_compare_exchange_strong(&link->peer, &state, GPUHAL_PEER_UNKNOWN);
}

/* Access stays enabled until the gpuhal object is freed, because other threads' copies may be in flight. The state is
 * TRYING while `why_broken` is written, so that no other thread owns the link or reads the string. */
void gpuhal_peer_break(gpuhal_device *to_device, gpuhal_device *from_device, const char *how)
{
    gpuhal_link *link = gpuhal_link_between(from_device, to_device);
    uint32_t state = GPUHAL_PEER_USABLE;
    if (atomic_compare_exchange_strong(&link->peer, &state, GPUHAL_PEER_TRYING)) {
        link->why_broken = gpuhal_text_copy(how);
        warn(to_device, from_device, how);
        atomic_store_explicit(&link->peer, GPUHAL_PEER_BROKEN, memory_order_release);
        gpuhal_fault_log_link(from_device, to_device, true);
    }
}
