/* rocm/metrics.c: gpu_metrics, a table that the kernel copies from the GPU's firmware: size (2 bytes), format (1),
 * content (1), and then fields that each content has in other places, as the kernel's kgd_pp_interface.h says. A field
 * of ones alone is one that the GPU does not have.
 *
 * Listed are the counter of energy, and the bits for throttling that mean the same on every GPU. Later tables of
 * accelerators count how long each limit held instead, which one reading does not show; earlier ones have bits whose
 * meaning differs from chip to chip.
 */
#include "telemetry.h"

#include <stdio.h>
#include <string.h>

typedef enum { ENERGY, THROTTLING } field;

/* Where the fields begin, of 8 bytes each; 0: there is none. Not here: 1.0, whose counter is of another size and
 * unit, 1.9, where nothing has a fixed place, and those of processors with graphics that have neither field. */
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

static gpuhal_stream_why read_field(const gpuhal_rocm_entry *entry, field which, uint64_t *out_value)
{
    unsigned char table[256]; /* all that is read */
    const size_t length = gpuhal_rocm_read_all(entry, "gpu_metrics", (char *)table, sizeof table);
    gpuhal_stream_why why = {.reason = GPUHAL_MISSING_NOT_SUPPORTED};
    if (length < 4) {
        return gpuhal_rocm_unreadable("gpu_metrics");
    }
    const size_t at = place_of(which, table[2], table[3]);
    /* The format is the firmware's word, the length the kernel's: the field is read only where it was delivered. */
    if (at == 0 || length < at + sizeof *out_value) {
        snprintf(why.text, sizeof why.text, "the system's file gpu_metrics is of format %u.%u, where it is not known",
                 table[2], table[3]);
        return why;
    }
    memcpy(out_value, table + at, sizeof *out_value);
    why.reason = *out_value == UINT64_MAX ? why.reason : 0;
    snprintf(why.text, sizeof why.text, "the GPU does not measure it");
    return why;
}

/* A count is 2 to the -16th of a joule, 15625/1024 of a microjoule. Most GPUs for displays do not count, and leave
 * zeros. */
gpuhal_stream_why gpuhal_rocm_metrics_energy(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t count = 0;
    gpuhal_stream_why why = read_field(entry, ENERGY, &count);
    if (why.reason == 0 && count == 0) {
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
    }
    /* Divided before it is multiplied, so that a counter of any age does not overflow; the remainder is not lost. */
    *out_value = count / 1024 * 15625 + count % 1024 * 15625 / 1024;
    return why;
}

/* Groups of the kernel's bits: power limits, limits of current, temperatures, and requests of others. */
gpuhal_stream_why gpuhal_rocm_metrics_throttle(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t bits = 0;
    const gpuhal_stream_why why = read_field(entry, THROTTLING, &bits);
    *out_value = 0;
    *out_value |= bits & UINT64_C(0xffff) ? GPUHAL_THROTTLE_POWER_CAP : 0;
    *out_value |= bits & UINT64_C(0xffff0000) ? GPUHAL_THROTTLE_HARDWARE : 0;
    *out_value |= bits & UINT64_C(0xffffff00000000) ? GPUHAL_THROTTLE_THERMAL : 0;
    *out_value |= bits & UINT64_C(0xff00000000000000) ? GPUHAL_THROTTLE_OTHER : 0;
    return why;
}
