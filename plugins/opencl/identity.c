/* opencl/identity.c: identifies the physical device by PCI address with partition, UUID and LUID, and the driver by its
 * UUID.
 *
 * The Khronos query is tried first, then the vendors' queries. An error means that the driver does not support the
 * query. Devices that are the CPU are not queried, even if they report another type. Their values would belong to
 * another device, or be the same on every machine (rusticl's llvmpipe returns the Mesa version as its UUID). An address
 * without a domain is completed from the system's list of PCI devices if the result is unambiguous.
 */
#include "../common/text.h"
#include "device.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES  320u
#define VENDOR_AMD  0x1002u

#ifndef CL_DEVICE_PCI_BUS_ID_NV
#define CL_DEVICE_PCI_BUS_ID_NV  0x4008
#define CL_DEVICE_PCI_SLOT_ID_NV 0x4009
#endif
#ifndef CL_DEVICE_PCI_DOMAIN_ID_NV
#define CL_DEVICE_PCI_DOMAIN_ID_NV 0x400A
#endif

/* The structure of cl_khr_pci_bus_info; also used for the addresses from vendor queries. */
typedef struct pci_address {
    cl_uint domain, bus, device, function;
} pci_address;

/* Finds the domain of the only device with this bus, device and function. On machines with several domains (one per
 * MI300A, ROCm/clr#106) a guess would merge several GPUs into one. */
static bool find_domain(const char *devices, pci_address *address)
{
    char end[16];
    uint32_t found = 0;
    DIR *directory = opendir(devices);
    if (!directory) {
        return false;
    }
    snprintf(end, sizeof end, ":%02x:%02x.%x", address->bus & 0xff, address->device & 0x1f, address->function & 7);
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        const char *colon = strchr(entry->d_name, ':');
        if (colon && strcmp(colon, end) == 0) {
            address->domain = (cl_uint)strtoul(entry->d_name, NULL, 16);
            found++;
        }
    }
    closedir(directory);
    return found == 1;
}

static bool ask_khronos(cl_device_id id, pci_address *out_address)
{
    return gpuhal_opencl_ask(id, CL_DEVICE_PCI_BUS_INFO_KHR, out_address, sizeof *out_address);
}

/* NVIDIA's slot number contains device and function. Old drivers do not report the domain (Oblomov/clinfo#73). */
static bool ask_nvidia(const char *devices, cl_device_id id, pci_address *out_address)
{
    cl_uint slot = 0;
    if (!gpuhal_opencl_ask(id, CL_DEVICE_PCI_BUS_ID_NV, &out_address->bus, sizeof out_address->bus) ||
        !gpuhal_opencl_ask(id, CL_DEVICE_PCI_SLOT_ID_NV, &slot, sizeof slot)) {
        return false;
    }
    out_address->device = slot >> 3;
    out_address->function = slot & 7;
    return gpuhal_opencl_ask(id, CL_DEVICE_PCI_DOMAIN_ID_NV, &out_address->domain, sizeof out_address->domain) ||
           find_domain(devices, out_address);
}

/* The members of AMD's structure are signed characters. The domain is not reported. */
static bool ask_amd(const char *devices, cl_device_id id, pci_address *out_address)
{
    cl_device_topology_amd topology;
    if (!gpuhal_opencl_ask(id, CL_DEVICE_TOPOLOGY_AMD, &topology, sizeof topology) ||
        topology.raw.type != CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD) {
        return false;
    }
    *out_address = (pci_address){
        .bus = (unsigned char)topology.pcie.bus,
        .device = (unsigned char)topology.pcie.device,
        .function = (unsigned char)topology.pcie.function,
    };
    return find_domain(devices, out_address);
}

/* AMD's runtimes report the partition number as the function; the PCI device itself is function 0
 * (ROCm/rocm_smi_lib#208). */
static bool is_partition(const char *devices, cl_device_id id, const pci_address *address)
{
    cl_uint vendor = 0;
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/%04x:%02x:%02x.%x", devices, address->domain, address->bus, address->device,
             address->function);
    return address->function != 0 && gpuhal_opencl_ask(id, CL_DEVICE_VENDOR_ID, &vendor, sizeof vendor) &&
           vendor == VENDOR_AMD && access(path, F_OK) != 0;
}

