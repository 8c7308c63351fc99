/* vulkan/reflect.c: reads the interface of a kernel from its module: its buffers and their bindings, the location of
 * its values, and its group size.
 *
 * In a module with several entry points, a variable may be used by only some of them. Since SPIR-V 1.4 each entry point
 * lists its variables. In older versions the entry point's functions have to be searched.
 */
#include "spirv.h"

#include <gpuhal/types.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SPIRV_1_4 0x00010400u
/* Limits for types that contain themselves or grow with each step. Types in real programs are far below these
 * limits. */
#define TYPES_MAX 100000u
#define DEPTH_MAX 32u
#define BYTES_MAX (UINT64_C(1) << 40)

typedef struct walk {
    const gpuhal_vulkan_module *module;
    const gpuhal_constant *constants;
    uint32_t constant_count;
    uint32_t types;
    gpuhal_vulkan_interface *interface;
    gpuhal_vulkan_fault *fault;
} walk;

static uint32_t kind_of(const gpuhal_vulkan_module *module, uint32_t id)
{
    return id < module->bound && module->made[id] ? gpuhal_vulkan_module_code(module, module->made[id]) : 0;
}

static bool has(const gpuhal_vulkan_module *module, uint32_t id, uint32_t member, uint32_t decoration)
{
    uint32_t value;
    return gpuhal_vulkan_module_decoration(module, id, member, decoration, &value);
}

static uint64_t size_of(walk *w, uint32_t type, uint32_t matrix_stride, bool row_major, uint32_t depth);

static uint64_t times(uint64_t bytes, uint64_t count)
{
    uint64_t product;
    return __builtin_mul_overflow(bytes, count, &product) ? BYTES_MAX : product;
}

/* @p stride is the distance between rows if the matrix is row-major, otherwise the distance between columns. */
static uint64_t size_of_matrix(walk *w, uint32_t at, uint32_t stride, bool row_major, uint32_t depth)
{
    const uint32_t *word = &w->module->words[at];
    const uint64_t column = size_of(w, word[2], 0, false, depth);
    const uint32_t rows =
        kind_of(w->module, word[2]) == GPUHAL_SPIRV_TYPE_VECTOR ? w->module->words[w->module->made[word[2]] + 3] : 1;
    return stride == 0 ? times(column, word[3]) : (uint64_t)stride * (row_major ? rows : word[3]);
}

/* Uses the members' offsets if they have any. Structures in workgroup memory have no offsets, so their members follow
 * each other. */
static uint64_t size_of_struct(walk *w, uint32_t at, uint32_t depth)
{
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t id = module->words[at + 1], count = gpuhal_vulkan_module_length(module, at) - 2;
    uint64_t end = 0;
    for (uint32_t m = 0; m < count && w->types < TYPES_MAX; m++) {
        uint32_t offset = 0, stride = 0;
        w->types += module->count / 4096; /* each decoration lookup scans the whole module */
        const bool placed = gpuhal_vulkan_module_decoration(module, id, m, GPUHAL_SPIRV_OFFSET, &offset);
        (void)gpuhal_vulkan_module_decoration(module, id, m, GPUHAL_SPIRV_MATRIX_STRIDE, &stride);
        const uint64_t bytes =
            size_of(w, module->words[at + 2 + m], stride, has(module, id, m, GPUHAL_SPIRV_ROW_MAJOR), depth);
        const uint64_t member_end = (placed ? offset : end) + bytes;
        end = member_end > end ? member_end : end;
    }
    return end;
}

