/* json_processes.c: a device's processes in gpuhal.probe/2; see json_parts.h. */
#include "json_parts.h"
#include "processes.h"

static json_t *make_types(gpuhal_probe_json *builder, uint32_t flags)
{
    json_t *array = json_array();
    if (flags & GPUHAL_PROCESS_COMPUTE) {
        gpuhal_probe_append(builder, array, gpuhal_json_any_text("compute"));
    }
    if (flags & GPUHAL_PROCESS_GRAPHICS) {
        gpuhal_probe_append(builder, array, gpuhal_json_any_text("graphics"));
    }
    return array;
}

static json_t *make_process(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                            const gpuhal_process *process)
{
    const uint32_t flags = process->flags;
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "pid", process->pid ? gpuhal_probe_number(process->pid) : json_null());
    gpuhal_probe_put(builder, object, "foreign_namespace", json_boolean(flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE));
    gpuhal_probe_put(builder, object, "uid",
                     flags & GPUHAL_PROCESS_USER_KNOWN ? gpuhal_probe_number(process->user) : json_null());
    gpuhal_probe_put(builder, object, "user", gpuhal_json_text(gpuhal_probe_process_user(machine, process)));
    gpuhal_probe_put(builder, object, "command", gpuhal_json_text(process->command));
    gpuhal_probe_put(builder, object, "container", gpuhal_json_text(process->container));
    gpuhal_probe_put(builder, object, "types", make_types(builder, flags));
    gpuhal_probe_put(builder, object, "memory_bytes",
                     flags & GPUHAL_PROCESS_MEMORY_KNOWN ? gpuhal_probe_number(process->memory_bytes) : json_null());
    gpuhal_probe_put(builder, object, "busy_permille",
                     flags & GPUHAL_PROCESS_BUSY_KNOWN ? gpuhal_probe_number(process->busy_permille) : json_null());
    gpuhal_probe_put(builder, object, "source", gpuhal_json_text(process->source));
    return object;
}

void gpuhal_probe_put_processes(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    const gpuhal_probe_processes *own = entry->processes;
    const bool has_list = own && (!own->status || own->count);
    json_t *array = has_list ? json_array() : json_null();
    for (uint32_t i = 0; has_list && i < own->count; i++) {
        gpuhal_probe_append(builder, array, make_process(builder, machine, &own->list[i]));
    }
    gpuhal_probe_put(builder, object, "processes", array);
    if (own && !has_list && own->status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_probe_put(builder, missing, "processes", gpuhal_json_any_text(own->why));
    }
}
