/* store/path.c: stores file contents as entries, which are read once for all callers. The key contains the range and
 * the file's device and inode, so all paths of a file share entries. It also contains the file's state, so a changed
 * file gets new entries. Old entries leave like any that a loader can restore. */
#include "store/store.h"

#include "base/error.h"
#include "os/os.h"
#include "transfer/file_pieces.h"

#include <gpuhal/file.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 160 };

typedef struct contents {
    const gpuhal_file *file;
    uint64_t bytes;
    gpuhal_file_state state;
} contents;

static gpuhal_status get_state(const char *path, gpuhal_file_state *out_state)
{
    const int error = gpuhal_os_file_state(path, out_state);
    if (error == 0) {
        return GPUHAL_OK;
    }
    gpuhal_error_set(gpuhal_file_status(error), "%s: %s (stat failed with errno %d)", path, strerror(error), error);
    gpuhal_error_add_call("stat", error, strerror(error));
    return gpuhal_file_status(error);
}

static bool is_same(const gpuhal_file_state *one, const gpuhal_file_state *other)
{
    return one->device == other->device && one->inode == other->inode && one->bytes == other->bytes &&
           one->modified_ns == other->modified_ns && one->changed_ns == other->changed_ns;
}

/* gpuhal_read_file() opens the file that has this name at some time between the two checks. */
static gpuhal_status load(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    const contents *own = user;
    gpuhal_file_state now;
    gpuhal_status status = gpuhal_read_file(queue, gpuhal_item_buffer(item, NULL), 0, own->file, own->bytes);
    status = status ? status : get_state(own->file->path, &now);
    return status || is_same(&own->state, &now)
               ? status
               : gpuhal_error_set(GPUHAL_ERROR_FILE, "%s has changed while it was read", own->file->path);
}

static gpuhal_status check(const gpuhal_file *file, contents *own)
{
    if (!file || file->size < sizeof *file || !file->path) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_store_acquire_file: file or its path is NULL, or its size is too small");
    }
    gpuhal_status status = get_state(file->path, &own->state);
    if (status) {
        return status;
    }
    const uint64_t all = own->state.bytes, rest = file->offset < all ? all - file->offset : 0;
    own->bytes = own->bytes == GPUHAL_WHOLE_SIZE ? rest : own->bytes;
    return own->bytes > 0 && own->bytes <= rest
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                  "%s: %" PRIu64 " bytes from offset %" PRIu64 " on, of a file of %" PRIu64, file->path,
                                  own->bytes, file->offset, all);
}

static uint64_t make_key(const contents *own, char key[KEY_BYTES])
{
    const gpuhal_file_state *state = &own->state;
    return (uint64_t)snprintf(key, KEY_BYTES,
                              "file %" PRIx64 ":%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64,
                              state->device, state->inode, own->file->offset, own->bytes, state->bytes,
                              (uint64_t)state->modified_ns, (uint64_t)state->changed_ns);
}

gpuhal_status gpuhal_store_acquire_file(gpuhal_store *store, gpuhal_queue *queue, const gpuhal_file *file,
                                        uint64_t bytes, uint64_t timeout_ns, gpuhal_item **out_item)
{
    contents own = {.file = file, .bytes = bytes};
    char key[KEY_BYTES];
    if (out_item) {
        *out_item = NULL;
    }
    gpuhal_status status = check(file, &own);
    if (status) {
        return status;
    }
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = own.bytes, .load = load, .user = &own};
    return gpuhal_store_acquire(store, queue, key, make_key(&own, key), &desc, 0, timeout_ns, out_item);
}
