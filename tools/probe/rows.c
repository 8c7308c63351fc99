/* rows.c: see rows.h. */
#include "rows.h"

#include "hardware_record.h"
#include "health.h"
#include "times.h"

#include <gpuhal/rescan.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the state that replaces the values of hardware that has no device or is broken. Capital letters indicate
 * possible defects. */
static void write_state(const gpuhal_hardware_info *hardware, char to[48])
{
    static const char *const words[] = {
        [GPUHAL_HARDWARE_NO_KERNEL_DRIVER] = "NO DRIVER",
        [GPUHAL_HARDWARE_PASSED_THROUGH] = "PASSED THROUGH",
        [GPUHAL_HARDWARE_NODE_MISSING] = "NO DEVICE NODE",
        [GPUHAL_HARDWARE_NO_PERMISSION] = "NO PERMISSION",
        [GPUHAL_HARDWARE_NO_LIBRARY] = "NO LIBRARY",
        [GPUHAL_HARDWARE_VERSION_MISMATCH] = "VERSION MISMATCH",
        [GPUHAL_HARDWARE_HIDDEN] = "HIDDEN",
        [GPUHAL_HARDWARE_QUARANTINED] = "QUARANTINED",
        [GPUHAL_HARDWARE_DRIVER_ERROR] = "DRIVER ERROR",
        [GPUHAL_HARDWARE_OFF_BUS] = "OFF THE BUS",
        [GPUHAL_HARDWARE_GONE] = "MISSING",
        [GPUHAL_HARDWARE_DISPLAY_ONLY] = "DISPLAY ONLY",
        [GPUHAL_HARDWARE_NOT_GIVEN] = "NOT GIVEN",
        [GPUHAL_HARDWARE_NO_INSTANCE] = "NO INSTANCE",
    };
    if (*hardware->partition) {
        snprintf(to, 48, "not used here"); /* CUDA lists at most one partition in a process, and not this one */
        return;
    }
    if (hardware->state == GPUHAL_HARDWARE_PASSED_THROUGH && strcmp(hardware->kernel_driver, "nvidia") == 0) {
        snprintf(to, 48, "vGPU host"); /* the vGPU driver shares the GPU among guests */
        return;
    }
    const char *word = hardware->state < sizeof words / sizeof *words ? words[hardware->state] : NULL;
    if (hardware->state == GPUHAL_HARDWARE_GONE && hardware->last_seen) {
        char when[GPUHAL_PROBE_TIME_BYTES];
        gpuhal_probe_format_day(hardware->last_seen, when);
        snprintf(to, 48, "MISSING, last seen %.26s", when);
        return;
    }
    if (hardware->state == GPUHAL_HARDWARE_DISPLAY_ONLY && hardware->pci_class >> 16 == 0x12) {
        word = "NO GPU"; /* another kind of accelerator */
    }
    snprintf(to, 48, "%s", word ? word : gpuhal_hardware_state_name(hardware->state));
    for (char *at = to; hardware->grade <= GPUHAL_HARDWARE_NOTE && *at; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
}

const gpuhal_hardware_info *gpuhal_probe_hardware_of(const gpuhal_probe_machine *machine,
                                                     const gpuhal_probe_device *entry)
{
    for (uint32_t i = 0; entry->physical && i < machine->hardware_count; i++) {
        if (machine->hardware[i].physical == entry->physical) {
            return &machine->hardware[i];
        }
    }
    return NULL;
}

const char *gpuhal_probe_render_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware,
                                     char space[PROBE_NODE_BYTES])
{
    const char *number;
    unsigned minor = 0;
    if (entry && gpuhal_device_text(entry->device, GPUHAL_FACT_DRM_RENDER_NODE, &number) == GPUHAL_OK &&
        sscanf(number, "%*u:%7u", &minor) == 1) {
        snprintf(space, PROBE_NODE_BYTES, "/dev/dri/renderD%u", minor);
        return space;
    }
    return hardware ? hardware->drm_render_node : "";
}

