/* device/facts_api.c: reports the facts of a device, and their names, to the application. A snapshot never changes, but
 * current facts may come from a later snapshot or from the driver in this process. */
#include "device/snapshot.h"

#include "base/error.h"
#include "loader/host.h"
#include "loader/slot_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gpuhal_device_id(const gpuhal_device *device)
{
    return device ? device->id : "";
}

const char *gpuhal_device_backend(const gpuhal_device *device)
{
    return device ? device->candidate->name : "";
}

uint32_t gpuhal_device_index(const gpuhal_device *device)
{
    return device ? device->index : 0;
}

gpuhal *gpuhal_device_owner(const gpuhal_device *device)
{
    return device ? device->gpu : NULL;
}

/* An adopted device may lack slots, because the caller may have created it without the features that they need. */
uint32_t gpuhal_device_capabilities(const gpuhal_device *device)
{
    const gpuhal_listed_device *current = device ? gpuhal_device_current(device) : NULL;
    if (current && atomic_load_explicit(&device->state, memory_order_acquire) == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_slots_capabilities(&device->slots, &current->facts);
    }
    return current ? current->capabilities : 0;
}

/* Sets the detail for a fact without a value. A key unknown to both the library and the device's plugin is invalid,
 * unless it is a vendor's, which another device may have. */
static gpuhal_status missing(const gpuhal_device *device, gpuhal_key key)
{
    const gpuhal_fact *fact = gpuhal_facts_find(&gpuhal_device_current(device)->facts, key);
    char name[GPUHAL_KEY_WORD_BYTES];
    gpuhal_key_word(key, name);
    if (!fact && !gpuhal_key_name(key) && key < GPUHAL_VENDOR_FIRST) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "%s: %s is not a key of this library, nor a fact of the device", device->id, name);
    }
    gpuhal_status status =
        gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: %s is missing: %s%s%s", device->id, name,
                         gpuhal_missing_name(fact ? fact->missing : GPUHAL_MISSING_NOT_SUPPORTED),
                         fact && fact->text && *fact->text ? ": " : "", fact && fact->text ? fact->text : "");
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

static gpuhal_status wrong_form(gpuhal_key key, const char *what)
{
    char name[GPUHAL_KEY_WORD_BYTES];
    gpuhal_key_word(key, name);
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is %s", name, what);
}

gpuhal_status gpuhal_device_u64(const gpuhal_device *device, gpuhal_key key, uint64_t *out_value)
{
    if (out_value) {
        *out_value = 0;
    }
    if (!device || !out_value) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_u64: device or out_value is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    /* Only the fact shows whether the value of a plugin's own key is a number or text. */
    const gpuhal_fact *fact = gpuhal_facts_find(&gpuhal_device_current(device)->facts, key);
    if (gpuhal_key_is_text(key) || (fact && !fact->missing && fact->text)) {
        return wrong_form(key, "a text: use gpuhal_device_text()");
    }
    if (!fact || fact->missing) {
        return missing(device, key);
    }
    *out_value = fact->u64;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_text(const gpuhal_device *device, gpuhal_key key, const char **out_text)
{
    if (out_text) {
        *out_text = NULL;
    }
    if (!device || !out_text) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_text: device or out_text is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    const gpuhal_fact *fact = gpuhal_facts_find(&gpuhal_device_current(device)->facts, key);
    bool known_number = gpuhal_key_name(key) && !gpuhal_key_is_text(key);
    if (known_number || (fact && !fact->missing && !fact->text)) {
        return wrong_form(key, "a number: use gpuhal_device_u64()");
    }
    if (!fact || fact->missing) {
        return missing(device, key);
    }
    *out_text = fact->text;
    return GPUHAL_OK;
}

gpuhal_missing gpuhal_device_missing(const gpuhal_device *device, gpuhal_key key, const char **out_why)
{
    const gpuhal_fact *fact = device ? gpuhal_facts_find(&gpuhal_device_current(device)->facts, key) : NULL;
    if (out_why) {
        *out_why = fact && fact->missing && fact->text ? fact->text : "";
    }
    return fact ? fact->missing : GPUHAL_MISSING_NOT_SUPPORTED;
}

gpuhal_status gpuhal_device_key_at(const gpuhal_device *device, uint32_t index, gpuhal_key *out_key)
{
    if (!device || !out_key) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_key_at: device or out_key is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    /* Skip values, because they were current only at the time of listing. */
    const gpuhal_facts *facts = &gpuhal_device_current(device)->facts;
    uint32_t count = 0;
    for (size_t i = 0; i < facts->count; i++) {
        const gpuhal_key key = facts->list[i].key;
        const bool is_value = key >= GPUHAL_VALUE_MEMORY_FREE_BYTES && key < GPUHAL_VENDOR_FIRST;
        if (!is_value && count++ == index) {
            *out_key = key;
            return GPUHAL_OK;
        }
    }
    *out_key = 0;
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: there are %" PRIu32 " facts", device->id, count);
}

gpuhal_status gpuhal_device_physical(const gpuhal_device *device, uint32_t *out_number, uint32_t *out_preferred)
{
    if (!out_number || !out_preferred) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_physical: an argument is NULL");
    }
    *out_number = *out_preferred = 0;
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_physical: device is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(gpuhal_device_snapshot_now(device->gpu), device);
    *out_number = device->physical_number;
    *out_preferred = entry && entry->preferred;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_limit_memory(gpuhal_device *device, uint64_t bytes)
{
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_limit_memory: device is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (!status) {
        atomic_store(&device->limit_bytes, bytes);
    }
    return status;
}

gpuhal_status gpuhal_device_by_native(gpuhal *gpu, const char *backend, uint64_t native_index,
                                      gpuhal_device **out_device)
{
    if (out_device) {
        *out_device = NULL;
    }
    if (!gpu || !backend || !out_device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_by_native: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        gpuhal_device *device = snapshot->devices[d];
        const gpuhal_fact *fact = gpuhal_facts_find(&gpuhal_device_current(device)->facts, GPUHAL_FACT_NATIVE_INDEX);
        if (snapshot->places[d] != GPUHAL_NOWHERE && strcmp(device->candidate->name, backend) == 0 && fact &&
            !fact->missing && fact->u64 == native_index) {
            *out_device = device;
            return GPUHAL_OK;
        }
    }
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no visible device of backend \"%s\" has the native index %llu",
                            backend, (unsigned long long)native_index);
}

