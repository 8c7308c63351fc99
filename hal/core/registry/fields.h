/* registry/fields.h: the records as text: a table maps members to keys, for reading, writing and freeing. */
#ifndef GPUHAL_REGISTRY_FIELDS_H
#define GPUHAL_REGISTRY_FIELDS_H

#include "base/records.h"
#include "registry/database.h"

typedef enum { GPUHAL_READ_OK, GPUHAL_READ_DAMAGED, GPUHAL_READ_NO_MEMORY } gpuhal_read_result;

size_t gpuhal_record_size(gpuhal_database_kind kind);
/* Returns the kind with this name; GPUHAL_DATABASE_KINDS if unknown. */
gpuhal_database_kind gpuhal_record_kind_of(const char *name);

void gpuhal_record_write(gpuhal_database_kind kind, const void *record, gpuhal_text *to);
/* Reads the whole text into a zeroed record, which must be finished even on failure. */
gpuhal_read_result gpuhal_record_read(gpuhal_database_kind kind, const char *text, size_t bytes, void *record);
void gpuhal_record_finish(gpuhal_database_kind kind, void *record);

#endif
