/* node/hardware_order.c: the GPUs that this process was supposed to be given, according to Slurm's variables and the
 * variables that request devices from container runtimes. The device nodes (hardware_given.c) and the drivers' lists
 * show which GPUs it was given.
 */
#include "node/hardware.h"

#include "device/for_node.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST = 4096 }; /* maximum number of devices in one range */

/* ---- lists: "0,2-3,GPU-3fa0…", in Level Zero "0.0,0.1" */

/* Reads an entry's numbers, which may include a partition ("0:1", "0.1"). Returns false for a UUID or an address. */
static bool read_numbers(const char *entry, unsigned long *out_first, unsigned long *out_last)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*entry)) {
        return false;
    }
    *out_first = *out_last = strtoul(entry, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1])) {
        *out_last = strtoul(end + 1, &end, 10);
    } else if (*end == ':' || *end == '.') {
        end += 1 + strspn(end + 1, "0123456789");
    }
    return (*end == 0 || *end == ',') && *out_last >= *out_first && *out_last - *out_first < MOST;
}

uint32_t gpuhal_hardware_count_named(const char *value)
{
    uint32_t count = 0;
    const char *before = "";
    while (*value && *value != '-' && strncmp(value, "NoDevFiles", strlen("NoDevFiles")) != 0) {
        const size_t length = strcspn(value, ","), whole = strcspn(value, ",.");
        const bool is_same = whole < length && strncmp(before, value, whole + 1) == 0; /* another partition of the same
                                                                                        * device */
        unsigned long first = 0, last = 0;
        count += length == 0 || is_same ? 0 : read_numbers(value, &first, &last) ? (uint32_t)(last - first) + 1 : 1;
        before = value;
        value += length + (value[length] == ',');
    }
    return count;
}

/* ---- Slurm */

/* Parses "2", "a100:2" or "gpu:a100:2,gpu:v100:1". Returns 0 if the variable is not set or has another form. */
static uint32_t count_in(const char *variable)
{
    const char *value = gpuhal_os_environment(variable);
    unsigned long count = 0;
    while (value && *value) {
        const size_t length = strcspn(value, ",");
        const char *colon = memchr(value, ':', length);
        while (colon && memchr(colon + 1, ':', length - (size_t)(colon + 1 - value))) {
            colon = memchr(colon + 1, ':', length - (size_t)(colon + 1 - value));
        }
        count += strtoul(colon ? colon + 1 : value, NULL, 10);
        value += length + (value[length] == ',');
    }
    return count < MOST ? (uint32_t)count : 0;
}

/* For a step, Slurm sets a list; each task may use a part of it. For a batch script, Slurm sets the job's list. The
 * other variables contain only a number (sbatch(1), srun(1), "output environment variables"). */
uint32_t gpuhal_hardware_count_of_job(void)
{
    static const char *const lists[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};
    static const char *const numbers[] = {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *value = gpuhal_os_environment(lists[i]);
        if (value && *value) {
            const uint32_t of_task = i == 0 ? count_in("SLURM_GPUS_PER_TASK") : 0;
            const uint32_t count = gpuhal_hardware_count_named(value);
            return of_task > 0 && of_task < count ? of_task : count;
        }
    }
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && count == 0; i++) {
        count = count_in(numbers[i]);
    }
    return count > 0 ? count : UINT32_MAX;
}

/* ---- container runtimes */

/* Returns the runtime's number for the GPU: its position in bus order among the GPUs of the same driver. */
static uint32_t number_of(const gpuhal_hardware_survey *survey, const gpuhal_hardware *one)
{
    uint32_t number = 0;
    for (const gpuhal_hardware *other = survey->list; other < one; other++) {
        number += strcmp(other->kernel_driver, one->kernel_driver) == 0 && !other->is_excluded &&
                  !other->is_virtual_function && !other->partition[0] && other->info.state != GPUHAL_HARDWARE_GONE;
    }
    return number;
}

/* NVIDIA's runtime also accepts UUID prefixes. *out_known is true if each entry, up to the first that names the GPU, is
 * a number, a range, a UUID or empty. */
static bool names(const char *value, uint32_t number, const char *uuid, bool *out_known)
{
    *out_known = true;
    bool found = false;
    for (size_t length = 0; *value && !found; value += length + (value[length] == ',')) {
        unsigned long first = 0, last = 0;
        length = strcspn(value, ",");
        const bool counts = read_numbers(value, &first, &last);
        const bool is_uuid = strncasecmp(value, "GPU-", 4) == 0 || strncasecmp(value, "MIG-", 4) == 0;
        found = counts ? number >= first && number <= last
                       : is_uuid && length > 4 && length <= strlen(uuid) && strncasecmp(value, uuid, length) == 0;
        *out_known = *out_known && (counts || is_uuid || length == 0);
    }
    return found;
}

/* NVIDIA's runtime does nothing if its variable is "void" or empty; another runtime may have given GPUs to the
 * container. A path refers to a list elsewhere. Entries of other forms (AMD UUIDs, PCI addresses, CDI names) are
 * inconclusive. */
bool gpuhal_hardware_find_order(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_order *out)
{
    const bool is_nvidia = strcmp(one->kernel_driver, "nvidia") == 0,
               is_amd = strcmp(one->kernel_driver, "amdgpu") == 0;
    const bool is_container = gpuhal_hardware_machine_of(survey)->place != GPUHAL_PLACE_HOST;
    char text[2048], uuid[64] = "";
    *out = (gpuhal_hardware_order){.name = is_nvidia ? "NVIDIA_VISIBLE_DEVICES" : "AMD_VISIBLE_DEVICES"};
    out->value = is_container && (is_nvidia || is_amd) ? gpuhal_os_environment(out->name) : NULL;
    if (!out->value || !*out->value || *out->value == '/' || strcmp(out->value, "void") == 0) {
        return false;
    }
    if (is_nvidia &&
        gpuhal_hardware_bytes(survey, text, sizeof text, "/proc/driver/nvidia/gpus/%s/information", one->address) > 0) {
        (void)gpuhal_hardware_value(text, "GPU UUID", uuid, sizeof uuid);
    }
    bool is_known = true;
    const bool is_none = strcmp(out->value, "none") == 0;
    out->is_all = strcmp(out->value, "all") == 0;
    out->names_it = out->is_all || (!is_none && names(out->value, number_of(survey, one), uuid, &is_known));
    out->count = out->is_all ? 1 : is_none ? 0 : gpuhal_hardware_count_named(out->value);
    return is_known;
}
