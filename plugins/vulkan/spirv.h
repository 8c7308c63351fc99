/* vulkan/spirv.h: checks whether a SPIR-V module may be passed to a driver, and reads the interface of its kernels.
 *
 * Drivers trust SPIR-V, so an invalid module may crash them. A module is accepted only if its last instruction ends at
 * the end of the module, all ids are within the bound, and no id has two definitions. Every known instruction must
 * have the operands that the grammar requires. If all instructions are known, the ids that they use must be defined in
 * the module. Functions must consist of blocks that begin with a label and end with a branch or a return. Everything
 * else that a validator checks, such as the meaning of ids and types, is left to the compiler. The other functions rely
 * on these checks, but limit their recursion themselves, since a type may still contain itself.
 */
#ifndef GPUHAL_VULKAN_SPIRV_H
#define GPUHAL_VULKAN_SPIRV_H

#include <gpuhal/plugin.h>

#include <stdbool.h>
#include <stddef.h>

/* Maximum number of storage buffers, of uniform blocks and of descriptor sets of one kernel. */
#define GPUHAL_VULKAN_BUFFERS 128u
#define GPUHAL_VULKAN_BLOCKS  16u
#define GPUHAL_VULKAN_SETS    32u

/* Numbers from the SPIR-V specification that the plugin uses. */
enum {
    GPUHAL_SPIRV_HEADER_WORDS = 5,
    GPUHAL_SPIRV_GLCOMPUTE = 5, /* execution models */
    GPUHAL_SPIRV_KERNEL = 6,
    GPUHAL_SPIRV_UNDEF = 1, /* instructions */
    GPUHAL_SPIRV_NAME = 5,
    GPUHAL_SPIRV_LINE = 8,
    GPUHAL_SPIRV_EXT_INST_IMPORT = 11,
    GPUHAL_SPIRV_EXT_INST = 12,
    GPUHAL_SPIRV_ENTRY_POINT = 15,
    GPUHAL_SPIRV_EXECUTION_MODE = 16,
    GPUHAL_SPIRV_CAPABILITY = 17,
    GPUHAL_SPIRV_TYPE_VOID = 19,
    GPUHAL_SPIRV_TYPE_BOOL = 20,
    GPUHAL_SPIRV_TYPE_INT = 21,
    GPUHAL_SPIRV_TYPE_FLOAT = 22,
    GPUHAL_SPIRV_TYPE_VECTOR = 23,
    GPUHAL_SPIRV_TYPE_MATRIX = 24,
    GPUHAL_SPIRV_TYPE_ARRAY = 28,
    GPUHAL_SPIRV_TYPE_STRUCT = 30,
    GPUHAL_SPIRV_TYPE_POINTER = 32,
    GPUHAL_SPIRV_TYPE_FUNCTION = 33,
    GPUHAL_SPIRV_CONSTANT = 43,
    GPUHAL_SPIRV_CONSTANT_COMPOSITE = 44,
    GPUHAL_SPIRV_SPEC_CONSTANT_TRUE = 48,
    GPUHAL_SPIRV_SPEC_CONSTANT_FALSE = 49,
    GPUHAL_SPIRV_SPEC_CONSTANT = 50,
    GPUHAL_SPIRV_SPEC_CONSTANT_COMPOSITE = 51,
    GPUHAL_SPIRV_FUNCTION = 54,
    GPUHAL_SPIRV_FUNCTION_PARAMETER = 55,
    GPUHAL_SPIRV_FUNCTION_END = 56,
    GPUHAL_SPIRV_FUNCTION_CALL = 57,
    GPUHAL_SPIRV_VARIABLE = 59,
    GPUHAL_SPIRV_DECORATE = 71,
    GPUHAL_SPIRV_MEMBER_DECORATE = 72,
    GPUHAL_SPIRV_GROUP_MEMBER_DECORATE = 75,
    GPUHAL_SPIRV_LABEL = 248,
    GPUHAL_SPIRV_BRANCH = 249,
    GPUHAL_SPIRV_UNREACHABLE = 255,
    GPUHAL_SPIRV_NO_LINE = 317,
    GPUHAL_SPIRV_MODULE_PROCESSED = 330,
    GPUHAL_SPIRV_EXECUTION_MODE_ID = 331,
    GPUHAL_SPIRV_DECORATE_ID = 332,
    GPUHAL_SPIRV_TERMINATE_INVOCATION = 4416,
    GPUHAL_SPIRV_IGNORE_INTERSECTION = 4448,
    GPUHAL_SPIRV_TERMINATE_RAY = 4449,
    GPUHAL_SPIRV_EMIT_MESH_TASKS = 5294,
    GPUHAL_SPIRV_LOCAL_SIZE = 17, /* execution modes */
    GPUHAL_SPIRV_LOCAL_SIZE_ID = 38,
    GPUHAL_SPIRV_SPEC_ID = 1, /* decorations */
    GPUHAL_SPIRV_BLOCK = 2,
    GPUHAL_SPIRV_BUFFER_BLOCK = 3,
    GPUHAL_SPIRV_ROW_MAJOR = 4,
    GPUHAL_SPIRV_ARRAY_STRIDE = 6,
    GPUHAL_SPIRV_MATRIX_STRIDE = 7,
    GPUHAL_SPIRV_BUILT_IN = 11,
    GPUHAL_SPIRV_NON_WRITABLE = 24,
    GPUHAL_SPIRV_NON_READABLE = 25,
    GPUHAL_SPIRV_BINDING = 33,
    GPUHAL_SPIRV_DESCRIPTOR_SET = 34,
    GPUHAL_SPIRV_OFFSET = 35,
    GPUHAL_SPIRV_WORKGROUP_SIZE = 25,  /* a built-in */
    GPUHAL_SPIRV_UNIFORM_CONSTANT = 0, /* storage classes */
    GPUHAL_SPIRV_UNIFORM = 2,
    GPUHAL_SPIRV_WORKGROUP = 4,
    GPUHAL_SPIRV_PUSH_CONSTANT = 9,
    GPUHAL_SPIRV_STORAGE_BUFFER = 12
};

