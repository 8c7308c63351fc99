/* node/health.c: derives a device's health from its samples. docs/telemetry.md lists the rules.
 *
 * If a reason is a hardware state (such as heat), it persists for HOLD_NS after it was last seen, so that the health of
 * a device near a limit does not change with every sample. If a reason is an event, it persists until the sampler ends.
 * The plugin that reads vendor events ignores codes that applications cause. */
#include "node/sampler.h"

#include "device/for_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOLD_NS  UINT64_C(60000000000)
#define FOR_EVER UINT64_MAX
/* Up to this many packet replays per minute are considered noise. */
#define REPLAYS_MAX 8u

/* Reads the newest sample. Returns false if the value is missing or the key is not sampled. */
static bool value_of(const gpuhal_sampler *sampler, const gpuhal_sampled *own, gpuhal_key key, uint64_t *out_value)
{
    const uint32_t k = gpuhal_sampler_find_key(sampler, key);
    const bool known = k != UINT32_MAX && own->values[k].missing == 0;
    *out_value = known ? own->values[k].u64 : 0;
    return known;
}

static void set(gpuhal_health_memory *memory, uint32_t bit, uint64_t until_ns)
{
    for (uint32_t i = 0; i < GPUHAL_SAMPLER_REASONS; i++) {
        if (bit == 1u << i && memory->until_ns[i] < until_ns) {
            memory->until_ns[i] = until_ns;
        }
    }
}

/* Returns whether another interface of the same physical device is lost because its driver hung or reported the
 * loss. */
static bool has_lost_interface(const gpuhal_device *device)
{
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        const gpuhal_device *other = gpuhal_device_at(device->gpu, d);
        const uint32_t lost = atomic_load(&other->lost);
        if (other != device && (lost == GPUHAL_LOST || lost == GPUHAL_LOST_HUNG) &&
            gpuhal_devices_same_piece(device, other)) {
            return true;
        }
    }
    return false;
}

/* Errors that the first sample counts are old. An earlier sampler may have reported them. */
static void see_errors(const gpuhal_sampler *sampler, gpuhal_sampled *own, gpuhal_key key,
                       struct gpuhal_health_count *before, uint32_t reason)
{
    uint64_t value = 0;
    if (value_of(sampler, own, key, &value)) {
        if (before->known && value > before->number) {
            set(&own->memory, reason, FOR_EVER);
        }
        *before = (struct gpuhal_health_count){.number = value, .known = true};
    }
}

static void see_counters(const gpuhal_sampler *sampler, gpuhal_sampled *own, uint64_t now_ns)
{
    gpuhal_health_memory *memory = &own->memory;
    uint64_t value = 0;
    see_errors(sampler, own, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, &memory->uncorrected, GPUHAL_HEALTH_ECC);
    see_errors(sampler, own, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, &memory->events, GPUHAL_HEALTH_VENDOR_EVENT);
    if (value_of(sampler, own, GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, &value)) {
        const uint64_t passed_ns = now_ns - memory->replays_ns;
        const bool over = passed_ns >= HOLD_NS;
        const uint64_t most = over ? REPLAYS_MAX * (passed_ns / HOLD_NS) : REPLAYS_MAX;
        if (memory->replays_ns > 0 && value > memory->replays && value - memory->replays > most) {
            set(memory, GPUHAL_HEALTH_PCIE_REPLAYS, now_ns + HOLD_NS);
        }
        if (memory->replays_ns == 0 || over || value < memory->replays) {
            memory->replays = value;
            memory->replays_ns = now_ns;
        }
    }
}

static void see_state(const gpuhal_sampler *sampler, gpuhal_sampled *own, uint64_t now_ns)
{
    uint64_t reasons = 0;
    (void)value_of(sampler, own, GPUHAL_VALUE_THROTTLE_REASONS, &reasons);
    /* NVIDIA's driver sets HARDWARE together with the cause, which is heat or the power brake. */
    const bool hot = (reasons & GPUHAL_THROTTLE_HARDWARE) && !(reasons & GPUHAL_THROTTLE_POWER_BRAKE);
    if (hot || (reasons & GPUHAL_THROTTLE_THERMAL)) {
        set(&own->memory, GPUHAL_HEALTH_THERMAL, now_ns + HOLD_NS);
    }
    if (reasons & GPUHAL_THROTTLE_POWER_BRAKE) {
        set(&own->memory, GPUHAL_HEALTH_POWER_BRAKE, now_ns + HOLD_NS);
    }
    if (has_lost_interface(own->device)) {
        set(&own->memory, GPUHAL_HEALTH_FAULTS, FOR_EVER);
    }
}

