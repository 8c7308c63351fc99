/* hardware_record.c: see hardware_record.h. */
#include "hardware_record.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define AMD                 0x1002u
#define NVIDIA              0x10deu
#define CLASS_ACCELERATOR   0x12u   /* first byte of the class */
#define CLASS_3D_CONTROLLER 0x0302u /* first two bytes of the class; integrated GPUs do not have it */

/* Determines the type from vendor and class. NVIDIA has no integrated graphics on PCI, and AMD's library reports AMD's
 * accelerators as GPUs. */
static gpuhal_device_type type_of_class(const gpuhal_hardware_info *hardware)
{
    const bool accelerates = hardware->pci_class >> 16 == CLASS_ACCELERATOR;
    const bool is_gpu = (hardware->vendor_id == NVIDIA && *hardware->address) ||
                        hardware->pci_class >> 8 == CLASS_3D_CONTROLLER || (accelerates && hardware->vendor_id == AMD);
    if (hardware->state == GPUHAL_HARDWARE_DISPLAY_ONLY) {
        return 0;
    }
    return is_gpu ? GPUHAL_DEVICE_GPU : accelerates ? GPUHAL_DEVICE_ACCELERATOR : 0;
}

const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware)
{
    uint64_t type = type_of_class(hardware);
    for (uint32_t i = 0; hardware->physical && i < machine->count; i++) {
        if (machine->devices[i].physical == hardware->physical && machine->devices[i].preferred) {
            gpuhal_device_u64(machine->devices[i].device, GPUHAL_FACT_TYPE, &type);
        }
    }
    return type ? gpuhal_device_type_name((gpuhal_device_type)type) : "";
}

const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                       char space[PROBE_UUID_BYTES])
{
    gpuhal_interface_record known = {.size = sizeof known};
    if (*hardware->partition) {
        return gpuhal_probe_uuid(hardware->partition, hardware->vendor_id, true, space);
    }
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &known) == GPUHAL_OK;
         i++) {
        if (hardware->physical && known.physical == hardware->physical && *known.uuid && !*known.partition) {
            return gpuhal_probe_uuid(known.uuid, hardware->vendor_id, false, space);
        }
    }
    return "";
}

/* ---- selectors, parsed as in the library */

const char *gpuhal_probe_short_address(const char *address)
{
    static const char domain[] = "0000:";
    return address + (strncmp(address, domain, strlen(domain)) == 0 ? strlen(domain) : 0);
}

bool gpuhal_probe_hardware_is_at(const gpuhal_hardware_info *hardware, const char *selector)
{
    enum { DOMAIN_DIGITS = 4 }; /* further leading zeros are ignored; NVIDIA's tools write eight digits */
    selector += strncmp(selector, "pci=", 4) == 0 ? 4 : 0;
    const char *first = strchr(selector, ':'), *bus = strchr(hardware->address, ':');
    if (!first || !bus) {
        return false;
    }
    if (!strchr(first + 1, ':')) {
        return strcasecmp(bus + 1, selector) == 0;
    }
    while (first - selector > DOMAIN_DIGITS && *selector == '0') {
        selector++;
    }
    return strcasecmp(hardware->address, selector) == 0;
}

static bool is_unlisted(const gpuhal_hardware_info *hardware)
{
    return hardware->device_count == 0 && hardware->state != GPUHAL_HARDWARE_READY;
}

enum { UUID_DIGITS = 32 };

/* Reads the hex digits of "GPU-1a2b", "MIG-1a2b", "uuid=1a2b" or a whole UUID. Returns false for any other text. Sets
 * *out_is_part for "MIG-", which refers to a partition. */
static bool read_digits(const char *selector, char to[UUID_DIGITS + 1], bool *out_is_part)
{
    const char *text = selector + (strncmp(selector, "uuid=", 5) == 0 ? 5 : 0);
    *out_is_part = strncasecmp(text, "MIG-", 4) == 0;
    text += strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0 ? 4 : 0;
    size_t count = 0;
    bool good = text > selector || (strlen(text) == UUID_DIGITS + 4 && text[8] == '-');
    for (; good && *text; text++) {
        good = *text == '-' || (isxdigit((unsigned char)*text) && count < UUID_DIGITS);
        if (good && *text != '-') {
            to[count++] = (char)tolower((unsigned char)*text);
        }
    }
    to[count] = 0;
    return good && count > 0;
}

static bool begins(const char *uuid, const char *digits)
{
    for (; *digits; uuid++) {
        if (*uuid != '-' && *uuid != *digits++) {
            return false;
        }
    }
    return true;
}

/* Compares the digits with the UUID in the library's form and in the vendor's form. */
static bool is_uuid(const char *uuid, uint32_t vendor_id, const char *digits)
{
    char space[PROBE_UUID_BYTES];
    const char *written = gpuhal_probe_uuid(uuid, vendor_id, false, space);
    written += strncmp(written, "GPU-", 4) == 0 ? 4 : 0;
    return *uuid && (begins(uuid, digits) || begins(written, digits));
}

