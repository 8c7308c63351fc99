/* rows.h: the rows of the table and of the formats for programs: what is usable in the order of the devices, then the
 * hardware that no device stands for, in the order of its addresses. */
#ifndef PROBE_ROWS_H
#define PROBE_ROWS_H

#include "machine.h"
#include "uuid.h"

typedef struct gpuhal_probe_row {
    const gpuhal_probe_device *entry;     /* NULL: no device stands for it */
    const gpuhal_hardware_info *hardware; /* NULL: not found on a bus */
    const char *type;                     /* of hardware without a device; "": unknown */
    char uuid[PROBE_UUID_BYTES];          /* likewise */
    char state[48];                       /* stands in the place of values; "" */
    bool is_chosen, is_problem;
} gpuhal_probe_row;

typedef struct gpuhal_probe_rows {
    gpuhal_probe_row *list;
    uint32_t count;
} gpuhal_probe_rows;

/* false without memory. Finish the rows in both cases. */
bool gpuhal_probe_rows_make(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            gpuhal_probe_rows *out_rows);
/* For programs: "ready", "lost", or why the hardware is not usable: "no_kernel_driver". */
const char *gpuhal_probe_row_state(const gpuhal_probe_row *row);
void gpuhal_probe_rows_finish(gpuhal_probe_rows *rows);

/* The hardware that the device stands for; NULL where the kernel lists none. */
const gpuhal_hardware_info *gpuhal_probe_hardware_of(const gpuhal_probe_machine *machine,
                                                     const gpuhal_probe_device *entry);

/* The DRM nodes of a device, or of hardware that none stands for: a part of a GPU that has a render node of its own is
 * not reached by the card of the whole. "" where none is known. */
enum { PROBE_NODE_BYTES = 32 };
const char *gpuhal_probe_render_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware,
                                     char space[PROBE_NODE_BYTES]);
const char *gpuhal_probe_card_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware);

/* The state and the problem of a device that was listed and is lost. It failed no verification, which says more. */
#define GPUHAL_PROBE_LOST "lost"
bool gpuhal_probe_is_lost(const gpuhal_probe_device *entry);
/* Whether this run found nothing against the use of the device: it is not lost, by its driver or its bus, and failed no
 * verification. */
bool gpuhal_probe_is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);

/* Whether the hardware has a row of its own: no device stands for it, and it is no mere display controller unless all
 * is asked for. With --device only what was selected is listed. */
bool gpuhal_probe_is_listed(const gpuhal_probe_options *options, const gpuhal_hardware_info *hardware);

#endif
