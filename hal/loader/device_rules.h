/* loader/device_rules.h: what the ABI demands of a device that a plugin lists: of one fact, of all facts together, and of the
 * slots. Pure functions: the same rules hold in the helper, in this process, and for what a helper sent. */
#ifndef GPUHAL_LOADER_DEVICE_RULES_H
#define GPUHAL_LOADER_DEVICE_RULES_H

#include "loader/loader.h"

#include <stdbool.h>

#define GPUHAL_DEVICES_MAX   256u
#define GPUHAL_FACTS_MAX     256u /* of one device */
#define GPUHAL_FACT_TEXT_MAX 4096u

/* Each returns false and words the broken rule in problem. */
bool gpuhal_rules_number(gpuhal_key key, uint64_t value, char *problem, size_t bytes);
bool gpuhal_rules_text(gpuhal_key key, const char *value, char *problem, size_t bytes);
bool gpuhal_rules_missing(gpuhal_key key, gpuhal_missing reason, const char *why, char *problem, size_t bytes);
/* Every fact, and those that may not be missing. */
bool gpuhal_rules_device(const gpuhal_listed_device *device, char *problem, size_t bytes);
/* The mandatory slots, and groups that are offered whole or not at all. */
bool gpuhal_rules_slots(const gpuhal_ops *ops, char *problem, size_t bytes);
/* GPUHAL_CAPABILITY_ bits, read off the slots and the facts. */
uint32_t gpuhal_rules_capabilities(const gpuhal_ops *ops, const gpuhal_facts *facts);

#endif
