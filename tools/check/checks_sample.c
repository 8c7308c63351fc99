/* checks_sample.c: values of a device that need not be open. */
#include "work.h"

#include <inttypes.h>
#include <time.h>

/* The member is optional and stands behind the mandatory ones, so its size has to be looked at first. */
static bool offered(const gpuhal_trial *trial)
{
    const gpuhal_plugin *plugin = trial->plugin;
    if (plugin->size < offsetof(gpuhal_plugin, sample) + sizeof plugin->sample || plugin->sample == NULL) {
        gpuhal_skip("the plugin has no sample");
        return false;
    }
    return true;
}

static bool is_value(gpuhal_key key)
{
    return key >= GPUHAL_VALUE_MEMORY_FREE_BYTES && key <= GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL;
}

/* What a value can be; a unit that was mistaken for another is off by 1000 and more. 0 is a value: a fan that stands still. */
static const struct {
    gpuhal_key key;
    uint64_t least, most;
    const char *like;
} ranges[] = {
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 1000, 200000, "millidegrees, as 45000"},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, 1000, 200000, "millidegrees, as 45000"},
    {GPUHAL_VALUE_POWER_MICROWATTS, 10000, UINT64_C(100000000000), "microwatts, as 75000000"},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 500000, UINT64_C(100000000000), "microwatts, as 150000000"},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, 1000000, UINT64_C(100000000000), "hertz, as 1200000000"},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, 1000000, UINT64_C(100000000000), "hertz, as 1200000000"},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 0, 1000, "permille, as 580"},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, 0, 1000, "permille, as 580"},
    {GPUHAL_VALUE_FAN_PERMILLE, 0, 5000, "permille, as 580"},
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, 0, UINT64_C(10000000000000), "bytes per second"},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, 0, UINT64_C(10000000000000), "bytes per second"},
    {GPUHAL_VALUE_THROTTLE_REASONS, 0, 2 * GPUHAL_THROTTLE_OTHER - 1, "bits of GPUHAL_THROTTLE_"},
};

static void expect_range(const gpuhal_listed_fact *fact)
{
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        const bool inside = fact->number == 0 || (fact->number >= ranges[r].least && fact->number <= ranges[r].most);
        if (ranges[r].key == fact->key && !inside) {
            gpuhal_fail("sample gave %s as %" PRIu64 ", which no device has; the unit is %s", gpuhal_listed_key(fact->key), fact->number,
                        ranges[r].like);
        }
    }
}

static void expect_value(const gpuhal_trial *trial, const gpuhal_listed_fact *fact)
{
    const char *key = gpuhal_listed_key(fact->key);
    const uint64_t total = gpuhal_trial_fact(trial, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const bool is_vendors = fact->key >= GPUHAL_VENDOR_FIRST;
    if (!is_value(fact->key) && !is_vendors) {
        gpuhal_fail("sample gave %s, which is no value of a device; keys of your own begin with GPUHAL_VENDOR_FIRST", key);
    }
    if (fact->told == TOLD_TEXT && !is_vendors) {
        gpuhal_fail("sample gave %s as a text, and it is a number", key);
    }
    if (fact->told == TOLD_MISSING && (fact->reason < GPUHAL_MISSING_NOT_SUPPORTED || fact->reason > GPUHAL_MISSING_NOT_READ)) {
        gpuhal_fail_by(13, "sample says that %s is missing with %u, which is no reason", key, fact->reason);
    }
    const bool of_memory = fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES || fact->key == GPUHAL_VALUE_MEMORY_USED_BYTES;
    if (of_memory && fact->told == TOLD_NUMBER && fact->number > total) {
        gpuhal_fail("sample gave %s as %" PRIu64 ", and memory_total_bytes is %" PRIu64, key, fact->number, total);
    }
    if (fact->told == TOLD_NUMBER) {
        expect_range(fact);
    }
}

/* The number of a value in a sample; `otherwise` when it is missing. */
static uint64_t value_in(const gpuhal_device_snapshot *sample, gpuhal_key key, uint64_t otherwise)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(&sample->devices[0], key);
    return fact != NULL && fact->told == TOLD_NUMBER ? fact->number : otherwise;
}

