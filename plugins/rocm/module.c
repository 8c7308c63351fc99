/* rocm/module.c: HIP's code formats, how to load them, and the values that HIP reports for a function. The formats are
 * `hsaco` (a code object for one architecture) and `hip-fatbin` (a bundle of code objects, as the compiler embeds it).
 * HIP decompresses compressed bundles; their header contains the length.
 */
#include "../stream/image.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

/* ---- images */

/* Returns whether a section has contents in the file; unused and zeroed sections do not. */
static bool is_in_file(uint64_t type)
{
    return type != 0 && type != 8;
}

static bool is_code_object(const unsigned char *image, uint64_t bytes)
{
    return is_elf(image, bytes, is_in_file) && number_at(image, 18, 2) == 224;
}

/* Parses "CCOB", version, method, and the total length. The length has 4 bytes in version 2 and 8 bytes in version 3.
 * Version 1 has no length. */
static bool is_compressed(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 24 || memcmp(image, "CCOB", 4) != 0) {
        return false;
    }
    const uint64_t version = number_at(image, 4, 2);
    return version == 2 ? number_at(image, 8, 4) <= bytes : version == 3 && number_at(image, 8, 8) <= bytes;
}

/* Parses a magic of 24 characters, the number of entries, and for each entry the offset and length of its code, and the
 * length and characters of its name. */
static bool is_bundle(const unsigned char *image, uint64_t bytes)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const size_t length = sizeof magic - 1;
    if (bytes < length + 8 || memcmp(image, magic, length) != 0) {
        return is_compressed(image, bytes);
    }
    const uint64_t count = number_at(image, length, 8);
    /* `at` never exceeds `bytes`, so no difference below is negative. Entries differ in size, because their names
     * do. */
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

bool gpuhal_rocm_is_image(const char *format, const unsigned char *image, uint64_t bytes)
{
    return strcmp(format, "hsaco") == 0 ? is_code_object(image, bytes) : is_bundle(image, bytes);
}

/* ---- targets and options */

/* Compares the processors if the target names exactly one processor. "gfx942:sramecc+:xnack-" is gfx942 with certain
 * settings. HIP checks the settings when it loads the code. "gfx11-generic" stands for several processors. */
bool gpuhal_rocm_takes_target(const char *format, const char *target, const char *device)
{
    (void)format;
    const size_t length = strcspn(target, ":");
    const bool is_generic = strstr(target, "-generic") != NULL;
    return is_generic || (strlen(device) == length && strncmp(target, device, length) == 0);
}

bool gpuhal_rocm_takes_options(const gpuhal_code *code, char *out_unknown, size_t size)
{
    const char *first = code->options + strspn(code->options, " ");
    snprintf(out_unknown, size, "%.*s", (int)strcspn(first, " "), first);
    return *first == '\0';
}

/* ---- modules */

/* There are no compiler messages, because HIP does not compile. */
hipError_t gpuhal_rocm_load_module(const gpuhal_code *code, const void *image, gpuhal_plugin_build *build,
                                   hipModule_t *out_module, char *out_words, size_t size)
{
    (void)code, (void)build, (void)out_words, (void)size;
    return gpuhal_rocm_api.hipModuleLoadData(out_module, image);
}

bool gpuhal_rocm_explain_refusal(hipError_t code, char *out_text, size_t size)
{
    (void)code, (void)out_text, (void)size;
    return false;
}

/* ---- functions */

hipError_t gpuhal_rocm_of_function(int *out_value, unsigned int attribute, hipFunction_t function)
{
    *out_value = -1;
    return gpuhal_rocm_api.hipFuncGetAttribute
               ? gpuhal_rocm_may_lack(gpuhal_rocm_api.hipFuncGetAttribute(out_value, attribute, function))
               : hipSuccess;
}

/* HIP needs no permission for shared memory, and has already loaded the code. */
hipError_t gpuhal_rocm_prepare_function(hipFunction_t function, uint32_t own, uint32_t most, const char **out_call)
{
    (void)function, (void)own, (void)most, (void)out_call;
    return hipSuccess;
}

hipError_t gpuhal_rocm_parameter_bytes(hipFunction_t function, uint32_t index, uint64_t *out_bytes)
{
    (void)function, (void)index;
    *out_bytes = GPUHAL_STREAM_UNKNOWN;
    return hipSuccess;
}