/* Returns 0 for types without a size: arrays at the end of a buffer, and invalid types. */
static uint64_t size_of(walk *w, uint32_t type, uint32_t matrix_stride, bool row_major, uint32_t depth)
{
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t at = type < module->bound ? module->made[type] : 0;
    const uint32_t *word = &module->words[at];
    uint64_t bytes = 0;
    uint32_t stride = 0;
    if (at == 0 || depth == DEPTH_MAX || w->types >= TYPES_MAX) {
        w->types = TYPES_MAX;
        return 0;
    }
    w->types++;
    switch (gpuhal_vulkan_module_code(module, at)) {
    case GPUHAL_SPIRV_TYPE_VECTOR:
        bytes = times(size_of(w, word[2], 0, false, depth + 1), word[3]);
        break;
    case GPUHAL_SPIRV_TYPE_MATRIX:
        bytes = size_of_matrix(w, at, matrix_stride, row_major, depth + 1);
        break;
    case GPUHAL_SPIRV_TYPE_ARRAY:
        bytes = size_of(w, word[2], matrix_stride, row_major, depth + 1);
        bytes = gpuhal_vulkan_module_decoration(module, type, UINT32_MAX, GPUHAL_SPIRV_ARRAY_STRIDE, &stride) ? stride
                                                                                                              : bytes;
        bytes = times(bytes, gpuhal_vulkan_module_value(module, word[3], w->constants, w->constant_count).value);
        break;
    case GPUHAL_SPIRV_TYPE_STRUCT:
        bytes = size_of_struct(w, at, depth + 1);
        break;
    case GPUHAL_SPIRV_TYPE_POINTER:
        bytes = sizeof(uint64_t);
        break;
    default:
        bytes = gpuhal_vulkan_module_scalar(module, type);
        break;
    }
    return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

/* Returns how the code accesses a buffer, according to the decorations of the variable or of all members. */
static uint32_t access_of(const gpuhal_vulkan_module *module, uint32_t variable, uint32_t type)
{
    const uint32_t count = gpuhal_vulkan_module_length(module, module->made[type]) - 2;
    bool writes = !has(module, variable, UINT32_MAX, GPUHAL_SPIRV_NON_WRITABLE), some_write = count == 0;
    bool reads = !has(module, variable, UINT32_MAX, GPUHAL_SPIRV_NON_READABLE), some_read = count == 0;
    for (uint32_t m = 0; m < count && (!some_write || !some_read); m++) {
        const bool known = m < GPUHAL_VULKAN_MEMBERS;
        some_write = some_write || !known || !has(module, type, m, GPUHAL_SPIRV_NON_WRITABLE);
        some_read = some_read || !known || !has(module, type, m, GPUHAL_SPIRV_NON_READABLE);
    }
    writes = writes && some_write;
    reads = reads && some_read;
    return (writes ? GPUHAL_ACCESS_WRITE : 0u) | (reads || !writes ? GPUHAL_ACCESS_READ : 0u);
}

static bool take_block(walk *w, uint32_t type, bool pushes)
{
    gpuhal_vulkan_interface *interface = w->interface;
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t at = module->made[type], count = gpuhal_vulkan_module_length(module, at) - 2;
    if (interface->pushes || interface->uniform) {
        return gpuhal_vulkan_fault_set(
            w->fault, GPUHAL_ERROR_NOT_SUPPORTED,
            "the kernel has two blocks for its values; a launch fills one block, of push constants or uniform");
    }
    interface->pushes = pushes;
    interface->uniform = !pushes;
    interface->member_count = count < GPUHAL_VULKAN_MEMBERS ? count : GPUHAL_VULKAN_MEMBERS;
    for (uint32_t m = 0; m < interface->member_count; m++) {
        uint32_t offset = 0, stride = 0;
        (void)gpuhal_vulkan_module_decoration(module, type, m, GPUHAL_SPIRV_OFFSET, &offset);
        (void)gpuhal_vulkan_module_decoration(module, type, m, GPUHAL_SPIRV_MATRIX_STRIDE, &stride);
        const uint64_t bytes =
            size_of(w, module->words[at + 2 + m], stride, has(module, type, m, GPUHAL_SPIRV_ROW_MAJOR), 0);
        interface->members[m] = (gpuhal_vulkan_member){
            .offset = offset, .bytes = bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2};
    }
    const uint64_t all = size_of(w, type, 0, false, 0);
    interface->block_bytes = all < UINT32_MAX / 2 ? (uint32_t)all : UINT32_MAX / 2;
    return true;
}

/* Reads a variable that has a binding and points to @p type. */
static bool take_binding(walk *w, uint32_t variable, uint32_t storage, uint32_t type, uint32_t *uniform_binding)
{
    const gpuhal_vulkan_module *module = w->module;
    gpuhal_vulkan_interface *interface = w->interface;
    uint32_t set = 0, binding = 0;
    (void)gpuhal_vulkan_module_decoration(module, variable, UINT32_MAX, GPUHAL_SPIRV_DESCRIPTOR_SET, &set);
    (void)gpuhal_vulkan_module_decoration(module, variable, UINT32_MAX, GPUHAL_SPIRV_BINDING, &binding);
    if (set != 0 || binding >= GPUHAL_VULKAN_BINDINGS) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the kernel uses binding %" PRIu32 " of set %" PRIu32
                                       "; a launch fills bindings of set 0 below %u",
                                       binding, set, GPUHAL_VULKAN_BINDINGS);
    }
    if (storage == GPUHAL_SPIRV_UNIFORM_CONSTANT || kind_of(module, type) != GPUHAL_SPIRV_TYPE_STRUCT) {
        return gpuhal_vulkan_fault_set(
            w->fault, GPUHAL_ERROR_NOT_SUPPORTED, "binding %" PRIu32 " of the kernel is not a buffer but %s", binding,
            storage == GPUHAL_SPIRV_UNIFORM_CONSTANT ? "an image or a sampler, which no parameter can be"
                                                     : "an array of buffers: a launch fills one at each binding");
    }
    if (storage == GPUHAL_SPIRV_UNIFORM && !has(module, type, UINT32_MAX, GPUHAL_SPIRV_BUFFER_BLOCK)) {
        *uniform_binding = binding;
        return take_block(w, type, false);
    }
    interface->access[binding] |= access_of(module, variable, type);
    interface->buffer_count = binding >= interface->buffer_count ? binding + 1 : interface->buffer_count;
    return true;
}

