/* faulty_name.c: looks up the misbehaving plugin's fault, which the environment variable FAULTY names. */
#include "faulty.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define GROUP(name)
#define FAULT(name, status, options, check, rule, sentence) #name,
#define FAULT_FILE(name, file, status, options, check, rule, sentence)
#define MISSED(name, why)   #name,
#define GOOD(name, options) #name,
#include "faults.inc"
};

enum gpuhal_faulty_name gpuhal_faulty(void)
{
    static atomic_int known = -1;
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found >= 0) {
        return (enum gpuhal_faulty_name)found;
    }
    const char *wanted = getenv("FAULTY");
    for (found = 0; found < FAULT_NONE && (wanted == NULL || strcmp(names[found], wanted) != 0); found++) {
    }
    atomic_store_explicit(&known, found, memory_order_relaxed);
    return (enum gpuhal_faulty_name)found;
}

#ifdef EXTRA_SYMBOL
GPUHAL_API extern const int gpuhal_faulty_extra;
const int gpuhal_faulty_extra = 1;
#endif
