/* vulkan/spirv.c: reads a module; see spirv.h. */
#include "spirv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC         0x07230203u
#define SWAPPED_MAGIC 0x03022307u
/* The largest accepted bound. Each id is below the bound, so ids are at most 4194303: the specification requires that
 * implementations support ids up to this number (Universal Limits). */
#define BOUND_MAX 4194304u
#define TYPES_END 40u /* opcodes from TYPE_VOID to TYPES_END - 1 define types */

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

/* Rejects code if its SPIR-V header is missing or damaged, or has a version that the device does not accept. */
static bool check_header(const uint32_t *words, uint32_t count, uint32_t newest, gpuhal_vulkan_fault *fault)
{
    if (count > 0 && words[0] == SWAPPED_MAGIC) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module was written for the other byte order");
    }
    if (count < GPUHAL_SPIRV_HEADER_WORDS || words[0] != MAGIC) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the code does not begin as a SPIR-V module does: it has %" PRIu32
                                       " words, and the first is %#010" PRIx32 ", not %#010x",
                                       count, count > 0 ? words[0] : 0, MAGIC);
    }
    const uint32_t version = words[1] & 0x00ffff00u;
    if (version != words[1] || version < 0x00010000u) {
        return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module has the version %#" PRIx32 ", which is invalid", words[1]);
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

/* Checks the length of every instruction, and records which instruction defines each id. Sets @p out_all if the grammar
 * contains every instruction. Only then is an id without a definition an error. */
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

static const char *check_id(const gpuhal_vulkan_module *module, uint32_t id, char kind, bool all)
{
    if (id == 0 || id >= module->bound || (all && module->made[id] == 0)) {
        return "uses an id that the module does not have";
    }
    if (kind == 't' && all && !is_type(module, id)) {
        return "names an id as its type that is not a type";
    }
    const bool is_label = module->made[id] != 0 &&
                          gpuhal_vulkan_module_code(module, module->made[id]) == GPUHAL_SPIRV_LABEL;
    return kind == 'b' && all && !is_label ? "branches to an id that is not a block" : NULL;
}

/* Returns the number of words of a literal. The constant's type or, in a switch, the selector's type determines this
 * number. Returns 0 if the module does not determine the number. */
static uint32_t number_words(const gpuhal_vulkan_module *module, uint32_t at)
{
    const uint32_t code = gpuhal_vulkan_module_code(module, at), first = module->words[at + 1];
    const bool constant = code == GPUHAL_SPIRV_CONSTANT || code == GPUHAL_SPIRV_SPEC_CONSTANT;
    const uint32_t selector = constant ? 0 : module->made[first];
    const uint32_t type = constant ? first : selector ? module->words[selector + 1] : 0;
    const uint32_t made = type < module->bound ? module->made[type] : 0;
    const uint32_t bytes =
        made && gpuhal_vulkan_module_length(module, made) > 2 ? gpuhal_vulkan_module_scalar(module, type) : 0;
    return bytes > 4 ? 2 : bytes > 0;
}

/* Returns whether all operands of an OpExtInst are known to be ids. In debug information sets, some operands are
 * literals. */
static bool has_ids_alone(const gpuhal_vulkan_module *module, uint32_t at)
{
    static const char glsl[] = "GLSL.std.450", other[] = "NonSemantic.";
    const uint32_t set = module->made[module->words[at + 3]];
    const bool imported = set != 0 && gpuhal_vulkan_module_code(module, set) == GPUHAL_SPIRV_EXT_INST_IMPORT;
    if (!imported || gpuhal_vulkan_module_length(module, set) < 2 + (sizeof glsl + 3) / 4) {
        return false;
    }
    const uint32_t *name = &module->words[set + 2];
    return memcmp(name, glsl, sizeof glsl) == 0 || memcmp(name, other, sizeof other - 1) == 0;
}

enum { ALIGNED = 2, AVAILABLE = 8, VISIBLE = 16, KNOWN_ACCESS = 63 };

/* Checks memory operands: a mask, an alignment, and the scopes of availability and visibility. */
static const char *check_access(const gpuhal_vulkan_module *module, const uint32_t *words, uint32_t count, bool all,
                                uint32_t *out_taken)
{
    const uint32_t mask = words[0];
    const uint32_t scopes = (mask & AVAILABLE ? 1u : 0u) + (mask & VISIBLE ? 1u : 0u);
    const uint32_t first = mask & ALIGNED ? 2 : 1;
    *out_taken = mask <= KNOWN_ACCESS ? first + scopes : count;
    const char *wrong = NULL;
    for (uint32_t i = first; i < *out_taken && *out_taken <= count && mask <= KNOWN_ACCESS && !wrong; i++) {
        wrong = check_id(module, words[i], 'i', all);
    }
    return wrong;
}

/* Checks the operand that starts at word @p word of the instruction. Returns the fault. If there is none, returns NULL
 * with the operand's number of words, or 0 if the module does not determine this number. */
static const char *check_operand(const gpuhal_vulkan_module *module, uint32_t at, uint32_t word, char kind, bool all,
                                 uint32_t *out_taken)
{
    const uint32_t count = gpuhal_vulkan_module_length(module, at) - word;
    const uint32_t *words = &module->words[at + word];
    const char *end = NULL;
    *out_taken = 1;
    switch (kind) {
    case 'l':
    case 'o':
        return NULL;
    case 's':
        end = memchr(words, 0, count * sizeof *words);
        *out_taken = end ? (uint32_t)((size_t)(end - (const char *)words) / sizeof *words) + 1 : count;
        return end ? NULL : "has a text that does not end";
    case 'x':
        return has_ids_alone(module, at) ? check_id(module, words[0], 'i', all) : NULL;
    case 'm':
        return check_access(module, words, count, all, out_taken);
    case 'n':
        *out_taken = number_words(module, at);
        return *out_taken == 0 && all ? "has a number whose type has no numbers" : NULL;
    default:
        return check_id(module, words[0], kind, all);
    }
}

static bool check_operands(const gpuhal_vulkan_module *module, uint32_t at, bool all, gpuhal_vulkan_fault *fault)
{
    const uint32_t length = gpuhal_vulkan_module_length(module, at);
    const char *kind = gpuhal_vulkan_operands(gpuhal_vulkan_module_code(module, at));
    uint32_t word = 1;
    while (kind && *kind && *kind != '.') {
        const bool pair = kind[1] && kind[2] == '2';
        if (word == length) {
            if (kind[1] != '?' && kind[1] != '*' && !pair) {
                return damaged(fault, module, at, "has too few words");
            }
            kind += pair ? 3 : 2;
            continue;
        }
        uint32_t taken = 0;
        const char *wrong = check_operand(module, at, word, *kind, all, &taken);
        if (wrong || taken > length - word) {
            return damaged(fault, module, at, wrong ? wrong : "has too few words");
        }
        if (taken == 0) { /* the operands after it are unknown as well */
            kind = NULL;
        } else if (*kind == 'o') { /* the operands exclude type and result id, because this instruction has its own */
            const char *other = gpuhal_vulkan_operands(module->words[at + word]);
            kind = other && strncmp(other, "tr", 2) == 0 ? other + 2 : NULL;
        } else {
            kind += kind[1] == '*' ? 0 : kind[1] == '?' ? 2 : kind[1] == '2' ? -1 : 1;
        }
        word += taken;
    }
    return !kind || *kind || word == length || damaged(fault, module, at, "has too many words");
}

static bool check_entry(gpuhal_vulkan_module *module, uint32_t at, gpuhal_vulkan_fault *fault)
{
    const uint32_t function = module->made[module->words[at + 2]];
    if (function == 0 || gpuhal_vulkan_module_code(module, function) != GPUHAL_SPIRV_FUNCTION) {
        return damaged(fault, module, at, "is an entry point that names no function");
    }
    module->entry_count += module->words[at + 1] == GPUHAL_SPIRV_GLCOMPUTE;
    return true;
}

typedef enum place { OUTSIDE, IN_FUNCTION, IN_BLOCK } place;

/* Returns whether the instruction may occur anywhere: OpNop, source lines, OpUndef, and OpExtInst (because it may be
 * non-semantic). */
static bool is_everywhere(uint32_t code)
{
    return code == 0 || code == GPUHAL_SPIRV_LINE || code == GPUHAL_SPIRV_NO_LINE || code == GPUHAL_SPIRV_EXT_INST ||
           code == GPUHAL_SPIRV_UNDEF;
}

/* Includes instructions of other execution models than GLCompute, because a module may also have entry points for other
 * models. */
static bool ends_block(uint32_t code)
{
    return (code >= GPUHAL_SPIRV_BRANCH && code <= GPUHAL_SPIRV_UNREACHABLE) ||
           code == GPUHAL_SPIRV_TERMINATE_INVOCATION || code == GPUHAL_SPIRV_IGNORE_INTERSECTION ||
           code == GPUHAL_SPIRV_TERMINATE_RAY || code == GPUHAL_SPIRV_EMIT_MESH_TASKS;
}

/* Returns whether the instruction may occur only in blocks. Returns true only for instructions in the grammar, because
 * the permitted location of other instructions is unknown. */
static bool is_of_code(uint32_t code)
{
    return code >= GPUHAL_SPIRV_FUNCTION_CALL && code != GPUHAL_SPIRV_VARIABLE && gpuhal_vulkan_operands(code) &&
           !(code >= GPUHAL_SPIRV_DECORATE && code <= GPUHAL_SPIRV_GROUP_MEMBER_DECORATE) &&
           !(code >= GPUHAL_SPIRV_MODULE_PROCESSED && code <= GPUHAL_SPIRV_DECORATE_ID);
}

/* Checks the order of functions and blocks. Returns the fault, or NULL. */
static const char *move_on(place *now, uint32_t code)
{
    const place from = *now;
    if (is_everywhere(code)) {
        return NULL;
    }
    switch (code) {
    case GPUHAL_SPIRV_FUNCTION:
        *now = IN_FUNCTION;
        return from == OUTSIDE ? NULL : "begins a function inside of another";
    case GPUHAL_SPIRV_FUNCTION_END:
        *now = OUTSIDE;
        return from == IN_FUNCTION ? NULL : "ends a function inside of a block, or none";
    case GPUHAL_SPIRV_FUNCTION_PARAMETER:
        return from == IN_FUNCTION ? NULL : "is a parameter of no function";
    case GPUHAL_SPIRV_LABEL:
        *now = IN_BLOCK;
        return from == IN_FUNCTION ? NULL : "begins a block inside of another, or outside of functions";
    default:
        break;
    }
    if (ends_block(code)) {
        *now = IN_FUNCTION;
        return from == IN_BLOCK ? NULL : "ends a block outside of blocks";
    }
    if (code == GPUHAL_SPIRV_VARIABLE) {
        return from != IN_FUNCTION ? NULL : "stands between two blocks";
    }
    if (is_of_code(code)) {
        return from == IN_BLOCK ? NULL : "stands outside of blocks";
    }
    return from == OUTSIDE || !gpuhal_vulkan_operands(code) ? NULL : "stands in a function";
}

static bool check_instructions(gpuhal_vulkan_module *module, bool all, gpuhal_vulkan_fault *fault)
{
    bool kernels = false, good = true;
    place now = OUTSIDE;
    for (uint32_t at = GPUHAL_SPIRV_HEADER_WORDS; at < module->count && good;
         at += gpuhal_vulkan_module_length(module, at)) {
        const uint32_t code = gpuhal_vulkan_module_code(module, at);
        good = check_operands(module, at, all, fault);
        if (good && code == GPUHAL_SPIRV_ENTRY_POINT) {
            kernels = kernels || module->words[at + 1] == GPUHAL_SPIRV_KERNEL;
            good = check_entry(module, at, fault);
        }
        const char *wrong = good ? move_on(&now, code) : NULL;
        good = good && (!wrong || damaged(fault, module, at, wrong));
    }
    if (good && now != OUTSIDE) {
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
        memcpy(module.words, code, (size_t)bytes); /* the original may be unaligned */
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

const char *gpuhal_vulkan_module_name(const gpuhal_vulkan_module *module, uint32_t id)
{
    for (uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_NAME);
         at < module->count;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), GPUHAL_SPIRV_NAME)) {
        if (module->words[at + 1] == id) {
            return (const char *)&module->words[at + 2];
        }
    }
    return "";
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
