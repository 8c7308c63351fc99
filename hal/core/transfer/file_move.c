/* transfer/file_move.c: decides how a file transfer is split, which memory the bytes move through, and whether the page
 * cache is used.
 *
 * Files in the system's page cache are read from the cache. For other files, the library cannot predict whether
 * bypassing the cache is faster: this depends on the disk, the disk's driver and the memory layout. So a large read
 * first moves a sample by each path, and then continues with the better one. (Measured with 1 GiB on a virtual disk:
 * bypassing the cache reached 2.1 to 2.6 GiB/s into huge pages and 0.8 into small pages; the cache reached 1.1 to 2.0,
 * but took five to thirty times the CPU time.) Files are written through the cache: the system decides when bytes
 * reach the disk, unless the application requests a sync. */
#include "transfer/file_pieces.h"
#include "transfer/move.h"
#include "transfer/ranges.h"
#include "transfer/staging.h"

#include <stdlib.h>

#define LEAST_PIECE_BYTES (UINT64_C(256) << 10)
#define PAGE_MASK         (UINT64_C(4096) - 1)

/* A sample of this size takes at least 10 ms. Waking threads takes only 0.1 ms. */
#define TRIAL_BYTES        (UINT64_C(32) << 20)
#define DIRECT_LEAST_BYTES (8 * TRIAL_BYTES)

enum { MOST_AT_ONCE = 8, SAMPLES = 32 };

static char *straight_address(const gpuhal_file_job *job)
{
    const gpuhal_memory *memory = &job->buffer->memory;
    bool straight = job->writes || job->look ? gpuhal_host_reads(memory) : gpuhal_host_writes(memory);
    return straight ? (char *)memory->host + job->buffer_offset : NULL;
}

/* Chooses a piece size small enough that every thread has several pieces of a large transfer. One transfer uses at most
 * half of the chunks, but with io_uring it may use all chunks. */
static void choose_pieces(gpuhal_file_moving *moving)
{
    const gpuhal_device *device = moving->job->buffer->device;
    uint64_t most = gpuhal_staging_payload_bytes(device) & ~PAGE_MASK;
    uint64_t chunks = device->gpu->settings.staging_limit_bytes / gpuhal_staging_payload_bytes(device) / 2;
    uint64_t share = moving->total / (2 * MOST_AT_ONCE) & ~PAGE_MASK;
    share = share < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : share;
    moving->piece_bytes = share < most ? share : most;
    moving->pieces_at_once = moving->host || chunks > MOST_AT_ONCE ? MOST_AT_ONCE : chunks > 0 ? (uint32_t)chunks : 1;
}

/* Returns whether more than a quarter of the samples are in the page cache. */
static bool is_cached(const gpuhal_file_moving *moving, uint64_t begin, uint64_t end)
{
    uint32_t cached = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        cached +=
            gpuhal_os_file_is_cached(moving->job->file, moving->job->file_offset + begin + (end - begin) / SAMPLES * i);
    }
    return cached > SAMPLES / 4;
}

/* Returns whether blocks of the file will be at addresses that both the disk and the device accept. */
static bool fits(const gpuhal_file_moving *moving, const gpuhal_direct_file *direct, uint64_t begin)
{
    uint64_t skew = (0 - (moving->job->file_offset + begin)) & direct->offset_mask;
    return moving->host ? (((uintptr_t)moving->host + begin + skew) & direct->memory_mask) == 0
                        : (skew & moving->job->buffer->device->copy_mask) == 0;
}

static uint64_t timed_pass(gpuhal_file_moving *moving, uint64_t begin, uint64_t end)
{
    uint64_t start = gpuhal_os_monotonic_ns();
    gpuhal_file_pass(moving, begin, end);
    return gpuhal_os_monotonic_ns() - start;
}

/* Reads one sample through the cache, one without it, and the rest by the better path. Bypassing is preferred if it is
 * about as fast, because it uses less CPU time and evicts no other pages. `direct` changes only between passes, when no
 * other thread moves pieces. If a pass fails, the later passes end at once. */
static void read_both_ways(gpuhal_file_moving *moving, const gpuhal_direct_file *direct, uint64_t begin, uint64_t end)
{
    uint64_t through = timed_pass(moving, begin, begin + TRIAL_BYTES);
    moving->direct = *direct;
    uint64_t around = timed_pass(moving, begin + TRIAL_BYTES, begin + 2 * TRIAL_BYTES);
    if (around > through + through / 8) {
        moving->direct.file = -1;
    }
    gpuhal_file_pass(moving, begin + 2 * TRIAL_BYTES, end);
}

static void move_middle(gpuhal_file_moving *moving, uint64_t begin, uint64_t end)
{
    const gpuhal_file_job *job = moving->job;
    gpuhal_direct_file direct = {.file = -1};
    bool large = !job->writes && end - begin >= DIRECT_LEAST_BYTES;
    if (large && !is_cached(moving, begin, end) && gpuhal_os_file_open_direct(job->file, &direct) == 0 &&
        fits(moving, &direct, begin)) {
        read_both_ways(moving, &direct, begin, end);
    } else {
        gpuhal_file_pass(moving, begin, end);
    }
    if (direct.file >= 0) {
        gpuhal_os_descriptor_close(direct.file);
    }
}

/* Moves the part of an alignment block that is at one end of the range. */
static gpuhal_status move_edge(gpuhal_file_moving *moving, uint64_t at, uint64_t bytes)
{
    const gpuhal_file_job *job = moving->job;
    uint64_t from = job->file_offset + at, done = 0;
    void *block = malloc((size_t)bytes);
    if (!block) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = GPUHAL_OK;
    int error = gpuhal_os_file_read_piece(job->file, from, block, bytes, &done);
    if (error) {
        status = gpuhal_file_failed(job->name, "reading", from, "pread", error);
    } else if (done < bytes) {
        status = gpuhal_file_ended(job->name, from + done);
    } else {
        if (job->look) {
            job->look(job->look_user, at, block, bytes);
        }
        status = gpuhal_move(GPUHAL_TO_DEVICE, job->buffer->device, &job->buffer->memory, job->buffer_offset + at,
                             block, bytes);
    }
    free(block);
    moving->done += status ? 0 : bytes;
    return status;
}

/* Moves the edges before the transfer takes any chunk. An edge may need a chunk itself, and a thread that holds a chunk
 * and waits for another chunk could deadlock. */
static gpuhal_status move_edges(gpuhal_file_moving *moving, uint64_t head, uint64_t tail)
{
    gpuhal_status status = head > 0 ? move_edge(moving, 0, head) : GPUHAL_OK;
    return status || tail == 0 ? status : move_edge(moving, moving->total - tail, tail);
}

gpuhal_status gpuhal_file_move(const gpuhal_file_job *job, uint64_t total)
{
    gpuhal_file_moving moving = {.job = job, .total = total, .host = straight_address(job), .direct = {.file = -1}};
    uint64_t mask = job->writes || moving.host ? 0 : job->buffer->device->copy_mask;
    uint64_t head = (0 - job->buffer_offset) & mask;
    head = head < total ? head : total;
    uint64_t tail = (total - head) & mask;
    /* Neither the mutex nor another thread exists yet, so the edges update `done` without a lock. */
    gpuhal_status status = move_edges(&moving, head, tail);
    if (status || head + tail == total) {
        return status;
    }
    choose_pieces(&moving);
    gpuhal_mutex_init(&moving.mutex);
    move_middle(&moving, head, total - tail);
    gpuhal_mutex_finish(&moving.mutex);
    return moving.status ? gpuhal_error_restore(&moving.error) : GPUHAL_OK;
}
