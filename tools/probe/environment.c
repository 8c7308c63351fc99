/* environment.c: see environment.h. */
#include "environment.h"

#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Environment variables of vendors' libraries, loaders and batch systems that affect which devices are visible. Some
 * are named in plugin manifests; bug reports need the remaining variables. */
static const struct {
    const char *name, *meaning;
} others[] = {
    {"AMD_VISIBLE_DEVICES", "AMD's container runtime: the GPUs that the container is given"},
    {"CUDA_DEVICE_ORDER", "CUDA: how it numbers GPUs, FASTEST_FIRST or PCI_BUS_ID"},
    {"CUDA_VISIBLE_DEVICES", "CUDA and HIP: the GPUs that they list"},
    {"DRI_PRIME", "Mesa: which GPU its drivers list first"},
    {"GPU_DEVICE_ORDINAL", "HIP and AMD's OpenCL: the GPUs that they list"},
    {"HIP_VISIBLE_DEVICES", "HIP: the GPUs that it lists"},
    {"HSA_OVERRIDE_GFX_VERSION", "ROCm: the instruction set that GPUs are taken to have"},
    {"LD_LIBRARY_PATH", "directories that are searched first for vendors' libraries"},
    {"LIBGL_ALWAYS_SOFTWARE", "Mesa: drivers that draw on the processor alone"},
    {"MESA_VK_DEVICE_SELECT", "Mesa's layer of Vulkan: the GPU that is listed first, with ! alone"},
    {"NVIDIA_VISIBLE_DEVICES", "NVIDIA's container runtime: the GPUs that the container is given"},
    {"OCL_ICD_FILENAMES", "OpenCL's loader: further drivers"},
    {"OCL_ICD_VENDORS", "OpenCL's loader: the directory of its drivers, or one of them"},
    {"ONEAPI_DEVICE_SELECTOR", "Intel's oneAPI: the devices that it lists"},
    {"OPENCL_VENDOR_PATH", "OpenCL's loader: the directory of its drivers"},
    {"POCL_DEVICES", "PoCL: the devices that it lists"},
    {"ROCR_VISIBLE_DEVICES", "ROCm: the GPUs that its runtime, and with it HIP and OpenCL, list"},
    {"RUSTICL_ENABLE", "Mesa's OpenCL: the drivers that list devices"},
    {"SLURM_GPUS_ON_NODE", "Slurm: how many GPUs the job or step has on this machine"},
    {"SLURM_JOB_GPUS", "Slurm: the GPUs of the job"},
    {"SLURM_STEP_GPUS", "Slurm: the GPUs of the step"},
    {"VK_ADD_DRIVER_FILES", "Vulkan's loader: further drivers"},
    {"VK_DRIVER_FILES", "Vulkan's loader: these drivers alone"},
    {"VK_ICD_FILENAMES", "Vulkan's loader: these drivers alone, the older name"},
    {"VK_LOADER_DEVICE_SELECT", "Vulkan's loader: the device that is listed first"},
    {"VK_LOADER_DRIVERS_DISABLE", "Vulkan's loader: not the drivers whose names match"},
    {"VK_LOADER_DRIVERS_SELECT", "Vulkan's loader: the drivers whose names match alone"},
    {"ZE_AFFINITY_MASK", "Intel's Level Zero and OpenCL: the devices that they list"},
};
enum { OTHERS = sizeof others / sizeof *others };

static const char *overruling(const gpuhal_probe_options *options, const char *name)
{
    if (options->backends && strcmp(name, "GPUHAL_BACKENDS") == 0) {
        return "--backends";
    }
    if (options->device && strcmp(name, "GPUHAL_DEVICES") == 0) {
        return "--device";
    }
    return NULL;
}

/* Returns a copy of GPUHAL_OPTIONS with the word VALUE in place of each value; NULL if out of memory. The caller frees
 * the copy. */
static char *hide_values(const char *options)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    bool more = to != NULL;
    while (more) {
        const size_t key = strcspn(options, ";="), whole = strcspn(options, ";");
        fprintf(to, "%.*s%s%s", key < whole ? (int)key : 0, options, key < whole ? "=" : "", whole > 0 ? "VALUE" : "");
        options += whole;
        more = *options != 0;
        fputs(more ? ";" : "", to);
        options += more;
    }
    if (to && fclose(to)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Appends a variable and a copy of its value; returns false if out of memory. A report for other people omits the
 * values of plugin options, because these may be secrets. */
static bool keep(gpuhal_probe_environment *to, gpuhal_probe_variable variable, const char *value, bool for_others)
{
    const bool hides = for_others && strcmp(variable.name, "GPUHAL_OPTIONS") == 0;
    variable.value = !value ? NULL : hides ? hide_values(value) : strdup(value);
    to->list[to->count++] = variable;
    return variable.value || !value;
}

bool gpuhal_probe_environment_read(const gpuhal_probe_options *options, gpuhal_probe_environment *out_environment)
{
    *out_environment = (gpuhal_probe_environment){0};
    gpuhal_environment_entry entry = {.size = sizeof entry};
    const bool for_others = options->report != NULL;
    uint32_t count = 0;
    while (gpuhal_environment_at(NULL, count, &entry) == GPUHAL_OK) {
        count++;
    }
    out_environment->list = calloc(count + OTHERS, sizeof *out_environment->list);
    bool kept = out_environment->list != NULL;
    for (uint32_t i = 0; kept && i < count && gpuhal_environment_at(NULL, i, &entry) == GPUHAL_OK; i++) {
        const char *option = entry.value ? overruling(options, entry.name) : NULL;
        kept =
            keep(out_environment,
                 (gpuhal_probe_variable){
                     .name = entry.name, .meaning = entry.meaning, .overruled = option, .ignored = entry.ignored != 0},
                 entry.value, for_others);
    }
    for (size_t i = 0; kept && i < OTHERS; i++) {
        const char *value = getenv(others[i].name);
        kept = !value ||
               keep(out_environment,
                    (gpuhal_probe_variable){.name = others[i].name, .meaning = others[i].meaning, .is_foreign = true},
                    value, for_others);
    }
    if (!kept) {
        gpuhal_probe_environment_finish(out_environment);
    }
    return kept;
}

static void print_variable(const gpuhal_probe_variable *variable, const gpuhal_probe_screen *screen)
{
    gpuhal_probe_screen_put(screen, PROBE_BOLD, variable->name);
    if (variable->value) {
        fputs(" = ", screen->out);
        gpuhal_probe_screen_put(screen, PROBE_PLAIN, *variable->value ? variable->value : "\"\"");
    } else {
        gpuhal_probe_screen_put(screen, PROBE_DIM, " is not set");
    }
    if (variable->ignored) {
        gpuhal_probe_screen_put(screen, PROBE_WARN, " (ignored)");
    }
    if (variable->overruled) {
        gpuhal_probe_screen_put(screen, PROBE_WARN, " (overruled by ");
        gpuhal_probe_screen_put(screen, PROBE_WARN, variable->overruled);
        gpuhal_probe_screen_put(screen, PROBE_WARN, ")");
    }
    fputs("\n    ", screen->out);
    gpuhal_probe_screen_wrap(screen, variable->meaning, 4, 4);
}

void gpuhal_probe_environment_print(const gpuhal_probe_environment *environment, const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0; i < environment->count; i++) {
        print_variable(&environment->list[i], screen);
    }
}

void gpuhal_probe_environment_finish(gpuhal_probe_environment *environment)
{
    for (uint32_t i = 0; i < environment->count; i++) {
        free(environment->list[i].value);
    }
    free(environment->list);
    *environment = (gpuhal_probe_environment){0};
}
