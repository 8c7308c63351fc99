/* core/config.c: see config.h. The table below is the one place that names the environment variables; `gpuhal-probe --env` and a test
 * of docs/environment.md read it. An empty variable counts as not set. */
#include "core/config.h"

#include "core/error.h"
#include "core/text.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"GPUHAL_AMD_SMI_LIBRARY", "absolute path of the AMD SMI library to use instead of libamd_smi.so"},
    {"GPUHAL_BACKENDS", "which backends, in which order: \"rocm,vulkan\", or all but some: \"-opencl\""},
    {"GPUHAL_CPU_DEVICES", "for tests: makes the cpu backend list several devices with these sizes: \"5G,6G\""},
    {"GPUHAL_CUDA_LIBRARY", "absolute path of the CUDA driver's library to use instead of libcuda.so.1"},
    {"GPUHAL_DEVICES", "comma list of selectors; devices that match none are hidden"},
    {"GPUHAL_HIP_LIBRARY", "absolute path of the HIP library to use instead of libamdhip64.so.7, .6 or .5"},
    {"GPUHAL_ISOLATION", "always: meet plugins in helper processes; never: in this process"},
    {"GPUHAL_LOG", "error, warning, info or debug: how much is logged"},
    {"GPUHAL_NVML_LIBRARY", "absolute path of the NVML library to use instead of libnvidia-ml.so.1"},
    {"GPUHAL_OPENCL_LIBRARY", "absolute path of the OpenCL library to use instead of libOpenCL.so.1"},
    {"GPUHAL_PLUGIN_PATH", "absolute directories with plugins, separated by ':', searched first"},
    {"GPUHAL_ROCM_SMI_LIBRARY", "absolute path of the ROCm SMI library to use instead of librocm_smi64.so"},
    {"GPUHAL_VULKAN_LIBRARY", "absolute path of the Vulkan loader to use instead of libvulkan.so.1"},
};
#define VARIABLE_COUNT (sizeof variables / sizeof *variables)

#define DEADLINE_NS 15000000000u
#define STAGING_BYTES (16u << 20)
#define STAGING_LEAST (64u << 10)

/* NULL for what is not set, empty, or not to be read. */
static const char *read_variable(const gpuhal_settings *settings, const char *name)
{
    const char *value = settings->ignore_environment ? NULL : gpuhal_os_environment(name);
    return value && *value ? value : NULL;
}

/* The variable asks for lines even where nobody listens: then they go to standard error. */
static gpuhal_status read_log_level(const gpuhal_config *config, gpuhal_settings *settings)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    if (config->log_level > 4) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.log_level is %u; levels are 1 (error) to 4 (debug)",
                                config->log_level);
    }
    settings->log_level = config->log_level ? config->log_level : 2;
    const char *value = read_variable(settings, "GPUHAL_LOG");
    if (!value) {
        return GPUHAL_OK;
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(value, words[i]) == 0) {
            settings->log_level = i + 1;
            settings->log_to_stderr = !config->log;
            return GPUHAL_OK;
        }
    }
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "GPUHAL_LOG is \"%s\"; known are error, warning, info and debug", value);
}

static gpuhal_status read_isolation(const gpuhal_config *config, gpuhal_settings *settings)
{
    if (config->isolation > GPUHAL_ISOLATION_NEVER) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.isolation is %u, which is no known policy", config->isolation);
    }
    settings->isolate = config->isolation != GPUHAL_ISOLATION_NEVER;
    const char *value = read_variable(settings, "GPUHAL_ISOLATION");
    if (value && strcmp(value, "always") != 0 && strcmp(value, "never") != 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "GPUHAL_ISOLATION is \"%s\"; known are always and never", value);
    }
    if (value) {
        settings->isolate = strcmp(value, "always") == 0;
    }
    return GPUHAL_OK;
}

/* Copies `value`; false without memory. */
static bool keep(char **to, const char *value)
{
    *to = value && *value ? gpuhal_text_copy(value) : NULL;
    return *to || !value || !*value;
}

static bool keep_texts(const gpuhal_config *config, gpuhal_settings *settings)
{
    const char *backends = read_variable(settings, "GPUHAL_BACKENDS");
    const char *devices = read_variable(settings, "GPUHAL_DEVICES");
    settings->backends_source = backends ? "GPUHAL_BACKENDS" : "config.backends";
    settings->devices_source = devices ? "GPUHAL_DEVICES" : "config.devices";
    return keep(&settings->backends, backends ? backends : config->backends) &&
           keep(&settings->devices, devices ? devices : config->devices) && keep(&settings->plugin_path, config->plugin_path) &&
           keep(&settings->environment_plugin_path, read_variable(settings, "GPUHAL_PLUGIN_PATH")) &&
           keep(&settings->helper_path, config->helper_path);
}

/* The structure as this library knows it: what an older program does not have is zero, what a newer one has more is not read. */
static gpuhal_status take_structure(const gpuhal_config *given, gpuhal_config *out)
{
    *out = (gpuhal_config){.size = sizeof *out};
    if (!given) {
        return GPUHAL_OK;
    }
    if (given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.size is 0; set it to sizeof(gpuhal_config)");
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_settings_make(const gpuhal_config *given, gpuhal_settings *out_settings)
{
    *out_settings = (gpuhal_settings){0};
    gpuhal_config config;
    gpuhal_status status = take_structure(given, &config);
    if (status) {
        return status;
    }
    if (config.staging_limit_bytes && config.staging_limit_bytes < STAGING_LEAST) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.staging_limit_bytes is %llu; the least is %u",
                                (unsigned long long)config.staging_limit_bytes, STAGING_LEAST);
    }
    gpuhal_settings *settings = out_settings;
    settings->ignore_environment = config.ignore_environment || gpuhal_os_privileged();
    settings->helper_deadline_ns = config.helper_deadline_ns ? config.helper_deadline_ns : DEADLINE_NS;
    settings->memory_limit_bytes = config.memory_limit_bytes;
    settings->staging_limit_bytes = config.staging_limit_bytes ? config.staging_limit_bytes : STAGING_BYTES;
    settings->builtins = config.builtins;
    settings->log = config.log;
    settings->log_user = config.log_user;
    status = read_log_level(&config, settings);
    status = status ? status : read_isolation(&config, settings);
    if (!status && !keep_texts(&config, settings)) {
        status = gpuhal_error_host_memory();
    }
    if (status) {
        gpuhal_settings_finish(settings);
    }
    return status;
}

void gpuhal_settings_finish(gpuhal_settings *settings)
{
    free(settings->backends);
    free(settings->plugin_path);
    free(settings->environment_plugin_path);
    free(settings->helper_path);
    free(settings->devices);
    *settings = (gpuhal_settings){0};
}

char *gpuhal_settings_ignored(const gpuhal_settings *settings)
{
    gpuhal_text names = {0};
    for (size_t i = 0; settings->ignore_environment && i < VARIABLE_COUNT; i++) {
        if (gpuhal_os_environment_raw(variables[i].name)) {
            gpuhal_text_printf(&names, "%s%s", names.length ? ", " : "", variables[i].name);
        }
    }
    return names.length ? gpuhal_text_take(&names) : NULL;
}

const char *gpuhal_variable_name(uint32_t index)
{
    return index < VARIABLE_COUNT ? variables[index].name : NULL;
}

const char *gpuhal_variable_meaning(uint32_t index)
{
    return index < VARIABLE_COUNT ? variables[index].meaning : NULL;
}
