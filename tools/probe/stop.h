/* stop.h: signal handling for repeated listings and the live view. The handler only records the signal and makes a
 * descriptor readable. */
#ifndef PROBE_STOP_H
#define PROBE_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* Catches SIGINT, SIGTERM and SIGHUP, and with `screen` also SIGWINCH and SIGTSTP. Returns false with errno. */
bool gpuhal_probe_stop_catch(bool screen);
/* Returns the signal that ends the program; 0 if no such signal has arrived. */
int gpuhal_probe_stopped(void);
/* Returns SIGWINCH or SIGTSTP, or 0 if neither is pending. Several pending signals of one kind are returned once. */
int gpuhal_probe_stop_next(void);
/* Returns a descriptor that becomes readable after a signal and stays readable until gpuhal_probe_stop_next() is
 * called. */
int gpuhal_probe_stop_descriptor(void);
/* Waits until `until_ns` on the monotonic clock, until a fatal signal, or until `descriptor` (-1 for none) is readable.
 * Returns true only in the last case. */
bool gpuhal_probe_stop_wait(uint64_t until_ns, int descriptor);

#endif
