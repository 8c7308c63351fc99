/* program/group_size.c: the group sizes of a kernel. A launch may have another size than the kernel's own. Some drivers
 * compile for each size: a plugin then prepares sizes before they are launched (kernel_prepare), or the driver compiles
 * at the first launch of a size (PoCL). The list of sizes only grows, so that launches read it without a lock. */
#include "program/program.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Launches of further sizes than these count as first launches. */
#define SIZES_MAX 64u

gpuhal_status gpuhal_group_size_take(const gpuhal_device *device, const char *kernel, uint32_t threads[3])
{
    const gpuhal_facts *facts = &gpuhal_device_current(device)->facts;
    uint64_t all = 1;
    for (uint32_t i = 0; i < 3; i++) {
        threads[i] = threads[i] ? threads[i] : 1;
        const uint64_t limit = gpuhal_facts_u64(facts, GPUHAL_FACT_GROUP_SIZE_MAX_X + i, UINT32_MAX);
        if (threads[i] > limit) {
            return gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE,
                                    "%s: kernel %s: group_size[%u] is %u threads; the device can have %" PRIu64,
                                    device->id, kernel, i, threads[i], limit);
        }
        all = all > UINT32_MAX ? all : all * threads[i];
    }
    const uint64_t limit = gpuhal_facts_u64(facts, GPUHAL_FACT_GROUP_SIZE_MAX, UINT32_MAX);
    return all <= limit ? GPUHAL_OK
                        : gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE,
                                           "%s: kernel %s: a group of %u x %u x %u threads; the device can have "
                                           "%" PRIu64 " in all",
                                           device->id, kernel, threads[0], threads[1], threads[2], limit);
}

static bool is_equal(const uint32_t one[3], const uint32_t other[3])
{
    return one[0] == other[0] && one[1] == other[1] && one[2] == other[2];
}

gpuhal_group_size *gpuhal_group_size_find(const gpuhal_kernel *kernel, const uint32_t threads[3])
{
    if (__builtin_expect(is_equal(kernel->own_size.threads, threads), 1)) {
        return (gpuhal_group_size *)&kernel->own_size;
    }
    gpuhal_group_size *at = atomic_load_explicit(&kernel->other_sizes, memory_order_acquire);
    while (at && !is_equal(at->threads, threads)) {
        at = at->next;
    }
    return at;
}

gpuhal_status gpuhal_group_size_check(const gpuhal_kernel *kernel, const uint32_t threads[3])
{
    const gpuhal_device *device = kernel->program->device;
    const gpuhal_kernel_info *info = &kernel->info;
    if (is_equal(kernel->own_size.threads, threads)) {
        return GPUHAL_OK;
    }
    if (!(info->flags & GPUHAL_KERNEL_GROUP_SIZE)) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                                "%s: kernel %s: a group of %u x %u x %u threads: the code, or the device, fixes "
                                "%u x %u x %u",
                                device->id, kernel->name, threads[0], threads[1], threads[2], info->group_size[0],
                                info->group_size[1], info->group_size[2]);
    }
    const uint64_t all = (uint64_t)threads[0] * threads[1] * threads[2]; /* at most UINT32_MAX */
    return info->group_size_max == 0 || all <= info->group_size_max
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE,
                                  "%s: kernel %s: a group of %u x %u x %u threads; the kernel can have %u in all",
                                  device->id, kernel->name, threads[0], threads[1], threads[2], info->group_size_max);
}

/* Two threads may add the same size. Then the list has it twice, which is harmless: the launches of both count. */
static gpuhal_group_size *add(gpuhal_kernel *kernel, gpuhal_group_size *size)
{
    size->next = atomic_load(&kernel->other_sizes);
    while (!atomic_compare_exchange_weak(&kernel->other_sizes, &size->next, size)) {
    }
    return size;
}

static gpuhal_group_size *make(const uint32_t threads[3])
{
    gpuhal_group_size *size = malloc(sizeof *size);
    if (size) {
        memcpy(size->threads, threads, sizeof size->threads);
        atomic_init(&size->launched_bits[0], 0);
        atomic_init(&size->launched_bits[1], 0);
    }
    return size;
}

gpuhal_group_size *gpuhal_group_size_add(gpuhal_kernel *kernel, const uint32_t threads[3])
{
    gpuhal_group_size *size = gpuhal_group_size_find(kernel, threads);
    uint32_t count = 0;
    for (const gpuhal_group_size *at = atomic_load(&kernel->other_sizes); at; at = at->next) {
        count++;
    }
    if (!size && count < SIZES_MAX) {
        size = make(threads);
        size = size ? add(kernel, size) : NULL;
    }
    return size;
}

void gpuhal_group_size_free_all(gpuhal_kernel *kernel)
{
    gpuhal_group_size *at = atomic_load(&kernel->other_sizes);
    while (at) {
        gpuhal_group_size *next = at->next;
        free(at);
        at = next;
    }
}

static gpuhal_status prepare_in_plugin(gpuhal_kernel *kernel, const uint32_t threads[3])
{
    gpuhal_device *device = kernel->program->device;
    gpuhal_group_size *size = make(threads);
    if (!size) {
        return gpuhal_error_host_memory();
    }
    const gpuhal_call call = gpuhal_device_begin_compiling(device);
    gpuhal_status status =
        gpuhal_device_end_compiling(device, call, device->programs.kernel_prepare(kernel->handle, threads));
    status = status ? gpuhal_device_failed(device, status, "preparing groups of %u x %u x %u threads for kernel %s",
                                           threads[0], threads[1], threads[2], kernel->name)
                    : gpuhal_program_cache_put(kernel->program);
    if (status) {
        free(size);
        return status;
    }
    add(kernel, size);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_kernel_prepare(gpuhal_kernel *kernel, const uint32_t group_size[3])
{
    if (!kernel || !group_size) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_prepare: %s is NULL",
                                kernel ? "group_size" : "kernel");
    }
    gpuhal_device *device = kernel->program->device;
    uint32_t threads[3] = {group_size[0], group_size[1], group_size[2]};
    gpuhal_status status = gpuhal_device_check(device);
    if (!status && !threads[0] && !threads[1] && !threads[2]) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_kernel_prepare: kernel %s: group_size is 0 in each dimension", kernel->name);
    }
    status = status ? status : gpuhal_group_size_take(device, kernel->name, threads);
    status = status ? status : gpuhal_group_size_check(kernel, threads);
    if (status || !(kernel->info.flags & GPUHAL_KERNEL_PREPARED_SIZES) || gpuhal_group_size_find(kernel, threads)) {
        return status;
    }
    return prepare_in_plugin(kernel, threads);
}
