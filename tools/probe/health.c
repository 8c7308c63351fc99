/* health.c: see health.h. */
#include "health.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t value_of(const gpuhal_probe_device *entry, gpuhal_key key)
{
    uint64_t value = 0;
    return gpuhal_probe_value(entry, key, &value) ? value : 0;
}

const char *gpuhal_probe_ailment_name(gpuhal_probe_ailment ailment)
{
    static const char *const names[PROBE_AILMENTS] = {
        [PROBE_RESET_NEEDED] = "reset_needed",
        [PROBE_UNCORRECTED] = "ecc_uncorrected",
        [PROBE_TOO_HOT] = "throttled_by_heat",
        [PROBE_POWER_BRAKE] = "throttled_by_power_brake",
        [PROBE_SLOWED] = "throttled_by_hardware",
        [PROBE_PROHIBITED] = "prohibited",
        [PROBE_REPAIR_FAILED] = "repair_failed",
        [PROBE_REPAIR_PENDING] = "repair_pending",
        [PROBE_LOGGED] = "errors_logged",
        [PROBE_NARROW] = "pcie_narrow",
        [PROBE_LINKS_DOWN] = "links_down",
        [PROBE_LINK_ERRORS] = "link_errors",
        [PROBE_FABRIC_WAITS] = "fabric_not_ready",
        [PROBE_FABRIC_FAILED] = "fabric_failed",
        [PROBE_TAKEN] = "taken",
        [PROBE_VALUES_LOST] = "values_lost",
    };
    return names[ailment];
}

static bool is_prohibited(const gpuhal_probe_device *entry)
{
    uint64_t mode;
    return gpuhal_device_u64(entry->device, GPUHAL_FACT_COMPUTE_MODE, &mode) == GPUHAL_OK &&
           mode == GPUHAL_COMPUTE_PROHIBITED;
}

static bool is_narrow(const gpuhal_probe_device *entry)
{
    const uint64_t width = value_of(entry, GPUHAL_VALUE_PCIE_WIDTH);
    return width > 0 && width < entry->lanes;
}

/* The ailments that the library derives from values. This program derives the other ailments. */
static const uint32_t bits[PROBE_AILMENTS] = {
    [PROBE_RESET_NEEDED] = GPUHAL_AILMENT_RESET_NEEDED,
    [PROBE_UNCORRECTED] = GPUHAL_AILMENT_ECC_UNCORRECTED,
    [PROBE_REPAIR_FAILED] = GPUHAL_AILMENT_REPAIR_FAILED,
    [PROBE_REPAIR_PENDING] = GPUHAL_AILMENT_REPAIR_PENDING,
    [PROBE_TOO_HOT] = GPUHAL_AILMENT_THERMAL,
    [PROBE_POWER_BRAKE] = GPUHAL_AILMENT_POWER_BRAKE,
    [PROBE_SLOWED] = GPUHAL_AILMENT_HARDWARE,
    [PROBE_VALUES_LOST] = GPUHAL_AILMENT_VALUES_LOST,
    [PROBE_LINK_ERRORS] = GPUHAL_AILMENT_LINK_ERRORS,
    [PROBE_FABRIC_WAITS] = GPUHAL_AILMENT_FABRIC_WAITS,
    [PROBE_FABRIC_FAILED] = GPUHAL_AILMENT_FABRIC_FAILED,
};

bool gpuhal_probe_has(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment)
{
    switch (ailment) {
    case PROBE_PROHIBITED:
        return is_prohibited(entry);
    case PROBE_TAKEN:
        return entry->is_taken;
    case PROBE_LINKS_DOWN:
        return value_of(entry, GPUHAL_VALUE_LINKS_UP) < entry->links;
    case PROBE_LOGGED:
        return entry->logged.count > 0;
    case PROBE_NARROW:
        return is_narrow(entry);
    default:
        return entry->values && (gpuhal_ailments(entry->values->list, entry->values->count) & bits[ailment]);
    }
}

gpuhal_hardware_grade gpuhal_probe_ailment_grade(gpuhal_probe_ailment ailment)
{
    return ailment == PROBE_RESET_NEEDED                           ? GPUHAL_HARDWARE_PROBLEM
           : ailment == PROBE_PROHIBITED || ailment == PROBE_TAKEN ? GPUHAL_HARDWARE_NOTE
                                                                   : GPUHAL_HARDWARE_WARNING;
}

bool gpuhal_probe_is_ill(const gpuhal_probe_device *entry)
{
    bool ill = false;
    for (gpuhal_probe_ailment i = 0; i < PROBE_AILMENTS; i++) {
        ill = ill || (gpuhal_probe_ailment_grade(i) > GPUHAL_HARDWARE_NOTE && gpuhal_probe_has(entry, i));
    }
    return ill;
}

/* Writes the command that shows the vendor's details, and the meaning of possible results. For devices of backends
 * other than CUDA, writes only "gpuhal-probe --explain DEVICE". */
static void write_query(const gpuhal_probe_device *entry, const char *address, const char *what, const char *answers,
                        char fix[256])
{
    if (strcmp(gpuhal_device_backend(entry->device), "cuda") == 0) {
        snprintf(fix, 256, "nvidia-smi -q -d %s -i %.64s\n# %s", what, address, answers);
    } else {
        snprintf(fix, 256, "gpuhal-probe --explain %.64s", gpuhal_device_id(entry->device));
    }
}

