/* program/program.h: programs and kernels as the files of this folder see them.
 *
 * All members are written before the object is published, and only read afterwards, but for references and what the
 * program's mutex protects. References go one way: launch > kernel > program > gpuhal object. The last reference may
 * be dropped by a thread that retires work, so nothing here calls a function of the application while it unloads.
 */
#ifndef GPUHAL_PROGRAM_PROGRAM_H
#define GPUHAL_PROGRAM_PROGRAM_H

#include "base/text.h"
#include "device/device.h"

#include <gpuhal/program.h>

/* More parameters than any API takes: CUDA passes 32 KiB of them at most. */
#define GPUHAL_PARAMETERS_MAX 1024u

/* The ways in which two compilations can differ; key.c. Each has a test. */
enum {
    /* in what is around them */
    GPUHAL_WAY_LIBRARY,
    GPUHAL_WAY_PLUGIN,
    GPUHAL_WAY_DRIVER,
    GPUHAL_WAY_DEVICE,
    GPUHAL_WAY_PROCESSOR,
    GPUHAL_WAY_VARIABLES,
    GPUHAL_WAYS_AROUND,
    /* in what the caller gives */
    GPUHAL_WAY_FORMAT = GPUHAL_WAYS_AROUND,
    GPUHAL_WAY_TARGET,
    GPUHAL_WAY_OPTIONS,
    GPUHAL_WAY_CODE,
    GPUHAL_WAYS
};

/* By which what drivers compile is found again. */
typedef struct gpuhal_program_key {
    char *text; /* malloc'ed: all those ways, one behind the other; NULL: not to be kept */
    size_t bytes, around_bytes;
} gpuhal_program_key;

struct gpuhal_program {
    _Atomic uint32_t references;
    uint32_t choice;
    _Atomic bool cached; /* neither the program nor a kernel of it was compiled */
    gpuhal_device *device;
    gpuhal_plugin_program *handle;
    char format[32];
    gpuhal_mutex mutex; /* protects what is kept of the program in the cache */
    gpuhal_program_key key;
    uint64_t kept_bytes; /* size of what the cache has; drivers only add to it */
};

struct gpuhal_kernel {
    _Atomic uint32_t references;
    gpuhal_program *program;
    gpuhal_plugin_kernel *handle;
    gpuhal_kernel_info info; /* its parameters are `parameters` */
    uint64_t binding_mask, binding_max;
    uint64_t local_bytes; /* the most that a launch may add; UINT64_MAX: not known */
    /* how many bits the width of the widest grid has that a driver was given, in threads; 0: none was launched */
    _Atomic uint32_t launched_bits;
    char *name;
    gpuhal_parameter parameters[];
};

/* ---- self_contained.c */

enum { GPUHAL_WHY_OPEN_BYTES = 128 };
/* Returns whether the code and its options are all that a compiler reads. Else `out_why` says what else it may read; ""
 * without memory. */
bool gpuhal_code_is_self_contained(const gpuhal_code *code, char out_why[GPUHAL_WHY_OPEN_BYTES]);

/* ---- key.c */

/* Makes the key; that of a device or of code which is not to be kept has no text. */
void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key);
/* Returns whether what is around a compilation is still what it was when the key was made. */
bool gpuhal_program_key_is_current(gpuhal_device *device, const gpuhal_program_key *key);
void gpuhal_program_key_finish(gpuhal_program_key *key);

/* ---- cache.c */

/* What is kept for the key; malloc'ed, NULL: nothing, or nothing that is whole. */
void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes);
/* Asks the plugin what was compiled, and keeps it if it is more than before: then the program is not `cached` any more.
 * Failures cost a compilation later, and a line of the log; but DEVICE_LOST or FORKED, where calls may not go to the
 * plugin any more, is what creating ends with. */
gpuhal_status gpuhal_program_cache_put(gpuhal_program *program);

/* ---- program.c */

/* Ends a call of the plugin for a program: words its failure. */
gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what);

#endif