static bool take_variable(walk *w, uint32_t at, uint32_t *uniform_binding)
{
    const uint32_t *word = &w->module->words[at];
    const uint32_t pointer = w->module->made[word[1]], storage = word[3];
    if (gpuhal_vulkan_module_code(w->module, pointer) != GPUHAL_SPIRV_TYPE_POINTER) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module is damaged: the type of a variable is not a pointer");
    }
    const uint32_t type = w->module->words[pointer + 3];
    switch (storage) {
    case GPUHAL_SPIRV_STORAGE_BUFFER:
    case GPUHAL_SPIRV_UNIFORM:
    case GPUHAL_SPIRV_UNIFORM_CONSTANT:
        return take_binding(w, word[2], storage, type, uniform_binding);
    case GPUHAL_SPIRV_PUSH_CONSTANT:
        if (kind_of(w->module, type) != GPUHAL_SPIRV_TYPE_STRUCT) {
            return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                           "the SPIR-V module is damaged: its push constants are not a block");
        }
        return take_block(w, type, true);
    case GPUHAL_SPIRV_WORKGROUP:
        w->interface->local_bytes += size_of(w, type, 0, false, 0);
        return true;
    default:
        return true;
    }
}

/* Marks the variables that the function uses, and prepends the functions that it calls to `pending`. For a function,
 * marks[id] is the id of the next pending function. If a literal equals a variable's id, this variable is also marked,
 * which is harmless. Returns the id of the first pending function. */
static uint32_t search_function(const gpuhal_vulkan_module *module, uint32_t function, uint32_t pending,
                                uint32_t *marks)
{
    for (uint32_t at = module->made[function];
         at < module->count && gpuhal_vulkan_module_code(module, at) != GPUHAL_SPIRV_FUNCTION_END;
         at += gpuhal_vulkan_module_length(module, at)) {
        for (uint32_t i = 1; i < gpuhal_vulkan_module_length(module, at); i++) {
            const uint32_t id = module->words[at + i], kind = kind_of(module, id);
            const bool callee = kind == GPUHAL_SPIRV_FUNCTION && i == 3 &&
                                gpuhal_vulkan_module_code(module, at) == GPUHAL_SPIRV_FUNCTION_CALL;
            if (callee && marks[id] == 0) {
                marks[id] = pending;
                pending = id;
            }
            marks[id < module->bound ? id : 0] |= kind == GPUHAL_SPIRV_VARIABLE;
        }
    }
    return pending;
}

