/* checks_sample.c: values of a device that need not be open. */
#include "check.h"

#include <inttypes.h>

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

/* Free and used are compared with the total: a wrong unit is off by 1024 and more. */
static void expect_value(const gpuhal_trial *trial, const gpuhal_listed_fact *fact)
{
    const char *key = gpuhal_listed_key(fact->key);
    const uint64_t total = gpuhal_trial_fact(trial, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    if (!is_value(fact->key)) {
        gpuhal_fail("sample gave %s, which is no value of a device", key);
    }
    if (fact->told == TOLD_TEXT) {
        gpuhal_fail("sample gave %s as a text, and it is a number", key);
    }
    if (fact->told == TOLD_MISSING && (fact->reason < GPUHAL_MISSING_NOT_SUPPORTED || fact->reason > GPUHAL_MISSING_NOT_READ)) {
        gpuhal_fail("sample says that %s is missing with %u, which is no reason", key, fact->reason);
    }
    const bool of_memory = fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES || fact->key == GPUHAL_VALUE_MEMORY_USED_BYTES;
    if (of_memory && fact->told == TOLD_NUMBER && fact->number > total) {
        gpuhal_fail("sample gave %s as %" PRIu64 ", and memory_total_bytes is %" PRIu64, key, fact->number, total);
    }
}

static gpuhal_listing sampled(const gpuhal_trial *trial, const gpuhal_key *keys, uint32_t count, const char *what)
{
    gpuhal_listing sample = {0};
    gpuhal_expect_told(gpuhal_listing_sample(trial->plugin, trial->index, keys, count, &sample), what);
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
    gpuhal_listing all = sampled(trial, NULL, 0, "sample without keys");
    for (size_t i = 0; i < all.devices[0].count; i++) {
        expect_value(trial, &all.devices[0].facts[i]);
    }
    /* What can be had by its key is among all. */
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; is_value(key); key++) {
        gpuhal_listing one = sampled(trial, &key, 1, "sample of one key");
        const gpuhal_listed_fact *alone = gpuhal_listed_find(&one.devices[0], key);
        const gpuhal_listed_fact *among = gpuhal_listed_find(&all.devices[0], key);
        if (alone != NULL && alone->told == TOLD_NUMBER && (among == NULL || among->told != TOLD_NUMBER)) {
            gpuhal_fail("sample gives %s when it is asked for, and not among all", gpuhal_listed_key(key));
        }
        gpuhal_listing_finish(&one);
    }
    gpuhal_listing_finish(&all);
}

/* Keys of later versions reach plugins of today; one error would cost the monitor all the others. */
void gpuhal_check_sample_keys(gpuhal_trial *trial)
{
    if (!offered(trial)) {
        return;
    }
    static const gpuhal_key keys[] = {GPUHAL_VALUE_MEMORY_FREE_BYTES, 0x1fff, GPUHAL_FACT_NAME, UINT32_MAX};
    gpuhal_listing some = sampled(trial, keys, sizeof keys / sizeof *keys, "sample with keys that nobody knows");
    for (size_t i = 0; i < some.devices[0].count; i++) {
        const gpuhal_listed_fact *fact = &some.devices[0].facts[i];
        if (fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            expect_value(trial, fact);
        } else if (fact->told != TOLD_MISSING) {
            gpuhal_fail("sample gave a value for %s, which %s", gpuhal_listed_key(fact->key),
                        is_value(fact->key) ? "was not asked for" : "is no value of a device");
        }
    }
    gpuhal_listing_finish(&some);
    gpuhal_listing nobody = {0};
    gpuhal_status status = gpuhal_listing_sample(trial->plugin, UINT32_MAX, NULL, 0, &nobody);
    if (status >= 0) {
        gpuhal_fail("sample answered %s for device %u, which was never listed", gpuhal_status_text(status), UINT32_MAX);
    }
    gpuhal_listing_finish(&nobody);
}
