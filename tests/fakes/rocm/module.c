/* tests/fakes/rocm/module.c: a program is an ELF file for AMD's machine, of which the fake reads 64 bytes, and the
 * text behind them: a line `.kernel NAME` for each kernel. */
#include "fake.h"

#include <ctype.h>
#include <string.h>

enum { ELF_HEADER = 64, ELF_MACHINE = 18, MACHINE_AMDGPU = 224, SHARED_AT_MOST = 65536 };

hipError_t hipModuleLoadData(hipModule_t *out_module, const void *image)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const unsigned char *bytes = image;
    if (memcmp(bytes, "\177ELF", 4) != 0 || bytes[ELF_MACHINE] != MACHINE_AMDGPU) {
        return fake_end(memcmp(bytes, "\177ELF", 4) == 0 ? hipErrorNoBinaryForGpu : hipErrorInvalidImage);
    }
    return fake_end(fake_module_new(context, (const char *)image + ELF_HEADER, out_module));
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

unsigned fake_code_shared_bytes(const char *code)
{
    (void)code;
    return SHARED_AT_MOST;
}
