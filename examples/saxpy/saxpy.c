/* saxpy.c: computes y = a x + y for one group. */
#include <gpuhal/code.h>

gpuhal_host_kernel_fn saxpy;

void saxpy(void *const *arguments, const gpuhal_host_group *group)
{
    float *y = arguments[0];
    const float *x = arguments[1], a = *(const float *)arguments[2];
    const uint32_t n = *(const uint32_t *)arguments[3], begin = group->group[0] * group->full_size[0];
    for (uint32_t i = begin; i < begin + group->group_size[0] && i < n; i++) {
        y[i] += a * x[i];
    }
}
