/* vulkan/reflect.c: reads the interface of a kernel from its module: its buffers and their bindings, the blocks of its
 * values, and its group size.
 *
 * In a module with several entry points, a variable may be used by only some of them. Since SPIR-V 1.4 each entry point
 * lists its variables. In older versions the entry point's functions have to be searched.
 */
#include "spirv.h"

#include <gpuhal/types.h>

#include <inttypes.h>
#include <stdio.h>
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

/* A variable of the interface. */
typedef struct variable {
    uint32_t id, type; /* the type of an array's elements */
    uint32_t set, binding;
    uint32_t count; /* array elements; 1 for no array */
} variable;

/* Refuses the variable, and names it. GLSL names a block without a variable name by its type. */
static bool refuse(walk *w, const variable *v, gpuhal_status status, const char *reason)
{
    const char *name = gpuhal_vulkan_module_name(w->module, v->id);
    name = *name ? name : gpuhal_vulkan_module_name(w->module, v->type);
    return gpuhal_vulkan_fault_set(w->fault, status,
                                   "variable %.64s of the kernel, at binding %" PRIu32 " of set %" PRIu32 ", is %s",
                                   *name ? name : "(without a name)", v->binding, v->set, reason);
}

/* Returns the kernel's binding at this place, which is new if its `count` is 0. Returns NULL if there are too many. */
static gpuhal_vulkan_binding *binding_at(gpuhal_vulkan_interface *interface, uint32_t set, uint32_t number)
{
    uint32_t i = interface->binding_count;
    while (i > 0 && (interface->bindings[i - 1].set > set ||
                     (interface->bindings[i - 1].set == set && interface->bindings[i - 1].number >= number))) {
        i--;
    }
    gpuhal_vulkan_binding *found = &interface->bindings[i];
    if (i < interface->binding_count && found->set == set && found->number == number) {
        return found;
    }
    if (interface->binding_count == sizeof interface->bindings / sizeof *found) {
        return NULL;
    }
    memmove(found + 1, found, (interface->binding_count - i) * sizeof *found);
    *found = (gpuhal_vulkan_binding){.set = set, .number = number};
    interface->binding_count++;
    return found;
}

static void take_members(walk *w, uint32_t type, gpuhal_vulkan_binding *block)
{
    gpuhal_vulkan_interface *interface = w->interface;
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t at = module->made[type];
    block->member = interface->member_count;
    block->member_count = gpuhal_vulkan_module_length(module, at) - 2;
    interface->member_count += block->member_count;
    for (uint32_t m = 0; m < block->member_count && block->member + m < GPUHAL_VULKAN_MEMBERS; m++) {
        uint32_t offset = 0, stride = 0;
        (void)gpuhal_vulkan_module_decoration(module, type, m, GPUHAL_SPIRV_OFFSET, &offset);
        (void)gpuhal_vulkan_module_decoration(module, type, m, GPUHAL_SPIRV_MATRIX_STRIDE, &stride);
        const uint64_t bytes =
            size_of(w, module->words[at + 2 + m], stride, has(module, type, m, GPUHAL_SPIRV_ROW_MAJOR), 0);
        interface->members[block->member + m] = (gpuhal_vulkan_member){
            .offset = offset, .bytes = bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2};
    }
    const uint64_t all = size_of(w, type, 0, false, 0);
    block->bytes = all < UINT32_MAX / 2 ? (uint32_t)all : UINT32_MAX / 2;
}

/* Adds the variable to the kernel's bindings. Several variables may be one buffer, and then see it with different
 * types. */
static bool add_binding(walk *w, const variable *v, gpuhal_vulkan_binding_kind kind)
{
    gpuhal_vulkan_binding *binding = binding_at(w->interface, v->set, v->binding);
    if (!binding) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED, "more than the bindings that a kernel can have");
    }
    if (binding->count > 0 && kind == GPUHAL_VULKAN_PUSHED) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the kernel has two blocks of push constants; Vulkan allows one");
    }
    if (binding->count > 0 && (kind != GPUHAL_VULKAN_STORAGE || binding->kind != kind)) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED,
                      "at the binding of another variable; only buffers can share a binding");
    }
    binding->kind = kind;
    binding->count = v->count > binding->count ? v->count : binding->count;
    if (kind == GPUHAL_VULKAN_STORAGE) {
        binding->access |= access_of(w->module, v->id, v->type);
    } else {
        take_members(w, v->type, binding);
    }
    return true;
}

