/* checks_sample.c: the values that the plugin samples; the device need not be open. */
#include "work.h"

#include <gpuhal/direct.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool offered(const gpuhal_context *context)
{
    if (!PLUGIN_HAS(context->plugin, sample)) {
        gpuhal_skip("the plugin has no sample");
        return false;
    }
    return true;
}

static bool is_value(gpuhal_key key)
{
    const bool counted = key == GPUHAL_VALUE_MEMORY_HELD_BYTES || key == GPUHAL_VALUE_QUEUES_BUSY_NS ||
                         key == GPUHAL_VALUE_TRANSFERRED_BYTES ||
                         key == GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES; /* the library provides these values */
    return key >= GPUHAL_VALUE_MEMORY_FREE_BYTES && key <= GPUHAL_VALUE_FABRIC && !counted;
}

/* The plausible range of a value. A value in a wrong unit is off by a factor of 1000 or more. 0 is allowed, because a
 * fan may not be running. */
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
            gpuhal_fail("sample gave %s as %" PRIu64 ", which no device has; the unit is %s",
                        gpuhal_listed_key(fact->key), fact->number, ranges[r].like);
        }
    }
}

static void expect_value(const gpuhal_context *context, const gpuhal_listed_fact *fact)
{
    const char *key = gpuhal_listed_key(fact->key);
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const bool is_vendors = fact->key >= GPUHAL_VENDOR_FIRST;
    if (!is_value(fact->key) && !is_vendors) {
        gpuhal_fail("sample gave %s, which is not a value of a device; keys of your own begin with GPUHAL_VENDOR_FIRST",
                    key);
    }
    if (fact->kind == LISTED_TEXT && !is_vendors) {
        gpuhal_fail("sample gave %s as a text, and it is a number", key);
    }
    if (fact->kind == LISTED_MISSING &&
        (fact->reason < GPUHAL_MISSING_NOT_SUPPORTED || fact->reason > GPUHAL_MISSING_LOST)) {
        gpuhal_fail_by(13, "sample says that %s is missing with %u, which is not a reason", key, fact->reason);
    }
    const bool of_memory = fact->key == GPUHAL_VALUE_MEMORY_FREE_BYTES || fact->key == GPUHAL_VALUE_MEMORY_USED_BYTES;
    if (of_memory && fact->kind == LISTED_NUMBER && fact->number > total) {
        gpuhal_fail("sample gave %s as %" PRIu64 ", and memory_total_bytes is %" PRIu64, key, fact->number, total);
    }
    if (fact->kind == LISTED_NUMBER) {
        expect_range(fact);
    }
}

static gpuhal_device_snapshot sampled(const gpuhal_context *context, const gpuhal_key *keys, uint32_t count,
                                      const char *what)
{
    gpuhal_device_snapshot sample = {0};
    gpuhal_expect_reported(
        gpuhal_device_snapshot_sample(context->plugin, context->instance, context->index, keys, count, &sample), what);
    if (sample.count != 1) {
        gpuhal_fail("sample named a device; it is asked about one");
    }
    return sample;
}

static void expect_source(const char *name)
{
    const size_t length = name != NULL ? strlen(name) : 1;
    if (length == 0 || length > 15 ||
        (name != NULL && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != length)) {
        gpuhal_fail("the source is '%.40s'; it has 1 to 15 lower-case letters, digits, hyphens and underscores", name);
    }
}

static void take_source_of_values(void *user, const char *name)
{
    (void)user;
    expect_source(name);
}

