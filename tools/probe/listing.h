/* listing.h: turns the library's listing into a machine: devices, hardware and rows. Used by machine.c, which collects
 * all results, and by absence.c, which lists again without a selection. */
#ifndef PROBE_LISTING_H
#define PROBE_LISTING_H

#include "machine.h"

/* Separators of selectors and plugin names, as in the library. */
#define GPUHAL_PROBE_SEPARATORS ", \t"

/* Prints a sentence of the library, with configuration members replaced by this program's options. */
void gpuhal_probe_complain(const char *sentence);
/* Opens the library. `devices` is a selector or NULL. `deadline_ns` is the plugins' deadline; 0 for the library's
 * default. */
gpuhal_status gpuhal_probe_open_gpu(const gpuhal_probe_options *options, const char *devices, uint64_t deadline_ns,
                                    gpuhal **out_gpu);
/* Return PROBE_GO_ON, or an exit code after printing a message. gpuhal_probe_look() updates the machine's view,
 * including the hardware; gpuhal_probe_list_devices() also lists the devices. If finding the hardware fails, they
 * print a message and continue without hardware. */
gpuhal_probe_exit gpuhal_probe_look(gpuhal_probe_machine *machine);
gpuhal_probe_exit gpuhal_probe_list_devices(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
/* Selects the devices that have a row. The processor has a row only if there is no usable GPU, with --all, or if
 * --device names interfaces. */
void gpuhal_probe_choose_rows(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
bool gpuhal_probe_is_processor(const gpuhal_device *device);
/* Returns whether one of the selectors is a number. Numbers also count hidden devices. */
bool gpuhal_probe_has_number(const char *selectors);

#endif
