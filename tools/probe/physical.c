/* physical.c: describes physical devices for people, and explains why devices are, or are not, interfaces of a physical
 * device. */
#include "listing.h"
#include "print.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

#define INDENT 4u

gpuhal_device *gpuhal_probe_interface(const gpuhal_view *view, uint32_t index)
{
    gpuhal_interface_info iface = {.size = sizeof iface};
    return gpuhal_view_get(view, GPUHAL_RECORD_INTERFACE, index, &iface) == GPUHAL_OK ? iface.device : NULL;
}

void gpuhal_probe_print_heading(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                const gpuhal_probe_screen *screen)
{
    const gpuhal_device *first = gpuhal_probe_interface(view, physical->first_interface);
    char title[48], text[160] = "", space[PROBE_UUID_BYTES];
    const char *uuid = gpuhal_probe_physical_uuid(physical, first, space);
    snprintf(title, sizeof title, "physical device %u", physical->number);
    if (gpuhal_probe_is_processor(first)) {
        snprintf(text, sizeof text, "the host's processor");
    } else if (*physical->pci_address || *uuid) {
        snprintf(text, sizeof text, "%s%s%s%s%s", *physical->pci_address ? "PCI " : "", physical->pci_address,
                 *physical->pci_address && *uuid ? ", " : "", *uuid ? "UUID " : "", uuid);
    } else {
        snprintf(text, sizeof text, "neither PCI address nor UUID is known");
    }
    gpuhal_probe_screen_put(screen, PROBE_BOLD, title);
    fputs(": ", screen->out);
    gpuhal_probe_screen_wrap(screen, text, strlen(title) + 2, INDENT);
}

void gpuhal_probe_print_evidence(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                 const gpuhal_probe_screen *screen)
{
    static const char *const signs[2][2] = {{"!= ", "=  "}, {"≠ ", "= "}};
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; i < physical->evidence_count; i++) {
        if (gpuhal_view_get(view, GPUHAL_RECORD_EVIDENCE, physical->first_evidence + i, &evidence) == GPUHAL_OK) {
            const char *sign = signs[screen->utf8][evidence.same != 0];
            size_t column = INDENT + gpuhal_probe_screen_columns(screen, sign);
            fprintf(screen->out, "%*s", (int)INDENT, "");
            gpuhal_probe_screen_put(screen, evidence.same ? PROBE_GOOD : PROBE_WARN, sign);
            gpuhal_probe_screen_wrap(screen, evidence.sentence, column, column);
        }
    }
}