const char *gpuhal_probe_card_node(const gpuhal_probe_device *entry, const gpuhal_hardware_info *hardware)
{
    char space[PROBE_NODE_BYTES];
    const bool is_own =
        hardware && strcmp(gpuhal_probe_render_node(entry, hardware, space), hardware->drm_render_node) == 0;
    return is_own ? hardware->drm_card : "";
}

static bool is_broken(const gpuhal_hardware_info *hardware)
{
    return hardware && hardware->state != GPUHAL_HARDWARE_READY && hardware->grade == GPUHAL_HARDWARE_PROBLEM;
}

static void add_device(gpuhal_probe_rows *rows, const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    gpuhal_probe_row *row = &rows->list[rows->count++];
    *row = (gpuhal_probe_row){
        .entry = entry,
        .hardware = gpuhal_probe_hardware_of(machine, entry),
        .is_chosen = entry->device == machine->chosen,
        .is_problem = entry->verified && entry->result.status,
    };
    const gpuhal_hardware_info *hardware = row->hardware;
    if (row->is_problem) {
        snprintf(row->state, sizeof row->state, entry->result.not_tried ? "NOT VERIFIED" : "VERIFICATION FAILED");
    } else if (is_broken(hardware)) {
        write_state(hardware, row->state);
        row->is_problem = true;
    } else if (gpuhal_probe_is_lost(entry)) {
        snprintf(row->state, sizeof row->state, "LOST");
        row->is_problem = true;
    } else if (gpuhal_probe_has(entry, PROBE_RESET_NEEDED)) {
        snprintf(row->state, sizeof row->state, "RESET NEEDED");
        row->is_problem = true;
    } else if (gpuhal_probe_has(entry, PROBE_PROHIBITED)) {
        snprintf(row->state, sizeof row->state, "prohibited");
    } else if (hardware && hardware->is_asleep) {
        uint64_t used;
        const bool known = gpuhal_probe_value(entry, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, &used);
        snprintf(row->state, sizeof row->state, "%s", known ? "" : "asleep");
    }
    row->is_problem = row->is_problem || gpuhal_probe_is_ill(entry);
}

bool gpuhal_probe_is_lost(const gpuhal_probe_device *entry)
{
    return !(entry->verified && entry->result.status) && gpuhal_device_status(entry->device) != GPUHAL_OK;
}

bool gpuhal_probe_works(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    return !(entry->verified && entry->result.status) && !gpuhal_probe_is_lost(entry) &&
           !gpuhal_probe_has(entry, PROBE_RESET_NEEDED) && !gpuhal_probe_has(entry, PROBE_PROHIBITED) &&
           !is_broken(gpuhal_probe_hardware_of(machine, entry));
}

bool gpuhal_probe_is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    return gpuhal_probe_works(machine, entry) && !gpuhal_probe_has(entry, PROBE_TAKEN);
}

bool gpuhal_probe_is_listed(const gpuhal_probe_options *options, const gpuhal_hardware_info *hardware)
{
    const bool has_line = hardware->state != GPUHAL_HARDWARE_DISPLAY_ONLY &&
                          (hardware->state != GPUHAL_HARDWARE_NOT_GIVEN || gpuhal_probe_has_metrics(options->format));
    return hardware->device_count == 0 && hardware->state != GPUHAL_HARDWARE_READY && !options->device &&
           (options->all || has_line);
}