/* The low half of words[at] is the opcode of an instruction, the high half its length in words. */
typedef struct gpuhal_vulkan_module {
    uint32_t *words; /* a copy */
    uint32_t count, bound;
    uint32_t *made; /* position of the instruction that defines each id; 0 if undefined */
    uint32_t entry_count;
} gpuhal_vulkan_module;

/* The group size in one dimension. */
typedef struct gpuhal_vulkan_extent {
    uint32_t value;
    bool known;      /* false if the code computes the size from constants */
    bool adjustable; /* the specialization constant `id` sets the size */
    uint32_t id;
} gpuhal_vulkan_extent;

/* A member of a block of values. */
typedef struct gpuhal_vulkan_member {
    uint32_t offset, bytes;
} gpuhal_vulkan_member;

#define GPUHAL_VULKAN_MEMBERS 256u

typedef enum gpuhal_vulkan_binding_kind {
    GPUHAL_VULKAN_STORAGE, /* a buffer, or an array of buffers */
    GPUHAL_VULKAN_UNIFORM, /* a block of values */
    GPUHAL_VULKAN_PUSHED   /* the push constants, which are a block of values too */
} gpuhal_vulkan_binding_kind;

/* A binding that the kernel uses. */
typedef struct gpuhal_vulkan_binding {
    gpuhal_vulkan_binding_kind kind;
    uint32_t set, number; /* set UINT32_MAX: the push constants */
    uint32_t first;       /* number of the first buffer or of the block; the push constants follow the uniform blocks */
    uint32_t count;       /* buffers of an array; otherwise 1 */
    uint32_t access;      /* GPUHAL_ACCESS_ bits of buffers */
    uint32_t bytes;       /* size of a block; its members are `members[member]` and the following */
    uint32_t member, member_count;
} gpuhal_vulkan_binding;

typedef struct gpuhal_vulkan_interface {
    gpuhal_vulkan_binding bindings[GPUHAL_VULKAN_BUFFERS + GPUHAL_VULKAN_BLOCKS + 1]; /* by set, then by number */
    uint32_t binding_count;
    uint32_t buffer_count; /* including one for each number below a set's last binding that the code does not use */
    uint32_t block_count;  /* uniform blocks */
    uint32_t member_count; /* of all blocks; `members` has the first GPUHAL_VULKAN_MEMBERS of them */
    gpuhal_vulkan_member members[GPUHAL_VULKAN_MEMBERS];
    gpuhal_vulkan_extent group[3];
    uint64_t local_bytes;
} gpuhal_vulkan_interface;

