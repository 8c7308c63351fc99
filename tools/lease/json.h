/* json.h: the documents of gpuhal-lease, schema gpuhal.lease/1. */
#ifndef GPUHAL_LEASE_JSON_H
#define GPUHAL_LEASE_JSON_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

/* Reads the ledger as the library's JSON, malloc'ed. HOST_MEMORY comes without a detail. */
gpuhal_status gpuhal_lease_read_ledger(gpuhal *gpu, char **out_text);
/* Prints the error as a document to standard output: the meaning of the exit code, the sentence, and the status of the
 * library, GPUHAL_OK if the library has no status for it. With @gpu the document has the ledger, too, if that can be
 * read. Returns false when printing failed. */
bool gpuhal_lease_print_error(gpuhal *gpu, int exit_code, gpuhal_status status, const char *sentence);

#endif
