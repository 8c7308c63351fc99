/* device/variable.c: see variable.h. */
#include "device/variable.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVIDIA = 0x10de, AMD = 0x1002, INTEL = 0x8086 };

static const gpuhal_variable variables[] = {
    {"CUDA_VISIBLE_DEVICES", "CUDA", "cuda", NVIDIA,
     GPUHAL_VARIABLE_ONE_KIND | GPUHAL_VARIABLE_CUDA_ORDER | GPUHAL_VARIABLE_OF_HIP, gpuhal_variable_read_list,
     gpuhal_variable_read_cuda, GPUHAL_REPEAT_LEAVES_NONE},
    {"GGML_VK_VISIBLE_DEVICES", "llama.cpp", NULL, 0, GPUHAL_VARIABLE_OF_VULKAN, gpuhal_variable_read_numbers, NULL,
     GPUHAL_REPEAT_IGNORED},
    {"GPU_DEVICE_ORDINAL", "AMD's OpenCL", "opencl", AMD, GPUHAL_VARIABLE_EMPTY_IS_UNSET, gpuhal_variable_read_list,
     gpuhal_variable_read_clr, GPUHAL_REPEAT_IGNORED},
    {"HIP_VISIBLE_DEVICES", "HIP", "rocm", AMD, GPUHAL_VARIABLE_EMPTY_IS_UNSET, gpuhal_variable_read_list,
     gpuhal_variable_read_clr, GPUHAL_REPEAT_IGNORED},
    {"ONEAPI_DEVICE_SELECTOR", "SYCL", NULL, 0, GPUHAL_VARIABLE_EMPTY_IS_UNSET, NULL, NULL, GPUHAL_REPEAT_IGNORED},
    {"ROCR_VISIBLE_DEVICES", "ROCm", "rocm", AMD, 0, gpuhal_variable_read_list, gpuhal_variable_read_rocr,
     GPUHAL_REPEAT_ENDS},
    {"ZE_AFFINITY_MASK", "Level Zero", NULL, INTEL, GPUHAL_VARIABLE_EMPTY_IS_UNSET, gpuhal_variable_read_mask, NULL,
     GPUHAL_REPEAT_IGNORED},
};
/* The rules of CUDA's variable as HIP reads it. */
static const gpuhal_variable cuda_for_hip = {"CUDA_VISIBLE_DEVICES",
                                             "HIP",
                                             "rocm",
                                             AMD,
                                             GPUHAL_VARIABLE_EMPTY_IS_UNSET,
                                             gpuhal_variable_read_list,
                                             gpuhal_variable_read_clr,
                                             GPUHAL_REPEAT_IGNORED};

static bool is(const gpuhal_variable *variable, uint32_t flag)
{
    return (variable->flags & flag) != 0;
}

const gpuhal_variable *gpuhal_variable_find(const char *name)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (strcmp(variables[i].name, name) == 0) {
            return &variables[i];
        }
    }
    return NULL;
}

const char *gpuhal_variable_names(void)
{
    return "CUDA_VISIBLE_DEVICES, GGML_VK_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL, HIP_VISIBLE_DEVICES, "
           "ONEAPI_DEVICE_SELECTOR, ROCR_VISIBLE_DEVICES and ZE_AFFINITY_MASK";
}

static const char *value_of(const char *name)
{
    const char *value = gpuhal_os_environment(name);
    return value ? value : "";
}

/* A variable applies to the GPUs of its vendor, or to every device. */
static bool is_governed(const gpuhal_variable *variable, const gpuhal_entry *entry)
{
    const gpuhal_facts *facts = &entry->listed->facts;
    const uint64_t type = gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, 0);
    const bool is_gpu = type == GPUHAL_DEVICE_GPU || type == GPUHAL_DEVICE_INTEGRATED_GPU;
    const bool software = gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0) == 1;
    if (is(variable, GPUHAL_VARIABLE_OF_VULKAN)) {
        return strcmp(entry->candidate->name, "vulkan") == 0;
    }
    return variable->vendor == 0 ||
           (gpuhal_facts_u64(facts, GPUHAL_FACT_VENDOR_ID, 0) == variable->vendor && is_gpu && !software);
}