static gpuhal_device_snapshot sampled(const gpuhal_trial *trial, const gpuhal_key *keys, uint32_t count, const char *what)
{
    gpuhal_device_snapshot sample = {0};
    gpuhal_expect_told(gpuhal_device_snapshot_sample(trial->plugin, trial->instance, trial->index, keys, count, &sample), what);
    if (sample.count != 1) {
        gpuhal_fail("sample named a device; it is asked about one");
    }
    return sample;
}

/* Monitors ask for all values, and programs for one: both have to come to the same. */
void gpuhal_check_sample_all(gpuhal_trial *trial)
{
    if (!offered(trial)) {
        return;
    }
    gpuhal_device_snapshot all = sampled(trial, NULL, 0, "sample without keys");
    for (size_t i = 0; i < all.devices[0].count; i++) {
        expect_value(trial, &all.devices[0].facts[i]);
    }
    /* What can be had by its key is among all. */
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; is_value(key); key++) {
        gpuhal_device_snapshot one = sampled(trial, &key, 1, "sample of one key");
        const gpuhal_listed_fact *alone = gpuhal_listed_find(&one.devices[0], key);
        const gpuhal_listed_fact *among = gpuhal_listed_find(&all.devices[0], key);
        if (alone != NULL && alone->told == TOLD_NUMBER && (among == NULL || among->told != TOLD_NUMBER)) {
            gpuhal_fail("sample gives %s when it is asked for, and not among all", gpuhal_listed_key(key));
        }
        gpuhal_device_snapshot_finish(&one);
    }
    gpuhal_device_snapshot_finish(&all);
}

