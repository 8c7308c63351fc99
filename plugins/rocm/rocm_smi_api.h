/* rocm/rocm_smi_api.h: the part of ROCm SMI (librocm_smi64.so) that this plugin uses, declared from AMD's
 * documentation. hip_api.h describes the lists and their users. GPUHAL_ROCM_SMI_LISTS_ONLY omits the types. Every
 * function returns rsmi_status_t.
 *
 * Only functions that return numbers are used, because the layout of this library's structures (frequencies, metrics,
 * error counters) differs between releases.
 */
#ifndef GPUHAL_ROCM_SMI_API_H
#define GPUHAL_ROCM_SMI_API_H

#include <stddef.h>
#include <stdint.h>

#define GPUHAL_ROCM_SMI_FUNCTIONS(REQUIRED, OPTIONAL) \
    REQUIRED(rsmi_init, (uint64_t flags)) \
    REQUIRED(rsmi_num_monitor_devices, (uint32_t *count)) \
    REQUIRED(rsmi_dev_pci_id_get, (uint32_t device, uint64_t *address)) \
    REQUIRED(rsmi_dev_memory_total_get, (uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)) \
    REQUIRED(rsmi_dev_memory_usage_get, (uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)) \
    OPTIONAL(rsmi_minmax_bandwidth_get, (uint32_t from, uint32_t to, uint64_t *least, uint64_t *most))

#define GPUHAL_ROCM_SMI_RESULTS(VALUE) \
    VALUE(RSMI_STATUS_SUCCESS, 0) \
    VALUE(RSMI_STATUS_INVALID_ARGS, 1) \
    VALUE(RSMI_STATUS_NOT_SUPPORTED, 2) \
    VALUE(RSMI_STATUS_FILE_ERROR, 3) \
    VALUE(RSMI_STATUS_PERMISSION, 4) \
    VALUE(RSMI_STATUS_OUT_OF_RESOURCES, 5) \
    VALUE(RSMI_STATUS_INTERNAL_EXCEPTION, 6) \
    VALUE(RSMI_STATUS_INPUT_OUT_OF_BOUNDS, 7) \
    VALUE(RSMI_STATUS_INIT_ERROR, 8) \
    VALUE(RSMI_STATUS_NOT_YET_IMPLEMENTED, 9) \
    VALUE(RSMI_STATUS_NOT_FOUND, 10) \
    VALUE(RSMI_STATUS_INSUFFICIENT_SIZE, 11) \
    VALUE(RSMI_STATUS_INTERRUPT, 12) \
    VALUE(RSMI_STATUS_UNEXPECTED_SIZE, 13) \
    VALUE(RSMI_STATUS_NO_DATA, 14) \
    VALUE(RSMI_STATUS_UNEXPECTED_DATA, 15) \
    VALUE(RSMI_STATUS_BUSY, 16) \
    VALUE(RSMI_STATUS_REFCOUNT_OVERFLOW, 17)

#define GPUHAL_ROCM_SMI_VALUES(VALUE) \
    VALUE(RSMI_MEM_TYPE_VRAM, 0)

/* Uses a lock per process and GPU instead of a lock that all processes share. ROCm before 5.7 ignores this flag. The
 * flag is a macro, because C enumerators cannot represent its value. */
#define GPUHAL_ROCM_SMI_OWN_LOCK UINT64_C(0x400000000000000) /* RSMI_INIT_FLAG_THRAD_ONLY_MUTEX */

#define GPUHAL_ROCM_SMI_TYPES(TYPE) \
    TYPE(rsmi_status_t) \
    TYPE(rsmi_memory_type_t)

#ifndef GPUHAL_ROCM_SMI_LISTS_ONLY

#define GPUHAL_ROCM_SMI_ENUMERATOR(name, value) name = value,
enum { GPUHAL_ROCM_SMI_RESULTS(GPUHAL_ROCM_SMI_ENUMERATOR) GPUHAL_ROCM_SMI_VALUES(GPUHAL_ROCM_SMI_ENUMERATOR) };
#undef GPUHAL_ROCM_SMI_ENUMERATOR

/* The vendor's enumerations, as in hip_api.h. */
typedef unsigned int rsmi_status_t;
typedef unsigned int rsmi_memory_type_t;

#endif
#endif
