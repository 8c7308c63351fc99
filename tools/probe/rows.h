/* rows.h: the rows of the table and of the formats for programs: usable devices in their order, then the hardware
 * without a device, in the order of its addresses. */
#ifndef PROBE_ROWS_H
#define PROBE_ROWS_H

#include "machine.h"
#include "uuid.h"

typedef struct gpuhal_probe_row {
    const gpuhal_probe_device *entry;     /* NULL: the hardware has no device */
    const gpuhal_hardware_info *hardware; /* NULL: not found on a bus */
    const char *type;                     /* of hardware without a device; "": unknown */
    char uuid[PROBE_UUID_BYTES];          /* of such hardware; "": unknown */
    char state[48];                       /* stands in the place of values; "" */
    bool is_chosen;
    bool is_problem; /* more than a note */
} gpuhal_probe_row;

typedef struct gpuhal_probe_rows {
    gpuhal_probe_row *list;
    uint32_t count;
} gpuhal_probe_rows;

/* Makes the rows. Returns false without memory. The rows must be finished in both cases. */
bool gpuhal_probe_rows_make(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            gpuhal_probe_rows *out_rows);
/* Returns for programs "ready", "lost", "reset_needed", or why the hardware is not usable: "no_kernel_driver". */
const char *gpuhal_probe_row_state(const gpuhal_probe_row *row);
/* Returns the worst grade of the row's hardware, of the ailments that its device's values show, and of a problem if the
 * device is lost or failed its verification. Problems of checks and links do not count. */
gpuhal_hardware_grade gpuhal_probe_row_grade(const gpuhal_probe_row *row);
/* Returns the reason not to give the row to a job; NULL: it is ready, or this process has another part of the same
 * GPU. */
const char *gpuhal_probe_row_why(const gpuhal_probe_row *row);
/* Return the UUID of a part of a divided GPU, and its numbers, "3/0"; "" for an undivided GPU, or if unknown. */
const char *gpuhal_probe_row_part(const gpuhal_probe_row *row);
const char *gpuhal_probe_row_part_numbers(const gpuhal_probe_row *row);
void gpuhal_probe_rows_finish(gpuhal_probe_rows *rows);

/* Returns the hardware of the device; NULL if the kernel lists none. */
const gpuhal_hardware_info *gpuhal_probe_hardware_of(const gpuhal_probe_machine *machine,
                                                     const gpuhal_probe_device *entry);

/* Return the DRM nodes of a device, or of hardware without one: the card of the whole GPU does not reach a part that
 * has a separate render node. "" if none is known. */
enum { PROBE_NODE_BYTES = 32 };
const char *gpuhal_probe_render_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware,
                                     char space[PROBE_NODE_BYTES]);
const char *gpuhal_probe_card_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware);

/* The state and the problem of a listed device that is lost. It did not fail verification: that result would say
 * more. */
#define GPUHAL_PROBE_LOST "lost"
bool gpuhal_probe_is_lost(const gpuhal_probe_device *entry);
/* Returns whether this run found nothing against the device: neither its driver nor its bus lost it, it needs no reset,
 * and it failed no verification. */
bool gpuhal_probe_works(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* Returns whether the device works, and no other process has it alone. */
bool gpuhal_probe_is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);

/* Returns whether the hardware has a separate row, as it has no device. Without --all, hardware that no API drives has
 * none, and hardware that is not given to this container, pod or job has one only among metrics. With --device only
 * selected hardware is listed. */
bool gpuhal_probe_is_listed(const gpuhal_probe_options *options, const gpuhal_hardware_info *hardware);

#endif
