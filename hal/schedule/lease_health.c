/* schedule/lease_health.c: excludes unhealthy devices from leasing. Such devices are lost, need a reset, failed their
 * self-test (and the caller did not name them), or have a compute mode that forbids all programs or allows only another
 * program that already uses the device. Also excludes devices on which this process may use fewer bytes than requested.
 * If gpuhal_ailments() reports only a warning, the device is leased after devices of equal rank (grant.c). */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <gpuhal/telemetry.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

gpuhal_lease_left_out gpuhal_lease_why_left_out(const gpuhal_lease_device *device)
{
    if (device->sample.lost || atomic_load(&device->device->lost) != GPUHAL_NOT_LOST) {
        return GPUHAL_LEASE_IS_LOST;
    }
    if (device->sample.ailments & GPUHAL_AILMENT_RESET_NEEDED) {
        return GPUHAL_LEASE_NEEDS_RESET;
    }
    if (gpuhal_device_is_prohibited(device->device)) {
        return GPUHAL_LEASE_IS_PROHIBITED;
    }
    if (!device->named && gpuhal_device_failed_self_test(device->device)) {
        return GPUHAL_LEASE_FAILED_TEST;
    }
    if (device->sample.when_ns > 0 && device->bytes > device->sample.limit_bytes) {
        return GPUHAL_LEASE_IS_LIMITED;
    }
    return device->sample.taken ? GPUHAL_LEASE_IS_TAKEN : GPUHAL_LEASE_TAKES_IT;
}

const char *gpuhal_lease_left_out_name(gpuhal_lease_left_out reason)
{
    static const char *const names[GPUHAL_LEASE_REASONS] = {
        "", "lost", "reset_needed", "prohibited", "self_test_failed", "limited", "taken"};
    return names[reason];
}

static const char *words_of(gpuhal_lease_left_out reason)
{
    static const char *const words[GPUHAL_LEASE_REASONS] = {"",
                                                            "is lost",
                                                            "needs a reset, as its driver reports",
                                                            "has a compute mode that admits no program",
                                                            "failed its self-test",
                                                            "can be leased with fewer bytes",
                                                            "is exclusive, and another process has it"};
    return words[reason];
}

/* Counts the devices excluded because a limit of this process's control groups is too low. *out_last is the last one.
 */
static uint32_t count_limited(const gpuhal_lease *lease, const gpuhal_lease_device **out_last)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        if (lease->devices[i].left_out == GPUHAL_LEASE_IS_LIMITED) {
            *out_last = &lease->devices[i];
            count++;
        }
    }
    return count;
}

static gpuhal_status refuse_bytes(const gpuhal_lease_device *device)
{
    const char *source = device->sample.limit_source;
    return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                            "leases: the limit of this process's control group (%s) is less than the %" PRIu64
                            " bytes requested of a device",
                            strcmp(source, "cgroup") == 0 ? "dmem.max" : source, device->bytes);
}

/* Writes a list such as "cuda:0 is lost; cuda:3 needs a reset, as its driver reports". Omits devices in exclusive
 * use, since they will be free again. Returns the number of listed devices. */
static uint32_t find_left_out(gpuhal_lease *lease, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        gpuhal_lease_device *device = &lease->devices[i];
        device->left_out = gpuhal_lease_why_left_out(device);
        if (device->left_out && device->left_out != GPUHAL_LEASE_IS_TAKEN) {
            gpuhal_text_printf(to, "%s%s %s", count > 0 ? "; " : "", device->device->id, words_of(device->left_out));
            count++;
        }
    }
    return count;
}

void gpuhal_lease_name_taken(const gpuhal_lease *lease, char *to, size_t bytes)
{
    size_t length = 0;
    to[0] = '\0';
    for (uint32_t i = 0; i < lease->device_count && length < bytes; i++) {
        const gpuhal_lease_device *device = &lease->devices[i];
        if (device->named && device->left_out == GPUHAL_LEASE_IS_TAKEN) {
            length += (size_t)snprintf(to + length, bytes - length, "; %s %s", device->device->id,
                                       words_of(GPUHAL_LEASE_IS_TAKEN));
        }
    }
}

gpuhal_status gpuhal_lease_check_health(gpuhal_lease *lease)
{
    gpuhal_text why = {0};
    gpuhal_status status = GPUHAL_OK;
    const uint32_t wanted = lease->record.count > 0 ? lease->record.count : lease->device_count;
    const uint32_t left = lease->device_count - find_left_out(lease, &why);
    const gpuhal_lease_device *limited = NULL;
    if (why.failed) {
        status = gpuhal_error_host_memory();
    } else if (left < wanted && left + count_limited(lease, &limited) >= wanted) {
        status = refuse_bytes(limited);
    } else if (left < wanted && lease->record.count == 0) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "leases: %s", gpuhal_text_get(&why));
    } else if (left < wanted) {
        status = gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                                  "leases: %" PRIu32 " GPU%s requested, but %" PRIu32 " can be leased: %s", wanted,
                                  wanted == 1 ? " is" : "s are", left, gpuhal_text_get(&why));
    }
    gpuhal_text_finish(&why);
    return status;
}
