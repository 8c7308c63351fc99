/* loader/abi.h: the version of the plugin ABI that this core speaks, and the versions of plugins that it takes. */
#ifndef GPUHAL_LOADER_ABI_H
#define GPUHAL_LOADER_ABI_H

#include <gpuhal/plugin.h>

#include <stdbool.h>
#include <stdint.h>

/* A core's own version, and the minor versions of the same major version that it takes. */
typedef struct gpuhal_abi_rule {
    uint32_t major, minor;
    uint32_t oldest_minor, newest_minor; /* UINT32_MAX: every later one */
} gpuhal_abi_rule;

/* Tests build a core of a later minor version, and define GPUHAL_TEST_ABI as the number of versions between. This core
 * takes the minor version of plugin.h and every later one, as a core of version 1.0 will. */
#ifdef GPUHAL_TEST_ABI
#define GPUHAL_CORE_ABI_MINOR        (GPUHAL_ABI_MINOR + GPUHAL_TEST_ABI)
#define GPUHAL_CORE_ABI_NEWEST_MINOR UINT32_MAX
#else
#define GPUHAL_CORE_ABI_MINOR        GPUHAL_ABI_MINOR
#define GPUHAL_CORE_ABI_NEWEST_MINOR GPUHAL_ABI_MINOR
#endif
#define GPUHAL_CORE_ABI ((GPUHAL_ABI_MAJOR << 16) | GPUHAL_CORE_ABI_MINOR)

/* The rule of this core. */
extern const gpuhal_abi_rule gpuhal_abi_own;

/* Returns whether a core with this rule takes a plugin whose table, or manifest, has this version. */
bool gpuhal_abi_taken(const gpuhal_abi_rule *rule, uint32_t plugin_abi);

#endif
