/* device/selector_limit.c: parses the memory limit after a selector, such as "@8GiB" or "@25%". */
#include "device/selector.h"

#include "base/facts.h"

#include <string.h>

static bool read_number(const char **text, uint64_t *out_number)
{
    const char *begin = *text;
    uint64_t number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**text - '0'), &number)) {
            return false;
        }
    }
    *out_number = number;
    return *text > begin;
}

bool gpuhal_selector_read_limit(const char *text, gpuhal_selector *selector)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"B", 1},
                 {"K", UINT64_C(1) << 10},
                 {"KiB", UINT64_C(1) << 10},
                 {"M", UINT64_C(1) << 20},
                 {"MiB", UINT64_C(1) << 20},
                 {"G", UINT64_C(1) << 30},
                 {"GiB", UINT64_C(1) << 30},
                 {"T", UINT64_C(1) << 40},
                 {"TiB", UINT64_C(1) << 40},
                 {"kB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", UINT64_C(1000000000000)}};
    uint64_t number;
    if (!read_number(&text, &number) || number == 0) {
        return false;
    }
    if (strcmp(text, "%") == 0) {
        selector->limit_percent = number <= 100 ? (uint32_t)number : 0;
        return number <= 100;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i].name) == 0) {
            selector->limit_bytes = number <= UINT64_MAX / units[i].bytes ? number * units[i].bytes : 0;
            return selector->limit_bytes > 0;
        }
    }
    return false;
}

uint64_t gpuhal_selector_limit(const gpuhal_selector *selector, const gpuhal_device *device)
{
    const uint64_t total = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    if (selector->limit_percent > 0) {
        const uint64_t share = total / 100 * selector->limit_percent + total % 100 * selector->limit_percent / 100;
        return total > 0 && share == 0 ? 1 : share;
    }
    return total > 0 && total < selector->limit_bytes ? total : selector->limit_bytes;
}
