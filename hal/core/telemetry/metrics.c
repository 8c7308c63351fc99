/* telemetry/metrics.c: reads amdgpu's gpu_metrics, a table that the kernel copies from the GPU's firmware. It contains
 * the size (2 bytes), the format and content versions (1 byte each), and fields at offsets that depend on both versions
 * (the kernel's kgd_pp_interface.h). If all bits of a field are set, the GPU does not support the field.
 *
 * Only two fields are read: the energy counter, and the throttling bits that have the same meaning on every GPU. Newer
 * tables of accelerators have no such bits. They count how long each limit was active, but not whether it is active
 * now. Older tables have bits whose meaning depends on the chip.
 */
#include "telemetry/files.h"

#include <string.h>

typedef enum { ENERGY, THROTTLING } field;

/* Offsets of the 8-byte fields; 0 if the table does not have the field. The list omits version 1.0, whose counter has
 * another size and unit; version 1.9, which has no fixed offsets; and tables of integrated GPUs that have neither
 * field. */
static const struct layout {
    unsigned char format, content, at[2];
} layouts[] = {
    {1, 1, {24, 0}}, {1, 2, {24, 0}}, {1, 3, {24, 112}}, {1, 4, {24, 0}},  {1, 5, {88, 0}},  {1, 6, {16, 0}},
    {1, 7, {24, 0}}, {1, 8, {24, 0}}, {2, 2, {0, 120}},  {2, 3, {0, 120}}, {2, 4, {0, 120}},
};

static size_t place_of(field which, unsigned char format, unsigned char content)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].format == format && layouts[i].content == content) {
            return layouts[i].at[which];
        }
    }
    return 0;
}

static bool read_field(const gpuhal_files *files, field which, uint64_t *out_number, gpuhal_value *value)
{
    unsigned char table[256]; /* larger tables are truncated */
    const size_t length = gpuhal_files_bytes(files->device, "gpu_metrics", table, sizeof table, value);
    if (length == 0) {
        return false;
    }
    const size_t at = length < 4 ? 0 : place_of(which, table[2], table[3]);
    /* The firmware sets the version and the kernel sets the length, so check that the table contains the whole
     * field. */
    if (at == 0 || length < at + sizeof *out_number) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED,
                          "the system's file gpu_metrics has format %u.%u, whose place for this value is not known",
                          length < 4 ? 0 : table[2], length < 4 ? 0 : table[3]);
        return false;
    }
    memcpy(out_number, table + at, sizeof *out_number);
    if (*out_number == UINT64_MAX) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the GPU does not measure it");
    }
    return *out_number != UINT64_MAX;
}

/* One count is 2 to the -16th joule (15625/1024 microjoules). Most display GPUs leave the counter at zero. To prevent
 * an overflow, divides before multiplying, and then adds the remainder. */
void gpuhal_metrics_energy(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t count = 0;
    if (!read_field(files, ENERGY, &count, value)) {
        return;
    }
    if (count == 0) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the GPU does not measure it");
    } else {
        gpuhal_value_set(value, count / 1024 * 15625 + count % 1024 * 15625 / 1024, "sysfs");
    }
}

/* The bits have three groups: power and current limits (reached under full load even without a fault), temperatures,
 * and external requests. */
void gpuhal_metrics_throttle(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t bits = 0;
    if (read_field(files, THROTTLING, &bits, value)) {
        gpuhal_value_set(value,
                         (bits & UINT64_C(0xffffffff) ? GPUHAL_THROTTLE_POWER_CAP : 0) |
                             (bits & UINT64_C(0xffffff00000000) ? GPUHAL_THROTTLE_THERMAL : 0) |
                             (bits & UINT64_C(0xff00000000000000) ? GPUHAL_THROTTLE_OTHER : 0),
                         "sysfs");
    }
}
