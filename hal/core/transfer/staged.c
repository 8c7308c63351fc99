/* transfer/staged.c: see staged.h. A thread repeatedly waits until the last piece in the older of its chunks has ended,
 * claims the next piece, and starts it in this chunk. The order of pieces does not matter, because they share no byte.
 * After any failure no copy remains in flight in a chunk, because destroying the chunk's queue waits for the
 * device. */
#include "transfer/staged.h"

#include "base/error.h"
#include "transfer/plugin_event.h"
#include "transfer/ranges.h"
#include "transfer/thread_pool.h"

#include <string.h>

/* A piece is an eighth of the copy, so that the CPU's and the device's work also overlap in medium-sized copies. The
 * maximum is the chunk's payload. The minimum is a size that is worth a submission. */
#define LEAST_PIECE_BYTES (256u << 10)

/* ---- one chunk, with a queue or blocking */

/* Reads device memory into a plain chunk. A device without staging memory for this direction has a slot, or memory that
 * the host can access. */
static gpuhal_status fill_plain(gpuhal_chunk *chunk, const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = chunk->device;
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    if (gpuhal_is_aligned(device, offset, bytes) || !gpuhal_host_writes(from)) {
        status =
            gpuhal_slot_move_blocks(GPUHAL_FROM_DEVICE, device, from, offset, chunk->host, bytes, gpuhal_slot_move);
    }
    if (status == GPUHAL_ERROR_NOT_SUPPORTED && gpuhal_host_writes(from)) {
        memcpy(chunk->host, (const char *)from->host + offset, (size_t)bytes);
        return GPUHAL_OK;
    }
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? gpuhal_slot_no_way(device, GPUHAL_FROM_DEVICE) : status;
}

/* A copy from the device copies whole alignment blocks, so it may copy extra bytes at both ends; the payload size
 * leaves room for these bytes (gpuhal_staging_payload_bytes()). */
static gpuhal_status start_copy(gpuhal_chunk *chunk, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = chunk->device;
    gpuhal_status status;
    if (chunk->direction == GPUHAL_TO_DEVICE) {
        status = gpuhal_slot_clean(device, GPUHAL_TO_DEVICE, &chunk->memory, bytes);
        if (status) {
            return status;
        }
        status = gpuhal_slot_copy(device, queue, memory, offset, &chunk->memory, 0, bytes);
        return status ? gpuhal_device_failed(device, status, "copying from staging memory") : GPUHAL_OK;
    }
    chunk->lead = offset & device->copy_mask;
    chunk->arriving = bytes;
    const uint64_t whole = (chunk->lead + bytes + device->copy_mask) & ~device->copy_mask;
    status = gpuhal_slot_copy(device, queue, &chunk->memory, 0, memory, offset - chunk->lead, whole);
    return status ? gpuhal_device_failed(device, status, "copying to staging memory") : GPUHAL_OK;
}

/* Called when the device's copy has ended. Makes bytes from the device visible and moves them to the beginning of the
 * chunk. Clears the members first, so that the same piece is not finished twice if this function fails. */
static gpuhal_status end_copy(gpuhal_chunk *chunk)
{
    const uint64_t bytes = chunk->arriving, lead = chunk->lead, mask = chunk->device->copy_mask;
    chunk->arriving = chunk->lead = 0;
    gpuhal_status status =
        bytes > 0 ? gpuhal_slot_clean(chunk->device, GPUHAL_FROM_DEVICE, &chunk->memory, (lead + bytes + mask) & ~mask)
                  : GPUHAL_OK;
    if (!status && lead > 0) {
        memmove(chunk->host, (char *)chunk->host + lead, (size_t)bytes);
    }
    return status;
}

gpuhal_status gpuhal_staged_move_chunk(gpuhal_chunk *chunk, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes)
{
    if (chunk->plain) {
        return fill_plain(chunk, memory, offset, bytes);
    }
    gpuhal_status status = start_copy(chunk, NULL, memory, offset, bytes);
    return status ? status : end_copy(chunk);
}

static gpuhal_status make_queue(gpuhal_chunk *chunk)
{
    gpuhal_device *device = chunk->device;
    if (chunk->queue) {
        return GPUHAL_OK;
    }
    const gpuhal_plugin_queue_desc desc = {.size = sizeof desc};
    const gpuhal_call call = gpuhal_call_prompt(device);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->queues.queue_create(device->handle, &desc, &chunk->queue));
    status = status ? status : gpuhal_plugin_event_create(device, 0, &chunk->event);
    if (status) {
        status = gpuhal_device_failed(device, status, "creating a queue for staging");
        gpuhal_staging_drop_queue(chunk);
    }
    return status;
}

/* If the event cannot be recorded after the copy, no thread could wait for the copy later. Then the queue is destroyed;
 * its destruction waits for the copy. The next use of the chunk creates a new queue. */
