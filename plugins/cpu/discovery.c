/* cpu/discovery.c: the devices and their facts.
 *
 * The machine is one device, unless the option cpu.devices lists sizes ("5G,6G"). Then each size is one device with
 * exactly that much memory. The option cpu.threads sets the number of threads that run one launch. The default is the
 * number of processors.
 */
#include "device.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

gpuhal_cpu_entry *gpuhal_cpu_find(gpuhal_plugin_instance *instance, uint32_t index)
{
    return index < instance->count ? &instance->entries[index] : NULL;
}

/* Parses a size such as "5G" or "4096", and moves *text past it. */
static bool parse_size(const char **text, uint64_t *out_bytes)
{
    uint64_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    uint32_t shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
    if (at == *text || value == 0 || value > UINT64_MAX >> shift) {
        return false;
    }
    *text = at + (shift > 0);
    *out_bytes = value << shift;
    return true;
}

/* Returns the number of sizes in the list, or 0 if it is malformed. */
static uint32_t parse_sizes(const char *text, uint64_t sizes[GPUHAL_CPU_DEVICES_MAX])
{
    for (uint32_t count = 0; count < GPUHAL_CPU_DEVICES_MAX; text++) {
        if (!parse_size(&text, &sizes[count++])) {
            return 0;
        }
        if (*text == '\0') {
            return count;
        }
        if (*text != ',') {
            return 0;
        }
    }
    return 0;
}

static gpuhal_status refuse_option(const gpuhal_host *host, const char *value)
{
    char text[256];
    snprintf(text, sizeof text,
             "the option cpu.devices is \"%.100s\"; it takes 1 to %u sizes such as 512M,6G with K, M, G or no letter",
             value, GPUHAL_CPU_DEVICES_MAX);
    return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
}

/* *out_threads is 0 if the option is not set. */
static gpuhal_status read_threads(const gpuhal_host *host, uint32_t *out_threads)
{
    char given[64], *end = given, text[256];
    gpuhal_status status = host->option(host, "cpu.threads", given, sizeof given);
    *out_threads = 0;
    if (status == GPUHAL_ERROR_NOT_FOUND) {
        return GPUHAL_OK;
    }
    const unsigned long threads = given[0] >= '0' && given[0] <= '9' ? strtoul(given, &end, 10) : 0;
    if (status != GPUHAL_OK || *end != '\0' || threads == 0 || threads > GPUHAL_CPU_THREADS_MAX) {
        snprintf(text, sizeof text, "the option cpu.threads is \"%s\"; it takes a number from 1 to %u", given,
                 GPUHAL_CPU_THREADS_MAX);
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
    }
    *out_threads = (uint32_t)threads;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_cpu_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    uint64_t sizes[GPUHAL_CPU_DEVICES_MAX] = {0};
    uint32_t count = 1;
    gpuhal_cpu_memory memory;
    char given[512], root[sizeof(*out_instance)->root] = "";
    gpuhal_status status = host->option(host, "cpu.devices", given, sizeof given);
    const bool is_given = status != GPUHAL_ERROR_NOT_FOUND;
    if (is_given && (status != GPUHAL_OK || (count = parse_sizes(given, sizes)) == 0)) {
        return refuse_option(host, given);
    }
    uint32_t threads;
    status = read_threads(host, &threads);
    if (status != GPUHAL_OK) {
        return status;
    }
    (void)host->option(host, "cpu.system_root", root, sizeof root);
    if (!is_given && !gpuhal_cpu_system_memory(root, &memory)) {
        return host->report(host, GPUHAL_ERROR_DRIVER, NULL, 0,
                            "the size of the memory is reported neither by /proc/meminfo nor by sysinfo");
    }

    gpuhal_plugin_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    instance->count = count;
    memcpy(instance->root, root, sizeof root);
    threads = threads > 0 ? threads : gpuhal_cpu_system_processors(root);
    instance->threads = threads < GPUHAL_CPU_THREADS_MAX ? threads : GPUHAL_CPU_THREADS_MAX;
    instance->has_mask = sched_getaffinity(0, sizeof instance->mask, &instance->mask) == 0;
    for (uint32_t i = 0; i < count; i++) {
        instance->entries[i].limited = is_given;
        instance->entries[i].total = is_given ? sizes[i] : memory.total;
    }
    *out_instance = instance;
    return GPUHAL_OK;
}

/* Facts that do not exist for a processor, with the reasons. */
static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_FACT_VENDOR_ID, "a processor has no PCI vendor id"},
    {GPUHAL_FACT_API_VERSION, "there is no vendor API in between"},
    {GPUHAL_FACT_PCI_ADDRESS, "a processor is not on a bus"},
    {GPUHAL_FACT_UUID, "a processor has none"},
    {GPUHAL_FACT_LUID, "a processor has none"},
    {GPUHAL_FACT_DRM_RENDER_NODE, "a processor has no device node"},
    {GPUHAL_FACT_PARTITION, "a processor is not partitioned"},
    {GPUHAL_FACT_ALLOCATION_MAX_COUNT, "only the memory itself limits the number of allocations"},
    {GPUHAL_FACT_DRIVER_UUID, "there is no driver; a descriptor alone identifies exported memory"},
    {GPUHAL_FACT_ADOPT_KINDS, "there is no vendor object to adopt"},
    {GPUHAL_FACT_PHYSICAL_QUEUES, "copies run on the threads of the caller"},
    {GPUHAL_FACT_SUBGROUP_SIZE_MIN, "the compiler chooses the width of vectors"},
    {GPUHAL_FACT_SUBGROUP_SIZE_MAX, "the compiler chooses the width of vectors"},
    {GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, "Linux does not report it"},
};

