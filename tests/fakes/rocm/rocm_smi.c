/* tests/fakes/rocm/rocm_smi.c: the fake librocm_smi64.so.1. */
#include "rocm_smi_api.h"
#include "smi.h"

#define PROTOTYPE(name, parameters) __attribute__((visibility("default"))) rsmi_status_t name parameters;
GPUHAL_ROCM_SMI_FUNCTIONS(PROTOTYPE, PROTOTYPE)
PROTOTYPE(rsmi_shut_down, (void))
#undef PROTOTYPE

rsmi_status_t rsmi_init(uint64_t flags)
{
    (void)flags;
    rsmi_status_t code = smi_enter(__func__, true, 0);
    if (!code) {
        smi_begin();
    }
    return code;
}

/* Called only by a test that acts as an inference engine. */
rsmi_status_t rsmi_shut_down(void)
{
    rsmi_status_t code = smi_enter(__func__, false, RSMI_STATUS_INIT_ERROR);
    if (!code) {
        smi_end(false);
    }
    return code;
}

/* After the last shutdown, returns 0 devices without an error. */
rsmi_status_t rsmi_num_monitor_devices(uint32_t *count)
{
    smi_device all[SMI_DEVICES];
    rsmi_status_t code = smi_enter(__func__, false, RSMI_STATUS_SUCCESS);
    *count = code || !smi_is_ready() ? 0 : smi_list(all);
    return code;
}

static rsmi_status_t enter(const char *function, uint32_t index, smi_device *out_device)
{
    smi_device all[SMI_DEVICES] = {{0}};
    rsmi_status_t code = smi_enter(function, false, RSMI_STATUS_INIT_ERROR);
    if (code || index >= smi_list(all)) {
        return code ? code : RSMI_STATUS_INVALID_ARGS;
    }
    *out_device = all[index];
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_dev_pci_id_get(uint32_t index, uint64_t *address)
{
    smi_device device;
    rsmi_status_t code = enter(__func__, index, &device);
    if (!code) {
        *address = smi_address(&device);
    }
    return code;
}

rsmi_status_t rsmi_dev_memory_total_get(uint32_t index, rsmi_memory_type_t type, uint64_t *bytes)
{
    smi_device device;
    rsmi_status_t code = enter(__func__, index, &device);
    if (code || type != RSMI_MEM_TYPE_VRAM) {
        return code ? code : RSMI_STATUS_NOT_SUPPORTED;
    }
    *bytes = smi_total(&device);
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_dev_memory_usage_get(uint32_t index, rsmi_memory_type_t type, uint64_t *bytes)
{
    smi_device device;
    rsmi_status_t code = enter(__func__, index, &device);
    if (code || type != RSMI_MEM_TYPE_VRAM) {
        return code ? code : RSMI_STATUS_NOT_SUPPORTED;
    }
    *bytes = smi_used(&device);
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most)
{
    smi_device all[SMI_DEVICES] = {{0}}, device;
    rsmi_status_t code = enter(__func__, from, &device);
    if (code || to >= smi_list(all)) {
        return code ? code : RSMI_STATUS_INVALID_ARGS;
    }
    return smi_bandwidth(&device, &all[to], least, most) ? RSMI_STATUS_SUCCESS : RSMI_STATUS_NOT_SUPPORTED;
}