static gpuhal_status begin_copy(gpuhal_chunk *chunk, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = chunk->device;
    gpuhal_status status = make_queue(chunk);
    if (status) {
        return status;
    }
    status = start_copy(chunk, chunk->queue, memory, offset, bytes);
    if (!status) {
        status = gpuhal_plugin_event_record_blocking(device, chunk->queue, chunk->event);
        status = status ? gpuhal_device_failed(device, status, "submitting a copy with staging memory") : GPUHAL_OK;
    }
    chunk->under_way = !status;
    if (status) {
        gpuhal_staging_drop_queue(chunk);
    }
    return status;
}

/* Also returns true if the copy has failed. */
static bool has_ended(const gpuhal_chunk *chunk)
{
    return gpuhal_plugin_event_query(chunk->device, chunk->event) != GPUHAL_NOT_READY;
}

/* Sleeps until the copy has ended. Returns OK if nothing is in flight. */
static gpuhal_status await_copy(gpuhal_chunk *chunk)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    if (!chunk->under_way) {
        return GPUHAL_OK;
    }
    while (status == GPUHAL_NOT_READY) {
        status = gpuhal_plugin_event_block(chunk->device, chunk->event, GPUHAL_BLOCK_NS);
    }
    chunk->under_way = false;
    if (status) {
        status = gpuhal_device_failed(chunk->device, status, "copying through staging memory");
        gpuhal_staging_drop_queue(chunk);
        return status;
    }
    return end_copy(chunk);
}

/* ---- many pieces */

typedef struct ring {
    const gpuhal_staged_copy *copy;
    uint64_t piece_bytes, pieces, phase;
    gpuhal_thread_pool_job job;

    gpuhal_mutex mutex; /* protects the members below */
    uint64_t next;      /* the next unclaimed piece; `pieces` after a failure */
    uint32_t threads;   /* number of threads requested, including the caller's */
    uint32_t most_threads;
    uint32_t starved;     /* how often the device was found waiting, minus how often it was found busy, since the last
                           * helper was added; at least 0 */
    gpuhal_status status; /* the first failure */
    gpuhal_error_detail error;
} ring;

/* One chunk of a thread, with the piece that is in it. */
typedef struct slot {
    gpuhal_chunk *chunk;
    uint64_t done, bytes; /* bytes is 0 if the slot is empty */
} slot;

enum { SLOTS = 2 };

/* Prevents more pieces from being claimed. Each thread still waits for its pieces in flight. */
static void fail(ring *r, gpuhal_status status)
{
    gpuhal_mutex_lock(&r->mutex);
    r->next = r->pieces;
    if (!r->status) {
        r->status = status;
        gpuhal_error_save(&r->error);
    }
    gpuhal_mutex_unlock(&r->mutex);
}

/* Returns false if no piece is left. Pieces begin at multiples of piece_bytes, counted from `phase` bytes before the
 * copy. So the first piece is shorter by `phase`, and the last piece ends with the copy. */
static bool claim(ring *r, slot *s)
{
    gpuhal_mutex_lock(&r->mutex);
    uint64_t piece = r->next;
    r->next += piece < r->pieces;
    gpuhal_mutex_unlock(&r->mutex);
    if (piece == r->pieces) {
        return false;
    }
    uint64_t begin = piece * r->piece_bytes, end = begin + r->piece_bytes, all = r->phase + r->copy->bytes;
    begin = begin < r->phase ? r->phase : begin;
    end = end > all ? all : end;
    s->done = begin - r->phase;
    s->bytes = end - begin;
    return true;
}

/* Adds a helper if the device was found waiting at least twice per thread, because a single late wake-up is no
 * reason. The count increases if a piece had ended before its thread returned to it, and decreases otherwise. The
 * thread pool is called without the mutex, because the new helper locks it. */
static void learn(ring *r, bool starved)
{
    bool more = false;
    gpuhal_mutex_lock(&r->mutex);
    r->starved = starved ? r->starved + 1 : r->starved - (r->starved > 0);
    if (r->starved >= 2 * r->threads && r->threads < r->most_threads && r->next < r->pieces) {
        r->starved = 0;
        r->threads++;
        more = true;
    }
    gpuhal_mutex_unlock(&r->mutex);
    if (more) {
        gpuhal_thread_pool_submit(r->copy->device->gpu, &r->job, 1);
    }
}

/* For a single piece a blocking copy is faster, because there is no other piece to overlap with. */
static gpuhal_status begin_piece(ring *r, slot *s)
{
    const gpuhal_staged_copy *copy = r->copy;
    const uint64_t offset = copy->offset + s->done;
    gpuhal_status status =
        copy->direction == GPUHAL_TO_DEVICE ? copy->move(copy->user, s->chunk->host, s->done, s->bytes) : GPUHAL_OK;
    if (status) {
        return status;
    }
    return r->pieces > 1 && s->chunk->can_begin ? begin_copy(s->chunk, copy->memory, offset, s->bytes)
                                                : gpuhal_staged_move_chunk(s->chunk, copy->memory, offset, s->bytes);
}

/* After a failure in this thread, waits for the bytes in flight but does not pass them to `move`. */
static gpuhal_status end_piece(ring *r, slot *s, bool go_on)
{
    const gpuhal_staged_copy *copy = r->copy;
    const uint64_t bytes = s->bytes;
    s->bytes = 0;
    gpuhal_status status = await_copy(s->chunk);
    bool take = !status && go_on && bytes > 0 && copy->direction == GPUHAL_FROM_DEVICE;
    return take ? copy->move(copy->user, s->chunk->host, s->done, bytes) : status;
}

