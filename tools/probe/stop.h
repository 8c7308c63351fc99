/* stop.h: the signals of listings that repeat, and of the live view. The handler keeps the signal and makes a
 * descriptor readable, nothing else. */
#ifndef PROBE_STOP_H
#define PROBE_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* Catches SIGINT, SIGTERM and SIGHUP from now on, and with `screen` SIGWINCH and SIGTSTP. Returns false with errno. */
bool gpuhal_probe_stop_catch(bool screen);
/* Returns the signal that ends the program; 0: none came. */
int gpuhal_probe_stopped(void);
/* Returns SIGWINCH or SIGTSTP, once for pending ones of its kind; 0: none. */
int gpuhal_probe_stop_next(void);
/* Returns a descriptor that is readable until gpuhal_probe_stop_next() is called. */
int gpuhal_probe_stop_descriptor(void);
/* Waits until the moment `until_ns` of the monotonic clock, a signal that ends, or until `descriptor` (-1: none) is
 * readable; returns whether it is. */
bool gpuhal_probe_stop_wait(uint64_t until_ns, int descriptor);

#endif
