/* rocm/telemetry.c: values of devices that need not be open. The system's files come first: they need no library,
 * cannot hang in one, and keep their form. What they do not have is asked of AMD SMI or ROCm SMI (smi_values.c).
 *
 * Reading some of the files wakes a GPU that sleeps, on older kernels, so the kernel is asked first whether it does.
 * pcie_bw takes a second to read and is read only for those who name its values. A part of a divided GPU has no files
 * of its own: what they report is the whole GPU's, and only the library is asked for memory.
 */
#include "telemetry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t gpuhal_rocm_read_all(const gpuhal_rocm_entry *entry, const char *name, char *out_bytes, size_t size)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, GPUHAL_STREAM_DEVICES "/%s/%s", entry->pci, name);
    return gpuhal_rocm_read_file(entry->pci[0] != '\0' ? path : "", out_bytes, size);
}

/* Late kernels return EPERM for a GPU that sleeps; an empty file is one that the GPU has nothing for. */
gpuhal_stream_why gpuhal_rocm_unreadable(const char *name)
{
    gpuhal_stream_why why = {.reason = GPUHAL_MISSING_FAILED};
    const int error = errno;
    if (error == 0 || error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == EINVAL) {
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
    } else if (error == EACCES) {
        why.reason = GPUHAL_MISSING_NO_PERMISSION;
    } else if (error == EPERM) {
        why.reason = GPUHAL_MISSING_ASLEEP;
    }
    snprintf(why.text, sizeof why.text, "the system's file %.40s cannot be read (error %d)", name, error);
    return why;
}

/* ---- files with one number */

static gpuhal_stream_why read_number(const gpuhal_rocm_entry *entry, const char *name, uint64_t *out_value)
{
    char text[32], *end = NULL;
    if (!gpuhal_rocm_read_system(entry, name, text, sizeof text)) {
        return gpuhal_rocm_unreadable(name);
    }
    errno = 0;
    const unsigned long long value = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (!end || *end != '\0' || errno != 0) {
        return gpuhal_rocm_because(GPUHAL_MISSING_FAILED, "the system's file holds no number");
    }
    *out_value = value;
    return (gpuhal_stream_why){0};
}

/* Numbers of hwmon are given out in the order of discovery: the one of this device lies below it. */
static gpuhal_stream_why read_sensor(const gpuhal_rocm_entry *entry, const char *name, uint64_t *out_value)
{
    char directory[GPUHAL_STREAM_PATH], number[16], path[64];
    gpuhal_rocm_path(directory, GPUHAL_STREAM_DEVICES "/%s/hwmon", entry->pci);
    if (entry->pci[0] == '\0' || !gpuhal_rocm_find_name(directory, "hwmon", number, sizeof number)) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "the system has no sensors of this device");
    }
    snprintf(path, sizeof path, "hwmon/%s/%s", number, name);
    return read_number(entry, path, out_value);
}

/* The second is what some GPUs have instead. */
static gpuhal_stream_why read_either(const gpuhal_rocm_entry *entry, const char *one, const char *other,
                                     uint64_t *out_value)
{
    const gpuhal_stream_why why = read_sensor(entry, one, out_value);
    return why.reason == GPUHAL_MISSING_NOT_SUPPORTED ? read_sensor(entry, other, out_value) : why;
}

/* ---- readers: each converts to the unit that the key names */

/* Where HIP has much more than the memory that is set apart, it allocates from the processor's, which the kernel
 * counts as GTT: late kernels do so for processors with graphics. Where it has much less it has a part of the GPU,
 * whose siblings may be hidden.
 */
