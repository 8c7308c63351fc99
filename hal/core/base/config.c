/* base/config.c: see config.h. The table below is the only list of the library's environment variables;
 * `gpuhal-probe --env` and a test of docs/environment.md read it. An empty variable counts as unset. */
#include "base/config.h"

#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"GPUHAL_AMD_SMI_LIBRARY", "absolute path of the AMD SMI library to use instead of libamd_smi.so"},
    {"GPUHAL_BACKENDS",
     "selects and orders the backends that the program allows: \"rocm,vulkan\", or all but some: \"-opencl\""},
    {"GPUHAL_CUDA_LIBRARY", "absolute path of the CUDA driver's library to use instead of libcuda.so.1"},
    {"GPUHAL_DEVICES",
     "comma list of selectors; hides every device that matches none of them (a program may hide more)"},
    {"GPUHAL_HIP_LIBRARY", "absolute path of the HIP library to use instead of libamdhip64.so.7, .6 or .5"},
    {"GPUHAL_ISOLATION",
     "once: probe plugins in helper processes and cache the results; always: probe each time; never: in this process"},
    {"GPUHAL_LEASE", "set by gpuhal-lease run: the number of the lease that limits this process's device memory"},
    {"GPUHAL_LEDGER", "absolute directory of the file that records the leases of all processes; none: no leases"},
    {"GPUHAL_LOG", "error, warning, info, debug or trace: how much is logged"},
    {"GPUHAL_NVML_LIBRARY", "absolute path of the NVML library to use instead of libnvidia-ml.so.1"},
    {"GPUHAL_OPENCL_LIBRARY", "absolute path of the OpenCL library to use instead of libOpenCL.so.1"},
    {"GPUHAL_OPTIONS", "options for plugins: \"cpu.devices=5G,6G;example.memory_mib=64\""},
    {"GPUHAL_PLUGIN_PATH", "absolute directories with plugins, separated by ':', searched first"},
    {"GPUHAL_POOL_CHECK", "1: pools look for writes beyond their buffers and for buffers released twice"},
    {"GPUHAL_POOL_TRACE",
     "absolute path of a file: gpuhal_close() writes the latest operations of pools there, as JSON Lines"},
    {"GPUHAL_PROGRAM_CACHE",
     "absolute directory of compiled programs that are kept, their limit in bytes (\"64M\"), or both; none: keep none"},
    {"GPUHAL_REGISTRY", "absolute directory of the persistent record; none: keep no record"},
    {"GPUHAL_ROCM_SMI_LIBRARY", "absolute path of the ROCm SMI library to use instead of librocm_smi64.so"},
    {"GPUHAL_STAGING_TOTAL", "limit of the process's staging memory in bytes, with K, M or G: \"64M\""},
    {"GPUHAL_SYSTEM_ROOT",
     "absolute directory with the /sys, /proc and /dev of a recorded or synthetic machine, read instead of this one's"},
    {"GPUHAL_TRACE",
     "absolute path of a file: gpuhal_close() writes the operations of queues there, for ui.perfetto.dev"},
    {"GPUHAL_VULKAN_LIBRARY", "absolute path of the Vulkan loader to use instead of libvulkan.so.1"},
    {GPUHAL_WITHIN_HELPER, "set by the library itself in its helper processes, which search for no plugins"},
};
#define VARIABLE_COUNT (sizeof variables / sizeof *variables)

#define DEADLINE_NS 15000000000u
#define HANG_NS UINT64_C(30000000000)
/* Minimum of the hang timeout. The watchdog checks calls four times in this period, and a short interruption of a call
 * by the scheduler must not count as a hang. */
#define HANG_LEAST_NS UINT64_C(20000000)
#define STAGING_BYTES (16u << 20)
#define STAGING_TOTAL_BYTES (256u << 20)
#define STAGING_LEAST (64u << 10)
#define PROGRAM_CACHE_BYTES (256u << 20)

/* Returns NULL if the variable is unset, is empty, or must not be read. */
static const char *read_variable(const gpuhal_settings *settings, const char *name)
{
    const char *value = settings->ignore_environment ? NULL : gpuhal_os_environment(name);
    return value && *value ? value : NULL;
}