/* Monitors request all values and programs request a single value. A value must not depend on the request. */
void gpuhal_check_sample_all(gpuhal_context *context)
{
    if (!offered(context)) {
        return;
    }
    const gpuhal_direct_listener sources = {.source = take_source_of_values};
    (void)gpuhal_direct_sample(context->plugin, context->instance, context->index, NULL, 0, 0, &sources);
    gpuhal_device_snapshot all = sampled(context, NULL, 0, "sample without keys");
    for (size_t i = 0; i < all.devices[0].count; i++) {
        expect_value(context, &all.devices[0].facts[i]);
    }
    /* A value that is returned for a single key must also be among all values, unless it is slow to read. */
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; key <= GPUHAL_VALUE_FABRIC; key++) {
        gpuhal_device_snapshot one = sampled(context, &key, 1, "sample of one key");
        const gpuhal_listed_fact *alone = gpuhal_listed_find(&one.devices[0], key);
        const gpuhal_listed_fact *among = gpuhal_listed_find(&all.devices[0], key);
        const bool is_slow =
            among != NULL && among->kind == LISTED_MISSING && among->reason == GPUHAL_MISSING_NOT_READ;
        if (alone != NULL && alone->kind == LISTED_NUMBER && !is_slow &&
            (among == NULL || among->kind != LISTED_NUMBER)) {
            gpuhal_fail("sample gives %s when it is asked for, and not among all", gpuhal_listed_key(key));
        }
        gpuhal_device_snapshot_finish(&one);
    }
    gpuhal_device_snapshot_finish(&all);
}

/* Memory that was just allocated must have counted as free before. Free and used memory must not exceed the total by
 * much. */
void gpuhal_check_sample_memory(gpuhal_context *context)
{
    if (!offered(context)) {
        return;
    }
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t bytes = total / 8 < UINT64_C(32) << 20 ? total / 8 : UINT64_C(32) << 20;
    gpuhal_device_snapshot sample = sampled(context, NULL, 0, "sample without keys");
    const uint64_t free_bytes = gpuhal_listed_number(&sample.devices[0], GPUHAL_VALUE_MEMORY_FREE_BYTES, UINT64_MAX);
    const uint64_t used_bytes = gpuhal_listed_number(&sample.devices[0], GPUHAL_VALUE_MEMORY_USED_BYTES, UINT64_MAX);
    gpuhal_device_snapshot_finish(&sample);
    if (free_bytes == UINT64_MAX || bytes == 0) {
        gpuhal_skip("sample does not give the free memory, or the total is missing");
        return;
    }
    if (used_bytes != UINT64_MAX && free_bytes + used_bytes > total + total / 4) {
        gpuhal_fail("sample gave %" PRIu64 " bytes as free and %" PRIu64 " as used, and memory_total_bytes is %" PRIu64,
                    free_bytes, used_bytes, total);
    }
    gpuhal_memory memory;
    if (gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory) != GPUHAL_OK) {
        gpuhal_skip("an eighth of the memory cannot be allocated: other programs hold it");
        return;
    }
    gpuhal_plain_release(&context->opened, &memory);
    if (free_bytes < bytes / 16) {
        gpuhal_fail("sample gave memory_free_bytes as %" PRIu64 ", and an allocation of %" PRIu64
                    " bytes succeeded right after: the unit is "
                    "bytes",
                    free_bytes, bytes);
    }
}

static void expect_not_falling(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *after,
                               gpuhal_key key)
{
    const uint64_t was = gpuhal_listed_number(&before->devices[0], key, 0),
                   is = gpuhal_listed_number(&after->devices[0], key, UINT64_MAX);
    if (is < was) {
        gpuhal_fail("sample gave %s as %" PRIu64 ", and later as %" PRIu64 "; it only grows", gpuhal_listed_key(key),
                    was, is);
    }
}

/* Energy is power times time. Power may vary between two samples, but not by a factor of 100. */
static void expect_energy(const gpuhal_device_snapshot *before, const gpuhal_device_snapshot *after,
                          uint64_t elapsed_ns)
{
    const uint64_t energy[] = {gpuhal_listed_number(&before->devices[0], GPUHAL_VALUE_ENERGY_MICROJOULES, 0),
                               gpuhal_listed_number(&after->devices[0], GPUHAL_VALUE_ENERGY_MICROJOULES, 0)};
    const uint64_t power = gpuhal_listed_number(&after->devices[0], GPUHAL_VALUE_POWER_MICROWATTS, 0);
    if (energy[0] == 0 || power == 0) {
        return;
    }
    const double mean = (double)(energy[1] - energy[0]) / ((double)elapsed_ns / 1e9);
    if (mean > 100.0 * (double)power || mean < (double)power / 100.0) {
        gpuhal_fail("sample gave %" PRIu64 " microwatts, and the energy grew by %" PRIu64 " microjoules in %" PRIu64
                    " ms: the units differ",
                    power, energy[1] - energy[0], elapsed_ns / 1000000);
    }
}

