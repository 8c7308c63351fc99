/* lanes.c: see lanes.h. NVML's maximum cannot be used, because NVML reported sixteen lanes on laptops whose GPU is
 * wired to eight lanes. Sysfs has the maximum of each end (Linux, Documentation/ABI/testing/sysfs-bus-pci,
 * max_link_width). */
#include "lanes.h"

#include "machine.h"
#include "rows.h"

#include "../common/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MOST = 32 };

/* Reads the lanes; 0 if unknown. Only the first @p length characters of @p place are used. */
static unsigned read_lanes(const char *place, size_t length)
{
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    char path[4096];
    unsigned lanes = 0;
    const int written =
        snprintf(path, sizeof path, "%s/sys/devices/%.*s/max_link_width", root ? root : "", (int)length, place);
    FILE *file = written > 0 && (size_t)written < sizeof path ? gpuhal_tool_open_plain(path) : NULL;
    const bool good = file && fscanf(file, "%3u", &lanes) == 1;
    if (file) {
        fclose(file);
    }
    return good && lanes <= LANES_MOST ? lanes : 0;
}

void gpuhal_probe_lanes_read(gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        const gpuhal_hardware_info *hardware = gpuhal_probe_hardware_of(machine, entry);
        const char *leaf = hardware ? strrchr(hardware->place, '/') : NULL;
        const unsigned own = leaf ? read_lanes(hardware->place, strlen(hardware->place)) : 0;
        const unsigned above = own ? read_lanes(hardware->place, (size_t)(leaf - hardware->place)) : 0;
        entry->lanes = own && above ? (own < above ? own : above) : 0;
    }
}
