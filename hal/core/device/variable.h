/* device/variable.h: vendors' variables that select devices, such as CUDA_VISIBLE_DEVICES, for the selector `env=NAME`.
 *
 * If a vendor's library in this process or in a helper has applied its variable, the backend lists only the remaining
 * devices, and the variable's text is used only for explanations. Otherwise the text determines the devices. If the
 * text is not sufficient, for example for an index while CUDA orders devices by speed, the result is an error, not a
 * guess.
 */
#ifndef GPUHAL_DEVICE_VARIABLE_H
#define GPUHAL_DEVICE_VARIABLE_H

#include "device/snapshot.h"

enum { GPUHAL_VARIABLE_PICKS = 256, GPUHAL_VARIABLE_NOTE_BYTES = 256 };

/* A device as the variable counts it. */
typedef struct gpuhal_counted {
    uint32_t entry;  /* index in the snapshot */
    int64_t number;  /* the device's index in the variable's numbering; -1 if unknown */
    const char *uuid; /* without GPU- or MIG-; NULL if unknown */
    bool partition;
} gpuhal_counted;

typedef struct gpuhal_picks {
    uint32_t count;
    uint32_t entries[GPUHAL_VARIABLE_PICKS];
    char note[GPUHAL_VARIABLE_NOTE_BYTES]; /* explanations, such as why a part of the text is ignored; "" if none */
} gpuhal_picks;

typedef struct gpuhal_variable gpuhal_variable;
struct gpuhal_variable_element; /* variable_text.c */
/* Reads a non-empty list. */
typedef gpuhal_status gpuhal_variable_read_fn(const gpuhal_variable *variable, const char *value,
                                              const gpuhal_counted *devices, uint32_t count, gpuhal_picks *picks);

/* The effect of an element that names the same device as an earlier element. */
typedef enum gpuhal_variable_repeat {
    GPUHAL_REPEAT_IGNORED,
    GPUHAL_REPEAT_ENDS,
    GPUHAL_REPEAT_LEAVES_NONE
} gpuhal_variable_repeat;

enum {
    GPUHAL_VARIABLE_EMPTY_IS_UNSET = 1u, /* without this flag, an empty variable allows no device */
    GPUHAL_VARIABLE_ONE_KIND = 2u,       /* a list contains either indices or UUIDs */
    GPUHAL_VARIABLE_CUDA_ORDER = 4u,     /* CUDA_DEVICE_ORDER determines the order of the devices */
    GPUHAL_VARIABLE_OF_VULKAN = 8u,      /* counts Vulkan devices; if unset, only GPUs remain */
    GPUHAL_VARIABLE_OF_HIP = 16u         /* HIP also reads this variable if HIP's own variable is unset or empty */
};

/* The rules of one variable (a row of the table in variable.c). */
struct gpuhal_variable {
    const char *name, *reader;
    const char *backend;                                       /* backend whose list contains the remaining devices;
                                                                * NULL if none */
    uint32_t vendor;                                           /* vendor of the GPUs that the variable selects from; 0
                                                                * for all devices */
    uint32_t flags;                                            /* GPUHAL_VARIABLE_ */
    gpuhal_variable_read_fn *read_value;                       /* NULL for SYCL's terms, variable_sycl.c */
    void (*read_element)(struct gpuhal_variable_element *one); /* used by gpuhal_variable_read_list() */
    gpuhal_variable_repeat repeat;                             /* used by gpuhal_variable_read_list() */
};

/* The list ends at the first element that is malformed, or matches no device or several. */
gpuhal_variable_read_fn gpuhal_variable_read_list;
/* Reads indices like strtoul(), or UUIDs or their beginnings. */
void gpuhal_variable_read_cuda(struct gpuhal_variable_element *one);
/* Reads like ROCclr (HIP and AMD's OpenCL), which accepts plain decimal indices, and UUIDs in newer versions. */
void gpuhal_variable_read_clr(struct gpuhal_variable_element *one);
/* Reads like ROCR: indices like strtol() with base 0, UUIDs or their beginnings in upper or lower case, with optional
 * blanks around them. */
void gpuhal_variable_read_rocr(struct gpuhal_variable_element *one);
/* Reads like llama.cpp: numbers separated by commas or blanks. Anything else ends the list. A number that is too large
 * is an error. */
gpuhal_variable_read_fn gpuhal_variable_read_numbers;
/* Reads like Level Zero: N or N.M, separated by commas; absent devices are skipped. N is the index of a device. With a
 * flat hierarchy (ZE_FLAT_DEVICE_HIERARCHY, the default for some GPUs) N is the index of a sub-device, and N.M is
 * skipped. */
gpuhal_variable_read_fn gpuhal_variable_read_mask;

/* Returns the variable with this name; NULL if its rules are not implemented. */
const gpuhal_variable *gpuhal_variable_find(const char *name);
const char *gpuhal_variable_names(void);

/* Finds the devices that a list names according to the variable's rules. If `devices` is NULL, every well-formed
 * element counts as one device, and the entries are the positions of the elements. Returns OK; INVALID_ARGUMENT if the
 * variable's reader would refuse the text; NOT_FOUND if it is unknown which device an element names. */
gpuhal_status gpuhal_variable_read(const gpuhal_variable *variable, const char *value, const gpuhal_counted *devices,
                                   uint32_t count, gpuhal_picks *out_picks);
gpuhal_status gpuhal_variable_read_sycl(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_device_snapshot *snapshot, gpuhal_picks *out_picks);
/* Appends a sentence to the note. Truncates the note if necessary. */
void gpuhal_variable_say(gpuhal_picks *picks, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds the snapshot's entries that the variable's current value allows. Fails like gpuhal_variable_read(). */
gpuhal_status gpuhal_variable_devices(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot,
                                      gpuhal_picks *out_picks);

#endif
