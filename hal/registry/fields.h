/* registry/fields.h: the records as text: one table says which member has which key, for reading, writing and freeing alike. */
#ifndef GPUHAL_REGISTRY_FIELDS_H
#define GPUHAL_REGISTRY_FIELDS_H

#include "core/records.h"
#include "registry/database.h"

/* What reading came to. Running out of memory is no damage. */
typedef enum { GPUHAL_READ_OK, GPUHAL_READ_DAMAGED, GPUHAL_READ_NO_MEMORY } gpuhal_read_result;

size_t gpuhal_record_size(gpuhal_record_kind kind);
/* "plugin": the kind's name in text. */
const char *gpuhal_record_name(gpuhal_record_kind kind);
/* RECORD_KINDS for a name that is none. */
gpuhal_record_kind gpuhal_record_kind_of(const char *name);

/* Adds the kind and its pairs. */
void gpuhal_record_write(gpuhal_record_kind kind, const void *record, gpuhal_text *to);
/* Reads such a text, as a whole, into a zeroed record. Whatever the answer, the record is to be finished. */
gpuhal_read_result gpuhal_record_read(gpuhal_record_kind kind, const char *text, size_t bytes, void *record);
/* Frees what the record holds. */
void gpuhal_record_finish(gpuhal_record_kind kind, void *record);

#endif