static gpuhal_stream_why read_memory(const gpuhal_rocm_entry *entry, uint64_t *out_total, uint64_t *out_used)
{
    gpuhal_stream_why why = read_number(entry, "mem_info_vram_total", out_total);
    if (why.reason == 0 && entry->total != 0 && *out_total > entry->total &&
        *out_total - entry->total > entry->total / 8) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "the system's files report more memory than HIP has");
    }
    /* Up to an eighth less counts as the same memory: HIP's total is not exactly the kernel's. A total that HIP did not
     * give is 0 here, and is compared with nothing. */
    if (why.reason == 0 && *out_total >= entry->total - entry->total / 8) {
        return read_number(entry, "mem_info_vram_used", out_used);
    }
    why = why.reason == 0 ? read_number(entry, "mem_info_gtt_total", out_total) : why;
    if (why.reason == 0 && *out_total < entry->total) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "the system's files report less memory than HIP has");
    }
    *out_total = entry->total;
    return why.reason == 0 ? read_number(entry, "mem_info_gtt_used", out_used) : why;
}

static gpuhal_stream_why memory_used(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t total = 0;
    return read_memory(entry, &total, out_value);
}

static gpuhal_stream_why memory_free(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t total = 0, used = 0;
    const gpuhal_stream_why why = read_memory(entry, &total, &used);
    *out_value = used < total ? total - used : 0;
    return why;
}

static gpuhal_stream_why temperature(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_either(entry, "temp1_input", "temp2_input", out_value); /* edge, or junction; millidegrees */
}

static gpuhal_stream_why temperature_memory(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_sensor(entry, "temp3_input", out_value);
}

static gpuhal_stream_why power(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_either(entry, "power1_average", "power1_input", out_value); /* microwatts */
}

static gpuhal_stream_why power_limit(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_sensor(entry, "power1_cap", out_value);
}

static gpuhal_stream_why clock_core(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_sensor(entry, "freq1_input", out_value); /* hertz */
}

static gpuhal_stream_why clock_memory(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_sensor(entry, "freq2_input", out_value);
}

/* Firmware has been seen to give all ones. */
static gpuhal_stream_why read_percent(const gpuhal_rocm_entry *entry, const char *name, uint64_t *out_value)
{
    uint64_t percent = 0;
    const gpuhal_stream_why why = read_number(entry, name, &percent);
    if (why.reason == 0 && percent > 100) {
        return gpuhal_rocm_because(GPUHAL_MISSING_FAILED, "the system's file holds more than 100 percent");
    }
    *out_value = percent * 10;
    return why;
}

static gpuhal_stream_why utilization_core(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_percent(entry, "gpu_busy_percent", out_value);
}

static gpuhal_stream_why utilization_memory(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return read_percent(entry, "mem_busy_percent", out_value);
}

static gpuhal_stream_why fan(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t duty = 0;
    const gpuhal_stream_why why = read_sensor(entry, "pwm1", &duty); /* 0 to 255 */
    *out_value = (duty < 255 ? duty : 255) * 1000 / 255;
    return why;
}

/* "received sent largest": messages of the last second, and the bytes that one may carry: more than that it cannot
 * have been. */
static gpuhal_stream_why pcie(const gpuhal_rocm_entry *entry, bool sent, uint64_t *out_value)
{
    char text[96];
    uint64_t numbers[3] = {0};
    if (!gpuhal_rocm_read_system(entry, "pcie_bw", text, sizeof text)) {
        return gpuhal_rocm_unreadable("pcie_bw");
    }
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1], &numbers[2]) != 3 ||
        numbers[2] > 65536 || numbers[sent ? 1 : 0] > UINT32_MAX) {
        return gpuhal_rocm_because(GPUHAL_MISSING_FAILED, "the system's file pcie_bw holds no usable numbers");
    }
    *out_value = numbers[sent ? 1 : 0] * numbers[2];
    return (gpuhal_stream_why){0};
}

static gpuhal_stream_why pcie_receive(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return pcie(entry, false, out_value);
}

static gpuhal_stream_why pcie_send(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return pcie(entry, true, out_value);
}

