/* json_parts.h: the parts of the documents gpuhal.probe/2 and gpuhal.probe/1. */
#ifndef PROBE_JSON_PARTS_H
#define PROBE_JSON_PARTS_H

#include "build.h"
#include "machine.h"
#include "problems.h"

/* Sets the reason why this key is missing, for example "not read: --verify was not given". */
void gpuhal_probe_put_reason(gpuhal_probe_json *builder, json_t *missing, const char *name, gpuhal_missing reason,
                             const char *why);
/* Adds a fact under its own name. If the fact is missing, adds null, and the reason in `missing`. If the reason is that
 * the API or the hardware has no such fact, the reason is added only with `every`. */
void gpuhal_probe_put_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                           gpuhal_key key, bool every);
/* Adds the backend-specific facts, which have numbers as names. */
void gpuhal_probe_put_vendor_facts(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                   const gpuhal_device *device);

/* gpuhal_probe_why_untried() returns the reason why a device or link was not tried. gpuhal_probe_put_result() adds the
 * result, or null and this reason. */
const char *gpuhal_probe_why_untried(bool verifying);
void gpuhal_probe_put_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, bool tried,
                             const gpuhal_probe_result *result, bool verifying);

json_t *gpuhal_probe_make_type(const gpuhal_device *device);
/* Creates the facts of a MIG partition from the name of the device or hardware, the UUID, and the instance numbers;
 * null without a UUID, or if the name has no profile. */
json_t *gpuhal_probe_make_mig(gpuhal_probe_json *builder, const char *name, const char *uuid, const char *numbers);
json_t *gpuhal_probe_make_capabilities(gpuhal_probe_json *builder, const gpuhal_device *device);
json_t *gpuhal_probe_make_device(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                                 const gpuhal_probe_device *entry);
/* Creates the values that were read from the device, or null if no values were read. */
json_t *gpuhal_probe_make_telemetry(gpuhal_probe_json *builder, const gpuhal_probe_device *entry);
/* Adds the list "processes". If there is no list, adds null instead, and the reason in `missing`, unless the processes
 * were not read or listing them is not supported. */
void gpuhal_probe_put_processes(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
json_t *gpuhal_probe_make_links(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine);
json_t *gpuhal_probe_make_hardware(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine);
json_t *gpuhal_probe_make_problems(gpuhal_probe_json *builder, const gpuhal_probe_problems *problems);
/* Create the kernel driver, or null, and the device file paths, for hardware and for devices on it. */
json_t *gpuhal_probe_make_kernel_driver(gpuhal_probe_json *builder, const gpuhal_hardware_info *hardware);
json_t *gpuhal_probe_make_nodes(gpuhal_probe_json *builder, const gpuhal_probe_device *entry,
                                const gpuhal_hardware_info *hardware);

/* Converts the document gpuhal.probe/2 to gpuhal.probe/1. */
void gpuhal_probe_make_former(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine, json_t *document);

#endif
