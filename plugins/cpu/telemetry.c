/* cpu/telemetry.c: values of the processor and its memory, from kernel files.
 *
 * Memory values describe the memory that this process may use within the limits of its control groups. Utilization is
 * the whole machine's utilization since the previous sample. The first sample waits for a few ticks.
 */
#include "sensors.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICKS_LEAST 8u /* total of all processors; a result from fewer ticks is not meaningful */
#define TICK_NS     10000000
#define NAP_NS      2000000   /* minimum duration of one sleep */
#define WAIT_NS     100000000 /* maximum duration of the whole wait */

typedef struct sample {
    const gpuhal_host *host;
    gpuhal_sink *sink;
    const gpuhal_key *keys;
    uint32_t count;
} sample;

static bool wants(const sample *own, gpuhal_key key)
{
    bool wanted = own->count == 0;
    for (uint32_t i = 0; i < own->count; i++) {
        wanted = wanted || own->keys[i] == key;
    }
    return wanted;
}

static void give(const sample *own, gpuhal_key key, gpuhal_cpu_reading reading)
{
    if (reading.reason != 0) {
        own->host->missing(own->host, own->sink, key, reading.reason, reading.why);
        return;
    }
    own->host->source(own->host, own->sink, reading.source);
    own->host->u64(own->host, own->sink, key, reading.value);
}

/* Lists free and used memory from one reading, so that the two add up to the total. The core requests one value at a
 * time, but accepts both values. */
static void give_memory(const sample *own, const gpuhal_plugin_instance *instance, gpuhal_cpu_entry *entry)
{
    gpuhal_cpu_memory memory = {.total = entry->total};
    gpuhal_cpu_reading reading = {.source = entry->limited ? NULL : "proc"};
    if (!wants(own, GPUHAL_VALUE_MEMORY_FREE_BYTES) && !wants(own, GPUHAL_VALUE_MEMORY_USED_BYTES)) {
        return;
    }
    if (entry->limited) {
        memory.free = entry->total - atomic_load(&entry->allocated);
    } else if (!gpuhal_cpu_system_memory(instance->root, &memory)) {
        reading = (gpuhal_cpu_reading){.reason = GPUHAL_MISSING_FAILED, .why = "/proc/meminfo cannot be read"};
    } else if (memory.of_group) {
        reading.source = "cgroup";
    }
    reading.value = memory.free;
    give(own, GPUHAL_VALUE_MEMORY_FREE_BYTES, reading);
    reading.value = memory.total - memory.free;
    give(own, GPUHAL_VALUE_MEMORY_USED_BYTES, reading);
}

/* Both values are in the packages' directories. */
static void give_energy(const sample *own, gpuhal_plugin_instance *instance)
{
    if (wants(own, GPUHAL_VALUE_ENERGY_MICROJOULES) || wants(own, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS)) {
        gpuhal_cpu_reading energy, limit;
        gpuhal_cpu_read_energy(instance->root, &instance->counters, &energy, &limit);
        give(own, GPUHAL_VALUE_ENERGY_MICROJOULES, energy);
        give(own, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, limit);
    }
}

static void give_errors(const sample *own, const char *root)
{
    if (wants(own, GPUHAL_VALUE_ECC_CORRECTED_TOTAL) || wants(own, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL)) {
        gpuhal_cpu_reading corrected, uncorrected;
        gpuhal_cpu_read_ecc(root, &corrected, &uncorrected);
        give(own, GPUHAL_VALUE_ECC_CORRECTED_TOTAL, corrected);
        give(own, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, uncorrected);
    }
}

/* Reads the second number of statm, the number of resident pages. */
static gpuhal_cpu_reading read_own_memory(const char *root)
{
    char *text = gpuhal_cpu_system_text(root, "/proc/self/statm"), *end = NULL;
    const unsigned long long pages =
        text != NULL && strchr(text, ' ') ? strtoull(strchr(text, ' ') + 1, &end, 10) : 0;
    const bool known = pages > 0;
    free(text);
    return known ? (gpuhal_cpu_reading){.value = pages * (uint64_t)sysconf(_SC_PAGESIZE), .source = "proc"}
                 : (gpuhal_cpu_reading){.reason = GPUHAL_MISSING_FAILED, .why = "/proc/self/statm cannot be read"};
}

/* Reads the line "cpu" of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; user includes guests.
 * Returns busy ticks in the upper half and all ticks in the lower half, each modulo 2^32. Returns 0 if unknown. */
