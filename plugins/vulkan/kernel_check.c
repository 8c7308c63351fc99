/* vulkan/kernel_check.c: checks a kernel's description against its code.
 *
 * A driver would not detect a difference between them, and the device would access the wrong memory.
 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes for uniform blocks in one page of an arena. */
#define VALUES_MAX (UINT32_C(64) << 10)
/* Vulkan limits minUniformBufferOffsetAlignment to 256. */
#define BLOCK_ALIGNMENT 256u

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns the offset of a value after the previous value's end. A value's alignment is the largest power of two that
 * divides its size, at most 16. */
static uint32_t place_value(uint32_t end, uint32_t bytes)
{
    uint32_t alignment = bytes & (0u - bytes);
    alignment = alignment > 16 ? 16 : alignment;
    return (end + alignment - 1) & ~(alignment - 1);
}

/* Called if the description has no parameters. Lists the buffers, then the members of the blocks. */
static bool reflect_parameters(gpuhal_vulkan_kernel_plan *p, gpuhal_plugin_kernel *kernel)
{
    const gpuhal_vulkan_interface *interface = &p->interface;
    for (uint32_t i = 0; i < interface->buffer_count; i++) { /* also for unused bindings */
        kernel->parameters[i] =
            (gpuhal_parameter){.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE};
    }
    if (interface->member_count > GPUHAL_VULKAN_MEMBERS) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the kernel's blocks of values have %" PRIu32 " members; without a description "
                                       "of the parameters they can have %u",
                                       interface->member_count, GPUHAL_VULKAN_MEMBERS);
    }
    uint32_t next = interface->buffer_count;
    for (uint32_t b = 0; b < interface->binding_count; b++) {
        const gpuhal_vulkan_binding *binding = &interface->bindings[b];
        for (uint32_t i = 0; i < binding->count && binding->kind == GPUHAL_VULKAN_STORAGE; i++) {
            kernel->parameters[binding->first + i].access = binding->access;
        }
        for (uint32_t m = 0; m < binding->member_count; m++) {
            const gpuhal_vulkan_member *member = &interface->members[binding->member + m];
            if (member->bytes == 0) {
                return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                               "member %" PRIu32 " of the kernel's block of values has no size "
                                               "of its own",
                                               m);
            }
            kernel->parameters[next] = (gpuhal_parameter){.kind = GPUHAL_PARAMETER_VALUE, .bytes = member->bytes};
            kernel->places[next++] = (gpuhal_vulkan_place){.block = binding->first, .offset = member->offset};
        }
        if (binding->kind != GPUHAL_VULKAN_STORAGE) {
            kernel->blocks[binding->first].bytes = binding->bytes;
        }
    }
    return true;
}

static bool starts_member(const gpuhal_vulkan_interface *interface, const gpuhal_vulkan_binding *block, uint32_t offset)
{
    bool found = offset == 0 && block->member >= GPUHAL_VULKAN_MEMBERS; /* its members are not listed */
    for (uint32_t m = block->member; m < block->member + block->member_count && m < GPUHAL_VULKAN_MEMBERS; m++) {
        found = found || interface->members[m].offset == offset;
    }
    return found;
}

/* Returns the number of sets up to the last one that the kernel uses. */
static uint32_t set_count(const gpuhal_vulkan_interface *interface)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < interface->binding_count; b++) { /* the push constants are in no set */
        count = interface->bindings[b].kind != GPUHAL_VULKAN_PUSHED ? interface->bindings[b].set + 1 : count;
    }
    return count;
}

/* One description may serve several variants of a shader, and compilers remove unused bindings. So the description may
 * have more buffers than the code has bindings. However, if the code has a uniform block or several sets, the numbers
 * must be equal, because the removed binding may not be the last of all. */
static bool check_buffers(gpuhal_vulkan_kernel_plan *p)
{
    const uint32_t has = p->interface.buffer_count;
    uint32_t buffers = 0;
    for (uint32_t i = 0; i < p->desc->parameter_count; i++) {
        buffers += p->desc->parameters[i].kind == GPUHAL_PARAMETER_BUFFER;
    }
    return buffers == has || (buffers > has && p->interface.block_count == 0 && set_count(&p->interface) <= 1) ||
           gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                   "the description has %" PRIu32 " buffers, the kernel bindings for %" PRIu32, buffers,
                                   has);
}

