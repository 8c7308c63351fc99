/* rocm/metrics.c: gpu_metrics, a table that the kernel copies from the GPU's firmware: size (2 bytes), format (1), content (1),
 * and then fields that each format has in other places. Known here is format 1.3, of GPUs with memory of their own; of the others
 * nothing is told. A field of ones alone is one that the GPU does not have.
 */
#include "telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TABLE_BYTES   120u /* of format 1.3 */
#define ENERGY_AT     24u  /* 8 bytes, in units of 15.259 microjoules */
#define THROTTLING_AT 112u /* 8 bytes of bits that mean the same on every GPU */

size_t gpuhal_rocm_read_all(const gpuhal_rocm_entry *entry, const char *name, char *out_bytes, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", entry->pci, name);
    const int file = entry->pci[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t length = file >= 0 ? read(file, out_bytes, size - 1) : -1;
    const int error = entry->pci[0] != '\0' ? errno : ENOENT;
    if (file >= 0) {
        close(file);
    }
    out_bytes[length > 0 ? length : 0] = '\0';
    errno = length < 0 ? error : 0;
    return length > 0 ? (size_t)length : 0;
}

static gpuhal_rocm_why field(const gpuhal_rocm_entry *entry, size_t at, uint64_t *out_value)
{
    char bytes[512];
    const size_t length = gpuhal_rocm_read_all(entry, "gpu_metrics", bytes, sizeof bytes);
    gpuhal_rocm_why why = {.reason = GPUHAL_MISSING_NOT_SUPPORTED};
    if (length < 4) {
        why.reason = errno == EPERM ? GPUHAL_MISSING_ASLEEP : errno == EACCES ? GPUHAL_MISSING_NO_PERMISSION : why.reason;
        snprintf(why.text, sizeof why.text, "the system's file gpu_metrics cannot be read (error %d)", errno);
    } else if (bytes[2] != 1 || bytes[3] != 3 || length < TABLE_BYTES) {
        snprintf(why.text, sizeof why.text, "the system's file gpu_metrics is of format %d.%d, which is not known here", bytes[2],
                 bytes[3]);
    } else {
        memcpy(out_value, bytes + at, sizeof *out_value);
        why.reason = *out_value == UINT64_MAX ? why.reason : 0;
        snprintf(why.text, sizeof why.text, "the GPU does not measure it");
    }
    return why;
}

gpuhal_rocm_why gpuhal_rocm_metrics_energy(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t count = 0;
    gpuhal_rocm_why why = field(entry, ENERGY_AT, &count);
    if (why.reason == 0 && count == 0) {
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED; /* most GPUs for displays do not count */
        snprintf(why.text, sizeof why.text, "the GPU does not measure it");
    }
    *out_value = (uint64_t)((double)count * 15.259);
    return why;
}

/* Groups of the kernel's bits: power limits, limits of current, temperatures, and requests of others. */
gpuhal_rocm_why gpuhal_rocm_metrics_throttle(const gpuhal_rocm_entry *entry, uint64_t *out_value)
{
    uint64_t bits = 0;
    const gpuhal_rocm_why why = field(entry, THROTTLING_AT, &bits);
    *out_value = 0;
    *out_value |= bits & UINT64_C(0xffff) ? GPUHAL_THROTTLE_POWER_CAP : 0;
    *out_value |= bits & UINT64_C(0xffff0000) ? GPUHAL_THROTTLE_HARDWARE : 0;
    *out_value |= bits & UINT64_C(0xffffff00000000) ? GPUHAL_THROTTLE_THERMAL : 0;
    *out_value |= bits & UINT64_C(0xff00000000000000) ? GPUHAL_THROTTLE_OTHER : 0;
    return why;
}
