/* json_facts.c: a device's facts from the library, for documents; see json_parts.h. */
#include "json_parts.h"

#include <inttypes.h>
#include <stdio.h>

void gpuhal_probe_put_reason(gpuhal_probe_json *builder, json_t *missing, const char *name, gpuhal_missing reason,
                             const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", gpuhal_missing_name(reason), why && *why ? ": " : "", why ? why : "");
    gpuhal_probe_put(builder, missing, name, gpuhal_json_any_text(text));
}

void gpuhal_probe_put_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                           gpuhal_key key, bool every)
{
    const char *name = gpuhal_key_name(key), *text;
    uint64_t number;
    if (!gpuhal_key_is_text(key) && gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_probe_number(number));
        return;
    }
    if (!gpuhal_key_is_text(key) || gpuhal_device_text(device, key, &text) != GPUHAL_OK) {
        const char *why = "";
        gpuhal_missing reason = gpuhal_device_missing(device, key, &why);
        gpuhal_probe_put(builder, object, name, json_null());
        if (every || reason != GPUHAL_MISSING_NOT_SUPPORTED) {
            gpuhal_probe_put_reason(builder, missing, name, reason, why);
        }
        return;
    }
    gpuhal_probe_put(builder, object, name, gpuhal_json_text(text));
    if (!*text) {
        gpuhal_probe_put(builder, missing, name, gpuhal_json_any_text("failed: the driver gives an empty text"));
    }
}

/* Adds a backend-specific fact. This program does not know the fact's name or type, so the value determines whether it
 * is a string. */
static void put_vendor_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                            gpuhal_key key)
{
    char name[16];
    const char *text = NULL, *why = "";
    uint64_t number = 0;
    snprintf(name, sizeof name, "0x%08" PRIx32, key);
    gpuhal_missing reason = gpuhal_device_missing(device, key, &why);
    if (reason) {
        gpuhal_probe_put(builder, object, name, json_null());
        gpuhal_probe_put_reason(builder, missing, name, reason, why);
    } else if (gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_probe_number(number));
    } else if (gpuhal_device_text(device, key, &text) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_json_any_text(text));
    }
}

void gpuhal_probe_put_vendor_facts(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                                   const gpuhal_device *device)
{
    gpuhal_key key = 0;
    for (uint32_t i = 0; gpuhal_device_key_at(device, i, &key) == GPUHAL_OK; i++) {
        if (key >= GPUHAL_VENDOR_FIRST) {
            put_vendor_fact(builder, object, missing, device, key);
        }
    }
}

json_t *gpuhal_probe_make_type(const gpuhal_device *device)
{
    uint64_t type = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    return gpuhal_json_any_text(gpuhal_device_type_name((gpuhal_device_type)type));
}

json_t *gpuhal_probe_make_capabilities(gpuhal_probe_json *builder, const gpuhal_device *device)
{
    json_t *array = json_array();
    uint32_t bits = gpuhal_device_capabilities(device);
    for (uint32_t bit = 0; bit < GPUHAL_CAPABILITY_COUNT; bit++) {
        if (bits >> bit & 1u) {
            gpuhal_probe_append(builder, array, gpuhal_json_any_text(gpuhal_capability_name(bit)));
        }
    }
    return array;
}

const char *gpuhal_probe_why_untried(bool verifying)
{
    return verifying ? "--verify without --all leaves out devices that are not preferred" : "--verify was not given";
}

void gpuhal_probe_put_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, bool tried,
                             const gpuhal_probe_result *result, bool verifying)
{
    bool failed = tried && result->status;
    gpuhal_probe_put(builder, object, "verified", tried ? json_boolean(!failed) : json_null());
    if (!tried) {
        gpuhal_probe_put_reason(builder, missing, "verified", GPUHAL_MISSING_NOT_READ,
                                gpuhal_probe_why_untried(verifying));
    }
    gpuhal_probe_put(builder, object, "verify_error", failed ? gpuhal_json_any_text(result->sentence) : json_null());
}