typedef struct gpuhal_vulkan_fault {
    gpuhal_status status;
    char text[320];
} gpuhal_vulkan_fault;

/* Always returns false. */
bool gpuhal_vulkan_fault_set(gpuhal_vulkan_fault *fault, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* grammar.c: returns the operands of an instruction, one letter each. An operand is one word except for s, n, m and o.
 * t is the id of the type, r the id that the instruction defines, b the id of a block, i another id, l a literal, s a
 * zero-terminated string, n a number as wide as the type of its constant or selector, m memory access flags with the
 * operands that they require, o an opcode and its operands, x an operand of an extended instruction, and '.' any
 * further words. A letter may be followed by ? (at most one) or * (any number). Two letters followed by 2 are any
 * number of such pairs. Returns NULL for an unknown instruction. */
const char *gpuhal_vulkan_operands(uint32_t code);

/* capability.c. Returns the name of a capability, or NULL. */
const char *gpuhal_vulkan_capability_name(uint32_t capability);
/* Returns whether only OpenCL supports the capability. */
bool gpuhal_vulkan_capability_is_opencl(uint32_t capability);

/* spirv.c */

/* Reads a module of SPIR-V version @p newest (such as 0x00010600) or older. On failure, returns false with the fault,
 * and nothing has to be freed. */
bool gpuhal_vulkan_module_read(const void *code, uint64_t bytes, uint32_t newest, gpuhal_vulkan_module *out_module,
                               gpuhal_vulkan_fault *fault);
void gpuhal_vulkan_module_finish(gpuhal_vulkan_module *module);

static inline uint32_t gpuhal_vulkan_module_code(const gpuhal_vulkan_module *module, uint32_t at)
{
    return module->words[at] & 0xffff;
}

static inline uint32_t gpuhal_vulkan_module_length(const gpuhal_vulkan_module *module, uint32_t at)
{
    return module->words[at] >> 16;
}

/* Returns the position of the next instruction with this opcode (0 for any) at or after @p at, or `count` if there is
 * none. */
uint32_t gpuhal_vulkan_module_find(const gpuhal_vulkan_module *module, uint32_t at, uint32_t code);
/* Returns whether the member @p member of an id has the decoration, or the id itself if @p member is UINT32_MAX. Also
 * returns the word after the decoration. */
bool gpuhal_vulkan_module_decoration(const gpuhal_vulkan_module *module, uint32_t id, uint32_t member,
                                     uint32_t decoration, uint32_t *out_value);
/* Returns the position of the GLCompute entry point with this name; 0 if not found. */
uint32_t gpuhal_vulkan_module_entry(const gpuhal_vulkan_module *module, const char *name);
/* Writes the names of all GLCompute entry points, separated by blanks, as far as they fit. */
void gpuhal_vulkan_module_list(const gpuhal_vulkan_module *module, char *out_names, size_t size);
/* Returns the position of the constant with this @p spec_id; 0 if not found. */
uint32_t gpuhal_vulkan_module_constant(const gpuhal_vulkan_module *module, uint32_t spec_id);
/* Returns the name that the compiler recorded for an id; "" if there is none. */
const char *gpuhal_vulkan_module_name(const gpuhal_vulkan_module *module, uint32_t id);
/* Returns the size of a scalar type in bytes; 0 for any other type. */
uint32_t gpuhal_vulkan_module_scalar(const gpuhal_vulkan_module *module, uint32_t type);
/* Returns the value of a 32-bit integer constant after specialization with @p constants. */
gpuhal_vulkan_extent gpuhal_vulkan_module_value(const gpuhal_vulkan_module *module, uint32_t id,
                                                const gpuhal_constant *constants, uint32_t constant_count);

/* reflect.c: reads the interface of the kernel at an entry point. */
bool gpuhal_vulkan_reflect(const gpuhal_vulkan_module *module, uint32_t entry, const gpuhal_constant *constants,
                           uint32_t constant_count, gpuhal_vulkan_interface *out_interface, gpuhal_vulkan_fault *fault);

#endif