static void name_processor(const gpuhal_host *host, const char *root, gpuhal_sink *sink)
{
    gpuhal_cpu_processor processor;
    gpuhal_cpu_system_processor(root, &processor);
    host->text(host, sink, GPUHAL_FACT_NAME, processor.name[0] != '\0' ? processor.name : "processor");
    if (processor.vendor[0] != '\0') {
        host->text(host, sink, GPUHAL_FACT_VENDOR, processor.vendor);
    } else {
        host->missing(host, sink, GPUHAL_FACT_VENDOR, GPUHAL_MISSING_FAILED, "/proc/cpuinfo does not name it");
    }
}

static void list_system(const gpuhal_host *host, const char *root, gpuhal_sink *sink)
{
    uint64_t node, hertz;
    uint32_t cpus = gpuhal_cpu_system_affinity(root);
    host->u64(host, sink, GPUHAL_FACT_COMPUTE_UNITS, cpus);
    if (gpuhal_cpu_system_node(root, &node)) {
        host->u64(host, sink, GPUHAL_FACT_NUMA_NODE, node);
    } else {
        host->missing(host, sink, GPUHAL_FACT_NUMA_NODE, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the machine has several memory nodes, or its kernel knows none");
    }
    if (gpuhal_cpu_system_clock(root, cpus, &hertz)) {
        host->u64(host, sink, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, hertz);
    } else {
        host->missing(host, sink, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the kernel does not steer the clock here (no cpufreq)");
    }

    struct utsname kernel;
    char release[sizeof kernel.release], text[sizeof kernel.sysname + sizeof release];
    if (uname(&kernel) == 0) {
        const bool known = gpuhal_cpu_system_release(root, release, sizeof release);
        snprintf(text, sizeof text, "%s %s", kernel.sysname, known ? release : kernel.release);
        host->text(host, sink, GPUHAL_FACT_DRIVER_VERSION, text);
        host->text(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, kernel.machine);
    }
}

gpuhal_status gpuhal_cpu_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    /* There is one memory, at one address, so it is of every kind. */
    const uint64_t exportable = 1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK |
                                1u << GPUHAL_MEMORY_DEVICE_MAPPED;
    const uint64_t every_kind = exportable | 1u << GPUHAL_MEMORY_MIGRATING;
    for (uint32_t index = 0; index < instance->count; index++) {
        uint64_t total = instance->entries[index].total;
        host->device(host, sink, index);
        name_processor(host, instance->root, sink);
        list_system(host, instance->root, sink);
        host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_CPU);
        host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 0);
        host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, index);
        host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, total);
        host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, total);
        host->u64(host, sink, GPUHAL_FACT_BINDING_MAX_BYTES, total);
        host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, GPUHAL_CPU_BINDING_ALIGNMENT);
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, GPUHAL_CPU_FORMATS);
        host->u64(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX, UINT32_MAX);
        host->u64(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_X, UINT32_MAX);
        host->u64(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_Y, UINT32_MAX);
        host->u64(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_Z, UINT32_MAX);
        host->u64(host, sink, GPUHAL_FACT_GROUP_MEMORY_BYTES, GPUHAL_CPU_GROUP_MEMORY);
        host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 1);
        host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
        host->u64(host, sink, GPUHAL_FACT_PAGEABLE_ACCESS, 2);
        host->u64(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, 1);
        host->u64(host, sink, GPUHAL_FACT_DATA_TYPES, gpuhal_cpu_system_data_types(instance->root));
        host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, every_kind);
        host->u64(host, sink, GPUHAL_FACT_KERNEL_KINDS, every_kind);
        host->u64(host, sink, GPUHAL_FACT_LAUNCH_FORMS, GPUHAL_CPU_LAUNCH_FORMS);
        host->u64(host, sink, GPUHAL_FACT_HOST_VISIBLE_KINDS, every_kind);
        host->u64(host, sink, GPUHAL_FACT_HOST_COHERENT_KINDS, every_kind);
        host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 1);
        host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS,
                  1u << GPUHAL_HANDLE_HOST_POINTER | 1u << GPUHAL_HANDLE_OPAQUE_FD);
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS,
                  1u << GPUHAL_HANDLE_HOST_POINTER | 1u << GPUHAL_HANDLE_OPAQUE_FD);
        host->u64(host, sink, GPUHAL_FACT_EXPORTABLE_KINDS, exportable);
        for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
            host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
        }
    }
    return GPUHAL_OK;
}
