/* device/variable.h: vendors' variables that choose devices (CUDA_VISIBLE_DEVICES and its like), by their own rules,
 * for the selector `env=NAME`: variable_text.c reads the lists, variable_sycl.c reads SYCL's terms, variable.c finds
 * the devices.
 *
 * A library that runs in this process or in a helper has applied its variable: its backend then lists the devices that
 * the variable leaves, and the text only explains that. Otherwise the text decides. If it does not say enough, as with
 * an index while CUDA counts by speed, there is an error and no guess. */
#ifndef GPUHAL_DEVICE_VARIABLE_H
#define GPUHAL_DEVICE_VARIABLE_H

#include "device/snapshot.h"

enum { GPUHAL_VARIABLE_PICKS = 256, GPUHAL_VARIABLE_NOTE_BYTES = 256 };

/* A device as the variable counts it. */
typedef struct gpuhal_counted {
    uint32_t entry;  /* of the snapshot */
    int64_t number;  /* its index; -1: not known */
    const char *uuid; /* without GPU- or MIG-; NULL: not known */
    bool partition;
} gpuhal_counted;

typedef struct gpuhal_picks {
    uint32_t count;
    uint32_t entries[GPUHAL_VARIABLE_PICKS];
    char note[GPUHAL_VARIABLE_NOTE_BYTES]; /* ignored parts, and why; "": none */
} gpuhal_picks;

typedef struct gpuhal_variable gpuhal_variable;
struct gpuhal_variable_element; /* variable_text.c */
/* Reads a list that is not empty. */
typedef gpuhal_status gpuhal_variable_read_fn(const gpuhal_variable *variable, const char *value,
                                              const gpuhal_counted *devices, uint32_t count, gpuhal_picks *picks);

/* The effect of an element whose device an earlier one named. */
typedef enum gpuhal_variable_repeat {
    GPUHAL_REPEAT_IGNORED,
    GPUHAL_REPEAT_ENDS,
    GPUHAL_REPEAT_LEAVES_NONE
} gpuhal_variable_repeat;

enum {
    GPUHAL_VARIABLE_EMPTY_IS_UNSET = 1u, /* otherwise it leaves no device */
    GPUHAL_VARIABLE_ONE_KIND = 2u,       /* indices or UUIDs, not both in one list */
    GPUHAL_VARIABLE_CUDA_ORDER = 4u,     /* CUDA_DEVICE_ORDER says how the devices are counted */
    GPUHAL_VARIABLE_OF_VULKAN = 8u,      /* it counts Vulkan's devices; unset, it leaves only its GPUs */
    GPUHAL_VARIABLE_OF_HIP = 16u         /* HIP reads it, too, if HIP's variable is not set */
};

/* One rule: a row of the table in variable.c. */
struct gpuhal_variable {
    const char *name, *reader;                                 /* and the name of its reader */
    const char *backend;                                       /* that lists the devices left; NULL: none does */
    uint32_t vendor;                                           /* of the GPUs that it chooses from; 0: all */
    uint32_t flags;                                            /* GPUHAL_VARIABLE_ */
    gpuhal_variable_read_fn *read_value;                       /* NULL: SYCL's terms, variable_sycl.c */
    void (*read_element)(struct gpuhal_variable_element *one); /* for gpuhal_variable_read_list() */
    gpuhal_variable_repeat repeat;                             /* for it as well */
};

/* Reads a list that ends at the first element that names no device, or several. */
gpuhal_variable_read_fn gpuhal_variable_read_list;
/* Reads indices as strtoul() does, or UUIDs or their beginnings. */
void gpuhal_variable_read_cuda(struct gpuhal_variable_element *one);
/* Reads as ROCclr, of HIP and AMD's OpenCL: plain decimal indices, in newer versions also UUIDs. */
void gpuhal_variable_read_clr(struct gpuhal_variable_element *one);
/* Reads as ROCR: indices as strtol() with base 0, UUIDs or their beginnings, in any case, with blanks around. */
void gpuhal_variable_read_rocr(struct gpuhal_variable_element *one);
/* Reads as llama.cpp: numbers, separated by commas or blanks; ends at anything else; a number that is too large is an
 * error.
 */
gpuhal_variable_read_fn gpuhal_variable_read_numbers;
/* Reads as Level Zero: N or N.M, separated by commas; missing ones are skipped. N counts devices, but if the hierarchy
 * is flat (ZE_FLAT_DEVICE_HIERARCHY; of some GPUs by default) their sub-devices, and then N.M is skipped. */
gpuhal_variable_read_fn gpuhal_variable_read_mask;

/* Returns the variable of that name; NULL for one whose rules are not known here. */
const gpuhal_variable *gpuhal_variable_find(const char *name);
/* Returns the names of all, "CUDA_VISIBLE_DEVICES, …". */
const char *gpuhal_variable_names(void);

/* Reads a list by its rule: which of the devices it names. With `devices` NULL every well-formed element counts as one
 * device, and the entries are the places of the elements. Returns OK; INVALID_ARGUMENT if the reader of the variable
 * refuses the text; NOT_FOUND if it is not known which device an element names. */
gpuhal_status gpuhal_variable_read(const gpuhal_variable *variable, const char *value, const gpuhal_counted *devices,
                                   uint32_t count, gpuhal_picks *out_picks);
/* Does the same for SYCL's terms. */
gpuhal_status gpuhal_variable_read_sycl(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_device_snapshot *snapshot, gpuhal_picks *out_picks);
/* Adds a sentence to the note; longer text is cut. */
void gpuhal_variable_say(gpuhal_picks *picks, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds the snapshot's entries that the variable, as it is now, leaves. Fails as above. */
gpuhal_status gpuhal_variable_devices(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot,
                                      gpuhal_picks *out_picks);

#endif
