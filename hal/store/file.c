/* store/file.c: copies of entries in the store's file, which has no name. Each part has a block of it, and each piece
 * of a block a checksum in memory, so that nothing that the file does not give back as it was written is taken for the
 * entry's bytes. */
#include "store/store.h"

#include "core/error.h"
#include "registry/checksum.h"
#include "transfer/file_pieces.h"

#include <gpuhal/transfer.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks and pieces begin at multiples of what reading around the page cache needs. */
enum { PIECE_BYTES = 1 << 20, UNIT = 4096 };
/* Within what a region of blocks may have, and an offset in a file. */
#define FILE_BYTES_MAX (UINT64_C(1) << 60)

struct gpuhal_store_file {
    char *name;                /* for messages */
    intptr_t file;
    gpuhal_direct_file direct; /* file -1: all reading is through the page cache */
    gpuhal_blocks blocks;      /* protected by the store's mutex */
    gpuhal_bins *bins;
};

/* ---- the file */

void gpuhal_file_close(gpuhal_store *store)
{
    struct gpuhal_store_file *own = store->file;
    if (own) {
        gpuhal_os_descriptor_close(own->file);
        if (own->direct.file >= 0) {
            gpuhal_os_descriptor_close(own->direct.file);
        }
        gpuhal_blocks_finish(&own->blocks);
        gpuhal_bins_destroy(own->bins);
        free(own->name);
        free(own);
    }
}

/* The file may have holes: only what was written takes room on the disk. */
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
    *own = (struct gpuhal_store_file){.file = -1, .direct.file = -1};
    gpuhal_blocks_init(&own->blocks);
    store->file = own;
    if (!set_up(own, folder, store->desc.file_bytes)) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_os_file_open_unnamed(folder, &own->file);
    if (error) {
        gpuhal_error_set(gpuhal_file_status(error), "gpuhal_store_create: no file can be made in %s: %s", folder,
                         strerror(error));
        gpuhal_error_add_call("open", error, strerror(error));
        return gpuhal_file_status(error);
    }
    (void)gpuhal_os_file_open_direct(own->file, &own->direct); /* without it, through the page cache */
    return GPUHAL_OK;
}

/* ---- a copy */