static bool is_listed_by(const gpuhal_variable *variable, const gpuhal_entry *entry)
{
    /* A vendor's own backend may omit the vendor id. */
    return strcmp(entry->candidate->name, variable->backend) == 0 &&
           (strcmp(variable->backend, "opencl") != 0 || is_governed(variable, entry));
}

/* ---- the devices in the variable's order */

static bool same_partition(const gpuhal_device_snapshot *snapshot, uint32_t a, uint32_t b)
{
    return snapshot->identity.interfaces[a].partition == snapshot->identity.interfaces[b].partition;
}

static const char *pci_of(const gpuhal_device_snapshot *snapshot, uint32_t entry)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        if (same_partition(snapshot, i, entry) && *snapshot->identity.interfaces[i].pci) {
            return snapshot->identity.interfaces[i].pci;
        }
    }
    return "";
}

/* Writes the UUID in the vendor's form. For AMD GPUs, only HIP states UUIDs of this form. */
static const char *uuid_of(const gpuhal_device_snapshot *snapshot, uint32_t entry, uint32_t vendor, char space[40])
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const char *uuid = snapshot->identity.interfaces[i].values[GPUHAL_IDENTITY_UUID];
        if (!uuid || !same_partition(snapshot, i, entry)) {
            continue;
        }
        if (vendor != AMD) {
            snprintf(space, 40, "%s", uuid);
            return space;
        }
        if (gpuhal_interface_unique_id(uuid, space)) {
            return space;
        }
    }
    return NULL;
}

typedef struct place {
    gpuhal_counted counted;
    char pci[24], uuid[40];
} place;

static int compare_places(const void *one, const void *other)
{
    const place *a = one, *b = other;
    return a->counted.partition != b->counted.partition ? (a->counted.partition ? 1 : -1) : strcmp(a->pci, b->pci);
}

/* Numbers the GPUs if their order is known, that is, if there is only one GPU or the GPUs are ordered by address. */
static void number(const gpuhal_variable *variable, place *places, uint32_t count)
{
    uint32_t wholes = 0;
    bool placed = is(variable, GPUHAL_VARIABLE_CUDA_ORDER) && strcmp(value_of("CUDA_DEVICE_ORDER"), "PCI_BUS_ID") == 0;
    qsort(places, count, sizeof *places, compare_places);
    for (uint32_t i = 0; i < count; i++) {
        wholes += !places[i].counted.partition;
        placed = placed && (places[i].counted.partition || *places[i].pci);
    }
    for (uint32_t i = 0; i < wholes && (placed || wholes == 1); i++) {
        places[i].counted.number = i;
    }
}

/* There is one place for each partition or, for llama.cpp, one for each Vulkan device. */
static uint32_t read_places(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot, place *places)
{
    const bool vulkan = is(variable, GPUHAL_VARIABLE_OF_VULKAN);
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_entry *entry = &snapshot->entries[i];
        bool is_new = is_governed(variable, entry);
        for (uint32_t p = 0; p < count && is_new && !vulkan; p++) {
            is_new = !same_partition(snapshot, places[p].counted.entry, i);
        }
        if (!is_new) {
            continue;
        }
        place *to = &places[count++];
        *to = (place){.counted = {.entry = i, .number = -1}};
        to->counted.partition = *snapshot->identity.interfaces[i].partition_name != 0;
        snprintf(to->pci, sizeof to->pci, "%s", pci_of(snapshot, i));
        if (vulkan) {
            to->counted.number =
                (int64_t)gpuhal_facts_u64(&entry->listed->facts, GPUHAL_FACT_NATIVE_INDEX, entry->listed->index);
        }
    }
    if (!vulkan) {
        number(variable, places, count);
    }
    return count;
}

/* The text determines the devices, because no library is known to have applied the variable. */
static gpuhal_status read_text(const gpuhal_variable *variable, const char *value,
                               const gpuhal_device_snapshot *snapshot, gpuhal_picks *picks)
{
    if (!variable->read_value) {
        return gpuhal_variable_read_sycl(variable, value, snapshot, picks);
    }
    place *places = calloc(snapshot->identity.count + 1u, sizeof *places);
    gpuhal_counted *counted = calloc(snapshot->identity.count + 1u, sizeof *counted);
    gpuhal_status status = places && counted ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        const uint32_t count = read_places(variable, snapshot, places);
        for (uint32_t i = 0; i < count; i++) {
            counted[i] = places[i].counted;
            counted[i].uuid = uuid_of(snapshot, counted[i].entry, variable->vendor, places[i].uuid);
        }
        status = gpuhal_variable_read(variable, value, counted, count, picks);
    }
    free(places);
    free(counted);
    return status;
}

