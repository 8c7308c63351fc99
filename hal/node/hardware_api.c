/* node/hardware_api.c: explains why no API, or not the vendor's API, lists hardware that the kernel supports. The
 * reasons come from the plugins' reports, first for the vendor's API, then for the vendor-neutral APIs. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the vendor library's message without the prefix (step and status), which the plugin's state already shows. */
static const char *reason_of(const gpuhal_candidate *candidate)
{
    static const char *const steps[] = {"starting: ", "listing its devices: "};
    const char *reason = candidate->reason ? candidate->reason : "out of host memory";
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *end =
            strncmp(reason, steps[i], strlen(steps[i])) == 0 ? strstr(reason + strlen(steps[i]), ": ") : NULL;
        reason = end ? end + 2 : reason;
    }
    return reason;
}

/* ---- failed */

/* Copies the version from the library's file name, such as "libcuda.so.580.65.06", or "" if it has none. */
static void library_version(const gpuhal_candidate *candidate, char *to, size_t bytes)
{
    int ignored = 0;
    char *path = candidate->driver ? gpuhal_os_real_path(candidate->driver, &ignored) : NULL;
    const char *version = path ? strstr(gpuhal_hardware_leaf(path), ".so.") : NULL;
    version = version ? version + strlen(".so.") : "";
    gpuhal_hardware_text(to, bytes, "%s", strchr(version, '.') ? version : "");
    free(path);
}

/* cuInit() error codes (cuda.h). The state FAILED is never taken from the cache, so its code is always known. */
enum { CUDA_SYSTEM_NOT_READY = 802, CUDA_SYSTEM_DRIVER_MISMATCH = 803, CUDA_UNKNOWN = 999 };

static bool has_code(const gpuhal_candidate *candidate, int64_t code)
{
    return candidate->code == code && strcmp(candidate->name, "cuda") == 0;
}

static bool is_mismatch(const gpuhal_hardware *one, const gpuhal_candidate *candidate, const char *library)
{
    return (candidate->state == GPUHAL_PLUGIN_INCOMPATIBLE && candidate->driver) ||
           has_code(candidate, CUDA_SYSTEM_DRIVER_MISMATCH) ||
           (*library && one->kernel_driver_version[0] && strcmp(one->kernel_driver, "nvidia") == 0 &&
            strcmp(library, one->kernel_driver_version) != 0);
}

static void find_mismatch(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const gpuhal_candidate *candidate,
                          const char *library, gpuhal_hardware_finding *out)
{
    const bool differ = *library && one->kernel_driver_version[0] && strcmp(library, one->kernel_driver_version) != 0;
    const bool is_container = gpuhal_hardware_machine_of(survey)->place != GPUHAL_PLACE_HOST;
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_VERSION_MISMATCH, GPUHAL_HARDWARE_PROBLEM,
                          differ ? "the kernel module %s is version %s, and %s's library is %s" : "%.0s%.0s%s: %s",
                          one->kernel_driver, one->kernel_driver_version, gpuhal_hardware_api_name(candidate->name),
                          differ ? library : reason_of(candidate));
    if (is_container) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "# on the host:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "nvidia-smi");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# the container needs the libraries of this \"Driver Version\"");
    } else {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "# the driver was updated, and a restart loads its module:");
        gpuhal_hardware_add_restart(out->fix, sizeof out->fix);
    }
}

/* /dev/nvidia-uvm is the node of the module that manages CUDA's memory. Some container runtimes omit it. */
static void find_no_uvm(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const bool is_host = gpuhal_hardware_machine_of(survey)->place == GPUHAL_PLACE_HOST;
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM,
                          is_host ? "%.0s/dev/nvidia-uvm, which CUDA needs, is missing"
                                  : "%s has the other nodes of the GPU, but not /dev/nvidia-uvm, which CUDA needs",
                          gpuhal_hardware_machine_of(survey)->who);
    if (is_host) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo modprobe nvidia_uvm && sudo nvidia-modprobe -u");
    } else {
        gpuhal_hardware_give(survey, one, out->fix, sizeof out->fix);
    }
}

