/* rocm/module.c: HIP's formats of code, and loading them: `hsaco` (a code object for one architecture) and
 * `hip_fatbin` (a bundle of them, as the compiler embeds it). A bundle that was compressed is HIP's to unpack: its
 * length stands in its head.
 */
#include "../stream/image.h"
#include "device.h"

#include <string.h>

/* ---- images */

/* Neither unused nor memory that is only zeroed. */
static bool is_in_file(uint64_t type)
{
    return type != 0 && type != 8;
}

/* An ELF file for the machine AMDGPU. */
static bool is_code_object(const unsigned char *image, uint64_t bytes)
{
    return is_elf(image, bytes, is_in_file) && number_at(image, 18, 2) == 224;
}

/* "CCOB", version, method, then the length of all: 4 bytes in version 2, 8 in version 3; version 1 lacks it. */
static bool is_compressed(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 24 || memcmp(image, "CCOB", 4) != 0) {
        return false;
    }
    const uint64_t version = number_at(image, 4, 2);
    return version == 2 ? number_at(image, 8, 4) <= bytes : version == 3 && number_at(image, 8, 8) <= bytes;
}

/* A magic of 24 characters, the number of entries, and for each: where its code is, how long, and its name, length
 * first. */
static bool is_bundle(const unsigned char *image, uint64_t bytes)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const size_t length = sizeof magic - 1;
    if (bytes < length + 8 || memcmp(image, magic, length) != 0) {
        return is_compressed(image, bytes);
    }
    const uint64_t count = number_at(image, length, 8);
    /* Never beyond `bytes`, so that no difference below is negative; entries are walked, since names differ in
     * length. */
    uint64_t at = length + 8;
    for (uint64_t i = 0; i < count; i++) {
        if (bytes - at < 24 || !has_table(bytes, number_at(image, at, 8), 1, number_at(image, at + 8, 8))) {
            return false;
        }
        const uint64_t name = number_at(image, at + 16, 8);
        at += 24;
        if (name > bytes - at) {
            return false;
        }
        at += name;
    }
    return count > 0;
}

bool gpuhal_rocm_is_format(const char *format)
{
    return strcmp(format, "hsaco") == 0 || strcmp(format, "hip_fatbin") == 0;
}

bool gpuhal_rocm_is_image(const char *format, const unsigned char *image, uint64_t bytes)
{
    return strcmp(format, "hsaco") == 0 ? is_code_object(image, bytes) : is_bundle(image, bytes);
}

/* ---- modules */

gpuhal_status gpuhal_rocm_load_module(gpuhal_plugin_device *device, const void *image, hipModule_t *out_module)
{
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(device, &scope);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipModuleLoadData(out_module, image);
        gpuhal_rocm_leave(&scope);
    }
    return gpuhal_rocm_result(device, "hipModuleLoadData", code);
}

/* HIP needs no permission. */
void gpuhal_rocm_allow_shared(const gpuhal_plugin_device *device, hipFunction_t function)
{
    (void)device, (void)function;
}
