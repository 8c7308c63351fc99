/* stream/program.c: modules, their functions, and launches.
 *
 * The driver computes the end of an image from the image's headers, so it would read beyond the end of a truncated
 * image. Therefore this file first compares the end with the given size. The plugin's module.c knows where each format
 * ends, and which function attributes the drivers report.
 *
 * A launch makes only one driver call besides the calls that enter the context and, without a queue, wait. Everything
 * else is queried and set when the kernel is created. The driver has one function object for all kernels of a program
 * with the same name, so the function object contains no state of a kernel.
 */
#include "device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_plugin_kernel {
    gpuhal_plugin_program *program;
    vendor_function function;
    gpuhal_parameter parameters[]; /* as described by the caller */
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    vendor_module module;
    void *image; /* the module's source, kept while the driver may read it */
};

static gpuhal_status __attribute__((format(printf, 3, 4)))
refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *format, ...)
{
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return device->host->report(device->host, status, NULL, 0, text);
}

/* ---- programs */

static bool is_format(const char *format)
{
    const size_t length = strlen(format);
    for (const char *at = GPUHAL_VENDOR_FORMATS; *at;) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, format, length) == 0) {
            return true;
        }
        at += word + strspn(at + word, " ");
    }
    return false;
}

/* Reports errors in the code that can be found without the driver, or returns OK. */
static gpuhal_status check_code(const gpuhal_plugin_device *device, const gpuhal_code *code, const char *target)
{
    if (!is_format(code->format)) {
        return refuse(device, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_VENDOR_API " loads %s, not %.64s",
                      GPUHAL_VENDOR_FORMATS, code->format);
    }
    if (code->target && *target && !GPUHAL_OWN(takes_target)(code->format, code->target, target)) {
        return refuse(device, GPUHAL_ERROR_INCOMPATIBLE, "the code is for %.64s, and the device is %s", code->target,
                      target);
    }
    if (!GPUHAL_OWN(is_image)(code->format, code->code, code->bytes)) {
        char first[16] = "";
        for (size_t i = 0; i < 4 && i < code->bytes; i++) {
            snprintf(first + 3 * i, sizeof first - 3 * i, " %02x", ((const unsigned char *)code->code)[i]);
        }
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "%llu bytes that begin with%s are not a complete %s",
                      (unsigned long long)code->bytes, first, code->format);
    }
    return GPUHAL_OK;
}

/* Loads a NUL-terminated copy, since PTX is a string. If the driver refuses the code, explains why. */
static gpuhal_status load(gpuhal_plugin_program *program, const gpuhal_code *code, const char *target,
                          gpuhal_plugin_build *build)
{
    gpuhal_plugin_device *device = program->device;
    char words[256] = "", text[400];
    memcpy(program->image, code->code, (size_t)code->bytes);
    ((char *)program->image)[code->bytes] = '\0';
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code result =
        GPUHAL_OWN(load_module)(code, program->image, build, &program->module, words, sizeof words);
    GPUHAL_OWN(leave)(&scope);
    status = GPUHAL_OWN(result)(device, GPUHAL_VENDOR_LOAD_CALL, result);
    if (GPUHAL_OWN(explain_refusal)(result, text, sizeof text)) {
        return GPUHAL_OWN(report_as)(device->host, status, GPUHAL_VENDOR_LOAD_CALL, result, text);
    }
    if (status == GPUHAL_ERROR_INCOMPATIBLE) {
        snprintf(text, sizeof text, "the code%s%.64s has nothing for the device%s%s%s%s", code->target ? " for " : "",
                 code->target ? code->target : "", *target ? ", which is " : "", target, *words ? ": " : "", words);
        return GPUHAL_OWN(report_as)(device->host, status, GPUHAL_VENDOR_LOAD_CALL, result, text);
    }
    return status != GPUHAL_OK && *words
               ? GPUHAL_OWN(report_as)(device->host, status, GPUHAL_VENDOR_LOAD_CALL, result, words)
               : status;
}