/* ---- variables that a library has applied */

/* If variables of both ROCr and HIP are set, the backend lists the devices that both allow. */
static bool is_alone(const gpuhal_variable *variable)
{
    static const char *const of_amd[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"};
    bool alone = true;
    for (size_t i = 0; i < 3 && variable->vendor == AMD; i++) {
        alone = alone && (strcmp(of_amd[i], variable->name) == 0 || !gpuhal_os_environment(of_amd[i]));
    }
    return alone;
}

static void read_listed(const gpuhal_variable *variable, const char *value, const gpuhal_device_snapshot *snapshot,
                        gpuhal_picks *picks)
{
    (void)gpuhal_variable_read(variable, value, NULL, 0, picks);
    const uint32_t wanted = picks->count;
    picks->count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count && picks->count < GPUHAL_VARIABLE_PICKS; i++) {
        if (is_listed_by(variable, &snapshot->entries[i])) {
            picks->entries[picks->count++] = i;
        }
    }
    if (picks->count > wanted) {
        *picks->note = 0; /* a version of the library with other rules has read the variable */
    }
    if (picks->count < wanted && is_alone(variable)) {
        gpuhal_variable_say(picks, "%s lists %u of the %u devices that %s names: the first unknown one ends the list",
                            variable->reader, picks->count, wanted, variable->name);
    } else if (!is_alone(variable)) {
        gpuhal_variable_say(picks, "another variable is set, too, and %s lists the devices that both leave",
                            variable->reader);
    }
}

/* If the library lists no devices, its variable may not be the reason. */
static bool has_listed(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot)
{
    bool has = false;
    for (uint32_t i = 0; variable->backend && i < snapshot->identity.count; i++) {
        has = has || is_listed_by(variable, &snapshot->entries[i]);
    }
    return has;
}

static bool has_vendor(const gpuhal_device_snapshot *snapshot, uint32_t vendor)
{
    bool has = false;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_facts *facts = &snapshot->entries[i].listed->facts;
        has = has || gpuhal_facts_u64(facts, GPUHAL_FACT_VENDOR_ID, 0) == vendor;
    }
    return has;
}

static void pick_all(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot, gpuhal_picks *picks)
{
    for (uint32_t i = 0; i < snapshot->identity.count && picks->count < GPUHAL_VARIABLE_PICKS; i++) {
        const gpuhal_entry *entry = &snapshot->entries[i];
        const uint64_t type = gpuhal_facts_u64(&entry->listed->facts, GPUHAL_FACT_TYPE, 0);
        /* By default, llama.cpp uses only GPUs. */
        const bool kind = !is(variable, GPUHAL_VARIABLE_OF_VULKAN) || type == GPUHAL_DEVICE_GPU ||
                          type == GPUHAL_DEVICE_INTEGRATED_GPU;
        if (kind && is_governed(variable, entry)) {
            picks->entries[picks->count++] = i;
        }
    }
    gpuhal_variable_say(picks, "%s is not set, so it leaves every device", variable->name);
}

gpuhal_status gpuhal_variable_devices(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot,
                                      gpuhal_picks *out_picks)
{
    const char *value = gpuhal_os_environment(variable->name);
    out_picks->count = 0;
    *out_picks->note = 0;
    if (is(variable, GPUHAL_VARIABLE_OF_HIP) && !has_vendor(snapshot, NVIDIA) && has_vendor(snapshot, AMD) &&
        !*value_of("HIP_VISIBLE_DEVICES")) {
        variable = &cuda_for_hip;
    }
    if (!value || (!*value && is(variable, GPUHAL_VARIABLE_EMPTY_IS_UNSET))) {
        pick_all(variable, snapshot, out_picks);
        return GPUHAL_OK;
    }
    if (has_listed(variable, snapshot)) {
        read_listed(variable, value, snapshot, out_picks);
        return GPUHAL_OK;
    }
    return read_text(variable, value, snapshot, out_picks);
}
