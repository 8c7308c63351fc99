/* loader/slot_tables.h: the slots that describe() and open() of a plugin fill in. The functions are pure. */
#ifndef GPUHAL_LOADER_SLOT_TABLES_H
#define GPUHAL_LOADER_SLOT_TABLES_H

#include "base/facts.h"

#include <gpuhal/direct.h>

#include <stdbool.h>

/* The bytes of gpuhal_slots that are not slots: the sizes and versions of seven tables, and six pointers to tables. */
#define GPUHAL_SLOTS_HEADER_BYTES (7 * 2 * sizeof(uint32_t) + 6 * sizeof(void *))

typedef struct gpuhal_slots_text {
    char problem[128]; /* the broken rule */
    char unknown[624]; /* the groups with a version that this library does not know; "" if there are none */
} gpuhal_slots_text;

/* Copies the slots and the tables of the groups. Returns false and sets `problem` if a table is too small, a mandatory
 * slot is missing, or only one slot of a pair is set. */
bool gpuhal_slots_read(const gpuhal_ops *ops, gpuhal_slots *out_slots, gpuhal_slots_text *out_text);
/* Returns the GPUHAL_CAPABILITY_ bits that follow from the slots and facts. */
uint32_t gpuhal_slots_capabilities(const gpuhal_slots *slots, const gpuhal_facts *facts);

#endif