/* With the mutex held. */
static void give_blocks(gpuhal_store *store, gpuhal_file_copy *copy)
{
    for (uint32_t i = 0; i < copy->count; i++) {
        if (copy->parts[i].block) {
            gpuhal_blocks_give(&store->file->blocks, store->file->bins, copy->parts[i].block);
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
        free(copy->sums);
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

/* With the mutex held. */
static gpuhal_status take_blocks(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_file_copy *copy)
{
    struct gpuhal_store_file *own = store->file;
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        const uint64_t bytes = (entry->parts[i].bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
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
    uint32_t *sums = calloc((size_t)pieces, sizeof *sums);
    if (!copy || !sums) {
        free(copy);
        free(sums);
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

/* ---- moving, piece by piece, without the mutex */

/* What is moved, and where to: what a piece is written from, or read to. */
typedef struct moving {
    gpuhal_store *store;
    const gpuhal_entry *entry;
    gpuhal_file_copy *copy;
    const gpuhal_host_copy *host; /* writing: from there; NULL: from device memory */
    char *piece;                  /* PIECE_BYTES, for what the host has not at one place */
} moving;

static gpuhal_status write_piece(const moving *m, uint32_t part, uint64_t at, uint64_t bytes)
{
    const struct gpuhal_store_file *own = m->store->file;
    const gpuhal_file_part *to = &m->copy->parts[part];
    const char *from = m->host ? (const char *)m->host->parts[part].memory + at : m->piece;
    gpuhal_status status = m->host ? GPUHAL_OK
                                   : gpuhal_read(NULL, m->piece, m->entry->parts[part].device, at, bytes);
    if (status) {
        return status;
    }
    m->copy->sums[to->first_sum + at / PIECE_BYTES] = gpuhal_checksum(0, from, (size_t)bytes);
    uint64_t done = 0;
    const int error = gpuhal_os_file_write_piece(own->file, to->offset + at, from, bytes, &done);
    return error ? gpuhal_file_failed(own->name, "writing", to->offset + at + done, "pwrite", error) : GPUHAL_OK;
}

static gpuhal_status damaged(const moving *m, uint64_t offset)
{
    char text[GPUHAL_KEY_TEXT];
    return gpuhal_error_set(GPUHAL_ERROR_FILE, "\"%s\": its copy is damaged: %s, offset %" PRIu64,
                            gpuhal_key_text(m->entry->key, m->entry->key_bytes, text), m->store->file->name, offset);
}

/* Into `piece`. Around the page cache where that has nothing of it: memory is what is short. */
static gpuhal_status read_piece(const moving *m, uint32_t part, uint64_t at, uint64_t bytes)
{
    const struct gpuhal_store_file *own = m->store->file;
    const gpuhal_file_part *from = &m->copy->parts[part];
    const uint64_t offset = from->offset + at, whole = (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
    uint64_t done = 0;
    const bool direct = own->direct.file >= 0 && !gpuhal_os_file_is_cached(own->file, offset);
    int error = direct ? gpuhal_os_file_read_piece(own->direct.file, offset, m->piece, whole, &done) : 0;
    if (error || done < bytes) {
        error = gpuhal_os_file_read_piece(own->file, offset, m->piece, bytes, &done);
    }
    if (error) {
        return gpuhal_file_failed(own->name, "reading", offset + done, "pread", error);
    }
    const uint32_t sum = m->copy->sums[from->first_sum + at / PIECE_BYTES];
    return done >= bytes && gpuhal_checksum(0, m->piece, (size_t)bytes) == sum ? GPUHAL_OK : damaged(m, offset);
}

static gpuhal_status restore_piece(const moving *m, uint32_t part, uint64_t at, uint64_t bytes)
{
    gpuhal_status status = read_piece(m, part, at, bytes);
    return status ? status : gpuhal_write(NULL, m->entry->parts[part].device, at, m->piece, bytes);
}

static gpuhal_status move_all(const moving *m, gpuhal_status (*move)(const moving *, uint32_t, uint64_t, uint64_t))
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < m->entry->part_count; i++) {
        const uint64_t size = m->entry->parts[i].bytes;
        for (uint64_t at = 0; at < size && !status; at += PIECE_BYTES) {
            status = move(m, i, at, size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
        }
    }
    return status;
}

gpuhal_status gpuhal_file_take(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *host,
                               gpuhal_file_copy **out_copy)
{
    moving m = {.store = store, .entry = entry, .host = host};
    gpuhal_status status = create(store, entry, &m.copy);
    m.piece = status || host ? NULL : gpuhal_os_pages_map(PIECE_BYTES);
    if (!status && !host && !m.piece) {
        status = gpuhal_error_host_memory();
    }
    status = status ? status : move_all(&m, write_piece);
    if (m.piece) {
        gpuhal_os_pages_unmap(m.piece, PIECE_BYTES);
    }
    if (status) {
        gpuhal_file_release(m.copy);
        m.copy = NULL;
    }
    *out_copy = m.copy;
    return status;
}

gpuhal_status gpuhal_file_give(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry)
{
    const moving m = {.store = store, .entry = entry, .copy = copy, .piece = gpuhal_os_pages_map(PIECE_BYTES)};
    if (!m.piece) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = move_all(&m, restore_piece);
    gpuhal_os_pages_unmap(m.piece, PIECE_BYTES);
    return status;
}

gpuhal_status gpuhal_file_read(gpuhal_store *store, gpuhal_file_copy *copy, const gpuhal_entry *entry, uint32_t part,
                               uint64_t offset, void *to, uint64_t bytes)
{
    const moving m = {.store = store, .entry = entry, .copy = copy, .piece = gpuhal_os_pages_map(PIECE_BYTES)};
    const uint64_t size = entry->parts[part].bytes, end = offset + bytes;
    gpuhal_status status = m.piece ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint64_t at = offset & ~(uint64_t)(PIECE_BYTES - 1); at < end && !status; at += PIECE_BYTES) {
        const uint64_t begin = at > offset ? at : offset, next = end - at < PIECE_BYTES ? end : at + PIECE_BYTES;
        status = read_piece(&m, part, at, size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
        if (!status) {
            memcpy((char *)to + (begin - offset), m.piece + (begin - at), (size_t)(next - begin));
        }
    }
    if (m.piece) {
        gpuhal_os_pages_unmap(m.piece, PIECE_BYTES);
    }
    return status;
}