static bool had_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware, const char *digits,
                     bool is_part)
{
    gpuhal_interface_record known = {.size = sizeof known};
    bool found = false;
    for (uint32_t i = 0;
         !found && gpuhal_view_get(machine->view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &known) == GPUHAL_OK; i++) {
        found = known.physical == hardware->physical && (!is_part || *known.partition) &&
                is_uuid(known.uuid, hardware->vendor_id, digits);
    }
    return found;
}

/* Reads the backend and the last number from "cuda:7" or "cuda:0-7". */
static bool read_id(const char *selector, char backend[32], unsigned long *out_last)
{
    const size_t length = strcspn(selector, ":");
    char *end = NULL;
    if (length >= 32 || !selector[length] || !isdigit((unsigned char)selector[length + 1])) {
        return false;
    }
    snprintf(backend, 32, "%.*s", (int)length, selector);
    *out_last = strtoul(selector + length + 1, &end, 10);
    if (*end == '-') {
        *out_last = strtoul(end + 1, &end, 10);
    }
    return *end == 0;
}

/* Returns how many devices of this backend the record contains for the hardware. */
static uint32_t count_recorded(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                               const char *backend)
{
    gpuhal_interface_record known = {.size = sizeof known};
    uint32_t count = 0;
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &known) == GPUHAL_OK;
         i++) {
        count += known.physical == hardware->physical && strcmp(known.backend, backend) == 0;
    }
    return count;
}

/* Returns whether the device would exist if all recorded devices were listed. Devices of a backend are numbered without
 * gaps, so if some are missing, the last numbers do not exist. */
static bool would_exist(const gpuhal_probe_machine *machine, const char *backend, unsigned long last)
{
    unsigned long count = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        count += strcmp(gpuhal_device_backend(machine->devices[i].device), backend) == 0;
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *hardware = &machine->hardware[i];
        count += is_unlisted(hardware) && hardware->physical ? count_recorded(machine, hardware, backend) : 0;
    }
    return last < count;
}

/* Reads the last number from "7" or "0-7". */
static bool read_rows(const char *selector, unsigned long *out_last)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*selector)) {
        return false;
    }
    *out_last = strtoul(selector, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1])) {
        *out_last = strtoul(end + 1, &end, 10);
    }
    return *end == 0;
}

static bool is_excluded(const gpuhal_probe_machine *machine, const char *backend)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    bool excluded = false;
    for (uint32_t i = 0; !excluded && gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK;
         i++) {
        excluded = report.state == GPUHAL_PLUGIN_EXCLUDED && strcmp(report.name, backend) == 0;
    }
    return excluded;
}

/* Returns how many rows the hardware had, if it has no device now and its grade is PROBLEM; otherwise 0. Partitioned
 * hardware had several rows. */
static uint32_t count_rows(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware)
{
    gpuhal_interface_record known = {.size = sizeof known};
    if (!is_unlisted(hardware) || !hardware->physical || hardware->grade != GPUHAL_HARDWARE_PROBLEM) {
        return 0;
    }
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &known) == GPUHAL_OK;
         i++) {
        if (known.physical == hardware->physical && !is_excluded(machine, known.backend)) {
            return count_recorded(machine, hardware, known.backend);
        }
    }
    return 0;
}

/* Returns whether a GPU whose rows count_rows() counts would have this number. GPUs precede the processor, so the
 * processor has the number of a GPU if GPUs are missing. */
static bool would_be_row(const gpuhal_probe_machine *machine, unsigned long last)
{
    unsigned long listed = 0, missing = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        listed += machine->devices[i].preferred && !machine->devices[i].processor;
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        missing += count_rows(machine, &machine->hardware[i]);
    }
    return last >= listed && last < listed + missing;
}

bool gpuhal_probe_rows_are_missing(const gpuhal_probe_machine *machine, const char *selector)
{
    unsigned long last = 0;
    return read_rows(selector, &last) && would_be_row(machine, last);
}

/* Accepts hardware unless it is known not to be a GPU. If a vendor also makes integrated graphics, the class does
 * not always show whether the hardware is integrated. */
static bool may_be_gpu(const gpuhal_hardware_info *hardware)
{
    return hardware->state != GPUHAL_HARDWARE_DISPLAY_ONLY && type_of_class(hardware) != GPUHAL_DEVICE_ACCELERATOR;
}

bool gpuhal_probe_hardware_is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                    const char *selector)
{
    char digits[UUID_DIGITS + 1], backend[32];
    unsigned long last = 0;
    bool is_part = false;
    if (!is_unlisted(hardware) || gpuhal_probe_hardware_is_at(hardware, selector)) {
        return is_unlisted(hardware);
    }
    if (strcmp(selector, "gpu") == 0) {
        return may_be_gpu(hardware);
    }
    if (!hardware->physical) {
        return false;
    }
    if (count_rows(machine, hardware) > 0 && gpuhal_probe_rows_are_missing(machine, selector)) {
        return true;
    }
    return read_digits(selector, digits, &is_part)
               ? had_uuid(machine, hardware, digits, is_part)
               : read_id(selector, backend, &last) && count_recorded(machine, hardware, backend) > 0 &&
                     would_exist(machine, backend, last);
}
