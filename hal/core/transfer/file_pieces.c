/* transfer/file_pieces.c: see file_pieces.h.
 *
 * Each thread claims the next piece, reads it from the file into a chunk, and makes the device copy the chunk; to write
 * a file, the steps are reversed. If the host can access the buffer's memory, no chunk is used. While one thread waits
 * for the disk, another thread waits for the device, so file accesses and device copies overlap although no piece is
 * passed between threads. If the page cache is bypassed and io_uring is available, each thread keeps several reads in
 * flight.
 *
 * A thread holds a chunk for one piece only, so a large file does not block short copies. */
#include "transfer/file_pieces.h"

#include "transfer/move.h"
#include "transfer/staged.h"
#include "transfer/thread_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The application provides the descriptor, so an invalid descriptor is a bug in the application. */
gpuhal_status gpuhal_file_status(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return GPUHAL_ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return GPUHAL_ERROR_NO_PERMISSION;
    case EBADF:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ESPIPE:
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    case ENOMEM:
        return GPUHAL_ERROR_HOST_MEMORY;
    default:
        return GPUHAL_ERROR_FILE;
    }
}

gpuhal_status gpuhal_file_failed(const char *name, const char *action, uint64_t offset, const char *call, int error)
{
    const char *words = strerror(error);
    gpuhal_error_set(gpuhal_file_status(error), "%s %s from offset %" PRIu64 " on: %s (%s failed with errno %d)",
                     action, name, offset, words, call, error);
    gpuhal_error_add_call(call, error, words);
    return gpuhal_file_status(error);
}

gpuhal_status gpuhal_file_ended(const char *name, uint64_t offset)
{
    return gpuhal_error_set(GPUHAL_ERROR_FILE, "%s became shorter while it was read: it ended at byte %" PRIu64, name,
                            offset);
}

/* SLOTS is the maximum number of reads in flight per thread. LOOK_BYTES is how many bytes are read through the page
 * cache before they are passed to the look function, while the bytes are still in the CPU cache. */
enum { SLOTS = 4, LOOK_BYTES = 256 << 10 };

typedef struct slot {
    gpuhal_chunk *chunk; /* NULL if no chunk is used */
    char *memory;
    uint64_t at, bytes; /* in the job's range */
    bool taken, in_ring;
    int64_t result; /* io_uring's result */
} slot;

typedef struct reader {
    gpuhal_file_moving *moving;
    gpuhal_uring *ring; /* NULL if the thread moves one piece at a time */
    uint32_t depth;
    slot slots[SLOTS];
} reader;

static gpuhal_direction direction_of(const gpuhal_file_job *job)
{
    return job->writes ? GPUHAL_FROM_DEVICE : GPUHAL_TO_DEVICE;
}

/* If the page cache is bypassed, all pieces but the first begin at a disk block boundary. The first piece is shorter by
 * its offset within its block. Called with the mutex held. */
static bool take_piece(gpuhal_file_moving *moving, slot *piece)
{
    uint64_t skew =
        moving->direct.file < 0 ? 0 : (moving->job->file_offset + moving->next) & moving->direct.offset_mask;
    uint64_t most = moving->piece_bytes - skew;
    piece->taken = !moving->status && moving->next < moving->end;
    if (piece->taken) {
        piece->at = moving->next;
        piece->bytes = moving->end - moving->next < most ? moving->end - moving->next : most;
        moving->next += piece->bytes;
    }
    return piece->taken;
}

static bool has_more(gpuhal_file_moving *moving)
{
    gpuhal_mutex_lock(&moving->mutex);
    bool more = !moving->status && moving->next < moving->end;
    gpuhal_mutex_unlock(&moving->mutex);
    return more;
}

static void note_failure(gpuhal_file_moving *moving, gpuhal_status status)
{
    gpuhal_mutex_lock(&moving->mutex);
    if (!moving->status) {
        moving->status = status;
        gpuhal_error_save(&moving->error);
    }
    gpuhal_mutex_unlock(&moving->mutex);
}

static bool is_direct(const gpuhal_file_moving *moving, const slot *piece)
{
    const gpuhal_direct_file *direct = &moving->direct;
    return direct->file >= 0 && (((moving->job->file_offset + piece->at) | piece->bytes) & direct->offset_mask) == 0 &&
           ((uintptr_t)piece->memory & direct->memory_mask) == 0;
}

static void begin_reading(reader *self, slot *piece)
{
    const gpuhal_file_moving *moving = self->moving;
    piece->result = 0;
    piece->in_ring = self->ring && is_direct(moving, piece) &&
                     gpuhal_os_uring_read(self->ring, moving->direct.file, moving->job->file_offset + piece->at,
                                          piece->memory, (uint32_t)piece->bytes, (uint64_t)(piece - self->slots)) == 0;
}

