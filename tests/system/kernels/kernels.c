/* tests/system/kernels/kernels.c: the kernels of this folder's shaders, in C. Each call does the work of one group. */
#include <gpuhal/code.h>

#include <string.h>

gpuhal_host_kernel_fn saxpy, reduce, matmul;

static uint32_t count_at(const void *argument)
{
    uint32_t count;
    memcpy(&count, argument, sizeof count);
    return count;
}

/* Without x, all its elements count as 1. */
void saxpy(void *const *arguments, const gpuhal_host_group *group)
{
    float *y = arguments[0], a;
    const float *x = arguments[1];
    const uint32_t n = count_at(arguments[3]), begin = group->group[0] * group->full_size[0];
    memcpy(&a, arguments[2], sizeof a);
    for (uint32_t i = begin; i < begin + group->group_size[0] && i < n; i++) {
        y[i] += x ? a * x[i] : a;
    }
}

void reduce(void *const *arguments, const gpuhal_host_group *group)
{
    float *sums = arguments[0], part[256];
    const float *elements = arguments[1];
    const uint32_t n = count_at(arguments[2]), begin = group->group[0] * 256;
    for (uint32_t own = 0; own < 256; own++) {
        part[own] = begin + own < n ? elements[begin + own] : 0.0f;
    }
    for (uint32_t width = 128; width > 0; width /= 2) {
        for (uint32_t own = 0; own < width; own++) {
            part[own] += part[own + width];
        }
    }
    sums[group->group[0]] = part[0];
}

void matmul(void *const *arguments, const gpuhal_host_group *group)
{
    float *c = arguments[0];
    const float *a = arguments[1], *b = arguments[2];
    const uint32_t n = count_at(arguments[3]);
    for (uint32_t y = 0; y < 16; y++) {
        for (uint32_t x = 0; x < 16; x++) {
            const uint32_t row = group->group[1] * 16 + y, column = group->group[0] * 16 + x;
            float sum = 0.0f;
            for (uint32_t k = 0; k < n && row < n && column < n; k++) {
                sum += a[row * n + k] * b[k * n + column];
            }
            if (row < n && column < n) {
                c[row * n + column] = sum;
            }
        }
    }
}
