/* device/device.c: creates and destroys device objects with their links, and implements queries about them. */
#include "base/error.h"
#include "device/link.h"
#include "device/snapshot.h"
#include "loader/query.h"

#include <stdio.h>
#include <stdlib.h>

gpuhal_device *gpuhal_device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed,
                                    uint32_t index)
{
    gpuhal_device *device = calloc(1, sizeof *device);
    if (!device) {
        return NULL;
    }
    device->gpu = gpu;
    device->candidate = candidate;
    device->listed = listed;
    device->index = index;
    snprintf(device->id, sizeof device->id, "%s:%u", candidate->name, index);
    gpuhal_mutex_init(&device->mutex);
    gpuhal_mutex_init(&device->busy.mutex);
    gpuhal_condition_init(&device->condition);
    atomic_init(&device->limit_bytes, gpu->settings.memory_limit_bytes);
    return device;
}

/* The list of the plugin in this process takes precedence over the snapshot's entry, which may come from a helper or a
 * cached result. */
const gpuhal_listed_device *gpuhal_device_current(const gpuhal_device *device)
{
    const gpuhal_listed_device *here = atomic_load_explicit(&device->here, memory_order_acquire);
    const gpuhal_entry *entry =
        here ? NULL : gpuhal_device_snapshot_entry(gpuhal_device_snapshot_now(device->gpu), device);
    return here ? here : entry ? entry->listed : device->listed;
}

/* A row is zeroed before it is stored. Only one thread at a time adds rows. */
gpuhal_status gpuhal_links_grow(gpuhal_device *device, uint32_t count)
{
    for (uint32_t row = 0; (UINT32_C(1) << row) - 1 < count; row++) {
        if (atomic_load(&device->links[row])) {
            continue;
        }
        gpuhal_link *links = calloc((size_t)1 << row, sizeof *links);
        if (!links) {
            return gpuhal_error_host_memory();
        }
        atomic_store(&device->links[row], links);
    }
    return GPUHAL_OK;
}

static void links_free(gpuhal_device *device)
{
    gpuhal_link *link;
    for (uint32_t position = 0; (link = gpuhal_link_to(device, position)) != NULL; position++) {
        gpuhal_facts_free(atomic_load(&link->facts));
        free(atomic_load(&link->why_broken));
    }
    for (size_t row = 0; row < sizeof device->links / sizeof *device->links; row++) {
        free(atomic_exchange(&device->links[row], NULL));
    }
}

void gpuhal_device_destroy(gpuhal_device *device)
{
    while (device->untagged.next) {
        gpuhal_tag *tag = device->untagged.next;
        device->untagged.next = tag->next;
        free(tag);
    }
    free(device->traced);
    gpuhal_job_release(device->abandoned);
    links_free(device);
    gpuhal_condition_finish(&device->condition);
    gpuhal_mutex_finish(&device->busy.mutex);
    gpuhal_mutex_finish(&device->mutex);
    free(device);
}

uint64_t gpuhal_device_query_ns(const gpuhal_device *device)
{
    uint64_t hang_ns = device->gpu->settings.hang_ns;
    return hang_ns < GPUHAL_QUERY_NS ? hang_ns : GPUHAL_QUERY_NS;
}
