/* telemetry/value.h: sets a value's number, or the reason why it has none. */
#ifndef GPUHAL_TELEMETRY_VALUE_H
#define GPUHAL_TELEMETRY_VALUE_H

#include <gpuhal/telemetry.h>

#include <stdbool.h>

/* Sets the number if it is plausible for a device. Firmware sentinels (all ones), more than 100 percent, or kilowatts
 * of power make the value missing (failed). */
void gpuhal_value_set(gpuhal_value *value, uint64_t number, const char *source);
/* For a part of a GPU: marks the number, if there is one, as the whole GPU's. Its source becomes "sysfs-board". */
void gpuhal_value_of_board(gpuhal_value *value);
void gpuhal_value_miss(gpuhal_value *value, gpuhal_missing reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes another source's result if it is better: a number, or a reason that a user can act on in place of
 * NOT_SUPPORTED. If both are equally good, the first result stays. */
void gpuhal_value_improve(gpuhal_value *value, const gpuhal_value *other);

#endif