static void find_failure(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const gpuhal_candidate *candidate,
                         gpuhal_hardware_finding *out)
{
    char library[48];
    const char *const reason = reason_of(candidate);
    library_version(candidate, library, sizeof library);
    if (is_mismatch(one, candidate, library)) {
        find_mismatch(survey, one, candidate, library, out);
        return;
    }
    const bool is_lost = strstr(reason, "GPU is lost") || strstr(reason, "fallen off the bus");
    gpuhal_hardware_found(out, is_lost ? GPUHAL_HARDWARE_OFF_BUS : GPUHAL_HARDWARE_DRIVER_ERROR,
                          GPUHAL_HARDWARE_PROBLEM, "%s: %s", gpuhal_hardware_api_name(candidate->name), reason);
    if (has_code(candidate, CUDA_SYSTEM_NOT_READY)) { /* on machines with NVSwitch: the fabric manager is not running */
        gpuhal_hardware_text(out->fix, sizeof out->fix, "# ends the CUDA programs of this machine:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo systemctl restart nvidia-fabricmanager");
    } else if (has_code(candidate, CUDA_UNKNOWN) && strcmp(one->kernel_driver, "nvidia") == 0 &&
               !gpuhal_hardware_is_there(survey, "/dev/nvidia-uvm")) {
        find_no_uvm(survey, one, out);
    } else {
        gpuhal_hardware_read_log(one, is_lost ? GPUHAL_HARDWARE_LOST_ANSWERS : GPUHAL_HARDWARE_UNUSED_ANSWERS, out->fix,
                                 sizeof out->fix);
    }
}

/* The probe has just run and would fail again, so the suggested command reads the kernel's log. */
static void find_crash(const gpuhal_hardware *one, const gpuhal_candidate *candidate, gpuhal_hardware_finding *out)
{
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_QUARANTINED, GPUHAL_HARDWARE_PROBLEM, "%s: %s",
                          gpuhal_hardware_api_name(candidate->name), reason_of(candidate));
    gpuhal_hardware_read_log(one, "", out->fix, sizeof out->fix);
    gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                             "# a line names the cause; after the repair: gpuhal-probe --retry %s", candidate->name);
}

/* If CUDA lists a MIG instance, it lists no other GPU (Multi-Instance GPU User Guide, "CUDA Device Enumeration"). */
static bool lists_a_part(const gpuhal_candidate *candidate)
{
    bool found = false;
    for (size_t i = 0; i < candidate->devices.count && strcmp(candidate->name, "cuda") == 0; i++) {
        const gpuhal_listed_device *listed = &candidate->devices.list[i];
        found = found || (gpuhal_listed_is_device(listed) && gpuhal_facts_text(&listed->facts, GPUHAL_FACT_PARTITION));
    }
    return found;
}

static void make_an_instance(const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo nvidia-smi mig -i %s -lgip", one->address);
    gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# then, with an ID of that list:");
    gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo nvidia-smi mig -i %s -cgi ID -C", one->address);
    gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# or, to use the whole GPU:");
    gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo nvidia-smi -i %s -mig 0", one->address);
}

void gpuhal_hardware_find_stated(const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const bool is_part = one->partition[0] != '\0', is_nvidia = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA;
    gpuhal_hardware_found(out, is_part || !is_nvidia ? GPUHAL_HARDWARE_HIDDEN : GPUHAL_HARDWARE_NO_INSTANCE,
                          is_part ? GPUHAL_HARDWARE_FINE : GPUHAL_HARDWARE_NOTE, "%s", one->unlisted);
    if (is_part && is_nvidia) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "CUDA_VISIBLE_DEVICES=MIG-%s gpuhal-probe", one->partition);
    } else if (is_nvidia) {
        make_an_instance(one, out);
    }
}

/* If a driver lists no devices, its plugin may guess that this process may not open the nodes. The survey has already
 * checked them, or another API lists this GPU, so the driver is at fault. */
static void find_none_listed(const gpuhal_hardware *one, const gpuhal_candidate *candidate,
                             gpuhal_hardware_finding *out)
{
    const char *reason = reason_of(candidate);
    static const char failed[] =
        " lists no device, although this process may open the nodes of this GPU: the driver could not set up the GPU";
    const bool is_guess = strstr(reason, "missing access to device nodes");
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "%s%s%s",
                          gpuhal_hardware_api_name(candidate->name), is_guess ? failed : ": ", is_guess ? "" : reason);
    gpuhal_hardware_read_log(one, GPUHAL_HARDWARE_UNUSED_ANSWERS, out->fix, sizeof out->fix);
}

