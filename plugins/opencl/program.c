/* opencl/program.c: builds code with the driver's compiler, and stores the compiled result.
 *
 * Compiled code is returned as the driver's binary after a header of the plugin. Drivers trust a binary that begins
 * like their own binaries: PoCL 3.1 aborts the process if the binary is truncated or changed. So a binary is passed to
 * the driver only if it is unchanged, and the same driver created it for the same code, options and device.
 *
 * The specification does not require a program from a binary to describe its kernels' arguments, although PoCL 3.1
 * does. So if the caller requests descriptions with -cl-kernel-arg-info and the loaded program has none, the program is
 * compiled. Otherwise reflection would work only in the first run.
 */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFLECT            "-cl-kernel-arg-info"
#define SPIRV_MAGIC        0x07230203u
#define SPIRV_HEADER_WORDS 5u
#define SPIRV_ENTRY_POINT  15u /* OpEntryPoint */
#define SPIRV_MODEL_KERNEL 6u
#define DEVICES_MAX        64u /* maximum in an adopted context */

/* The header in front of the driver's binary. */
typedef struct kept_header {
    char magic[8];
    uint64_t identity, checksum;
} kept_header;

static const char kept_magic[8] = {'g', 'p', 'u', 'h', 'a', 'l', 'C', 'L'};

/* Computes FNV-1a. Pass the previous hash to continue. */
static uint64_t hash(uint64_t value, const void *bytes, uint64_t count)
{
    for (const unsigned char *at = bytes, *end = at + count; at < end; at++) {
        value = (value ^ *at) * UINT64_C(0x100000001b3);
    }
    return value;
}

/* Hashes the code with its size, and strings with their terminators, so that different inputs do not have the same
 * bytes. */
static uint64_t identify(const gpuhal_opencl_entry *entry, const gpuhal_code *code, const char *options)
{
    static const cl_device_info asked[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    char text[256] = "";
    uint64_t value = hash(UINT64_C(0xcbf29ce484222325), &code->bytes, sizeof code->bytes);
    value = hash(value, code->code, code->bytes);
    value = hash(value, options, strlen(options) + 1);
    if (gpuhal_opencl_api.clGetPlatformInfo(entry->platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL) ==
        CL_SUCCESS) {
        value = hash(value, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        (void)gpuhal_opencl_ask_text(entry->id, asked[i], text, sizeof text);
        value = hash(value, text, strlen(text) + 1);
    }
    return value;
}

/* ---- checks of code, before it is passed to the driver */

/* Source code may end with zeros. Without a length the driver would search for a zero beyond the end of the code. */
static uint64_t source_bytes(const gpuhal_code *code)
{
    const char *text = code->code;
    uint64_t bytes = code->bytes;
    while (bytes > 0 && text[bytes - 1] == '\0') {
        bytes--;
    }
    return bytes;
}

/* The target must be the architecture that the device reports; code without a target suits all devices. */
static gpuhal_status check_target(const gpuhal_plugin_device *device, const gpuhal_code *code)
{
    char own[256] = "";
    if (!code->target ||
        (gpuhal_opencl_ask_target(device->entry->id, own, sizeof own) && strcmp(own, code->target) == 0)) {
        return GPUHAL_OK;
    }
    return gpuhal_opencl_refuse(device, GPUHAL_ERROR_INCOMPATIBLE,
                                "the code is for %.64s, and %s%s; code for every device has no target", code->target,
                                *own ? "the device is " : "the driver does not report the target of the device", own);
}

static gpuhal_status check_source(const gpuhal_plugin_device *device, const gpuhal_code *code)
{
    const uint64_t bytes = source_bytes(code);
    const char *zero = memchr(code->code, '\0', (size_t)bytes);
    if (bytes == 0) {
        return gpuhal_opencl_refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "not OpenCL C: the text is empty");
    }
    return !zero ? GPUHAL_OK
                 : gpuhal_opencl_refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                        "not OpenCL C: byte %zu of %" PRIu64 " is zero",
                                        (size_t)(zero - (const char *)code->code), code->bytes);
}

