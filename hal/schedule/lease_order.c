/* schedule/lease_order.c: orders the acceptable devices by preference, by the rule of gpuhal_select(). This order
 * depends only on facts. The ledger (grant.c) orders devices of equal rank by warnings and use. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

static gpuhal_lease_device *find(gpuhal_lease *lease, const gpuhal_device *device)
{
    uint32_t i = 0;
    while (lease->devices[i].device != device) {
        i++;
    }
    return &lease->devices[i];
}

/* Lost devices are not ranked, so they come last. */
gpuhal_status gpuhal_lease_order(gpuhal_lease *lease)
{
    gpuhal_device *devices[GPUHAL_LEDGER_DEVICES];
    gpuhal_chosen chosen[GPUHAL_LEDGER_DEVICES];
    gpuhal_offers offers;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        devices[i] = lease->devices[i].device;
        lease->devices[i].place = GPUHAL_LEDGER_DEVICES - 1;
    }
    const gpuhal_offers_desc wanted = {
        .call = "gpuhal_lease_acquire", .devices = devices, .device_count = lease->device_count};
    const gpuhal_status status = gpuhal_offers_read(lease->gpu, &wanted, &offers);
    if (status) {
        return status;
    }
    const gpuhal_choice_request request = {
        .order = GPUHAL_CHOOSE_BEST, .offers = offers.list, .count = offers.count, .kept = GPUHAL_NONE};
    const uint32_t count = gpuhal_choose(&request, chosen);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_lease_device *device = find(lease, offers.devices[chosen[i].index]);
        device->place = (uint8_t)i;
        device->lesser = i > 0 && chosen[i].rule != GPUHAL_BY_PLACE;
    }
    gpuhal_offers_finish(&offers);
    return GPUHAL_OK;
}
