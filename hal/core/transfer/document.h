/* transfer/document.h: a text that is written to a file in parts, as traces are. It has another name until it is
 * complete, so an existing file stays as it was until then. Only an empty file is replaced, or one that begins with the
 * header of such a document: any other may be the user's work. A symbolic link stays, and its target is replaced; a
 * device is written in its place. Pipes are refused, and so is the file that the program's own output goes to. */
#ifndef GPUHAL_TRANSFER_DOCUMENT_H
#define GPUHAL_TRANSFER_DOCUMENT_H

#include "base/log.h"
#include "base/text.h"

#include <gpuhal/types.h>

#include <stdint.h>

typedef struct gpuhal_document_kind {
    const char *what;   /* for messages: "a trace of queues" */
    const char *header; /* every document of the kind begins with it, and no other file is likely to */
} gpuhal_document_kind;

typedef struct gpuhal_document {
    const gpuhal_document_kind *kind;
    const char *path;
    gpuhal_text text; /* to be written next */
    char *place;      /* the path with links followed; NULL: it is written at the path itself */
    char *fresh;      /* its name until it is complete; NULL with `place` */
    intptr_t file;
    uint64_t bytes; /* written so far */
} gpuhal_document;

/* All return the status of gpuhal_file_status(), with the system's call in the detail, or HOST_MEMORY. */

/* Begins a document. On success the text has the kind's header, and the document must be ended. `kind` and `path` are
 * the caller's and must outlive it. INVALID_ARGUMENT for a file that must not be replaced. */
gpuhal_status gpuhal_document_create(const gpuhal_document_kind *kind, const char *path, gpuhal_document *out_document);
/* Writes the text and empties it. */
gpuhal_status gpuhal_document_write(gpuhal_document *document);
/* Ends it. OK writes the rest and puts the file in its place, any other status removes it. Returns the first
 * failure. */
gpuhal_status gpuhal_document_end(gpuhal_document *document, gpuhal_status status);

/* Tries whether a file that an environment variable names can be written, and leaves its contents: INVALID_ARGUMENT
 * with the variable's name, HOST_MEMORY. */
gpuhal_status gpuhal_document_try(const char *variable, const gpuhal_document_kind *kind, const char *path);
/* Calls `write` when the object is closed. A failure goes to the log, and the thread's last error stays. */
void gpuhal_document_write_at_close(gpuhal_log *log, gpuhal_status (*write)(void *user, const char *path), void *user,
                                    const char *path);

#endif
