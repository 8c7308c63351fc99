/* loader/abi.c: see abi.h. */
#include "loader/abi.h"

const gpuhal_abi_rule gpuhal_abi_own = {
    .major = GPUHAL_ABI_MAJOR,
    .minor = GPUHAL_CORE_ABI_MINOR,
    .oldest_minor = GPUHAL_ABI_MINOR,
    .newest_minor = GPUHAL_CORE_ABI_NEWEST_MINOR,
};

bool gpuhal_abi_taken(const gpuhal_abi_rule *rule, uint32_t plugin_abi)
{
    const uint32_t minor = plugin_abi & 0xffff;
    return plugin_abi >> 16 == rule->major && minor >= rule->oldest_minor && minor <= rule->newest_minor;
}
