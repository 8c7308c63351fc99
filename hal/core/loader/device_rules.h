/* loader/device_rules.h: the ABI's demands on a device that a plugin lists: on one fact, on all facts together, and on
 * the slots. The functions are pure: the helper, this process, and the reader of a helper's stream check the same
 * rules. */
#ifndef GPUHAL_LOADER_DEVICE_RULES_H
#define GPUHAL_LOADER_DEVICE_RULES_H

#include "loader/loader.h"

#include <stdbool.h>

#define GPUHAL_DEVICES_MAX   256u
#define GPUHAL_FACTS_MAX     256u /* of one device */
#define GPUHAL_FACT_TEXT_MAX 4096u

/* Each returns false and describes the broken rule in `problem`. */
bool gpuhal_rules_number(gpuhal_key key, uint64_t value, char *problem, size_t bytes);
bool gpuhal_rules_text(gpuhal_key key, const char *value, char *problem, size_t bytes);
bool gpuhal_rules_missing(gpuhal_key key, gpuhal_missing reason, const char *why, char *problem, size_t bytes);
/* Checks every fact, and the mandatory ones. */
bool gpuhal_rules_device(const gpuhal_listed_device *device, char *problem, size_t bytes);
/* Checks the mandatory slots, and groups that must be offered as a whole. */
bool gpuhal_rules_slots(const gpuhal_ops *ops, char *problem, size_t bytes);
/* Returns GPUHAL_CAPABILITY_ bits, from the slots and the facts. */
uint32_t gpuhal_rules_capabilities(const gpuhal_ops *ops, const gpuhal_facts *facts);

#endif