static gpuhal_status read_log_level(const gpuhal_config *config, gpuhal_settings *settings)
{
    static const char words[][8] = {"error", "warning", "info", "debug", "trace"};
    if (config->log_level > 5) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "config.log_level is %u; levels are 1 (error) to 5 (trace)", config->log_level);
    }
    settings->log_level = config->log_level ? config->log_level : 2;
    const char *value = read_variable(settings, "GPUHAL_LOG");
    if (!value) {
        return GPUHAL_OK;
    }
    for (uint32_t i = 0; i < 5; i++) {
        if (strcmp(value, words[i]) == 0) {
            settings->log_level = i + 1;
            settings->log_to_stderr = !config->log;
            return GPUHAL_OK;
        }
    }
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                            "GPUHAL_LOG is \"%s\"; expected error, warning, info, debug or trace", value);
}

static gpuhal_status read_isolation(const gpuhal_config *config, gpuhal_settings *settings)
{
    static const char *const words[] = {"", "always", "never", "once"};
    if (config->isolation > GPUHAL_ISOLATION_ONCE) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.isolation is %u, which is not a policy",
                                config->isolation);
    }
    settings->isolation = config->isolation ? config->isolation : GPUHAL_ISOLATION_ONCE;
    const char *value = read_variable(settings, "GPUHAL_ISOLATION");
    for (uint32_t i = 1; value && i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) {
            settings->isolation = i;
            return GPUHAL_OK;
        }
    }
    return value ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "GPUHAL_ISOLATION is \"%s\"; expected always, once or never", value)
                 : GPUHAL_OK;
}

/* Parses "64M": digits, and at most one of K, M and G. Returns false for any other string, and on overflow. */
static bool parse_bytes(const char *text, uint64_t *out_bytes)
{
    uint64_t bytes = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(bytes, (uint64_t)10, &bytes) ||
            __builtin_add_overflow(bytes, (uint64_t)(*at - '0'), &bytes)) {
            return false;
        }
    }
    uint32_t shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
    bool whole = at > text && (shift ? at[1] : at[0]) == 0;
    *out_bytes = bytes << shift;
    return whole && bytes <= UINT64_MAX >> shift;
}

static gpuhal_status read_staging(const gpuhal_config *config, gpuhal_settings *settings)
{
    const uint64_t given[] = {config->staging_limit_bytes, config->staging_total_bytes};
    for (uint32_t i = 0; i < 2; i++) {
        if (given[i] && given[i] < STAGING_LEAST) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "config.staging_%s_bytes is %llu; the minimum is %u",
                                    i == 0 ? "limit" : "total", (unsigned long long)given[i], STAGING_LEAST);
        }
    }
    settings->staging_limit_bytes = given[0] ? given[0] : STAGING_BYTES;
    settings->staging_total_bytes = given[1] ? given[1] : STAGING_TOTAL_BYTES;
    const char *value = read_variable(settings, "GPUHAL_STAGING_TOTAL");
    if (value &&
        (!parse_bytes(value, &settings->staging_total_bytes) || settings->staging_total_bytes < STAGING_LEAST)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "GPUHAL_STAGING_TOTAL is \"%s\"; expected a number of bytes, with K, M or G, "
                                "and the minimum is %u",
                                value, STAGING_LEAST);
    }
    return GPUHAL_OK;
}

/* Finds a user folder according to the XDG base directory specification, which ignores relative paths. Returns NULL if
 * neither variable is an absolute path. ignore_environment does not apply to these system variables. */
static char *user_folder(const char *variable, const char *below_home, const char *name)
{
    const char *folder = gpuhal_os_environment(variable);
    const char *home = gpuhal_os_environment("HOME");
    if (folder && gpuhal_os_path_is_absolute(folder)) {
        return gpuhal_text_format("%s/%s", folder, name);
    }
    return home && gpuhal_os_path_is_absolute(home) ? gpuhal_text_format("%s/%s/%s", home, below_home, name) : NULL;
}

/* A privileged process has no registry, because an unprivileged user could choose its directory. */
static gpuhal_status read_registry(const gpuhal_config *config, gpuhal_settings *settings)
{
    const char *variable = read_variable(settings, "GPUHAL_REGISTRY");
    const char *value = variable ? variable : config->registry;
    if (value && *value && !gpuhal_os_path_is_absolute(value) && strcmp(value, "none") != 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\"; expected an absolute directory, or none",
                                variable ? "GPUHAL_REGISTRY" : "config.registry", value);
    }
    if (gpuhal_os_privileged()) {
        return GPUHAL_OK;
    }
    if (!value || !*value) {
        settings->registry = user_folder("XDG_STATE_HOME", ".local/state", "gpuhal");
    } else if (gpuhal_os_path_is_absolute(value)) {
        settings->registry = gpuhal_text_copy(value);
        return settings->registry ? GPUHAL_OK : gpuhal_error_host_memory();
    }
    return GPUHAL_OK;
}