static uint64_t read_ticks(const char *root)
{
    char *text = gpuhal_cpu_system_text(root, "/proc/stat");
    unsigned long long t[8] = {0};
    const int fields = text != NULL ? sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
                                             &t[3], &t[4], &t[5], &t[6], &t[7])
                                    : 0;
    free(text);
    const uint64_t busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7], all = busy + t[3] + t[4];
    return fields < 4 ? 0 : (busy & UINT32_MAX) << 32 | (all & UINT32_MAX);
}

/* Sleeps until enough ticks have passed since @p before, at most WAIT_NS. Each sleep is as long as all processors
 * together need for the missing ticks. */
static uint64_t wait_for_ticks(const char *root, uint64_t now, uint64_t before)
{
    for (long left = WAIT_NS; (uint32_t)now - (uint32_t)before < TICKS_LEAST && left > 0;) {
        const long processors = sysconf(_SC_NPROCESSORS_ONLN); /* this call reads a file */
        const long missing = (long)(TICKS_LEAST - ((uint32_t)now - (uint32_t)before));
        const long due = missing * TICK_NS / (processors > 0 ? processors : 1), nap = due > NAP_NS ? due : NAP_NS;
        nanosleep(&(const struct timespec){.tv_nsec = nap < left ? nap : left}, NULL);
        left -= nap;
        now = read_ticks(root);
    }
    return now;
}

static gpuhal_cpu_reading read_utilization(gpuhal_plugin_instance *instance)
{
    gpuhal_cpu_counters *counters = &instance->counters;
    uint64_t now = read_ticks(instance->root), before = atomic_load(&counters->ticks);
    if (now == 0) {
        return (gpuhal_cpu_reading){.reason = GPUHAL_MISSING_FAILED, .why = "/proc/stat cannot be read"};
    }
    if (before == 0) {
        atomic_store(&counters->ticks, now);
        before = now;
    }
    const uint32_t last = atomic_load(&counters->permille);
    if ((uint32_t)now - (uint32_t)before < TICKS_LEAST && last != 0) {
        return (gpuhal_cpu_reading){.value = last - 1, .source = "proc"};
    }
    now = wait_for_ticks(instance->root, now, before);
    const uint32_t busy = (uint32_t)(now >> 32) - (uint32_t)(before >> 32), all = (uint32_t)now - (uint32_t)before;
    /* If the kernel's idle counters decrease, as has been seen, the difference is huge. */
    if (all < TICKS_LEAST || busy > all || all > UINT32_MAX / 2) {
        atomic_store(&counters->ticks, now);
        return (gpuhal_cpu_reading){.reason = GPUHAL_MISSING_FAILED,
                                    .why = "the counters of /proc/stat stand still, or went back"};
    }
    const uint32_t permille = (uint32_t)((uint64_t)busy * 1000 / all);
    atomic_store(&counters->ticks, now);
    atomic_store(&counters->permille, permille + 1);
    return (gpuhal_cpu_reading){.value = permille, .source = "proc"};
}

/* Values that do not exist for a processor, with the reasons. */
static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_VALUE_MEMORY_RESERVED_BYTES, "no driver keeps memory of a processor for itself"},
    {GPUHAL_VALUE_FAN_PERMILLE, "fans belong to the machine, not to the processor"},
    {GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE, "fans belong to the machine, not to the processor"},
    {GPUHAL_VALUE_POWER_MICROWATTS, "Linux counts energy: its growth is the power"},
};

gpuhal_status gpuhal_cpu_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)flags; /* the processor is awake while it runs this function */
    gpuhal_cpu_entry *entry = gpuhal_cpu_find(instance, index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    const sample own = {.host = host, .sink = sink, .keys = keys, .count = count};
    const char *root = instance->root;
#define GIVE(key, reading)                                                                                             \
    if (wants(&own, key)) {                                                                                            \
        give(&own, key, reading);                                                                                      \
    }
    give_memory(&own, instance, entry);
    GIVE(GPUHAL_VALUE_MEMORY_PROCESS_BYTES, read_own_memory(root))
    GIVE(GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, read_utilization(instance))
    GIVE(GPUHAL_VALUE_CLOCK_CORE_HERTZ, gpuhal_cpu_read_clock(root))
    GIVE(GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, gpuhal_cpu_read_temperature(root))
#undef GIVE
    give_energy(&own, instance);
    give_errors(&own, root);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        if (wants(&own, absent[i].key)) {
            host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
        }
    }
    return GPUHAL_OK;
}
