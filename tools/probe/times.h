/* times.h: formats times for people. */
#ifndef PROBE_TIMES_H
#define PROBE_TIMES_H

#include <stdint.h>

#define GPUHAL_PROBE_TIME_BYTES 40u

/* Writes local time: "2026-11-21 14:03". `seconds` counts from 1970; 0 and invalid times become "an unknown time". */
void gpuhal_probe_format_time(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES]);
/* Writes only the date: "2026-11-21". */
void gpuhal_probe_format_day(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES]);

#endif
