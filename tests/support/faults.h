/* tests/support/faults.h: makes the n-th call of a program fail, and counts the resources that the program owns.
 *
 * gpuhal_add_faults() redirects calls to faults.c with the linker's --wrap. It redirects the calls of all code that is
 * linked statically into a test, with and without sanitizers. Calls in shared libraries, including the C library, are
 * not redirected. Calls are numbered from 1 across all threads. */
#ifndef GPUHAL_TEST_FAULTS_H
#define GPUHAL_TEST_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gpuhal_fault {
    GPUHAL_FAULT_NOTHING,
    GPUHAL_FAULT_FAIL,        /* a system call, or a C library call that makes one */
    GPUHAL_FAULT_SHORT,       /* a write writes only half of its bytes; other calls succeed */
    GPUHAL_FAULT_KILL_BEFORE, /* SIGKILL before the call */
    GPUHAL_FAULT_KILL_AFTER,  /* SIGKILL after the call; a write writes only half of its bytes */
    GPUHAL_FAULT_ALLOCATION   /* a memory allocation */
} gpuhal_fault;

/* From now on, makes call number `at` of this kind fail with `error`, or with the call's most common error if `error`
 * is 0. */
void gpuhal_fault_begin(gpuhal_fault kind, unsigned at, int error);
/* Ends the fault; returns true if it occurred. */
bool gpuhal_fault_end(void);
/* Continues counting calls in `*place`, from its current value. */
void gpuhal_fault_count_in(_Atomic unsigned *place);
unsigned gpuhal_fault_calls(void);
/* Returns the name of the function that failed, or "" if none failed. */
const char *gpuhal_fault_name(void);
/* Returns the number of allocations and mappings of the program that have not been released. */
int64_t gpuhal_fault_held(void);

#endif
