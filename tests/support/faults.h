/* tests/support/faults.h: makes one call of a program fail, chosen by its number, and counts what the program holds.
 *
 * What is linked statically into a test with gpuhal_add_faults() makes its calls through this file (the linker's
 * --wrap), whatever the sanitizer; libraries that the program opens, and the C library itself, do not. Numbers count
 * from 1, over all threads.
 */
#ifndef GPUHAL_TEST_FAULTS_H
#define GPUHAL_TEST_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gpuhal_fault {
    GPUHAL_FAULT_NOTHING,
    GPUHAL_FAULT_FAIL,        /* a call of the system, or of the C library that makes one */
    GPUHAL_FAULT_SHORT,       /* of a write, half is done; other calls go on */
    GPUHAL_FAULT_KILL_BEFORE, /* SIGKILL */
    GPUHAL_FAULT_KILL_AFTER,  /* of a write, half is done before */
    GPUHAL_FAULT_ALLOCATION   /* memory for a program's own use */
} gpuhal_fault;

/* From now on the call number `at` of that kind fails; `error` 0: with what such a call fails with mostly. */
void gpuhal_fault_begin(gpuhal_fault kind, unsigned at, int error);
/* Whether the fault came to pass. */
bool gpuhal_fault_end(void);
/* Goes on counting there, from what it says. */
void gpuhal_fault_count_in(_Atomic unsigned *place);
/* How many calls of that kind there were. */
unsigned gpuhal_fault_calls(void);
/* The function that failed; "" when none did. */
const char *gpuhal_fault_name(void);
/* Allocations, and mappings, that were made and not given back since the program began. */
int64_t gpuhal_fault_held(void);

#endif
