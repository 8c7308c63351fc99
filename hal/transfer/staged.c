/* transfer/staged.c: see staged.h.
 *
 * The ring holds up to RING chunks of the source's pool; the copy waits for the first and takes the others only if they are free, so
 * many copies at once share the pool and none starves. The reader fills slot `filled`, the writer empties slot `emptied`; each runs with
 * no lock held. Short copies, and machines that start no more threads, do one half after the other. */
#include "transfer/staged.h"

#include "core/error.h"
#include "transfer/bytes.h"
#include "transfer/staging.h"

enum { RING = 4 };

/* Pieces are an eighth of the copy, so that both halves of a middling one overlap too, within these bounds: the chunk's size above, and
 * below what is worth a hand-over. */
#define LEAST_PIECE_BYTES (256u << 10)

typedef struct staged {
    gpuhal_device *to_device, *from_device;
    const gpuhal_memory *to, *from;
    uint64_t to_offset, from_offset, bytes, piece_bytes;
    gpuhal_chunk *chunks[RING];
    uint32_t chunk_count;

    gpuhal_mutex mutex;         /* protects what follows */
    gpuhal_condition condition; /* one of them changed */
    uint64_t filled, emptied;   /* pieces */
    bool stopped;               /* the writer failed: read no further */
    gpuhal_status read_status;
    gpuhal_error_detail read_error; /* belongs to the reader's thread, is wanted on the caller's */
} staged;

static uint64_t piece_size(const staged *copy, uint64_t piece)
{
    uint64_t begin = piece * copy->piece_bytes;
    return copy->bytes - begin < copy->piece_bytes ? copy->bytes - begin : copy->piece_bytes;
}

static uint64_t piece_count(const staged *copy)
{
    return copy->bytes / copy->piece_bytes + (copy->bytes % copy->piece_bytes != 0);
}

/* Piece n uses chunk n modulo the ring: it is free once piece n - ring has been emptied. */
static gpuhal_status read_piece(const staged *copy, uint64_t piece)
{
    return gpuhal_chunk_fill(copy->from_device, copy->chunks[piece % copy->chunk_count], copy->from,
                             copy->from_offset + piece * copy->piece_bytes, piece_size(copy, piece));
}

static gpuhal_status write_piece(const staged *copy, uint64_t piece)
{
    return gpuhal_bytes_write(copy->to_device, copy->to, copy->to_offset + piece * copy->piece_bytes,
                              copy->chunks[piece % copy->chunk_count]->host, piece_size(copy, piece));
}

/* The reader's thread: stays at most a ring ahead of the writer, and stops when the writer fails. */
static void *read_all(void *user)
{
    staged *copy = user;
    uint64_t pieces = piece_count(copy);
    gpuhal_mutex_lock(&copy->mutex);
    for (uint64_t piece = 0; piece < pieces && !copy->read_status; piece++) {
        while (piece - copy->emptied >= copy->chunk_count && !copy->stopped) {
            gpuhal_condition_wait(&copy->condition, &copy->mutex);
        }
        if (copy->stopped) {
            break;
        }
        gpuhal_mutex_unlock(&copy->mutex);
        gpuhal_status status = read_piece(copy, piece);
        gpuhal_mutex_lock(&copy->mutex);
        if (status) {
            copy->read_status = status;
            gpuhal_error_save(&copy->read_error);
        } else {
            copy->filled = piece + 1;
        }
        gpuhal_condition_signal_all(&copy->condition);
    }
    gpuhal_mutex_unlock(&copy->mutex);
    return NULL;
}

/* The caller's thread: what was read before the reader failed is still written, in order. */
static gpuhal_status write_all(staged *copy)
{
    uint64_t pieces = piece_count(copy);
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&copy->mutex);
    for (uint64_t piece = 0; piece < pieces && !status; piece++) {
        while (copy->filled <= piece && !copy->read_status) {
            gpuhal_condition_wait(&copy->condition, &copy->mutex);
        }
        if (copy->filled <= piece) {
            break;
        }
        gpuhal_mutex_unlock(&copy->mutex);
        status = write_piece(copy, piece);
        gpuhal_mutex_lock(&copy->mutex);
        copy->emptied = piece + 1;
        copy->stopped = status != GPUHAL_OK;
        gpuhal_condition_signal_all(&copy->condition);
    }
    gpuhal_mutex_unlock(&copy->mutex);
    return status;
}

static gpuhal_status one_after_the_other(staged *copy)
{
    gpuhal_status status = GPUHAL_OK;
    uint64_t pieces = piece_count(copy);
    for (uint64_t piece = 0; piece < pieces && !status; piece++) {
        status = read_piece(copy, piece);
        status = status ? status : write_piece(copy, piece);
    }
    return status;
}

/* The thread lives for one copy: a copy large enough for it takes a hundred times as long as starting it. */
static gpuhal_status both_at_once(staged *copy)
{
    gpuhal_thread reader;
    gpuhal_mutex_init(&copy->mutex);
    gpuhal_condition_init(&copy->condition);
    bool started = gpuhal_thread_start(&reader, read_all, copy) == 0;
    gpuhal_status status = started ? write_all(copy) : one_after_the_other(copy);
    if (started) {
        gpuhal_thread_join(&reader);
    }
    if (!status && copy->read_status) {
        status = gpuhal_error_restore(&copy->read_error);
    }
    gpuhal_condition_finish(&copy->condition);
    gpuhal_mutex_finish(&copy->mutex);
    return status;
}

static uint64_t choose_piece(const gpuhal_device *from_device, uint64_t bytes)
{
    uint64_t most = gpuhal_staging_payload_bytes(from_device);
    uint64_t piece = bytes / 8 & ~(uint64_t)(LEAST_PIECE_BYTES - 1);
    piece = piece < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : piece;
    return piece < most ? piece : most;
}

gpuhal_status gpuhal_staged_copy(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset, gpuhal_device *from_device,
                                 const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    staged copy = {
        .to_device = to_device,
        .from_device = from_device,
        .to = to,
        .from = from,
        .to_offset = to_offset,
        .from_offset = from_offset,
        .bytes = bytes,
        .piece_bytes = choose_piece(from_device, bytes),
    };
    uint64_t pieces = piece_count(&copy);
    gpuhal_status status = gpuhal_staging_take(from_device, GPUHAL_STAGING_FROM_DEVICE, &copy.chunks[0]);
    if (status) {
        return status;
    }
    copy.chunk_count = 1;
    while (copy.chunk_count < RING && copy.chunk_count < pieces &&
           (copy.chunks[copy.chunk_count] = gpuhal_staging_try_take(from_device, GPUHAL_STAGING_FROM_DEVICE))) {
        copy.chunk_count++;
    }
    status = copy.chunk_count > 1 ? both_at_once(&copy) : one_after_the_other(&copy);
    for (uint32_t i = 0; i < copy.chunk_count; i++) {
        gpuhal_staging_give(from_device, GPUHAL_STAGING_FROM_DEVICE, copy.chunks[i]);
    }
    return status;
}