static uint32_t word_at(const gpuhal_code *code, uint64_t index)
{
    uint32_t word;
    memcpy(&word, (const char *)code->code + index * sizeof word, sizeof word);
    return word;
}

/* The upper half of an instruction's first word is its number of words. */
static gpuhal_status check_spirv(const gpuhal_plugin_device *device, const gpuhal_code *code)
{
    const uint64_t words = code->bytes / sizeof(uint32_t);
    if (code->bytes % sizeof(uint32_t) != 0 || words <= SPIRV_HEADER_WORDS) {
        return gpuhal_opencl_refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "not a SPIR-V module, or cut off: %" PRIu64
                                    " bytes; a module has words of 4 bytes, and more than %u of them",
                                    code->bytes, SPIRV_HEADER_WORDS);
    }
    if (word_at(code, 0) != SPIRV_MAGIC) {
        return gpuhal_opencl_refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "not a SPIR-V module of this byte order: the first word is %#010x, not %#010x",
                                    word_at(code, 0), SPIRV_MAGIC);
    }
    for (uint64_t at = SPIRV_HEADER_WORDS; at < words;) {
        const uint32_t first = word_at(code, at), count = first >> 16;
        if (count == 0 || count > words - at) {
            return gpuhal_opencl_refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                        "the SPIR-V module is %s at word %" PRIu64 " of %" PRIu64,
                                        count == 0 ? "damaged" : "damaged or cut off", at, words);
        }
        if ((first & 0xffffu) == SPIRV_ENTRY_POINT && count > 1 && word_at(code, at + 1) != SPIRV_MODEL_KERNEL) {
            return gpuhal_opencl_refuse(
                device, GPUHAL_ERROR_NOT_SUPPORTED,
                "the SPIR-V module has entry points of shaders, which Vulkan takes; OpenCL takes kernels");
        }
        at += count;
    }
    return GPUHAL_OK;
}

/* ---- building */

/* Reports INVALID_ARGUMENT for compiler error codes that mean invalid input. */
static gpuhal_status build_failed(gpuhal_plugin_device *device, const char *call, cl_int code, const char *log)
{
    switch (code) {
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_LINK_PROGRAM_FAILURE:
    case CL_INVALID_VALUE:
    case CL_INVALID_BINARY:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_COMPILER_OPTIONS:
    case CL_INVALID_LINKER_OPTIONS:
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, call, code,
                                    log && *log ? log : "the driver's compiler refuses the code or its options");
    default:
        return gpuhal_opencl_result(device, call, code);
    }
}

/* Returns the build log, or NULL. Owner: caller, free(). */
static char *read_log(const gpuhal_plugin_device *device, cl_program program)
{
    size_t bytes = 0;
    if (gpuhal_opencl_api.clGetProgramBuildInfo(program, device->entry->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) !=
            CL_SUCCESS ||
        bytes == 0) {
        return NULL;
    }
    char *text = calloc(1, bytes + 1);
    if (text && gpuhal_opencl_api.clGetProgramBuildInfo(program, device->entry->id, CL_PROGRAM_BUILD_LOG, bytes, text,
                                                        NULL) != CL_SUCCESS) {
        *text = '\0';
    }
    return text;
}

/* Returns whether the build failed without a compiler message, on a driver that is known for such failures. In this
 * case PoCL logs only "Device … failed to build the program". */
static bool is_silent_failure(const gpuhal_plugin_device *device, cl_int result, const char *log)
{
    const char *at = log ? log : "", *says = strstr(at, " failed to build the program\n");
    if (says && strncmp(at, "Device ", 7) == 0 && strcspn(at, "\n") > (size_t)(says - at)) {
        at += strcspn(at, "\n") + 1;
    }
    return (device->entry->defects & GPUHAL_OPENCL_BUILD_TWICE) && result == CL_BUILD_PROGRAM_FAILURE && !*at;
}

