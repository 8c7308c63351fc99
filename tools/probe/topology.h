/* topology.h: the devices' locations in the machine: NUMA nodes with their processors, and nearby network cards. */
#ifndef PROBE_TOPOLOGY_H
#define PROBE_TOPOLOGY_H

#include "machine.h"
#include "screen.h"

/* The devices to describe, as indices of the machine's devices. */
typedef struct gpuhal_probe_place {
    const gpuhal_probe_machine *machine;
    const uint32_t *rows;
    uint32_t count;
} gpuhal_probe_place;

/* Writes the ids of these devices, with shortened runs within a backend: "cuda:0 to cuda:3, cuda:5". */
void gpuhal_probe_write_ids(const gpuhal_probe_machine *machine, const uint32_t *places, uint32_t count, char *to,
                            size_t bytes);
/* Prints one line for each NUMA node with devices, if the system reports nodes. Returns false if nothing was
 * printed. */
bool gpuhal_probe_print_nodes(const gpuhal_probe_place *place, const gpuhal_probe_screen *screen);
/* Prints one line for each PCI network card whose connection to a device is known, with all known connections. `kinds`
 * contains words for each gpuhal_link_kind. Sets used[kind] for the printed kinds. Returns false if nothing was
 * printed. */
bool gpuhal_probe_print_network_cards(const gpuhal_probe_place *place, const char *const (*kinds)[2], bool *used,
                                      const gpuhal_probe_screen *screen);

#endif