/* Places the description's values in the code's blocks, one block after the other. */
typedef struct filling {
    uint32_t at;    /* the binding that is the current block; the number of bindings if the kernel has no blocks */
    uint32_t end;   /* of the values in this block */
    uint32_t given; /* bytes of the values in earlier blocks */
} filling;

/* Returns the first block among the bindings from @p at on, or the number of bindings. */
static uint32_t next_block(const gpuhal_vulkan_interface *interface, uint32_t at)
{
    while (at < interface->binding_count && interface->bindings[at].kind == GPUHAL_VULKAN_STORAGE) {
        at++;
    }
    return at;
}

/* Checks the number of buffers first, because the description may have a value in place of a buffer. */
static bool refuse_offset(gpuhal_vulkan_kernel_plan *p, uint32_t i, const gpuhal_vulkan_binding *block, uint32_t offset)
{
    if (!check_buffers(p)) {
        return false;
    }
    char members[64] = "";
    size_t used = 0;
    for (uint32_t m = block->member;
         m < block->member + block->member_count && m < GPUHAL_VULKAN_MEMBERS && used < sizeof members; m++) {
        used += (size_t)snprintf(members + used, sizeof members - used, " %" PRIu32, p->interface.members[m].offset);
    }
    return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                   "parameter %" PRIu32 " of %" PRIu32 " bytes lies at byte %" PRIu32
                                   " of the values; members of the kernel's block begin at%s",
                                   i, p->desc->parameters[i].bytes, offset, members);
}

static bool place_parameter(gpuhal_vulkan_kernel_plan *p, gpuhal_plugin_kernel *kernel, uint32_t i, filling *f)
{
    const gpuhal_vulkan_interface *interface = &p->interface;
    const uint32_t bytes = kernel->parameters[i].bytes;
    if (bytes == 0 || bytes > VALUES_MAX) {
        return gpuhal_vulkan_fault_set(
            &p->fault, bytes ? GPUHAL_ERROR_TOO_LARGE : GPUHAL_ERROR_INVALID_ARGUMENT,
            "parameter %" PRIu32 " is a value of %" PRIu32 " bytes; it can have 1 to %" PRIu32, i, bytes, VALUES_MAX);
    }
    const gpuhal_vulkan_binding *block = &interface->bindings[f->at];
    if (f->at < interface->binding_count && f->end >= block->bytes) {
        const uint32_t next = next_block(interface, f->at + 1);
        if (next < interface->binding_count) {
            *f = (filling){.at = next, .given = f->given + f->end};
            block = &interface->bindings[next];
        }
    }
    const uint32_t offset = place_value(f->end, bytes);
    f->end = offset + bytes;
    if (f->at < interface->binding_count) {
        if (!starts_member(interface, block, offset)) {
            return refuse_offset(p, i, block, offset);
        }
        kernel->places[i] = (gpuhal_vulkan_place){.block = block->first, .offset = offset};
        kernel->blocks[block->first].bytes = f->end;
    }
    return f->given + f->end <= VALUES_MAX ||
           gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                   "the values up to parameter %" PRIu32 " are %" PRIu32 " bytes; at most %" PRIu32, i,
                                   f->given + f->end, VALUES_MAX);
}

static bool read_parameter(gpuhal_vulkan_kernel_plan *p, gpuhal_plugin_kernel *kernel, uint32_t i, filling *f)
{
    gpuhal_parameter *parameter = &kernel->parameters[i];
    *parameter = p->desc->parameters[i];
    switch (parameter->kind) {
    case GPUHAL_PARAMETER_BUFFER:
        parameter->access = parameter->access ? parameter->access : GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE;
        return true;
    case GPUHAL_PARAMETER_VALUE:
        return place_parameter(p, kernel, i, f);
    case GPUHAL_PARAMETER_LOCAL:
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "parameter %" PRIu32
                                       " is local memory; with Vulkan that is an array in the code, whose size a "
                                       "constant may set",
                                       i);
    default:
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "parameter %" PRIu32 " is of kind %" PRIu32 ", which does not exist", i,
                                       parameter->kind);
    }
}

/* The description's values may be longer than their block in the code, by less than the largest alignment, because the
 * last value may have padding that the block of the code lacks. */