/* Returns NULL with *out_result on failure. */
static cl_program create_program(const gpuhal_plugin_program *program, const gpuhal_code *code, cl_int *out_result)
{
    const gpuhal_plugin_device *device = program->device;
    const char *source = code->code;
    const size_t bytes = (size_t)source_bytes(code);
    const cl_program made =
        program->spirv ? device->entry->create_il(device->context, code->code, (size_t)code->bytes, out_result)
                       : gpuhal_opencl_api.clCreateProgramWithSource(device->context, 1, &source, &bytes, out_result);
    *out_result = made || *out_result != CL_SUCCESS ? *out_result : CL_OUT_OF_RESOURCES;
    return made;
}

/* The caller must free `*out_log`. */
static cl_int build_once(gpuhal_plugin_program *program, const gpuhal_code *code, const char *options,
                         const char **out_call, char **out_log)
{
    const gpuhal_plugin_device *device = program->device;
    cl_int result = CL_SUCCESS;
    *out_log = NULL;
    *out_call = program->spirv ? "clCreateProgramWithIL" : "clCreateProgramWithSource";
    program->program = create_program(program, code, &result);
    if (program->program) {
        *out_call = "clBuildProgram";
        result = gpuhal_opencl_api.clBuildProgram(program->program, 1, &device->entry->id, options, NULL, NULL);
        *out_log = read_log(device, program->program);
        if (result != CL_SUCCESS) {
            gpuhal_opencl_api.clReleaseProgram(program->program);
        }
    }
    return result;
}

static gpuhal_status compile(gpuhal_plugin_program *program, const gpuhal_code *code, const char *options,
                             gpuhal_plugin_build *build)
{
    gpuhal_plugin_device *device = program->device;
    const char *call = NULL;
    char *log = NULL;
    cl_int result = build_once(program, code, options, &call, &log);
    if (is_silent_failure(device, result, log)) {
        free(log);
        result = build_once(program, code, options, &call, &log);
    }
    if (log && *log && build->log) {
        build->log(build->user, log);
    }
    const gpuhal_status status =
        result == CL_SUCCESS ? GPUHAL_OK
        : is_silent_failure(device, result, log)
            ? device->host->report(device->host, GPUHAL_ERROR_DRIVER, call, result,
                                   "CL_BUILD_PROGRAM_FAILURE, twice, and the compiler says nothing about the code: "
                                   "other processes compile with the same POCL_CACHE_DIR, or its disk is full; give "
                                   "each process a folder of its own")
            : build_failed(device, call, result, log);
    free(log);
    return status;
}

/* Checks the first kernel with arguments, since a driver describes all or none. */
static bool describes(const gpuhal_plugin_program *program)
{
    const gpuhal_opencl_functions *api = &gpuhal_opencl_api;
    size_t bytes = 0;
    cl_uint count = 0;
    if (api->clGetProgramInfo(program->program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &bytes) != CL_SUCCESS) {
        return false;
    }
    char *names = calloc(1, bytes + 1), *rest = names;
    bool known = names && api->clGetProgramInfo(program->program, CL_PROGRAM_KERNEL_NAMES, bytes, names, NULL) ==
                              CL_SUCCESS;
    for (const char *name = strsep(&rest, ";"); known && count == 0 && name && *name; name = strsep(&rest, ";")) {
        cl_kernel kernel = api->clCreateKernel(program->program, name, NULL);
        cl_kernel_arg_address_qualifier space = 0;
        known = kernel && api->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) == CL_SUCCESS &&
                (count == 0 || api->clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space,
                                                       NULL) == CL_SUCCESS);
        if (kernel) {
            api->clReleaseKernel(kernel);
        }
    }
    free(names);
    return known;
}

/* Loads the compiled program. Returns false if there is none for this code and device, if the driver rejects its own
 * binary, or if requested argument descriptions are missing; the caller then compiles the code. */
