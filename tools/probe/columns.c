/* columns.c: see columns.h. */
#include "columns.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *title;
    size_t width;
    bool to_the_right;
} columns[PROBE_COLUMN_COUNT] = {
    [PROBE_COLUMN_ID] = {"id", "ID", 6, false},
    [PROBE_COLUMN_NAME] = {"name", "NAME", 21, false},
    [PROBE_COLUMN_MEMORY] = {"memory", "USED/TOTAL GiB", 14, true},
    [PROBE_COLUMN_UTILIZATION] = {"utilization", "UTIL", 4, true},
    [PROBE_COLUMN_TEMPERATURE] = {"temperature", "TEMP", 4, true},
    [PROBE_COLUMN_POWER] = {"power", "POWER", 9, true},
    [PROBE_COLUMN_PCI] = {"pci", "PCI", 7, false},
    [PROBE_COLUMN_CLOCK] = {"clock", "CLOCK", 8, true},
    [PROBE_COLUMN_ECC] = {"ecc", "ECC", 5, true},
    [PROBE_COLUMN_FAN] = {"fan", "FAN", 4, true},
    [PROBE_COLUMN_NUMA] = {"numa", "NUMA", 4, true},
    [PROBE_COLUMN_LINK] = {"link", "PCIe", 7, true},
    [PROBE_COLUMN_DRIVER] = {"driver", "DRIVER", 10, false},
    [PROBE_COLUMN_CLOCK_MEMORY] = {"clock_memory", "MEM CLOCK", 9, true},
    [PROBE_COLUMN_VERIFIED] = {"verified", "OK", 2, false},
    [PROBE_COLUMN_UUID] = {"uuid", "UUID", 40, false},
    [PROBE_COLUMN_THROTTLE] = {"throttle", "THROTTLE", 9, false},
    [PROBE_COLUMN_PROCESSES] = {"processes", "PROCESSES", 9, true},
};

const char *gpuhal_probe_column_title(gpuhal_probe_column column)
{
    return columns[column].title;
}

size_t gpuhal_probe_column_width(gpuhal_probe_column column)
{
    return columns[column].width;
}

bool gpuhal_probe_column_is_right(gpuhal_probe_column column)
{
    return columns[column].to_the_right;
}

const char *gpuhal_probe_without_vendor(const char *name)
{
    static const char *const vendors[] = {"NVIDIA ", "AMD ", "Intel(R) ", "Intel "};
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (strncmp(name, vendors[i], strlen(vendors[i])) == 0) {
            return name + strlen(vendors[i]);
        }
    }
    return name;
}

size_t gpuhal_probe_columns_read(const char *names, gpuhal_probe_column out_columns[PROBE_COLUMN_COUNT])
{
    static const char separators[] = ", \t";
    size_t count = 0;
    for (const char *name = names + strspn(names, separators); *name; name += strspn(name, separators)) {
        const size_t length = strcspn(name, separators);
        size_t found = 0;
        while (found < PROBE_COLUMN_COUNT &&
               !(strlen(columns[found].name) == length && strncmp(columns[found].name, name, length) == 0)) {
            found++;
        }
        if (found == PROBE_COLUMN_COUNT || count == PROBE_COLUMN_COUNT) {
            char known[256] = "";
            for (size_t i = 0; i < PROBE_COLUMN_COUNT; i++) {
                gpuhal_tool_append(known, sizeof known, ", ", "%s", columns[i].name);
            }
            gpuhal_probe_say("--columns: there is no column \"%.*s\"; columns are %s", (int)length, name, known);
            return 0;
        }
        out_columns[count++] = (gpuhal_probe_column)found;
        name += length;
    }
    if (count == 0) {
        gpuhal_probe_say("--columns names no column");
    }
    return count;
}
