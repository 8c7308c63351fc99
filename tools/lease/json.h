/* json.h: the documents of gpuhal-lease, schema gpuhal.lease/1. */
#ifndef GPUHAL_LEASE_JSON_H
#define GPUHAL_LEASE_JSON_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

/* Reads the ledger as the library's JSON; the caller frees it. HOST_MEMORY has no error detail. */
gpuhal_status gpuhal_lease_read_ledger(gpuhal *gpu, char **out_text);
/* Prints the error as a document to standard output. It contains the meaning of the exit code, the sentence, and the
 * library's status. @status is GPUHAL_OK for errors outside the library; the document then contains null. If @gpu is
 * not NULL and the ledger can be read, the document also contains the ledger. Returns false if printing failed. */
bool gpuhal_lease_print_error(gpuhal *gpu, int exit_code, gpuhal_status status, const char *sentence);

#endif
