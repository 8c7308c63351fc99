/* rows.h: the rows of the table and of formats for programs: first the devices in listing order, then the hardware
 * without a device, sorted by address. */
#ifndef PROBE_ROWS_H
#define PROBE_ROWS_H

#include "machine.h"
#include "uuid.h"

typedef struct gpuhal_probe_row {
    const gpuhal_probe_device *entry;     /* NULL if the hardware has no device */
    const gpuhal_hardware_info *hardware; /* NULL if not found on a bus */
    const char *type;                     /* for hardware without a device; "" if unknown */
    char uuid[PROBE_UUID_BYTES];          /* for hardware without a device; "" if unknown */
    char state[48];                       /* text that replaces the values, or "" */
    bool is_chosen;
    bool is_problem; /* worse than a note */
} gpuhal_probe_row;

typedef struct gpuhal_probe_rows {
    gpuhal_probe_row *list;
    uint32_t count;
} gpuhal_probe_rows;

/* Creates the rows. Returns false if out of memory. The caller must finish the rows in either case. */
bool gpuhal_probe_rows_make(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            gpuhal_probe_rows *out_rows);
/* Returns "ready", "lost", "reset_needed", or why the hardware is unusable, such as "no_kernel_driver", for
 * programs. */
const char *gpuhal_probe_row_state(const gpuhal_probe_row *row);
/* Returns the worst of the hardware's grade, the grades of the device's ailments (health.h), and PROBLEM if the device
 * is lost, or if its verification failed or was not tried in time. Problems of plugins and links, and values that timed
 * out, do not count. */
gpuhal_hardware_grade gpuhal_probe_row_grade(const gpuhal_probe_row *row);
/* Returns why a job must not use the row's GPU. Returns NULL if gpuhal_probe_row_state() returns "ready", even if the
 * verification failed, or if the row is a partition or a GPU of NVIDIA that only this process does not list. */
const char *gpuhal_probe_row_why(const gpuhal_probe_row *row);
/* Return the name of a partition (a MIG device's UUID, or the number of AMD's partition), and a MIG device's numbers
 * ("3/0"); "" for a whole GPU, or if unknown. */
const char *gpuhal_probe_row_part(const gpuhal_probe_row *row);
const char *gpuhal_probe_row_part_numbers(const gpuhal_probe_row *row);
void gpuhal_probe_rows_finish(gpuhal_probe_rows *rows);

/* Returns the device's hardware; NULL if the kernel lists none. */
const gpuhal_hardware_info *gpuhal_probe_hardware_of(const gpuhal_probe_machine *machine,
                                                     const gpuhal_probe_device *entry);

/* Return the DRM nodes of a device or of hardware without a device; "" if unknown. A partition with a separate render
 * node has no card node, because the whole GPU's card node does not provide access to the partition. */
enum { PROBE_NODE_BYTES = 32 };
const char *gpuhal_probe_render_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware,
                                     char space[PROBE_NODE_BYTES]);
const char *gpuhal_probe_card_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware);

/* State and problem code of a lost device that is listed. If a lost device's verification failed, or was not tried in
 * time, the device has this state too, but gpuhal_probe_is_lost() returns false for it, because the verification's
 * problem is more informative. */
#define GPUHAL_PROBE_LOST "lost"
bool gpuhal_probe_is_lost(const gpuhal_probe_device *entry);
/* Returns whether this run found nothing against the device: neither its driver nor its bus lost it, its hardware is
 * ready or its grade is below PROBLEM, it does not need a reset, its compute mode is not prohibited, and its
 * verification, if any, succeeded. */
bool gpuhal_probe_works(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* Returns whether the device works and no other process has exclusive use of it. */
bool gpuhal_probe_is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);

/* Returns whether hardware without a device has a separate row. Without --all, hardware that no API supports has no
 * row, and hardware not given to this container, pod or job has a row only in metrics. With --device, no hardware
 * without a device is listed. */
bool gpuhal_probe_is_listed(const gpuhal_probe_options *options, const gpuhal_hardware_info *hardware);

#endif