static bool read_parameters(gpuhal_vulkan_kernel_plan *p, gpuhal_plugin_kernel *kernel)
{
    const gpuhal_vulkan_interface *interface = &p->interface;
    filling f = {.at = next_block(interface, 0)};
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        if (!read_parameter(p, kernel, i, &f)) {
            return false;
        }
    }
    if (!check_buffers(p)) {
        return false;
    }
    const uint32_t given = f.given + f.end;
    if (given > 0 && f.at == interface->binding_count) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "the values of the description are %" PRIu32
                                       " bytes, and the kernel has neither push constants nor a uniform block",
                                       given);
    }
    uint64_t needed = 0;
    bool fits = true;
    for (uint32_t b = next_block(interface, 0); b < interface->binding_count; b = next_block(interface, b + 1)) {
        const uint32_t bytes = interface->bindings[b].bytes,
                       filled = kernel->blocks[interface->bindings[b].first].bytes;
        fits = fits && filled >= bytes && filled - bytes < 16;
        needed += bytes;
    }
    return fits || gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                           "the values of the description are %" PRIu32 " bytes, those of the kernel "
                                           "%" PRIu64,
                                           given, needed);
}

/* Places the uniform blocks in the launch's part of an arena. */
static bool place_blocks(gpuhal_vulkan_kernel_plan *p, gpuhal_plugin_kernel *kernel)
{
    const VkPhysicalDeviceLimits *limits = &p->program->device->hardware.properties.limits;
    const uint32_t block_max = smaller(limits->maxUniformBufferRange, VALUES_MAX);
    const uint32_t push_max = smaller(limits->maxPushConstantsSize, GPUHAL_VULKAN_PUSH_BYTES);
    for (uint32_t b = 0; b <= kernel->block_count; b++) {
        const bool uniform = b < kernel->block_count;
        const uint32_t max = uniform ? block_max : push_max;
        if (kernel->blocks[b].bytes > max) {
            return gpuhal_vulkan_fault_set(
                &p->fault, GPUHAL_ERROR_TOO_LARGE,
                "the values are %" PRIu32 " bytes, above the device's limit of %" PRIu32 "%s", kernel->blocks[b].bytes,
                max, uniform ? "" : " for push constants; a uniform block takes more");
        }
        kernel->blocks[b].bytes = (kernel->blocks[b].bytes + 3) & ~3u;
        if (uniform) { /* a descriptor has at least one word */
            kernel->blocks[b].bytes = kernel->blocks[b].bytes ? kernel->blocks[b].bytes : 4;
            kernel->blocks[b].offset = kernel->uniform_bytes;
            kernel->uniform_bytes += (kernel->blocks[b].bytes + BLOCK_ALIGNMENT - 1) & ~(BLOCK_ALIGNMENT - 1);
        }
    }
    return kernel->uniform_bytes <= VALUES_MAX ||
           gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                   "the uniform blocks of the kernel need %" PRIu32 " bytes; they can have %" PRIu32,
                                   kernel->uniform_bytes, VALUES_MAX);
}

static bool check_limits(gpuhal_vulkan_kernel_plan *p, const gpuhal_plugin_kernel *kernel)
{
    const VkPhysicalDeviceLimits *limits = &p->program->device->hardware.properties.limits;
    const uint32_t storage =
        smaller(limits->maxDescriptorSetStorageBuffers, limits->maxPerStageDescriptorStorageBuffers);
    const uint32_t uniform =
        smaller(limits->maxDescriptorSetUniformBuffers, limits->maxPerStageDescriptorUniformBuffers);
    if (kernel->set_count > limits->maxBoundDescriptorSets) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                       "the kernel uses set %" PRIu32 "; the device takes %" PRIu32 " sets, from 0 on",
                                       kernel->set_count - 1, limits->maxBoundDescriptorSets);
    }
    if (kernel->storage_count > storage || kernel->block_count > uniform ||
        kernel->storage_count + kernel->block_count > limits->maxPerStageResources) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                       "the kernel has %" PRIu32 " buffers and %" PRIu32
                                       " uniform blocks, the device takes %" PRIu32 " and %" PRIu32
                                       ", together %" PRIu32,
                                       kernel->storage_count, kernel->block_count, storage, uniform,
                                       limits->maxPerStageResources);
    }
    if (p->interface.local_bytes > limits->maxComputeSharedMemorySize) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                       "a group of the kernel shares %" PRIu64 " bytes, above the device's limit of "
                                       "%" PRIu32,
                                       p->interface.local_bytes, limits->maxComputeSharedMemorySize);
    }
    uint64_t threads = 1;
    for (uint32_t d = 0; d < 3; d++) {
        threads *= p->group[d];
        if (p->group[d] > limits->maxComputeWorkGroupSize[d] || threads > limits->maxComputeWorkGroupInvocations) {
            return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_TOO_LARGE,
                                           "a group of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                           " threads; the device can have %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                           ", and %" PRIu32 " in all",
                                           p->group[0], p->group[1], p->group[2], limits->maxComputeWorkGroupSize[0],
                                           limits->maxComputeWorkGroupSize[1], limits->maxComputeWorkGroupSize[2],
                                           limits->maxComputeWorkGroupInvocations);
        }
    }
    return true;
}

