/* loader/device_rules.h: the ABI's requirements for a listed device, for each fact and for all facts together. The
 * functions are pure. The helper, this process and the reader of a helper's stream check the same rules. */
#ifndef GPUHAL_LOADER_DEVICE_RULES_H
#define GPUHAL_LOADER_DEVICE_RULES_H

#include "loader/loader.h"

#include <stdbool.h>

#define GPUHAL_DEVICES_MAX   256u
#define GPUHAL_FACTS_MAX     256u /* per device */
#define GPUHAL_FACT_TEXT_MAX 4096u

/* On failure these functions return false and describe the broken rule in `problem`. */
bool gpuhal_rules_number(gpuhal_key key, uint64_t value, char *problem, size_t bytes);
bool gpuhal_rules_text(gpuhal_key key, const char *value, char *problem, size_t bytes);
bool gpuhal_rules_missing(gpuhal_key key, gpuhal_missing reason, const char *why, char *problem, size_t bytes);
/* Checks every fact, and that no mandatory fact is missing. */
bool gpuhal_rules_device(const gpuhal_listed_device *device, char *problem, size_t bytes);

#endif