bool gpuhal_probe_rows_make(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                            gpuhal_probe_rows *out_rows)
{
    *out_rows = (gpuhal_probe_rows){
        .list = calloc((size_t)machine->count + machine->hardware_count + 1, sizeof *out_rows->list)};
    if (!out_rows->list) {
        return false;
    }
    /* CSV and metrics include the processor even if there are GPUs. */
    const bool for_programs = options->format == PROBE_FORMAT_CSV || gpuhal_probe_has_metrics(options->format);
    for (uint32_t i = 0; i < machine->count; i++) {
        if (machine->devices[i].row || (for_programs && machine->devices[i].shown)) {
            add_device(out_rows, machine, &machine->devices[i]);
        }
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        char space[PROBE_UUID_BYTES];
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        if (gpuhal_probe_is_listed(options, hardware)) {
            gpuhal_probe_row *row = &out_rows->list[out_rows->count++];
            *row = (gpuhal_probe_row){.hardware = hardware,
                                      .type = gpuhal_probe_hardware_type(machine, hardware),
                                      .is_problem = hardware->grade > GPUHAL_HARDWARE_NOTE};
            snprintf(row->uuid, sizeof row->uuid, "%s", gpuhal_probe_hardware_uuid(machine, hardware, space));
            write_state(hardware, row->state);
        }
    }
    return true;
}

const char *gpuhal_probe_row_state(const gpuhal_probe_row *row)
{
    if (row->entry && gpuhal_device_status(row->entry->device) != GPUHAL_OK) {
        return GPUHAL_PROBE_LOST;
    }
    if (row->entry && gpuhal_probe_has(row->entry, PROBE_RESET_NEEDED)) {
        return gpuhal_probe_ailment_name(PROBE_RESET_NEEDED);
    }
    return gpuhal_hardware_state_name(row->hardware ? row->hardware->state : GPUHAL_HARDWARE_READY);
}

gpuhal_hardware_grade gpuhal_probe_row_grade(const gpuhal_probe_row *row)
{
    const gpuhal_probe_device *entry = row->entry;
    gpuhal_hardware_grade grade = row->hardware ? row->hardware->grade : GPUHAL_HARDWARE_FINE;
    if (entry && (gpuhal_probe_is_lost(entry) || (entry->verified && entry->result.status))) {
        grade = GPUHAL_HARDWARE_PROBLEM;
    }
    for (gpuhal_probe_ailment i = 0; entry && i < PROBE_AILMENTS; i++) {
        const gpuhal_hardware_grade own = gpuhal_probe_ailment_grade(i);
        grade = own > grade && gpuhal_probe_has(entry, i) ? own : grade;
    }
    return grade;
}

/* Returns whether NVIDIA hardware is unlisted only in this process, because of environment variables or a partition of
 * another GPU. These do not affect device nodes and names. */
static bool is_hidden_here(const gpuhal_hardware_info *hardware)
{
    return hardware->state == GPUHAL_HARDWARE_HIDDEN && strncmp(hardware->vendor_node, "/dev/nvidia", 11) == 0;
}

const char *gpuhal_probe_row_why(const gpuhal_probe_row *row)
{
    const gpuhal_hardware_info *hardware = row->hardware;
    if (!row->entry) {
        return *hardware->partition || is_hidden_here(hardware) ? NULL : hardware->why;
    }
    if (strcmp(gpuhal_probe_row_state(row), gpuhal_hardware_state_name(GPUHAL_HARDWARE_READY)) == 0) {
        return NULL;
    }
    const bool is_lost = gpuhal_probe_is_lost(row->entry);
    return hardware && *hardware->why ? hardware->why : is_lost ? "the device is lost" : "the device needs a reset";
}

static const char *text_of(const gpuhal_probe_row *row, gpuhal_key key)
{
    const char *text;
    return gpuhal_device_text(row->entry->device, key, &text) == GPUHAL_OK ? text : "";
}

const char *gpuhal_probe_row_part(const gpuhal_probe_row *row)
{
    return row->entry ? text_of(row, GPUHAL_FACT_PARTITION) : row->hardware->partition;
}

const char *gpuhal_probe_row_part_numbers(const gpuhal_probe_row *row)
{
    return row->entry ? text_of(row, GPUHAL_FACT_PARTITION_NUMBERS) : row->hardware->partition_numbers;
}

void gpuhal_probe_rows_finish(gpuhal_probe_rows *rows)
{
    free(rows->list);
    *rows = (gpuhal_probe_rows){0};
}