/* What was just allocated of the device's memory was free before, and free and used are parts of one total. */
void gpuhal_check_sample_memory(gpuhal_trial *trial)
{
    if (!offered(trial)) {
        return;
    }
    const uint64_t total = gpuhal_trial_fact(trial, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t bytes = total / 8 < UINT64_C(32) << 20 ? total / 8 : UINT64_C(32) << 20;
    gpuhal_device_snapshot sample = sampled(trial, NULL, 0, "sample without keys");
    const uint64_t free_bytes = value_in(&sample, GPUHAL_VALUE_MEMORY_FREE_BYTES, UINT64_MAX);
    const uint64_t used_bytes = value_in(&sample, GPUHAL_VALUE_MEMORY_USED_BYTES, UINT64_MAX);
    gpuhal_device_snapshot_finish(&sample);
    if (free_bytes == UINT64_MAX || bytes == 0) {
        gpuhal_skip("sample does not give the free memory, or the total is missing");
        return;
    }
    if (used_bytes != UINT64_MAX && free_bytes + used_bytes > total + total / 4) {
        gpuhal_fail("sample gave %" PRIu64 " bytes as free and %" PRIu64 " as used, and memory_total_bytes is %" PRIu64, free_bytes,
                    used_bytes, total);
    }
    gpuhal_memory memory;
    if (gpuhal_plain_allocate(&trial->opening, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory) != GPUHAL_OK) {
        gpuhal_skip("an eighth of the memory cannot be allocated: other programs hold it");
        return;
    }
    gpuhal_plain_release(&trial->opening, &memory);
    if (free_bytes < bytes / 16) {
        gpuhal_fail("sample gave memory_free_bytes as %" PRIu64 ", and an allocation of %" PRIu64 " bytes succeeded right after: the unit is "
                    "bytes", free_bytes, bytes);
    }
}

static void expect_not_falling(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *after, gpuhal_key key)
{
    const uint64_t was = value_in(before, key, 0), is = value_in(after, key, UINT64_MAX);
    if (is < was) {
        gpuhal_fail("sample gave %s as %" PRIu64 ", and later as %" PRIu64 "; it only grows", gpuhal_listed_key(key), was, is);
    }
}

/* Energy is power times time. Power is a value of the moment and may be anything in between, but not 100 times as much. */
static void expect_energy(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *after, uint64_t elapsed_ns)
{
    const uint64_t energy[] = {value_in(before, GPUHAL_VALUE_ENERGY_MICROJOULES, 0), value_in(after, GPUHAL_VALUE_ENERGY_MICROJOULES, 0)};
    const uint64_t power = value_in(after, GPUHAL_VALUE_POWER_MICROWATTS, 0);
    if (energy[0] == 0 || power == 0) {
        return;
    }
    const double mean = (double)(energy[1] - energy[0]) / ((double)elapsed_ns / 1e9);
    if (mean > 100.0 * (double)power || mean < (double)power / 100.0) {
        gpuhal_fail("sample gave %" PRIu64 " microwatts, and the energy grew by %" PRIu64 " microjoules in %" PRIu64 " ms: the units differ",
                    power, energy[1] - energy[0], elapsed_ns / 1000000);
    }
}

/* Counters are read by monitors that take differences; some drivers bring them up to date every 100 ms only. */
void gpuhal_check_sample_time(gpuhal_trial *trial)
{
    if (!offered(trial)) {
        return;
    }
    static const gpuhal_key counters[] = {GPUHAL_VALUE_ENERGY_MICROJOULES, GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
                                          GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL};
    const uint64_t begin = gpuhal_tool_now_ns();
    gpuhal_device_snapshot before = sampled(trial, NULL, 0, "sample without keys");
    const bool counts = value_in(&before, counters[0], 0) != 0 || value_in(&before, counters[1], 0) != 0 ||
                        value_in(&before, counters[2], 0) != 0;
    if (!counts) {
        gpuhal_skip("sample gives no value that counts");
        gpuhal_device_snapshot_finish(&before);
        return;
    }
    nanosleep(&(const struct timespec){.tv_nsec = 400000000}, NULL);
    gpuhal_device_snapshot after = sampled(trial, NULL, 0, "sample without keys");
    for (size_t c = 0; c < sizeof counters / sizeof *counters; c++) {
        expect_not_falling(&before, &after, counters[c]);
    }
    expect_energy(&before, &after, gpuhal_tool_now_ns() - begin);
    gpuhal_device_snapshot_finish(&before);
    gpuhal_device_snapshot_finish(&after);
}

/* Keys of later versions reach plugins of today; one error would cost the monitor all the others. */
void gpuhal_check_sample_keys(gpuhal_trial *trial)
{
    if (!offered(trial)) {
        return;
    }
    static const gpuhal_key keys[] = {GPUHAL_VALUE_MEMORY_FREE_BYTES, 0x1fff, GPUHAL_FACT_NAME, UINT32_MAX};
    gpuhal_device_snapshot some = sampled(trial, keys, sizeof keys / sizeof *keys, "sample with keys that nobody knows");
    for (size_t i = 0; i < some.devices[0].count; i++) {
        const gpuhal_listed_fact *fact = &some.devices[0].facts[i];
        if (fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            expect_value(trial, fact);
        } else if (fact->told != TOLD_MISSING) {
            gpuhal_fail("sample gave a value for %s, which %s", gpuhal_listed_key(fact->key),
                        is_value(fact->key) ? "was not asked for" : "is no value of a device");
        }
    }
    gpuhal_device_snapshot_finish(&some);
    gpuhal_device_snapshot nobody = {0};
    gpuhal_status status = gpuhal_device_snapshot_sample(trial->plugin, trial->instance, UINT32_MAX, NULL, 0, &nobody);
    if (status >= 0) {
        gpuhal_fail("sample answered %s for device %u, which was never listed", gpuhal_status_text(status), UINT32_MAX);
    }
    gpuhal_device_snapshot_finish(&nobody);
}
