/* opencl/reflect.c: compares a kernel's arguments and group sizes, as the driver reports them, with the caller's
 * description.
 */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_SUB_GROUP_SIZE_INTEL 0x410Au /* from cl_intel_required_subgroup_size */

/* ---- arguments */

static bool ask_argument(cl_kernel kernel, uint32_t index, cl_kernel_arg_info what, void *out_value, size_t bytes)
{
    return gpuhal_opencl_api.clGetKernelArgInfo(kernel, index, what, bytes, out_value, NULL) == CL_SUCCESS;
}

/* Returns the size in bytes of the OpenCL C type with this name ("uint4"), or 0 if the name is not a known type. A
 * vector of three has the size of a vector of four. */
static uint32_t type_bytes(const char *name)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } scalars[] = {
        {"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},   {"int", 4},
        {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8},
    };
    static const char *const widths[] = {"", "2", "4", "8", "16", "3"};
    const size_t length = strcspn(name, "0123456789");
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            if (strlen(scalars[i].name) == length && strncmp(name, scalars[i].name, length) == 0 &&
                strcmp(name + length, widths[w]) == 0) {
                return scalars[i].bytes << (w < 5 ? w : 2);
            }
        }
    }
    return 0;
}

/* Writes "argument 2 (a)", without the name if the driver does not report it. */
static const char *argument_name(cl_kernel kernel, uint32_t index, char text[96])
{
    char name[64];
    const bool known = ask_argument(kernel, index, CL_KERNEL_ARG_NAME, name, sizeof name) && *name;
    snprintf(text, 96, "argument %u%s%s%s", index, known ? " (" : "", known ? name : "", known ? ")" : "");
    return text;
}

static gpuhal_status reflect_failed(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index,
                                    const char *what)
{
    char name[96];
    return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_NOT_SUPPORTED, "%s is %s",
                                argument_name(kernel, index, name), what);
}

/* Returns 0 if the driver does not describe the argument. */
static gpuhal_parameter_kind described_kind(cl_kernel kernel, uint32_t index)
{
    cl_kernel_arg_address_qualifier space = 0;
    if (!ask_argument(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &space, sizeof space)) {
        return 0;
    }
    return space == CL_KERNEL_ARG_ADDRESS_PRIVATE ? GPUHAL_PARAMETER_VALUE
           : space == CL_KERNEL_ARG_ADDRESS_LOCAL ? GPUHAL_PARAMETER_LOCAL
                                                  : GPUHAL_PARAMETER_BUFFER;
}

/* A pointer to constant memory counts as a pointer to constant data. */
static uint32_t described_access(cl_kernel kernel, uint32_t index)
{
    cl_kernel_arg_address_qualifier space = 0;
    cl_kernel_arg_type_qualifier type = 0;
    (void)ask_argument(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &space, sizeof space);
    (void)ask_argument(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, &type, sizeof type);
    return space == CL_KERNEL_ARG_ADDRESS_CONSTANT || (type & CL_KERNEL_ARG_TYPE_CONST)
               ? GPUHAL_ACCESS_READ
               : GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE;
}

/* Returns the kind of object if the argument is an object that no parameter can describe, otherwise NULL. Images are
 * also in global memory, but have an access qualifier; samplers have the address space of values. */
static const char *described_object(cl_kernel kernel, uint32_t index)
{
    cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
    char name[64] = "";
    (void)ask_argument(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, &access, sizeof access);
    (void)ask_argument(kernel, index, CL_KERNEL_ARG_TYPE_NAME, name, sizeof name);
    return access != CL_KERNEL_ARG_ACCESS_NONE ? "an image" : strcmp(name, "sampler_t") == 0 ? "a sampler" : NULL;
}

/* Returns the only size that the driver accepts for the value, or 0 if it accepts none or several. The specification
 * requires drivers to reject all other sizes. PoCL 3.1 accepts other sizes for types that the program defines. */
static uint32_t only_size(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index)
{
    size_t most = 0;
    uint32_t found = 0, count = 0;
    (void)gpuhal_opencl_ask(program->device->entry->id, CL_DEVICE_MAX_PARAMETER_SIZE, &most, sizeof most);
    void *zeros = calloc(1, most + 1);
    for (uint32_t bytes = 1; zeros && bytes <= most && count < 2; bytes++) {
        if (gpuhal_opencl_api.clSetKernelArg(kernel, index, bytes, zeros) == CL_SUCCESS) {
            found = bytes;
            count++;
        }
    }
    free(zeros);
    return count == 1 ? found : 0;
}

