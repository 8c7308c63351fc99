/* store/file.c: copies of entries in the store's unnamed file. Each part of an entry has a block, and each chunk of a
 * block has a checksum in memory, so damaged bytes are never returned as the entry's contents. */
#include "store/store.h"

#include "base/error.h"
#include "registry/checksum.h"
#include "transfer/file_pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks and chunks begin at multiples of UNIT, as reads that bypass the page cache require. */
enum { PIECE_BYTES = 256 << 10, UNIT = 4096 };
/* Maximum file size, within the limits of block regions and file offsets. */
#define FILE_BYTES_MAX (UINT64_C(1) << 60)

struct gpuhal_store_file {
    char *name; /* for messages */
    intptr_t file;
    gpuhal_blocks blocks; /* protected by the store's mutex */
    gpuhal_bins *bins;
};

/* ---- the file */

void gpuhal_file_close(gpuhal_store *store)
{
    struct gpuhal_store_file *own = store->file;
    if (own) {
        gpuhal_os_descriptor_close(own->file);
        gpuhal_blocks_finish(&own->blocks);
        gpuhal_bins_destroy(own->bins);
        free(own->name);
        free(own);
    }
}

/* Only written bytes occupy disk space. */
static bool set_up(struct gpuhal_store_file *own, const char *folder, uint64_t limit)
{
    const size_t bytes = strlen(folder) + sizeof "a store's file in ";
    const uint64_t space = (limit && limit < FILE_BYTES_MAX ? limit : FILE_BYTES_MAX) & ~(uint64_t)(UNIT - 1);
    own->name = malloc(bytes);
    own->bins = gpuhal_bins_create();
    if (!own->name || !own->bins) {
        return false;
    }
    snprintf(own->name, bytes, "a store's file in %s", folder);
    return space == 0 || gpuhal_blocks_add(&own->blocks, own->bins, 0, space) != 0;
}

gpuhal_status gpuhal_file_open(gpuhal_store *store, const char *folder)
{
    struct gpuhal_store_file *own = calloc(1, sizeof *own);
    if (!own) {
        return gpuhal_error_host_memory();
    }
    *own = (struct gpuhal_store_file){.file = -1};
    gpuhal_blocks_init(&own->blocks);
    store->file = own;
    if (!set_up(own, folder, store->desc.file_bytes)) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_os_file_open_unnamed(folder, &own->file);
    if (error) {
        /* ENOTDIR means that a file is in a folder's place, so creating the folder would not help. */
        const gpuhal_status status = error == ENOTDIR ? GPUHAL_ERROR_INVALID_ARGUMENT : gpuhal_file_status(error);
        gpuhal_error_set(status, "gpuhal_store_create: no file can be made in %s: %s", folder, strerror(error));
        gpuhal_error_add_call("open", error, strerror(error));
        return status;
    }
    return GPUHAL_OK;
}

/* ---- a copy */

/* The caller holds the mutex. */
static void give_blocks(gpuhal_store *store, gpuhal_file_copy *copy)
{
    for (uint32_t i = 0; i < copy->count; i++) {
        if (copy->parts[i].block) {
            gpuhal_blocks_give(&store->file->blocks, store->file->bins, copy->parts[i].block);
            store->file_error = 0;
        }
    }
}

void gpuhal_file_release(gpuhal_file_copy *copy)
{
    if (copy && atomic_fetch_sub(&copy->references, 1) == 1) {
        gpuhal_store *store = copy->store;
        gpuhal_mutex_lock(&store->mutex);
        give_blocks(store, copy);
        gpuhal_mutex_unlock(&store->mutex);
        free((void *)copy->sums);
        free(copy);
    }
}

gpuhal_file_copy *gpuhal_file_retain(gpuhal_file_copy *copy)
{
    if (copy) {
        atomic_fetch_add(&copy->references, 1);
    }
    return copy;
}

static uint64_t pieces_of(uint64_t bytes)
{
    return bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0);
}