/* Monitors read counters and compute differences; some drivers update them only every 100 ms. */
void gpuhal_check_sample_time(gpuhal_context *context)
{
    if (!offered(context)) {
        return;
    }
    static const gpuhal_key counters[] = {GPUHAL_VALUE_ENERGY_MICROJOULES, GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
                                          GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL};
    const uint64_t begin = gpuhal_tool_now_ns();
    gpuhal_device_snapshot before = sampled(context, NULL, 0, "sample without keys");
    const bool counts = gpuhal_listed_number(&before.devices[0], counters[0], 0) != 0 ||
                        gpuhal_listed_number(&before.devices[0], counters[1], 0) != 0 ||
                        gpuhal_listed_number(&before.devices[0], counters[2], 0) != 0;
    if (!counts) {
        gpuhal_skip("sample gives no value that counts");
        gpuhal_device_snapshot_finish(&before);
        return;
    }
    nanosleep(&(const struct timespec){.tv_nsec = 400000000}, NULL);
    gpuhal_device_snapshot after = sampled(context, NULL, 0, "sample without keys");
    for (size_t c = 0; c < sizeof counters / sizeof *counters; c++) {
        expect_not_falling(&before, &after, counters[c]);
    }
    expect_energy(&before, &after, gpuhal_tool_now_ns() - begin);
    gpuhal_device_snapshot_finish(&before);
    gpuhal_device_snapshot_finish(&after);
}

/* Plugins may receive keys of later versions. If a plugin returned an error for such a key, the monitor would lose all
 * other values. */
void gpuhal_check_sample_keys(gpuhal_context *context)
{
    if (!offered(context)) {
        return;
    }
    static const gpuhal_key keys[] = {GPUHAL_VALUE_MEMORY_FREE_BYTES, 0x1fff, GPUHAL_FACT_NAME, UINT32_MAX};
    gpuhal_device_snapshot some = sampled(context, keys, sizeof keys / sizeof *keys, "sample with unknown keys");
    for (size_t i = 0; i < some.devices[0].count; i++) {
        const gpuhal_listed_fact *fact = &some.devices[0].facts[i];
        if (is_value(fact->key)) {
            expect_value(context, fact); /* the same reading may also provide other values */
        } else if (fact->kind != LISTED_MISSING) {
            gpuhal_fail("sample gave a value for %s, which is not a value of a device", gpuhal_listed_key(fact->key));
        }
    }
    gpuhal_device_snapshot_finish(&some);
    gpuhal_device_snapshot nothing = {0};
    gpuhal_status status =
        gpuhal_device_snapshot_sample(context->plugin, context->instance, UINT32_MAX, NULL, 0, &nothing);
    if (status >= 0) {
        gpuhal_fail("sample returned %s for device %u, which was never listed", gpuhal_status_text(status), UINT32_MAX);
    }
    gpuhal_device_snapshot_finish(&nothing);
}

typedef struct seen {
    const gpuhal_context *context;
    bool own, foreign; /* this process was listed; a process with a pid of another namespace was listed */
    bool hidden;       /* the vendor's library hides a container's own processes */
    uint64_t own_bytes;
    unsigned count;
} seen;