/* If the size of a value is unknown, `bytes` stays 0. Descriptions that were not requested are ignored, because a
 * cached program may lack them. */
static gpuhal_status reflect_one(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index,
                                 gpuhal_parameter *out)
{
    char name[64], what[64];
    *out = (gpuhal_parameter){.kind = program->reflects ? described_kind(kernel, index) : 0};
    if (out->kind == 0) {
        return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_NOT_SUPPORTED,
                                    "the driver does not describe the kernel's arguments: state its parameters, or "
                                    "build the program with -cl-kernel-arg-info");
    }
    const char *object = described_object(kernel, index);
    if (object) {
        snprintf(what, sizeof what, "%s, which no parameter can be", object);
        return reflect_failed(program, kernel, index, what);
    }
    if (out->kind == GPUHAL_PARAMETER_BUFFER) {
        out->access = described_access(kernel, index);
    }
    if (out->kind == GPUHAL_PARAMETER_VALUE) {
        out->bytes = ask_argument(kernel, index, CL_KERNEL_ARG_TYPE_NAME, name, sizeof name) ? type_bytes(name) : 0;
        out->bytes = out->bytes ? out->bytes : only_size(program, kernel, index);
    }
    return GPUHAL_OK;
}

/* Rejects all values of unknown size together, since a description must contain all parameters. */
static gpuhal_status refuse_unsized(const gpuhal_plugin_program *program, cl_kernel kernel,
                                    const gpuhal_parameter *parameters, uint32_t count)
{
    char list[256] = "", name[96], type[64];
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof list; i++) {
        if (parameters[i].kind == GPUHAL_PARAMETER_VALUE && parameters[i].bytes == 0) {
            const bool typed = ask_argument(kernel, i, CL_KERNEL_ARG_TYPE_NAME, type, sizeof type) && *type;
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s%s", used ? ", " : "",
                                     argument_name(kernel, i, name), typed ? " of type " : "", typed ? type : "");
        }
    }
    return used == 0 ? GPUHAL_OK
                     : gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_NOT_SUPPORTED,
                                            "the driver does not report the size of %s: describe the kernel's "
                                            "parameters",
                                            list);
}

/* Sets the argument to shared memory, as a launch does. Drivers reject shared memory for images and samplers. PoCL 3.1
 * rejects it too, although it accepts a cl_mem for them. Called only for arguments that the driver does not
 * describe. */
static bool takes_shared(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index)
{
    const gpuhal_plugin_device *device = program->device;
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    void *memory = device->entry->shares
                       ? gpuhal_opencl_api.clSVMAlloc(device->context, flags, sizeof(cl_ulong16), 0)
                       : NULL;
    const bool taken = !memory || gpuhal_opencl_api.clSetKernelArgSVMPointer(kernel, index, memory) == CL_SUCCESS;
    if (memory) {
        gpuhal_opencl_api.clSVMFree(device->context, memory); /* the caller replaces this argument */
    }
    return taken;
}

/* Sets the argument to an empty value: a NULL buffer, which only local memory arguments reject, or zeros, which must
 * have the right size. If the driver does not describe the argument, only this and takes_shared() can be checked. The
 * pointer to a value is never NULL: drivers must reject NULL, but Oclgrind 21.10 dereferences it. */
static bool fits(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index,
                 const gpuhal_parameter *parameter, const void *zeros)
{
    const cl_mem none = NULL;
    __typeof__(clSetKernelArg) *set = gpuhal_opencl_api.clSetKernelArg;
    const gpuhal_parameter_kind described = described_kind(kernel, index);
    if (described != 0 && (described != parameter->kind || described_object(kernel, index))) {
        return false;
    }
    if (parameter->kind == GPUHAL_PARAMETER_VALUE) {
        return set(kernel, index, parameter->bytes, zeros) == CL_SUCCESS;
    }
    const bool is_buffer = parameter->kind == GPUHAL_PARAMETER_BUFFER;
    const bool taken = !is_buffer || described != 0 || takes_shared(program, kernel, index);
    const cl_int code = set(kernel, index, sizeof none, &none);
    if (is_buffer) {
        return taken && code == CL_SUCCESS;
    }
    const bool refused = code != CL_SUCCESS && code != CL_INVALID_ARG_SIZE;
    return (refused || described) && set(kernel, index, sizeof none, NULL) == CL_SUCCESS;
}

