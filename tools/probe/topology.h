/* topology.h: where devices are in the machine: NUMA nodes with their processors, and network cards near them. */
#ifndef PROBE_TOPOLOGY_H
#define PROBE_TOPOLOGY_H

#include "machine.h"
#include "screen.h"

/* The devices to speak of, by their places among those of the machine. */
typedef struct gpuhal_probe_place {
    const gpuhal_probe_machine *machine;
    const uint32_t *rows;
    uint32_t count;
} gpuhal_probe_place;

/* "cuda:0 to cuda:3, cuda:5": the ids of the devices at these places; runs of one backend are shortened. */
void gpuhal_probe_write_ids(const gpuhal_probe_machine *machine, const uint32_t *places, uint32_t count, char *to,
                            size_t bytes);
/* One line for each NUMA node that has devices, where the system says so. false when nothing was printed. */
bool gpuhal_probe_print_nodes(const gpuhal_probe_place *place, const gpuhal_probe_screen *screen);
/* One line for each network card on PCI: how it is connected to the devices, in the words of `kinds`, by
 * gpuhal_link_kind. Sets used[kind]. false when nothing was printed. */
bool gpuhal_probe_print_network_cards(const gpuhal_probe_place *place, const char *const (*kinds)[2], bool *used,
                                      const gpuhal_probe_screen *screen);

#endif