/* The cache is a folder below the given directory, else below the registry's. Without either there is no cache.
 * Directory and limit may have any order: "/var/cache/gpuhal,1G". */
static gpuhal_status read_program_cache(gpuhal_settings *settings)
{
    const char *value = read_variable(settings, "GPUHAL_PROGRAM_CACHE");
    size_t count = 0;
    char **parts = gpuhal_text_split(value ? value : "", ',', &count);
    const char *folder = NULL;
    bool good = parts && count <= 2, none = false;
    settings->program_cache_bytes = PROGRAM_CACHE_BYTES;
    for (size_t i = 0; i < count && good; i++) {
        if (gpuhal_os_path_is_absolute(parts[i]) && !folder) {
            folder = parts[i];
        } else if (strcmp(parts[i], "none") == 0 && count == 1) {
            none = true;
        } else {
            good = parse_bytes(parts[i], &settings->program_cache_bytes) && settings->program_cache_bytes > 0;
        }
    }
    const bool wanted = good && !none && !gpuhal_os_privileged() && (folder || settings->registry);
    if (wanted) {
        settings->program_cache = gpuhal_text_format("%s/gpuhal-programs", folder ? folder : settings->registry);
    }
    gpuhal_text_list_free(parts);
    return !parts || (wanted && !settings->program_cache) ? gpuhal_error_host_memory()
           : good ? GPUHAL_OK
                  : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                     "GPUHAL_PROGRAM_CACHE is \"%s\"; expected an absolute directory, a number of "
                                     "bytes with K, M or G, both with a comma between them, or none",
                                     value);
}

/* The trace is written when the gpuhal object is closed. */
static gpuhal_status read_trace(gpuhal_settings *settings, const char *name, char **out_path)
{
    const char *value = read_variable(settings, name);
    if (value && !gpuhal_os_path_is_absolute(value)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\"; expected an absolute path", name, value);
    }
    *out_path = gpuhal_text_copy(value);
    return *out_path || !value ? GPUHAL_OK : gpuhal_error_host_memory();
}

static gpuhal_status read_ledger(const gpuhal_config *config, gpuhal_settings *settings)
{
    const char *variable = read_variable(settings, "GPUHAL_LEDGER");
    const char *value = variable ? variable : config->ledger;
    if (value && *value && !gpuhal_os_path_is_absolute(value) && strcmp(value, "none") != 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\"; expected an absolute directory, or none",
                                variable ? "GPUHAL_LEDGER" : "config.ledger", value);
    }
    settings->ledger = value && *value ? gpuhal_text_copy(value) : NULL;
    return settings->ledger || !value || !*value ? GPUHAL_OK : gpuhal_error_host_memory();
}

static gpuhal_status read_lease(gpuhal_settings *settings)
{
    const char *value = read_variable(settings, "GPUHAL_LEASE");
    for (const char *at = value; at && *at; at++) {
        if (*at < '0' || *at > '9' || at - value >= 19) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "GPUHAL_LEASE is \"%s\"; expected a number", value);
        }
        settings->lease = settings->lease * 10 + (uint64_t)(*at - '0');
    }
    return GPUHAL_OK;
}

static gpuhal_status read_pool_check(gpuhal_settings *settings)
{
    const char *value = read_variable(settings, "GPUHAL_POOL_CHECK");
    settings->pool_check = value && strcmp(value, "1") == 0;
    return !value || settings->pool_check || strcmp(value, "0") == 0
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "GPUHAL_POOL_CHECK is \"%s\"; expected 1 or 0", value);
}

/* The root is passed to plugins as an option, so it must be a valid option value. A trailing "/" would be doubled in
 * every path. */
static gpuhal_status read_system_root(gpuhal_settings *settings)
{
    const char *value = read_variable(settings, "GPUHAL_SYSTEM_ROOT");
    size_t length = value ? strlen(value) : 0;
    if (value && (!gpuhal_os_path_is_absolute(value) || strchr(value, ';') || length >= GPUHAL_SYSTEM_ROOT_BYTES)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "GPUHAL_SYSTEM_ROOT is \"%s\"; expected an absolute path without ';', of less than %u "
                                "bytes",
                                value, GPUHAL_SYSTEM_ROOT_BYTES);
    }
    while (length > 0 && value[length - 1] == '/') {
        length--;
    }
    memcpy(settings->system_root, value ? value : "", length);
    return GPUHAL_OK;
}

