/* signals.h: the signals that end a run early. The finished checks are still reported. */
#ifndef GPUHAL_CHECK_SIGNALS_H
#define GPUHAL_CHECK_SIGNALS_H

#include <sys/types.h>

/* Catches SIGINT, SIGTERM and SIGHUP once each, unless the parent process ignores them. A second signal kills the
 * program. */
void gpuhal_signals_catch(void);
/* Undoes gpuhal_signals_catch(): in a child, and before this program ends itself with the signal that arrived. */
void gpuhal_signals_release(void);
/* Sets the process group that is killed if a signal arrives, so that waiting for the child ends; 0 for no group. If a
 * signal has already arrived, the group is killed immediately. */
void gpuhal_signals_set_child(pid_t child);
/* Returns the signal that arrived, or 0. */
int gpuhal_signals_caught(void);
/* Returns the name of the signal that arrived ("SIGTERM"), or NULL. */
const char *gpuhal_signals_name(void);

#endif