static bool take_compiled(gpuhal_plugin_program *program, const char *options, const gpuhal_plugin_build *build)
{
    const gpuhal_plugin_device *device = program->device;
    kept_header header;
    if (!build->compiled || build->compiled_bytes <= sizeof header) {
        return false;
    }
    const unsigned char *binary = (const unsigned char *)build->compiled + sizeof header;
    const size_t bytes = (size_t)build->compiled_bytes - sizeof header;
    memcpy(&header, build->compiled, sizeof header);
    if (memcmp(header.magic, kept_magic, sizeof kept_magic) != 0 || header.identity != program->identity ||
        header.checksum != hash(program->identity, binary, bytes)) {
        return false;
    }
    cl_int of_binary = CL_SUCCESS, code = CL_SUCCESS;
    program->program = gpuhal_opencl_api.clCreateProgramWithBinary(device->context, 1, &device->entry->id, &bytes,
                                                                   &binary, &of_binary, &code);
    if (!program->program) {
        return false;
    }
    code = gpuhal_opencl_api.clBuildProgram(program->program, 1, &device->entry->id, options, NULL, NULL);
    const bool taken = code == CL_SUCCESS && (!program->reflects || describes(program));
    if (!taken) {
        gpuhal_opencl_api.clReleaseProgram(program->program);
    }
    return taken;
}

/* Adds the option for argument descriptions, so that the plugin can compare arguments with the caller's parameters.
 * Returns NULL if out of memory. */
static char *all_options(const char *options, bool reflects)
{
    const size_t bytes = strlen(options) + sizeof " " REFLECT;
    char *text = malloc(bytes);
    if (text) {
        snprintf(text, bytes, "%s%s", options, reflects ? "" : " " REFLECT);
    }
    return text;
}

/* Returns whether the last group of a dimension may be smaller: only if the options choose OpenCL C 2.0 or later, and
 * leave -cl-uniform-work-group-size out. If the options choose several versions, the last one counts. The options of
 * SPIR-V choose none. */
static bool allows_non_uniform(const char *options)
{
    static const char version[] = "-cl-std=CL", uniform[] = "-cl-uniform-work-group-size";
    bool allows = false;
    for (const char *at = options + strspn(options, " \t\n"); *at; at += strspn(at, " \t\n")) {
        const size_t length = strcspn(at, " \t\n");
        if (strncmp(at, version, sizeof version - 1) == 0) {
            allows = at[sizeof version - 1] >= '2' && at[sizeof version - 1] <= '9';
        } else if (length == sizeof uniform - 1 && strncmp(at, uniform, length) == 0) {
            return false;
        }
        at += length;
    }
    return allows;
}

