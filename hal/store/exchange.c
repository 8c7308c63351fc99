/* store/exchange.c: restores entry A if entry B has to leave for it, but neither host memory nor the file has room for
 * a copy of B. The copy of A moves to memory that no limit counts, and the copy of B takes its place. */
#include "store/store.h"

#include "base/error.h"

#include <string.h>

/* Returns whether any entry stays in device memory only because there is no room for its copy. */
static bool would_help(gpuhal_store *store)
{
    gpuhal_pressure_figures figures = {0};
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_store_count(store, GPUHAL_ROOM_SPILL, &figures);
    gpuhal_mutex_unlock(&store->mutex);
    return figures.stuck_bytes > 0;
}

static gpuhal_status fill_spare(gpuhal_store *store, const gpuhal_entry *entry, const gpuhal_host_copy *spare)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        const uint64_t bytes = entry->parts[i].bytes;
        if (entry->host) {
            memcpy(spare->parts[i].memory, entry->host->parts[i].memory, (size_t)bytes);
        } else {
            status = gpuhal_file_read(store, entry->file, entry, i, 0, spare->parts[i].memory, bytes);
        }
    }
    return status;
}

/* Replaces the entry's copies with a copy that no limit counts. Threads that read an old copy have a reference to it.
 */
static void change_copy(gpuhal_store *store, gpuhal_entry *entry, gpuhal_host_copy *spare)
{
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_host_copy *host = gpuhal_entry_detach_host(store, entry);
    gpuhal_file_copy *file = gpuhal_entry_detach_file(store, entry);
    entry->host = spare;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_host_release(host);
    gpuhal_file_release(file);
}

gpuhal_status gpuhal_exchange_begin(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_error_detail before;
    gpuhal_host_copy *spare = NULL;
    gpuhal_error_save(&before);
    if (!would_help(store) || gpuhal_host_create_spare(entry, &spare)) {
        gpuhal_error_restore(&before);
        return GPUHAL_ERROR_OUT_OF_MEMORY;
    }
    const gpuhal_status status = fill_spare(store, entry, spare);
    if (status) {
        gpuhal_host_release(spare);
        return status;
    }
    change_copy(store, entry, spare);
    return GPUHAL_OK;
}

/* Keeps the copy, because only it has the entry's bytes. Moves it to the file. If that fails or there is no file, the
 * copy counts from now on, even above the limit. */
static void keep_spare(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_error_detail before;
    gpuhal_host_copy *spare = entry->host;
    gpuhal_file_copy *file = NULL;
    gpuhal_error_save(&before);
    const bool in_file = store->file && gpuhal_file_take(store, entry, spare, &file) == GPUHAL_OK;
    gpuhal_error_restore(&before);
    gpuhal_mutex_lock(&store->mutex);
    entry->host = NULL;
    if (in_file) {
        gpuhal_entry_attach_file(store, entry, file);
    } else {
        gpuhal_entry_attach_host(store, entry, spare);
    }
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_host_release(in_file ? spare : NULL);
}

void gpuhal_exchange_end(gpuhal_store *store, gpuhal_entry *entry, bool is_back)
{
    if (!is_back) {
        keep_spare(store, entry);
        return;
    }
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_host_copy *spare = entry->host;
    entry->host = NULL;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_host_release(spare);
}
