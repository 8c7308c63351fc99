/* transfer/document.c: see document.h. */
#include "transfer/document.h"

#include "base/error.h"
#include "os/os.h"
#include "transfer/file_pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static gpuhal_status failed(const gpuhal_document *document, const char *call, int error)
{
    gpuhal_error_set(gpuhal_file_status(error), "%s cannot be written to %s: %s", document->kind->what, document->path,
                     error == ESPIPE ? "it is a pipe, a socket or a terminal; name a file" : strerror(error));
    gpuhal_error_add_call(call, error, strerror(error));
    return gpuhal_file_status(error);
}

/* Returns the path with links resolved, malloc'ed. If the path does not exist, not even as a
 * link, returns a copy of the path. A link without a target is an error. */
static char *followed(const char *path, int *out_error)
{
    gpuhal_file_info info;
    char *target = NULL;
    char *real = gpuhal_os_real_path(path, out_error);
    if (*out_error == ENOENT && gpuhal_os_link_info(path, &info, &target) == ENOENT) {
        real = gpuhal_text_copy(path);
        *out_error = real ? 0 : ENOMEM;
    }
    free(target);
    return real;
}

static char *fresh_name(const char *place)
{
    static _Atomic uint32_t number;
    return gpuhal_text_format("%s.new-%" PRId64 "-%u", place, gpuhal_os_process_own(), atomic_fetch_add(&number, 1));
}

/* Refuses a file that is neither empty nor such a document, because a mistake in the name must not destroy another
 * file. Refuses a file that cannot be read, because its contents are unknown. */
static gpuhal_status check_replaceable(const gpuhal_document *document)
{
    char begin[64];
    size_t length = 0;
    const size_t header = strlen(document->kind->header);
    const int error = gpuhal_os_file_read_at(document->place, 0, begin, sizeof begin, &length);
    if (error && error != ENOENT) {
        return failed(document, "open", error);
    }
    if (error || length == 0 || (length >= header && memcmp(begin, document->kind->header, header) == 0)) {
        return GPUHAL_OK;
    }
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                            "%s cannot be written to %s: the file there is not such a trace and would be lost; "
                            "remove it, or name another file",
                            document->kind->what, document->path);
}

gpuhal_status gpuhal_document_create(const gpuhal_document_kind *kind, const char *path, gpuhal_document *out_document)
{
    gpuhal_file_info info;
    gpuhal_document document = {.kind = kind, .path = path, .file = -1};
    gpuhal_status status = GPUHAL_OK;
    const char *call = "stat";
    int error = gpuhal_os_file_info(path, &info);
    const bool in_place = !error && !info.regular; /* a device must not be replaced, and a pipe has no name */
    /* If this file were replaced, the program's earlier and later output would be lost. */
    if (!error && info.regular && gpuhal_os_is_own_output(&info)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "%s cannot be written to %s: the output of this program goes there", kind->what, path);
    }
    if (!in_place && (!error || error == ENOENT)) {
        call = "realpath";
        document.place = followed(path, &error);
        document.fresh = error ? NULL : fresh_name(document.place);
        error = error || document.fresh ? error : ENOMEM;
    }
    if (!error && !in_place) {
        status = check_replaceable(&document);
    }
    if (!error && !status) {
        error = gpuhal_os_file_open(in_place ? path : document.fresh, true, &document.file);
        call = "open";
    }
    if (error || status) {
        if (document.fresh && !status) {
            (void)gpuhal_os_file_remove(document.fresh); /* the file may have been created although opening failed */
        }
        free(document.fresh);
        free(document.place);
        return status ? status : error == ENOMEM ? gpuhal_error_host_memory() : failed(&document, call, error);
    }
    gpuhal_text_printf(&document.text, "%s", kind->header);
    *out_document = document;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_document_write(gpuhal_document *document)
{
    uint64_t done = 0;
    if (document->text.failed) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_os_file_write_piece(document->file, document->bytes, document->text.data,
                                                 document->text.length, &done);
    document->bytes += done;
    document->text.length = 0;
    return error ? failed(document, "pwrite", error) : GPUHAL_OK;
}

gpuhal_status gpuhal_document_end(gpuhal_document *document, gpuhal_status status)
{
    status = status ? status : gpuhal_document_write(document);
    gpuhal_text_finish(&document->text);
    gpuhal_os_descriptor_close(document->file);
    if (!status && document->fresh) { /* another program may have created a file of this name in the meantime */
        status = check_replaceable(document);
    }
    if (!status && document->fresh) {
        const int error = gpuhal_os_file_rename(document->fresh, document->place);
        status = error ? failed(document, "rename", error) : GPUHAL_OK;
    }
    if (status && document->fresh) {
        (void)gpuhal_os_file_remove(document->fresh);
    }
    free(document->fresh);
    free(document->place);
    return status;
}

gpuhal_status gpuhal_document_try(const char *variable, const gpuhal_document_kind *kind, const char *path)
{
    gpuhal_document to;
    const gpuhal_status status = gpuhal_document_create(kind, path, &to);
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