/* Waits for a chunk only if this thread has no piece in flight. Takes the chunk before it claims the piece, because a
 * claimed piece must be moved, and the wait for a chunk may be long. Checks for work first, so that no chunk is taken
 * needlessly. */
static bool begin_piece(reader *self, slot *piece, bool first)
{
    gpuhal_file_moving *moving = self->moving;
    gpuhal_device *device = moving->job->buffer->device;
    gpuhal_direction direction = direction_of(moving->job);
    if (!has_more(moving)) {
        return false;
    }
    piece->chunk = NULL;
    if (!moving->host && first) {
        gpuhal_status status = gpuhal_staging_take(device, direction, &piece->chunk);
        if (status) {
            note_failure(moving, status);
            return false;
        }
    } else if (!moving->host && !(piece->chunk = gpuhal_staging_try_take(device, direction))) {
        return false;
    }
    gpuhal_mutex_lock(&moving->mutex);
    bool got = take_piece(moving, piece);
    gpuhal_mutex_unlock(&moving->mutex);
    if (!got) {
        if (piece->chunk) {
            gpuhal_staging_give(piece->chunk);
        }
        return false;
    }
    piece->memory = piece->chunk ? piece->chunk->host : moving->host + piece->at;
    begin_reading(self, piece);
    return true;
}

static void look(const gpuhal_file_job *job, const slot *piece, uint64_t from, uint64_t bytes)
{
    if (job->look && bytes > 0) {
        job->look(job->look_user, piece->at + from, piece->memory + from, bytes);
    }
}

/* Uses ordinary read calls for the bytes that io_uring did not deliver. If the current pass bypasses the page cache, an
 * aligned piece that was not in the ring is first read without the cache. Reads the remaining bytes through the cache,
 * e.g. if the system refuses to bypass it, or for a partial block at the end of the file. */
static gpuhal_status read_piece(const gpuhal_file_moving *moving, const slot *piece)
{
    const gpuhal_file_job *job = moving->job;
    const uint64_t from = job->file_offset + piece->at, most = job->look ? LOOK_BYTES : piece->bytes;
    uint64_t done = piece->result > 0 ? (uint64_t)piece->result : 0, more = 1;
    int error = 0;
    if (done == 0 && !piece->in_ring && is_direct(moving, piece)) {
        (void)gpuhal_os_file_read_piece(moving->direct.file, from, piece->memory, piece->bytes, &done);
    }
    look(job, piece, 0, done);
    while (!error && more > 0 && done < piece->bytes) {
        const uint64_t rest = piece->bytes - done;
        error = gpuhal_os_file_read_piece(job->file, from + done, piece->memory + done, rest < most ? rest : most,
                                          &more);
        look(job, piece, done, more);
        done += more;
    }
    if (error) {
        return gpuhal_file_failed(job->name, "reading", from + done, "pread", error);
    }
    return done < piece->bytes ? gpuhal_file_ended(job->name, from + done) : GPUHAL_OK;
}

static gpuhal_status to_device(const gpuhal_file_moving *moving, const slot *piece)
{
    const gpuhal_file_job *job = moving->job;
    gpuhal_device *device = job->buffer->device;
    uint64_t offset = job->buffer_offset + piece->at;
    gpuhal_status status = read_piece(moving, piece);
    if (status || !piece->chunk) {
        return status;
    }
    return piece->chunk->plain
               ? gpuhal_move(GPUHAL_TO_DEVICE, device, &job->buffer->memory, offset, piece->memory, piece->bytes)
               : gpuhal_staged_move_chunk(piece->chunk, &job->buffer->memory, offset, piece->bytes);
}

static gpuhal_status from_device(const gpuhal_file_moving *moving, const slot *piece)
{
    const gpuhal_file_job *job = moving->job;
    gpuhal_status status = GPUHAL_OK;
    uint64_t to = job->file_offset + piece->at, done = 0;
    if (piece->chunk) {
        status =
            gpuhal_staged_move_chunk(piece->chunk, &job->buffer->memory, job->buffer_offset + piece->at, piece->bytes);
    }
    look(job, piece, 0, status ? 0 : piece->bytes);
    int error = status ? 0 : gpuhal_os_file_write_piece(job->file, to, piece->memory, piece->bytes, &done);
    return error ? gpuhal_file_failed(job->name, "writing", to + done, "pwrite", error) : status;
}

/* The thread that finishes a piece reports progress, unless another thread is in the progress function. So only one
 * thread at a time calls the application, and no other thread waits. The last call is made when the transfer is
 * done. Called with the mutex held. */