static void write_taken(const gpuhal_probe_device *entry, const char *address, char why[256], char fix[256])
{
    char who[32] = "another process";
    if (entry->taken_by) {
        snprintf(who, sizeof who, "process %" PRIu32, entry->taken_by);
    }
    snprintf(why, 256,
             "its compute mode is exclusive, and %s has it: until that process ends, no other one can compute on it",
             who);
    snprintf(fix, 256, "# to let other programs in, too:\nsudo nvidia-smi -c DEFAULT -i %.64s", address);
}

void gpuhal_probe_ailment_words(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment, const char *address,
                                char why[256], char fix[256])
{
    const uint64_t errors = value_of(entry, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL);
    const uint64_t link_errors = value_of(entry, GPUHAL_VALUE_LINK_ERRORS_TOTAL);
    switch (ailment) {
    case PROBE_RESET_NEEDED:
        snprintf(why, 256, "the GPU needs a reset, as its driver reports");
        snprintf(fix, 256,
                 "# ends all programs on this GPU:\nsudo nvidia-smi --gpu-reset -i %.64s\n"
                 "# if that is refused; ends all programs on this machine:\nsudo reboot",
                 address);
        break;
    case PROBE_PROHIBITED:
        snprintf(why, 256, "its compute mode is prohibited: no program may compute on it");
        snprintf(fix, 256, "sudo nvidia-smi -c DEFAULT -i %.64s", address);
        break;
    case PROBE_TAKEN:
        write_taken(entry, address, why, fix);
        break;
    case PROBE_LINKS_DOWN:
        snprintf(why, 256, "only %" PRIu64 " of its %u links to other GPUs (NVLink) are up",
                 value_of(entry, GPUHAL_VALUE_LINKS_UP), entry->links);
        snprintf(fix, 256,
                 "nvidia-smi nvlink -s -i %.64s\n"
                 "# \"<inactive>\": reset the GPU; if it recurs: board, bridge, switch",
                 address);
        break;
    case PROBE_LINK_ERRORS:
        snprintf(why, 256, "its links to other GPUs (NVLink) had %" PRIu64 " error%s since its driver was loaded",
                 link_errors, link_errors == 1 ? "" : "s");
        snprintf(fix, 256,
                 "nvidia-smi nvlink -e -i %.64s\n"
                 "# numbers that grow: look at its board, bridge and switch",
                 address);
        break;
    case PROBE_FABRIC_WAITS:
    case PROBE_FABRIC_FAILED:
        snprintf(why, 256, "the fabric manager %s set up the switches between it and other GPUs",
                 ailment == PROBE_FABRIC_WAITS ? "has not" : "could not");
        snprintf(fix, 256, "# ends the CUDA programs of this machine:\nsudo systemctl restart nvidia-fabricmanager");
        break;
    case PROBE_VALUES_LOST:
        snprintf(why, 256,
                 "its driver reports for some values that the GPU has fallen off the bus, but reports others");
        snprintf(fix, 256, "sudo dmesg | grep -E 'NVRM|Xid'\n" GPUHAL_PROBE_LOST_ANSWERS);
        break;
    case PROBE_REPAIR_FAILED:
        snprintf(why, 256, "its memory has errors, and no spare rows are left to repair it with");
        write_query(entry, address, "ROW_REMAPPER,PAGE_RETIREMENT",
                    "\"Remapping Failure Occurred: Yes\": have the GPU replaced", fix);
        break;
    case PROBE_REPAIR_PENDING:
        snprintf(why, 256, "its memory has errors, and a reset is needed to repair it");
        write_query(entry, address, "ROW_REMAPPER,PAGE_RETIREMENT",
                    "\"Pending: Yes\": reset the GPU, once its programs have ended", fix);
        break;
    case PROBE_LOGGED:
        snprintf(why, 256, "its driver logged %u error%s since the machine started, the last one Xid %u",
                 entry->logged.count, entry->logged.count == 1 ? "" : "s", entry->logged.last);
        snprintf(fix, 256,
                 "sudo dmesg | grep -E 'NVRM|Xid'\n"
                 "# Xid 48, 63, 64, 94, 95: memory; 74: NVLink; 79: off the bus");
        break;
    case PROBE_NARROW:
        snprintf(why, 256, "its PCI Express link has %" PRIu64 " of the %u lanes that both ends can use",
                 value_of(entry, GPUHAL_VALUE_PCIE_WIDTH), entry->lanes);
        snprintf(fix, 256,
                 "sudo lspci -vv -s %.64s | grep LnkSta\n"
                 "# \"downgraded\": seat the card anew; try another slot or riser",
                 address);
        break;
    case PROBE_UNCORRECTED:
        snprintf(why, 256, "%" PRIu64 " memory error%s could not be corrected", errors, errors == 1 ? "" : "s");
        write_query(entry, address, "ECC,ROW_REMAPPER,PAGE_RETIREMENT",
                    "\"Pending: Yes\": reset it; \"Failure Occurred: Yes\": replace it", fix);
        break;
    case PROBE_TOO_HOT:
        snprintf(why, 256, "it is slowed down because it is too hot");
        write_query(entry, address, "TEMPERATURE,PERFORMANCE",
                    "near \"Slowdown Temp\": look at fans, dust and the air it gets", fix);
        break;
    case PROBE_SLOWED:
        snprintf(why, 256, "its hardware slows it down, because of heat or power");
        write_query(entry, address, "TEMPERATURE,POWER,PERFORMANCE",
                    "\"HW Thermal\" active: cooling; \"HW Power Brake\": power supply", fix);
        break;
    default:
        snprintf(why, 256, "it is slowed down because the power supply demands it (power brake)");
        write_query(entry, address, "POWER,PERFORMANCE",
                    "\"HW Power Brake\" active: look at the power supply and its cables", fix);
        break;
    }
}
