/* diff_json.c: the document gpuhal.diff/1, described by docs/gpuhal.diff-1.schema.json. */
#include "build.h"
#include "diff.h"
#include "uuid.h"

#include <time.h>

static json_t *make_change(gpuhal_probe_json *builder, const gpuhal_probe_change *change)
{
    static const char *const kinds[PROBE_CHANGE_KINDS] = {"new", "back", "gone", "driver"};
    json_t *object = json_object();
    char uuid[PROBE_UUID_BYTES];
    gpuhal_probe_put(builder, object, "change", gpuhal_json_text(kinds[change->kind]));
    gpuhal_probe_put(builder, object, "device", gpuhal_json_text(change->id));
    gpuhal_probe_put(builder, object, "backend", gpuhal_json_text(change->entry.backend));
    gpuhal_probe_put(builder, object, "interface", gpuhal_probe_number(change->entry.number));
    gpuhal_probe_put(builder, object, "physical_device", gpuhal_probe_number(change->physical.number));
    gpuhal_probe_put(builder, object, "name", gpuhal_json_text(change->entry.name));
    gpuhal_probe_put(builder, object, "pci_address", gpuhal_json_text(change->physical.pci_address));
    gpuhal_probe_put(builder, object, "uuid",
                     gpuhal_json_text(gpuhal_probe_uuid(change->entry.uuid, change->physical.vendor_id,
                                                        *change->entry.partition != 0, uuid)));
    gpuhal_probe_put(builder, object, "last_seen", gpuhal_json_time(change->entry.last_seen));
    gpuhal_probe_put(builder, object, "driver", gpuhal_json_text(change->driver));
    gpuhal_probe_put(builder, object, "driver_before", gpuhal_json_text(change->older));
    return object;
}

bool gpuhal_probe_diff_json(const gpuhal_probe_comparison *own, FILE *out)
{
    gpuhal_probe_json builder = {0};
    json_t *document = json_object(), *changes = json_array(), *left_out = json_array();
    const char *backend = NULL, *why = NULL;
    gpuhal_probe_put(&builder, document, "schema", gpuhal_json_text("gpuhal.diff/1"));
    gpuhal_probe_put(&builder, document, "library_version", gpuhal_json_text(gpuhal_version()));
    gpuhal_probe_put(&builder, document, "generated_at", gpuhal_json_time((uint64_t)time(NULL)));
    gpuhal_probe_put(&builder, document, "baseline_at", gpuhal_json_time(own->first ? 0 : own->baseline_time));
    gpuhal_probe_put(&builder, document, "accepted", json_boolean(own->accepted || own->first));
    for (uint32_t i = 0; i < own->count; i++) {
        gpuhal_probe_append(&builder, changes, make_change(&builder, &own->changes[i]));
    }
    gpuhal_probe_put(&builder, document, "changes", changes);
    for (uint32_t i = 0; gpuhal_probe_diff_left_out(own, i, &backend, &why); i++) {
        json_t *object = json_object();
        gpuhal_probe_put(&builder, object, "backend", gpuhal_json_text(backend));
        gpuhal_probe_put(&builder, object, "reason", gpuhal_json_text(why));
        gpuhal_probe_append(&builder, left_out, object);
    }
    gpuhal_probe_put(&builder, document, "not_compared", left_out);
    return gpuhal_probe_json_print(&builder, document, out);
}