static gpuhal_status program_load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                  gpuhal_plugin_program **out_program)
{
    char target[GPUHAL_STREAM_TARGET] = "", unknown[64] = "";
    *out_program = NULL;
    GPUHAL_OWN(name_target)(device->entry, target);
    gpuhal_status status = check_code(device, code, target);
    if (status == GPUHAL_OK && code->options && !GPUHAL_OWN(takes_options)(code, unknown, sizeof unknown)) {
        status = refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "the option \"%s\" is unknown for a %s; %s", unknown,
                        code->format, GPUHAL_VENDOR_OPTIONS);
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_program *program = calloc(1, sizeof *program);
    void *image = code->bytes < SIZE_MAX ? malloc((size_t)code->bytes + 1) : NULL;
    if (!program || !image) {
        free(program);
        free(image);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *program = (gpuhal_plugin_program){.device = device, .image = image};
    status = load(program, code, target, build);
    if (status != GPUHAL_OK || !GPUHAL_VENDOR_READS_IMAGE_LATER) {
        free(image);
        program->image = NULL;
    }
    if (status != GPUHAL_OK) {
        free(program);
        return status;
    }
    *out_program = program;
    return GPUHAL_OK;
}

static void program_unload(gpuhal_plugin_program *program)
{
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter_to_release)(program->device, &scope) == GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(ModuleUnload)(program->module));
        GPUHAL_OWN(leave)(&scope);
    }
    free(program->image);
    free(program);
}

/* ---- kernels */

static uint64_t group_threads(const uint32_t group_size[3])
{
    return (uint64_t)group_size[0] * group_size[1] * group_size[2];
}

static uint32_t limit_of(const gpuhal_plugin_device *device, unsigned int attribute)
{
    const int value = GPUHAL_OWN(attribute)(device->entry->device, attribute, 0);
    return value > 0 ? (uint32_t)value : 0;
}

/* Checks the members of a description that can be checked without a driver call. */
static gpuhal_status check_desc(const gpuhal_plugin_device *device, const gpuhal_kernel_desc *desc)
{
    const uint32_t subgroup = limit_of(device, GPUHAL_VENDOR_ATTRIBUTE_WARP);
    if (group_threads(desc->group_size) == 0) {
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                      "kernel %.64s: " GPUHAL_VENDOR_API " does not report a size of groups: group_size must state it",
                      desc->name);
    }
    if (desc->subgroup_size != 0 && desc->subgroup_size != subgroup) {
        return refuse(device, GPUHAL_ERROR_NOT_SUPPORTED,
                      "kernel %.64s: subgroup_size is %u; subgroups have %u threads on this device", desc->name,
                      desc->subgroup_size, subgroup);
    }
    if (desc->parameter_count > GPUHAL_STREAM_ARGUMENTS_MAX) {
        return refuse(device, GPUHAL_ERROR_TOO_LARGE, "kernel %.64s: %u parameters; at most %u", desc->name,
                      desc->parameter_count, GPUHAL_STREAM_ARGUMENTS_MAX);
    }
    return GPUHAL_OK;
}

/* Inside the context: fills in the function attributes that the driver reports, and prepares the function. On failure
 * @p out_call is the failed call. */
static vendor_code describe(const gpuhal_plugin_kernel *kernel, const uint32_t group_size[3], gpuhal_kernel_info *out,
                            const char **out_call)
{
    const gpuhal_plugin_device *device = kernel->program->device;
    uint32_t threads = 0, local = 0, private_bytes = 0, registers = 0;
    uint32_t own = UINT32_MAX; /* the code's static shared memory; UINT32_MAX means unknown, so that launches may not
                                * request more */
    const struct {
        unsigned int attribute;
        uint32_t *to;
    } asked[] = {{GPUHAL_VENDOR_FUNCTION(MAX_THREADS_PER_BLOCK), &threads},
                 {GPUHAL_VENDOR_FUNCTION(SHARED_SIZE_BYTES), &local},
                 {GPUHAL_VENDOR_FUNCTION(LOCAL_SIZE_BYTES), &private_bytes},
                 {GPUHAL_VENDOR_FUNCTION(NUM_REGS), &registers}};
    *out_call = GPUHAL_VENDOR_CALL(FuncGetAttribute);
    vendor_code code = GPUHAL_VENDOR_OK;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0] && code == GPUHAL_VENDOR_OK; i++) {
        int value = 0;
        code = GPUHAL_OWN(of_function)(&value, asked[i].attribute, kernel->function);
        *asked[i].to = value > 0 ? (uint32_t)value : 0;
        own = asked[i].to == &local && value >= 0 ? local : own;
    }
    const uint32_t most = limit_of(device, GPUHAL_VENDOR_ATTRIBUTE_GROUP_MEMORY);
    out->group_size_max = threads ? threads : limit_of(device, GPUHAL_VENDOR_ATTRIBUTE_GROUP_SIZE);
    out->group_multiple = out->subgroup_size = limit_of(device, GPUHAL_VENDOR_ATTRIBUTE_WARP);
    out->registers = registers;
    out->local_bytes = local;
    out->private_bytes = private_bytes;
    out->local_max_bytes = most ? most : INT32_MAX;
    out->flags = GPUHAL_STREAM_LAUNCH_FORMS;
    memcpy(out->group_size, group_size, sizeof out->group_size);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t groups = limit_of(device, GPUHAL_VENDOR_ATTRIBUTE_GROUPS_X + i);
        const uint64_t fit = GPUHAL_VENDOR_THREADS_MAX / group_size[i];
        out->groups_max[i] = groups < fit ? groups : (uint32_t)fit;
    }
    return code == GPUHAL_VENDOR_OK ? GPUHAL_OWN(prepare_function)(kernel->function, own, most, out_call) : code;
}

