/* tests/plugins/later_abi.h: included before a plugin, makes the plugin claim an ABI that is GPUHAL_TEST_LATER minor
 * versions later than plugin.h. */
#ifndef GPUHAL_TEST_LATER_ABI_H
#define GPUHAL_TEST_LATER_ABI_H

#include <gpuhal/plugin.h>

enum { LATER_ABI_MINOR = GPUHAL_ABI_MINOR + GPUHAL_TEST_LATER };
#undef GPUHAL_ABI_MINOR
#define GPUHAL_ABI_MINOR ((unsigned)LATER_ABI_MINOR)

#endif