static uint64_t units_of(uint64_t bytes)
{
    return (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

uint64_t gpuhal_file_bytes(const gpuhal_entry *entry, uint64_t *out_largest)
{
    uint64_t sum = 0;
    *out_largest = 0;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        const uint64_t bytes = units_of(entry->parts[i].bytes);
        sum += bytes;
        *out_largest = bytes > *out_largest ? bytes : *out_largest;
    }
    return sum;
}

uint32_t gpuhal_file_room(const gpuhal_store *store, uint64_t *out_bytes, uint64_t *out_largest)
{
    const int error = store->file_error;
    const bool usable = store->file && !error;
    *out_bytes = usable ? gpuhal_bins_free_bytes(store->file->bins) : 0;
    *out_largest = usable ? gpuhal_bins_largest(&store->file->blocks, store->file->bins) : 0;
    if (error) {
        return gpuhal_os_disk_is_full(error) ? GPUHAL_LACKS_DISK_ROOM : GPUHAL_LACKS_FILE;
    }
    return store->file ? GPUHAL_LACKS_FILE_ROOM : GPUHAL_LACKS_FOLDER;
}

/* The caller holds the mutex. */
static gpuhal_status take_blocks(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_file_copy *copy)
{
    struct gpuhal_store_file *own = store->file;
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        const uint64_t bytes = units_of(entry->parts[i].bytes);
        if (!gpuhal_blocks_reserve(&own->blocks)) {
            return gpuhal_error_host_memory();
        }
        const gpuhal_block_id block = gpuhal_blocks_take(&own->blocks, own->bins, bytes, UNIT);
        if (!block) {
            return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY, "%s has no room for %" PRIu64 " bytes", own->name,
                                    bytes);
        }
        copy->parts[i] = (gpuhal_file_part){
            .block = block, .offset = gpuhal_block_at(&own->blocks, block)->offset, .first_sum = pieces};
        pieces += pieces_of(bytes);
    }
    return GPUHAL_OK;
}

static gpuhal_status create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_file_copy **out_copy)
{
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        pieces += pieces_of(entry->parts[i].bytes);
    }
    gpuhal_file_copy *copy = calloc(1, sizeof *copy + entry->part_count * sizeof *copy->parts);
    _Atomic uint32_t *sums = calloc((size_t)pieces, sizeof *sums);
    if (!copy || !sums) {
        free(copy);
        free((void *)sums);
        return gpuhal_error_host_memory();
    }
    atomic_init(&copy->references, 1);
    copy->store = store;
    copy->count = entry->part_count;
    copy->sums = sums;
    *out_copy = copy;
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_status status = take_blocks(store, entry, copy);
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}

/* ---- checksums */

/* Checksums of a part's chunks. Bytes may be added in any order. */
typedef struct summing {
    _Atomic uint32_t *sums;
    uint64_t size;
} summing;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void add(void *user, uint64_t at, const void *bytes, uint64_t count)
{
    const summing *s = user;
    const unsigned char *from = bytes;
    for (uint64_t next = at; count > 0; count -= next - at, from += next - at, at = next) {
        const uint64_t piece = at / PIECE_BYTES, end = smaller((piece + 1) * PIECE_BYTES, s->size);
        next = smaller(at + count, end);
        const uint32_t sum = gpuhal_checksum(0, from, (size_t)(next - at));
        atomic_fetch_xor_explicit(&s->sums[piece], gpuhal_checksum_shift(sum, end - next), memory_order_relaxed);
    }
}

static gpuhal_status damaged(const gpuhal_store *store, const gpuhal_entry *entry, uint64_t offset)
{
    char text[GPUHAL_KEY_TEXT];
    return gpuhal_error_set(GPUHAL_ERROR_FILE, "\"%s\": its copy is damaged: %s, offset %" PRIu64,
                            gpuhal_key_text(entry->key, entry->key_bytes, text), store->file->name, offset);
}

/* Prepends the key to the failed read's error message. */
static gpuhal_status unreadable(const gpuhal_entry *entry, gpuhal_status status)
{
    gpuhal_error_detail why;
    char text[GPUHAL_KEY_TEXT];
    gpuhal_error_save(&why);
    gpuhal_key_text(entry->key, entry->key_bytes, text);
    gpuhal_error_set(status, "\"%s\": its copy cannot be read: %s", text, why.sentence);
    gpuhal_error_add_call(why.vendor_call, why.error.vendor_code, why.vendor_text);
    return status;
}

/* ---- between the file and device memory; call without the mutex */

/* Moves a part in chunks, which several threads may move in parallel. A read verifies the bytes only after they have
 * reached device memory. No other thread uses the part before then. */
static gpuhal_status move_part(gpuhal_store *store, const gpuhal_file_copy *copy, const gpuhal_entry *entry,
                               uint32_t part, bool writes, _Atomic uint32_t *sums)
{
    summing s = {.sums = sums, .size = entry->parts[part].bytes};
    gpuhal_file_job job = {.writes = writes,
                           .file = store->file->file,
                           .name = store->file->name,
                           .file_offset = copy->parts[part].offset,
                           .bytes = s.size,
                           .look = add,
                           .look_user = &s};
    gpuhal_file_job_set_buffer(&job, entry->parts[part].device, 0);
    return gpuhal_file_transfer(&job);
}

