/* tests/support/faulty_helper.h: the memory that a test shares with the helper program that has failing calls. */
#ifndef GPUHAL_TEST_FAULTY_HELPER_H
#define GPUHAL_TEST_FAULTY_HELPER_H

#include <stdatomic.h>

typedef struct helper_faults {
    unsigned kind; /* gpuhal_fault */
    unsigned at;
    _Atomic unsigned calls; /* of all helpers since the test set it */
} helper_faults;

#endif
