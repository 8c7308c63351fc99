/* cuda/module.c: CUDA's code formats `ptx`, `cubin` and `fatbin`. Checks which code runs on a device, loads code with
 * options for the driver's compiler, and reads function attributes. */
#include "../stream/image.h"
#include "device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The initial and maximum size of each of the compiler's two logs. */
#define LOG_BYTES     8192u
#define LOG_BYTES_MAX (8u << 20)

/* ---- images */

/* Returns whether a section occupies bytes in the file. Unused and zeroed sections do not occupy bytes. In relocatable
 * code the sections of NVIDIA's global, local and shared memory do not occupy bytes either. */
static bool is_in_file(uint64_t type)
{
    return type != 0 && type != 8 && type != 0x70000007 && type != 0x70000009 && type != 0x7000000a;
}

/* Checks a header of 16 bytes: magic, version, header size, and the size of the rest. */
static bool is_fatbin(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 16 || number_at(image, 0, 4) != 0xba55ed50u) {
        return false;
    }
    /* The size of the rest is an unchecked 64-bit number. It is only compared with the remaining bytes, because adding
     * it could overflow. */
    const uint64_t header = number_at(image, 6, 2), rest = number_at(image, 8, 8);
    return header <= bytes && rest <= bytes - header;
}

/* PTX is a string. The driver requires it to be NUL-terminated. */
bool gpuhal_cuda_is_image(const char *format, const unsigned char *image, uint64_t bytes)
{
    return strcmp(format, "ptx") == 0 ||
           (strcmp(format, "cubin") == 0 ? is_elf(image, bytes, is_in_file) : is_fatbin(image, bytes));
}

/* ---- targets */

/* Parses a target such as "sm_86", "sm_90a" or "compute_80". Returns 10 * major + minor, and the letter after the
 * number. Returns 0 for any other string. */
static unsigned long number_of(const char *target, char *out_letter)
{
    static const char *const prefixes[] = {"sm_", "compute_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t length = strlen(prefixes[i]);
        char *end = NULL;
        if (strncmp(target, prefixes[i], length) == 0 && isdigit((unsigned char)target[length])) {
            const unsigned long number = strtoul(target + length, &end, 10);
            *out_letter = *end;
            return *end == '\0' || ((*end == 'a' || *end == 'f') && end[1] == '\0') ? number : 0;
        }
    }
    return 0;
}

/* NVIDIA's "Application Compatibility" (CUDA C++ Programming Guide): a cubin runs on devices with the same major number
 * and an equal or higher minor number; PTX can be compiled for equal or higher numbers. Code for a target with `a` runs
 * only on devices with exactly this number, code for a target with `f` only on devices with the same major number. A
 * fatbin may contain PTX as well as cubins. */
bool gpuhal_cuda_takes_target(const char *format, const char *target, const char *device)
{
    char letter = '\0', none = '\0';
    const unsigned long wanted = number_of(target, &letter), has = number_of(device, &none);
    if (wanted == 0 || has < wanted) {
        return false;
    }
    const bool same_major = wanted / 10 == has / 10;
    return letter == 'a' ? wanted == has : same_major || (letter == '\0' && strcmp(format, "cubin") != 0);
}

/* ---- options */

typedef struct jit {
    CUjit_option options[9]; /* room for each option that this file uses */
    void *values[9];         /* the pointers contain the numbers themselves */
    unsigned int count;
} jit;

static void add(jit *to, CUjit_option option, uintptr_t value)
{
    for (unsigned int i = 0; i < to->count; i++) {
        if (to->options[i] == option) {
            to->values[i] = (void *)value; /* the last value wins */
            return;
        }
    }
    to->options[to->count] = option;
    to->values[to->count++] = (void *)value;
}

/* Accepts the ptxas option names that the driver's compiler also supports. */
static bool add_word(jit *to, const char *word, size_t length)
{
    static const char registers[] = "-maxrregcount=";
    const size_t prefix = sizeof registers - 1;
    if (length == 3 && strncmp(word, "-O", 2) == 0 && word[2] >= '0' && word[2] <= '4') {
        add(to, CU_JIT_OPTIMIZATION_LEVEL, (uintptr_t)(word[2] - '0'));
    } else if (length == 2 && strncmp(word, "-g", 2) == 0) {
        add(to, CU_JIT_GENERATE_DEBUG_INFO, 1);
    } else if (length == 9 && strncmp(word, "-lineinfo", 9) == 0) {
        add(to, CU_JIT_GENERATE_LINE_INFO, 1);
    } else if (length > prefix && length < prefix + 4 && strncmp(word, registers, prefix) == 0 &&
               strspn(word + prefix, "0123456789") >= length - prefix) {
        add(to, CU_JIT_MAX_REGISTERS, strtoul(word + prefix, NULL, 10));
    } else {
        return false;
    }
    return true;
}

/* Returns 0 if all options are known. Otherwise *out_word is the first unknown option, and its length is returned. Only
 * PTX is compiled. */
static size_t add_options(jit *to, const gpuhal_code *code, const char **out_word)
{
    const bool compiles = strcmp(code->format, "ptx") == 0;
    for (const char *at = code->options ? code->options : ""; *at;) {
        const size_t length = strcspn(at, " ");
        if (length > 0 && (!compiles || !add_word(to, at, length))) {
            *out_word = at;
            return length;
        }
        at += length + strspn(at + length, " ");
    }
    return 0;
}

