/* telemetry/ailment.c: derives a device's health from the values of one reading. docs/telemetry.md lists the rules.
 */
#include "telemetry/telemetry.h"

static uint32_t of_throttle(uint64_t reasons)
{
    const uint32_t causes = (reasons & GPUHAL_THROTTLE_THERMAL ? GPUHAL_AILMENT_THERMAL : 0) |
                            (reasons & GPUHAL_THROTTLE_POWER_BRAKE ? GPUHAL_AILMENT_POWER_BRAKE : 0);
    /* NVIDIA sets HARDWARE in addition to the specific cause. */
    return causes ? causes : reasons & GPUHAL_THROTTLE_HARDWARE ? GPUHAL_AILMENT_HARDWARE : 0;
}

uint32_t gpuhal_ailments(const gpuhal_value *values, uint32_t count)
{
    uint32_t ailments = 0;
    for (uint32_t i = 0; values && i < count; i++) {
        const gpuhal_value *value = &values[i];
        if (value->missing) {
            ailments |= value->missing == GPUHAL_MISSING_RESET  ? GPUHAL_AILMENT_RESET_NEEDED
                        : value->missing == GPUHAL_MISSING_LOST ? GPUHAL_AILMENT_VALUES_LOST
                                                                : 0;
        } else if (value->key == GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL) {
            ailments |= value->u64 > 0 ? GPUHAL_AILMENT_ECC_UNCORRECTED : 0;
        } else if (value->key == GPUHAL_VALUE_MEMORY_REPAIR) {
            ailments |= value->u64 == GPUHAL_MEMORY_REPAIR_FAILED    ? GPUHAL_AILMENT_REPAIR_FAILED
                        : value->u64 == GPUHAL_MEMORY_REPAIR_PENDING ? GPUHAL_AILMENT_REPAIR_PENDING
                                                                     : 0;
        } else if (value->key == GPUHAL_VALUE_LINK_ERRORS_TOTAL) {
            ailments |= value->u64 > 0 ? GPUHAL_AILMENT_LINK_ERRORS : 0;
        } else if (value->key == GPUHAL_VALUE_FABRIC) {
            ailments |= value->u64 == GPUHAL_FABRIC_FAILED  ? GPUHAL_AILMENT_FABRIC_FAILED
                        : value->u64 == GPUHAL_FABRIC_WAITS ? GPUHAL_AILMENT_FABRIC_WAITS
                                                            : 0;
        } else if (value->key == GPUHAL_VALUE_THROTTLE_REASONS) {
            ailments |= of_throttle(value->u64);
        }
    }
    return ailments;
}
