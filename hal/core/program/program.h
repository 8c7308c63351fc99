/* program/program.h: programs and kernels as the files of this folder see them.
 *
 * All members except the atomic ones and the members under the program's mutex are written before the object is
 * published, and only read afterwards. Each object holds a reference to the next in this order: launch, kernel,
 * program, gpuhal object. A thread that retires work may drop the last reference, so unloading must not call a function
 * of the application.
 */
#ifndef GPUHAL_PROGRAM_PROGRAM_H
#define GPUHAL_PROGRAM_PROGRAM_H

#include "base/text.h"
#include "device/device.h"

#include <gpuhal/program.h>

/* More parameters than any API accepts. CUDA accepts at most 32 KiB of parameters. */
#define GPUHAL_PARAMETERS_MAX 1024u

/* The possible differences between two compilations (key.c). Each difference has a test. */
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
    char *text; /* malloc'ed text with the values of all differences above; NULL if the code must not be cached */
    size_t bytes, around_bytes;
} gpuhal_program_key;

struct gpuhal_program {
    _Atomic uint32_t references;
    uint32_t choice;
    _Atomic bool cached; /* neither the program nor any of its kernels was compiled */
    gpuhal_device *device;
    gpuhal_plugin_program *handle;
    char format[32];
    gpuhal_mutex mutex; /* protects the key and kept_bytes */
    gpuhal_program_key key;
    uint64_t kept_bytes; /* size of the cached code; a driver never removes code */
};

/* A group size of a kernel. */
typedef struct gpuhal_group_size {
    struct gpuhal_group_size *next;
    uint32_t threads[3];
    /* bit length of the largest grid width (in threads) of all launches so far, without and with an offset; 0 if never
     * launched */
    _Atomic uint32_t launched_bits[2];
} gpuhal_group_size;

struct gpuhal_kernel {
    _Atomic uint32_t references;
    gpuhal_program *program;
    gpuhal_plugin_kernel *handle;
    gpuhal_kernel_info info; /* `info.parameters` points to `parameters` */
    uint64_t binding_mask, binding_max;
    uint64_t local_bytes; /* maximum number of bytes that a launch may add; UINT64_MAX if unknown */
    gpuhal_group_size own_size;
    _Atomic(gpuhal_group_size *) other_sizes; /* prepared, or launched at least once */
    char *name;
    gpuhal_parameter parameters[];
};

/* ---- self_contained.c */

enum { GPUHAL_WHY_OPEN_BYTES = 128 };
/* Returns whether the compiler reads only the code and its options. If not, `out_why` states why it may read other
 * files, or is "" if out of memory. */
bool gpuhal_code_is_self_contained(const gpuhal_code *code, char out_why[GPUHAL_WHY_OPEN_BYTES]);

/* ---- key.c */

/* The key has no text if the compiled code for this device or input must not be cached. */
void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key);
/* Returns whether the environment is still the same as when the key was created. */
bool gpuhal_program_key_is_current(gpuhal_device *device, const gpuhal_program_key *key);
void gpuhal_program_key_finish(gpuhal_program_key *key);

/* ---- group_size.c */

/* If any dimension has a size, a size of 0 in another dimension counts as 1. Returns TOO_LARGE above the device's
 * limits. */
gpuhal_status gpuhal_group_size_take(const gpuhal_device *device, const char *kernel, uint32_t threads[3]);
/* Returns NULL for a size that was neither prepared nor launched. */
gpuhal_group_size *gpuhal_group_size_find(const gpuhal_kernel *kernel, const uint32_t threads[3]);
/* Checks that launches may have the size. */
gpuhal_status gpuhal_group_size_check(const gpuhal_kernel *kernel, const uint32_t threads[3]);
/* Returns the size of the list, which gets it if necessary; NULL if the list is full, or without memory. */
gpuhal_group_size *gpuhal_group_size_add(gpuhal_kernel *kernel, const uint32_t threads[3]);
void gpuhal_group_size_free_all(gpuhal_kernel *kernel);

/* ---- cache.c */

/* Returns the cached code for the key in a malloc'ed block, or NULL if the cache has no complete code for the key. */
void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes);
/* Gets the compiled code from the plugin. If the code is larger than the cached code, caches it and clears the
 * program's `cached` member. Other failures than DEVICE_LOST and FORKED are only logged: the program is compiled again
 * later. DEVICE_LOST and FORKED are returned and make the creation fail, because the plugin must not be called
 * afterwards. */
gpuhal_status gpuhal_program_cache_put(gpuhal_program *program);

/* ---- program.c */

/* Composes the error message for a program's failed plugin call. */
gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what);

#endif
