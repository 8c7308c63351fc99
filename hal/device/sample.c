/* device/sample.c: samples changing values of a device, which need not be open. */
#include "device/device.h"

#include "core/error.h"
#include "loader/query.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_VALUE ((gpuhal_key)GPUHAL_VALUE_MEMORY_FREE_BYTES)

/* Returns whether the library itself has the answer: a value that it counts, or a fact, which is not a value. */
static bool is_ours(gpuhal_key key)
{
    return key == GPUHAL_VALUE_MEMORY_HELD_BYTES || key < FIRST_VALUE;
}

static void answer(gpuhal_device *device, gpuhal_value *value)
{
    *value = (gpuhal_value){.key = value->key};
    if (value->key == GPUHAL_VALUE_MEMORY_HELD_BYTES) {
        value->u64 = atomic_load(&device->allocated_bytes);
        snprintf(value->source, sizeof value->source, "library");
    } else {
        value->missing = GPUHAL_MISSING_NOT_SUPPORTED;
        snprintf(value->why, sizeof value->why, "it is a fact, not a value: use gpuhal_device_u64()");
    }
}

/* A value is there or has a reason; a plugin that gives a text for a number has failed. */
static void take(const gpuhal_device *device, const gpuhal_facts *facts, gpuhal_value *value)
{
    const gpuhal_fact *fact = gpuhal_facts_find(facts, value->key);
    *value = (gpuhal_value){.key = value->key, .missing = fact ? fact->missing : GPUHAL_MISSING_NOT_SUPPORTED};
    if (fact && fact->missing) {
        snprintf(value->why, sizeof value->why, "%s", fact->text ? fact->text : "");
    } else if (fact && fact->text) {
        value->missing = GPUHAL_MISSING_FAILED;
        snprintf(value->why, sizeof value->why, "the plugin gave a text for a number");
    } else if (fact) {
        value->u64 = fact->u64;
        snprintf(value->source, sizeof value->source, "%s", device->candidate->name);
    } else {
        snprintf(value->why, sizeof value->why, "the backend does not know this value");
    }
}

uint64_t gpuhal_device_query_ns(const gpuhal_device *device)
{
    uint64_t hang_ns = device->gpu->settings.hang_ns;
    return hang_ns < GPUHAL_QUERY_NS ? hang_ns : GPUHAL_QUERY_NS;
}

static gpuhal_status sample_now(gpuhal_device *device, const gpuhal_backend *backend, uint32_t index,
                                gpuhal_value *values, uint32_t count)
{
    gpuhal_facts facts = {0};
    char problem[GPUHAL_QUERY_PROBLEM_BYTES];
    gpuhal_key *keys = malloc(count * sizeof *keys);
    if (!keys) {
        return gpuhal_error_host_memory();
    }
    uint32_t asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* Written in any case and counted if the plugin must answer: `asked` never passes i. */
        keys[asked] = values[i].key;
        asked += !is_ours(values[i].key);
    }
    gpuhal_status status = gpuhal_query_sample(gpuhal_backend_plugin(backend), gpuhal_backend_instance(backend), index,
                                               keys, asked, gpuhal_device_query_ns(device), &facts, problem);
    free(keys);
    if (status) {
        status = gpuhal_device_failed(device, status, "reading values");
    } else if (facts.failed) {
        status = gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        if (!is_ours(values[i].key)) {
            take(device, &facts, &values[i]);
        }
    }
    gpuhal_facts_finish(&facts);
    return status;
}

static gpuhal_status sample_by_plugin(gpuhal_device *device, gpuhal_value *values, uint32_t count)
{
    gpuhal_backend *backend = NULL;
    const gpuhal_listed_device *listed = NULL;
    gpuhal_status status = gpuhal_device_check(device); /* the driver of a lost device is not called */
    status = status ? status : gpuhal_device_start_backend(device, &backend, &listed);
    if (status) {
        return status;
    }
    if (gpuhal_backend_plugin(backend)->sample) {
        return sample_now(device, backend, listed->index, values, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_ours(values[i].key)) {
            values[i] = (gpuhal_value){.key = values[i].key, .missing = GPUHAL_MISSING_NOT_SUPPORTED};
            snprintf(values[i].why, sizeof values[i].why, "the backend offers no samples");
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_sample(gpuhal_device *device, uint32_t flags, gpuhal_value *values, uint32_t count,
                                   uint64_t *out_time_ns)
{
    if (out_time_ns) {
        *out_time_ns = 0;
    }
    if (!device || !values || count == 0 || flags != 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_device_sample: device or values is NULL, count is 0, or a flag is unknown");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    uint32_t asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_ours(values[i].key)) {
            answer(device, &values[i]);
        } else {
            asked++;
        }
    }
    status = asked ? sample_by_plugin(device, values, count) : GPUHAL_OK;
    if (!status && out_time_ns) {
        *out_time_ns = gpuhal_os_monotonic_ns();
    }
    return status;
}
