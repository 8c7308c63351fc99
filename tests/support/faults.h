/* tests/support/faults.h: makes one call of a program fail, chosen by its number, and counts the resources that the
 * program holds.
 *
 * Code that is linked statically into a test with gpuhal_add_faults() makes its calls through this file (the linker's
 * --wrap), with and without sanitizers. Libraries that the program opens, and the C library itself, do not. Numbers
 * count from 1, over all threads.
 */
#ifndef GPUHAL_TEST_FAULTS_H
#define GPUHAL_TEST_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gpuhal_fault {
    GPUHAL_FAULT_NOTHING,
    GPUHAL_FAULT_FAIL,        /* a system call, or a call of the C library that makes one */
    GPUHAL_FAULT_SHORT,       /* a write does half; other calls succeed */
    GPUHAL_FAULT_KILL_BEFORE, /* SIGKILL */
    GPUHAL_FAULT_KILL_AFTER,  /* after the call; a write does half of it */
    GPUHAL_FAULT_ALLOCATION   /* memory for a program's own use */
} gpuhal_fault;

/* From now on call number `at` of that kind fails; `error` 0: with the most usual error of that call. */
void gpuhal_fault_begin(gpuhal_fault kind, unsigned at, int error);
/* Stops that; true if the fault happened. */
bool gpuhal_fault_end(void);
/* Continues the count in `*place`, from its present value. */
void gpuhal_fault_count_in(_Atomic unsigned *place);
/* Number of calls of that kind. */
unsigned gpuhal_fault_calls(void);
/* The function that failed; "" when none did. */
const char *gpuhal_fault_name(void);
/* Allocations and mappings that were made and not released since the program began. */
int64_t gpuhal_fault_held(void);

#endif
