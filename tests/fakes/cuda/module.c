/* tests/fakes/cuda/module.c: a program is PTX text, and a kernel of it is found by its `.entry` line. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_ORDINARY = 49152, SHARED_MOST = 232448 };

/* The compiler's complaint goes where the caller wants it. */
static void complain(const char *text, unsigned count, const CUjit_option *options, void *const *values)
{
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        log = options[i] == CU_JIT_ERROR_LOG_BUFFER ? values[i] : log;
        size = options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ? (size_t)(uintptr_t)values[i] : size;
    }
    if (log && size) {
        snprintf(log, size, "%s", text);
    }
}

/* Binary code cannot run here: it is for another machine. */
static CUresult check_image(const unsigned char *image, unsigned count, const CUjit_option *options,
                            void *const *values)
{
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'}, fat[4] = {0x50, 0xed, 0x55, 0xba};
    if (memcmp(image, elf, 4) == 0 || memcmp(image, fat, 4) == 0) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (!isprint(image[0]) && !isspace(image[0])) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!strstr((const char *)image, ".version") || !strstr((const char *)image, ".target")) {
        complain("ptxas fatal   : Missing .version directive at start of file", count, options, values);
        return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out_module, const void *image, unsigned int count, CUjit_option *options,
                            void **values)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = check_image(image, count, options, values);
    return fake_end(code ? code : fake_module_new(context, image, out_module));
}

bool fake_code_has(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, ".entry"));) {
        at += strlen(".entry");
        at += strspn(at, " \t");
        if (strncmp(at, name, length) == 0 && !isalnum((unsigned char)at[length]) && at[length] != '_') {
            return true;
        }
    }
    return false;
}

/* What all kernels of the program have for themselves: `.shared .align 4 .b8 name[20480];`. */
static unsigned own_shared_bytes(const char *code)
{
    const char *own = strstr(code, ".shared"), *count = own ? strchr(own, '[') : NULL;
    return count ? (unsigned)strtoul(count + 1, NULL, 10) : 0;
}

unsigned fake_code_shared_bytes(const char *code)
{
    return SHARED_ORDINARY - own_shared_bytes(code);
}

/* Entered when it succeeds, and only then. */
static CUresult enter_function(const char *call, CUfunction function)
{
    CUresult code = fake_enter_current(call);
    if (code) {
        return code;
    }
    return fake_function_find(function) ? CUDA_SUCCESS : fake_end(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (unsigned)value > SHARED_MOST - own_shared_bytes(function->module->code)) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    function->shared_bytes = (unsigned)value;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int *out_value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    *out_value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? (int)own_shared_bytes(function->module->code)
                                                                  : (int)function->shared_bytes;
    return fake_end(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                            attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
                        ? CUDA_SUCCESS
                        : CUDA_ERROR_INVALID_VALUE);
}
