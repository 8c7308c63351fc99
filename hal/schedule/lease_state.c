/* schedule/lease_state.c: reports a lease's state, renews the lease, and adopts a parent process's lease. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <string.h>

static gpuhal_status check(const gpuhal_lease *lease, const char *call)
{
    if (!lease) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: lease is NULL", call);
    }
    return gpuhal_check(lease->gpu);
}

static gpuhal_status expired(const gpuhal_lease *lease)
{
    return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "leases: lease %" PRIu64 " has expired", lease->record.ticket);
}

gpuhal_status gpuhal_lease_state(gpuhal_lease *lease)
{
    gpuhal_status status = check(lease, "gpuhal_lease_state");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const gpuhal_lease_phase phase = lease->phase;
    const uint64_t expires = phase == GPUHAL_LEASE_IS_HELD ? lease->expires_ns : 0; /* valid only in this phase */
    status = lease->status;
    gpuhal_mutex_unlock(&leases->mutex);
    if (phase == GPUHAL_LEASE_IS_HELD) {
        return expires > 0 && gpuhal_os_boot_ns() >= expires ? expired(lease) : GPUHAL_OK;
    }
    if (phase != GPUHAL_LEASE_IS_OVER) {
        return GPUHAL_NOT_READY;
    }
    return gpuhal_error_set(status, "leases: the request has ended: %s", gpuhal_status_name(status));
}

gpuhal_status gpuhal_lease_descriptor(gpuhal_lease *lease, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    gpuhal_status status = check(out_descriptor ? lease : NULL, "gpuhal_lease_descriptor");
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    const int error = lease->notifier < 0 ? gpuhal_os_notifier_create(&lease->notifier) : 0;
    if (!error && lease->phase >= GPUHAL_LEASE_IS_HELD) {
        gpuhal_os_notifier_set(lease->notifier);
    }
    *out_descriptor = error ? -1 : gpuhal_os_descriptor_copy(lease->notifier);
    gpuhal_mutex_unlock(&leases->mutex);
    return *out_descriptor >= 0 ? GPUHAL_OK
                                : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
}

uint64_t gpuhal_lease_number(const gpuhal_lease *lease)
{
    uint64_t number = 0;
    if (lease && !gpuhal_is_inherited(lease->gpu)) {
        gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
        gpuhal_mutex_lock(&leases->mutex);
        number = lease->phase == GPUHAL_LEASE_IS_HELD ? lease->record.ticket : 0;
        gpuhal_mutex_unlock(&leases->mutex);
    }
    return number;
}

gpuhal_device *gpuhal_lease_device_at(const gpuhal_lease *lease, uint32_t index)
{
    gpuhal_device *device = NULL;
    if (!lease || gpuhal_is_inherited(lease->gpu)) {
        return NULL;
    }
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    for (uint32_t i = 0; lease->phase == GPUHAL_LEASE_IS_HELD && i < lease->device_count && !device; i++) {
        device = lease->devices[i].leased && index-- == 0 ? lease->devices[i].device : NULL;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return device;
}

gpuhal_status gpuhal_lease_renew(gpuhal_lease *lease, uint64_t duration_ns)
{
    gpuhal_status status = check(lease, "gpuhal_lease_renew");
    status = status ? status : gpuhal_lease_state(lease);
    if (status) {
        return status;
    }
    gpuhal_leases *leases = gpuhal_leases_of(lease->gpu);
    const int cancel = gpuhal_os_cancel_defer();
    status = gpuhal_ledger_begin(&leases->ledger, UINT64_MAX);
    if (!status) {
        gpuhal_ledger_record *record = gpuhal_ledger_find(leases->ledger.state, lease->record.ticket);
        uint64_t expires = duration_ns > 0 ? gpuhal_os_boot_ns() : 0;
        expires = __builtin_add_overflow(expires, duration_ns, &expires) ? 0 : expires;
        if (record && lease->epoch == leases->ledger.files.epoch) {
            record->expires_ns = expires;
            leases->ledger.changed = true;
        } else {
            status = expired(lease);
        }
        const gpuhal_status ended = gpuhal_ledger_end(&leases->ledger);
        status = status ? status : ended;
        gpuhal_mutex_lock(&leases->mutex);
        lease->expires_ns = status ? lease->expires_ns : expires;
        gpuhal_mutex_unlock(&leases->mutex);
    }
    gpuhal_os_cancel_restore(cancel);
    return status;
}

gpuhal_status gpuhal_lease_ledger(gpuhal *gpu, const char **out_folder, uint32_t *out_shared)
{
    if (!gpu || !out_folder || !out_shared) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_lease_ledger: an argument is NULL");
    }
    *out_folder = NULL;
    *out_shared = 0;
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : gpuhal_leases_open(gpu);
    if (!status) {
        const gpuhal_ledger_files *files = &gpuhal_leases_of(gpu)->ledger.files;
        *out_folder = files->folder;
        *out_shared = files->shared;
    }
    return status;
}

/* ---- the lease of a parent */

/* `gpuhal-lease run` also sets a limit in GPUHAL_DEVICES. Removes this limit, because the adopted lease limits the
 * device, and leases of this process add to the lease's bytes. */
static void take_over_limit(gpuhal_device *device, uint64_t bytes)
{
    (void)atomic_compare_exchange_strong(&device->limit_bytes, &bytes, device->gpu->settings.memory_limit_bytes);
}

/* Called in the critical section. */
static void adopt(gpuhal *gpu, gpuhal_device *device, const gpuhal_ledger_device *described)
{
    gpuhal_ledger_state *state = gpuhal_leases_of(gpu)->ledger.state;
    const uint32_t index = gpuhal_ledger_find_device(state, described);
    for (uint32_t i = 0; index < GPUHAL_LEDGER_DEVICES && i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (item->ticket == gpu->settings.lease && item->device == index && item->bytes > 0) {
            gpuhal_leases *leases = gpuhal_leases_of(gpu);
            gpuhal_mutex_lock(&leases->mutex);
            struct gpuhal_known_device *known = gpuhal_lease_known(leases, device);
            if (known) {
                known->adopted_bytes = item->bytes;
                take_over_limit(device, item->bytes);
            }
            gpuhal_mutex_unlock(&leases->mutex);
        }
    }
}

void gpuhal_leases_adopt(gpuhal *gpu)
{
    gpuhal_ledger *ledger = &gpuhal_leases_of(gpu)->ledger;
    if (gpu->settings.lease == 0) {
        return;
    }
    const int cancel = gpuhal_os_cancel_defer();
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_ledger_device described;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_lease_describe(gpuhal_device_at(gpu, d), &described);
    }
    gpuhal_status status = gpuhal_leases_open(gpu);
    status = status ? status : gpuhal_ledger_begin(ledger, UINT64_MAX);
    if (!status) {
        const bool held = gpuhal_ledger_is_held(ledger->state, gpu->settings.lease);
        for (uint32_t d = 0; held && d < gpuhal_device_count(gpu); d++) {
            gpuhal_lease_describe(gpuhal_device_at(gpu, d), &described);
            adopt(gpu, gpuhal_device_at(gpu, d), &described);
        }
        status = gpuhal_ledger_end(ledger);
        gpuhal_leases_limit(gpu);
        if (!status && !held) {
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING,
                            "GPUHAL_LEASE is %" PRIu64 ", a lease that %s does not have: it has expired or was "
                            "released",
                            gpu->settings.lease, ledger->files.ledger_path);
        }
    }
    if (status) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "GPUHAL_LEASE: %s", gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&before);
    gpuhal_os_cancel_restore(cancel);
}
