/* tests/fakes/rocm/module.c: programs. One is an ELF file for AMD's machine, of which the fake reads 64 bytes, and the text
 * behind them: a line `.kernel NAME` for each kernel. common/launch.c says which kernels do something. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELF_HEADER = 64, ELF_MACHINE = 18, MACHINE_AMDGPU = 224, THREADS_AT_MOST = 1024, SHARED_AT_MOST = 65536 };

struct ihipModule_t {
    hipModule_t next;
    fake_context *context;
    char *text;
    hipFunction_t functions;
};

struct ihipModuleSymbol_t {
    hipFunction_t next;
    hipModule_t module;
    char name[64];
};

static hipModule_t modules;

static hipModule_t module_find(hipModule_t module)
{
    hipModule_t known = modules;
    while (known && known != module) {
        known = known->next;
    }
    return known;
}

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
    hipModule_t module = calloc(1, sizeof *module);
    if (!module) {
        return fake_end(hipErrorOutOfMemory);
    }
    *module = (struct ihipModule_t){modules, context, strdup((const char *)image + ELF_HEADER), NULL};
    modules = module;
    fake_report_get()->modules++;
    *out_module = module;
    return fake_end(hipSuccess);
}

static void module_free(hipModule_t module)
{
    hipModule_t *at = &modules;
    while (*at != module) {
        at = &(*at)->next;
    }
    *at = module->next;
    for (hipFunction_t function = module->functions, next; function; function = next) {
        next = function->next;
        free(function);
    }
    free(module->text);
    free(module);
    fake_report_get()->modules--;
}

void fake_modules_free(fake_context *context)
{
    for (hipModule_t module = modules, next; module; module = next) {
        next = module->next;
        if (module->context == context) {
            module_free(module);
        }
    }
}

hipError_t hipModuleUnload(hipModule_t module)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!module_find(module)) {
        fake_report_violation("%s: no module", __func__);
        return fake_end(hipErrorInvalidHandle);
    }
    fake_context_drain(module->context);
    module_free(module);
    return fake_end(hipSuccess);
}

static bool has_kernel(const char *text, const char *name)
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

hipError_t hipModuleGetFunction(hipFunction_t *out_function, hipModule_t module, const char *name)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!module_find(module)) {
        fake_report_violation("%s: no module", __func__);
        return fake_end(hipErrorInvalidHandle);
    }
    hipFunction_t function = has_kernel(module->text, name) ? calloc(1, sizeof *function) : NULL;
    if (!function) {
        return fake_end(hipErrorNotFound);
    }
    function->next = module->functions;
    function->module = module;
    snprintf(function->name, sizeof function->name, "%s", name);
    module->functions = function;
    *out_function = function;
    return fake_end(hipSuccess);
}

static bool function_alive(hipFunction_t function)
{
    for (hipModule_t module = modules; module; module = module->next) {
        for (hipFunction_t known = module->functions; known; known = known->next) {
            if (known == function) {
                return true;
            }
        }
    }
    fake_report_violation("no function, or one of an unloaded module");
    return false;
}

/* Function, stream and current device have to be of one device. */
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                                 hipStream_t stream, void **parameters, void **extra)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(__func__, context, stream, true);
    if (!known || !function_alive(function) || function->module->context != context) {
        return fake_end(hipErrorInvalidHandle);
    }
    const uint64_t block = (uint64_t)block_x * block_y * block_z, grid = (uint64_t)grid_x * grid_y * grid_z;
    if (!block || block > THREADS_AT_MOST || !grid || shared_bytes > SHARED_AT_MOST || extra || !parameters) {
        return fake_end(hipErrorInvalidValue);
    }
    return fake_end(fake_submit_launch(context, known, function->name, block * grid, parameters));
}
