/* watch_text.h: formats numbers for the live view, and chooses their warning colours. */
#ifndef PROBE_WATCH_TEXT_H
#define PROBE_WATCH_TEXT_H

#include "screen.h"
#include "watch_view.h"

enum { WATCH_TEXT_BYTES = 48 };

/* Writes "98%", "61.0/80.0 GiB", "67°C", "644/700 W" or "1980 MHz"; "-" if unknown. */
void gpuhal_watch_number_text(const gpuhal_watch_row *row, gpuhal_watch_number number, bool utf8,
                              char text[WATCH_TEXT_BYTES]);
/* Writes "61.0 GiB". */
void gpuhal_watch_bytes_text(uint64_t bytes, char text[WATCH_TEXT_BYTES]);
/* Returns the maximum of a number with a curve, in the number's unit: total memory, power limit, 100 degrees or 1000
 * permille; 0 if unknown. */
double gpuhal_watch_whole(const gpuhal_watch_row *row, gpuhal_watch_number number);
/* Returns the colour for a share of the maximum; large shares are yellow or red. A busy GPU does not cause a
 * warning. */
gpuhal_probe_style gpuhal_watch_style(gpuhal_watch_number number, double share);

#endif
