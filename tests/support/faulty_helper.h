/* tests/support/faulty_helper.h: the memory that a test shares with a helper program whose calls fail. */
#ifndef GPUHAL_TEST_FAULTY_HELPER_H
#define GPUHAL_TEST_FAULTY_HELPER_H

#include <stdatomic.h>

typedef struct helper_faults {
    unsigned kind; /* one of gpuhal_fault */
    unsigned at;
    _Atomic unsigned calls; /* number of calls in all helpers since the test has reset the number */
} helper_faults;

#endif
