/* schedule/lease_view.c: creates a view of the leases: a copy of the ledger, samples of this object's devices, and the
 * holders. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <stdlib.h>

static gpuhal_status copy_state(gpuhal_ledger *ledger, gpuhal_lease_view *out)
{
    gpuhal_status status = gpuhal_ledger_begin(ledger, UINT64_MAX);
    if (!status) {
        gpuhal_ledger_settle(ledger, true);
        (void)gpuhal_ledger_sweep(ledger, 0);
        *out->state = *ledger->state;
        out->epoch = ledger->files.epoch;
        out->inode = ledger->files.inode;
        status = gpuhal_ledger_end(ledger);
    }
    return status;
}

static bool is_leased(const gpuhal_ledger_state *state, uint32_t index)
{
    bool leased = false;
    for (uint32_t i = 0; i < state->item_count && !leased; i++) {
        leased = state->items[i].device == index && gpuhal_ledger_is_held(state, state->items[i].ticket);
    }
    return leased;
}

static void add_devices(gpuhal *gpu, gpuhal_lease_view *out)
{
    const uint32_t count = gpuhal_device_count(gpu);
    for (uint32_t d = 0; d < count && out->device_count < GPUHAL_LEDGER_DEVICES; d++) {
        gpuhal_lease_device *own = &out->devices[out->device_count];
        *own = (gpuhal_lease_device){.device = gpuhal_device_at(gpu, d)};
        gpuhal_lease_describe(own->device, &own->described);
        own->index = gpuhal_ledger_find_device(out->state, &own->described);
        bool shown = gpuhal_lease_is_candidate(own->device);
        if (own->index < GPUHAL_LEDGER_DEVICES && gpuhal_lease_is_preferred(own->device)) {
            own->bytes = shown ? 0 : 1; /* CPUs are sampled only if bytes are requested */
            own->lists_processes = is_leased(out->state, own->index);
            shown = true;
        }
        out->device_count += shown;
    }
}

gpuhal_status gpuhal_lease_view_read(gpuhal *gpu, gpuhal_lease_view *out)
{
    *out = (gpuhal_lease_view){.state = malloc(sizeof *out->state),
                               .devices = calloc(GPUHAL_LEDGER_DEVICES, sizeof *out->devices)};
    gpuhal_ledger *ledger = &gpuhal_leases_of(gpu)->ledger;
    const int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = out->state && out->devices ? copy_state(ledger, out) : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_ledger_granted(out->state, &out->use);
        add_devices(gpu, out);
        status = out->state->record_count > 0 ? gpuhal_lease_holders_read(out->inode, &out->holders) : GPUHAL_OK;
        status = status ? status : gpuhal_lease_sample(gpu, out->devices, out->device_count, true, 0);
    }
    for (uint32_t i = 0; i < out->device_count && !status; i++) {
        gpuhal_lease_device *own = &out->devices[i];
        own->left_out = gpuhal_lease_why_left_out(own);
        if (own->left_out == GPUHAL_LEASE_IS_TAKEN && own->index < GPUHAL_LEDGER_DEVICES &&
            is_leased(out->state, own->index)) {
            own->left_out = GPUHAL_LEASE_TAKES_IT; /* the holder of the lease uses the device */
        }
    }
    gpuhal_os_cancel_restore(cancel);
    return status;
}

void gpuhal_lease_view_finish(gpuhal_lease_view *view)
{
    free(view->state);
    free(view->devices);
    gpuhal_lease_holders_finish(&view->holders);
}
