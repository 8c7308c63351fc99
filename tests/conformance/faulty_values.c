/* faulty_values.c: live values of the misbehaving plugin's two devices, and facts about the link between them. */
#include "faulty.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Energy at a constant power of 75 W. */
static uint64_t energy(void)
{
    const uint64_t microjoules = now_ms() * 75000;
    return is(energy_falls) ? UINT64_MAX / 2 - microjoules : is(energy_joules) ? microjoules / 1000000 : microjoules;
}

static uint64_t value_of(gpuhal_key key, uint32_t index)
{
    static atomic_uint samples;
    const uint64_t in_use = gpuhal_faulty_used(is(sample_first_device) || is(sample_of_first) ? 0 : index);
    const uint64_t used = in_use < TOTAL_BYTES ? in_use : TOTAL_BYTES;
    switch (key) {
    case GPUHAL_VALUE_MEMORY_FREE_BYTES:
        if (is(good_shared)) { /* imitates another program that uses more and more memory */
            gpuhal_faulty_take(UINT64_C(256) << 10);
        }
        return is(sample_more_than_all) ? TOTAL_BYTES + 1 : (TOTAL_BYTES - used) >> (is(free_kibibytes) ? 10 : 0);
    case GPUHAL_VALUE_MEMORY_USED_BYTES:
        return is(used_of_all) ? TOTAL_BYTES : is(free_kibibytes) ? used >> 10 : used;
    case GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS:
        return is(temperature_celsius) ? 35 : 35000;
    case GPUHAL_VALUE_POWER_MICROWATTS:
        return is(power_watts) ? 75 : 75000000;
    case GPUHAL_VALUE_POWER_LIMIT_MICROWATTS:
        return is(limit_milliwatts) ? 150000 : 150000000;
    case GPUHAL_VALUE_ENERGY_MICROJOULES:
        return energy();
    case GPUHAL_VALUE_CLOCK_CORE_HERTZ:
        return is(clock_megahertz) ? 1200 : UINT64_C(1200000000);
    case GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE:
        return is(utilization_of_5800) ? 5800 : 580;
    case GPUHAL_VALUE_THROTTLE_REASONS:
        return is(throttle_unknown) ? 1u << 20 : GPUHAL_THROTTLE_IDLE;
    default: /* the key is ECC_CORRECTED_TOTAL */
        return is(total_falls) ? 100000 - atomic_fetch_add(&samples, 1) : 3;
    }
}

static bool is_wanted(const gpuhal_key *keys, uint32_t count, gpuhal_key key)
{
    bool wanted = count == 0;
    for (uint32_t k = 0; k < count; k++) {
        wanted = wanted || keys[k] == key;
    }
    return wanted;
}

gpuhal_status gpuhal_faulty_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    static const gpuhal_key known[] = {
        GPUHAL_VALUE_MEMORY_FREE_BYTES,      GPUHAL_VALUE_MEMORY_USED_BYTES,  GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,
        GPUHAL_VALUE_POWER_MICROWATTS,       GPUHAL_VALUE_ENERGY_MICROJOULES, GPUHAL_VALUE_CLOCK_CORE_HERTZ,
        GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, GPUHAL_VALUE_THROTTLE_REASONS,   GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
        GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
    };
    (void)flags;
    if (is(leak_sample)) {
        gpuhal_faulty_lose_descriptor();
    }
    if (is(fork_silent) && gpuhal_faulty_is_forked()) {
        return host->report(host, GPUHAL_ERROR_DRIVER, NULL, 0, "the parent has the connection");
    }
    if (index >= DEVICES && !is(sample_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (is(keys_beyond) && count > 0) {
        gpuhal_faulty_read_behind(keys, count * (unsigned)sizeof *keys);
    }
    if (is(device_in_sample)) {
        host->device(host, sink, index);
    }
    for (uint32_t k = 0; is(sample_key_error) && k < count; k++) {
        if (keys[k] > GPUHAL_VALUE_MEMORY_USED_BYTES) {
            return GPUHAL_ERROR_INVALID_ARGUMENT;
        }
    }
    if (is(source_of_values)) {
        host->source(host, sink, "Faulty Daemon 1.0");
    }
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (is_wanted(keys, count, known[k])) {
            host->u64(host, sink, known[k], value_of(known[k], index));
        }
    }
    if (is(good_vendor) && is_wanted(keys, count, GPUHAL_VENDOR_FIRST + 2)) {
        host->text(host, sink, GPUHAL_VENDOR_FIRST + 2, "of the vendor alone");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_faulty_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                                 gpuhal_sink *sink)
{
    (void)instance;
    if (is(leak_link)) {
        gpuhal_faulty_lose_descriptor();
    }
    if ((from >= DEVICES || to >= DEVICES || from == to) && !is(link_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    host->u64(host, sink, is(link_fact) ? GPUHAL_FACT_NUMA_NODE : GPUHAL_LINK_KIND,
              is(link_kind_wild)                              ? 99
              : is(good_vendor) || is(link_of_vendor_unnamed) ? GPUHAL_VENDOR_FIRST + 3
              : is(link_one_way) && from > to                 ? GPUHAL_LINK_SYSTEM
                                                              : GPUHAL_LINK_SAME_BOARD);
    if (is(good_vendor)) {
        host->text(host, sink, GPUHAL_LINK_NAME, "Test Fabric");
        host->u64(host, sink, GPUHAL_VENDOR_FIRST + 4, 1);
    }
    host->u64(host, sink, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, is(link_gigabytes) ? 16 : UINT64_C(16000000000));
    if (!is(link_silent)) {
        host->u64(host, sink, GPUHAL_LINK_PEER_ADVERTISED, is(link_advertised_wild) ? 7 : is(link_contradicts) ? 0 : 1);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_faulty_processes(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)flags;
    if (is(fork_no_processes) && gpuhal_faulty_is_forked()) {
        return host->report(host, GPUHAL_ERROR_DRIVER, NULL, 0, "the parent has the connection");
    }
    if (index >= DEVICES && !is(processes_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    const gpuhal_plugin_process one = {
        .size = is(processes_unsized) ? 0 : sizeof one,
        .flags = GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_MEMORY_KNOWN | GPUHAL_PROCESS_BUSY_KNOWN |
                 (is(processes_flags) ? 1u << 20 : 0),
        .pid = is(processes_zero) ? 0 : is(processes_without_own) ? 1 : (uint32_t)getpid(),
        .busy_permille = is(processes_permille) ? 4200 : 420,
        .memory_bytes = is(processes_of_more_than_all) ? TOTAL_BYTES + 1
                        : is(processes_of_nothing)     ? 4096
                                                       : gpuhal_faulty_used(index),
    };
    host->source(host, sink, is(source_of_processes) ? "Faulty Daemon 1.0" : "faulty");
    host->process(host, sink, &one);
    return GPUHAL_OK;
}
