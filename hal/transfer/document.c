/* transfer/document.c: see document.h. */
#include "transfer/document.h"

#include "core/error.h"
#include "os/os.h"
#include "transfer/file_pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static gpuhal_status failed(const gpuhal_document *to, const char *call, int error)
{
    gpuhal_error_set(gpuhal_file_status(error), "%s cannot be written to %s: %s", to->what, to->path, strerror(error));
    gpuhal_error_add_call(call, error, strerror(error));
    return gpuhal_file_status(error);
}

gpuhal_status gpuhal_document_create(const char *what, const char *path, gpuhal_document *to)
{
    static _Atomic uint32_t number;
    gpuhal_file_info info;
    *to = (gpuhal_document){.what = what, .path = path, .file = -1};
    const int unknown = gpuhal_os_file_info(path, &info);
    const bool in_place = !unknown && !info.regular;
    if (unknown && unknown != ENOENT) { /* it may be a device, which must not be replaced */
        return failed(to, "stat", unknown);
    }
    if (!in_place) {
        to->fresh = gpuhal_text_format("%s.new-%" PRId64 "-%u", path, gpuhal_os_process_own(),
                                       atomic_fetch_add(&number, 1));
        if (!to->fresh) {
            return gpuhal_error_host_memory();
        }
    }
    const int error = gpuhal_os_file_open(in_place ? path : to->fresh, true, &to->file);
    if (error && to->fresh) {
        (void)gpuhal_os_file_remove(to->fresh);
    }
    if (error) {
        free(to->fresh);
    }
    return error ? failed(to, "open", error) : GPUHAL_OK;
}

gpuhal_status gpuhal_document_write(gpuhal_document *to)
{
    uint64_t done = 0;
    if (to->text.failed) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_os_file_write_piece(to->file, to->bytes, to->text.data, to->text.length, &done);
    to->bytes += done;
    to->text.length = 0;
    return error ? failed(to, "pwrite", error) : GPUHAL_OK;
}

gpuhal_status gpuhal_document_end(gpuhal_document *to, gpuhal_status status)
{
    status = status ? status : gpuhal_document_write(to);
    gpuhal_text_finish(&to->text);
    gpuhal_os_descriptor_close(to->file);
    if (!status && to->fresh) {
        const int error = gpuhal_os_file_rename(to->fresh, to->path);
        status = error ? failed(to, "rename", error) : GPUHAL_OK;
    }
    if (status && to->fresh) {
        (void)gpuhal_os_file_remove(to->fresh);
    }
    free(to->fresh);
    return status;
}

gpuhal_status gpuhal_document_try(const char *variable, const char *what, const char *path)
{
    gpuhal_document to;
    const gpuhal_status status = gpuhal_document_create(what, path, &to);
    if (!status) {
        (void)gpuhal_document_end(&to, GPUHAL_ERROR_CANCELLED);
    } else if (status != GPUHAL_ERROR_HOST_MEMORY) {
        char *why = gpuhal_text_copy(gpuhal_last_error()->sentence);
        gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": %s", variable, path, why ? why : "");
        free(why);
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    return status;
}

void gpuhal_document_write_at_close(gpuhal_log *log, gpuhal_status (*write)(void *user, const char *path), void *user,
                                    const char *path)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    if (write(user, path)) {
        gpuhal_log_line(log, GPUHAL_LEVEL_WARNING, "%s", gpuhal_last_error()->sentence);
    }
    (void)gpuhal_error_restore(&before);
}
