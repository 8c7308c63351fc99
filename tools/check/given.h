/* given.h: the kernel given on the command line: its code, its parameters, and its launch.
 *
 * The parameters are a comma-separated list with one word for each parameter, in order. `r` is a buffer that the kernel
 * reads, `w` a buffer that it writes, `b` a buffer that it reads and writes, and `l` is local memory. An optional size
 * in bytes may follow (`r4096`). `?` at the end (`r?`, `r4096?`) is a buffer that a launch may omit. `i32=N`, `u32=N`,
 * `i64=N`, `u64=N`, `f32=X` and `f64=X` are values. If there is no list, the plugin reports the parameters. Then a
 * buffer counts as `b65536` and local memory as `l1024`; a value of 4 or 8 bytes is the number 1024, and other values
 * are zero.
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
    uint64_t bytes; /* size of the buffer, local memory or value */
    unsigned char value[GIVEN_VALUE_BYTES];
} gpuhal_given_parameter;

typedef struct gpuhal_given {
    const char *file; /* NULL if no code was given; the other members are then unused */
    const char *kernel;
    const char *format; /* NULL if the format is derived from the code */
    const char *options;
    void *code;
    uint64_t bytes;
    gpuhal_given_parameter parameters[GIVEN_MAX];
    uint32_t parameter_count;
    bool has_parameters;
    uint32_t group_size[3], groups[3];
} gpuhal_given;

/* Parses the parameters; returns false with a message about the wrong word. */
bool gpuhal_given_read_parameters(gpuhal_given *given, const char *text, char *problem, size_t size);
/* Parses "64", "16,16" or "8,8,4"; omitted dimensions are @p rest. */
bool gpuhal_given_read_extent(const char *text, uint32_t rest, uint32_t out_extent[3]);
/* Reads the file, and derives its format if the command line does not specify it. */
bool gpuhal_given_read_code(gpuhal_given *given, char *problem, size_t size);
/* Finds the launch value of a parameter that the list does not describe. Returns false if the parameter is larger than
 * the maximum. */
bool gpuhal_given_default(const gpuhal_parameter *parameter, gpuhal_given_parameter *out_parameter);

#endif