/* Drivers that support the query but do not know the address return zeros. */
static bool is_possible(const pci_address *address)
{
    bool zero = address->domain == 0 && address->bus == 0 && address->device == 0 &&
                address->function == 0; /* the root bridge */
    return !zero && address->bus <= 0xff && address->device <= 0x1f && address->function <= 7;
}

static void list_pci_address(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    pci_address address = {0};
    char root[256] = "", devices[PATH_BYTES];
    (void)host->option(host, "opencl.system_root", root, sizeof root);
    snprintf(devices, sizeof devices, "%s/sys/bus/pci/devices", root);
    bool known = ask_khronos(id, &address) || ask_nvidia(devices, id, &address) || ask_amd(devices, id, &address);
    if (!known || !is_possible(&address)) {
        host->missing(host, sink, GPUHAL_FACT_PCI_ADDRESS, known ? GPUHAL_MISSING_FAILED : GPUHAL_MISSING_NOT_SUPPORTED,
                      known ? "the driver gives an impossible address"
                            : "the driver reports no PCI address (cl_khr_pci_bus_info), or no domain, and the system's "
                              "devices leave several");
        return;
    }
    char text[24];
    if (is_partition(devices, id, &address)) {
        snprintf(text, sizeof text, "%u", address.function);
        host->text(host, sink, GPUHAL_FACT_PARTITION, text);
        address.function = 0;
    }
    snprintf(text, sizeof text, "%04x:%02x:%02x.%x", address.domain, address.bus, address.device, address.function);
    host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, text);
}

/* Drivers report an all-zero UUID for chips without a serial number. Such a UUID would make all these chips one
 * device. */
static void list_uuid(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, cl_device_id id, cl_device_info what)
{
    static const unsigned char none[CL_UUID_SIZE_KHR];
    unsigned char uuid[CL_UUID_SIZE_KHR];
    if (!gpuhal_opencl_ask(id, what, uuid, sizeof uuid)) {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "the driver does not know cl_khr_device_uuid");
        return;
    }
    if (memcmp(uuid, none, sizeof uuid) == 0) {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, "the driver gives an empty UUID");
        return;
    }
    char text[37];
    gpuhal_plugin_write_uuid(uuid, text);
    host->text(host, sink, key, text);
}

static void list_luid(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    unsigned char luid[CL_LUID_SIZE_KHR];
    cl_bool valid = CL_FALSE;
    if (!gpuhal_opencl_ask(id, CL_DEVICE_LUID_VALID_KHR, &valid, sizeof valid) || !valid ||
        !gpuhal_opencl_ask(id, CL_DEVICE_LUID_KHR, luid, sizeof luid)) {
        host->missing(host, sink, GPUHAL_FACT_LUID, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver has none: only Windows gives them");
        return;
    }
    char text[2 * CL_LUID_SIZE_KHR + 1];
    for (size_t i = 0; i < sizeof luid; i++) {
        snprintf(text + 2 * i, 3, "%02x", luid[i]);
    }
    host->text(host, sink, GPUHAL_FACT_LUID, text);
}

void gpuhal_opencl_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry)
{
    cl_device_id id = entry->id;
    if (entry->software) {
        const gpuhal_key keys[] = {GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_UUID, GPUHAL_FACT_LUID,
                                   GPUHAL_FACT_DRIVER_UUID};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            host->missing(host, sink, keys[i], GPUHAL_MISSING_NOT_SUPPORTED,
                          "the device is the host's processor, not one on a bus");
        }
        return;
    }
    list_pci_address(host, sink, id);
    list_uuid(host, sink, GPUHAL_FACT_UUID, id, CL_DEVICE_UUID_KHR);
    list_uuid(host, sink, GPUHAL_FACT_DRIVER_UUID, id, CL_DRIVER_UUID_KHR);
    list_luid(host, sink, id);
}