/* The driver must be working. Returns whether the reason is known. */
static bool find_unlisted(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const gpuhal_candidate *candidate,
                          gpuhal_hardware_finding *out)
{
    if (gpuhal_hardware_find_variable(survey, one, candidate, out)) {
        return true;
    }
    if (lists_a_part(candidate)) {
        gpuhal_hardware_found(
            out, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE,
            "CUDA gives a program either a part of a divided GPU (MIG) or whole GPUs; here it gives a part");
        gpuhal_hardware_text(out->fix, sizeof out->fix, "nvidia-smi -L");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# to use whole GPUs, with UUIDs of that list:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "CUDA_VISIBLE_DEVICES=GPU-… COMMAND");
        return true;
    }
    if (one->unlisted[0]) { /* another API lists the hardware */
        gpuhal_hardware_find_stated(one, out);
        return true;
    }
    if (one->info.last_seen) {
        char day[24];
        gpuhal_hardware_day(one->info.last_seen, day, sizeof day);
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM,
                              "it is on the bus, but %s does not list it any more; it did on %s",
                              gpuhal_hardware_api_name(candidate->name), day);
        gpuhal_hardware_read_log(one, GPUHAL_HARDWARE_UNUSED_ANSWERS, out->fix, sizeof out->fix);
        return true;
    }
    if (candidate->state == GPUHAL_PLUGIN_NO_DEVICE && candidate->reason &&
        (strcmp(candidate->name, "cuda") == 0 || strcmp(candidate->name, "rocm") == 0)) {
        find_none_listed(one, candidate, out);
        return true;
    }
    if (strcmp(candidate->name, "cuda") == 0) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM,
                              "CUDA lists other GPUs, but not this one");
        gpuhal_hardware_read_log(one, GPUHAL_HARDWARE_UNUSED_ANSWERS, out->fix, sizeof out->fix);
        return true;
    }
    return false;
}

/* Returns whether the plugin's report explains why the hardware is not listed. It does not if the plugin's library is
 * missing or has no driver for this vendor. */
static bool find_of(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const gpuhal_candidate *candidate,
                    gpuhal_hardware_finding *out)
{
    switch (candidate->state) {
    case GPUHAL_PLUGIN_NO_DRIVER:
        return false;
    case GPUHAL_PLUGIN_OK:
    case GPUHAL_PLUGIN_NO_DEVICE:
        return find_unlisted(survey, one, candidate, out);
    case GPUHAL_PLUGIN_EXCLUDED:
        gpuhal_hardware_find_excluded(survey->settings, candidate, out);
        return true;
    case GPUHAL_PLUGIN_NO_PERMISSION:
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM, "%s: %s",
                              gpuhal_hardware_api_name(candidate->name), reason_of(candidate));
        gpuhal_hardware_text(out->fix, sizeof out->fix, "ls -l %s",
                             one->vendor_node[0] ? one->vendor_node : one->drm_render_node);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# this user must be in its group, which must have rw");
        return true;
    case GPUHAL_PLUGIN_QUARANTINED:
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_QUARANTINED, GPUHAL_HARDWARE_PROBLEM, "%s: %s",
                              gpuhal_hardware_api_name(candidate->name), reason_of(candidate));
        gpuhal_hardware_text(out->fix, sizeof out->fix, "gpuhal-probe --retry %s", candidate->name);
        return true;
    case GPUHAL_PLUGIN_TIMED_OUT:
        find_crash(one, candidate, out);
        return true;
    case GPUHAL_PLUGIN_FAILED:
    case GPUHAL_PLUGIN_INCOMPATIBLE:
        if (candidate->signal) {
            find_crash(one, candidate, out);
        } else {
            find_failure(survey, one, candidate, out);
        }
        return true;
    default:
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "%s: %s",
                              gpuhal_hardware_api_name(candidate->name), reason_of(candidate));
        gpuhal_hardware_text(out->fix, sizeof out->fix, "gpuhal-probe --explain %s", candidate->name);
        return true;
    }
}

