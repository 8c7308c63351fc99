/* link_rows.h: the links between listed devices, and the short names and meanings of the links' kinds. The tables
 * (matrix.c) and the sentences (link_sentences.c) use them. */
#ifndef PROBE_LINK_ROWS_H
#define PROBE_LINK_ROWS_H

#include "links.h"

#include <gpuhal/link.h>

typedef struct gpuhal_probe_link_rows {
    const gpuhal_probe_machine *machine;
    const gpuhal_probe_screen *screen;
    uint32_t *rows; /* indices of the devices */
    uint32_t count;
} gpuhal_probe_link_rows;

/* The library's kinds (0 if unknown) and two others. */
enum { PROBE_KIND_DIRECT = GPUHAL_LINK_HOST + 1, PROBE_KIND_VENDOR, PROBE_KINDS };

extern const char *const gpuhal_probe_link_words[PROBE_KINDS][2];

const gpuhal_probe_link *gpuhal_probe_link_between(const gpuhal_probe_link_rows *own, uint32_t from_row,
                                                   uint32_t to_row);
size_t gpuhal_probe_link_kind(const gpuhal_probe_link *link);
/* Returns '+' if one device can access the other's memory, '!' if the link failed, else 0. */
char gpuhal_probe_link_mark(const gpuhal_probe_link *link);

/* Returns whether one sentence may describe both links. Links that failed, or that have a vendor's own kind, are never
 * alike. */
bool gpuhal_probe_links_are_alike(const gpuhal_probe_link *a, const gpuhal_probe_link *b);
/* Writes "NVLink 4 all to all, 18 links each", with `words` in place of " all to all". */
void gpuhal_probe_write_link(const gpuhal_probe_link *link, const char *words, char *to, size_t bytes);

/* Prints one sentence if all links are alike, or one for each group of devices. Returns false if a table is
 * required. */
bool gpuhal_probe_print_link_sentences(const gpuhal_probe_link_rows *own);

#endif
