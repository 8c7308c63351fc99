/* json_hardware.c: hardware and problems, for documents; see json_parts.h. */
#include "json_parts.h"
#include "rows.h"

#include "hardware_record.h"

#include <stdio.h>
#include <string.h>

json_t *gpuhal_probe_make_kernel_driver(gpuhal_probe_json *builder, const gpuhal_hardware_info *hardware)
{
    if (!hardware || !*hardware->kernel_driver) {
        return json_null();
    }
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "name", gpuhal_json_any_text(hardware->kernel_driver));
    gpuhal_probe_put(builder, object, "version", gpuhal_json_text(hardware->kernel_driver_version));
    return object;
}

json_t *gpuhal_probe_make_nodes(gpuhal_probe_json *builder, const gpuhal_probe_device *entry,
                                const gpuhal_hardware_info *hardware)
{
    json_t *array = json_array();
    char space[PROBE_NODE_BYTES];
    const char *const nodes[] = {hardware ? hardware->vendor_node : "", gpuhal_probe_card_node(entry, hardware),
                                 gpuhal_probe_render_node(entry, hardware, space)};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        if (*nodes[i]) {
            gpuhal_probe_append(builder, array, gpuhal_json_any_text(nodes[i]));
        }
    }
    return array;
}

/* The profile is the part of the name of the device or hardware after " MIG ". */
json_t *gpuhal_probe_make_mig(gpuhal_probe_json *builder, const char *name, const char *uuid, const char *numbers)
{
    const char *mark = *uuid ? strstr(name, " MIG ") : NULL;
    json_t *object = mark ? json_object() : json_null();
    if (mark) {
        gpuhal_probe_put(builder, object, "profile", gpuhal_json_text(mark + strlen(" MIG ")));
        gpuhal_probe_put(builder, object, "uuid", gpuhal_json_text(uuid));
        gpuhal_probe_put(builder, object, "numbers", gpuhal_json_text(numbers));
    }
    return object;
}

/* Creates "10de", in lspci's form; null if the hardware is not on PCI, or not any more. */
static json_t *make_hex(const gpuhal_hardware_info *hardware, uint32_t number, int digits)
{
    char text[16];
    snprintf(text, sizeof text, "%0*x", digits, number);
    return hardware->pci_class ? gpuhal_json_any_text(text) : json_null();
}

static const char *grade_name(gpuhal_hardware_grade grade)
{
    return grade == GPUHAL_HARDWARE_PROBLEM   ? "problem"
           : grade == GPUHAL_HARDWARE_WARNING ? "warning"
           : grade == GPUHAL_HARDWARE_NOTE    ? "note"
                                              : "fine";
}

static json_t *make_one(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                        const gpuhal_hardware_info *hardware)
{
    char uuid[PROBE_UUID_BYTES];
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "pci_address", gpuhal_json_text(hardware->address));
    gpuhal_probe_put(builder, object, "place", gpuhal_json_text(hardware->place));
    gpuhal_probe_put(builder, object, "state", gpuhal_json_any_text(gpuhal_hardware_state_name(hardware->state)));
    gpuhal_probe_put(builder, object, "grade", gpuhal_json_any_text(grade_name(hardware->grade)));
    gpuhal_probe_put(builder, object, "vendor", gpuhal_json_text(hardware->vendor));
    gpuhal_probe_put(builder, object, "name", gpuhal_json_text(hardware->name));
    gpuhal_probe_put(builder, object, "type", gpuhal_json_text(gpuhal_probe_hardware_type(machine, hardware)));
    gpuhal_probe_put(builder, object, "uuid", gpuhal_json_text(gpuhal_probe_hardware_uuid(machine, hardware, uuid)));
    gpuhal_probe_put(
        builder, object, "mig",
        gpuhal_probe_make_mig(builder, hardware->name,
                              *hardware->partition ? gpuhal_probe_hardware_uuid(machine, hardware, uuid) : "",
                              hardware->partition_numbers));
    gpuhal_probe_put(builder, object, "pci_class", make_hex(hardware, hardware->pci_class, 6));
    gpuhal_probe_put(builder, object, "vendor_id", make_hex(hardware, hardware->vendor_id, 4));
    gpuhal_probe_put(builder, object, "device_id", make_hex(hardware, hardware->device_id, 4));
    gpuhal_probe_put(builder, object, "subsystem_vendor_id", make_hex(hardware, hardware->subsystem_vendor_id, 4));
    gpuhal_probe_put(builder, object, "subsystem_id", make_hex(hardware, hardware->subsystem_id, 4));
    gpuhal_probe_put(builder, object, "physical_device",
                     hardware->physical ? gpuhal_probe_number(hardware->physical) : json_null());
    gpuhal_probe_put(builder, object, "numa_node",
                     hardware->numa_node == UINT32_MAX ? json_null() : gpuhal_probe_number(hardware->numa_node));
    gpuhal_probe_put(builder, object, "cpu_affinity", gpuhal_json_text(hardware->local_cpus));
    gpuhal_probe_put(builder, object, "kernel_driver", gpuhal_probe_make_kernel_driver(builder, hardware));
    gpuhal_probe_put(builder, object, "device_nodes", gpuhal_probe_make_nodes(builder, NULL, hardware));
    gpuhal_probe_put(builder, object, "asleep", json_boolean(hardware->is_asleep != 0));
    gpuhal_probe_put(builder, object, "last_seen", gpuhal_json_time(hardware->last_seen));
    gpuhal_probe_put(builder, object, "why", gpuhal_json_text(hardware->why));
    gpuhal_probe_put(builder, object, "fix", gpuhal_json_text(hardware->fix));
    return object;
}

json_t *gpuhal_probe_make_hardware(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        gpuhal_probe_append(builder, array, make_one(builder, machine, &machine->hardware[i]));
    }
    return array;
}

json_t *gpuhal_probe_make_problems(gpuhal_probe_json *builder, const gpuhal_probe_problems *problems)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < problems->count; i++) {
        const gpuhal_probe_problem *problem = &problems->list[i];
        char sentence[GPUHAL_PROBE_SENTENCE_BYTES];
        gpuhal_probe_problem_sentence(problem, sentence);
        json_t *object = json_object();
        gpuhal_probe_put(builder, object, "code", gpuhal_json_any_text(problem->code));
        gpuhal_probe_put(builder, object, "grade", gpuhal_json_any_text(grade_name(problem->grade)));
        gpuhal_probe_put(builder, object, "hardware", gpuhal_json_text(problem->hardware));
        gpuhal_probe_put(builder, object, "sentence", gpuhal_json_any_text(sentence));
        gpuhal_probe_put(builder, object, "fix", gpuhal_json_text(problem->fix));
        gpuhal_probe_append(builder, array, object);
    }
    return array;
}