bool gpuhal_hardware_has_library(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one)
{
    const char *const vendors = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA ? "cuda"
                                : one->info.vendor_id == GPUHAL_VENDOR_AMD  ? "rocm"
                                                                            : NULL;
    const gpuhal_candidates *candidates = &survey->devices->candidates;
    const gpuhal_candidate *candidate = vendors ? gpuhal_hardware_candidate_of(candidates, vendors) : NULL;
    return candidate && candidate->driver && candidate->state != GPUHAL_PLUGIN_NO_DRIVER;
}

static void find_no_library(gpuhal_hardware_survey *survey, const gpuhal_hardware *one,
                            const gpuhal_candidates *candidates, const char *const *apis, gpuhal_hardware_finding *out)
{
    const bool is_own = strcmp(apis[0], "vulkan") != 0;
    const bool is_module = strcmp(one->kernel_driver, "nvidia") == 0 || strcmp(one->kernel_driver, "nvgpu") == 0;
    /* The kernel module without the vendor's library is an incomplete driver. If another GPU is usable, this GPU may
     * only drive a display and not need the library. */
    const bool is_problem = is_module && !gpuhal_hardware_machine_of(survey)->is_usable;
    const gpuhal_hardware_grade grade = is_problem ? GPUHAL_HARDWARE_PROBLEM : GPUHAL_HARDWARE_WARNING;
    if (is_own && !gpuhal_hardware_candidate_of(candidates, apis[0])) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_LIBRARY, grade,
                              "this library's plugin for %s is not installed (package gpuhal-plugin-%s)",
                              gpuhal_hardware_api_name(apis[0]), apis[0]);
        gpuhal_hardware_text(out->fix, sizeof out->fix, "ls " GPUHAL_PLUGIN_DIRECTORY);
        return;
    }
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_LIBRARY, grade,
                          is_own ? "%s is not installed; its kernel driver, %s, is loaded"
                                 : "%.0sno driver of Vulkan or OpenCL for it is installed; its kernel driver, %s, is "
                                   "loaded",
                          gpuhal_hardware_api_name(apis[0]), one->kernel_driver);
    gpuhal_hardware_install_library(survey, one, out->fix, sizeof out->fix);
}

void gpuhal_hardware_find_api(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const gpuhal_candidates *candidates = &survey->devices->candidates;
    const char *apis[GPUHAL_HARDWARE_APIS + 1];
    gpuhal_hardware_list_apis(one, apis);
    for (size_t i = 0; apis[i]; i++) {
        const gpuhal_candidate *candidate = gpuhal_hardware_candidate_of(candidates, apis[i]);
        if (candidate && find_of(survey, one, candidate, out)) {
            return;
        }
    }
    find_no_library(survey, one, candidates, apis, out);
}

void gpuhal_hardware_find_rest(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const char *apis[GPUHAL_HARDWARE_APIS + 1];
    gpuhal_hardware_list_apis(one, apis);
    const gpuhal_candidate *candidate = gpuhal_hardware_candidate_of(&survey->devices->candidates, apis[0]);
    gpuhal_hardware_finding own = {0};
    const bool is_own = strcmp(apis[0], "vulkan") != 0 && !one->is_seen_by_vendor && candidate;
    const bool is_wanted =
        is_own && candidate->state != GPUHAL_PLUGIN_EXCLUDED && candidate->state != GPUHAL_PLUGIN_NO_DRIVER;
    if (is_wanted && find_of(survey, one, candidate, &own)) {
        /* HIP does not list GPUs that it does not support, such as integrated GPUs. */
        const bool is_no_gpu_of_it = candidate->state == GPUHAL_PLUGIN_NO_DEVICE && strcmp(apis[0], "rocm") == 0;
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_READY, is_no_gpu_of_it ? GPUHAL_HARDWARE_WARNING : own.grade,
                              "other APIs can use it, but %s cannot: %s", gpuhal_hardware_api_name(apis[0]), own.why);
        snprintf(out->fix, sizeof out->fix, "%s", own.fix);
    }
}
