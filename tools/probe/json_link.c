/* json_link.c: links between devices, for documents; see json_parts.h. */
#include "json_parts.h"
#include "links.h"

#include <stdio.h>

static json_t *make_link_value(size_t place, uint64_t value)
{
    switch (place) {
    case PROBE_LINK_KIND:
        return gpuhal_json_any_text(gpuhal_link_kind_name((gpuhal_link_kind)value));
    case PROBE_LINK_PATH:
        return gpuhal_json_any_text(gpuhal_path_name((gpuhal_path)value));
    case PROBE_LINK_ADVERTISED:
        return json_boolean(value != 0);
    case PROBE_LINK_TRIED:
        return gpuhal_json_time(value);
    default:
        return gpuhal_probe_number(value);
    }
}

/* Adds the result of this run, or the cached result if the link was not tried. */
static void put_link_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_probe_link *link,
                            bool verifying)
{
    gpuhal_probe_result result = link->result;
    if (link->cached && !link->values[PROBE_LINK_VERIFIED].u64) {
        result.status = GPUHAL_ERROR_DRIVER;
        snprintf(result.sentence, sizeof result.sentence,
                 "it failed before with these drivers; gpuhal-probe --registry says how");
    }
    gpuhal_probe_put_result(builder, object, missing, link->tried || link->cached, &result, verifying);
}

static json_t *make_link(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine, const gpuhal_probe_link *link)
{
    static const char *const names[PROBE_LINK_TRIED + 1] = {
        "kind", "bandwidth_bytes_per_second", "generation",          "count",   "peer_advertised",
        "path", "measured_bytes_per_second",  "measured_latency_ns", "tried_at"};
    json_t *object = json_object(), *missing = json_object();
    gpuhal_probe_put(builder, object, "from",
                     gpuhal_json_any_text(gpuhal_device_id(machine->devices[link->from].device)));
    gpuhal_probe_put(builder, object, "to", gpuhal_json_any_text(gpuhal_device_id(machine->devices[link->to].device)));
    gpuhal_probe_put(builder, object, "software", json_boolean(link->software));
    for (size_t i = 0; i <= PROBE_LINK_TRIED; i++) {
        const gpuhal_value *value = &link->values[i];
        gpuhal_probe_put(builder, object, names[i], value->missing ? json_null() : make_link_value(i, value->u64));
        if (value->missing) {
            bool untried = value->missing == GPUHAL_MISSING_NOT_READ && !link->tried && !link->result.status;
            gpuhal_probe_put_reason(builder, missing, names[i], value->missing,
                                    untried ? gpuhal_probe_why_untried(machine->verifying) : value->why);
        }
        if (i == PROBE_LINK_KIND) {
            gpuhal_probe_put(builder, object, "name", link->name_missing ? json_null() : gpuhal_json_text(link->name));
        }
        if (i == PROBE_LINK_ADVERTISED) {
            put_link_result(builder, object, missing, link, machine->verifying);
        }
    }
    if (link->name_missing) {
        gpuhal_probe_put_reason(builder, missing, "name", link->name_missing, link->name);
    }
    gpuhal_probe_put(builder, object, "cached", json_boolean(link->cached));
    gpuhal_probe_put(builder, object, "missing", missing);
    return object;
}

json_t *gpuhal_probe_make_links(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    json_t *array = machine->links ? json_array() : json_null();
    for (uint32_t i = 0; i < machine->link_count; i++) {
        gpuhal_probe_append(builder, array, make_link(builder, machine, &machine->links[i]));
    }
    return array;
}
