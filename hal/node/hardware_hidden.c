/* node/hardware_hidden.c: which APIs can list hardware, and which hardware the environment variables of drivers and of
 * this library hide. If a job, container or lease set them, the hidden hardware was not given to this process. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <string.h>

/* Driver variables that hide devices. A LIST hides only devices that it does not name. The numbers in a MASK identify
 * devices or partitions, so there may be more numbers than devices. */
typedef enum { FILTER, MASK, LIST } variable_kind;
static const struct {
    const char *backend, *name;
    variable_kind kind;
} variables[] = {
    {"cuda", "CUDA_VISIBLE_DEVICES", LIST},
    {"rocm", "ROCR_VISIBLE_DEVICES", LIST},
    {"rocm", "HIP_VISIBLE_DEVICES", LIST},
    {"rocm", "CUDA_VISIBLE_DEVICES", LIST},
    {"rocm", "GPU_DEVICE_ORDINAL", LIST},
    {"vulkan", "VK_DRIVER_FILES", FILTER},
    {"vulkan", "VK_ICD_FILENAMES", FILTER},
    {"vulkan", "VK_LOADER_DRIVERS_SELECT", FILTER},
    {"vulkan", "VK_LOADER_DRIVERS_DISABLE", FILTER},
    {"opencl", "OCL_ICD_VENDORS", FILTER},
    {"opencl", "OCL_ICD_FILENAMES", FILTER},
    {"opencl", "OPENCL_VENDOR_PATH", FILTER},
    {"opencl", "ZE_AFFINITY_MASK", MASK}, /* only Intel's driver */
};

const char *gpuhal_hardware_api_name(const char *backend)
{
    return strcmp(backend, "cuda") == 0     ? "CUDA"
           : strcmp(backend, "rocm") == 0   ? "ROCm"
           : strcmp(backend, "vulkan") == 0 ? "Vulkan"
                                            : "OpenCL";
}

void gpuhal_hardware_list_apis(const gpuhal_hardware *one, const char *out_apis[GPUHAL_HARDWARE_APIS + 1])
{
    const char *const driver = one->kernel_driver;
    const bool is_cuda =
        strcmp(driver, "nvidia") == 0 || strcmp(driver, "nvgpu") == 0 || strcmp(driver, "dxgkrnl") == 0;
    const bool is_rocm = strcmp(driver, "amdgpu") == 0 && strcmp(one->vendor_node, "/dev/kfd") == 0;
    size_t count = 0;
    if (is_cuda || is_rocm) {
        out_apis[count++] = is_cuda ? "cuda" : "rocm";
    }
    out_apis[count++] = "vulkan";
    out_apis[count++] = "opencl";
    out_apis[count] = NULL;
}

const gpuhal_candidate *gpuhal_hardware_candidate_of(const gpuhal_candidates *candidates, const char *backend)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        if (candidate->name && strcmp(candidate->name, backend) == 0 && candidate->state != GPUHAL_PLUGIN_DUPLICATE) {
            return candidate;
        }
    }
    return NULL;
}

/* OpenCL also lists CPUs and other vendors' GPUs; these do not count. */
static uint32_t count_listed(const gpuhal_candidate *candidate, const gpuhal_hardware *one)
{
    const bool is_of_all = strcmp(candidate->name, "opencl") == 0;
    uint32_t count = 0;
    for (size_t i = 0; candidate->state == GPUHAL_PLUGIN_OK && i < candidate->devices.count; i++) {
        const gpuhal_listed_device *listed = &candidate->devices.list[i];
        const bool is_of_it = gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_VENDOR_ID, 0) == one->info.vendor_id &&
                              gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_TYPE, 0) != GPUHAL_DEVICE_CPU;
        count += gpuhal_listed_is_device(listed) && (is_of_it || !is_of_all);
    }
    return count;
}

/* Returns NULL if the variable does not affect whether this backend lists this hardware. */
static const char *value_of(size_t variable, const gpuhal_candidate *candidate, const gpuhal_hardware *one)
{
    const bool is_of_it = strcmp(variables[variable].backend, candidate->name) == 0 &&
                          (variables[variable].kind != MASK || one->info.vendor_id == GPUHAL_VENDOR_INTEL);
    const char *value = is_of_it ? gpuhal_os_environment(variables[variable].name) : NULL;
    return value && (*value || variables[variable].kind == LIST) ? value : NULL;
}

/* Returns whether the batch system set the variable, not the user. This is assumed if the variable names at least as
 * many devices as the job has, or if the job's size is unknown. */