/* Two lines, "ue: 0" and "ce: 0", of errors since the driver was loaded: the kernel keeps no longer count. */
static gpuhal_stream_why ecc(const gpuhal_rocm_entry *entry, const char *which, uint64_t *out_value)
{
    char text[64];
    gpuhal_stream_why why =
        gpuhal_rocm_read_all(entry, "ras/umc_err_count", text, sizeof text) > 0
            ? gpuhal_rocm_because(GPUHAL_MISSING_FAILED, "the system's file umc_err_count holds no usable numbers")
            : gpuhal_rocm_unreadable("ras/umc_err_count");
    const char *at = strstr(text, which);
    if (at && sscanf(at + strlen(which), " %" SCNu64, out_value) == 1) {
        why.reason = 0;
    }
    return why;
}

static gpuhal_stream_why ecc_corrected(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return ecc(entry, "ce:", out_value);
}

static gpuhal_stream_why ecc_uncorrected(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    return ecc(entry, "ue:", out_value);
}

enum { QUICK = 0, SLOW = 1, OF_PART = 2 };

static const struct {
    gpuhal_key key;
    gpuhal_stream_why (*read)(const gpuhal_rocm_entry *entry, uint64_t *out_value);
    int how;
} values[GPUHAL_ROCM_VALUES] = {
    {GPUHAL_VALUE_MEMORY_FREE_BYTES, memory_free, OF_PART},
    {GPUHAL_VALUE_MEMORY_USED_BYTES, memory_used, OF_PART},
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, temperature, QUICK},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, temperature_memory, QUICK},
    {GPUHAL_VALUE_POWER_MICROWATTS, power, QUICK},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, power_limit, QUICK},
    {GPUHAL_VALUE_ENERGY_MICROJOULES, gpuhal_rocm_metrics_energy, QUICK},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, clock_core, QUICK},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, clock_memory, QUICK},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, utilization_core, QUICK},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, utilization_memory, QUICK},
    {GPUHAL_VALUE_FAN_PERMILLE, fan, QUICK},
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, pcie_receive, SLOW},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, pcie_send, SLOW},
    {GPUHAL_VALUE_THROTTLE_REASONS, gpuhal_rocm_metrics_throttle, QUICK},
    {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, ecc_corrected, QUICK},
    {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, ecc_uncorrected, QUICK},
};

gpuhal_key gpuhal_rocm_value_key(size_t number)
{
    return values[number].key;
}

/* ---- one sample */

static gpuhal_stream_why read_file(const gpuhal_rocm_entry *entry, size_t i, bool named, uint64_t *out_value)
{
    if (values[i].how == SLOW && !named) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_READ,
                                   "reading it takes a second: it has to be asked for by name");
    }
    if (values[i].how == OF_PART && entry->partition >= 0) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "the system's files report it of the whole GPU only");
    }
    return values[i].read(entry, out_value);
}

gpuhal_status gpuhal_rocm_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    gpuhal_rocm_sample_request own = {.entry = gpuhal_rocm_find(index)};
    if (!own.entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_stream_why whys[GPUHAL_ROCM_VALUES];
    const bool asleep = !(flags & GPUHAL_SAMPLE_MAY_WAKE) && gpuhal_rocm_is_asleep(own.entry);
    bool any_left = false;
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        const bool wanted = gpuhal_rocm_wants(keys, count, values[i].key);
        whys[i] = !wanted  ? (gpuhal_stream_why){0}
                  : asleep ? gpuhal_rocm_because(GPUHAL_MISSING_ASLEEP, "the GPU sleeps, and reading would wake it")
                           : read_file(own.entry, i, count > 0, &own.numbers[i]);
        own.wanted[i] = wanted && whys[i].reason != 0 && !asleep && gpuhal_rocm_smi_has(values[i].key) &&
                        !own.entry->is_counted; /* the library may know it by another number */
        any_left = any_left || own.wanted[i];
    }
    if (any_left) {
        gpuhal_rocm_ask_smi(&own, whys);
    }
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        if (gpuhal_rocm_wants(keys, count, values[i].key) && whys[i].reason == 0) {
            host->u64(host, sink, values[i].key, own.numbers[i]);
        } else if (whys[i].reason != 0) {
            host->missing(host, sink, values[i].key, whys[i].reason, whys[i].text);
        }
    }
    return GPUHAL_OK;
}
