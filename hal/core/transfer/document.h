/* transfer/document.h: a text, such as a trace, that is written to a file in several steps. The file has a temporary
 * name until it is complete. Until then, an existing file with the final name stays intact. An existing file is
 * replaced only if it is empty or begins with the header of such a document, because any other file may be the user's
 * work. A symbolic link is kept, and its target is replaced. A device file is written in place. Pipes are refused, and
 * so is the file that receives the program's own output. */
#ifndef GPUHAL_TRANSFER_DOCUMENT_H
#define GPUHAL_TRANSFER_DOCUMENT_H

#include "base/log.h"
#include "base/text.h"

#include <gpuhal/types.h>

#include <stdint.h>

typedef struct gpuhal_document_kind {
    const char *what;   /* for messages, e.g. "a trace of queues" */
    const char *header; /* every document of this kind begins with it, and other files are unlikely to */
} gpuhal_document_kind;

typedef struct gpuhal_document {
    const gpuhal_document_kind *kind;
    const char *path;
    gpuhal_text text; /* text to be written next */
    char *place;      /* the path with symbolic links resolved; NULL if written in place */
    char *fresh;      /* temporary name until the document is complete; NULL if written in place */
    intptr_t file;
    uint64_t bytes; /* number of bytes written so far */
} gpuhal_document;

/* If a system call fails, all functions but gpuhal_document_try() return a status from gpuhal_file_status(), with the
 * name of the call in the error detail. They may also return HOST_MEMORY. */

/* Begins a document whose text contains the kind's header. On success the caller must end the document. `kind` and
 * `path` belong to the caller and must outlive the document. Returns INVALID_ARGUMENT for a file that must not be
 * replaced. */
gpuhal_status gpuhal_document_create(const gpuhal_document_kind *kind, const char *path, gpuhal_document *out_document);
/* Writes the text to the file and empties the text. */
gpuhal_status gpuhal_document_write(gpuhal_document *document);
/* Ends the document. If `status` is OK, writes the rest and renames the file to its final name. Otherwise, or if one
 * of these steps fails, removes the temporary file. Returns the first failure. */
gpuhal_status gpuhal_document_end(gpuhal_document *document, gpuhal_status status);

/* Checks that the file named by an environment variable can be written, without changing its contents. Returns
 * INVALID_ARGUMENT with the variable's name, or HOST_MEMORY. */
gpuhal_status gpuhal_document_try(const char *variable, const gpuhal_document_kind *kind, const char *path);
/* Calls `write` when the gpuhal object is closed. Logs a failure, and preserves the thread's last error. */
void gpuhal_document_write_at_close(gpuhal_log *log, gpuhal_status (*write)(void *user, const char *path), void *user,
                                    const char *path);

#endif
