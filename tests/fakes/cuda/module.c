/* tests/fakes/cuda/module.c: programs, and the two kernels that run here on the host.
 *
 * A program is PTX text. A kernel of it is found by its `.entry` line; common/launch.c says which kernels do
 * something. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    CUmodule next;
    CUcontext context;
    char *text;
    CUfunction functions;
};

struct CUfunc_st {
    CUfunction next;
    CUmodule module;
    char name[64];
    int shared_max; /* that a launch may ask for */
};

enum { SHARED_ORDINARY = 49152, SHARED_MOST = 232448 };

static CUmodule modules;

static CUmodule module_find(CUmodule module)
{
    CUmodule known = modules;
    while (known && known != module) {
        known = known->next;
    }
    return known;
}

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
static CUresult check_image(const unsigned char *image, unsigned count, const CUjit_option *options, void *const *values)
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

CUresult cuModuleLoadDataEx(CUmodule *out_module, const void *image, unsigned int count, CUjit_option *options, void **values)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    code = check_image(image, count, options, values);
    CUmodule module = code ? NULL : calloc(1, sizeof *module);
    if (!module) {
        return fake_leave(code ? code : CUDA_ERROR_OUT_OF_MEMORY);
    }
    *module = (struct CUmod_st){modules, context, strdup(image), NULL};
    modules = module;
    fake_report_get()->modules++;
    *out_module = module;
    return fake_leave(CUDA_SUCCESS);
}

static void module_free(CUmodule module)
{
    CUmodule *at = &modules;
    while (*at != module) {
        at = &(*at)->next;
    }
    *at = module->next;
    for (CUfunction function = module->functions, next; function; function = next) {
        next = function->next;
        free(function);
    }
    free(module->text);
    free(module);
    fake_report_get()->modules--;
}

void fake_modules_free(CUcontext context)
{
    for (CUmodule module = modules, next; module; module = next) {
        next = module->next;
        if (module->context == context) {
            module_free(module);
        }
    }
}

CUresult cuModuleUnload(CUmodule module)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!module_find(module) || module->context != context) {
        fake_report_violation("%s: no module of this context", __func__);
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    fake_context_drain(context);
    module_free(module);
    return fake_leave(CUDA_SUCCESS);
}

static bool has_entry(const char *text, const char *name)
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
static int own_shared_bytes(CUmodule module)
{
    const char *own = strstr(module->text, ".shared"), *count = own ? strchr(own, '[') : NULL;
    return count ? (int)strtol(count + 1, NULL, 10) : 0;
}

CUresult cuModuleGetFunction(CUfunction *out_function, CUmodule module, const char *name)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!module_find(module)) {
        fake_report_violation("%s: no module", __func__);
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!has_entry(module->text, name)) {
        return fake_leave(CUDA_ERROR_NOT_FOUND);
    }
    CUfunction function = module->functions;
    while (function && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    if (function) {
        *out_function = function;
        return fake_leave(CUDA_SUCCESS);
    }
    function = calloc(1, sizeof *function);
    if (!function) {
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    function->next = module->functions;
    function->module = module;
    function->shared_max = SHARED_ORDINARY - own_shared_bytes(module);
    snprintf(function->name, sizeof function->name, "%s", name);
    module->functions = function;
    *out_function = function;
    return fake_leave(CUDA_SUCCESS);
}

static bool function_alive(CUfunction function)
{
    for (CUmodule module = modules; module; module = module->next) {
        for (CUfunction known = module->functions; known; known = known->next) {
            if (known == function) {
                return true;
            }
        }
    }
    fake_report_violation("no function, or one of an unloaded module");
    return false;
}

/* Entered when it succeeds, and only then. */
static CUresult enter_function(const char *call, CUfunction function)
{
    CUcontext context;
    CUresult code = fake_enter(call, &context);
    if (code) {
        return code;
    }
    return function_alive(function) ? CUDA_SUCCESS : fake_leave(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > SHARED_MOST - own_shared_bytes(function->module)) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    function->shared_max = value;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int *out_value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    *out_value = function->shared_max;
    return fake_leave(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters,
                        void **extra)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known || !function_alive(function) || function->module->context != context) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    const uint64_t block = (uint64_t)block_x * block_y * block_z, grid = (uint64_t)grid_x * grid_y * grid_z;
    if (!block || block > 1024 || !grid || shared_bytes > (unsigned)function->shared_max || extra || !parameters) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    return fake_leave(fake_submit_launch(context, known, function->name, block * grid, parameters));
}
