/* transfer/link_verify.c: tests and measures the path between two devices. It uses the functions behind the public
 * calls, with ordinary buffers. The ranges have odd offsets and sizes from one byte to many pages, because drivers
 * handle unaligned ends and the middle of a range differently. */
#include "transfer/peer.h"

#include "base/error.h"
#include "device/fault_log.h"
#include "transfer/copy.h"

#include <gpuhal/link.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES    (32u << 20) /* large enough to make the start-up time of a copy negligible */
#define LEAST_BYTES   (2u << 20)
#define PATTERN_BYTES (1u << 20)

enum { SMALL_BYTES = 256, SMALL_ROUNDS = 25, LARGE_ROUNDS_LEAST = 3, LARGE_ROUNDS_MOST = 12 };
#define LARGE_NS UINT64_C(60000000)

typedef struct verification {
    gpuhal_device *from_device, *to_device;
    gpuhal_buffer *from, *to;
    uint64_t bytes; /* size of each buffer */
    gpuhal_path path;
    unsigned char *sent, *wanted, *got; /* PATTERN_BYTES each */
} verification;

static void fill_pattern(unsigned char *bytes, uint32_t seed)
{
    for (size_t i = 0; i < PATTERN_BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
}

static gpuhal_status make_buffers(verification *v)
{
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    for (v->bytes = MOST_BYTES; v->bytes >= LEAST_BYTES; v->bytes /= 2) {
        const gpuhal_buffer_desc desc = {
            .size = sizeof desc, .bytes = v->bytes, .flags = GPUHAL_ALLOCATE_NO_EVICT};
        status = gpuhal_buffer_create(v->from_device, &desc, &v->from);
        status = status ? status : gpuhal_buffer_create(v->to_device, &desc, &v->to);
        /* `v` keeps the buffers that were created even after a failure; run() releases them. */
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_TOO_LARGE) {
            return status;
        }
        gpuhal_buffer_release(v->from);
        v->from = NULL;
    }
    return status;
}

/* If the bytes came over a link between the devices, the link is at fault. On any other path a device is at fault. */
static gpuhal_status found_wrong(const verification *v, uint64_t bytes, uint64_t at)
{
    char how[256];
    snprintf(how, sizeof how, "%s to %s: of %" PRIu64 " bytes copied by the path \"%s\", byte %" PRIu64 " is wrong",
             v->from_device->id, v->to_device->id, bytes, gpuhal_path_name(v->path), at);
    if (v->path == GPUHAL_PATH_PEER) {
        gpuhal_peer_break(v->to_device, v->from_device, how);
        return gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s", how);
    }
    return gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s", how);
}