/* Reports a parameter of the description and, if the driver describes it, the argument in the code. */
static gpuhal_status refuse_parameter(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t index,
                                      const gpuhal_parameter *parameter)
{
    static const char *const kinds[] = {"something else", "a buffer", "a value", "local memory"};
    char name[96], type[64] = "", bytes[32] = "";
    const gpuhal_parameter_kind is = described_kind(kernel, index);
    if (parameter->kind == GPUHAL_PARAMETER_VALUE) {
        snprintf(bytes, sizeof bytes, " of %u bytes", parameter->bytes);
    }
    const bool typed = is != 0 && ask_argument(kernel, index, CL_KERNEL_ARG_TYPE_NAME, type, sizeof type) && *type;
    const char *object = is != 0 ? described_object(kernel, index) : NULL;
    return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                "parameter %u is %s%s in the description; %s of the kernel is %s%s%s%s", index,
                                kinds[parameter->kind <= GPUHAL_PARAMETER_LOCAL ? parameter->kind : 0], bytes,
                                argument_name(kernel, index, name),
                                object                ? object
                                : is == parameter->kind ? "one of another size"
                                                        : kinds[is],
                                typed ? " (" : "",
                                typed ? type : "", typed ? ")" : "");
}

static gpuhal_status check_parameters(const gpuhal_plugin_program *program, cl_kernel kernel,
                                      const gpuhal_parameter *parameters, uint32_t count)
{
    size_t most = 0;
    uint64_t sum = 0;
    (void)gpuhal_opencl_ask(program->device->entry->id, CL_DEVICE_MAX_PARAMETER_SIZE, &most, sizeof most);
    for (uint32_t i = 0; i < count; i++) {
        sum += parameters[i].kind == GPUHAL_PARAMETER_VALUE ? parameters[i].bytes : sizeof(cl_mem);
    }
    if (sum > most && most > 0) {
        return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_TOO_LARGE,
                                    "the parameters have %" PRIu64 " bytes; the device takes %zu "
                                    "(CL_DEVICE_MAX_PARAMETER_SIZE)",
                                    sum, most);
    }
    void *zeros = calloc(1, (size_t)sum + 1);
    uint32_t good = 0;
    while (zeros && good < count && fits(program, kernel, good, &parameters[good], zeros)) {
        good++;
    }
    const bool enough = zeros != NULL;
    free(zeros);
    if (!enough) {
        return program->device->host->report(program->device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    return good == count ? GPUHAL_OK : refuse_parameter(program, kernel, good, &parameters[good]);
}

gpuhal_status gpuhal_opencl_fill_parameters(const gpuhal_plugin_program *program, cl_kernel kernel,
                                            const gpuhal_kernel_desc *desc, gpuhal_parameter *out_parameters,
                                            uint32_t count)
{
    gpuhal_status status = GPUHAL_OK;
    if (desc->parameters) {
        memcpy(out_parameters, desc->parameters, count * sizeof *out_parameters);
        return check_parameters(program, kernel, out_parameters, count);
    }
    for (uint32_t i = 0; status == GPUHAL_OK && i < count; i++) {
        status = reflect_one(program, kernel, i, &out_parameters[i]);
    }
    return status ? status : refuse_unsized(program, kernel, out_parameters, count);
}

/* ---- groups */

static bool ask_groups(const gpuhal_plugin_program *program, cl_kernel kernel, cl_kernel_work_group_info what,
                       void *out_value, size_t bytes)
{
    return gpuhal_opencl_api.clGetKernelWorkGroupInfo(kernel, program->device->entry->id, what, bytes, out_value,
                                                      NULL) == CL_SUCCESS;
}

/* Uses the group size of the description or of the code. The two must not differ. */
static gpuhal_status choose_group_size(const gpuhal_plugin_program *program, cl_kernel kernel,
                                       const gpuhal_kernel_desc *desc, uint32_t out_size[3], bool *out_fixed)
{
    size_t fixed[3] = {0, 0, 0};
    const uint32_t *wanted = desc->group_size;
    const bool stated = wanted[0] || wanted[1] || wanted[2];
    (void)ask_groups(program, kernel, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, fixed, sizeof fixed);
    *out_fixed = fixed[0] != 0;
    if (!stated && fixed[0] == 0) {
        return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "group_size is 0 0 0, and the code does not fix it (reqd_work_group_size)");
    }
    for (int i = 0; i < 3; i++) {
        out_size[i] = !stated ? (uint32_t)fixed[i] : wanted[i] ? wanted[i] : 1;
        if (fixed[0] != 0 && out_size[i] != fixed[i]) {
            return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                        "group_size[%d] is %u; the code fixes %zu (reqd_work_group_size)", i,
                                        out_size[i], fixed[i]);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status check_group_size(const gpuhal_plugin_program *program, const uint32_t size[3], size_t most)
{
    size_t along[3] = {0, 0, 0}, all = 1;
    const cl_device_id id = program->device->entry->id;
    if (gpuhal_opencl_api.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof along, along, NULL) != CL_SUCCESS) {
        along[0] = along[1] = along[2] = most;
    }
    for (int i = 0; i < 3; i++) {
        if (size[i] > along[i]) {
            return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_TOO_LARGE,
                                        "group_size[%d] is %u threads; the device can have %zu "
                                        "(CL_DEVICE_MAX_WORK_ITEM_SIZES)",
                                        i, size[i], along[i]);
        }
        if (size[i] > most / all) {
            return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_TOO_LARGE,
                                        "a group of %u x %u x %u threads; this kernel can have %zu in all "
                                        "(CL_KERNEL_WORK_GROUP_SIZE)",
                                        size[0], size[1], size[2], most);
        }
        all *= size[i];
    }
    return GPUHAL_OK;
}

