/* transfer/write_path.c: see write_path.h. One thread measures, others take the path of the rule meanwhile. */
#include "transfer/write_path.h"

#include "device/fault_log.h"
#include "transfer/pageable.h"

/* Of the samples on each path the first is not counted: it makes staging memory, and the driver's. Of the others
 * the fastest counts, so that a thread that had to wait for a processor decides nothing. */
enum { BY_PLUGIN, STAGED, PATHS, ROUNDS = 3 };

/* As many bytes as all staging memory holds, so that all threads that copy through it have work; a multiple of
 * every alignment. */
static uint64_t sample_bytes(const gpuhal_device *device)
{
    return device->gpu->settings.staging_limit_bytes & ~(uint64_t)4095;
}

static gpuhal_status sample(const gpuhal_path_move *move, int path, uint64_t done, uint64_t *out_ns)
{
    const char *from = (const char *)move->from + done;
    const uint64_t offset = move->to_offset + done, bytes = sample_bytes(move->device);
    const uint64_t begin_ns = gpuhal_os_monotonic_ns();
    gpuhal_status status = path == STAGED ? gpuhal_pageable_write(move->device, move->to, offset, from, bytes)
                                          : gpuhal_slot_write(move->device, move->to, offset, from, bytes);
    *out_ns = gpuhal_os_monotonic_ns() - begin_ns;
    return status;
}

/* These say that a path cannot be taken, and nothing about the device. */
static bool is_no_failure(gpuhal_status status)
{
    return status == GPUHAL_ERROR_NOT_SUPPORTED || status == GPUHAL_ERROR_OUT_OF_MEMORY ||
           status == GPUHAL_ERROR_HOST_MEMORY;
}

static uint64_t speed(uint64_t bytes, uint64_t ns)
{
    return (uint64_t)((double)bytes * 1e9 / (double)(ns > 0 ? ns : 1));
}

/* Staging takes processors, so it has to be faster by a tenth. */
static uint32_t judge(gpuhal_device *device, const uint64_t *fastest_ns)
{
    const uint64_t bytes = sample_bytes(device);
    device->write_path.plugin_bytes_per_second = speed(bytes, fastest_ns[BY_PLUGIN]);
    device->write_path.staged_bytes_per_second = speed(bytes, fastest_ns[STAGED]);
    const bool staged = (double)fastest_ns[STAGED] < 0.9 * (double)fastest_ns[BY_PLUGIN];
    return staged ? GPUHAL_WRITE_STAGED : GPUHAL_WRITE_BY_PLUGIN;
}

/* The samples are the first bytes of the caller's own write, in turns on both paths, so nothing is moved for measuring
 * alone. Speeds are stored before the choice, which is what other threads look at. After a failure of the device the
 * choice is open again; where a path cannot be taken, the rule stays. */
static gpuhal_status measure(const gpuhal_path_move *move, uint64_t *out_done)
{
    gpuhal_device *device = move->device;
    uint64_t fastest_ns[PATHS] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < ROUNDS * PATHS; i++) {
        uint64_t ns = 0;
        const gpuhal_status status = sample(move, i % PATHS, *out_done, &ns);
        if (status) {
            const bool failed = !is_no_failure(status);
            atomic_store(&device->write_path.choice, failed ? GPUHAL_WRITE_UNKNOWN : GPUHAL_WRITE_BY_RULE);
            return failed ? status : GPUHAL_OK;
        }
        *out_done += sample_bytes(device);
        if (i >= PATHS && ns < fastest_ns[i % PATHS]) {
            fastest_ns[i % PATHS] = ns;
        }
    }
    atomic_store(&device->write_path.choice, judge(device, fastest_ns));
    gpuhal_fault_log_write_path(device);
    return GPUHAL_OK;
}

/* What is known without measuring. Of several threads the first decides, so that a choice that another has begun to
 * measure is not overwritten. */
static uint32_t look_up(gpuhal_device *device)
{
    uint32_t before = GPUHAL_WRITE_UNKNOWN;
    const uint32_t known =
        gpuhal_fault_log_is_kept(device) ? gpuhal_fault_log_recall_write(device) : GPUHAL_WRITE_BY_RULE;
    return atomic_compare_exchange_strong(&device->write_path.choice, &before, known) ? known : before;
}

gpuhal_status gpuhal_write_path_find(const gpuhal_path_move *move, bool *out_staged, uint64_t *out_done)
{
    gpuhal_device *device = move->device;
    gpuhal_status status = GPUHAL_OK;
    uint32_t choice = atomic_load(&device->write_path.choice);
    choice = choice == GPUHAL_WRITE_UNKNOWN ? look_up(device) : choice;
    *out_done = 0;
    if (choice == GPUHAL_WRITE_UNKNOWN && move->bytes >= ROUNDS * PATHS * sample_bytes(device) &&
        atomic_compare_exchange_strong(&device->write_path.choice, &choice, GPUHAL_WRITE_MEASURING)) {
        status = measure(move, out_done);
        choice = atomic_load(&device->write_path.choice);
    }
    const bool by_rule = choice != GPUHAL_WRITE_STAGED && choice != GPUHAL_WRITE_BY_PLUGIN;
    *out_staged = by_rule ? gpuhal_pageable_is_quicker(device) : choice == GPUHAL_WRITE_STAGED;
    return status;
}