gpuhal_status gpuhal_native_check(const char *call, const gpuhal_native *out_native)
{
    return out_native->size > 0
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "%s: the size of out_native is 0: set it to sizeof(gpuhal_native)", call);
}

void gpuhal_native_give(gpuhal_native *out_native, gpuhal_native native)
{
    uint32_t size = out_native->size < sizeof native ? out_native->size : (uint32_t)sizeof native;
    native.size = size;
    memcpy(out_native, &native, size);
}

gpuhal_status gpuhal_device_native(gpuhal_device *device, gpuhal_native *out_native)
{
    if (!device || !out_native) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_native: an argument is NULL");
    }
    gpuhal_native native = {.size = sizeof native};
    gpuhal_status status = gpuhal_native_check("gpuhal_device_native", out_native);
    status = status ? status : gpuhal_device_open(device);
    if (status) {
        return status;
    }
    if (!device->native.native_device) {
        return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED, "getting the vendor's objects");
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    status = gpuhal_device_result(device, call, device->native.native_device(device->handle, &native));
    gpuhal_native_give(out_native, status ? (gpuhal_native){0} : native);
    return status ? gpuhal_device_failed(device, status, "getting the vendor's objects") : GPUHAL_OK;
}

/* Opening the library by its path returns the copy that is already loaded. */
gpuhal_status gpuhal_device_symbol(gpuhal_device *device, const char *name, gpuhal_vendor_fn **out_function)
{
    char reason[512];
    if (!device || !name || !out_function) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_symbol: an argument is NULL");
    }
    *out_function = NULL;
    gpuhal_status status = gpuhal_device_open(device);
    if (status) {
        return status;
    }
    const char *path = gpuhal_backend_driver(device->backend);
    if (!path) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: its plugin opened no vendor's library", device->id);
    }
    void *library = gpuhal_plugin_dlopen(path, reason, sizeof reason);
    if (!library) {
        status = gpuhal_dlopen_is_forked() ? GPUHAL_ERROR_FORKED : GPUHAL_ERROR_DRIVER;
        return gpuhal_error_set(status, "%s: %s cannot be opened again: %s", device->id, path, reason);
    }
    void *address = gpuhal_os_library_symbol(library, name);
    memcpy(out_function, &address, sizeof address);
    return address ? GPUHAL_OK
                   : gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: %s has no function %s", device->id, path, name);
}

const char *gpuhal_device_type_name(gpuhal_device_type type)
{
    static const char names[][15] = {"unknown", "gpu", "integrated_gpu", "cpu", "accelerator"};
    return names[type < sizeof names / sizeof *names ? type : 0];
}

const char *gpuhal_capability_name(uint32_t bit)
{
    static const char *const names[GPUHAL_CAPABILITY_COUNT] = {
        "host_copy", "fill",   "copy_rect",      "register", "map",    "queues", "peer",
        "export",    "import", "virtual_memory", "programs", "native", "adopt"};
    return bit < GPUHAL_CAPABILITY_COUNT ? names[bit] : NULL;
}

const char *gpuhal_data_type_name(uint32_t bit)
{
    static const char *const names[GPUHAL_DATA_COUNT] = {"fp16",  "bf16",  "fp64",     "fp8", "int8",
                                                         "int16", "int64", "int8_dot", "int4"};
    return bit < GPUHAL_DATA_COUNT ? names[bit] : NULL;
}
