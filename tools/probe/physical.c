/* physical.c: physical devices for people: what each is, and why devices are its interfaces or are not. */
#include "print.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

#define INDENT 4u

bool gpuhal_probe_physical(const gpuhal_probe_machine *machine, uint32_t index, gpuhal_physical_info *out_physical)
{
    *out_physical = (gpuhal_physical_info){.size = sizeof *out_physical};
    return index < gpuhal_physical_count(machine->gpu) &&
           gpuhal_physical_get(machine->gpu, index, out_physical) == GPUHAL_OK;
}

static bool is_processor(const gpuhal_probe_machine *machine, uint32_t index)
{
    const gpuhal_device *entry = gpuhal_physical_device(machine->gpu, index, 0);
    uint64_t software = 0, type = 0;
    gpuhal_device_u64(entry, GPUHAL_FACT_SOFTWARE, &software);
    gpuhal_device_u64(entry, GPUHAL_FACT_TYPE, &type);
    return software || type == GPUHAL_DEVICE_CPU;
}

void gpuhal_probe_print_heading(const gpuhal_probe_machine *machine, uint32_t index, const gpuhal_probe_screen *screen)
{
    gpuhal_physical_info physical;
    if (!gpuhal_probe_physical(machine, index, &physical)) {
        return;
    }
    char title[48], text[160] = "", space[PROBE_UUID_BYTES];
    const char *uuid = gpuhal_probe_physical_uuid(&physical, gpuhal_physical_device(machine->gpu, index, 0), space);
    snprintf(title, sizeof title, "physical device %u", physical.number);
    if (is_processor(machine, index)) {
        snprintf(text, sizeof text, "the host's processor");
    } else if (*physical.pci_address || *uuid) {
        snprintf(text, sizeof text, "%s%s%s%s%s", *physical.pci_address ? "PCI " : "", physical.pci_address,
                 *physical.pci_address && *uuid ? ", " : "", *uuid ? "UUID " : "", uuid);
    } else {
        snprintf(text, sizeof text, "neither PCI address nor UUID is known");
    }
    gpuhal_probe_screen_put(screen, PROBE_BOLD, title);
    fputs(": ", screen->out);
    gpuhal_probe_screen_wrap(screen, text, strlen(title) + 2, INDENT);
}

void gpuhal_probe_print_evidence(const gpuhal_probe_machine *machine, uint32_t index, const gpuhal_probe_screen *screen)
{
    static const char *const signs[2][2] = {{"!= ", "=  "}, {"≠ ", "= "}};
    gpuhal_evidence evidence = {.size = sizeof evidence};
    gpuhal_physical_info physical;
    for (uint32_t i = 0; gpuhal_probe_physical(machine, index, &physical) && i < physical.evidence_count; i++) {
        if (gpuhal_physical_evidence(machine->gpu, index, i, &evidence) == GPUHAL_OK) {
            const char *sign = signs[screen->utf8][evidence.same != 0];
            size_t column = INDENT + gpuhal_probe_screen_columns(screen, sign);
            fprintf(screen->out, "%*s", (int)INDENT, "");
            gpuhal_probe_screen_put(screen, evidence.same ? PROBE_GOOD : PROBE_WARN, sign);
            gpuhal_probe_screen_wrap(screen, evidence.sentence, column, column);
        }
    }
}
