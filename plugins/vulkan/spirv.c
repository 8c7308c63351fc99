/* vulkan/spirv.c: reading a module; see spirv.h. */
#include "spirv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC         0x07230203u
#define SWAPPED_MAGIC 0x03022307u
/* The specification's universal limit. */
#define BOUND_MAX 4194304u
#define TYPES_END 40u /* instructions from TYPE_VOID up to this are types */

bool gpuhal_vulkan_fault_set(gpuhal_vulkan_fault *fault, gpuhal_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    fault->status = status;
    return false;
}

uint32_t gpuhal_vulkan_module_find(const gpuhal_vulkan_module *module, uint32_t at, uint32_t code)
{
    while (at < module->count && code != 0 && gpuhal_vulkan_module_code(module, at) != code) {
        at += gpuhal_vulkan_module_length(module, at);
    }
    return at < module->count ? at : module->count;
}

/* Where the bytes are no module at all. */
static bool check_header(const uint32_t *words, uint32_t count, uint32_t newest, gpuhal_vulkan_fault *fault)
{
    if (count > 0 && words[0] == SWAPPED_MAGIC) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module was written for the other byte order");
    }
    if (count < GPUHAL_SPIRV_HEADER_WORDS || words[0] != MAGIC) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the code does not begin as a SPIR-V module does: it has %" PRIu32
                                       " words, of which the first is %#010" PRIx32 ", not %#010x",
                                       count, count > 0 ? words[0] : 0, MAGIC);
    }
    const uint32_t version = words[1] & 0x00ffff00u;
    if (version != words[1] || version < 0x00010000u) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module has the version %#" PRIx32 ", which makes no sense",
                                       words[1]);
    }
    if (version > newest) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the module is SPIR-V %u.%u, and the device takes at most %u.%u", version >> 16,
                                       version >> 8 & 0xff, newest >> 16, newest >> 8 & 0xff);
    }
    if (words[3] == 0 || words[3] > BOUND_MAX || words[4] != 0) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the header of the SPIR-V module is damaged: its bound is %" PRIu32
                                       ", its schema %" PRIu32,
                                       words[3], words[4]);
    }
    return true;
}

static bool damaged(gpuhal_vulkan_fault *fault, const gpuhal_vulkan_module *module, uint32_t at, const char *what)
{
    return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                   "the SPIR-V module is damaged: the instruction at word %" PRIu32 " (%" PRIu32 ") %s",
                                   at, gpuhal_vulkan_module_code(module, at), what);
}

/* Measures every instruction, and notes where ids are made. @p out_all: every instruction is in the grammar, so that
 * an id that none makes is a mistake. */
static bool read_instructions(gpuhal_vulkan_module *module, bool *out_all, gpuhal_vulkan_fault *fault)
{
    *out_all = true;
    for (uint32_t at = GPUHAL_SPIRV_HEADER_WORDS; at < module->count;) {
        const uint32_t length = gpuhal_vulkan_module_length(module, at);
        if (length == 0 || length > module->count - at) {
            return damaged(fault, module, at, "goes on behind the end of the module: it is cut off");
        }
        const char *operands = gpuhal_vulkan_operands(gpuhal_vulkan_module_code(module, at));
        const char *result = operands ? strchr(operands, 'r') : NULL;
        if (result) {
            const uint32_t place = (uint32_t)(result - operands) + 1;
            const uint32_t id = place < length ? module->words[at + place] : 0;
            if (id == 0 || id >= module->bound) {
                return damaged(fault, module, at, "makes an id outside of the bound");
            }
            if (module->made[id] != 0) {
                return damaged(fault, module, at, "makes an id that was made before");
            }
            module->made[id] = at;
        }
        *out_all = *out_all && operands;
        at += length;
    }
    return true;
}

static bool is_type(const gpuhal_vulkan_module *module, uint32_t id)
{
    const uint32_t code = module->made[id] ? gpuhal_vulkan_module_code(module, module->made[id]) : 0;
    return code >= GPUHAL_SPIRV_TYPE_VOID && code < TYPES_END;
}