/* Replaces the type of an array by that of its elements. */
static bool take_array(walk *w, variable *v)
{
    const uint32_t *word = &w->module->words[w->module->made[v->type]];
    const gpuhal_vulkan_extent length = gpuhal_vulkan_module_value(w->module, word[3], w->constants, w->constant_count);
    v->type = word[2];
    v->count = length.value;
    if (!length.known) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED, "an array whose length is not a number or a constant");
    }
    if (length.value == 0 || length.value > GPUHAL_VULKAN_BUFFERS) {
        char reason[64];
        snprintf(reason, sizeof reason, "an array of %" PRIu32 " buffers; a kernel has 1 to %u", length.value,
                 GPUHAL_VULKAN_BUFFERS);
        return refuse(w, v, length.value ? GPUHAL_ERROR_TOO_LARGE : GPUHAL_ERROR_INVALID_ARGUMENT, reason);
    }
    return true;
}

/* Reads a variable that has a binding. */
static bool take_binding(walk *w, variable *v, uint32_t storage)
{
    const gpuhal_vulkan_module *module = w->module;
    (void)gpuhal_vulkan_module_decoration(module, v->id, UINT32_MAX, GPUHAL_SPIRV_DESCRIPTOR_SET, &v->set);
    (void)gpuhal_vulkan_module_decoration(module, v->id, UINT32_MAX, GPUHAL_SPIRV_BINDING, &v->binding);
    if (storage == GPUHAL_SPIRV_UNIFORM_CONSTANT) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED,
                      "an image or a sampler, which no parameter can be; a kernel has buffers and values");
    }
    if (v->set >= GPUHAL_VULKAN_SETS || v->binding >= GPUHAL_VULKAN_BUFFERS) {
        char reason[96];
        snprintf(reason, sizeof reason, "out of reach; a launch fills bindings below %u of sets below %u",
                 GPUHAL_VULKAN_BUFFERS, GPUHAL_VULKAN_SETS);
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED, reason);
    }
    const bool array = kind_of(module, v->type) == GPUHAL_SPIRV_TYPE_ARRAY;
    if (array && !take_array(w, v)) {
        return false;
    }
    if (kind_of(module, v->type) != GPUHAL_SPIRV_TYPE_STRUCT) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED, "not a buffer, a uniform block, or an array of known length");
    }
    const bool uniform =
        storage == GPUHAL_SPIRV_UNIFORM && !has(module, v->type, UINT32_MAX, GPUHAL_SPIRV_BUFFER_BLOCK);
    if (uniform && array) {
        return refuse(w, v, GPUHAL_ERROR_NOT_SUPPORTED, "an array of uniform blocks; a kernel has single ones");
    }
    return add_binding(w, v, uniform ? GPUHAL_VULKAN_UNIFORM : GPUHAL_VULKAN_STORAGE);
}

static bool take_variable(walk *w, uint32_t at)
{
    const uint32_t *word = &w->module->words[at];
    const uint32_t pointer = w->module->made[word[1]], storage = word[3];
    if (gpuhal_vulkan_module_code(w->module, pointer) != GPUHAL_SPIRV_TYPE_POINTER) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the SPIR-V module is damaged: the type of a variable is not a pointer");
    }
    variable v = {.id = word[2], .type = w->module->words[pointer + 3], .count = 1};
    switch (storage) {
    case GPUHAL_SPIRV_STORAGE_BUFFER:
    case GPUHAL_SPIRV_UNIFORM:
    case GPUHAL_SPIRV_UNIFORM_CONSTANT:
        return take_binding(w, &v, storage);
    case GPUHAL_SPIRV_PUSH_CONSTANT:
        if (kind_of(w->module, v.type) != GPUHAL_SPIRV_TYPE_STRUCT) {
            return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                           "the SPIR-V module is damaged: its push constants are not a block");
        }
        v.set = UINT32_MAX;
        return add_binding(w, &v, GPUHAL_VULKAN_PUSHED);
    case GPUHAL_SPIRV_WORKGROUP:
        w->interface->local_bytes += size_of(w, v.type, 0, false, 0);
        return true;
    default:
        return true;
    }
}

