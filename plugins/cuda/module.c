/* cuda/module.c: CUDA's formats of code, `ptx`, `cubin` and `fatbin`, loading them, and what kernels share. */
#include "../stream/image.h"
#include "device.h"

#include <string.h>

#define LOG_BYTES 2048u

/* ---- images */

/* Neither unused nor memory that the file has no bytes for: zeroed, or, in code that can be linked further, what
 * NVIDIA calls global, local and shared. */
static bool is_in_file(uint64_t type)
{
    return type != 0 && type != 8 && type != 0x70000007 && type != 0x70000009 && type != 0x7000000a;
}

/* A header of 16 bytes: magic, version, its own size, and the size of what follows. */
static bool is_fatbin(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 16 || number_at(image, 0, 4) != 0xba55ed50u) {
        return false;
    }
    /* The size of what follows is 64 bits of the file's: compared with what is left, never added. */
    const uint64_t header = number_at(image, 6, 2), rest = number_at(image, 8, 8);
    return header <= bytes && rest <= bytes - header;
}

bool gpuhal_cuda_is_format(const char *format)
{
    return strcmp(format, "ptx") == 0 || strcmp(format, "cubin") == 0 || strcmp(format, "fatbin") == 0;
}

/* PTX is a text, which the driver wants ended by a zero. */
bool gpuhal_cuda_is_image(const char *format, const unsigned char *image, uint64_t bytes)
{
    return strcmp(format, "ptx") == 0 ||
           (strcmp(format, "cubin") == 0 ? is_elf(image, bytes, is_in_file) : is_fatbin(image, bytes));
}

/* ---- modules */

/* The compiler's log in one line. */
static void make_line(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] < 0x20 || text[i] >= 0x7f ? ' ' : text[i];
    }
    while (length > 0 && text[length - 1] == ' ') {
        text[--length] = '\0';
    }
}

gpuhal_status gpuhal_cuda_load_module(gpuhal_plugin_device *device, const void *image, CUmodule *out_module)
{
    char log[LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)}; /* a size goes where a pointer goes */
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuModuleLoadDataEx(out_module, image, 2, options, values);
        gpuhal_cuda_leave(&scope);
    }
    log[sizeof log - 1] = '\0';
    make_line(log);
    gpuhal_status status = gpuhal_cuda_result(device, "cuModuleLoadDataEx", code);
    if (status != GPUHAL_OK && log[0] != '\0') {
        status = gpuhal_cuda_report_as(device->host, status, "cuModuleLoadDataEx", code, log);
    }
    return status;
}

/* A launch gets no more than 48 KiB unless the function is allowed more. A function is the driver's one object for all
 * kernels of its name, so each allows the most, once: launches need not change it, and threads cannot undo what another
 * one needs. How memory is divided between caches and groups follows what launches ask for, not what they may. */
void gpuhal_cuda_allow_shared(const gpuhal_plugin_device *device, CUfunction function)
{
    int own = 0;
    const int most =
        gpuhal_cuda_attribute(device->entry->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
    CUresult code = gpuhal_cuda_api.cuFuncGetAttribute(&own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (code == CUDA_SUCCESS && most > own) {
        code = gpuhal_cuda_api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                  most - own);
    }
    gpuhal_cuda_ignore(code);
}