static bool check_operands(const gpuhal_vulkan_module *module, uint32_t at, bool all, gpuhal_vulkan_fault *fault)
{
    const uint32_t length = gpuhal_vulkan_module_length(module, at);
    const char *kind = gpuhal_vulkan_operands(gpuhal_vulkan_module_code(module, at));
    for (uint32_t word = 1; kind && *kind && *kind != '.'; word++) {
        const bool repeats = kind[1] == '*';
        if (word >= length) {
            return repeats || damaged(fault, module, at, "has too few words");
        }
        const uint32_t id = module->words[at + word];
        if (*kind != 'l' && (id == 0 || id >= module->bound || (all && module->made[id] == 0))) {
            return damaged(fault, module, at, "uses an id that the module does not have");
        }
        if (*kind == 't' && all && !is_type(module, id)) {
            return damaged(fault, module, at, "has as its type what is not a type");
        }
        kind += repeats ? 0 : 1;
    }
    return true;
}

/* The name of an entry point, and the function that it names. */
static bool check_entry(gpuhal_vulkan_module *module, uint32_t at, gpuhal_vulkan_fault *fault)
{
    const uint32_t length = gpuhal_vulkan_module_length(module, at);
    const uint32_t function = module->made[module->words[at + 2]];
    if (length < 4 || !memchr(&module->words[at + 3], 0, (size_t)(length - 3) * sizeof(uint32_t))) {
        return damaged(fault, module, at, "has a name that does not end");
    }
    if (function == 0 || gpuhal_vulkan_module_code(module, function) != GPUHAL_SPIRV_FUNCTION) {
        return damaged(fault, module, at, "is an entry point to what is not a function");
    }
    module->entry_count += module->words[at + 1] == GPUHAL_SPIRV_GLCOMPUTE;
    return true;
}

static bool check_instructions(gpuhal_vulkan_module *module, bool all, gpuhal_vulkan_fault *fault)
{
    bool kernels = false, good = true, inside = false;
    for (uint32_t at = GPUHAL_SPIRV_HEADER_WORDS; at < module->count && good;
         at += gpuhal_vulkan_module_length(module, at)) {
        good = check_operands(module, at, all, fault);
        if (good && gpuhal_vulkan_module_code(module, at) == GPUHAL_SPIRV_ENTRY_POINT) {
            kernels = kernels || module->words[at + 1] == GPUHAL_SPIRV_KERNEL;
            good = check_entry(module, at, fault);
        }
        inside = gpuhal_vulkan_module_code(module, at) == GPUHAL_SPIRV_FUNCTION ||
                 (inside && gpuhal_vulkan_module_code(module, at) != GPUHAL_SPIRV_FUNCTION_END);
    }
    if (good && inside) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module is cut off: its last function does not end");
    }
    if (good && module->entry_count == 0) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_NOT_SUPPORTED, "%s",
                                       kernels ? "the entry points of the SPIR-V module are kernels of OpenCL; Vulkan "
                                                 "takes entry points of the model GLCompute"
                                               : "the SPIR-V module has no entry point of the model GLCompute");
    }
    return good;
}

bool gpuhal_vulkan_module_read(const void *code, uint64_t bytes, uint32_t newest, gpuhal_vulkan_module *out_module,
                               gpuhal_vulkan_fault *fault)
{
    gpuhal_vulkan_module module = {0};
    bool all = true;
    if (bytes % sizeof(uint32_t) != 0 || bytes / sizeof(uint32_t) > UINT32_MAX / 2) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "%" PRIu64 " bytes are not a SPIR-V module, or one that is cut off: it is made "
                                       "of words of 4 bytes",
                                       bytes);
    }
    module.count = (uint32_t)(bytes / sizeof(uint32_t));
    module.words = malloc((size_t)bytes + sizeof(uint32_t));
    if (module.words) {
        memcpy(module.words, code, (size_t)bytes); /* which may lie anywhere */
        if (!check_header(module.words, module.count, newest, fault)) {
            free(module.words);
            return false;
        }
        module.bound = module.words[3];
        module.made = calloc(module.bound, sizeof *module.made);
    }
    if (!module.made) {
        free(module.words);
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the SPIR-V module");
    }
    if (!read_instructions(&module, &all, fault) || !check_instructions(&module, all, fault)) {
        gpuhal_vulkan_module_finish(&module);
        return false;
    }
    *out_module = module;
    return true;
}

