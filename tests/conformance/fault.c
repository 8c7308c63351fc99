/* fault.c: which fault this build of the plugin has. */
#include "faulty.h"

#define JOIN(a, b)  a##b
#define NAMED(name) JOIN(FAULT_, name)
const enum gpuhal_faulty_name gpuhal_faulty = NAMED(FAULT_NAME);

#ifdef EXTRA_SYMBOL
GPUHAL_API extern const int gpuhal_faulty_extra;
const int gpuhal_faulty_extra = 1;
#endif
