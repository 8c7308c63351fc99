/* transfer/document.h: a text that is written to a file in several steps, such as a trace. The file has a temporary
 * name until it is complete, so an existing file stays intact until then. Only empty files and files that begin with
 * the header of such a document are replaced; any other file may be the user's work. A symbolic link is kept and its
 * target is replaced. A device is written in place. Pipes are refused, and so is the file that receives the program's
 * own output. */
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
    gpuhal_text text; /* to be written next */
    char *place;      /* the path with links resolved; NULL if written in place */
    char *fresh;      /* temporary name until it is complete; NULL if written in place */
    intptr_t file;
    uint64_t bytes; /* number written so far */
} gpuhal_document;

/* All functions return a gpuhal_file_status(), with the system call in the detail, or HOST_MEMORY. */

/* Begins a document whose text contains the kind's header. On success the caller must end it. `kind` and `path` belong
 * to the caller and must outlive it. Returns INVALID_ARGUMENT for a file that must not be replaced. */
gpuhal_status gpuhal_document_create(const gpuhal_document_kind *kind, const char *path, gpuhal_document *out_document);
/* Writes the text and empties it. */
gpuhal_status gpuhal_document_write(gpuhal_document *document);
/* Ends the document. With OK, writes the rest and moves the file to its final name; with any other status, removes it.
 * Returns the first failure. */
gpuhal_status gpuhal_document_end(gpuhal_document *document, gpuhal_status status);

/* Checks that the file named by an environment variable can be written, without changing its contents. Returns
 * INVALID_ARGUMENT with the variable's name, or HOST_MEMORY. */
gpuhal_status gpuhal_document_try(const char *variable, const gpuhal_document_kind *kind, const char *path);
/* Calls `write` when the gpuhal object is closed. Logs a failure, and preserves the thread's last error. */
void gpuhal_document_write_at_close(gpuhal_log *log, gpuhal_status (*write)(void *user, const char *path), void *user,
                                    const char *path);

#endif