bool gpuhal_cuda_takes_options(const gpuhal_code *code, char *out_unknown, size_t size)
{
    jit none = {.count = 0};
    const char *word = "";
    const size_t length = add_options(&none, code, &word);
    snprintf(out_unknown, size, "%.*s", (int)(length < size ? length : size), word);
    return length == 0;
}

/* ---- modules */

static void make_line(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] < 0x20 || text[i] >= 0x7f ? ' ' : text[i];
    }
    while (length > 0 && text[length - 1] == ' ') {
        text[--length] = '\0';
    }
}

/* Loads the module with two log buffers of @p bytes each. @p info receives the compiler's notes, and the bytes after it
 * the errors. */
static CUresult load(const gpuhal_code *code, const void *image, CUmodule *out_module, char *info, size_t bytes)
{
    jit with = {.count = 0};
    const char *word = NULL;
    char *errors = info + bytes;
    (void)add_options(&with, code, &word); /* all options are known */
    add(&with, CU_JIT_LOG_VERBOSE, 1);     /* reports each kernel's registers and memory */
    add(&with, CU_JIT_INFO_LOG_BUFFER, (uintptr_t)info);
    add(&with, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, bytes - 1);
    add(&with, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)errors);
    add(&with, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, bytes - 1);
    *info = *errors = '\0';
    const CUresult result =
        gpuhal_cuda_api.cuModuleLoadDataEx(out_module, image, with.count, with.options, with.values);
    info[bytes - 1] = errors[bytes - 1] = '\0';
    return result;
}

/* The driver truncates a log to the buffer, so loading is repeated with a larger buffer if a log fills it. If there is
 * not enough memory for a larger buffer, the log stays truncated. */
CUresult gpuhal_cuda_load_module(const gpuhal_code *code, const void *image, gpuhal_plugin_build *build,
                                 CUmodule *out_module, char *out_words, size_t size)
{
    char first[2 * LOG_BYTES], *log = first, *more;
    size_t bytes = LOG_BYTES;
    CUresult result = load(code, image, out_module, log, bytes);
    while ((strlen(log) + 2 >= bytes || strlen(log + bytes) + 2 >= bytes) && bytes < LOG_BYTES_MAX &&
           (more = malloc(2 * 32 * bytes)) != NULL) {
        if (log != first) {
            free(log);
        }
        log = more;
        bytes *= 32;
        if (result == CUDA_SUCCESS) {
            gpuhal_cuda_ignore(gpuhal_cuda_api.cuModuleUnload(*out_module));
        }
        result = load(code, image, out_module, log, bytes);
    }
    for (size_t i = 0; i < 2; i++) {
        if (log[i * bytes] != '\0') {
            build->log(build->user, log + i * bytes);
        }
    }
    snprintf(out_words, size, "%s", log + bytes);
    make_line(out_words);
    if (log != first) {
        free(log);
    }
    return result;
}

bool gpuhal_cuda_explain_refusal(CUresult code, char *out_text, size_t size)
{
    char version[24] = "an unknown version";
    if (code != CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
        return false;
    }
    (void)gpuhal_cuda_api_version(version, sizeof version);
    snprintf(out_text, size,
             "the PTX needs a later CUDA than %s, the version that the driver supports: update the driver, or compile "
             "with a toolkit of that version at most",
             version);
    return true;
}

/* ---- functions */

CUresult gpuhal_cuda_of_function(int *out_value, unsigned int attribute, CUfunction function)
{
    *out_value = -1;
    return gpuhal_cuda_may_lack(gpuhal_cuda_api.cuFuncGetAttribute(out_value, attribute, function));
}

/* Without this attribute a launch cannot use more than 48 KiB of shared memory. Each kernel sets it to the maximum, so
 * that launches need not change it and threads do not undo each other's setting. The split between cache and shared
 * memory depends on the launches' requests, not on this maximum.
 *
 * With lazy loading (CUDA_MODULE_LOADING) the driver may load the code to the device later; cuFuncLoad loads the code
 * now, to detect a failure. */
CUresult gpuhal_cuda_prepare_function(CUfunction function, uint32_t own, uint32_t most, const char **out_call)
{
    CUresult code = CUDA_SUCCESS;
    if (most > own) {
        *out_call = "cuFuncSetAttribute";
        code = gpuhal_cuda_may_lack(gpuhal_cuda_api.cuFuncSetAttribute(
            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)(most - own)));
    }
    if (code != CUDA_SUCCESS || !gpuhal_cuda_api.cuFuncLoad) {
        return code;
    }
    *out_call = "cuFuncLoad";
    return gpuhal_cuda_may_lack(gpuhal_cuda_api.cuFuncLoad(function));
}

/* cuFuncGetParamInfo() is available since CUDA 12.4. */
CUresult gpuhal_cuda_parameter_bytes(CUfunction function, uint32_t index, uint64_t *out_bytes)
{
    size_t offset = 0, bytes = 0;
    const CUresult code = gpuhal_cuda_api.cuFuncGetParamInfo
                              ? gpuhal_cuda_api.cuFuncGetParamInfo(function, index, &offset, &bytes)
                              : CUDA_ERROR_NOT_SUPPORTED;
    if (code == CUDA_ERROR_NOT_SUPPORTED) {
        *out_bytes = GPUHAL_STREAM_UNKNOWN;
        return CUDA_SUCCESS;
    }
    *out_bytes = code == CUDA_SUCCESS ? bytes : 0;
    return code == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : code; /* this parameter does not exist */
}