/* Returns whether a word of an instruction may be the id of a variable. @p kind is the word's letter in the grammar; it
 * is moved to the next word's letter, or to the end if no variable can follow. Any word of an unknown instruction may
 * be an id. */
static bool may_be_variable(const char **kind)
{
    const char *at = *kind;
    if (!at || *at == '.') {
        return true;
    }
    if (strchr("snmo", *at)) { /* includes the end */
        *kind = "";
        return false;
    }
    *kind = at[1] == '*' ? at : at[1] == '?' ? at + 2 : at[1] == '2' ? at - 1 : at + 1;
    return *at != 'l';
}

/* Marks the variables that the function uses, and prepends the functions that it calls to `pending`. For a function,
 * marks[id] is the id of the next pending function. Returns the id of the first pending function. */
static uint32_t search_function(const gpuhal_vulkan_module *module, uint32_t function, uint32_t pending,
                                uint32_t *marks)
{
    for (uint32_t at = module->made[function];
         at < module->count && gpuhal_vulkan_module_code(module, at) != GPUHAL_SPIRV_FUNCTION_END;
         at += gpuhal_vulkan_module_length(module, at)) {
        const uint32_t code = gpuhal_vulkan_module_code(module, at);
        const char *operand = gpuhal_vulkan_operands(code);
        for (uint32_t i = 1; i < gpuhal_vulkan_module_length(module, at); i++) {
            const uint32_t id = may_be_variable(&operand) ? module->words[at + i] : 0, kind = kind_of(module, id);
            if (kind == GPUHAL_SPIRV_FUNCTION && i == 3 && code == GPUHAL_SPIRV_FUNCTION_CALL && marks[id] == 0) {
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

/* Numbers the buffers and the blocks. A number below a set's last binding counts as a buffer if the code does not use
 * it, because compilers remove bindings that a variant of a shader does not need. */
static bool number_bindings(walk *w)
{
    gpuhal_vulkan_interface *interface = w->interface;
    uint32_t set = 0, next = 0; /* the set, and the number after the last binding */
    for (uint32_t i = 0; i < interface->binding_count; i++) {
        gpuhal_vulkan_binding *binding = &interface->bindings[i];
        if (binding->kind != GPUHAL_VULKAN_PUSHED) {
            interface->buffer_count += binding->number - (binding->set == set ? next : 0);
        }
        set = binding->set;
        next = binding->number + 1;
        if (binding->kind == GPUHAL_VULKAN_STORAGE) {
            binding->first = interface->buffer_count;
            interface->buffer_count += binding->count;
        } else {
            binding->first = interface->block_count;
            interface->block_count += binding->kind == GPUHAL_VULKAN_UNIFORM;
        }
    }
    return (interface->buffer_count <= GPUHAL_VULKAN_BUFFERS && interface->block_count <= GPUHAL_VULKAN_BLOCKS) ||
           gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_TOO_LARGE,
                                   "the kernel has %" PRIu32 " buffers, including unused bindings, and %" PRIu32
                                   " uniform blocks; it can have %u and %u",
                                   interface->buffer_count, interface->block_count, GPUHAL_VULKAN_BUFFERS,
                                   GPUHAL_VULKAN_BLOCKS);
}

static bool take_variables(walk *w, uint32_t entry)
{
    const gpuhal_vulkan_module *module = w->module;
    const uint32_t first = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_ENTRY_POINT);
    const bool several = gpuhal_vulkan_module_find(module, first + gpuhal_vulkan_module_length(module, first),
                                                   GPUHAL_SPIRV_ENTRY_POINT) < module->count;
    uint32_t *marks = several ? calloc(module->bound, sizeof *marks) : NULL;
    if (several && !marks) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
    }
    if (marks) {
        mark_variables(module, entry, marks);
    }
    bool good = true;
    uint32_t at = gpuhal_vulkan_module_find(module, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_VARIABLE);
    for (; at < module->count && good;
         at = gpuhal_vulkan_module_find(module, at + gpuhal_vulkan_module_length(module, at), GPUHAL_SPIRV_VARIABLE)) {
        good = (marks && !marks[module->words[at + 2]]) || take_variable(w, at);
    }
    free(marks);
    if (good && w->types >= TYPES_MAX) {
        return gpuhal_vulkan_fault_set(w->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the types of the SPIR-V module nest too deep");
    }
    return good && number_bindings(w);
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
