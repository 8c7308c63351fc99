/* signals.h: the signals that end a run early. The report of the finished checks is still made. */
#ifndef GPUHAL_CHECK_SIGNALS_H
#define GPUHAL_CHECK_SIGNALS_H

#include <sys/types.h>

/* Catches SIGINT, SIGTERM and SIGHUP, each once, unless the caller ignores it: a second one ends the program. */
void gpuhal_signals_catch(void);
/* Undoes that, in a child. */
void gpuhal_signals_release(void);
/* Sets the group of processes that a signal kills, which ends the wait for them; 0: none. The group is killed at once
 * if a signal has come already. */
void gpuhal_signals_set_child(pid_t child);
/* Returns the signal that came; 0: none. */
int gpuhal_signals_caught(void);
/* Returns its name, "SIGTERM"; NULL: none came. */
const char *gpuhal_signals_name(void);

#endif