/* Adds a specialization entry, with the size that the constant has in the code. Constants that the code does not
 * declare are ignored. */
static bool add_entry(gpuhal_vulkan_kernel_plan *p, uint32_t id, uint64_t value, uint32_t bytes)
{
    const gpuhal_vulkan_module *code = &p->program->code;
    const uint32_t at = gpuhal_vulkan_module_constant(code, id);
    const uint32_t own = at ? gpuhal_vulkan_module_scalar(code, code->words[at + 1]) : 0;
    if (own == 0) {
        return true;
    }
    if ((own > 4) != (bytes > 4)) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "constant %" PRIu32 " has %" PRIu32 " bytes in the description and %" PRIu32
                                       " in the code",
                                       id, bytes, own);
    }
    for (uint32_t i = 0; i < p->entry_count; i++) {
        if (p->entries[i].constantID == id) {
            return true; /* ignores repeated values, because Vulkan forbids duplicate entries */
        }
    }
    const uint8_t byte = (uint8_t)value;
    const uint16_t half = (uint16_t)value;
    const uint32_t word = (uint32_t)value;
    memcpy(&p->data[p->entry_count],
           own == 1   ? (const void *)&byte
           : own == 2 ? (const void *)&half
           : own == 4 ? (const void *)&word
                      : (const void *)&value,
           own);
    p->entries[p->entry_count] = (VkSpecializationMapEntry){
        .constantID = id, .offset = p->entry_count * (uint32_t)sizeof(uint64_t), .size = own};
    p->entry_count++;
    return true;
}

/* Returns the group size in dimension @p d if it is fixed: by the code, by a constant of the description, or by another
 * dimension with the same constant. Returns 0 if the description may choose a size. */
static uint32_t fixed_extent(const gpuhal_vulkan_kernel_plan *p, uint32_t d)
{
    const gpuhal_vulkan_extent *extent = &p->interface.group[d];
    if (!extent->adjustable) {
        return extent->value;
    }
    for (uint32_t i = 0; i < p->desc->constant_count; i++) {
        if (p->desc->constants[i].id == extent->id) {
            return extent->value;
        }
    }
    for (uint32_t other = 0; other < d; other++) {
        if (p->interface.group[other].adjustable && p->interface.group[other].id == extent->id) {
            return p->group[other];
        }
    }
    return 0;
}

/* Sets the group size, from the description or, if the description gives none, from the code. If specialization
 * constants set the code's group size, sets these constants from the description. */
static bool fix_group(gpuhal_vulkan_kernel_plan *p)
{
    const uint32_t *wanted = p->desc->group_size;
    const bool given = wanted[0] || wanted[1] || wanted[2];
    bool good = true;
    for (uint32_t d = 0; d < 3 && good; d++) {
        const gpuhal_vulkan_extent *extent = &p->interface.group[d];
        p->group[d] = !given ? extent->value : wanted[d] ? wanted[d] : 1;
        if (!extent->known || p->group[d] == 0 || (extent->value == 0 && !extent->adjustable)) {
            return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_INVALID_ARGUMENT,
                                           "the code does not state the size of its groups as numbers or "
                                           "specialization constants");
        }
        const uint32_t fixed = fixed_extent(p, d);
        p->sizes = p->sizes || !fixed;
        if (given && fixed && p->group[d] != fixed) {
            return gpuhal_vulkan_fault_set(
                &p->fault, GPUHAL_ERROR_INVALID_ARGUMENT, "group_size[%" PRIu32 "] is %" PRIu32 "; %s fixes %" PRIu32,
                d, p->group[d], extent->adjustable ? "a constant, or the size of another dimension," : "the code",
                fixed);
        }
        good = !given || fixed || add_entry(p, extent->id, p->group[d], 4);
    }
    return good;
}

