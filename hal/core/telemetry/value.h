/* telemetry/value.h: sets a value's number, or the reason why the number is missing. */
#ifndef GPUHAL_TELEMETRY_VALUE_H
#define GPUHAL_TELEMETRY_VALUE_H

#include <gpuhal/telemetry.h>

#include <stdbool.h>

/* Sets the number if it is plausible for a device. Otherwise the value becomes missing, with reason FAILED. Implausible
 * numbers are, for example, firmware sentinels (all bits set), a utilization above 100 percent, or more than 20 kW. */
void gpuhal_value_set(gpuhal_value *value, uint64_t number, const char *source);
/* If the value of a GPU part has a number, marks the value as the whole GPU's by appending "-board" to its source, as
 * in "sysfs-board". */
void gpuhal_value_of_board(gpuhal_value *value);
void gpuhal_value_miss(gpuhal_value *value, gpuhal_missing reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replaces the value by another source's result if that result is better: a number is better than a reason, any reason
 * that a user can act on is better than NOT_SUPPORTED, and any reason is better than NOT_SUPPORTED without a text.
 * Otherwise the value stays, so the first source has priority. */
void gpuhal_value_improve(gpuhal_value *value, const gpuhal_value *other);

#endif