static void report_progress_unlocks(gpuhal_file_moving *moving)
{
    const gpuhal_file_job *job = moving->job;
    uint64_t done = moving->done;
    if (!job->progress || moving->reporting || moving->status || done == moving->total) {
        return;
    }
    moving->reporting = true;
    gpuhal_mutex_unlock(&moving->mutex);
    if (job->progress(job->user, done, moving->total)) {
        note_failure(moving, gpuhal_error_set(GPUHAL_ERROR_CANCELLED,
                                              "the progress function cancelled the transfer of %s after %" PRIu64
                                              " of %" PRIu64 " bytes",
                                              job->name, done, moving->total));
    }
    gpuhal_mutex_lock(&moving->mutex);
    moving->reporting = false;
}

/* If the transfer has already failed or was cancelled, only returns the chunk. */
static void end_piece(gpuhal_file_moving *moving, slot *piece)
{
    const gpuhal_file_job *job = moving->job;
    gpuhal_mutex_lock(&moving->mutex);
    bool stopped = moving->status != GPUHAL_OK;
    gpuhal_mutex_unlock(&moving->mutex);
    gpuhal_status status = stopped ? GPUHAL_OK : job->writes ? from_device(moving, piece) : to_device(moving, piece);
    if (status) {
        note_failure(moving, status);
    }
    if (piece->chunk) {
        gpuhal_staging_give(piece->chunk);
    }
    piece->taken = false;
    gpuhal_mutex_lock(&moving->mutex);
    if (!stopped && !status) {
        moving->done += piece->bytes;
        report_progress_unlocks(moving);
    }
    gpuhal_mutex_unlock(&moving->mutex);
}

/* Returns the next piece to end, or NULL if this thread has none left or the wait fails.
 *
 * Pieces outside the ring are returned first: this thread reads them while the ring's reads continue. If waiting on the
 * io_uring fails (because the program closed the ring's descriptor), the kernel may still be writing to the chunks of
 * the ring's reads, so these chunks are never reused. Without chunks, bytes may arrive in the buffer after the transfer
 * has failed, because the library cannot find out when the kernel is done. */
static slot *next_piece(reader *self)
{
    bool any = false;
    for (uint32_t i = 0; i < self->depth; i++) {
        if (self->slots[i].taken && !self->slots[i].in_ring) {
            return &self->slots[i];
        }
        any = any || self->slots[i].taken;
    }
    uint64_t tag = 0;
    int64_t result = 0;
    int error = any ? gpuhal_os_uring_wait(self->ring, &tag, &result) : 0;
    if (error) {
        note_failure(self->moving, gpuhal_file_failed(self->moving->job->name, "reading",
                                                      self->moving->job->file_offset, "io_uring_enter", error));
    }
    if (!any || error) {
        return NULL;
    }
    self->slots[tag].result = result;
    return &self->slots[tag];
}

static void work(void *user)
{
    gpuhal_file_moving *moving = user;
    reader self = {.moving = moving, .depth = 1};
    if (moving->direct.file >= 0 && gpuhal_os_uring_create(SLOTS, &self.ring) == 0) {
        self.depth = SLOTS < moving->pieces_at_once ? SLOTS : moving->pieces_at_once;
    }
    for (;;) {
        bool first = true;
        for (uint32_t i = 0; i < self.depth; i++) {
            first = first && !self.slots[i].taken;
        }
        for (uint32_t i = 0; i < self.depth; i++) {
            if (!self.slots[i].taken && begin_piece(&self, &self.slots[i], first)) {
                first = false;
            }
        }
        slot *piece = next_piece(&self);
        if (!piece) {
            break;
        }
        end_piece(moving, piece);
    }
    gpuhal_os_uring_destroy(self.ring);
}

void gpuhal_file_pass(gpuhal_file_moving *moving, uint64_t begin, uint64_t end)
{
    gpuhal *gpu = moving->job->buffer->device->gpu;
    uint64_t pieces = (end - begin) / moving->piece_bytes + ((end - begin) % moving->piece_bytes != 0);
    uint32_t threads =
        gpuhal_thread_pool_most() < moving->pieces_at_once ? gpuhal_thread_pool_most() : moving->pieces_at_once;
    gpuhal_thread_pool_job job = {.work = work, .user = moving};
    moving->next = begin;
    moving->end = end;
    threads = pieces < threads ? (uint32_t)pieces : threads;
    if (threads > 1) {
        gpuhal_thread_pool_submit(gpu, &job, threads - 1);
    }
    work(moving);
    if (threads > 1) {
        gpuhal_thread_pool_cancel(gpu, &job);
    }
}