/* Copies once and compares PATTERN_BYTES of the destination: bytes next to the range must be unchanged. */
static gpuhal_status copy_once(const verification *v, uint64_t to_offset, uint64_t from_offset, uint64_t bytes,
                               uint32_t seed)
{
    fill_pattern(v->wanted, seed);
    gpuhal_status status = gpuhal_write_blocking(v->to, 0, v->wanted, PATTERN_BYTES);
    status = status ? status : gpuhal_copy_blocking(v->to, to_offset, v->from, from_offset, bytes);
    status = status ? status : gpuhal_read_blocking(v->got, v->to, 0, PATTERN_BYTES);
    if (status) {
        return status;
    }
    memcpy(v->wanted + to_offset, v->sent + from_offset, (size_t)bytes);
    for (uint64_t i = 0; i < PATTERN_BYTES; i++) {
        if (v->wanted[i] != v->got[i]) {
            return found_wrong(v, bytes, i);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status copy_patterns(const verification *v)
{
    fill_pattern(v->sent, 1);
    gpuhal_status status = gpuhal_write_blocking(v->from, 0, v->sent, PATTERN_BYTES);
    status = status ? status : copy_once(v, 4097, 1, 1, 2);
    status = status ? status : copy_once(v, 7, 4093, 5003, 3);
    return status ? status : copy_once(v, 3, 1, PATTERN_BYTES - 5, 4);
}

/* ---- measuring */

static gpuhal_status time_copy(const verification *v, uint64_t bytes, uint64_t *out_ns)
{
    uint64_t begin = gpuhal_os_monotonic_ns();
    gpuhal_status status = gpuhal_copy_blocking(v->to, 0, v->from, 0, bytes);
    uint64_t took = gpuhal_os_monotonic_ns() - begin;
    *out_ns = took ? took : 1;
    return status;
}

static int compare_times(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

/* Uses the shortest time for large copies, because disturbances can only slow copies down. Uses the median for small
 * copies, because their shortest time varies too much. */
static gpuhal_status measure(const verification *v, gpuhal_link *link)
{
    uint64_t times[SMALL_ROUNDS] = {0}, best = UINT64_MAX, spent = 0;
    gpuhal_status status = GPUHAL_OK;
    for (int round = 0; round < LARGE_ROUNDS_MOST && !status && (round < LARGE_ROUNDS_LEAST || spent < LARGE_NS);
         round++) {
        uint64_t took = 0;
        status = time_copy(v, v->bytes, &took);
        best = took < best ? took : best;
        spent += took;
    }
    for (int round = 0; round < SMALL_ROUNDS && !status; round++) {
        status = time_copy(v, SMALL_BYTES, &times[round]);
    }
    if (status) {
        return status;
    }
    qsort(times, SMALL_ROUNDS, sizeof *times, compare_times);
    double speed = (double)v->bytes * 1e9 / (double)best;
    atomic_store(&link->path, v->path);
    atomic_store(&link->bytes_per_second, speed >= 1 ? (uint64_t)speed : 1);
    atomic_store(&link->latency_ns, times[SMALL_ROUNDS / 2]);
    return GPUHAL_OK;
}

/* ---- both */

static gpuhal_status run(verification *v, gpuhal_link *link)
{
    v->sent = malloc(PATTERN_BYTES);
    v->wanted = malloc(PATTERN_BYTES);
    v->got = malloc(PATTERN_BYTES);
    gpuhal_status status = v->sent && v->wanted && v->got ? make_buffers(v) : gpuhal_error_host_memory();
    /* The first copy determines which paths are available. */
    status = status ? status : gpuhal_copy_blocking(v->to, 0, v->from, 0, SMALL_BYTES);
    status = status ? status : gpuhal_copy_path(v->to, v->from, &v->path);
    status = status ? status : copy_patterns(v);
    status = status ? status : measure(v, link);
    gpuhal_buffer_release(v->from);
    gpuhal_buffer_release(v->to);
    free(v->sent);
    free(v->wanted);
    free(v->got);
    return status;
}

/* Called after all copies were correct. Fails if the link was found to be broken before any copy used it. Returns BUSY
 * if another thread is testing the link. */
static gpuhal_status judge(const gpuhal_device *from, const gpuhal_device *to)
{
    const gpuhal_link *link = gpuhal_link_between(from, to);
    gpuhal_peer_state state = gpuhal_peer_state_of(to, from);
    if (state == GPUHAL_PEER_TRYING || state == GPUHAL_PEER_RECALLED) {
        return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s to %s: another thread is testing the link", from->id, to->id);
    }
    if (state != GPUHAL_PEER_BROKEN) {
        return GPUHAL_OK;
    }
    gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s to %s: %s", from->id, to->id,
                     link->why_broken ? link->why_broken : "the link failed");
    gpuhal_error_add_device(from->candidate->name, from->id);
    return GPUHAL_ERROR_DRIVER;
}

/* Preserves the test's error detail if recording fails. */
static void record(gpuhal_device *from, gpuhal_device *to)
{
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    gpuhal_fault_log_link(from, to, false);
    if (gpuhal_fault_log_write(from->gpu)) {
        gpuhal_log_line(from->gpu->log, GPUHAL_LEVEL_DEBUG, "%s to %s: %s", from->id, to->id,
                        gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&detail);
}

gpuhal_status gpuhal_link_verify(gpuhal_device *from, gpuhal_device *to)
{
    gpuhal_status status = gpuhal_link_check("gpuhal_link_verify", from, to);
    status = status ? status : gpuhal_device_open(from);
    status = status ? status : gpuhal_device_open(to);
    if (status) {
        return status;
    }
    verification v = {.from_device = from, .to_device = to};
    gpuhal_link *link = gpuhal_link_between(from, to);
    gpuhal_peer_forget(to, from);
    status = run(&v, link);
    status = status ? status : judge(from, to);
    bool wrong = status == GPUHAL_ERROR_DEVICE_LOST || gpuhal_peer_state_of(to, from) == GPUHAL_PEER_BROKEN;
    if (!status || wrong) {
        atomic_store(&link->verified, status == GPUHAL_OK);
        atomic_store(&link->tried, 1);
        record(from, to);
    }
    return status;
}