void gpuhal_vulkan_module_finish(gpuhal_vulkan_module *module)
{
    free(module->words);
    free(module->made);
}

bool gpuhal_vulkan_module_decoration(const gpuhal_vulkan_module *module, uint32_t id, uint32_t member,
                                     uint32_t decoration, uint32_t *out_value)
{
    const bool whole = member == UINT32_MAX;
    const uint32_t code = whole ? GPUHAL_SPIRV_DECORATE : GPUHAL_SPIRV_MEMBER_DECORATE, words = whole ? 3 : 4;
    for (uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, code); at < module->count;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), code)) {
        const uint32_t *word = &module->words[at];
        const uint32_t length = gpuhal_vulkan_module_length(module, at);
        if (length >= words && word[1] == id && (whole || word[2] == member) && word[words - 1] == decoration) {
            *out_value = length > words ? word[words] : 0;
            return true;
        }
    }
    return false;
}

uint32_t gpuhal_vulkan_module_entry(const gpuhal_vulkan_module *module, const char *name)
{
    const uint32_t code = GPUHAL_SPIRV_ENTRY_POINT;
    for (uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, code); at < module->count;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), code)) {
        if (module->words[at + 1] == GPUHAL_SPIRV_GLCOMPUTE &&
            strcmp((const char *)&module->words[at + 3], name) == 0) {
            return at;
        }
    }
    return 0;
}

void gpuhal_vulkan_module_list(const gpuhal_vulkan_module *module, char *out_names, size_t size)
{
    const uint32_t code = GPUHAL_SPIRV_ENTRY_POINT;
    size_t used = 0;
    *out_names = '\0';
    for (uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, code);
         at < module->count && used < size;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), code)) {
        if (module->words[at + 1] == GPUHAL_SPIRV_GLCOMPUTE) {
            used += (size_t)snprintf(out_names + used, size - used, "%s%s", used ? " " : "",
                                     (const char *)&module->words[at + 3]);
        }
    }
}

uint32_t gpuhal_vulkan_module_constant(const gpuhal_vulkan_module *module, uint32_t spec_id)
{
    for (uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_DECORATE);
         at < module->count;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), GPUHAL_SPIRV_DECORATE)) {
        const uint32_t *word = &module->words[at];
        if (gpuhal_vulkan_module_length(module, at) == 4 && word[2] == GPUHAL_SPIRV_SPEC_ID && word[3] == spec_id) {
            return module->made[word[1]];
        }
    }
    return 0;
}

uint32_t gpuhal_vulkan_module_scalar(const gpuhal_vulkan_module *module, uint32_t type)
{
    const uint32_t at = type < module->bound ? module->made[type] : 0;
    switch (at ? gpuhal_vulkan_module_code(module, at) : 0) {
    case GPUHAL_SPIRV_TYPE_BOOL:
        return 4;
    case GPUHAL_SPIRV_TYPE_INT:
    case GPUHAL_SPIRV_TYPE_FLOAT:
        return module->words[at + 2] <= 64 ? module->words[at + 2] / 8 : 0;
    default:
        return 0;
    }
}

gpuhal_vulkan_extent gpuhal_vulkan_module_value(const gpuhal_vulkan_module *module, uint32_t id,
                                                const gpuhal_constant *constants, uint32_t constant_count)
{
    gpuhal_vulkan_extent extent = {0};
    const uint32_t at = id < module->bound ? module->made[id] : 0;
    const uint32_t code = at ? gpuhal_vulkan_module_code(module, at) : 0;
    if ((code != GPUHAL_SPIRV_CONSTANT && code != GPUHAL_SPIRV_SPEC_CONSTANT) ||
        gpuhal_vulkan_module_length(module, at) != 4) {
        return extent;
    }
    extent.known = true;
    extent.value = module->words[at + 3];
    extent.adjustable = code == GPUHAL_SPIRV_SPEC_CONSTANT &&
                        gpuhal_vulkan_module_decoration(module, id, UINT32_MAX, GPUHAL_SPIRV_SPEC_ID, &extent.id);
    for (uint32_t i = 0; i < constant_count && extent.adjustable; i++) {
        extent.value = constants[i].id == extent.id ? (uint32_t)constants[i].value : extent.value;
    }
    return extent;
}
