/* given.h: the kernel that the command line names: its code, its parameters, and its launch.
 *
 * The parameters are a text, one word for each, in order, with commas between them: `r`, `w` and `b` are buffers that
 * the kernel reads, writes, or both, and `l` is local memory, each with its bytes (`r4096`) or without; `i32=N`,
 * `u32=N`, `i64=N`, `u64=N`, `f32=X` and `f64=X` are values. Without the text the plugin reports the parameters;
 * buffers count as in `b65536`, local memory as in `l1024`, and a value of 4 or 8 bytes is the number 1024, others are
 * zero.
 */
#ifndef GPUHAL_CHECK_GIVEN_H
#define GPUHAL_CHECK_GIVEN_H

#include <gpuhal/code.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GIVEN_MAX = 16, GIVEN_VALUE_BYTES = 64 };

typedef struct gpuhal_given_parameter {
    gpuhal_parameter parameter;
    uint64_t bytes; /* of a buffer, of local memory, or of a value */
    unsigned char value[GIVEN_VALUE_BYTES];
} gpuhal_given_parameter;

typedef struct gpuhal_given {
    const char *file; /* NULL: no code was given, and the rest is not used */
    const char *kernel;
    const char *format; /* NULL: found out from the code */
    const char *options;
    void *code;
    uint64_t bytes;
    gpuhal_given_parameter parameters[GIVEN_MAX];
    uint32_t parameter_count;
    bool has_parameters;
    uint32_t group_size[3], groups[3];
} gpuhal_given;

/* Parses the parameters; returns false with a sentence about the wrong word. */
bool gpuhal_given_read_parameters(gpuhal_given *given, const char *text, char *problem, size_t size);
/* Parses "64", "16,16" or "8,8,4"; omitted dimensions are @p rest. */
bool gpuhal_given_read_extent(const char *text, uint32_t rest, uint32_t out_extent[3]);
/* Reads the file, and finds out its format if the command line does not name it. */
bool gpuhal_given_read_code(gpuhal_given *given, char *problem, size_t size);
/* Finds the launch value of a parameter that the text does not describe. False: it is larger than the largest possible
 * one. */
bool gpuhal_given_default(const gpuhal_parameter *parameter, gpuhal_given_parameter *out_parameter);

#endif
