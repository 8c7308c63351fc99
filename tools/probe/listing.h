/* listing.h: the library's listing as a machine: its devices, its hardware, and their rows. For machine.c, which finds
 * everything, and absence.c, which lists again with nothing selected. */
#ifndef PROBE_LISTING_H
#define PROBE_LISTING_H

#include "machine.h"

/* Between selectors, and between names of plugins, as in the library. */
#define GPUHAL_PROBE_SEPARATORS ", \t"

/* Prints a sentence of the library, in terms of this program's options. */
void gpuhal_probe_complain(const char *sentence);
/* Opens the library. `devices`: a selector, or NULL; `deadline_ns`: for plugins; 0: the library's default. */
gpuhal_status gpuhal_probe_open_gpu(const gpuhal_probe_options *options, const char *devices, uint64_t deadline_ns,
                                    gpuhal **out_gpu);
/* Each returns PROBE_GO_ON, or an exit code after a sentence. The first makes the machine's view again, with the
 * hardware. The second does so, and lists its devices. */
gpuhal_probe_exit gpuhal_probe_look(gpuhal_probe_machine *machine);
gpuhal_probe_exit gpuhal_probe_list_devices(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
/* Chooses the devices that have a row. The processor has one only without a usable GPU. */
void gpuhal_probe_choose_rows(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
bool gpuhal_probe_is_processor(const gpuhal_device *device);
/* Returns whether one of the selectors is a number. Numbers count all devices, with nothing hidden. */
bool gpuhal_probe_has_number(const char *selectors);

#endif
