/* launch.c: see launch.h. The build includes the formats that an installed compiler supports. */
#include "launch.h"

#include <example_saxpy.h> /* by gpuhal_add_program() */

gpuhal_status saxpy_create(gpuhal_device *device, saxpy_kernel *saxpy)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(float)},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(uint32_t)}};
    const gpuhal_program_desc code = {
        .size = sizeof code, .codes = example_saxpy_codes, .code_count = example_saxpy_code_count};
    const gpuhal_kernel_desc desc = {
        .size = sizeof desc, .name = "saxpy", .parameters = parameters, .parameter_count = 4, .group_size = {64}};
    gpuhal_kernel_info info = {.size = sizeof info};
    *saxpy = (saxpy_kernel){0};
    gpuhal_status status = gpuhal_program_create(device, &code, &saxpy->program);
    status = status ? status : gpuhal_kernel_create(saxpy->program, &desc, &saxpy->kernel);
    status = status ? status : gpuhal_kernel_get_info(saxpy->kernel, &info);
    saxpy->group_size = info.group_size[0];
    return status;
}

void saxpy_finish(saxpy_kernel *saxpy)
{
    gpuhal_kernel_release(saxpy->kernel);
    gpuhal_program_release(saxpy->program);
}

gpuhal_status saxpy_launch(gpuhal_queue *queue, const saxpy_kernel *saxpy, gpuhal_buffer *y, gpuhal_buffer *x, float a,
                           uint32_t n)
{
    const gpuhal_argument arguments[] = {
        {.buffer = y}, {.buffer = x}, {.value = &a, .bytes = sizeof a}, {.value = &n, .bytes = sizeof n}};
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .arguments = arguments,
                                  .argument_count = 4,
                                  .groups = {(n + saxpy->group_size - 1) / saxpy->group_size, 1, 1}};
    return gpuhal_kernel_launch(queue, saxpy->kernel, &launch);
}
