/* forget.c: see forget.h. If several GPUs were at one address, the row shows the last GPU. Forgetting the row forgets
 * all of these GPUs that are gone. */
#include "forget.h"

#include "hardware_record.h"
#include "screen.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char by_name[] = "name=";

bool gpuhal_probe_is_for_hardware(const char *value)
{
    /* Plugin names have only these characters. A UUID without a prefix begins with a digit or contains dashes. */
    const size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return value[length] != 0 || (*value >= '0' && *value <= '9');
}

static bool is_gone(const gpuhal_hardware_info *hardware)
{
    return hardware->state == GPUHAL_HARDWARE_GONE;
}

static bool is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware, const char *selector)
{
    return strncmp(selector, by_name, strlen(by_name)) == 0
               ? fnmatch(selector + strlen(by_name), hardware->name, FNM_CASEFOLD) == 0
               : gpuhal_probe_hardware_is_meant(machine, hardware, selector);
}

static gpuhal_status forget_row(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0;
         !status && gpuhal_view_get(machine->view, GPUHAL_RECORD_REGISTRY_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        if (strcmp(physical.pci_address, hardware->address) == 0) {
            status = gpuhal_registry_forget_physical(NULL, physical.number);
            status = status == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_OK : status; /* another process has already removed the
                                                                             * row */
        }
    }
    return status;
}

gpuhal_status gpuhal_probe_forget_gone(const gpuhal_probe_machine *machine)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; !status && i < machine->hardware_count; i++) {
        status = is_gone(&machine->hardware[i]) ? forget_row(machine, &machine->hardware[i]) : GPUHAL_OK;
    }
    return status;
}

/* Returns the present device, or the hardware without a device, that the selector refers to; "" if there is none. */
static const char *find_present(const gpuhal_probe_machine *machine, const char *selector)
{
    gpuhal_device *device = NULL;
    if (gpuhal_select(machine->gpu, selector, 0, &device, NULL) == GPUHAL_OK &&
        !gpuhal_probe_rows_are_missing(machine, selector)) {
        return gpuhal_device_id(device);
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        if (!is_gone(hardware) && hardware->device_count == 0 && is_meant(machine, hardware, selector)) {
            return *hardware->address ? hardware->address : hardware->place;
        }
    }
    return "";
}

static gpuhal_probe_exit forget_one(const gpuhal_probe_machine *machine, const char *selector, FILE *out)
{
    const gpuhal_hardware_info *found = NULL;
    const char *present = find_present(machine, selector);
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        if (is_gone(hardware) && is_meant(machine, hardware, selector)) {
            found = hardware;
            count++;
        }
    }
    if (*present) {
        gpuhal_probe_say("--forget: \"%s\" names %s, which is still there", selector, present);
        return PROBE_USAGE;
    }
    if (count == 0) {
        gpuhal_probe_say("--forget: \"%s\" names no GPU whose row says MISSING", selector);
        return PROBE_NOT_FOUND;
    }
    if (count > 1) {
        gpuhal_probe_say("--forget: \"%s\" names %u GPUs that are gone; give the PCI address of one", selector, count);
        return PROBE_USAGE;
    }
    if (forget_row(machine, found)) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        return PROBE_INTERNAL;
    }
    gpuhal_probe_screen screen;
    gpuhal_probe_screen_init(&screen, out);
    char text[512];
    snprintf(text, sizeof text, "forgotten: %s at %s", found->name, found->address);
    gpuhal_probe_screen_wrap(&screen, text, 0, 4);
    return PROBE_COMPLETE;
}

gpuhal_probe_exit gpuhal_probe_forget_hardware(const gpuhal_probe_options *options, const char *selector, FILE *out)
{
    gpuhal_probe_options listing = *options;
    gpuhal_probe_machine machine;
    listing.cached = true;      /* values are not needed */
    unsetenv("GPUHAL_DEVICES"); /* hidden devices are not gone */
    gpuhal_probe_exit code = gpuhal_probe_machine_open(&listing, &machine);
    if (code == PROBE_GO_ON) {
        code = forget_one(&machine, selector, out);
    }
    gpuhal_probe_machine_finish(&machine);
    return code;
}