static gpuhal_status restore_part(gpuhal_store *store, const gpuhal_file_copy *copy, const gpuhal_entry *entry,
                                  uint32_t part)
{
    const gpuhal_file_part *from = &copy->parts[part];
    const uint64_t pieces = pieces_of(entry->parts[part].bytes);
    _Atomic uint32_t *sums = calloc((size_t)pieces, sizeof *sums);
    gpuhal_status status = sums ? move_part(store, copy, entry, part, false, sums) : gpuhal_error_host_memory();
    if (status == GPUHAL_ERROR_OUT_OF_RANGE) { /* the file was truncated */
        status = damaged(store, entry, from->offset);
    } else if (status == GPUHAL_ERROR_FILE) {
        status = unreadable(entry, status);
    }
    for (uint64_t i = 0; i < pieces && !status; i++) {
        if (sums[i] != copy->sums[from->first_sum + i]) {
            status = damaged(store, entry, from->offset + i * PIECE_BYTES);
        }
    }
    free((void *)sums);
    return status;
}

gpuhal_status gpuhal_file_give(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        status = restore_part(store, copy, entry, i);
    }
    return status;
}

/* ---- between the file and host memory; call without the mutex */

/* The system decides when the bytes are written to the disk. */
static gpuhal_status write_part(const gpuhal_store *store, const gpuhal_file_copy *copy, uint32_t part,
                                const char *from, uint64_t size)
{
    const gpuhal_file_part *to = &copy->parts[part];
    summing s = {.sums = &copy->sums[to->first_sum], .size = size};
    int error = 0;
    for (uint64_t at = 0, done = 0; at < size && !error; at += done) {
        const uint64_t bytes = smaller(size - at, PIECE_BYTES);
        add(&s, at, from + at, bytes);
        error = gpuhal_os_file_write_piece(store->file->file, to->offset + at, from + at, bytes, &done);
        if (error) {
            gpuhal_file_failed(store->file->name, "writing", to->offset + at + done, "pwrite", error);
        }
    }
    return error ? gpuhal_file_status(error) : GPUHAL_OK;
}

gpuhal_status gpuhal_file_take(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *host,
                               gpuhal_file_copy **out_copy)
{
    gpuhal_file_copy *copy = NULL;
    gpuhal_status status = create(store, entry, &copy);
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        status = host ? write_part(store, copy, i, host->parts[i].memory, entry->parts[i].bytes)
                      : move_part(store, copy, entry, i, true, &copy->sums[copy->parts[i].first_sum]);
    }
    const int error = status == GPUHAL_ERROR_FILE ? (int)gpuhal_last_error()->vendor_code : 0;
    if (status) {
        gpuhal_file_release(copy);
        copy = NULL;
    }
    if (error || !status) { /* even on a full disk, blocks that already have space can be overwritten */
        gpuhal_mutex_lock(&store->mutex);
        store->file_error = error;
        gpuhal_mutex_unlock(&store->mutex);
    }
    *out_copy = copy;
    return status;
}

static gpuhal_status read_piece(const gpuhal_store *store, const gpuhal_file_copy *copy, const gpuhal_entry *entry,
                                uint32_t part, uint64_t at, char *to)
{
    const gpuhal_file_part *from = &copy->parts[part];
    const uint64_t bytes = smaller(entry->parts[part].bytes - at, PIECE_BYTES), offset = from->offset + at;
    uint64_t done = 0;
    const int error = gpuhal_os_file_read_piece(store->file->file, offset, to, bytes, &done);
    if (error) {
        gpuhal_file_failed(store->file->name, "reading", offset + done, "pread", error);
        return unreadable(entry, gpuhal_file_status(error));
    }
    const bool is_right =
        done == bytes && gpuhal_checksum(0, to, (size_t)bytes) == copy->sums[from->first_sum + at / PIECE_BYTES];
    return is_right ? GPUHAL_OK : damaged(store, entry, offset);
}

gpuhal_status gpuhal_file_read(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry, uint32_t part,
                               uint64_t offset, void *to, uint64_t bytes)
{
    char *piece = gpuhal_os_pages_map(PIECE_BYTES);
    const uint64_t end = offset + bytes;
    gpuhal_status status = piece ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint64_t at = offset & ~(uint64_t)(PIECE_BYTES - 1); at < end && !status; at += PIECE_BYTES) {
        const uint64_t begin = at > offset ? at : offset, next = smaller(end, at + PIECE_BYTES);
        status = read_piece(store, copy, entry, part, at, piece);
        if (!status) {
            memcpy((char *)to + (begin - offset), piece + (begin - at), (size_t)(next - begin));
        }
    }
    if (piece) {
        gpuhal_os_pages_unmap(piece, PIECE_BYTES);
    }
    return status;
}