static bool fix_subgroup(gpuhal_vulkan_kernel_plan *p)
{
    const gpuhal_plugin_device *device = p->program->device;
    const gpuhal_vulkan_hardware *hardware = &device->hardware;
    const uint32_t size = p->desc->subgroup_size;
    if (size == 0 || (size == hardware->subgroup_min && size == hardware->subgroup_max)) {
        return true;
    }
    const uint64_t threads = (uint64_t)p->group[0] * p->group[1] * p->group[2];
    if (!(device->enabled & GPUHAL_VULKAN_SUBGROUP_SIZE) || hardware->subgroups_max == 0 || (size & (size - 1)) != 0 ||
        size < hardware->subgroup_min || size > hardware->subgroup_max) {
        if (hardware->subgroup_min == hardware->subgroup_max) {
            return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                           "subgroup_size is %" PRIu32 "; subgroups of the device have %" PRIu32
                                           " threads",
                                           size, hardware->subgroup_min);
        }
        return gpuhal_vulkan_fault_set(
            &p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
            "subgroup_size is %" PRIu32 "; subgroups of the device have %" PRIu32 " to %" PRIu32 " threads%s", size,
            hardware->subgroup_min, hardware->subgroup_max,
            device->enabled & GPUHAL_VULKAN_SUBGROUP_SIZE ? ", a power of two" : ", and no kernel can choose");
    }
    if (threads > (uint64_t)size * hardware->subgroups_max) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "a group of %" PRIu64 " threads is more than %" PRIu32 " subgroups of %" PRIu32
                                       ", the most that a group can have",
                                       threads, hardware->subgroups_max, size);
    }
    p->required_subgroup = size;
    return true;
}

static bool uses_size_ids(const gpuhal_vulkan_kernel_plan *p)
{
    return gpuhal_vulkan_module_find(&p->program->code, GPUHAL_SPIRV_HEADER_WORDS, GPUHAL_SPIRV_EXECUTION_MODE_ID) <
           p->program->code.count;
}

/* A constant that sets the group size may also be the length of an array of buffers or of group memory. */
static bool reflect_with_group(gpuhal_vulkan_kernel_plan *p, uint32_t entry)
{
    const gpuhal_kernel_desc *desc = p->desc;
    gpuhal_constant *all = calloc((size_t)desc->constant_count + 3, sizeof *all);
    uint32_t count = desc->constant_count;
    if (!all) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
    }
    if (count > 0) {
        memcpy(all, desc->constants, count * sizeof *all);
    }
    for (uint32_t d = 0; d < 3; d++) {
        if (p->interface.group[d].adjustable) {
            all[count++] = (gpuhal_constant){.id = p->interface.group[d].id, .value = p->group[d]};
        }
    }
    const bool good = gpuhal_vulkan_reflect(&p->program->code, entry, all, count, &p->interface, &p->fault);
    free(all);
    return good;
}

bool gpuhal_vulkan_kernel_plan_make(gpuhal_vulkan_kernel_plan *p)
{
    const gpuhal_kernel_desc *desc = p->desc;
    const uint32_t entry = gpuhal_vulkan_module_entry(&p->program->code, desc->name);
    if (entry == 0) {
        char names[128];
        gpuhal_vulkan_module_list(&p->program->code, names, sizeof names);
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_FOUND,
                                       "the program has no kernel %.64s; its GLCompute entry points: %s", desc->name,
                                       names);
    }
    if (uses_size_ids(p) && !(p->program->device->enabled & GPUHAL_VULKAN_MAINTENANCE4)) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                       "the code uses LocalSizeId, and the device was opened without the feature "
                                       "maintenance4 (Vulkan 1.3)");
    }
    if (!gpuhal_vulkan_reflect(&p->program->code, entry, desc->constants, desc->constant_count, &p->interface,
                               &p->fault)) {
        return false;
    }
    p->entries = calloc((size_t)desc->constant_count + 3, sizeof *p->entries);
    p->data = calloc((size_t)desc->constant_count + 3, sizeof *p->data);
    if (!p->entries || !p->data) {
        return gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
    }
    for (uint32_t i = 0; i < desc->constant_count; i++) {
        const gpuhal_constant *constant = &desc->constants[i];
        if (!add_entry(p, constant->id, constant->value, constant->bytes ? constant->bytes : 4)) {
            return false;
        }
    }
    return fix_group(p) && reflect_with_group(p, entry) && fix_subgroup(p);
}