/* Compares with the device's subgroup size (NVIDIA, AMD) or with the kernel's compiled subgroup size (Intel). */
static gpuhal_status check_subgroups(const gpuhal_plugin_program *program, cl_kernel kernel, uint32_t wanted,
                                     uint32_t *out_size)
{
    uint64_t least = 0, most = 0;
    size_t compiled = 0;
    gpuhal_opencl_ask_subgroups(program->device->entry->id, &least, &most);
    if (least != most && ask_groups(program, kernel, COMPILE_SUB_GROUP_SIZE_INTEL, &compiled, sizeof compiled)) {
        least = most = compiled;
    }
    *out_size = least == most ? (uint32_t)most : 0;
    if (wanted == 0 || wanted == *out_size) {
        return GPUHAL_OK;
    }
    return *out_size != 0
               ? gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_NOT_SUPPORTED,
                                      "subgroup_size is %u; the kernel's subgroups have %u threads", wanted, *out_size)
               : gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_NOT_SUPPORTED,
                                      "subgroup_size is %u; the driver does not report which size the kernel's "
                                      "subgroups have",
                                      wanted);
}

/* No dimension of a launch may have more threads than the device's address width can count. */
static uint32_t groups_max(cl_device_id id, uint32_t group_size)
{
    cl_uint bits = 0;
    (void)gpuhal_opencl_ask(id, CL_DEVICE_ADDRESS_BITS, &bits, sizeof bits);
    const uint64_t threads = bits >= 64 && sizeof(size_t) >= 8 ? UINT64_MAX : UINT32_MAX;
    const uint64_t most = threads / group_size;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

gpuhal_status gpuhal_opencl_fill_limits(const gpuhal_plugin_program *program, cl_kernel kernel,
                                        const gpuhal_kernel_desc *desc, gpuhal_kernel_info *info)
{
    const cl_device_id id = program->device->entry->id;
    size_t most = 0, multiple = 0;
    bool fixed = false;
    cl_ulong local = 0, private_bytes = 0, local_max = 0;
    if (!ask_groups(program, kernel, CL_KERNEL_WORK_GROUP_SIZE, &most, sizeof most) || most == 0) {
        (void)gpuhal_opencl_ask(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &most, sizeof most);
    }
    (void)ask_groups(program, kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &multiple, sizeof multiple);
    (void)ask_groups(program, kernel, CL_KERNEL_LOCAL_MEM_SIZE, &local, sizeof local);
    (void)ask_groups(program, kernel, CL_KERNEL_PRIVATE_MEM_SIZE, &private_bytes, sizeof private_bytes);
    (void)gpuhal_opencl_ask(id, CL_DEVICE_LOCAL_MEM_SIZE, &local_max, sizeof local_max);
    gpuhal_status status = choose_group_size(program, kernel, desc, info->group_size, &fixed);
    status = status ? status : check_group_size(program, info->group_size, most);
    status = status ? status : check_subgroups(program, kernel, desc->subgroup_size, &info->subgroup_size);
    for (int i = 0; status == GPUHAL_OK && i < 3; i++) {
        info->groups_max[i] = groups_max(id, info->group_size[i]);
    }
    info->group_size_max = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
    info->group_multiple = (uint32_t)multiple;
    info->local_bytes = local;
    info->local_max_bytes = local_max;
    info->private_bytes = private_bytes;
    info->flags = GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_NULL_BUFFERS;
    if (!fixed) {
        info->flags |= GPUHAL_KERNEL_GROUP_SIZE | (program->non_uniform ? (uint32_t)GPUHAL_KERNEL_THREADS : 0u);
    }
    return status;
}