/* Inside the context: compares the description's parameters with the function's. For the driver, local memory is not a
 * parameter. */
static gpuhal_status check_parameters(const gpuhal_plugin_kernel *kernel, const gpuhal_kernel_desc *desc)
{
    gpuhal_plugin_device *device = kernel->program->device;
    uint32_t count = 0;
    for (uint32_t i = 0; i <= desc->parameter_count; i++) {
        const gpuhal_parameter *parameter = i < desc->parameter_count ? &desc->parameters[i] : NULL;
        const uint32_t wanted = !parameter                                  ? 0
                                : parameter->kind == GPUHAL_PARAMETER_VALUE ? parameter->bytes
                                                                            : (uint32_t)sizeof(uint64_t);
        if (parameter && parameter->kind == GPUHAL_PARAMETER_LOCAL) {
            continue;
        }
        uint64_t bytes = 0; /* stays 0 after the last parameter */
        const vendor_code code = GPUHAL_OWN(parameter_bytes)(kernel->function, count++, &bytes);
        if (code != GPUHAL_VENDOR_OK) {
            return GPUHAL_OWN(result_of_lookup)(device, GPUHAL_VENDOR_PARAMETER_CALL, code);
        }
        if (!desc->parameters && bytes != 0) {
            return refuse(device, GPUHAL_ERROR_NOT_SUPPORTED,
                          "kernel %.64s: " GPUHAL_VENDOR_API
                          " does not report the kernel's parameters: the description must list them",
                          desc->name);
        }
        if (bytes != GPUHAL_STREAM_UNKNOWN && bytes != wanted) {
            return !parameter ? refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "kernel %.64s: its code has more parameters than the %u of the description "
                                       "(local memory does not count)",
                                       desc->name, count - 1)
                   : bytes == 0
                       ? refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                "kernel %.64s: parameter %u is one too many: its code has %u (local memory does not "
                                "count)",
                                desc->name, i, count - 1)
                       : refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                "kernel %.64s: parameter %u has %u bytes in the description%s, and %llu in its code",
                                desc->name, i, wanted, parameter->kind == GPUHAL_PARAMETER_BUFFER ? ", an address" : "",
                                (unsigned long long)bytes);
        }
    }
    return GPUHAL_OK;
}

/* If the runtime returned the device-lost code but still works, the name is unknown. */
static gpuhal_status get_failed(gpuhal_plugin_device *device, const char *name, const char *call, vendor_code code)
{
    const gpuhal_status status = GPUHAL_OWN(result_of_lookup)(device, call, code);
    const bool works = status == GPUHAL_ERROR_DRIVER && GPUHAL_OWN(status)(code) == GPUHAL_ERROR_DEVICE_LOST;
    if (status != GPUHAL_ERROR_NOT_FOUND && !works) {
        return status;
    }
    char text[200];
    snprintf(text, sizeof text, "the program has no kernel %.64s (one of C++ needs extern \"C\", or its mangled name)",
             name);
    return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_NOT_FOUND, call, code, text);
}

