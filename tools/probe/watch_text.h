/* watch_text.h: numbers of the live view as texts for people, and their warning colours. */
#ifndef PROBE_WATCH_TEXT_H
#define PROBE_WATCH_TEXT_H

#include "screen.h"
#include "watch_view.h"

enum { WATCH_TEXT_BYTES = 48 };

/* Writes "98%", "61.0/80.0 GiB", "67°C", "644/700 W", "1980 MHz"; "-" if it is not known. */
void gpuhal_watch_number_text(const gpuhal_watch_row *row, gpuhal_watch_number number, bool utf8,
                              char text[WATCH_TEXT_BYTES]);
/* "61.0 GiB". */
void gpuhal_watch_bytes_text(uint64_t bytes, char text[WATCH_TEXT_BYTES]);
/* Returns the whole that the number is a part of, in the number's unit: the total memory, the power limit, 100 degrees;
 * 0: not known. */
double gpuhal_watch_whole(const gpuhal_watch_row *row, gpuhal_watch_number number);
/* Returns yellow or red, by the share of the whole. A busy GPU is no reason for a warning. */
gpuhal_probe_style gpuhal_watch_style(gpuhal_watch_number number, double share);

#endif