/* Writes a sentence such as "cuda:1: slowed down by heat; new memory errors that could not be corrected". */
static void describe(const gpuhal_sampler *sampler, const gpuhal_sampled *own, gpuhal_health *health)
{
    static const char *const words[GPUHAL_SAMPLER_REASONS] = {"another interface of it is lost",
                                                              "new memory errors that could not be corrected",
                                                              "slowed down by heat",
                                                              "slowed down by the power supply",
                                                              "its PCIe link repeats packets often",
                                                              "the driver reported an error"};
    size_t length = (size_t)snprintf(health->sentence, sizeof health->sentence, "%s:", own->device->id);
    const char *between = " ";
    for (uint32_t i = 0; i < GPUHAL_SAMPLER_REASONS; i++) {
        if ((health->reasons & 1u << i) && length < sizeof health->sentence) {
            length += (size_t)snprintf(health->sentence + length, sizeof health->sentence - length, "%s%s", between,
                                       words[i]);
            between = "; ";
        }
    }
    uint64_t code = 0;
    if ((health->reasons & GPUHAL_HEALTH_VENDOR_EVENT) && length < sizeof health->sentence &&
        value_of(sampler, own, GPUHAL_VALUE_VENDOR_EVENT_CODE, &code)) {
        snprintf(health->sentence + length, sizeof health->sentence - length, " (code %" PRIu64 ")", code);
    }
}

/* Returns OK, or DEVICE_LOST with the reason as this thread's last error. */
static gpuhal_status is_usable(const gpuhal_sampled *own)
{
    const gpuhal_status status = gpuhal_device_check(own->device);
    return status || own->status != GPUHAL_ERROR_DEVICE_LOST
               ? status
               : gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: its driver reports it as lost", own->device->id);
}

static gpuhal_health judge(const gpuhal_sampler *sampler, gpuhal_sampled *own, uint64_t now_ns)
{
    gpuhal_health health = {.size = sizeof health, .state = GPUHAL_HEALTH_OK, .since_ns = own->health.since_ns};
    see_counters(sampler, own, now_ns);
    see_state(sampler, own, now_ns);
    for (uint32_t i = 0; i < GPUHAL_SAMPLER_REASONS; i++) {
        health.reasons |= own->memory.until_ns[i] > now_ns ? 1u << i : 0;
    }
    if (is_usable(own)) {
        health.state = GPUHAL_HEALTH_LOST;
        health.reasons = 0;
        snprintf(health.sentence, sizeof health.sentence, "%s", gpuhal_last_error()->sentence);
    } else if (health.reasons) {
        health.state = GPUHAL_HEALTH_DEGRADED;
        describe(sampler, own, &health);
    }
    return health;
}

void gpuhal_sampler_examine(gpuhal_sampler *sampler)
{
    const uint64_t now_ns = sampler->times[sampler->newest];
    for (uint32_t d = 0; d < sampler->device_count; d++) {
        gpuhal_sampled *own = &sampler->devices[d];
        gpuhal_health health = judge(sampler, own, now_ns);
        const bool is_first = own->health.state == GPUHAL_HEALTH_UNKNOWN;
        const bool differs = health.state != own->health.state || health.reasons != own->health.reasons;
        health.since_ns = health.state != own->health.state ? now_ns : health.since_ns;
        own->health = health;
        if (differs && !(is_first && health.state == GPUHAL_HEALTH_OK)) {
            gpuhal_sampler_event event = {.size = sizeof event,
                                          .kind = GPUHAL_SAMPLER_HEALTH,
                                          .device = own->device,
                                          .time_ns = now_ns,
                                          .value = health.state};
            if (health.sentence[0]) {
                memcpy(event.sentence, health.sentence, sizeof event.sentence);
            } else {
                snprintf(event.sentence, sizeof event.sentence, "%s: its health is good again", own->device->id);
            }
            gpuhal_sampler_emit(sampler, &event, sampler->on_health);
        }
    }
}

gpuhal_status gpuhal_sampler_health(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_health *out_health)
{
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_health");
    if (status) {
        return status;
    }
    const uint32_t d = gpuhal_sampler_find_device(sampler, device);
    if (d == UINT32_MAX || !out_health || out_health->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_sampler_health: the device is not sampled, or out_health is NULL or of size 0");
    }
    gpuhal_mutex_lock(&sampler->mutex);
    gpuhal_health health = sampler->devices[d].health;
    gpuhal_mutex_unlock(&sampler->mutex);
    health.size = out_health->size;
    memcpy(out_health, &health, health.size < sizeof health ? health.size : sizeof health);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_sampler_on_health(gpuhal_sampler *sampler, gpuhal_sampler_fn *callback, void *user)
{
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_on_health");
    const int error = !status && callback ? gpuhal_serve(sampler->gpu) : 0;
    if (status || error) {
        return status ? status : gpuhal_error_no_thread(error);
    }
    gpuhal_mutex_lock(&sampler->mutex);
    sampler->on_health = callback;
    sampler->on_health_user = user;
    if (!callback) {
        gpuhal_sampler_await_callback_unlocks(sampler, GPUHAL_SAMPLER_OF_HEALTH);
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    return GPUHAL_OK;
}

const char *gpuhal_health_name(gpuhal_health_state state)
{
    static const char *const names[] = {"unknown", "ok", "degraded", "lost"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}