/* The operator's options come last and override the application's. */
static gpuhal_status read_options(const gpuhal_config *config, gpuhal_settings *settings)
{
    const char *texts[] = {config->options, read_variable(settings, "GPUHAL_OPTIONS")};
    gpuhal_status status = gpuhal_options_check("config.options", texts[0]);
    status = status ? status : gpuhal_options_check("GPUHAL_OPTIONS", texts[1]);
    if (!status && (texts[0] || texts[1])) {
        settings->options = gpuhal_text_format("%s;%s", texts[0] ? texts[0] : "", texts[1] ? texts[1] : "");
        status = settings->options ? GPUHAL_OK : gpuhal_error_host_memory();
    }
    return status;
}

static bool keep(char **to, const char *value)
{
    *to = value && *value ? gpuhal_text_copy(value) : NULL;
    return *to || !value || !*value;
}

static bool keep_builtins(const gpuhal_config *config, gpuhal_settings *settings)
{
    size_t count = 0;
    while (config->builtins && config->builtins[count]) {
        count++;
    }
    gpuhal_builtin_fn **copy = calloc(count + 1, sizeof *copy);
    if (copy && count > 0) {
        memcpy(copy, config->builtins, count * sizeof *copy);
    }
    settings->builtins = copy;
    return copy != NULL;
}

static bool keep_texts(const gpuhal_config *config, gpuhal_settings *settings)
{
    settings->user_plugin_directory =
        gpuhal_os_privileged() ? NULL : user_folder("XDG_DATA_HOME", ".local/share", "gpuhal/plugins.d");
    return keep(&settings->backends, config->backends) &&
           keep(&settings->environment_backends, read_variable(settings, "GPUHAL_BACKENDS")) &&
           keep(&settings->devices, config->devices) &&
           keep(&settings->environment_devices, read_variable(settings, "GPUHAL_DEVICES")) &&
           keep(&settings->plugin_path, config->plugin_path) &&
           keep(&settings->environment_plugin_path, read_variable(settings, "GPUHAL_PLUGIN_PATH")) &&
           keep(&settings->helper_path, config->helper_path) && keep(&settings->retry, config->retry);
}

/* Copies the structure with this library's size. Members missing in an older program's structure are zero; a newer
 * program's additional members are ignored. */
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
    gpuhal_settings *settings = out_settings;
    settings->ignore_environment = config.ignore_environment || gpuhal_os_privileged();
    settings->environment_is_clean = config.environment_is_clean != 0;
    settings->helper_deadline_ns = config.helper_deadline_ns ? config.helper_deadline_ns : DEADLINE_NS;
    settings->memory_limit_bytes = config.memory_limit_bytes;
    settings->hang_ns = config.hang_ns == 0 ? HANG_NS : config.hang_ns < HANG_LEAST_NS ? HANG_LEAST_NS : config.hang_ns;
    settings->log = config.log;
    settings->log_user = config.log_user;
    status = read_log_level(&config, settings);
    status = status ? status : read_isolation(&config, settings);
    status = status ? status : read_staging(&config, settings);
    status = status ? status : read_registry(&config, settings);
    status = status ? status : read_program_cache(settings);
    status = status ? status : read_trace(settings, "GPUHAL_POOL_TRACE", &settings->pool_trace);
    status = status ? status : read_trace(settings, "GPUHAL_TRACE", &settings->trace);
    status = status ? status : read_pool_check(settings);
    status = status ? status : read_ledger(&config, settings);
    status = status ? status : read_lease(settings);
    status = status ? status : read_system_root(settings);
    status = status ? status : read_options(&config, settings);
    if (!status && (!keep_texts(&config, settings) || !keep_builtins(&config, settings))) {
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
    free(settings->environment_backends);
    free(settings->plugin_path);
    free(settings->user_plugin_directory);
    free(settings->environment_plugin_path);
    free(settings->helper_path);
    free(settings->retry);
    free(settings->devices);
    free(settings->environment_devices);
    free(settings->decision);
    free(settings->registry);
    free(settings->program_cache);
    free(settings->pool_trace);
    free(settings->trace);
    free(settings->ledger);
    free(settings->options);
    free((void *)settings->builtins);
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