static gpuhal_status opencl_program_load(gpuhal_plugin_device *device, const gpuhal_code *code,
                                         gpuhal_plugin_build *build, gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    const char *options = code->options ? code->options : "";
    const bool spirv = strcmp(code->format, "spirv") == 0;
    *out_program = NULL;
    if (spirv ? !device->entry->create_il : !device->entry->compiles || strcmp(code->format, "opencl-c") != 0) {
        return gpuhal_opencl_refuse(device, GPUHAL_ERROR_NOT_SUPPORTED, "the device takes %s, not %.64s",
                                    gpuhal_opencl_formats(device->entry), code->format);
    }
    gpuhal_status status = check_target(device, code);
    status = status ? status : spirv ? check_spirv(device, code) : check_source(device, code);
    if (status != GPUHAL_OK) {
        return status;
    }
    const bool reflects = strstr(options, REFLECT) != NULL;
    char *built_with = all_options(options, reflects);
    gpuhal_plugin_program *program = calloc(1, sizeof *program);
    if (!program || !built_with) {
        free(built_with);
        free(program);
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    program->device = device;
    program->spirv = spirv;
    program->reflects = reflects;
    program->non_uniform = device->entry->non_uniform && !spirv && allows_non_uniform(options);
    program->identity = identify(device->entry, code, options);
    if (take_compiled(program, built_with, build)) {
        build->used_compiled = 1;
    } else {
        status = compile(program, code, built_with, build);
    }
    free(built_with);
    if (status != GPUHAL_OK) {
        free(program);
        return status;
    }
    *out_program = program;
    return GPUHAL_OK;
}

static void opencl_program_unload(gpuhal_plugin_program *program)
{
    gpuhal_opencl_api.clReleaseProgram(program->program);
    free(program);
}

/* ---- the binary for the next run */

/* Returns whether PoCL created the binary without the program. Processes that compile the same code with one
 * POCL_CACHE_DIR briefly remove each other's program.bc (pocl issue 1480, see defects.c). PoCL 3.1 aborts each process
 * that loads such a binary. Offsets: read_header() and pocl_binary_serialize() of lib/CL/pocl_binary.c; numbers are
 * little-endian. Format 9 (PoCL 3.1) lists a missing file with 0 bytes. Test:
 * opencl_program.a_binary_without_its_program_is_not_kept */
static bool is_hollow(const unsigned char *binary, size_t bytes)
{
    enum { VERSION = 16, FILES = 32, FIRST_FILE = 77, HEADER = 85 };
    static const unsigned char none[8];
    return bytes >= HEADER && memcmp(binary, "poclbin", sizeof "poclbin") == 0 && binary[VERSION] >= 9 &&
           (memcmp(binary + FILES, none, 4) == 0 ||
            (binary[VERSION] == 9 && memcmp(binary + FIRST_FILE, none, sizeof none) == 0));
}

/* Returns the index of the opened device among the program's devices, or DEVICES_MAX. With an adopted context the
 * program has all devices of the context. */
static uint32_t own_index(const gpuhal_plugin_program *program)
{
    cl_device_id ids[DEVICES_MAX];
    size_t bytes = 0;
    if (gpuhal_opencl_api.clGetProgramInfo(program->program, CL_PROGRAM_DEVICES, sizeof ids, ids, &bytes) !=
        CL_SUCCESS) {
        return DEVICES_MAX;
    }
    for (uint32_t i = 0; i < bytes / sizeof *ids; i++) {
        if (ids[i] == program->device->entry->id) {
            return i;
        }
    }
    return DEVICES_MAX;
}

static gpuhal_status opencl_program_compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes)
{
    size_t sizes[DEVICES_MAX] = {0};
    unsigned char *binaries[DEVICES_MAX] = {NULL}; /* the driver skips NULL pointers */
    const uint32_t index = own_index(program);
    const uint64_t room = *bytes;
    kept_header header = {.identity = program->identity};
    if (index == DEVICES_MAX) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    cl_int code =
        gpuhal_opencl_api.clGetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL);
    if (code != CL_SUCCESS || sizes[index] == 0) {
        return code == CL_SUCCESS ? GPUHAL_ERROR_NOT_SUPPORTED
                                  : gpuhal_opencl_result(program->device, "clGetProgramInfo", code);
    }
    *bytes = sizeof header + sizes[index];
    if (!to || room < *bytes) {
        return GPUHAL_OK;
    }
    binaries[index] = (unsigned char *)to + sizeof header;
    code = gpuhal_opencl_api.clGetProgramInfo(program->program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL);
    if (code != CL_SUCCESS) {
        return gpuhal_opencl_result(program->device, "clGetProgramInfo", code);
    }
    if (is_hollow(binaries[index], sizes[index])) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    memcpy(header.magic, kept_magic, sizeof kept_magic);
    header.checksum = hash(program->identity, binaries[index], sizes[index]);
    memcpy(to, &header, sizeof header);
    return GPUHAL_OK;
}

/* Lists SPIR-V first, because it does not have to be parsed as source code. */
const char *gpuhal_opencl_formats(const gpuhal_opencl_entry *entry)
{
    if (!gpuhal_opencl_has_queues(entry) || !gpuhal_opencl_api.clGetKernelArgInfo ||
        !gpuhal_opencl_api.clCreateSubBuffer) {
        return NULL;
    }
    return entry->create_il ? (entry->compiles ? "spirv opencl-c" : "spirv") : entry->compiles ? "opencl-c" : NULL;
}

void gpuhal_opencl_describe_program(const gpuhal_opencl_entry *entry, gpuhal_ops *ops)
{
    static const gpuhal_program_ops programs = {
        .size = sizeof programs,
        .version = GPUHAL_PROGRAMS_VERSION,
        .program_load = opencl_program_load,
        .program_unload = opencl_program_unload,
        .kernel_create = gpuhal_opencl_kernel_create,
        .kernel_destroy = gpuhal_opencl_kernel_destroy,
        .launch = gpuhal_opencl_launch,
        .program_compiled = opencl_program_compiled,
    };
    ops->programs = gpuhal_opencl_formats(entry) ? &programs : NULL;
}
