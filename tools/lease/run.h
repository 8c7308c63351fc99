/* run.h: runs the command, and passes on its exit code. */
#ifndef GPUHAL_LEASE_RUN_H
#define GPUHAL_LEASE_RUN_H

/* Runs the command to its end; @command ends with NULL. Signals that would end this program are passed on to the
 * command. Returns the exit code for this program; *out_error: errno, when the command did not run, else 0. */
int gpuhal_lease_run_command(char **command, int *out_error);

#endif