static bool is_of_batch(gpuhal_hardware_survey *survey, size_t variable, const char *value)
{
    const gpuhal_hardware_batch *batch = gpuhal_hardware_machine_of(survey)->batch;
    const uint32_t given = batch && batch->counts ? gpuhal_hardware_count_of_job() : UINT32_MAX;
    return batch && variables[variable].kind != FILTER &&
           (given == UINT32_MAX || gpuhal_hardware_count_named(value) >= given);
}

/* If a list names more devices than the driver lists, a named device is missing, and the variable is not the cause. */
bool gpuhal_hardware_find_variable(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                   const gpuhal_candidate *candidate, gpuhal_hardware_finding *out)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = value_of(i, candidate, one);
        if (!value) {
            continue;
        }
        const uint32_t named = variables[i].kind == LIST ? gpuhal_hardware_count_named(value) : 0;
        const uint32_t listed = count_listed(candidate, one);
        const bool is_short = named > listed;
        if (is_short && gpuhal_hardware_machine_of(survey)->batch) {
            continue; /* the batch system set it, and one of the job's devices is missing */
        }
        gpuhal_hardware_found(out, is_short ? GPUHAL_HARDWARE_DRIVER_ERROR : GPUHAL_HARDWARE_HIDDEN,
                              is_short ? GPUHAL_HARDWARE_PROBLEM : GPUHAL_HARDWARE_NOTE,
                              is_short ? "%s=%.60s%s names more devices than %s lists" : "%s=%.60s%s hides it from %s",
                              variables[i].name, *value ? value : "\"\"", strlen(value) > 60 ? "…" : "",
                              gpuhal_hardware_api_name(candidate->name));
        if (is_of_batch(survey, i, value)) {
            gpuhal_hardware_give(survey, one, out->fix, sizeof out->fix);
        } else {
            gpuhal_hardware_text(out->fix, sizeof out->fix, "unset %s", variables[i].name);
        }
        return true;
    }
    return false;
}

static void found_others(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *name,
                         const char *value, gpuhal_hardware_finding *out)
{
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NOT_GIVEN, GPUHAL_HARDWARE_FINE, "this %s was not given it: %s=%.60s%s",
                          gpuhal_hardware_place_name(gpuhal_hardware_machine_of(survey)), name, value,
                          strlen(value) > 60 ? "…" : "");
    gpuhal_hardware_give(survey, one, out->fix, sizeof out->fix);
}

/* Returns whether all GPUs requested from the container runtime are listed and do not include this GPU. */
static bool find_others_of_container(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                     const gpuhal_candidate *candidate, gpuhal_hardware_finding *out)
{
    gpuhal_hardware_order order;
    const bool found = gpuhal_hardware_find_order(survey, one, &order) && !order.names_it &&
                       count_listed(candidate, one) >= order.count;
    if (found) {
        found_others(survey, one, order.name, order.value, out);
    }
    return found;
}

bool gpuhal_hardware_find_others(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out)
{
    const char *apis[GPUHAL_HARDWARE_APIS + 1];
    gpuhal_hardware_list_apis(one, apis);
    for (size_t a = 0; apis[a]; a++) {
        const gpuhal_candidate *candidate = gpuhal_hardware_candidate_of(&survey->devices->candidates, apis[a]);
        if (candidate && a == 0 && find_others_of_container(survey, one, candidate, out)) {
            return true;
        }
        for (size_t i = 0; candidate && i < sizeof variables / sizeof *variables; i++) {
            const char *value = value_of(i, candidate, one);
            if (value && is_of_batch(survey, i, value) &&
                gpuhal_hardware_count_named(value) <= count_listed(candidate, one)) {
                found_others(survey, one, variables[i].name, value, out);
                return true;
            }
        }
    }
    return false;
}

void gpuhal_hardware_find_excluded(const gpuhal_settings *settings, const gpuhal_candidate *candidate,
                                   gpuhal_hardware_finding *out)
{
    const char *variable = settings->environment_backends;
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, "%s%.60s leaves %s out",
                          variable ? "GPUHAL_BACKENDS=" : "this program", variable ? variable : "",
                          gpuhal_hardware_api_name(candidate->name));
    gpuhal_hardware_text(out->fix, sizeof out->fix, "%s", variable ? "unset GPUHAL_BACKENDS" : "");
}

void gpuhal_hardware_find_hidden(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                                 gpuhal_hardware_finding *out)
{
    const char *variable = survey->settings->environment_devices;
    if (variable && gpuhal_os_environment("GPUHAL_LEASE")) { /* the lease set the variable */
        found_others(survey, one, "GPUHAL_DEVICES", variable, out);
        return;
    }
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, "%s%.60s leaves it out",
                          variable ? "GPUHAL_DEVICES=" : "this program", variable ? variable : "");
    gpuhal_hardware_text(out->fix, sizeof out->fix, "%s", variable ? "unset GPUHAL_DEVICES" : "");
}