/* Called inside the context. */
static gpuhal_status find_function(gpuhal_plugin_kernel *kernel, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info)
{
    gpuhal_plugin_device *device = kernel->program->device;
    const char *call = GPUHAL_VENDOR_CALL(ModuleGetFunction);
    vendor_code code = GPUHAL_VENDOR(ModuleGetFunction)(&kernel->function, kernel->program->module, desc->name);
    if (code != GPUHAL_VENDOR_OK) {
        return get_failed(device, desc->name, call, code);
    }
    code = describe(kernel, desc->group_size, out_info, &call);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result_of_lookup)(device, call, code);
    }
    if (group_threads(desc->group_size) > out_info->group_size_max) {
        return refuse(device, GPUHAL_ERROR_TOO_LARGE,
                      "kernel %.64s: a group of %u x %u x %u threads is larger than the %u that its code can have",
                      desc->name, desc->group_size[0], desc->group_size[1], desc->group_size[2],
                      out_info->group_size_max);
    }
    return check_parameters(kernel, desc);
}

static gpuhal_status kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = program->device;
    *out_kernel = NULL;
    gpuhal_status status = check_desc(device, desc);
    if (status != GPUHAL_OK) {
        return status;
    }
    const size_t bytes = desc->parameter_count * sizeof(gpuhal_parameter);
    gpuhal_plugin_kernel *kernel = calloc(1, sizeof *kernel + bytes);
    if (!kernel) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    kernel->program = program;
    if (bytes != 0) {
        memcpy(kernel->parameters, desc->parameters, bytes);
    }
    gpuhal_stream_scope scope;
    status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status == GPUHAL_OK) {
        status = find_function(kernel, desc, out_info);
        GPUHAL_OWN(leave)(&scope);
    }
    if (status != GPUHAL_OK) {
        free(kernel);
        return status;
    }
    out_info->parameters = kernel->parameters;
    out_info->parameter_count = desc->parameter_count;
    *out_kernel = kernel;
    return GPUHAL_OK;
}

static void kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    free(kernel);
}

/* ---- launches */

void GPUHAL_OWN(gather)(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                        gpuhal_stream_launch *out)
{
    uint32_t count = 0;
    out->function = kernel->function;
    out->groups = launch->groups;
    out->group_size = launch->group_size;
    out->shared_bytes = launch->local_bytes;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_LOCAL) {
            out->shared_bytes += (uint32_t)argument->bytes; /* at most local_max_bytes in total */
        } else if (argument->kind == GPUHAL_PARAMETER_VALUE) {
            out->pointers[count++] = (void *)(uintptr_t)argument->value;
        } else {
            out->addresses[count] = argument->memory ? argument->memory->address + argument->offset : 0;
            out->pointers[count] = &out->addresses[count];
            count++;
        }
    }
}

/* Memory that kernels access only by address needs no driver call, because the driver keeps all memory accessible.
 * Without a queue the waiting thread sleeps, since a kernel's duration is unknown. */
static gpuhal_status launch_kernel(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    gpuhal_plugin_device *device = kernel->program->device;
    gpuhal_stream_launch with; /* gather() initialises only the members that are used */
    GPUHAL_OWN(gather)(kernel, launch, &with);
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name = GPUHAL_VENDOR_LAUNCH_CALL;
    vendor_code code = GPUHAL_VENDOR_LAUNCH(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                            launch->group_size[0], launch->group_size[1], launch->group_size[2],
                                            with.shared_bytes, call.stream, with.pointers, NULL);
    const bool refused = GPUHAL_VENDOR_REFUSES_LAUNCH(code);
    code = GPUHAL_OWN(end)(&call, code, UINT64_MAX, &name);
    if (refused) {
        return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, name, code,
                                     "the kernel or the device does not take these groups, sizes or local memory");
    }
    return GPUHAL_OWN(result)(device, name, code);
}

/* program_compiled is not set: the driver caches the PTX that it compiles, and every other format is machine code. */
void GPUHAL_OWN(describe_program)(gpuhal_ops *ops)
{
    static const gpuhal_program_ops programs = {
        .size = sizeof programs,
        .version = GPUHAL_PROGRAMS_VERSION,
        .program_load = program_load,
        .program_unload = program_unload,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .launch = launch_kernel,
    };
    ops->programs = &programs;
}
