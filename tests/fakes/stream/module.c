/* tests/fakes/stream/module.c: kernel launches, and programs. A program is text after the header of the vendor's code
 * format. ../common/launch.c lists the kernels that the fake can run. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_module *modules;

static fake_module *module_find(const fake_module *module)
{
    fake_module *known = modules;
    while (known && known != module) {
        known = known->next;
    }
    return known;
}

fake_code fake_module_new(fake_context *context, const char *code, vendor_module *out_module)
{
    fake_module *module = calloc(1, sizeof *module);
    if (!module) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    *module = (fake_module){.next = modules, .context = context, .code = strdup(code)};
    modules = module;
    fake_report_get()->modules++;
    *out_module = module;
    return FAKE_OK;
}

static void module_free(fake_module *module)
{
    fake_module **at = &modules;
    while (*at != module) {
        at = &(*at)->next;
    }
    *at = module->next;
    for (fake_function *function = module->functions, *next; function; function = next) {
        next = function->next;
        free(function);
    }
    free(module->code);
    free(module);
    fake_report_get()->modules--;
}

void fake_modules_free(fake_context *context)
{
    fake_graphs_free(context);
    for (fake_module *module = modules, *next; module; module = next) {
        next = module->next;
        if (module->context == context) {
            module_free(module);
        }
    }
}

fake_code VENDOR(ModuleUnload)(vendor_module module)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    const fake_context *wanted = fake_current();
    if (!module_find(module) || (wanted && module->context != wanted)) {
        fake_report_violation("%s: no module, or one of another context", __func__);
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_context_drain(module->context);
    module_free(module);
    return fake_end(FAKE_OK);
}

static fake_function *function_new(fake_module *module, const char *name)
{
    fake_function *function = calloc(1, sizeof *function);
    if (function) {
        *function = (fake_function){
            .next = module->functions, .module = module, .shared_bytes = fake_code_shared_bytes(module->code)};
        snprintf(function->name, sizeof function->name, "%s", name);
        module->functions = function;
    }
    return function;
}

fake_code VENDOR(ModuleGetFunction)(vendor_function *out_function, vendor_module module, const char *name)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!module_find(module)) {
        fake_report_violation("%s: no module", __func__);
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    if (!fake_code_has(module->code, name)) {
        return fake_end(FAKE_ERROR_NOT_FOUND);
    }
    fake_function *function = module->functions;
    while (function && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    *out_function = function ? function : function_new(module, name);
    return fake_end(*out_function ? FAKE_OK : FAKE_ERROR_OUT_OF_MEMORY);
}

fake_function *fake_function_find(const fake_function *function)
{
    for (fake_module *module = modules; module; module = module->next) {
        for (fake_function *known = module->functions; known; known = known->next) {
            if (known == function) {
                return known;
            }
        }
    }
    fake_report_violation("no function, or one of an unloaded module");
    return NULL;
}

/* The attributes of the three dimensions have consecutive numbers. */
static bool is_within(const fake_plan *plan, unsigned attribute, const uint32_t size[3])
{
    bool fits = true;
    for (unsigned i = 0; i < 3; i++) {
        int most = 0;
        fits = fits && fake_attribute_of(plan, attribute + i, &most) && size[i] > 0 && size[i] <= (uint32_t)most;
    }
    return fits;
}

/* As HIP does, checks the limits of the device before those of the code. */
fake_code fake_launch_check(const fake_function *function, const fake_launch *as, void **parameters, void **extra)
{
    const fake_plan *plan = fake.devices[function->module->context->device].plan;
    const uint64_t block = (uint64_t)as->group_size[0] * as->group_size[1] * as->group_size[2];
    int most = 0;
    if (extra || !parameters || as->shared_bytes > function->shared_bytes) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    (void)fake_attribute_of(plan, VENDOR_ATTRIBUTE_THREADS, &most);
    for (unsigned i = 0; i < 3; i++) {
        if ((uint64_t)as->groups[i] * as->group_size[i] > VENDOR_THREADS_MAX) {
            return VENDOR_ERROR_GROUPS;
        }
    }
    if (!is_within(plan, VENDOR_ATTRIBUTE_BLOCK_X, as->group_size) ||
        !is_within(plan, VENDOR_ATTRIBUTE_GRID_X, as->groups) || block > (uint64_t)most) {
        return VENDOR_ERROR_GROUPS;
    }
    return block <= fake_code_threads(function->module->code) ? FAKE_OK : VENDOR_ERROR_BOUNDS;
}

/* Function and stream must belong to CUDA's current context, or to HIP's current device. */
fake_code VENDOR(LaunchKernel)(vendor_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               vendor_stream stream, void **parameters, void **extra)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_stream *known = fake_stream_of(__func__, context, stream, true);
    if (!known || !fake_function_find(function) || function->module->context != context) {
        return fake_end(FAKE_ERROR_INVALID_HANDLE);
    }
    fake_launch as = {
        .groups = {grid_x, grid_y, grid_z}, .group_size = {block_x, block_y, block_z}, .shared_bytes = shared_bytes};
    code = fake_launch_check(function, &as, parameters, extra);
    if (code) {
        return fake_end(code);
    }
    snprintf(as.name, sizeof as.name, "%.31s", function->name);
    fake_launch_read(&as, parameters);
    return fake_end(fake_submit_launch(context, known, &as));
}
