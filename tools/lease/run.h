/* run.h: runs the command and returns its exit code. */
#ifndef GPUHAL_LEASE_RUN_H
#define GPUHAL_LEASE_RUN_H

/* Runs the command and waits for it to exit; @command ends with NULL. Signals that would end this program are forwarded
 * to the command. Returns the exit code for this program. If the command could not be run, *out_error is the errno,
 * else 0. */
int gpuhal_lease_run_command(char **command, int *out_error);

#endif
