/* tests/support/faults.h: makes one call of a program fail, chosen by its number, and counts the resources that the
 * program owns.
 *
 * Code that is linked statically into a test with gpuhal_add_faults() makes its calls through this file (the linker's
 * --wrap), with and without sanitizers. Libraries that the program loads, and the C library itself, do not. Calls are
 * numbered from 1 across all threads. */
#ifndef GPUHAL_TEST_FAULTS_H
#define GPUHAL_TEST_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gpuhal_fault {
    GPUHAL_FAULT_NOTHING,
    GPUHAL_FAULT_FAIL,        /* a system call, or a C library call that makes one */
    GPUHAL_FAULT_SHORT,       /* a write writes only half; other calls succeed */
    GPUHAL_FAULT_KILL_BEFORE, /* SIGKILL */
    GPUHAL_FAULT_KILL_AFTER,  /* after the call; a write writes only half */
    GPUHAL_FAULT_ALLOCATION   /* memory that the program allocates */
} gpuhal_fault;

/* Call number `at` of this kind fails from now on; `error` 0: with the call's most common error. */
void gpuhal_fault_begin(gpuhal_fault kind, unsigned at, int error);
/* Ends the fault; returns true if it occurred. */
bool gpuhal_fault_end(void);
/* Continues counting in `*place`, from its current value. */
void gpuhal_fault_count_in(_Atomic unsigned *place);
unsigned gpuhal_fault_calls(void);
/* The function that failed; "" if none did. */
const char *gpuhal_fault_name(void);
/* Allocations and mappings since the program began that were not released. */
int64_t gpuhal_fault_held(void);

#endif
