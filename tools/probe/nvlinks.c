/* nvlinks.c: see nvlinks.h. */
#include "nvlinks.h"

#include <string.h>

static const char *name_of(const gpuhal_probe_device *entry)
{
    const char *name = NULL;
    return gpuhal_device_text(entry->device, GPUHAL_FACT_NAME, &name) == GPUHAL_OK ? name : "";
}

void gpuhal_probe_nvlinks_read(gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        uint64_t own = 0, up = 0, fabric;
        /* A card without a bridge has no links, although identical cards may have links. On machines with NVLink
         * switches, every GPU has all its links. */
        const bool linked = gpuhal_probe_value(entry, GPUHAL_VALUE_LINKS_UP, &own) &&
                            (own > 0 || gpuhal_probe_value(entry, GPUHAL_VALUE_FABRIC, &fabric));
        entry->links = 0;
        for (uint32_t o = 0; linked && o < machine->count; o++) {
            const gpuhal_probe_device *other = &machine->devices[o];
            const bool is_equal =
                strcmp(name_of(entry), name_of(other)) == 0 && gpuhal_probe_value(other, GPUHAL_VALUE_LINKS_UP, &up);
            entry->links = is_equal && up > entry->links ? (uint32_t)up : entry->links;
        }
    }
}
