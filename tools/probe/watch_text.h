/* watch_text.h: numbers of the live view as texts for people, and what is too
 * much of them. */
#ifndef PROBE_WATCH_TEXT_H
#define PROBE_WATCH_TEXT_H

#include "screen.h"
#include "watch_view.h"

enum { WATCH_TEXT_BYTES = 48 };

/* "98%", "61.0/80.0 GiB", "67°C", "644/700 W", "1980 MHz"; "-"
 * where it is not known. */
void gpuhal_watch_number_text(const gpuhal_watch_row *row, gpuhal_watch_number number, bool utf8,
                              char text[WATCH_TEXT_BYTES]);
/* "61.0 GiB". */
void gpuhal_watch_bytes_text(uint64_t bytes, char text[WATCH_TEXT_BYTES]);
/* What the number is a part of, in its own unit: the memory in all, the power
 * limit, 100 degrees; 0: not known. */
double gpuhal_watch_whole(const gpuhal_watch_row *row, gpuhal_watch_number number);
/* Yellow and red, by the share of the whole. That a GPU works is nothing to
 * warn of. */
gpuhal_probe_style gpuhal_watch_style(gpuhal_watch_number number, double share);

#endif
