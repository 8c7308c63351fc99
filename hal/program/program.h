/* program/program.h: programs and kernels as the files of this folder see them.
 *
 * All members are written before the object is published, and only read afterwards, but for references and what the
 * program's mutex protects. References go one way: launch > kernel > program > gpuhal object. The last reference may
 * be dropped by a thread that retires work, so nothing here calls a function of the application while it unloads.
 */
#ifndef GPUHAL_PROGRAM_PROGRAM_H
#define GPUHAL_PROGRAM_PROGRAM_H

#include "core/text.h"
#include "device/device.h"

#include <gpuhal/program.h>

/* More parameters than any API takes: CUDA passes 32 KiB of them at most. */
#define GPUHAL_PARAMETERS_MAX 1024u

/* Where what drivers compile is kept; cache.c. */
typedef struct gpuhal_program_key {
    char *text; /* malloc'ed: the device, its driver, the format, options, and the code itself; NULL: not to be kept */
    size_t bytes;
} gpuhal_program_key;

struct gpuhal_program {
    _Atomic uint32_t references;
    uint32_t choice;
    bool cached;
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
    char *name;
    gpuhal_parameter parameters[];
};

/* ---- cache.c */

/* Makes the key; that of a device or of code which is not to be kept has no text. */
void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key);
void gpuhal_program_key_finish(gpuhal_program_key *key);
/* What is kept for the key; malloc'ed, NULL: nothing, or nothing that is whole. */
void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes);
/* Asks the plugin what was compiled, and keeps it where it is more than before. Failures cost a compilation later, and
 * a line of the log. */
void gpuhal_program_cache_put(gpuhal_program *program);

/* ---- program.c */

/* Ends a call of the plugin for a program: words its failure. */
gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what);

#endif
