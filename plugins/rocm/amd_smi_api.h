/* rocm/amd_smi_api.h: the part of AMD SMI (libamd_smi.so) that this plugin uses, declared from AMD's documentation.
 * hip_api.h describes the lists and their users. GPUHAL_AMD_SMI_LISTS_ONLY omits the types. Every function returns
 * amdsmi_status_t.
 *
 * Only functions that return numbers are used, because the layout of this library's structures differs between
 * releases.
 */
#ifndef GPUHAL_AMD_SMI_API_H
#define GPUHAL_AMD_SMI_API_H

#include <stddef.h>
#include <stdint.h>

#define GPUHAL_AMD_SMI_FUNCTIONS(REQUIRED, OPTIONAL) \
    REQUIRED(amdsmi_init, (uint64_t flags)) \
    REQUIRED(amdsmi_get_socket_handles, (uint32_t *count, amdsmi_socket_handle *sockets)) \
    REQUIRED(amdsmi_get_processor_handles, (amdsmi_socket_handle socket, uint32_t *count, \
                                            amdsmi_processor_handle *processors)) \
    REQUIRED(amdsmi_get_gpu_bdf_id, (amdsmi_processor_handle processor, uint64_t *address)) \
    REQUIRED(amdsmi_get_gpu_memory_total, (amdsmi_processor_handle processor, amdsmi_memory_type_t type, \
                                           uint64_t *bytes)) \
    REQUIRED(amdsmi_get_gpu_memory_usage, (amdsmi_processor_handle processor, amdsmi_memory_type_t type, \
                                           uint64_t *bytes)) \
    OPTIONAL(amdsmi_get_temp_metric, (amdsmi_processor_handle processor, amdsmi_temperature_type_t sensor, \
                                      amdsmi_temperature_metric_t metric, int64_t *celsius)) \
    OPTIONAL(amdsmi_get_energy_count, (amdsmi_processor_handle processor, uint64_t *count, float *microjoules_each, \
                                       uint64_t *nanoseconds)) \
    OPTIONAL(amdsmi_get_minmax_bandwidth_between_processors, (amdsmi_processor_handle from, \
                                                              amdsmi_processor_handle to, \
                                                              uint64_t *least, uint64_t *most))

#define GPUHAL_AMD_SMI_RESULTS(VALUE) \
    VALUE(AMDSMI_STATUS_SUCCESS, 0) \
    VALUE(AMDSMI_STATUS_INVAL, 1) \
    VALUE(AMDSMI_STATUS_NOT_SUPPORTED, 2) \
    VALUE(AMDSMI_STATUS_NOT_YET_IMPLEMENTED, 3) \
    VALUE(AMDSMI_STATUS_FAIL_LOAD_MODULE, 4) \
    VALUE(AMDSMI_STATUS_FAIL_LOAD_SYMBOL, 5) \
    VALUE(AMDSMI_STATUS_DRM_ERROR, 6) \
    VALUE(AMDSMI_STATUS_API_FAILED, 7) \
    VALUE(AMDSMI_STATUS_TIMEOUT, 8) \
    VALUE(AMDSMI_STATUS_RETRY, 9) \
    VALUE(AMDSMI_STATUS_NO_PERM, 10) \
    VALUE(AMDSMI_STATUS_INTERRUPT, 11) \
    VALUE(AMDSMI_STATUS_IO, 12) \
    VALUE(AMDSMI_STATUS_ADDRESS_FAULT, 13) \
    VALUE(AMDSMI_STATUS_FILE_ERROR, 14) \
    VALUE(AMDSMI_STATUS_OUT_OF_RESOURCES, 15) \
    VALUE(AMDSMI_STATUS_INTERNAL_EXCEPTION, 16) \
    VALUE(AMDSMI_STATUS_INPUT_OUT_OF_BOUNDS, 17) \
    VALUE(AMDSMI_STATUS_INIT_ERROR, 18) \
    VALUE(AMDSMI_STATUS_REFCOUNT_OVERFLOW, 19) \
    VALUE(AMDSMI_STATUS_BUSY, 30) \
    VALUE(AMDSMI_STATUS_NOT_FOUND, 31) \
    VALUE(AMDSMI_STATUS_NOT_INIT, 32) \
    VALUE(AMDSMI_STATUS_NO_SLOT, 33) \
    VALUE(AMDSMI_STATUS_DRIVER_NOT_LOADED, 34) \
    VALUE(AMDSMI_STATUS_NO_DATA, 40) \
    VALUE(AMDSMI_STATUS_INSUFFICIENT_SIZE, 41) \
    VALUE(AMDSMI_STATUS_UNEXPECTED_SIZE, 42) \
    VALUE(AMDSMI_STATUS_UNEXPECTED_DATA, 43)

#define GPUHAL_AMD_SMI_VALUES(VALUE) \
    VALUE(AMDSMI_INIT_AMD_GPUS, 2) \
    VALUE(AMDSMI_MEM_TYPE_VRAM, 0) \
    VALUE(AMDSMI_TEMP_CURRENT, 0) \
    VALUE(AMDSMI_TEMPERATURE_TYPE_EDGE, 0) \
    VALUE(AMDSMI_TEMPERATURE_TYPE_HOTSPOT, 1) \
    VALUE(AMDSMI_TEMPERATURE_TYPE_VRAM, 2)

#define GPUHAL_AMD_SMI_TYPES(TYPE) \
    TYPE(amdsmi_status_t) \
    TYPE(amdsmi_memory_type_t) \
    TYPE(amdsmi_temperature_type_t) \
    TYPE(amdsmi_temperature_metric_t) \
    TYPE(amdsmi_socket_handle) \
    TYPE(amdsmi_processor_handle)

#ifndef GPUHAL_AMD_SMI_LISTS_ONLY

#define GPUHAL_AMD_SMI_ENUMERATOR(name, value) name = value,
enum { GPUHAL_AMD_SMI_RESULTS(GPUHAL_AMD_SMI_ENUMERATOR) GPUHAL_AMD_SMI_VALUES(GPUHAL_AMD_SMI_ENUMERATOR) };
#undef GPUHAL_AMD_SMI_ENUMERATOR

/* The vendor's enumerations, as in hip_api.h. */
typedef unsigned int amdsmi_status_t;
typedef unsigned int amdsmi_memory_type_t;
typedef unsigned int amdsmi_temperature_type_t;
typedef unsigned int amdsmi_temperature_metric_t;

typedef void *amdsmi_socket_handle;
typedef void *amdsmi_processor_handle;

#endif
#endif
