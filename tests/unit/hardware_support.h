/* tests/unit/hardware_support.h: an invented machine (the kernel's files and the plugins' lists), and the hardware that
 * the library reports for it. */
#ifndef GPUHAL_TEST_HARDWARE_SUPPORT_H
#define GPUHAL_TEST_HARDWARE_SUPPORT_H

#include "identity_support.h"
#include "support/tree.h"

#include <gpuhal/node.h>

static inline void put_at(const char *address, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/%s", address, file);
    put(path, text);
}

/* Adds a device of the class, with ids like "10de:2684". If `driver` is NULL, no driver is bound. */
static inline void put_pci(const char *address, const char *class, const char *ids, const char *driver)
{
    char text[32], path[256], target[256];
    snprintf(text, sizeof text, "0x%s\n", class);
    put_at(address, "class", text);
    snprintf(text, sizeof text, "0x%.4s\n", ids);
    put_at(address, "vendor", text);
    snprintf(text, sizeof text, "0x%.4s\n", ids + 5);
    put_at(address, "device", text);
    if (driver) {
        snprintf(path, sizeof path, "sys/bus/pci/devices/%s/driver", address);
        snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver);
        put_link(path, target);
        snprintf(path, sizeof path, "sys/module/%s/initstate", driver);
        put(path, "live\n");
    }
}

static inline void put_drm(const char *address, unsigned card, unsigned render)
{
    char file[64], text[32];
    snprintf(file, sizeof file, "drm/card%u/dev", card);
    snprintf(text, sizeof text, "226:%u\n", card);
    put_at(address, file, text);
    snprintf(file, sizeof file, "drm/renderD%u/dev", render);
    snprintf(text, sizeof text, "226:%u\n", render);
    put_at(address, file, text);
}

/* Makes an empty machine. Each test calls this first. */
static inline void begin_machine(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(tree_root, sizeof tree_root, "%s/gpuhal-machine-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(tree_root));
    setenv("GPUHAL_SYSTEM_ROOT", tree_root, 1);
    setenv("GPUHAL_REGISTRY", "none", 1);
    static const char *const variables[] = {
        "CUDA_VISIBLE_DEVICES",   "VK_DRIVER_FILES",     "VK_ICD_FILENAMES",        "OCL_ICD_VENDORS",
        "OCL_ICD_FILENAMES",      "OPENCL_VENDOR_PATH",  "KUBERNETES_SERVICE_HOST", "SLURM_JOB_ID",
        "SINGULARITY_CONTAINER",  "container",           "APPTAINER_CONTAINER",     "SLURM_JOB_GPUS",
        "SLURM_STEP_GPUS",        "SLURM_GPUS_ON_NODE",  "SLURM_GPUS_PER_NODE",     "SLURM_GPUS_PER_TASK",
        "NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",        "FLUX_JOB_ID",
        "PBS_JOBID",              "LSB_JOBID",           "SGE_TASK_ID",             "JOB_ID",
        "_CONDOR_JOB_AD"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i]); /* the real machine may set the variables */
    }
    forget_machine();
    put_directory("sys/bus/pci/devices");
    (void)add_device("cpu", "processor");
}

static inline void end_machine(void)
{
    forget_machine();
    remove_tree();
}

static inline gpuhal *open_listed(const char *devices)
{
    const gpuhal_config config = {
        .size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .builtins = replayed, .devices = devices};
    gpuhal *gpu = NULL;
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

static inline gpuhal_view *view_or_fail(gpuhal *gpu)
{
    gpuhal_view *view = NULL;
    if (gpuhal_view_of(gpu, GPUHAL_VIEW_HARDWARE, &view)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return view;
}

static inline gpuhal_hardware_info info_of(const gpuhal_view *view, uint32_t index)
{
    gpuhal_hardware_info info = {.size = sizeof info};
    if (gpuhal_view_get(view, GPUHAL_RECORD_HARDWARE, index, &info)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return info;
}

/* Returns the hardware at the address. The hardware must be listed exactly once. */
static inline gpuhal_hardware_info info_at(const gpuhal_view *view, const char *address)
{
    gpuhal_hardware_info found = {0};
    for (uint32_t i = 0; i < gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE); i++) {
        const gpuhal_hardware_info info = info_of(view, i);
        if (strcmp(info.address, address) == 0) {
            assert_int_equal(found.size, 0);
            found = info;
        }
    }
    if (!found.size) {
        fail_msg("%s is not listed", address);
    }
    return found;
}

static inline void expect_state(const gpuhal_hardware_info *info, gpuhal_hardware_state state,
                                gpuhal_hardware_grade grade)
{
    if (info->state != state || info->grade != grade) {
        fail_msg("%s %s: %s, grade %u, \"%s\", \"%s\"; should be %s, grade %u", info->address, info->name,
                 gpuhal_hardware_state_name(info->state), info->grade, info->why, info->fix,
                 gpuhal_hardware_state_name(state), grade);
    }
}

#endif
