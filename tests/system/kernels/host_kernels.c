/* A library of CPU kernels. NUMBER differs between the libraries that are built from this file. One of them calls the
 * function NEEDS. */
#include <gpuhal/code.h>

#define KERNEL __attribute__((visibility("default")))

KERNEL gpuhal_host_kernel_fn gpuhal_test_add, gpuhal_test_number;
KERNEL extern const int gpuhal_test_data;

#ifdef NEEDS
void NEEDS(void);
#endif

const int gpuhal_test_data = NUMBER;

/* out[i] += value, one element per thread of the group. */
void gpuhal_test_add(void *const *arguments, const gpuhal_host_group *group)
{
    uint32_t *out = arguments[0];
    const uint32_t value = *(const uint32_t *)arguments[1];
    for (uint32_t i = 0; i < group->group_size[0]; i++) {
        out[group->group[0] * group->full_size[0] + i] += value;
    }
}

void gpuhal_test_number(void *const *arguments, const gpuhal_host_group *group)
{
    (void)group;
#ifdef NEEDS
    NEEDS();
#endif
    *(int *)arguments[0] = gpuhal_test_data;
}
