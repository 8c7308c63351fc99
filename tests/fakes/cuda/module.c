/* tests/fakes/cuda/module.c: programs in PTX text. Each `.entry` line is a kernel. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_ORDINARY = 49152, SHARED_MOST = 232448, THREADS_AT_MOST = 1024 };

/* Returns the value of an option, or NULL if the caller does not pass the option. */
static void *option_of(CUjit_option option, unsigned count, const CUjit_option *options, void *const *values)
{
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == option) {
            return values[i];
        }
    }
    return NULL;
}

static void complain(const char *text, unsigned count, const CUjit_option *options, void *const *values)
{
    char *log = option_of(CU_JIT_ERROR_LOG_BUFFER, count, options, values);
    const uintptr_t size = (uintptr_t)option_of(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options, values);
    if (log && size) {
        snprintf(log, size, "%s", text);
    }
}

/* If the caller passes an info log and asks for a verbose log, writes the given compile options, and a line for each
 * kernel, to the info log, as far as they fit. */
static void note(const char *code, unsigned count, const CUjit_option *options, void *const *values)
{
    char *log = option_of(CU_JIT_INFO_LOG_BUFFER, count, options, values);
    const uintptr_t size = (uintptr_t)option_of(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count, options, values);
    if (!log || !size || !option_of(CU_JIT_LOG_VERBOSE, count, options, values)) {
        return;
    }
    size_t used = 0;
    for (unsigned i = 0; i < count && used < size; i++) {
        const bool counts = options[i] == CU_JIT_OPTIMIZATION_LEVEL || options[i] == CU_JIT_MAX_REGISTERS ||
                            options[i] == CU_JIT_GENERATE_DEBUG_INFO || options[i] == CU_JIT_GENERATE_LINE_INFO;
        used += counts ? (size_t)snprintf(log + used, size - used, "option %u: %u\n", options[i],
                                          (unsigned)(uintptr_t)values[i])
                       : 0;
    }
    for (const char *at = code; (at = strstr(at, ".entry ")) && used < size;) {
        at += strlen(".entry ");
        used += (size_t)snprintf(log + used, size - used, "ptxas info    : Compiling entry function '%.*s'\n",
                                 (int)strcspn(at, "( \t\n"), at);
    }
}

/* Binary code cannot run here, so it is accepted only if it contains the word "fake". An ELF file has the word in its
 * header's padding, a fatbin in the bytes after its header, if the header states at least 4 bytes. */
static CUresult check_image(const unsigned char *image, unsigned count, const CUjit_option *options,
                            void *const *values)
{
    const bool is_elf = strncmp((const char *)image, "\177ELF", 4) == 0; /* a PTX text may be shorter */
    if (is_elf || strncmp((const char *)image, "\x50\xed\x55\xba", 4) == 0) {
        const size_t at = is_elf ? 9 : image[8] >= 4 ? 16 : 0;
        return memcmp(image + at, "fake", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (!isprint(image[0]) && !isspace(image[0])) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!strstr((const char *)image, ".version") || !strstr((const char *)image, ".target")) {
        complain("ptxas fatal   : Missing .version directive at start of file", count, options, values);
        return CUDA_ERROR_INVALID_PTX;
    }
    const unsigned long version = strtoul(strstr((const char *)image, ".version") + strlen(".version"), NULL, 10);
    if (version > (unsigned long)fake_script_get()->driver_version / 1000 - 4) {
        complain("ptxas application ptx input, line 1; fatal   : Unsupported .version", count, options, values);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    const char *last = strrchr((const char *)image, '(');
    if (last && !strchr(last, ')')) {
        complain("ptxas fatal   : Parsing error near end of file: syntax error", count, options, values);
        return CUDA_ERROR_INVALID_PTX;
    }
    note((const char *)image, count, options, values);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out_module, const void *image, unsigned int count, CUjit_option *options,
                            void **values)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = check_image(image, count, options, values);
    return fake_end(code ? code : fake_module_new(context, image, out_module));
}

/* Returns the text after a kernel's name, or NULL if the program has no such kernel. */
static const char *entry_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, ".entry"));) {
        at += strlen(".entry");
        at += strspn(at, " \t");
        if (strncmp(at, name, length) == 0 && !isalnum((unsigned char)at[length]) && at[length] != '_') {
            return at + length;
        }
    }
    return NULL;
}

bool fake_code_has(const char *text, const char *name)
{
    return entry_of(text, name) != NULL;
}

/* Returns the bytes of the program's first declaration of shared memory: `.shared .align 4 .b8 name[20480];`. The fake
 * applies them to all kernels of the program. */
static unsigned own_shared_bytes(const char *code)
{
    const char *own = strstr(code, ".shared"), *count = own ? strchr(own, '[') : NULL;
    return count ? (unsigned)strtoul(count + 1, NULL, 10) : 0;
}

/* Returns the first number of the program's first `.maxntid 128, 1, 1`. The fake applies it to all kernels of the
 * program. */
unsigned fake_code_threads(const char *code)
{
    const char *most = strstr(code, ".maxntid ");
    return most ? (unsigned)strtoul(most + strlen(".maxntid "), NULL, 10) : THREADS_AT_MOST;
}

unsigned fake_code_shared_bytes(const char *code)
{
    return SHARED_ORDINARY - own_shared_bytes(code);
}

/* Begins a call that requires a current context and a known function. */
static CUresult enter_function(const char *call, CUfunction function)
{
    CUresult code = fake_enter_current(call);
    if (code) {
        return code;
    }
    return fake_function_find(function) ? CUDA_SUCCESS : fake_end(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (unsigned)value > SHARED_MOST - own_shared_bytes(function->module->code)) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    function->shared_bytes = (unsigned)value;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int *out_value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    const char *text = function->module->code;
    const int values[] = {[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = (int)fake_code_threads(text),
                          [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)own_shared_bytes(text),
                          [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = 16,
                          [CU_FUNC_ATTRIBUTE_NUM_REGS] = 24,
                          [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = (int)function->shared_bytes};
    if (attribute >= sizeof values / sizeof *values) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    *out_value = values[attribute];
    return fake_end(CUDA_SUCCESS);
}

CUresult cuFuncLoad(CUfunction function)
{
    CUresult code = enter_function(__func__, function);
    return code ? code : fake_end(CUDA_SUCCESS);
}

/* Returns a parameter's size in bytes: an eighth of the number in `.param .u64 x`, or the number in brackets in
 * `.param .align 8 .b8 x[24]`. */
static size_t size_of(const char *parameter)
{
    const size_t length = strcspn(parameter, ",)");
    const char *count = memchr(parameter, '[', length), *type = parameter;
    do {
        type = strpbrk(type + 1, ".");
    } while (type && !isdigit((unsigned char)type[2]));
    return count ? strtoul(count + 1, NULL, 10) : type ? strtoul(type + 2, NULL, 10) / 8 : 0;
}

/* Each parameter's offset is a multiple of its size. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *out_offset, size_t *out_bytes)
{
    CUresult code = enter_function(__func__, function);
    if (code) {
        return code;
    }
    const char *at = entry_of(function->module->code, function->name), *end = strchr(at, '{');
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; i <= index; i++) {
        at = strstr(at, ".param ");
        if (!at || (end && at > end)) {
            return fake_end(CUDA_ERROR_INVALID_VALUE);
        }
        offset += bytes;
        bytes = size_of(at);
        offset = bytes ? (offset + bytes - 1) / bytes * bytes : offset;
        at += strlen(".param ");
    }
    *out_offset = offset;
    if (out_bytes) {
        *out_bytes = bytes;
    }
    return fake_end(CUDA_SUCCESS);
}
