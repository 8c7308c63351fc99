/* registry/fields.h: the records as text: one table maps members to keys, for reading, writing and freeing. */
#ifndef GPUHAL_REGISTRY_FIELDS_H
#define GPUHAL_REGISTRY_FIELDS_H

#include "base/records.h"
#include "registry/database.h"

/* Result of reading. Running out of memory does not mean damage. */
typedef enum { GPUHAL_READ_OK, GPUHAL_READ_DAMAGED, GPUHAL_READ_NO_MEMORY } gpuhal_read_result;

size_t gpuhal_record_size(gpuhal_database_kind kind);
/* Returns the kind with that name in text; RECORD_KINDS for an unknown one. */
gpuhal_database_kind gpuhal_record_kind_of(const char *name);

/* Writes the kind and its pairs. */
void gpuhal_record_write(gpuhal_database_kind kind, const void *record, gpuhal_text *to);
/* Reads the whole text into a zeroed record. The record must be finished with any result. */
gpuhal_read_result gpuhal_record_read(gpuhal_database_kind kind, const char *text, size_t bytes, void *record);
/* Frees the members of the record. */
void gpuhal_record_finish(gpuhal_database_kind kind, void *record);

#endif
