/* tests/fakes/rocm/amd_smi.c: the fake libamd_smi.so. A socket is a whole device, a processor is a partition of a
 * device. Temperatures are in degrees Celsius, unlike ROCm SMI's. */
#include "amd_smi_api.h"
#include "smi.h"

#include <stddef.h>

#define PROTOTYPE(name, parameters) __attribute__((visibility("default"))) amdsmi_status_t name parameters;
GPUHAL_AMD_SMI_FUNCTIONS(PROTOTYPE, PROTOTYPE)
PROTOTYPE(amdsmi_shut_down, (void))
#undef PROTOTYPE

static smi_device devices[SMI_DEVICES]; /* the handles point here; each amdsmi_init() for GPUs writes the same values */
static unsigned device_count;

/* Lists devices only if the caller has set the flag for GPUs. */
amdsmi_status_t amdsmi_init(uint64_t flags)
{
    amdsmi_status_t code = smi_enter(__func__, true, 0);
    if (code) {
        return code;
    }
    device_count = flags & AMDSMI_INIT_AMD_GPUS ? smi_list(devices) : 0;
    smi_begin();
    return AMDSMI_STATUS_SUCCESS;
}

/* Called only by a test that acts as an inference engine. As in ROCm 6, the first shutdown ends the library for all
 * callers. */
amdsmi_status_t amdsmi_shut_down(void)
{
    amdsmi_status_t code = smi_enter(__func__, true, 0);
    if (!code) {
        smi_end(true);
    }
    return code;
}

static amdsmi_status_t hand_out(unsigned count, void *const *handles, uint32_t *out_count, void **out_handles)
{
    const unsigned room = *out_count;
    *out_count = count;
    for (unsigned i = 0; out_handles && i < count && i < room; i++) {
        out_handles[i] = handles[i];
    }
    return out_handles && room < count ? AMDSMI_STATUS_INSUFFICIENT_SIZE : AMDSMI_STATUS_SUCCESS;
}

amdsmi_status_t amdsmi_get_socket_handles(uint32_t *count, amdsmi_socket_handle *sockets)
{
    void *all[SMI_DEVICES];
    unsigned found = 0;
    amdsmi_status_t code = smi_enter(__func__, false, AMDSMI_STATUS_NOT_INIT);
    for (unsigned i = 0; i < device_count; i++) {
        if (devices[i].partition == 0) {
            all[found++] = &devices[i];
        }
    }
    return code ? code : hand_out(found, all, count, sockets);
}

static const smi_device *device_of(const void *handle)
{
    const smi_device *device = handle;
    return device >= devices && device < devices + device_count ? device : NULL;
}

amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket, uint32_t *count,
                                             amdsmi_processor_handle *processors)
{
    void *all[SMI_DEVICES];
    unsigned found = 0;
    amdsmi_status_t code = smi_enter(__func__, false, AMDSMI_STATUS_NOT_INIT);
    const smi_device *whole = device_of(socket);
    if (code || !whole) {
        return code ? code : AMDSMI_STATUS_INVAL;
    }
    for (unsigned i = 0; i < device_count; i++) {
        if (devices[i].physical == whole->physical) {
            all[found++] = &devices[i];
        }
    }
    return hand_out(found, all, count, processors);
}

static amdsmi_status_t enter(const char *function, amdsmi_processor_handle processor)
{
    amdsmi_status_t code = smi_enter(function, false, AMDSMI_STATUS_NOT_INIT);
    return code ? code : device_of(processor) ? AMDSMI_STATUS_SUCCESS : AMDSMI_STATUS_INVAL;
}

amdsmi_status_t amdsmi_get_gpu_bdf_id(amdsmi_processor_handle processor, uint64_t *address)
{
    amdsmi_status_t code = enter(__func__, processor);
    if (!code) {
        *address = smi_address(processor);
    }
    return code;
}

amdsmi_status_t amdsmi_get_gpu_memory_total(amdsmi_processor_handle processor, amdsmi_memory_type_t type,
                                            uint64_t *bytes)
{
    amdsmi_status_t code = enter(__func__, processor);
    if (code || type != AMDSMI_MEM_TYPE_VRAM) {
        return code ? code : AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *bytes = smi_total(processor);
    return AMDSMI_STATUS_SUCCESS;
}

amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle processor, amdsmi_memory_type_t type,
                                            uint64_t *bytes)
{
    amdsmi_status_t code = enter(__func__, processor);
    if (code || type != AMDSMI_MEM_TYPE_VRAM) {
        return code ? code : AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *bytes = smi_used(processor);
    return AMDSMI_STATUS_SUCCESS;
}

amdsmi_status_t amdsmi_get_temp_metric(amdsmi_processor_handle processor, amdsmi_temperature_type_t sensor,
                                       amdsmi_temperature_metric_t metric, int64_t *celsius)
{
    amdsmi_status_t code = enter(__func__, processor);
    bool known = sensor == AMDSMI_TEMPERATURE_TYPE_HOTSPOT || sensor == AMDSMI_TEMPERATURE_TYPE_VRAM;
    if (code || metric != AMDSMI_TEMP_CURRENT || !known) {
        return code ? code : AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *celsius = sensor == AMDSMI_TEMPERATURE_TYPE_VRAM ? SMI_MEMORY : SMI_JUNCTION;
    return AMDSMI_STATUS_SUCCESS;
}

amdsmi_status_t amdsmi_get_energy_count(amdsmi_processor_handle processor, uint64_t *count, float *microjoules_each,
                                        uint64_t *nanoseconds)
{
    amdsmi_status_t code = enter(__func__, processor);
    if (!code) {
        *count = smi_energy(nanoseconds);
        *microjoules_each = 15.3f;
    }
    return code;
}

amdsmi_status_t amdsmi_get_minmax_bandwidth_between_processors(amdsmi_processor_handle from, amdsmi_processor_handle to,
                                                               uint64_t *least, uint64_t *most)
{
    amdsmi_status_t code = enter(__func__, from);
    if (code || !device_of(to)) {
        return code ? code : AMDSMI_STATUS_INVAL;
    }
    return smi_bandwidth(from, to, least, most) ? AMDSMI_STATUS_SUCCESS : AMDSMI_STATUS_NOT_SUPPORTED;
}
