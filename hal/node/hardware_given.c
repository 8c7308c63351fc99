/* node/hardware_given.c: the GPUs that this process was given. A container, pod or job may be given only some of the
 * machine's GPUs. Lacking the others is not a fault. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void not_given(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *node, bool is_refused,
                      gpuhal_hardware_finding *out)
{
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NOT_GIVEN, GPUHAL_HARDWARE_FINE,
                          is_refused ? "this %s was not given %s: its device cgroup refuses it"
                                     : "this %s was not given %s",
                          gpuhal_hardware_place_name(gpuhal_hardware_machine_of(survey)), node);
    gpuhal_hardware_give(survey, one, out->fix, sizeof out->fix);
}

static bool is_there_and_refused(const gpuhal_hardware_survey *survey, const char *node)
{
    char path[GPUHAL_SYSTEM_ROOT_BYTES + 32];
    snprintf(path, sizeof path, "%s%s", survey->root, node);
    return gpuhal_hardware_is_there(survey, "%s", node) && gpuhal_os_may_use(path) == EPERM;
}

static uint32_t count_given(const gpuhal_hardware_survey *survey, const char *driver)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < survey->count; i++) {
        const gpuhal_hardware *one = &survey->list[i];
        const char *node = strcmp(driver, "nvidia") == 0 ? one->vendor_node : one->drm_render_node;
        count += strcmp(one->kernel_driver, driver) == 0 && !one->partition[0] && *node &&
                 gpuhal_hardware_is_there(survey, "%s", node) && !is_there_and_refused(survey, node);
    }
    return count;
}

/* Returns whether this container was supposed to be given the GPU and has fewer GPUs than the variable names ("all"
 * counts as one). If the numbers are equal, the runtime may number GPUs in a different order. Reloading systemd removes
 * nodes from the device cgroups of running containers (NVIDIA/nvidia-docker#1730). Images request all GPUs by default;
 * if all are requested, a missing node is not a fault. */
static bool find_taken(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *node, bool is_refused,
                       gpuhal_hardware_finding *out)
{
    gpuhal_hardware_order order;
    if (!gpuhal_hardware_find_order(survey, one, &order) || !order.names_it || (order.is_all && !is_refused) ||
        count_given(survey, one->kernel_driver) >= order.count) {
        return false;
    }
    const char *const who = gpuhal_hardware_place_name(gpuhal_hardware_machine_of(survey));
    const char *const more = strlen(order.value) > 60 ? "…" : "";
    if (is_refused) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM,
                              "%s=%.60s%s asks for this GPU, but the device cgroup of this %s refuses %s", order.name,
                              order.value, more, who, node);
        gpuhal_hardware_restart(survey, out->fix, sizeof out->fix);
    } else {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM,
                              "%s=%.60s%s asks for this GPU, but this %s has no %s", order.name, order.value, more, who,
                              node);
        gpuhal_hardware_give(survey, one, out->fix, sizeof out->fix);
    }
    return true;
}

/* A host has the nodes of all its hardware. A container has only the nodes that it was given, and may open no others.
 */
static bool find_node(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *node,
                      gpuhal_hardware_finding *out)
{
    const bool is_refused = is_there_and_refused(survey, node);
    const bool is_missing =
        !gpuhal_hardware_is_there(survey, "%s", node) && gpuhal_hardware_machine_of(survey)->place != GPUHAL_PLACE_HOST;
    if (!*node || (!is_refused && !is_missing)) {
        return false;
    }
    if (!find_taken(survey, one, node, is_refused, out)) {
        not_given(survey, one, node, is_refused, out);
    }
    return true;
}

bool gpuhal_hardware_find_given(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                gpuhal_hardware_finding *out)
{
    /* Without ROCm's libraries, /dev/kfd is irrelevant. */
    const bool is_kfd = strcmp(one->vendor_node, "/dev/kfd") == 0;
    const char *own = is_kfd && !has_library ? "" : one->vendor_node;
    if (strcmp(one->kernel_driver, "nvidia") != 0) {
        return find_node(survey, one, own, out) || find_node(survey, one, one->drm_render_node, out);
    }
    /* The node's number comes from /proc/driver/nvidia, which NVIDIA's runtime limits to the container's GPUs. */
    if (!*own && !one->is_excluded && gpuhal_hardware_machine_of(survey)->place != GPUHAL_PLACE_HOST) {
        not_given(survey, one, "this GPU", false, out);
        return true;
    }
    return find_node(survey, one, own, out) || find_node(survey, one, "/dev/nvidiactl", out);
}
