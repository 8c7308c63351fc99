/* program/program.h: programs and kernels as the files of this folder see them.
 *
 * Except for reference counts and the members under the program's mutex, all members are written before the object is
 * published and only read afterwards. References go in one direction: launch > kernel > program > gpuhal object. A
 * thread that retires work may drop the last reference, so unloading must not call a function of the application.
 */
#ifndef GPUHAL_PROGRAM_PROGRAM_H
#define GPUHAL_PROGRAM_PROGRAM_H

#include "base/text.h"
#include "device/device.h"

#include <gpuhal/program.h>

/* More parameters than any API accepts; CUDA passes at most 32 KiB of them. */
#define GPUHAL_PARAMETERS_MAX 1024u

/* The possible differences between two compilations; key.c. Each has a test. */
enum {
    /* in the environment */
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

typedef struct gpuhal_program_key {
    char *text; /* malloc'ed: all differences above, one after the other; NULL: do not cache */
    size_t bytes, around_bytes;
} gpuhal_program_key;

struct gpuhal_program {
    _Atomic uint32_t references;
    uint32_t choice;
    _Atomic bool cached; /* neither the program nor any kernel of it was compiled */
    gpuhal_device *device;
    gpuhal_plugin_program *handle;
    char format[32];
    gpuhal_mutex mutex; /* protects the key and kept_bytes */
    gpuhal_program_key key;
    uint64_t kept_bytes; /* size of the cached code; drivers only add code */
};

struct gpuhal_kernel {
    _Atomic uint32_t references;
    gpuhal_program *program;
    gpuhal_plugin_kernel *handle;
    gpuhal_kernel_info info; /* its parameters point to `parameters` */
    uint64_t binding_mask, binding_max;
    uint64_t local_bytes; /* maximum that a launch may add; UINT64_MAX: unknown */
    /* bit length of the widest grid (in threads) that was passed to a driver; 0: never launched */
    _Atomic uint32_t launched_bits;
    char *name;
    gpuhal_parameter parameters[];
};

/* ---- self_contained.c */

enum { GPUHAL_WHY_OPEN_BYTES = 128 };
/* Returns whether the compiler reads only the code and its options. If it returns false, `out_why` names the other
 * files that the compiler may read, or is "" if host memory is short. */
bool gpuhal_code_is_self_contained(const gpuhal_code *code, char out_why[GPUHAL_WHY_OPEN_BYTES]);

/* ---- key.c */

/* Creates the key. It has no text if the compiled code for this device or input must not be cached. */
void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key);
/* Returns whether the environment is still the same as when the key was created. */
bool gpuhal_program_key_is_current(gpuhal_device *device, const gpuhal_program_key *key);
void gpuhal_program_key_finish(gpuhal_program_key *key);

/* ---- cache.c */

/* Reads the cached code for the key; malloc'ed. Returns NULL if there is none, or it is incomplete. */
void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes);
/* Gets the compiled code from the plugin, and caches it if it is larger than before; the program is then no longer
 * `cached`. A failure costs a compilation later, and is logged. Only DEVICE_LOST and FORKED, after which the plugin
 * must not be called, are returned and make the creation fail. */
gpuhal_status gpuhal_program_cache_put(gpuhal_program *program);

/* ---- program.c */

/* Handles a failed plugin call for a program: composes the error message. */
gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what);

#endif
