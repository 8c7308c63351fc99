/* hardware_record.c: see hardware_record.h. */
#include "hardware_record.h"

#define AMD                 0x1002u
#define NVIDIA              0x10deu
#define CLASS_ACCELERATOR   0x12u   /* the first byte of the class */
#define CLASS_3D_CONTROLLER 0x0302u /* the first two: no processor has such a one in it */

/* By vendor and class. NVIDIA has no graphics in processors on PCI; AMD's accelerators are GPUs to its own library. */
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

const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware)
{
    gpuhal_interface_record known = {.size = sizeof known};
    for (uint32_t i = 0; hardware->physical; i++) {
        if (gpuhal_registry_interface(machine->record, i, &known)) {
            break;
        }
        if (known.physical == hardware->physical && *known.uuid && !*known.partition) {
            return known.uuid;
        }
    }
    return "";
}