/* Extends the last run if this binding follows it. */
static void add_run(gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_binding *binding, uint32_t *next_number)
{
    const VkDescriptorType type = gpuhal_vulkan_descriptor_type(binding->kind);
    gpuhal_vulkan_run *last = &kernel->runs[kernel->run_count > 0 ? kernel->run_count - 1 : 0];
    kernel->used_sets |= 1u << binding->set;
    kernel->storage_count += binding->kind == GPUHAL_VULKAN_STORAGE ? binding->count : 0;
    if (kernel->run_count > 0 && last->set == binding->set && last->type == type && *next_number == binding->number) {
        last->count += binding->count;
    } else {
        kernel->runs[kernel->run_count++] = (gpuhal_vulkan_run){.type = type,
                                                                .set = binding->set,
                                                                .binding = binding->number,
                                                                .count = binding->count,
                                                                .first = binding->first};
    }
    *next_number = binding->number + 1;
}

/* Copies the description, with its name and its constants, into one allocation. Its parameters are those of the kernel,
 * or NULL if they are reflected. */
static gpuhal_kernel_desc *copy_desc(const gpuhal_kernel_desc *desc, const gpuhal_plugin_kernel *kernel)
{
    const size_t constants = desc->constant_count * sizeof *desc->constants, name = strlen(desc->name) + 1;
    gpuhal_kernel_desc *copy = malloc(sizeof *copy + constants + name);
    if (!copy) {
        return NULL;
    }
    char *end = (char *)(copy + 1);
    *copy = *desc;
    copy->constants = constants ? memcpy(end, desc->constants, constants) : NULL;
    copy->name = memcpy(end + constants, desc->name, name);
    copy->parameters = desc->parameters ? kernel->parameters : NULL;
    return copy;
}

static gpuhal_plugin_kernel *make_kernel(gpuhal_vulkan_kernel_plan *p)
{
    const gpuhal_vulkan_interface *interface = &p->interface;
    const bool reflects = !p->desc->parameters;
    const uint32_t count = reflects ? interface->buffer_count + interface->member_count : p->desc->parameter_count;
    const size_t bytes = sizeof(gpuhal_plugin_kernel) +
                         count * (sizeof(gpuhal_parameter) + sizeof(gpuhal_vulkan_place)) +
                         interface->binding_count * sizeof(gpuhal_vulkan_run);
    gpuhal_plugin_kernel *kernel = calloc(1, bytes);
    if (!kernel) {
        (void)gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
        return NULL;
    }
    kernel->device = p->program->device;
    kernel->program = p->program;
    memcpy(kernel->group, p->group, sizeof kernel->group);
    kernel->places = (gpuhal_vulkan_place *)(void *)&kernel->parameters[count];
    kernel->runs = (gpuhal_vulkan_run *)(void *)&kernel->places[count];
    kernel->parameter_count = count;
    kernel->buffer_count = interface->buffer_count;
    kernel->block_count = interface->block_count;
    kernel->set_count = set_count(interface);
    uint32_t next_number = 0;
    for (uint32_t b = 0; b < interface->binding_count && interface->bindings[b].kind != GPUHAL_VULKAN_PUSHED; b++) {
        add_run(kernel, &interface->bindings[b], &next_number);
    }
    if (!(reflects ? reflect_parameters(p, kernel) : read_parameters(p, kernel)) || !place_blocks(p, kernel) ||
        !check_limits(p, kernel)) {
        free(kernel);
        return NULL;
    }
    return kernel;
}

gpuhal_plugin_kernel *gpuhal_vulkan_kernel_plan_kernel(gpuhal_vulkan_kernel_plan *p)
{
    gpuhal_plugin_kernel *kernel = make_kernel(p);
    if (kernel && p->sizes && !(kernel->desc = copy_desc(p->desc, kernel))) {
        (void)gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_HOST_MEMORY, "no host memory for the kernel");
        free(kernel);
        return NULL;
    }
    return kernel;
}

/* A group size may also be the length of an array of buffers, or of an array in a block. */
bool gpuhal_vulkan_kernel_plan_fits(gpuhal_vulkan_kernel_plan *p, const gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_kernel *other = make_kernel(p);
    if (!other) {
        return false;
    }
    const bool fits =
        other->parameter_count == kernel->parameter_count && other->run_count == kernel->run_count &&
        memcmp(other->parameters, kernel->parameters, kernel->parameter_count * sizeof *kernel->parameters) == 0 &&
        memcmp(other->places, kernel->places, kernel->parameter_count * sizeof *kernel->places) == 0 &&
        memcmp(other->runs, kernel->runs, kernel->run_count * sizeof *kernel->runs) == 0 &&
        memcmp(other->blocks, kernel->blocks, sizeof kernel->blocks) == 0;
    free(other);
    return fits || gpuhal_vulkan_fault_set(&p->fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                           "with this group size the kernel has other buffers or values, because the "
                                           "size is also the length of an array");
}