/* Sets marks[id] of each variable that the entry point uses. */
static void mark_variables(const gpuhal_vulkan_module *module, uint32_t entry, uint32_t *marks)
{
    const uint32_t *words = module->words;
    const uint32_t length = gpuhal_vulkan_module_length(module, entry);
    const size_t name = strlen((const char *)&words[entry + 3]) / sizeof(uint32_t) + 1;
    for (uint32_t i = 3 + (uint32_t)name; words[1] >= SPIRV_1_4 && i < length; i++) {
        marks[words[entry + i] < module->bound ? words[entry + i] : 0] = 1;
    }
    uint32_t pending = words[1] < SPIRV_1_4 ? words[entry + 2] : UINT32_MAX;
    marks[words[entry + 2]] = UINT32_MAX;
    while (pending != UINT32_MAX) {
        const uint32_t function = pending;
        pending = search_function(module, function, marks[function], marks);
    }
}

static bool take_variables(walk *w, uint32_t entry)
{
    const gpuhal_vulkan_module *module = w->module;
    uint32_t uniform_binding = UINT32_MAX;
    uint32_t *marks = module->entry_count > 1 ? calloc(module->bound, sizeof *marks) : NULL;
    if (module->entry_count > 1 && !marks) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
    }
    if (marks) {
        mark_variables(module, entry, marks);
    }
    bool good = true;
    uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_VARIABLE);
    for (; at < module->count && good;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), GPUHAL_SPIRV_VARIABLE)) {
        good = (marks && !marks[module->words[at + 2]]) || take_variable(w, at, &uniform_binding);
    }
    free(marks);
    if (good && w->types >= TYPES_MAX) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the types of the SPIR-V module nest too deep");
    }
    if (good && w->interface->uniform && uniform_binding != w->interface->buffer_count) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the uniform block of the kernel is at binding %" PRIu32
                                       "; values go to the binding after the last buffer, which is %" PRIu32,
                                       uniform_binding, w->interface->buffer_count);
    }
    return good;
}

static bool take_constants(walk *w, const uint32_t ids[3])
{
    for (uint32_t d = 0; d < 3; d++) {
        w->interface->group[d] = gpuhal_vulkan_module_value(w->module, ids[d], w->constants, w->constant_count);
    }
    return true;
}

/* The built-in WorkgroupSize overrides the execution mode. */
static bool take_group(walk *w, uint32_t entry)
{
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t modes[] = {GPUHAL_SPIRV_DECORATE, GPUHAL_SPIRV_EXECUTION_MODE, GPUHAL_SPIRV_EXECUTION_MODE_ID};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, modes[i]);
        for (; at < module->count;
             at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), modes[i])) {
            const uint32_t *word = &module->words[at];
            const uint32_t length = gpuhal_vulkan_module_length(module, at);
            const uint32_t made = module->made[word[1]], composite = made ? gpuhal_vulkan_module_code(module, made) : 0;
            if (modes[i] == GPUHAL_SPIRV_DECORATE && length == 4 && word[2] == GPUHAL_SPIRV_BUILT_IN &&
                word[3] == GPUHAL_SPIRV_WORKGROUP_SIZE && gpuhal_vulkan_module_length(module, made) == 6 &&
                (composite == GPUHAL_SPIRV_CONSTANT_COMPOSITE || composite == GPUHAL_SPIRV_SPEC_CONSTANT_COMPOSITE)) {
                return take_constants(w, &module->words[made + 3]);
            }
            const bool of_entry = word[1] == module->words[entry + 2] && length == 6;
            if (of_entry && modes[i] == GPUHAL_SPIRV_EXECUTION_MODE_ID && word[2] == GPUHAL_SPIRV_LOCAL_SIZE_ID) {
                return take_constants(w, &word[3]);
            }
            if (of_entry && modes[i] == GPUHAL_SPIRV_EXECUTION_MODE && word[2] == GPUHAL_SPIRV_LOCAL_SIZE) {
                for (uint32_t d = 0; d < 3; d++) {
                    w->interface->group[d] = (gpuhal_vulkan_extent){.value = word[3 + d], .known = true};
                }
                return true;
            }
        }
    }
    return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                   "the entry point of the SPIR-V module has no size of its groups");
}

bool gpuhal_vulkan_reflect(const gpuhal_vulkan_module *module, uint32_t entry, const gpuhal_constant *constants,
                           uint32_t constant_count, gpuhal_vulkan_interface *out_interface, gpuhal_vulkan_fault *fault)
{
    *out_interface = (gpuhal_vulkan_interface){0};
    walk w = {.module = module,
              .constants = constants,
              .constant_count = constant_count,
              .interface = out_interface,
              .fault = fault};
    return take_group(&w, entry) && take_variables(&w, entry);
}
