/* device_memory.c: queries the used device memory without the library, through NVML (declared in the CUDA plugin's
 * folder) or a file of AMD's kernel driver. The queries use no device memory. */
#include "../../plugins/cuda/nvml_api.h"
#include "measure.h"
#include "members.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER(name, arguments)  nvmlReturn_t(*name) arguments;
#define SYMBOL(name, arguments)  {#name, &nvml.name},
#define NOTHING(name, arguments) /* Optional functions are not called here. */

static struct {
    GPUHAL_NVML_FUNCTIONS(MEMBER, NOTHING)
} nvml;

static bool open_nvml(void)
{
    static bool opened;
    static const gpuhal_bench_symbol symbols[] = {GPUHAL_NVML_FUNCTIONS(SYMBOL, NOTHING)};
    const char *wish = secure_getenv("GPUHAL_NVML_LIBRARY");
    if (opened) {
        return true;
    }
    void *library = dlopen(wish != NULL && *wish != '\0' ? wish : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return gpuhal_bench_failed("%s", dlerror());
    }
    opened = gpuhal_bench_find_symbols("NVML", library, symbols, sizeof symbols / sizeof *symbols);
    return opened;
}

bool gpuhal_bench_cuda_memory(const char *pci, double *out_kib)
{
    nvmlDevice_t device;
    nvmlMemory_t memory;
    if (!open_nvml()) {
        return false;
    }
    nvmlReturn_t code = nvml.nvmlInit_v2();
    code = code != NVML_SUCCESS ? code : nvml.nvmlDeviceGetHandleByPciBusId_v2(pci, &device);
    code = code != NVML_SUCCESS ? code : nvml.nvmlDeviceGetMemoryInfo(device, &memory);
    if (code != NVML_SUCCESS) {
        return gpuhal_bench_failed("NVML returned %u about the memory of %s", code, pci);
    }
    *out_kib = (double)memory.used / 1024;
    return true;
}

bool gpuhal_bench_hip_memory(const char *pci, double *out_kib)
{
    char path[128];
    uint64_t used;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_vram_used", pci);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return gpuhal_bench_failed("%s cannot be opened", path);
    }
    const bool good = fscanf(file, "%" SCNu64, &used) == 1;
    fclose(file);
    *out_kib = good ? (double)used / 1024 : 0;
    return good || gpuhal_bench_failed("%s holds no number", path);
}