/* The first loop may end with pieces in flight in any slot. The second loop therefore waits for all slots, even after a
 * failure: a chunk must have no copy in flight when it is returned (staging.h). */
static void carry(ring *r, slot *slots, uint32_t count)
{
    gpuhal_status status = GPUHAL_OK;
    uint32_t turn = 0;
    for (; !status; turn = (turn + 1) % count) {
        slot *s = &slots[turn];
        if (s->bytes > 0 && s->chunk->under_way && count > 1) {
            learn(r, has_ended(s->chunk));
        }
        if ((status = end_piece(r, s, true)) || !claim(r, s)) {
            break;
        }
        status = begin_piece(r, s);
    }
    if (status) {
        fail(r, status);
    }
    for (uint32_t i = 0; i < count; i++, turn = (turn + 1) % count) {
        gpuhal_status late = end_piece(r, &slots[turn], !status);
        if (late && !status) {
            status = late;
            fail(r, late);
        }
    }
}

/* Moves pieces through the chunk `first`, and through a second chunk if copies are asynchronous and a chunk is
 * available without waiting. */
static void carry_with(ring *r, gpuhal_chunk *first)
{
    const gpuhal_staged_copy *copy = r->copy;
    slot slots[SLOTS] = {{.chunk = first}};
    uint32_t count = 1;
    if (r->pieces > 1 && first->can_begin &&
        (slots[1].chunk = gpuhal_staging_try_take(copy->device, copy->direction))) {
        count = 2;
    }
    carry(r, slots, count);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_staging_give(slots[i].chunk);
    }
}

/* If no chunk is available without waiting, the helper ends and no more helpers are added, because chunks are scarce,
 * not threads. */
static void help(void *user)
{
    ring *r = user;
    gpuhal_chunk *chunk = gpuhal_staging_try_take(r->copy->device, r->copy->direction);
    if (chunk) {
        carry_with(r, chunk);
        return;
    }
    gpuhal_mutex_lock(&r->mutex);
    r->threads--;
    r->most_threads = r->threads;
    gpuhal_mutex_unlock(&r->mutex);
}

static void plan(ring *r)
{
    const gpuhal_staged_copy *copy = r->copy;
    uint64_t most = gpuhal_staging_payload_bytes(copy->device);
    most = most > GPUHAL_STAGED_PAGE_BYTES ? most & ~(uint64_t)(GPUHAL_STAGED_PAGE_BYTES - 1) : most;
    uint64_t piece = copy->bytes / 8 & ~(uint64_t)(LEAST_PIECE_BYTES - 1);
    piece = piece < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : piece;
    r->piece_bytes = piece < most ? piece : most;
    r->phase = copy->phase % GPUHAL_STAGED_PAGE_BYTES;
    r->pieces = (r->phase + copy->bytes - 1) / r->piece_bytes + 1;
}

/* A thread is worth waking for two pieces or more. If copies are not asynchronous, several pieces get two threads,
 * because both sides make blocking calls, and the library cannot find out which side waits. */
static void plan_threads(ring *r, const gpuhal_chunk *chunk)
{
    const gpuhal_staged_copy *copy = r->copy;
    uint64_t worth = (r->pieces + 1) / 2;
    uint32_t most = gpuhal_thread_pool_most();
    if (copy->in_order) {
        r->most_threads = r->threads = 1;
    } else if (chunk->can_begin) {
        r->most_threads = worth < most ? (uint32_t)worth : most;
        r->threads = gpuhal_staging_threads(copy->device, copy->direction);
        r->threads = r->threads < r->most_threads ? r->threads : r->most_threads;
    } else {
        r->most_threads = r->threads = r->pieces > 1 ? 2 : 1;
    }
}

gpuhal_status gpuhal_staged_run(const gpuhal_staged_copy *copy)
{
    if (copy->bytes == 0) {
        return GPUHAL_OK;
    }
    gpuhal_chunk *chunk = NULL;
    gpuhal_status status = gpuhal_staging_take(copy->device, copy->direction, &chunk);
    if (status) {
        return status;
    }
    ring r = {.copy = copy, .job = {.work = help, .user = &r}};
    gpuhal *gpu = copy->device->gpu;
    plan(&r);
    plan_threads(&r, chunk);
    uint32_t began_with = r.threads;
    gpuhal_mutex_init(&r.mutex);
    gpuhal_thread_pool_submit(gpu, &r.job, r.threads - 1);
    carry_with(&r, chunk);
    /* Returns once no helper uses `r`, which is on this stack and is read without the mutex from now on. */
    gpuhal_thread_pool_cancel(gpu, &r.job);
    gpuhal_mutex_finish(&r.mutex);
    if (r.threads > began_with) {
        gpuhal_staging_set_threads(copy->device, copy->direction, r.threads);
    }
    return r.status ? gpuhal_error_restore(&r.error) : GPUHAL_OK;
}
