/* telemetry/value.c: see value.h. */
#include "telemetry/value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns the largest number that a device can have. The limits are generous; they only detect invalid measurements
 * such as 0xffff degrees or megahertz. */
static uint64_t largest(gpuhal_key key)
{
    switch (key) {
    case GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS:
    case GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS:
    case GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS:
        return 250000;
    case GPUHAL_VALUE_POWER_MICROWATTS:
    case GPUHAL_VALUE_POWER_LIMIT_MICROWATTS:
    case GPUHAL_VALUE_CLOCK_CORE_HERTZ:
    case GPUHAL_VALUE_CLOCK_MEMORY_HERTZ:
        return UINT64_C(20000000000);
    case GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE:
    case GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE:
    case GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE:
    case GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE:
        return 1000;
    case GPUHAL_VALUE_FAN_PERMILLE:
        return 2000;
    case GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE:
        return UINT16_MAX - 1;
    case GPUHAL_VALUE_PCIE_GENERATION:
    case GPUHAL_VALUE_PCIE_GENERATION_MAX:
        return 15;
    case GPUHAL_VALUE_PCIE_WIDTH:
    case GPUHAL_VALUE_PCIE_WIDTH_MAX:
        return 32;
    case GPUHAL_VALUE_PERFORMANCE_STATE:
        return 31; /* NVML reports 32 if the value is unknown */
    case GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND:
    case GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND:
        return UINT64_C(4000000000000);
    default:
        return UINT64_MAX - 1;
    }
}

/* Vendor keys may have any number. */
static bool is_plausible(gpuhal_key key, uint64_t number)
{
    const bool link = key >= GPUHAL_VALUE_PCIE_GENERATION && key <= GPUHAL_VALUE_PCIE_WIDTH_MAX;
    return key >= GPUHAL_VENDOR_FIRST || (number <= largest(key) && number != UINT32_MAX && (!link || number > 0));
}

void gpuhal_value_set(gpuhal_value *value, uint64_t number, const char *source)
{
    if (!is_plausible(value->key, number)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "%.15s has %" PRIu64 ", which is no measurement", source,
                          number);
        return;
    }
    *value = (gpuhal_value){.key = value->key, .u64 = number};
    snprintf(value->source, sizeof value->source, "%s", source);
}

void gpuhal_value_of_board(gpuhal_value *value)
{
    const size_t length = strlen(value->source);
    if (length > 0) {
        snprintf(value->source + length, sizeof value->source - length, "-board");
    }
}

void gpuhal_value_miss(gpuhal_value *value, gpuhal_missing reason, const char *format, ...)
{
    *value = (gpuhal_value){.key = value->key, .missing = reason};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value->why, sizeof value->why, format, arguments);
    va_end(arguments);
}

void gpuhal_value_improve(gpuhal_value *value, const gpuhal_value *other)
{
    const bool says_more = value->missing == GPUHAL_MISSING_NOT_SUPPORTED &&
                           (!value->why[0] || other->missing != GPUHAL_MISSING_NOT_SUPPORTED);
    if (value->missing && (!other->missing || says_more)) {
        *value = *other;
    }
}