/* NVML lists nothing inside a container, because the pids there do not belong to the first namespace. */
static void take_source(void *user, const char *name)
{
    seen *own = user;
    char target[32] = "";
    expect_source(name);
    const bool first = readlink("/proc/self/ns/pid", target, sizeof target - 1) > 0 &&
                       strcmp(target, "pid:[4026531836]") == 0;
    own->hidden = own->hidden || (name != NULL && strcmp(name, "nvml") == 0 && !first);
}

static void expect_process(void *user, const gpuhal_plugin_process *process)
{
    seen *own = user;
    const gpuhal_context *context = own->context;
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    if (process == NULL || process->size < offsetof(gpuhal_plugin_process, name) + sizeof process->name) {
        gpuhal_fail("processes gave a process without its size");
    }
    if (process->flags >= 2 * GPUHAL_PROCESS_FOREIGN_NAMESPACE) {
        gpuhal_fail("processes gave process %" PRIu32 " with flags 0x%" PRIx32 ", which are not of GPUHAL_PROCESS_",
                    process->pid, process->flags);
    }
    if (process->pid == 0 && !(process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE)) {
        gpuhal_fail("processes gave process 0, which is none of this system's");
    }
    if ((process->flags & GPUHAL_PROCESS_MEMORY_KNOWN) && process->memory_bytes > total) {
        gpuhal_fail("processes gave process %" PRIu32 " %" PRIu64 " bytes, and memory_total_bytes is %" PRIu64,
                    process->pid, process->memory_bytes, total);
    }
    if ((process->flags & GPUHAL_PROCESS_BUSY_KNOWN) && process->busy_permille > 1000) {
        gpuhal_fail("processes gave process %" PRIu32 " %" PRIu32 " permille of the time", process->pid,
                    process->busy_permille);
    }
    const bool foreign = process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE;
    own->count++;
    own->foreign = own->foreign || foreign;
    if (!foreign && process->pid == (uint32_t)getpid()) {
        const bool known = process->flags & GPUHAL_PROCESS_MEMORY_KNOWN;
        own->own = true;
        own->own_bytes = known && own->own_bytes < process->memory_bytes ? process->memory_bytes : own->own_bytes;
        own->own_bytes = known ? own->own_bytes : UINT64_MAX;
    }
}

static gpuhal_status list_processes(const gpuhal_context *context, uint32_t index, seen *out_seen)
{
    *out_seen = (seen){.context = context};
    const gpuhal_direct_listener listener = {.user = out_seen, .source = take_source, .process = expect_process};
    gpuhal_step("processes");
    return gpuhal_direct_processes(context->plugin, context->instance, index, 0, &listener);
}

static void expect_own(const seen *now, uint64_t bytes)
{
    if (!now->own && !now->foreign && !now->hidden) {
        gpuhal_fail("processes gave %u processes, and not this one, which has the device open; one that cannot be "
                    "seen here is marked FOREIGN_NAMESPACE",
                    now->count);
    }
    if (now->own && now->own_bytes < bytes) {
        gpuhal_fail("processes gave this process %" PRIu64 " bytes, and it has allocated %" PRIu64, now->own_bytes,
                    bytes);
    }
}

/* Monitors display the processes. If a driver may not list them, the plugin must report this. */
void gpuhal_check_processes(gpuhal_context *context)
{
    seen now;
    gpuhal_memory memory;
    if (!PLUGIN_HAS(context->plugin, processes)) {
        gpuhal_skip("the plugin has no processes");
        return;
    }
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t bytes = total == 0 || total / 8 > UINT64_C(4) << 20 ? UINT64_C(4) << 20 : total / 8;
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory), "allocate");
    const gpuhal_status status = list_processes(context, context->index, &now);
    if (status == GPUHAL_OK) {
        expect_own(&now, bytes);
    }
    gpuhal_plain_release(&context->opened, &memory);
    if (list_processes(context, UINT32_MAX, &(seen){0}) >= 0) {
        gpuhal_fail("processes returned no error for device %u, which was never listed", UINT32_MAX);
    }
    if (status != GPUHAL_OK) {
        gpuhal_skip("processes returned %s", gpuhal_status_text(status));
    }
}
