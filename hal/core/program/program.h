/* program/program.h: programs and kernels as the files of this folder see them.
 *
 * All members are written before the object is published, and only read afterwards, except references and the members
 * under the program's mutex. References go one way: launch > kernel > program > gpuhal object. A thread that retires
 * work may drop the last reference, so no unloading here calls a function of the application.
 */
#ifndef GPUHAL_PROGRAM_PROGRAM_H
#define GPUHAL_PROGRAM_PROGRAM_H

#include "base/text.h"
#include "device/device.h"

#include <gpuhal/program.h>

/* More parameters than any API takes: CUDA passes 32 KiB of them at most. */
#define GPUHAL_PARAMETERS_MAX 1024u

/* The possible differences of two compilations; key.c. Each has a test. */
enum {
    /* in their surroundings */
    GPUHAL_WAY_LIBRARY,
    GPUHAL_WAY_PLUGIN,
    GPUHAL_WAY_DRIVER,
    GPUHAL_WAY_DEVICE,
    GPUHAL_WAY_PROCESSOR,
    GPUHAL_WAY_VARIABLES,
    GPUHAL_WAYS_AROUND,
    /* in the caller's input */
    GPUHAL_WAY_FORMAT = GPUHAL_WAYS_AROUND,
    GPUHAL_WAY_TARGET,
    GPUHAL_WAY_OPTIONS,
    GPUHAL_WAY_CODE,
    GPUHAL_WAYS
};

/* The key to a driver's compiled code. */
typedef struct gpuhal_program_key {
    char *text; /* malloc'ed: all those ways, one after the other; NULL: not to be kept */
    size_t bytes, around_bytes;
} gpuhal_program_key;

struct gpuhal_program {
    _Atomic uint32_t references;
    uint32_t choice;
    _Atomic bool cached; /* neither the program nor a kernel of it was compiled */
    gpuhal_device *device;
    gpuhal_plugin_program *handle;
    char format[32];
    gpuhal_mutex mutex; /* protects the key and the size of the program in the cache */
    gpuhal_program_key key;
    uint64_t kept_bytes; /* size of the cached code; drivers only add to it */
};

struct gpuhal_kernel {
    _Atomic uint32_t references;
    gpuhal_program *program;
    gpuhal_plugin_kernel *handle;
    gpuhal_kernel_info info; /* its parameters are `parameters` */
    uint64_t binding_mask, binding_max;
    uint64_t local_bytes; /* the most that a launch may add; UINT64_MAX: not known */
    /* the width of the widest grid passed to a driver, in threads, as its number of bits; 0: none was launched */
    _Atomic uint32_t launched_bits;
    char *name;
    gpuhal_parameter parameters[];
};

/* ---- self_contained.c */

enum { GPUHAL_WHY_OPEN_BYTES = 128 };
/* Returns whether the compiler reads only the code and its options. Else `out_why` names the other files that it may
 * read; "" without memory. */
bool gpuhal_code_is_self_contained(const gpuhal_code *code, char out_why[GPUHAL_WHY_OPEN_BYTES]);

/* ---- key.c */

/* Makes the key; it has no text for a device or code whose compiled form is not to be kept. */
void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key);
/* Returns whether the surroundings of a compilation are still as they were when the key was made. */
bool gpuhal_program_key_is_current(gpuhal_device *device, const gpuhal_program_key *key);
void gpuhal_program_key_finish(gpuhal_program_key *key);

/* ---- cache.c */

/* Reads the cached code of the key; malloc'ed. NULL: there is none, or none that is whole. */
void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes);
/* Gets the compiled code from the plugin, and keeps it if it is more than before: then the program is not `cached` any
 * more. A failure costs a compilation later, and a line of the log. Only DEVICE_LOST and FORKED, when the plugin may
 * not be called any more, are returned, and end the creation. */
gpuhal_status gpuhal_program_cache_put(gpuhal_program *program);

/* ---- program.c */

/* Ends a failed call of the plugin for a program: words its failure. */
gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what);

#endif
