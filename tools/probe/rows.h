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
    bool is_chosen;
    bool is_problem; /* more than a note */
} gpuhal_probe_row;

typedef struct gpuhal_probe_rows {
    gpuhal_probe_row *list;
    uint32_t count;
} gpuhal_probe_rows;

/* false without memory. Finish the rows in both cases. */
bool gpuhal_probe_rows_make(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            gpuhal_probe_rows *out_rows);
/* For programs: "ready", "lost", "reset_needed", or why the hardware is not usable: "no_kernel_driver". */
const char *gpuhal_probe_row_state(const gpuhal_probe_row *row);
/* The worst of the grade of its hardware, of those of what the values of its device say, and of a problem if the device
 * is lost or failed its verification. What a check or a link says does not count. */
gpuhal_hardware_grade gpuhal_probe_row_grade(const gpuhal_probe_row *row);
/* Why it is not to be handed out; NULL: it is ready, or a part of a GPU of which this process has another part. */
const char *gpuhal_probe_row_why(const gpuhal_probe_row *row);
/* The UUID of a part of a divided GPU, and its numbers, "3/0"; "": it is a whole one, or not known. */
const char *gpuhal_probe_row_part(const gpuhal_probe_row *row);
const char *gpuhal_probe_row_part_numbers(const gpuhal_probe_row *row);
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
/* Whether this run found nothing against the device: it is not lost, by its driver or its bus, needs no reset, and
 * failed no verification. */
bool gpuhal_probe_works(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* Whether it works, and no other process has it alone. */
bool gpuhal_probe_is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);

/* Whether the hardware has a row of its own: no device stands for it. Unless all is asked for, what no API drives has
 * none, and what this container, pod or job was not given has one among metrics alone. With --device only what was
 * selected is listed. */
bool gpuhal_probe_is_listed(const gpuhal_probe_options *options, const gpuhal_hardware_info *hardware);

#endif
