/* tests/fakes/rocm/module.c: programs are text after an ELF header for AMDGPU (64 bytes). An offload bundle may contain
 * the header and the text. The text has a line `.kernel NAME` for each kernel. The lines `.shared BYTES` and
 * `.threads COUNT` apply to all kernels. */
#include "fake.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ELF_HEADER = 64, ELF_MACHINE = 18, MACHINE_AMDGPU = 224, SHARED_AT_MOST = 65536, THREADS_AT_MOST = 1024 };

hipError_t hipModuleLoadData(hipModule_t *out_module, const void *image)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const unsigned char *bytes = image;
    if (memcmp(bytes, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
        bytes += bytes[32]; /* its first entry */
    }
    if (memcmp(bytes, "\177ELF", 4) != 0 || bytes[ELF_MACHINE] != MACHINE_AMDGPU) {
        return fake_end(memcmp(bytes, "\177ELF", 4) == 0 ? hipErrorNoBinaryForGpu : hipErrorInvalidImage);
    }
    return fake_end(fake_module_new(context, (const char *)bytes + ELF_HEADER, out_module));
}

bool fake_code_has(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, ".kernel "));) {
        at += strlen(".kernel ");
        if (strncmp(at, name, length) == 0 && (isspace((unsigned char)at[length]) || !at[length])) {
            return true;
        }
    }
    return false;
}

static unsigned number_after(const char *code, const char *word, unsigned otherwise)
{
    const char *at = strstr(code, word);
    return at ? (unsigned)strtoul(at + strlen(word), NULL, 10) : otherwise;
}

unsigned fake_code_shared_bytes(const char *code)
{
    return SHARED_AT_MOST - number_after(code, ".shared ", 0);
}

unsigned fake_code_threads(const char *code)
{
    return number_after(code, ".threads ", THREADS_AT_MOST);
}

hipError_t hipFuncGetAttribute(int *out_value, hipFunction_attribute attribute, hipFunction_t function)
{
    hipError_t code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!fake_function_find(function)) {
        return fake_end(hipErrorInvalidDeviceFunction);
    }
    const char *text = function->module->code;
    const int values[] = {[HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = (int)fake_code_threads(text),
                          [HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)number_after(text, ".shared ", 0),
                          [HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = 16,
                          [HIP_FUNC_ATTRIBUTE_NUM_REGS] = 24};
    if (attribute >= sizeof values / sizeof *values) {
        return fake_end(hipErrorInvalidValue);
    }
    *out_value = values[attribute];
    return fake_end(hipSuccess);
}
