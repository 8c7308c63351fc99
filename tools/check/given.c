/* given.c: see given.h. */
#include "given.h"

#include "../common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES 65536u
#define LOCAL_BYTES  1024u
#define BYTES_MAX    (UINT64_C(1) << 30)
#define CODE_MAX     (UINT64_C(1) << 30)

/* ---- parameters */

static bool read_memory(const char *word, gpuhal_given_parameter *out)
{
    static const struct {
        char letter;
        gpuhal_parameter parameter;
    } known[] = {
        {'r', {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ}},
        {'w', {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE}},
        {'b', {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE}},
        {'l', {.kind = GPUHAL_PARAMETER_LOCAL}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (word[0] == known[i].letter) {
            const char *end = word + 1;
            (void)gpuhal_given_default(&known[i].parameter, out);
            const bool sized =
                *end == '\0' || *end == '?' || gpuhal_tool_read_number(end, 1, BYTES_MAX, &out->bytes, &end);
            const bool optional = *end == '?' && known[i].parameter.kind == GPUHAL_PARAMETER_BUFFER;
            out->parameter.flags = optional ? GPUHAL_PARAMETER_OPTIONAL : 0;
            return sized && end[optional] == '\0';
        }
    }
    return false;
}

static bool read_number(const char *text, bool is_signed, unsigned bits, void *to)
{
    char *end = NULL;
    errno = 0;
    const int64_t number = is_signed ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
    const uint64_t high = (uint64_t)number >> 32;
    const bool fits = bits == 64 || (is_signed ? number == (int32_t)number : high == 0);
    memcpy(to, &(const uint32_t){(uint32_t)number}, 4);
    if (bits == 64) {
        memcpy(to, &number, 8);
    }
    return text[0] != '\0' && strchr("+ \t", text[0]) == NULL && (is_signed || text[0] != '-') && *end == '\0' &&
           errno == 0 && fits;
}

static bool read_float(const char *text, unsigned bits, void *to)
{
    char *end = NULL;
    const double number = strtod(text, &end);
    memcpy(to, &(const float){(float)number}, 4);
    if (bits == 64) {
        memcpy(to, &number, 8);
    }
    return text[0] != '\0' && *end == '\0';
}

static bool read_value(const char *word, gpuhal_given_parameter *out)
{
    if (strlen(word) < 5 || strchr("iuf", word[0]) == NULL ||
        (strncmp(word + 1, "32=", 3) != 0 && strncmp(word + 1, "64=", 3) != 0)) {
        return false;
    }
    const unsigned bits = word[1] == '3' ? 32 : 64;
    *out =
        (gpuhal_given_parameter){.parameter = {.kind = GPUHAL_PARAMETER_VALUE, .bytes = bits / 8}, .bytes = bits / 8};
    return word[0] == 'f' ? read_float(word + 4, bits, out->value)
                          : read_number(word + 4, word[0] == 'i', bits, out->value);
}

bool gpuhal_given_default(const gpuhal_parameter *parameter, gpuhal_given_parameter *out_parameter)
{
    *out_parameter = (gpuhal_given_parameter){.parameter = *parameter,
                                              .bytes = parameter->kind == GPUHAL_PARAMETER_BUFFER  ? BUFFER_BYTES
                                                       : parameter->kind == GPUHAL_PARAMETER_LOCAL ? LOCAL_BYTES
                                                                                                   : parameter->bytes};
    if (parameter->kind != GPUHAL_PARAMETER_VALUE) {
        return true;
    }
    const uint64_t number = 1024;
    if (parameter->bytes == 4) {
        memcpy(out_parameter->value, &(const uint32_t){(uint32_t)number}, 4);
    } else if (parameter->bytes == 8) {
        memcpy(out_parameter->value, &number, 8);
    }
    return parameter->bytes <= GIVEN_VALUE_BYTES;
}

bool gpuhal_given_read_parameters(gpuhal_given *given, const char *text, char *problem, size_t size)
{
    given->has_parameters = true;
    given->parameter_count = 0;
    for (const char *at = text; *text != '\0'; at += strcspn(at, ",") + 1) {
        char word[64];
        const size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (given->parameter_count == GIVEN_MAX) {
            snprintf(problem, size, "there are more than %d", GIVEN_MAX);
            return false;
        }
        gpuhal_given_parameter *parameter = &given->parameters[given->parameter_count++];
        if (!read_memory(word, parameter) && !read_value(word, parameter)) {
            snprintf(problem, size, "\"%s\" is neither r, w, b or l with a number of bytes, nor a value such as u32=7",
                     word);
            return false;
        }
        if (at[length] == '\0') {
            return true;
        }
    }
    return true;
}

bool gpuhal_given_read_extent(const char *text, uint32_t rest, uint32_t out_extent[3])
{
    const char *at = text;
    for (int d = 0; d < 3; d++) {
        out_extent[d] = rest;
    }
    for (int d = 0; d < 3; d++) {
        uint64_t number = 0;
        if (!gpuhal_tool_read_number(at, 1, UINT32_MAX, &number, &at)) {
            return false;
        }
        out_extent[d] = (uint32_t)number;
        if (*at == '\0' || *at++ != ',') {
            return at[0] == '\0' && (at == text || at[-1] != ',');
        }
    }
    return false;
}

/* ---- code */

static bool begins(const gpuhal_given *given, const char *with, size_t bytes)
{
    return given->bytes >= bytes && memcmp(given->code, with, bytes) == 0;
}

static bool ends(const char *name, const char *with)
{
    const size_t length = strlen(name), ending = strlen(with);
    return length > ending && strcmp(name + length - ending, with) == 0;
}

/* Derives the format from an ELF file's machine field, which identifies device code. */
static const char *elf_format(const gpuhal_given *given)
{
    const unsigned char *bytes = given->code;
    const unsigned machine = given->bytes >= 20 ? bytes[18] | (unsigned)bytes[19] << 8 : 0;
    return machine == 190 ? "cubin" : machine == 224 ? "hsaco" : "host-library";
}

static const char *guess_format(const gpuhal_given *given)
{
    if (begins(given,
               "\x7f"
               "ELF",
               4)) {
        return elf_format(given);
    }
    return begins(given, "\x03\x02\x23\x07", 4)            ? "spirv"
           : begins(given, "\x50\xed\x55\xba", 4)          ? "fatbin"
           : begins(given, "__CLANG_OFFLOAD_BUNDLE__", 24) ? "hip-fatbin"
           : ends(given->file, ".cl")                      ? "opencl-c"
           : ends(given->file, ".ptx")                     ? "ptx"
                                                           : NULL;
}

bool gpuhal_given_read_code(gpuhal_given *given, char *problem, size_t size)
{
    FILE *file = fopen(given->file, "rbe");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        snprintf(problem, size, "cannot be read: %s", strerror(errno));
        if (file != NULL) {
            fclose(file);
        }
        return false;
    }
    const long bytes = ftell(file);
    rewind(file);
    given->code = bytes > 0 && (uint64_t)bytes <= CODE_MAX ? malloc((size_t)bytes) : NULL;
    given->bytes = given->code != NULL ? fread(given->code, 1, (size_t)bytes, file) : 0;
    fclose(file);
    if (bytes <= 0 || given->bytes != (uint64_t)bytes) {
        snprintf(problem, size, "it is empty, too large, or cannot be read");
        return false;
    }
    given->format = given->format != NULL ? given->format : guess_format(given);
    if (given->format == NULL) {
        snprintf(problem, size, "neither its bytes nor its name show its format; give --format");
    }
    return given->format != NULL;
}
