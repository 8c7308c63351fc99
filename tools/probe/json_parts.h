/* json_parts.h: the parts of the documents gpuhal.probe/2 and gpuhal.probe/1. */
#ifndef PROBE_JSON_PARTS_H
#define PROBE_JSON_PARTS_H

#include "build.h"
#include "machine.h"
#include "problems.h"

/* Puts "not read: --verify was not given" as the reason of this key. */
void gpuhal_probe_put_reason(gpuhal_probe_json *builder, json_t *missing, const char *name, gpuhal_missing reason,
                             const char *why);
/* Puts a fact under its own name; without a value null, and the reason in `missing`. `every`: also the reason that the
 * API or the hardware has no such fact. */
void gpuhal_probe_put_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                           gpuhal_key key, bool every);
/* Puts the facts of the backend's own, which have numbers for names. */
void gpuhal_probe_put_vendor_facts(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                   const gpuhal_device *device);

/* Return the reason for an untried device or link, and put the result of a tried one. */
const char *gpuhal_probe_why_untried(bool verifying);
void gpuhal_probe_put_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, bool tried,
                             const gpuhal_probe_result *result, bool verifying);

json_t *gpuhal_probe_make_type(const gpuhal_device *device);
/* Makes the facts of a part of a GPU in MIG mode, with the driver's name, the UUID, and the numbers of its instances;
 * null without a UUID.
 */
json_t *gpuhal_probe_make_mig(gpuhal_probe_json *builder, const char *name, const char *uuid, const char *numbers);
json_t *gpuhal_probe_make_capabilities(gpuhal_probe_json *builder, const gpuhal_device *device);
json_t *gpuhal_probe_make_device(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                                 const gpuhal_probe_device *entry);
/* Makes the device's values that were read; null when none was. */
json_t *gpuhal_probe_make_telemetry(gpuhal_probe_json *builder, const gpuhal_probe_device *entry);
/* Puts the processes under "processes"; without a list null, and the reason in `missing` unless nothing lists them. */
void gpuhal_probe_put_processes(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
json_t *gpuhal_probe_make_links(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine);
json_t *gpuhal_probe_make_hardware(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine);
json_t *gpuhal_probe_make_problems(gpuhal_probe_json *builder, const gpuhal_probe_problems *problems);
/* Make the same for the hardware, and for a device that stands for it: the kernel's driver, or null; paths of its
 * device files. */
json_t *gpuhal_probe_make_kernel_driver(gpuhal_probe_json *builder, const gpuhal_hardware_info *hardware);
json_t *gpuhal_probe_make_nodes(gpuhal_probe_json *builder, const gpuhal_probe_device *entry,
                                const gpuhal_hardware_info *hardware);

/* Makes gpuhal.probe/1 out of the document gpuhal.probe/2. */
void gpuhal_probe_make_former(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine, json_t *document);

#endif
